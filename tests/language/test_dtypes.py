"""Element types: names, aliases, foreign types, casts, and which of them memory can hold."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilelang_nb.language as T
from tilelang_nb.language.dtypes import WITHOUT_STORAGE, dtype_of, storable
from tilelang_nb.source.diagnostic import Refusal


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("int", "int32"),
        ("long", "int64"),
        ("short", "int16"),
        ("uint", "uint32"),
        (np.float16, "float16"),
        (np.dtype("int8"), "int8"),
        (np.bool_, "bool"),
        (bool, "bool"),
        (int, "int32"),
        (float, "float32"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.float8_e4m3fn), "float8_e4m3fn"),
        ("torch.bfloat16", "bfloat16"),
        ("float8_e4m3", "float8_e4m3fn"),
        ("float16x2", "float16x2"),
    ],
)
def test_a_dtype_is_read_from_any_of_its_forms(given, name):
    assert T.dtype(given) == name
    assert isinstance(T.dtype(given), T.dtype)


def test_a_dtype_is_a_string_that_prints_as_its_name():
    assert T.float16 == "float16"
    assert f"{T.half} {T.float}" == "float16 float32"
    assert repr(T.int) == "T.int32"
    assert {T.float16: 1}["float16"] == 1
    assert (T.float16.bits, T.float16.itemsize, T.float32x4.lanes, T.float32x4.itemsize) == (16, 2, 4, 16)


def test_a_foreign_object_with_a_torch_name_is_a_dtype():
    class TorchDtype:
        def __str__(self):
            return "torch.float8_e5m2"

    assert T.dtype(TorchDtype()) == "float8_e5m2"


def test_a_dtype_that_does_not_exist_is_refused_with_the_nearest(refused):
    with refused("TL205", "`float33`", "did you mean `float32`?"):
        T.dtype("float33")
    with refused("TL205", "name one"):
        T.dtype(3)
    with refused("TL205"):
        T.dtype(list)


@pytest.mark.parametrize("name", sorted(WITHOUT_STORAGE))
def test_types_that_no_memory_holds_are_known_and_refused(name, kernel, refused):
    assert T.dtype(name) == name
    with refused("TL205", f"`{name}`"):
        T.alloc_shared((8,), name)
    with refused("TL205", f"`{name}`"):
        T.Tensor((8,), name)


def test_vector_types_are_known_and_not_lowered(kernel, refused):
    for use in (lambda: T.alloc_local((4,), T.float32x4), lambda: T.float16x2(1.0, 2.0), lambda: T.Tensor(8, "int8x4")):
        with refused("TL302", "vector type"):
            use()


def test_tfloat32_is_for_operands_of_products(kernel, refused):
    assert T.alloc_shared((8, 8), T.tfloat32).dtype == T.Tensor((8,), "tfloat32").dtype == "tfloat32"
    with refused("TL205", "float32"):
        T.empty((8,), dtype="tfloat32")


def test_calling_a_dtype_casts(device, refused):
    x = device("x", "int32")
    assert T.float16(x).dtype == "float16"
    assert (T.int8(-7).dtype, str(T.int8(-7))) == ("int8", "T.int8(-7)")
    assert T.bool(3).dtype == "bool"
    with refused("TL135", "300", "int8"):
        T.int8(300)
    with refused("TL004"):
        T.float32("one")
    with refused("TL004", "one value"):
        T.float32()


def test_storage_is_the_numpy_type_of_the_same_elements():
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint64", "bool", "float64"):
        assert storable(name, tile=False).as_numpy().name == name
        assert storable(name, tile=False).as_numpy().itemsize == T.dtype(name).itemsize


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (T, "a module is no dtype"),
        (print, "a built-in function is no dtype"),
        ([1], "a list is no dtype"),
        (None, "`None` is no dtype"),
        (3.5, "`3.5` is no dtype"),
        (7, "7 is no dtype"),
        (range, "there is no dtype `range`"),
        (object, "there is no dtype `object`"),
    ],
)
def test_what_is_no_dtype_is_called_by_what_it_is(given: object, said: str) -> None:
    with pytest.raises(Refusal) as raised:
        dtype_of(given)
    assert raised.value.message.problem == said


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
def test_types_of_four_bits_are_told_of_bytes_that_hold_two_values(name, refused):
    with refused("TL205", f"`{name}`", '`"uint8"` with half the columns'):
        T.Tensor((4, 8), name)
