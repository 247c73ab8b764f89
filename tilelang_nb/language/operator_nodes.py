"""The TIR of an operator on two operands of one dtype: Python's meaning of floor division, remainders and powers."""

from __future__ import annotations

import operator
from typing import Any

from tvm import tirx as tir

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .promotion import cast, constant, in_ir, is_float, is_integer

COMPARE = {"<": tir.LT, "<=": tir.LE, ">": tir.GT, ">=": tir.GE, "==": tir.EQ, "!=": tir.NE}
_NODES = {"+": tir.Add, "-": tir.Sub, "*": tir.Mul}
# Of floats a call: with a rounded quotient `1.0 // 0.1` would be 10, where Python has 9.
_FLOORED = {"//": (tir.FloorDiv, "tl_floor_divide"), "%": (tir.FloorMod, "tl_floor_modulo")}
_BITS = {"<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor}
SMALL_POWER = 8  # constant integer powers up to here multiply out


def node(op: str, x: Any, y: Any, dtype: str, right: Any) -> Any:
    """`x op y` of two expressions of `dtype`; right: the right operand as written, for powers of constants.

    Errors: TL136 (`/` of integers), TL205 (bits of floats, powers of integers).
    """
    if op in _NODES:
        return _NODES[op](x, y)
    if op == "/":
        if not is_float(dtype):
            raise Refusal(say.IntegerTrueDivision(left="x", right="y"))
        return tir.Div(x, y)
    if op in _FLOORED:
        floored, call = _FLOORED[op]
        return floored(x, y) if is_integer(dtype) else tir.call_extern(in_ir(dtype), call, x, y)
    if op in _BITS:
        if is_float(dtype):
            raise Refusal(say.DtypeMismatch(problem=f"`{op}` on {dtype} values", remedy="bit operations need integers"))
        if dtype == "bool":
            return {"&": tir.And, "|": tir.Or, "^": tir.NE}[op](x, y)
        return _BITS[op](x, y)
    return _power(x, y, dtype, right)


def _power(x: Any, y: Any, dtype: str, exponent: Any) -> Any:
    if isinstance(exponent, int) and 0 <= exponent <= SMALL_POWER:
        product = constant(1, dtype)
        for turn in range(exponent):
            product = tir.Mul(product, x) if turn else x
        return product
    if is_integer(dtype):
        remedy = "cast the base to float32 and use `T.pow`, or multiply in a loop"
        raise Refusal(say.IntegerPower(problem="an integer power whose exponent is no small constant", remedy=remedy))
    if dtype in ("float16", "float32", "float64"):
        return tir.power(x, y)
    wide = tir.power(cast(x, dtype, "float32"), cast(y, dtype, "float32"))  # TVM has powers of IEEE types only
    return cast(wide, "float32", dtype)
