"""How large expressions are: what TVM's analyzer may be asked about, as it takes long over large ones and choices in
choices, and what may be walked at all.
"""

from __future__ import annotations

from operator import and_, lshift, or_, rshift, xor
from typing import Any

import tvm
from tvm import tirx as tir

_X = tvm.ir.Var("x", "int32")
LEAVES = frozenset([tir.IntImm, tir.FloatImm, tvm.ir.StringImm, tvm.ir.Var])
BINARY = frozenset(
    [tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max]
    + [tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE, tir.And, tir.Or]
    + [
        type(operation(tvm.ir.Var("x", "int32"), tvm.ir.Var("x", "int32")))
        for operation in (lshift, rshift, and_, or_, xor)
    ]
)
DIVISIONS = frozenset([tir.FloorDiv, tir.FloorMod])
SUBTRACTING = frozenset([tir.Sub, tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ, tir.NE])
MANAGEABLE = 400
CHOICE = 8  # nodes that a choice counts as, each time
WALKABLE = 4000


def manageable(expr: Any) -> bool:
    """Whether an expression is small enough to stand in place of a variable, and to be simplified.

    Expressions share their parts, so that as a tree one may be without bounds (`x = x + x`, sixty times); the time that
    TVM's analyzer takes over choices (`Select`, also inside `abs`) doubles with each, grows tenfold with each in the
    condition of another, and doubles with each division of a division and cast of a cast.
    Differences and comparisons of unsigned numbers are left alone: they wrap, and of `x > x` the analyzer makes 0 less
    a constant, where it fails.
    """
    return _within(expr, MANAGEABLE, 1) >= 0


def _within(expr: Any, left: int, times: int) -> int:
    """What is left of so many nodes; below 0 where the expression has more.  times: visits of the analyzer."""
    left -= 1
    kind = type(expr)
    if left < 0 or kind in LEAVES:
        return left
    if kind is tir.Cast and str(expr.ty.dtype).startswith(("int", "uint")):
        return _within(expr.value, left - times, 2 * times)
    if kind in DIVISIONS:
        return _within(expr.b, _within(expr.a, left - times, 2 * times), times)
    if kind in SUBTRACTING and str(expr.a.ty.dtype).startswith("uint"):
        return -1
    if kind in BINARY:
        return _within(expr.b, _within(expr.a, left, times), times)
    if kind is tir.Select:
        return _choice((expr.condition, expr.true_value, expr.false_value), left - CHOICE * times, times)
    if kind is tvm.ir.Call and len(expr.args) == 3 and getattr(expr.op, "name", "").endswith("if_then_else"):
        return _choice(expr.args, left - CHOICE * times if times > 1 else left, times)
    for part in _parts(expr):
        left = _within(part, left, times)
    return left


def _choice(parts: Any, left: int, times: int) -> int:
    left = _within(parts[0], left, CHOICE * times)
    return _within(parts[2], _within(parts[1], left, times), times)


def walkable(expr: Any) -> bool:
    """Whether an expression is small enough to be walked as a tree, though nobody simplifies it.

    Expressions share their parts: as a tree one may be without bounds (`x = x + x`, sixty times).
    """
    waiting, left = [expr], WALKABLE
    while waiting and left:
        one = waiting.pop()
        left -= 1
        if type(one) not in LEAVES:
            waiting += _parts(one)
    return not waiting


def _parts(expr: Any) -> list[Any]:
    kind = type(expr)
    if kind is tvm.ir.TensorLoad:
        return list(expr.indices)
    if kind is tvm.ir.Call:
        return list(expr.args)
    if kind is tir.Select:
        return [expr.condition, expr.true_value, expr.false_value]
    return [getattr(expr, name) for name in ("a", "b", "value") if hasattr(expr, name)]
