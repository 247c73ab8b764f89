"""Tile operations as statements, and operands as they are written into them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation, read, region, statement_name

from ..index_arithmetic import manageable
from ..rewrite import each_statement, substitute, variables


def evaluate(name: str, span: Any, *operands: Any) -> Any:
    """The statement that does an operation."""
    return tir.Evaluate(operation(name, *operands), span)


def is_product(node: Any) -> bool:
    """Is a statement a matrix product?"""
    return statement_name(node) == "gemm"


def bindings(body: Any) -> dict[Any, Any]:
    """The values of the variables that are bound in a statement, over those that are not."""
    found: dict[Any, Any] = {}
    for node in each_statement(body):
        if isinstance(node, tir.Bind) and manageable(node.value):
            value = substitute(node.value, {var: found[var] for var in variables(node.value) & found.keys()})
            if manageable(value):
                found[node.var] = value
    return found


def at_known_places(call: TileCall, values: dict[Any, Any]) -> TileCall:
    """An operation whose regions begin at what bound variables stand for."""
    operands = {
        name: replace(operand, begin=tuple(substitute(index, values) for index in operand.begin))
        if values and isinstance(operand, RegionOperand)
        else operand
        for name, operand in call.operands.items()
    }
    return replace(call, operands=operands)


def is_copy(node: Any, call: TileCall) -> bool:
    """Is a statement the copy, of this name and between these buffers, that was read as `call`?"""
    if statement_name(node) != call.name:
        return False
    mine = read(node.value)
    return all(mine[name].buffer.same_as(call[name].buffer) for name in ("source", "target"))


def encoded(operand: Any) -> Any:
    """An operand that was read back, as it is written again."""
    return region(operand.buffer, operand.begin, operand.extent) if isinstance(operand, RegionOperand) else operand


def element(buffer: Any, index: Any) -> Any:
    """The region of one element of a buffer of one dimension, such as a barrier."""
    return region(buffer, [index], [tir.const(1, "int32")])


def whole_of(buffer: Any) -> Any:
    """The region that is all of a buffer."""
    shape = [tir.const(int(extent), "int32") for extent in buffer.ty.shape]
    return region(buffer, [tir.const(0, "int32")] * len(shape), shape)
