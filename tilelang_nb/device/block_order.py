"""`T.use_swizzle`: blocks are dealt out in panels, so that those that run together share rows and columns of tiles.

Devices start blocks in the order of blockIdx.x, then blockIdx.y.  In panels of some rows, walked column by column and
back again in the next one, the blocks that run at one time touch fewer different tiles, and the second-level cache
serves more of them.  Which block does what changes; what all blocks do together does not.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.lowering.rewrite import dtype_of, statements

AXES = ("blockIdx.x", "blockIdx.y")


def in_panels(function: Any, panel: int, order: str) -> Any:
    """The thread program with the numbers of its blocks along x and y in this order; unchanged for grids of one line.

    panel: rows of a panel; columns where `order` is "column".
    """
    axes: list[Any] = []
    inner = function.body
    while isinstance(inner, tir.AttrStmt) and inner.attr_key == "thread_extent":
        axes.append(inner)
        inner = inner.body
    found = {str(axis.node.thread_tag): axis for axis in axes}
    if panel < 1 or any(tag not in found for tag in AXES):
        return function
    x, y = (found[tag] for tag in AXES)
    if dtype_of(x.node.var) != "int32" or dtype_of(y.node.var) != "int32":
        return function
    raw = {axis: tir.Var(f"{axis.node.var.name}_started", "int32") for axis in (x, y)}
    linear = raw[y] * x.value + raw[x]
    along, across = (y, x) if order == "row" else (x, y)
    binds, (column, row) = _walk(linear, across.value, along.value, panel)
    binds += [tir.Bind(across.node.var, column, x.span), tir.Bind(along.node.var, row, x.span)]
    body: Any = tir.SeqStmt([*binds, *statements(inner)])
    for axis in reversed(axes):
        node = axis.node
        if axis in raw:
            node = tir.IterVar(Range(0, axis.value), raw[axis], tir.IterVar.ThreadIndex, str(axis.node.thread_tag))
        body = tir.AttrStmt(node, axis.attr_key, axis.value, body, axis.span)
    return function.with_body(body)


def _walk(linear: Any, across: Any, along: Any, panel: int) -> tuple[list[Any], tuple[Any, Any]]:
    """Column and row of block `linear` of across * along blocks, and the names that they use."""
    binds: list[Any] = []

    def named(name: str, value: Any) -> Any:
        variable = tir.Var(name, "int32")
        binds.append(tir.Bind(variable, value))
        return variable

    number = named("panel", tir.floordiv(linear, across * panel))
    inside = named("in_panel", linear - number * (across * panel))
    height = named("panel_height", tir.min(tir.const(panel, "int32"), along - number * panel))
    forward = tir.floordiv(inside, height)
    back = across - 1 - forward
    column = tir.Select(tir.EQ(tir.floormod(number, 2), 0), forward, back)
    return binds, (column, number * panel + tir.floormod(inside, height))
