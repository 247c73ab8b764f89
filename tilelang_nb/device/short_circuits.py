"""Choices between truth values are printed as `&&` and `||`, and those of absolute values as `max`.

They compute what the choices do, and TVM's analyzer takes time in proportion to a chain of them; that of nested choices
doubles with each.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir


def short_circuits(function: Any) -> Any:
    """The function with `a or b` in place of `true if a else b`, `a and b` in place of `b if a else false`, and
    `max(x, 0 - x)` in place of `x if x >= 0 else 0 - x`.
    """

    def circuit(call: Any) -> Any:
        if getattr(call.op, "name", "") != "prim.if_then_else" or str(call.ty.dtype) != "bool":
            return call
        condition, chosen, other = call.args
        if str(condition.ty.dtype) != "bool":
            return call
        if isinstance(chosen, tir.IntImm):
            return tir.Or(condition, other) if chosen.value else tir.And(tir.Not(condition), other)
        if isinstance(other, tir.IntImm):
            return tir.Or(tir.Not(condition), chosen) if other.value else tir.And(condition, chosen)
        return call

    return function.with_body(tvm_ffi.structural_map(function.body, [(tvm.ir.Call, circuit), (tir.Select, _absolute)]))


def _absolute(choice: Any) -> Any:
    condition, value, negated = choice.condition, choice.true_value, choice.false_value
    if not isinstance(condition, tir.GE) or not isinstance(negated, tir.Sub):
        return choice
    zeros = all(isinstance(zero, tir.IntImm) and zero.value == 0 for zero in (condition.b, negated.a))
    same = all(tvm_ffi.structural_equal(part, value) for part in (condition.a, negated.b))
    return tir.Max(value, negated) if zeros and same else choice
