"""Arguments of a launch: what is accepted, what the launch works on, and what is refused with which words."""

from __future__ import annotations

from array import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import tirx as tir

from tilelang_nb.frontend.program import Parameter
from tilelang_nb.runtime.arguments import Binding, bind, uninitialised
from tilelang_nb.source.diagnostic import Refusal


def tensor(
    name: str, shape: tuple[Any, ...], dtype: str = "float32", strides: tuple[Any, ...] | None = None
) -> Parameter:
    return Parameter(name, "tensor", dtype, shape, strides, None)


def number(name: str, dtype: str) -> Parameter:
    return Parameter(name, "scalar", dtype, (), None, None)


def bound(
    parameters: list[Parameter], *args: Any, written: str = "", outputs: tuple[int, ...] = (), **kwargs: Any
) -> Binding:
    return bind(parameters, frozenset(written.split()), args, kwargs, outputs=outputs)


def refused(
    parameters: list[Parameter], *args: Any, written: str = "", outputs: tuple[int, ...] = (), **kwargs: Any
) -> str:
    with pytest.raises(Refusal) as caught:
        bound(parameters, *args, written=written, outputs=outputs, **kwargs)
    message = caught.value.message
    assert message.code == "TL301"
    return f"{message.fill(message.text)} | {message.fill(message.advice)}"


A, B = tensor("a", (6,)), tensor("b", (6,))
F32 = np.float32


def test_a_fitting_array_is_used_where_it_is() -> None:
    given = np.arange(6, dtype=F32)
    assert bound([A], given, written="a").values["a"] is given


def test_arguments_are_taken_by_name_and_come_out_in_parameter_order() -> None:
    one, other = np.zeros(6, F32), np.ones(6, F32)
    binding = bound([A, B], b=other, a=one)
    assert list(binding.values) == ["a", "b"] and binding.values["b"] is other


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((np.zeros(6, F32),), {}, ["`b`", "nothing", "float32", "(6,)"]),
        ((np.zeros(6, F32),) * 3, {}, ["2 arguments", "given 3", "a, b"]),
        ((np.zeros(6, F32),) * 2, {"a": 1}, ["`a`", "by position and by name"]),
        ((np.zeros(6, F32),), {"bb": np.zeros(6, F32)}, ["`bb`", "did you mean `b`?"]),
        ((np.zeros(6, np.float64), np.zeros(6, F32)), {}, ["`a`", "float32", "float64", 'a.astype("float32")']),
        ((np.zeros((1, 6), F32), np.zeros(6, F32)), {}, ["`a`", "1 dimension,", "2 dimensions", "(6,)", "(1, 6)"]),
        ((np.zeros(6, F32), np.zeros(7, F32)), {}, ["`b`", "shape (6,)", "shape (7,)"]),
        (([0.0] * 6, np.zeros(6, F32)), {}, ["`a`", "a list", "np.array"]),
        ((None, np.zeros(6, F32)), {}, ["`a`", "given None"]),
        ((3, np.zeros(6, F32)), {}, ["`a`", "an int"]),
        ((np.ma.masked_array(np.zeros(6, F32), [0, 0, 1, 0, 0, 0]), np.zeros(6, F32)), {}, ["`a`", "masked"]),
        ((np.zeros(6, object), np.zeros(6, F32)), {}, ["`a`", "dtype object"]),
        ((np.zeros(6, "U1"), np.zeros(6, F32)), {}, ["`a`", "dtype str"]),
        ((np.zeros(6, np.int32), np.zeros(6, F32)), {}, ["`a`", "int32"]),
        ((np.zeros(6, np.complex64), np.zeros(6, F32)), {}, ["`a`", "complex64"]),
    ],
)
def test_a_misfit_names_the_parameter_what_it_takes_and_what_was_given(
    args: Any, kwargs: Any, words: list[str]
) -> None:
    said = refused([A, B], *args, **kwargs)
    assert all(word in said for word in words), said


# -- dtypes


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4"]
)
def test_small_types_are_ml_dtypes_arrays_and_raw_integers_are_refused(dtype: str) -> None:
    given = np.zeros(6, getattr(ml_dtypes, dtype))
    assert bound([tensor("a", (6,), dtype)], given).values["a"] is given
    said = refused([tensor("a", (6,), dtype)], np.zeros(6, f"uint{8 * given.itemsize}"))
    assert dtype in said and f"ml_dtypes.{dtype}" in said


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float64"]
)
def test_every_plain_type_takes_its_own_arrays_only(dtype: str) -> None:
    given = np.zeros(6, dtype)
    assert bound([tensor("a", (6,), dtype)], given).values["a"] is given
    assert dtype in refused([tensor("a", (6,), dtype)], np.zeros(6, np.float16))


def test_tf32_tensors_are_float32_arrays() -> None:
    given = np.zeros(6, F32)
    assert bound([tensor("a", (6,), "tfloat32")], given).values["a"] is given


# -- memory


def views_of_six() -> dict[str, np.ndarray]:
    base = np.arange(24, dtype=F32)
    odd = np.zeros(25, np.uint8)[1:].view(F32)
    odd[...] = np.arange(6)
    return {
        "every other": base[:12:2],
        "reversed": base[5::-1],
        "a column": base.reshape(6, 4)[:, 1],
        "byte-swapped": np.arange(6).astype(">f4"),
        "misaligned": odd,
        "a field of records": np.zeros(6, [("x", "u1"), ("y", F32)])["y"],
    }


@pytest.mark.parametrize("name", views_of_six())
def test_other_orders_of_memory_are_copied_in_and_back(name: str) -> None:
    given = views_of_six()[name]
    before = given.copy()
    binding = bound([A], given, written="a")
    used = binding.values["a"]
    assert used.flags.c_contiguous and used.dtype == F32 and used.dtype.isnative and used.flags.aligned
    assert np.array_equal(used, before)
    used += 1
    assert np.array_equal(given, before)
    binding.write_back()
    assert np.array_equal(given, before + 1)


def test_an_input_that_is_not_written_is_not_copied_back() -> None:
    given = np.arange(12, dtype=F32)[::2]
    binding = bound([A], given)
    binding.values["a"][...] = -1
    binding.write_back()
    assert np.array_equal(given, [0, 2, 4, 6, 8, 10])


def test_a_column_major_matrix_keeps_its_elements() -> None:
    given = np.asfortranarray(np.arange(12, dtype=F32).reshape(3, 4))
    used = bound([tensor("a", (3, 4))], given).values["a"]
    assert used.flags.c_contiguous and np.array_equal(used, given)


def test_a_repeated_input_is_read_and_a_repeated_output_refused() -> None:
    given = np.broadcast_to(np.float32(3), (6,))
    assert np.array_equal(bound([A], given).values["a"], np.full(6, 3, F32))
    assert "read-only" in refused([A], given, written="a")
    writable = np.lib.stride_tricks.as_strided(np.zeros(3, F32), (2, 2), (4, 4))
    assert "overlapping memory" in refused([tensor("a", (2, 2))], writable, written="a")


def test_interleaved_strides_without_overlap_can_be_written() -> None:
    memory = np.zeros(12, F32)
    given = np.lib.stride_tricks.as_strided(memory, (2, 3), (12, 8))  # elements 0 2 4 and 3 5 7
    binding = bound([tensor("a", (2, 3))], given, written="a")
    binding.values["a"][...] = [[1, 2, 3], [4, 5, 6]]
    binding.write_back()
    assert np.array_equal(memory, [1, 0, 2, 4, 3, 5, 0, 6, 0, 0, 0, 0])


def test_a_read_only_array_is_refused_only_where_it_is_written() -> None:
    given = np.zeros(6, F32)
    given.flags.writeable = False
    assert bound([A], given).values["a"] is given
    said = refused([A], given, written="a")
    assert "writable" in said and "read-only" in said and "a.copy()" in said


def test_strides_of_axes_of_one_element_do_not_matter() -> None:
    given = np.lib.stride_tricks.as_strided(np.arange(6, dtype=F32), (1, 6), (400, 4))
    assert np.array_equal(bound([tensor("a", (1, 6))], given, written="a").values["a"], np.arange(6)[None])


def test_arrays_of_no_dimension_and_of_no_elements() -> None:
    given = np.array(5, np.int32)
    assert bound([tensor("a", (), "int32")], given, written="a").values["a"] is given
    empty = np.zeros((0, 6), F32)[:, ::2]
    assert bound([tensor("a", (0, 3))], empty, written="a").values["a"].shape == (0, 3)


def test_a_numpy_scalar_is_a_tensor_of_no_dimension_that_cannot_be_written() -> None:
    assert bound([tensor("a", ())], np.float32(2)).values["a"] == 2
    assert "read-only" in refused([tensor("a", ())], np.float32(2), written="a")


# -- one memory for two parameters


def test_the_same_array_twice_is_one_memory() -> None:
    given = np.zeros(6, F32)
    binding = bound([A, B], given, given, written="b")
    assert binding.values["a"] is binding.values["b"] is given


def test_the_same_view_twice_is_one_copy_and_is_written_back_once() -> None:
    given = np.zeros(12, F32)[::2]
    binding = bound([A, B], given, given[:], written="b")
    assert binding.values["a"] is binding.values["b"] and len(binding.copied) == 1
    binding.values["b"][...] = 7
    binding.write_back()
    assert np.array_equal(given, np.full(6, 7))


def test_overlap_of_arrays_in_place_stays_an_overlap() -> None:
    memory = np.zeros(8, F32)
    binding = bound([A, B], memory[:6], memory[2:], written="b")
    binding.values["b"][0] = 1
    assert binding.values["a"][2] == 1


def test_a_copied_array_that_overlaps_a_written_one_is_refused() -> None:
    memory = np.zeros(12, F32)
    said = refused([A, B], memory[:6], memory[::2], written="b")
    assert "`b`" in said and "overlaps a" in said
    assert bound([A, B], memory[:6], memory[::2]).values["a"].base is memory


def test_interleaved_views_share_no_element_and_are_taken() -> None:
    memory = np.arange(12, dtype=F32)
    binding = bound([A, B], memory[::2], memory[1::2], written="a b")
    binding.values["a"][...] = 0
    binding.values["b"][...] = 1
    binding.write_back()
    assert np.array_equal(memory, [0, 1] * 6)


# -- symbolic shapes


def n_and_k() -> tuple[Any, Any]:
    return tir.Var("n", "int32"), tir.Var("k", "int32")


def test_shape_variables_are_bound_and_must_agree() -> None:
    n, k = n_and_k()
    parameters = [tensor("a", (n, k)), tensor("b", (k,))]
    symbols = bound(parameters, np.zeros((3, 4), F32), np.zeros(4, F32)).symbols
    assert (symbols.values[n], symbols.values[k]) == (3, 4)
    said = refused(parameters, np.zeros((3, 4), F32), np.zeros(5, F32))
    assert "`b`" in said and "shape (k,) with k = 4 (shape of a)" in said and "shape (5,)" in said


def test_sums_and_products_of_a_variable_are_solved_or_checked() -> None:
    n, _ = n_and_k()
    assert bound([tensor("a", (n * 4 + 2,))], np.zeros(14, F32)).symbols.values[n] == 3
    assert "13 is no value of" in refused([tensor("a", (n * 4 + 2,))], np.zeros(13, F32))
    parameters = [tensor("b", (tir.floordiv(n, 2),)), tensor("a", (n,))]
    assert bound(parameters, np.zeros(3, F32), np.zeros(7, F32)).symbols.values[n] == 7
    assert "shape (4,)" in refused(parameters, np.zeros(4, F32), np.zeros(7, F32))
    assert bound([tensor("a", (5 - n,))], np.zeros(2, F32)).symbols.values[n] == 3


def test_a_variable_that_no_argument_settles_is_named() -> None:
    n, _ = n_and_k()
    said = refused([tensor("a", (tir.floordiv(n, 2),))], np.zeros(3, F32))
    assert "says what n is" in said and "use n alone" in said


# -- annotated strides


def test_annotated_strides_are_required_but_for_axes_of_one_element() -> None:
    n, step = n_and_k()
    matrix = np.zeros((4, 10), F32)
    parameter = tensor("a", (n, 6), strides=(step, 1))
    binding = bound([parameter], matrix[:, 2:8], written="a")
    assert binding.values["a"].base is matrix and binding.symbols.values[step] == 10
    assert "strides that go forward" in refused([parameter], matrix[:, 8:2:-1])
    said = refused([parameter], np.zeros((4, 12), F32)[:, ::2])
    assert "`a`" in said and "strides (k, 1)" in said and "axis 1" in said
    fixed = tensor("a", (1, 6), strides=(8, 1))
    assert bound([fixed], matrix[:1, :6]).values["a"].shape == (1, 6)
    assert "strides (10, 1)" in refused([tensor("a", (4, 6), strides=(8, 1))], matrix[:, :6])


# -- returned tensors


def test_returned_tensors_are_allocated_from_the_shapes_of_the_others() -> None:
    n, _ = n_and_k()
    parameters = [tensor("a", (n,)), tensor("c", (n, 2), "float16"), tensor("d", (), "int32")]
    binding = bound(parameters, np.zeros(5, F32), outputs=(2, 1))
    assert binding.outputs == {"d": ((), np.dtype("int32")), "c": ((5, 2), np.dtype("float16"))}
    assert list(binding.outputs) == ["d", "c"] and list(binding.values) == ["a"]
    assert np.isnan(uninitialised(*binding.outputs["c"])).all()  # visibly so
    assert "c, d are returned" in refused(parameters, *[np.zeros(5, F32)] * 3, outputs=(1, 2))
    assert "says what n is" in refused(parameters[1:], outputs=(0,), d=np.zeros((), np.int32))


def test_a_subclass_of_an_array_is_its_memory() -> None:
    given = np.arange(6, dtype=F32).reshape(2, 3)
    for view in (given.view(np.matrix), given.view(np.recarray)):
        used = bound([tensor("a", (2, 3))], view, written="a").values["a"]
        assert type(used) is np.ndarray
        assert used.ctypes.data == given.ctypes.data


def test_a_strided_float8_e5m2_array_in_the_other_byte_order_or_not() -> None:
    strided = [tensor("a", (2, 3), name, (4, 1)) for name in ("float8_e5m2", "float32")]
    plain = np.ones((2, 4), ml_dtypes.float8_e5m2)[:, :3]
    assert bound(strided[:1], plain, written="a").values["a"] is plain
    swapped = np.ones((2, 4), ">f4")[:, :3]
    copy = bound(strided[1:], swapped, written="a").values["a"]
    assert copy.strides == (16, 4)
    assert (copy == 1).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            np.zeros(6, [("r", "f4"), ("g", "f4")]),
            ["a structured array with the fields r, g", "pass one field, `a['r']`"],
        ),
        (np.zeros(6, "V4"), ["an array of raw bytes, 4 an element", "an array of numbers"]),
        (np.array(["1"] * 6), ["an array of text (dtype str32)", "an array of numbers"]),
        (np.array([None] * 6), ["an array of Python objects", "an array of numbers"]),
        (np.zeros(6, "M8[s]"), ["an array of dates", "an array of numbers"]),
        (np.zeros(6, np.complex64), ["an array of complex numbers", "`a.real` or `a.imag`"]),
        ([0.0] * 6, ["a list", '`np.array(a, "float32")`']),
        (array("f", [0.0] * 6), ["an array.array", "`np.asarray(a)`, which has the same memory"]),
        (memoryview(np.zeros(6)), ["a memoryview", "`np.asarray(a)`"]),
        (np.ma.zeros(6), ["a masked array", "`a.filled(value)`"]),
    ],
)
def test_what_is_no_array_of_numbers_is_said_to_be_what_it_is(given: Any, words: list[str]) -> None:
    said = refused([A], given)
    assert all(word in said for word in words) and "astype" not in said, said


def test_a_list_that_the_kernel_writes_is_an_array_to_make_before_the_call() -> None:
    said = refused([A], [0.0] * 6, written="a")
    assert "the kernel writes it" in said and '`np.zeros((6,), "float32")`' in said


def test_an_array_of_another_rank_with_as_many_elements_is_reshaped() -> None:
    assert "pass `a.reshape((6,))`" in refused([A], np.zeros((2, 3), F32))
    assert "pass an array of 1 dimension" in refused([A], np.zeros((2, 4), F32))
    assert "pass an array of 1 dimension" in refused([A], np.zeros((3, 2), F32).T)


def test_a_scalar_that_is_not_passed_takes_its_default() -> None:
    n = Parameter("n", "scalar", "int32", (), None, None, 3)
    given = np.zeros(6, F32)
    assert bound([A, n], given).values["n"] == 3
    assert bound([A, n], given, n=4).values["n"] == bound([A, n], given, 4).values["n"] == 4
    small = Parameter("n", "scalar", "int8", (), None, None, 300)
    assert "int8 holds -128 to 127" in refused([A, small], given)
