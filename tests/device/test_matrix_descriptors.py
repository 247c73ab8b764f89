"""Descriptors of matrices name the same places in their shorter form."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from device.expressions import evaluate
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.lowering.rewrite import variables

TEXT = """
@T.prim_func
def k(A: T.Tensor(shape_a, dtype), B: T.Tensor(shape_b, dtype), C: T.Tensor((rows, columns), "float32")):
    with T.Kernel(1, threads=threads) as bx:
        A_s = T.alloc_shared(tile_a, dtype)
        B_s = T.alloc_shared(tile_b, dtype)
        c = T.alloc_fragment((rows, columns), "float32")
        T.clear(c)
        for i in T.Pipelined(4, num_stages=3):
            if ta:
                T.copy(A[i * depth, 0], A_s)
            else:
                T.copy(A[0, i * depth], A_s)
            if tb:
                T.copy(B[0, i * depth], B_s)
            else:
                T.copy(B[i * depth, 0], B_s)
            T.gemm(A_s, B_s, c, transpose_A=ta, transpose_B=tb)
        T.copy(c, C)
"""


def passes(
    rows: int, columns: int, depth: int, dtype: str = "float16", threads: int = 256, ta: bool = False, tb: bool = False
) -> dict[str, Any]:
    length = depth * 4
    shape_a, tile_a = ((length, rows), (depth, rows)) if ta else ((rows, length), (rows, depth))
    shape_b, tile_b = ((columns, length), (columns, depth)) if tb else ((length, columns), (depth, columns))
    cell = tilelang_nb.compile_cell(textwrap.dedent(TEXT), dict(locals()), target="cuda", arch="sm_90a")
    assert cell.ok, cell.to_text()
    device = cell.namespace["k"].build().device
    assert not device.diagnostics
    return {one.name: one.module for one in device.passes}


def descriptors(module: Any, name: str) -> list[Any]:
    """(element index of the place, what is added in 16 bytes, what follows) of every descriptor, in their order."""
    found: list[Any] = []

    def visit(call: Any) -> None:
        if getattr(call.op, "name", "") == "tirx.call_pure_extern" and call.args[0].value == name:
            load = call.args[1].args[0]
            rest = [int(one) for one in call.args[-3:]]
            found.append((load.source.name, load.indices[0], call.args[2], rest))

    for function in module.functions.values():
        tvm_ffi.structural_walk(function.body, (tvm.ir.Call, visit))
    return found


CASES: dict[str, dict[str, Any]] = {
    "two warp groups over rows": {"rows": 128, "columns": 128, "depth": 64},
    "one warp group": {"rows": 64, "columns": 64, "depth": 128, "threads": 128},
    "three warp groups": {"rows": 192, "columns": 64, "depth": 64, "threads": 384},
    "transposed operands": {"rows": 128, "columns": 256, "depth": 64, "ta": True, "tb": True},
    "elements of one byte": {"rows": 128, "columns": 128, "depth": 128, "dtype": "float8_e4m3fn", "tb": True},
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_places(name: str) -> None:
    case = CASES[name]
    stages = passes(**case)
    before = descriptors(stages["narrow-indices"], "tl_wgmma_descriptor")
    after = descriptors(stages["matrix-addresses"], "tl_wgmma_descriptor_at")
    assert len(before) == len(after) > 0 and not descriptors(stages["matrix-addresses"], "tl_wgmma_descriptor")
    size = 1 if case.get("dtype", "").startswith("float8") else 2
    rng = np.random.default_rng(0)
    for (tile, place, _, rest), (other, start, units, same) in zip(before, after):
        assert (tile, rest) == (other, same) and int(start) == 0
        assert "tx" not in {var.name for var in variables(units)}
        for _ in range(20):
            values = {var.name: int(rng.integers(0, 2)) for var in variables(place) | variables(units)}
            values["tx"] = int(rng.integers(0, case.get("threads", 256)))
            values["warp_group"] = values["tx"] // 128
            assert evaluate(place, values) * size == evaluate(units, values) * 16


def test_a_tile_that_begins_between_units_keeps_its_descriptors() -> None:
    tile = tir.decl_buffer([4096], "float16", "tile", scope="shared")
    at = tir.Var("at", "int32")
    from tilelang_nb.device.matrix_descriptors import matrix_descriptors

    def function(index: Any) -> Any:
        words = [tir.const(value, "int32") for value in (1, 64, 1)]
        address = tir.address_of(tir.BufferLoad(tile, [index]))
        call = tir.call_pure_extern("uint64", "tl_wgmma_descriptor", address, *words)
        axis = tir.IterVar(tvm.ir.Range(0, 128), tir.Var("tx", "int32"), tir.IterVar.ThreadIndex, "threadIdx.x")
        body = tir.AttrStmt(axis, "thread_extent", tir.const(128, "int32"), tir.Evaluate(call))
        return tir.PrimFunc([at], body)

    odd, even = function(at * 4), function(at * 8)
    assert matrix_descriptors(odd).same_as(odd) and not matrix_descriptors(even).same_as(even)
