"""How often a loop turns: counted in a type that holds every intermediate, whatever the bounds are at the launch.

`stop - start` of two int32 values needs 33 bits, and rounding up to whole steps some more.  Where the ranges of the
bounds prove that int32 holds all of it, the plain formula is used; otherwise the count is made in int64, and where
it may pass int32 the loop counts in int64.  The loop variable keeps the type of the bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tvm import tirx as tir
from tvm.ir import Range
from tvm.sym import Analyzer

from ..language.promotion import as_type, cast, constant
from ..language.values import Value, simplified

LIMITS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class Plan(NamedTuple):
    """A loop variable: start, TIR extent (never negative), step, dtype of the variable, dtype that counts the turns."""

    start: Any
    extent: Any
    step: Any
    dtype: str
    counter: str


class Ranges:
    """What is known of the variables of a kernel: sizes of tensors, indices of launches and loops."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()

    def bind(self, var: Any, start: Any, extent: Any) -> None:
        """A variable runs from `start` through `extent` values."""
        self._analyzer.bind(var, Range.from_min_extent(start, extent))

    def size(self, extent: Any) -> None:
        """A size of a tensor, which is never negative."""
        if isinstance(extent, tir.Var):
            dtype = str(extent.ty.dtype)
            self.bind(extent, constant(0, dtype), constant(LIMITS[dtype][1], dtype))

    def of(self, value: Any, dtype: str) -> tuple[int, int]:
        """The least and the greatest that an int or `Value` of this type may be."""
        if isinstance(value, int):
            return value, value
        low, high = LIMITS[dtype]
        found = self._analyzer.const_int_bound(value.use())
        least, most = int(found.min_value), int(found.max_value)
        unbounded = least <= -(2**63 - 1)  # how TVM writes it
        return (low if unbounded else min(max(low, least), high)), max(low, min(high, most))


def known_step(ranges: Ranges, start: Any, stop: Any, step: int, dtype: str) -> Plan:
    """The plan of a loop whose step is known while building, and some other bound is not."""
    if step == 1:
        count = stop if not isinstance(start, Value) and start == 0 else stop - start
    else:
        count = (stop - start + (step - 1 if step > 0 else step + 1)) // step
    count = simplified(count)
    if not isinstance(count, Value):
        return Plan(start, constant(max(0, count), dtype), step, dtype, dtype)
    first, last = ranges.of(start, dtype), ranges.of(stop, dtype)
    rounding = 0 if step == 1 else step - 1 if step > 0 else step + 1
    span = last[0] - first[1] + rounding, last[1] - first[0] + rounding
    most = span[1] // step if step > 0 else span[0] // step
    low, high = LIMITS[dtype]
    if low <= span[0] and span[1] <= high and most <= high:
        return Plan(start, tir.Max(as_type(count, dtype), constant(0, dtype)), step, dtype, dtype)
    if dtype == "int64":
        return Plan(start, _of_int64(start, stop, step), step, dtype, dtype)
    distance = _distance(start, stop) if step > 0 else _distance(stop, start)
    return _counted(start, step, dtype, _turns(distance, abs(step)), most)


def unknown_step(ranges: Ranges, start: Any, stop: Any, step: Value, dtype: str) -> Plan:
    """The plan of a loop whose step, and so its direction, is known only at the launch; step 0 gives no turns."""
    if dtype == "int64":
        return Plan(start, _of_int64(start, stop, step), step, dtype, dtype)
    first, last, least = ranges.of(start, dtype), ranges.of(stop, dtype), ranges.of(step, dtype)
    most = max(last[1] - first[0], 0 if least[0] > 0 else first[1] - last[0])
    up = _turns(_distance(start, stop), _wide(step))
    if least[0] > 0:
        return _counted(start, step, dtype, up, most)
    zero = constant(0, "int64")
    down = _turns(_distance(stop, start), tir.Sub(zero, _wide(step)))
    falling = tir.if_then_else((step < 0).use(), down, zero)
    return _counted(start, step, dtype, tir.if_then_else((step > 0).use(), up, falling), most)


def _wide(value: Any) -> Any:
    return as_type(value, "int64")


def _distance(low: Any, high: Any) -> Any:
    return _wide(high) if isinstance(low, int) and low == 0 else tir.Sub(_wide(high), _wide(low))


def _turns(distance: Any, step: Any) -> Any:
    """Whole steps in an int64 distance, rounded up.  step: an int, or an int64 expression."""
    if isinstance(step, int):
        if step > 1:
            distance = tir.FloorDiv(tir.Add(distance, constant(step - 1, "int64")), constant(step, "int64"))
    else:
        distance = tir.FloorDiv(tir.Add(distance, tir.Sub(step, constant(1, "int64"))), step)
    return tir.Max(distance, constant(0, "int64"))


def _counted(start: Any, step: Any, dtype: str, turns: Any, most: int) -> Plan:
    counter = dtype if most <= LIMITS[dtype][1] else "int64"
    return Plan(start, cast(turns, "int64", counter) if counter != "int64" else turns, step, dtype, counter)


def _of_int64(start: Any, stop: Any, step: Any) -> Any:
    """Turns of a loop over int64: the distance as uint64, which holds it.  A loop of 2**63 turns ends no earlier."""

    def turns(low: Any, high: Any, magnitude: Any) -> Any:
        distance = tir.Sub(cast(high, "int64", "uint64"), cast(low, "int64", "uint64"))
        steps = tir.Div(tir.Sub(distance, constant(1, "uint64")), magnitude)
        steps = tir.Min(steps, constant(2**63 - 2, "uint64"))
        counted = tir.Add(cast(steps, "uint64", "int64"), constant(1, "int64"))
        return tir.if_then_else(tir.LT(low, high), counted, zero)

    zero, first, last = constant(0, "int64"), _wide(start), _wide(stop)
    if not isinstance(step, Value):
        magnitude = constant(abs(step), "uint64")
        return turns(first, last, magnitude) if step > 0 else turns(last, first, magnitude)
    up = cast(step.use(), "int64", "uint64")
    down = cast(tir.Sub(zero, step.use()), "int64", "uint64")
    falling = tir.if_then_else((step < 0).use(), turns(last, first, down), zero)
    return tir.if_then_else((step > 0).use(), turns(first, last, up), falling)


def saturated(plan: Plan) -> Plan:
    """A plan that counts in the type of its variable, for loops whose turns are spread over threads or lanes: none of
    them has 2**31 turns.
    """
    if plan.counter == plan.dtype:
        return plan
    extent = tir.Min(plan.extent, constant(LIMITS[plan.dtype][1], plan.counter))
    return plan._replace(extent=cast(extent, plan.counter, plan.dtype), counter=plan.dtype)


__all__ = ["Plan", "Ranges", "known_step", "saturated", "unknown_step"]
