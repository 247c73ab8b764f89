"""64-bit index arithmetic where an offset may pass 2^31 elements, and only there."""

from __future__ import annotations

import pytest
import tvm
import tvm_ffi
from lowering import thread_programs as tp
from tvm import tirx as tir

from tilelang_nb.lowering.index_width import wide_dims, widen_indices


def widths(function):
    """Index types of every store, by buffer."""
    found = {}
    tvm_ffi.structural_walk(
        function.body,
        (tir.BufferStore, lambda node: found.update({node.buffer.name: [str(i.ty.dtype) for i in node.indices]})),
    )
    return found


@pytest.mark.parametrize(
    ("shape", "wide"),
    [
        ((1 << 16, 1 << 14), set()),
        ((1 << 16, 1 << 15), {0}),
        ((1 << 20, 1 << 13), {0}),
        ((4, 1 << 20, 1 << 13), {0, 1}),
        ((1 << 31,), {0}),
        (((1 << 31) - 1,), set()),
        ((2, 1 << 31), {0, 1}),
    ],
)
def test_dimensions_whose_steps_reach_far_are_wide(shape, wide):
    assert wide_dims(tp.buffer("A", shape, "float32")) == wide


def test_run_time_extents_may_be_anything():
    n, m = tir.Var("n", "int32"), tir.Var("m", "int32")
    assert wide_dims(tp.buffer("A", (n,), "float32")) == set()
    assert wide_dims(tp.buffer("A", (n, 64), "float32")) == {0}
    assert wide_dims(tp.buffer("A", (n, m, 8), "float32")) == {0, 1}
    strided = tir.decl_buffer((8, 8), "float32", "S", strides=[n, 1], layout=None)
    assert wide_dims(strided) == {0}


def test_indices_of_big_buffers_become_int64_and_others_stay():
    launch = tp.Launch(32)
    big, small = tp.buffer("big", (1 << 20, 1 << 13)), tp.buffer("small", (1 << 20, 32))
    value = tp.load(big, launch.tx * 8, launch.tx)
    function = launch.function([big, small], tp.store(big, value, launch.tx, 3), tp.store(small, value, launch.tx, 3))
    after = widen_indices(function, launch.context)
    assert widths(after) == {"big": ["int64", "int32"], "small": ["int32", "int32"]}
    loads = []
    tvm_ffi.structural_walk(after.body, (tvm.ir.TensorLoad, loads.append))
    assert all([str(i.ty.dtype) for i in one.indices] == ["int64", "int32"] for one in loads)


def test_an_index_of_a_dimension_of_2_to_the_31_is_computed_wide():
    launch = tp.Launch(32)
    line = tp.buffer("line", (1 << 33,))
    body = tp.store(line, tp.integer(1), launch.tx * 4096 * 4096 * 64 + 5)
    after = widen_indices(launch.function([line], body), launch.context)
    products = []
    tvm_ffi.structural_walk(after.body, (tir.Mul, products.append))
    assert products and all(str(one.ty.dtype) == "int64" for one in products)


def test_nothing_changes_where_nothing_is_big():
    launch = tp.Launch(32)
    small = tp.buffer("small", (64,))
    function = launch.function([small], tp.store(small, launch.tx, launch.tx))
    assert widen_indices(function, launch.context).same_as(function)
