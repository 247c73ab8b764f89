"""Choosing between values: `T.if_then_else`, `T.Select`, `T.min`, `T.max`, `T.clamp`.

The functions that carry a Python built-in's name in `T` end in `_of` here.
"""

from __future__ import annotations

import builtins
from typing import Any

from tvm import tirx as tir

from .calling import bad_argument, checked_call
from .operands import scalar
from .promotion import as_type, join_operands, promote, strong, weak
from .values import Value, derived, truth


def joined(left: Any, right: Any) -> tuple[Any, Any, str]:
    """Two numbers, at least one of them perhaps a device value, as TIR expressions of their common type."""
    if isinstance(left, Value) or isinstance(right, Value):
        return join_operands(left, right)
    kind = builtins.max(weak(left), weak(right), key=("bool", "int", "float").index)
    dtype = promote(strong(kind, left), strong(kind, right))
    return as_type(left, dtype), as_type(right, dtype), dtype


def _choose(called: str, node: Any, condition: Any, then: Any, other: Any) -> Any:
    if not isinstance(condition, (Value, bool, int, float)):
        condition = scalar(condition, called, "the condition")
    test = truth(condition)
    then, other = scalar(then, called, "a value"), scalar(other, called, "a value")
    if not isinstance(test, Value):
        chosen = then if test else other
        if not isinstance(then, Value) and not isinstance(other, Value):
            return chosen
        x, y, dtype = join_operands(then, other)
        return derived(x if test else y, dtype, chosen)
    x, y, dtype = joined(then, other)
    return derived(node(test.use(), x, y), dtype, test, then, other)


@checked_call
def if_then_else(cond: Any, t: Any, f: Any, span: Any = None) -> Any:
    """`t` where `cond` holds, else `f`; the side not chosen is not evaluated, so it may guard a load.

    cond: a condition; a number means `!= 0`.  t, f: numbers or device values; the result has their common dtype.
    Errors: TL004 (no number).  Source: TVM's `if_then_else`.
    """
    return _choose("T.if_then_else", tir.if_then_else, cond, t, f)


@checked_call
def Select(condition: Any, true_value: Any, false_value: Any, span: Any = None) -> Any:
    """`true_value` where `condition` holds, else `false_value`; both sides are evaluated.

    Use `T.if_then_else` where a side must not be evaluated.  Errors: TL004 (no number).  Source: TVM's `Select`.
    """
    return _choose("T.Select", tir.Select, condition, true_value, false_value)


def _named(name: str) -> Any:
    return lambda function: checked_call(function, name)


def _fold(called: str, node: Any, python: Any, items: tuple[Any, ...]) -> Any:
    if len(items) == 1 and isinstance(items[0], (list, tuple)):
        items = tuple(items[0])
    if not items:
        bad_argument(f"`{called}` needs at least one number", f"write `{called}(a, b)`")
    result = scalar(items[0], called, "an operand")
    for item in items[1:]:
        item = scalar(item, called, "an operand")
        if isinstance(result, Value) or isinstance(item, Value):
            x, y, dtype = join_operands(result, item)
            result = derived(node(x, y), dtype, result, item)
        else:
            result = python(result, item)
    return result


@_named("max")
def max_of(*values: Any) -> Any:
    """The largest of numbers and device values, in their common dtype; Python's `max` on compile-time numbers.

    Where one operand is NaN the device gives the other one, as CUDA's `fmaxf`.
    Errors: TL004 (no number).  Source: TVM's `max`.
    """
    return _fold("T.max", tir.max, builtins.max, values)


@_named("min")
def min_of(*values: Any) -> Any:
    """The smallest of numbers and device values, in their common dtype; Python's `min` on compile-time numbers.

    Where one operand is NaN the device gives the other one, as CUDA's `fminf`.
    Errors: TL004 (no number).  Source: TVM's `min`.
    """
    return _fold("T.min", tir.min, builtins.min, values)


@checked_call
def clamp(dst: Any, min_val: Any, max_val: Any) -> Any:
    """`dst` limited to `min_val`..`max_val`: `T.min(T.max(dst, min_val), max_val)`.

    Errors: TL004 (no number).  Source: upstream `tilelang/language/customize.py`.
    """
    for value in (dst, min_val, max_val):
        scalar(value, "T.clamp", "an operand")
    return min_of(max_of(dst, min_val), max_val)
