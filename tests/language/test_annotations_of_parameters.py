"""T.Tensor and its like, and sizes known at the launch."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T
from tilelang_nb.language.values import Value


def test_shapes_are_given_as_number_tuple_list_or_subscript():
    for tensor in (
        T.Tensor((4, 8), "float16"),
        T.Tensor[(4, 8), "float16"],
        T.Tensor[[4, 8], T.half],
        T.Tensor[4, 8, "half"],
    ):
        assert (tensor.shape, tensor.dtype, tensor.scope) == ((4, 8), "float16", "global")
    assert T.Tensor(5).shape == (5,)
    assert T.Tensor[4, 8].shape == (4, 8)
    assert T.Tensor((), "int32").shape == ()
    assert T.Tensor(5).dtype == "float32"


def test_symbolic_sizes_stand_in_shapes_as_they_are():
    n = T.dynamic("n")
    assert T.Tensor((n, 4)).shape[0] is n
    assert T.Tensor((T.int32(8), 4)).shape == (8, 4)  # a constant in disguise
    assert (n.dtype, str(n)) == ("int32", "n")


def test_memories_of_macro_parameters():
    assert T.FragmentBuffer((4,), "float32").scope == "local.fragment"
    assert T.SharedBuffer((4,), "float32").scope == "shared.dyn"
    assert T.LocalBuffer((4,), "float32").scope == "local"
    assert T.Buffer((4, 4), "float16").scope == "global"
    assert isinstance(T.SharedBuffer((4,)), T.Tensor)


def test_strides(refused):
    tensor = T.StridedTensor((4, 8), (16, 1), "float16")
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((4, 8), (16, 1), "float16")
    with refused("TL004", "2 dimension(s) and 1 stride(s)"):
        T.StridedTensor((4, 8), (16,))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((4.0,), "write `4`"),
        ((2.5,), "2.5"),
        ((-1,), "-1"),
        (("n",), "'n'"),
        ("n", "'n'"),
        (None, "None"),
        ((True,), "True"),
    ],
)
def test_what_is_no_size_is_refused(shape, text, refused):
    with refused("TL004", text):
        T.Tensor(shape)


def test_a_misspelt_keyword_of_an_annotation_is_refused(refused):
    with refused("TL004", "`dtyp`", "`dtype`"):
        T.Tensor((4,), dtyp="float16")


def test_dynamic_gives_one_size_or_several():
    m, n = T.dynamic("m, n")
    assert (str(m), str(n)) == ("m", "n")
    p, q = T.dynamic("p q", "int64")
    assert (p.dtype, q.dtype) == ("int64", "int64")
    assert isinstance(T.symbolic("k"), Value)
    (only,) = T.dynamic("only,")
    assert str(only) == "only"


@pytest.mark.parametrize("name", ["3n", "", "for", "a-b", 7, None])
def test_dynamic_takes_an_identifier(name, refused):
    with refused("TL004"):
        T.dynamic(name)


def test_dynamic_takes_an_integer_dtype(refused):
    with refused("TL004", "float32"):
        T.dynamic("n", "float32")


def test_arithmetic_on_sizes_works_outside_kernels():
    n = T.dynamic("n")
    assert str(T.ceildiv(n, 256)) == "(n + 256 - 1) // 256"
    assert T.ceildiv(n, 1) is n


def test_empty_declares_a_result():
    for made in (
        T.empty((4, 8), "float16"),
        T.empty(4, 8, dtype="float16"),
        T.empty(4, 8, T.float16),
        T.empty([4, 8], T.half),
    ):
        assert (made.shape, made.dtype) == ((4, 8), "float16")


def test_const_outside_an_eager_kernel_is_refused(refused):
    with refused("TL004", "eager"):
        T.const("M")
