"""Descriptors of matrices name the same places in their shorter form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from device.expressions import evaluate
from device.pipelined_products import passes
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import variables


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
    "three boxes": {"rows": 128, "columns": 192, "depth": 64},
    "three boxes of 64 bytes": {"rows": 128, "columns": 96, "depth": 32},
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_places(name: str) -> None:
    case = CASES[name]
    threads = case.get("threads", 256)
    stages = passes(arch="sm_90a", **{**case, "threads": threads})
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
            values["tx"] = int(rng.integers(0, threads))
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


@pytest.mark.parametrize("columns", [96, 192])
def test_steps_over_rows_of_three_boxes_are_no_divisions(columns: int) -> None:
    stages = passes(arch="sm_90a", rows=128, columns=columns, depth=64, threads=256)
    added = [units for _, _, units, _ in descriptors(stages["matrix-addresses"], "tl_wgmma_descriptor_at")]
    found: list[Any] = []
    for units in added:
        tvm_ffi.structural_walk(units, ((tir.FloorDiv, tir.FloorMod), lambda node: found.append(int(node.b))))
    assert added and all(divisor & (divisor - 1) == 0 for divisor in found), found


def test_places_that_are_no_steps_keep_their_divisions() -> None:
    """Four boxes along the depth: after four steps of 32 bytes comes the next box."""
    stages = passes(arch="sm_90a", rows=128, columns=128, depth=256, threads=256, tb=True)
    added = [units for _, _, units, _ in descriptors(stages["matrix-addresses"], "tl_wgmma_descriptor_at")]
    assert all("// 4" in str(units) or ">> 2" in str(units) for units in added), added
