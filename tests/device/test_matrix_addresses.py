"""Addresses of matrix operands mean the same place in their shorter form."""

from __future__ import annotations

from typing import Any

import pytest
from device.expressions import evaluate
from device.pipelined_products import passes
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import Load, substitute


def pointers(module: Any) -> list[Any]:
    """What every matrix instruction takes for its address, in the order of the text; loops have their turns."""
    found: list[Any] = []

    def visit(node: Any, values: dict[Any, Any]) -> None:
        if isinstance(node, tir.SeqStmt):
            for one in node.seq:
                visit(one, values)
        elif isinstance(node, tir.For):
            turns = range(int(node.extent)) if node.kind == tir.ForKind.UNROLLED else range(1)
            for turn in turns:
                visit(node.body, {**values, node.loop_var: tir.const(int(node.min) + turn, "int32")})
        elif isinstance(node, tir.Evaluate):
            if getattr(getattr(node.value, "op", None), "name", "") == "tirx.ptx.ldmatrix":
                (pointer,) = (
                    one
                    for one in node.value.args
                    if str(getattr(one.ty, "dtype", "")) == "uint32" and not isinstance(one, Load)
                )
                found.append(substitute(pointer, values))
        else:
            for name in ("body", "then_case"):
                if getattr(node, name, None) is not None:
                    visit(getattr(node, name), values)

    (function,) = module.functions.values()
    visit(function.body, {})
    return found


def address(expr: Any, size: int, thread: int, known: dict[str, int]) -> int:
    """Bytes from the begin of the buffer, for a thread.  known: of other variables, by name; 1 for the rest."""

    def other(node: Any, value: Any) -> int:
        if type(node).__name__ == "Var":
            return 1
        assert node.op.name == "tirx.cuda.cvta_generic_to_shared", node
        return value(node.args[0].args[0].indices[0]) * size

    return evaluate(expr, {**known, "tx": thread}, other)


@pytest.mark.parametrize(
    "given",
    [
        {"rows": 128, "columns": 128, "depth": 32},
        {"rows": 64, "columns": 256, "depth": 64, "threads": 256},
        {"rows": 64, "columns": 64, "depth": 128, "tb": True},
        {"rows": 64, "columns": 64, "depth": 16, "ta": True},
        {"rows": 128, "columns": 64, "depth": 64, "ta": True, "tb": True},
        {"rows": 64, "columns": 32, "depth": 128, "dtype": "int8", "total": "int32", "tb": True},
        {"rows": 64, "columns": 32, "depth": 32, "dtype": "bfloat16"},
    ],
)
def test_the_same_places(given):
    made = passes(arch="sm_80", **given)
    before, after = pointers(made["narrow-indices"]), pointers(made["matrix-addresses"])
    assert len(before) == len(after) > 0
    size = 1 if given.get("dtype") == "int8" else 2
    for old, new in zip(before, after):
        for thread in (0, 1, 2, 5, 8, 19, 31, 38, 77, 127):
            for slot in (0, 1, 2):
                known = {"stage": slot, "next": slot, "slot": slot}
                assert address(new, size, thread, known) == address(old, size, thread, known)
    assert any("BitwiseXor" in type(one).__name__ or isinstance(one, tir.Add) for one in after)
