"""Index expressions over laid-out variables, digit by digit.

The variables of a parallel loop are spread over threads and registers like the dimensions of a tile (`Fragment`).
An index such as `i * 8 + j // 4 + 64` is then again a sum of digits of the thread and the register index, each at
some weight, plus a part that is the same for all threads.  `decompose` finds that sum where no digit carries into
another; it answers None for everything else, for instance an index read from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .fragment import Digit, Fragment, arrange

OUTERMOST = 1 << 40  # register order of digits that no loop variable moves


@dataclass(frozen=True)
class Part:
    """`digit` times `weight`; the digit says where in the thread or register index of the loop the value is found."""

    weight: int
    digit: Digit

    @property
    def end(self) -> int:
        return self.weight * self.digit.extent


@dataclass(frozen=True)
class Sum:
    """Parts, smallest weight first, no two overlapping; and `rest`, an int or TIR expression without loop variables."""

    parts: tuple[Part, ...]
    rest: Any = 0

    @property
    def reach(self) -> int:
        """The parts alone stay below this."""
        return self.parts[-1].end if self.parts else 1

    def threads(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.digit.on_thread)


def variable(digits: Sequence[Digit]) -> Sum:
    """A loop variable with these digits (most significant first)."""
    parts, weight = [], 1
    for digit in reversed(digits):
        parts.append(Part(weight, digit))
        weight *= digit.extent
    return Sum(tuple(parts))


def decompose(expr: Any, env: Mapping[Any, Sum], granule: Callable[[Any], int]) -> Sum | None:
    """The digits of an index expression.

    env: the sums of the loop variables; every other variable is the same for all threads.
    granule: a number that provably divides an expression (0 for the constant 0).
    """
    if isinstance(expr, int):
        return Sum((), expr)
    if isinstance(expr, tir.IntImm):
        return Sum((), int(expr.value))
    if isinstance(expr, tvm.ir.Var):
        return env.get(expr, Sum((), expr))
    kind = type(expr).__name__
    if kind == "Cast":
        return decompose(expr.value, env, granule)
    if kind in ("Add", "Sub", "Mul", "FloorDiv", "FloorMod"):
        left = decompose(expr.a, env, granule)
        right = decompose(expr.b, env, granule)
        if left is not None and right is not None:
            return _COMBINE[kind](left, right, granule)
        return None
    used: list[Any] = []
    tvm_ffi.structural_walk(expr, (tvm.ir.Var, used.append))
    return None if any(var in env for var in used) or _reads_memory(expr) else Sum((), expr)


def _reads_memory(expr: Any) -> bool:
    return tvm_ffi.structural_walk(expr, ((tvm.ir.TensorLoad, tvm.ir.Call), tvm_ffi.VisitInterrupt)) is not None


def _rest(op: str, left: Any, right: Any) -> Any:
    if op == "Add":
        return right if _zero(left) else left if _zero(right) else left + right
    return left if _zero(right) else left - right


def _zero(value: Any) -> bool:
    return isinstance(value, int) and value == 0


def _add(left: Sum, right: Sum, granule: Callable[[Any], int]) -> Sum | None:
    parts = sorted((*left.parts, *right.parts), key=lambda part: part.weight)
    if any(below.end > above.weight for below, above in pairwise(parts)):
        return None
    return Sum(tuple(parts), _rest("Add", left.rest, right.rest))


def _subtract(left: Sum, right: Sum, granule: Callable[[Any], int]) -> Sum | None:
    return None if right.parts else Sum(left.parts, _rest("Sub", left.rest, right.rest))


def _multiply(left: Sum, right: Sum, granule: Callable[[Any], int]) -> Sum | None:
    if not left.parts and not right.parts:
        return Sum((), left.rest * right.rest)
    if not right.parts and isinstance(right.rest, int):
        left, right = right, left
    if left.parts or not isinstance(left.rest, int) or left.rest <= 0:
        return None
    factor = left.rest
    parts = tuple(Part(part.weight * factor, part.digit) for part in right.parts)
    return Sum(parts, 0 if _zero(right.rest) else right.rest * factor)


def _divide(left: Sum, right: Sum, granule: Callable[[Any], int]) -> Sum | None:
    if not left.parts and not right.parts:
        return Sum((), left.rest // right.rest)
    cut = _cut(left, right, granule)
    if cut is None:
        return None
    _, high, divisor = cut
    return Sum(
        tuple(Part(part.weight // divisor, part.digit) for part in high),
        0 if _zero(left.rest) else left.rest // divisor,
    )


def _remainder(left: Sum, right: Sum, granule: Callable[[Any], int]) -> Sum | None:
    if not left.parts and not right.parts:
        return Sum((), left.rest % right.rest)
    cut = _cut(left, right, granule)
    return None if cut is None else Sum(cut[0])


def _cut(value: Sum, by: Sum, granule: Callable[[Any], int]) -> tuple[tuple[Part, ...], tuple[Part, ...], int] | None:
    """The parts below and above a constant divisor; None where a digit or the rest straddles it."""
    if by.parts or not isinstance(by.rest, int) or by.rest <= 0 or granule(value.rest) % by.rest:
        return None
    divisor = by.rest
    low, high = [], []
    for part in value.parts:
        if part.end <= divisor:
            low.append(part)
        elif part.weight % divisor == 0:
            high.append(part)
        elif divisor % part.weight == 0 and part.digit.extent % (divisor // part.weight) == 0:
            below, above = split(part, divisor)
            low.append(below)
            high.append(above)
        else:
            return None
    return tuple(low), tuple(high), divisor


_COMBINE = {"Add": _add, "Sub": _subtract, "Mul": _multiply, "FloorDiv": _divide, "FloorMod": _remainder}


def split(part: Part, weight: int) -> tuple[Part, Part]:
    """The part below and above a weight that lies inside it."""
    factor, digit = weight // part.weight, part.digit
    return (
        Part(part.weight, Digit(factor, digit.kind, digit.stride)),
        Part(weight, Digit(digit.extent // factor, digit.kind, digit.stride * factor)),
    )


# ---- layouts and accesses ----


def held(layout: Fragment, index: Sequence[Sum | None], granule: Callable[[Any], int]) -> bool:
    """Does every thread that executes an iteration hold the element of this index?

    Each thread digit of the layout has to be the same digit of the executing thread.
    """
    for dim, value in enumerate(index):
        for weight, extent, stride in layout.thread_digits(dim):
            if value is None:
                return False
            inside = any(
                part.weight <= weight
                and weight * extent <= part.end
                and weight % part.weight == 0
                and stride == part.digit.stride * (weight // part.weight)
                and part.digit.extent % (weight // part.weight) == 0
                for part in _joined(value.threads())
            )
            if not inside or granule(value.rest) % (weight * extent):
                return False
    return True


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Neighbouring parts that count on in both indices, as one."""
    result: list[Part] = []
    for part in parts:
        last = result[-1] if result else None
        if (
            last is not None
            and part.weight == last.end
            and part.digit.kind == last.digit.kind
            and part.digit.stride == last.digit.stride * last.digit.extent
        ):
            result[-1] = Part(
                last.weight, Digit(last.digit.extent * part.digit.extent, last.digit.kind, last.digit.stride)
            )
        else:
            result.append(part)
    return result


def layout_for(
    shape: Sequence[int], index: Sequence[Sum | None], threads: int, granule: Callable[[Any], int]
) -> Fragment | None:
    """The layout in which exactly the executing threads hold the elements of this index; None where there is none.

    Index values that no loop variable reaches are further registers.
    """
    digits = []
    for extent, value in zip(shape, index):
        if value is None:
            value = Sum(())
        elif value.parts and granule(value.rest) % value.reach:
            return None
        row: list[Digit] = []
        expected = 1
        for part in value.parts:
            if part.weight % expected:
                return None
            row.append(Digit(part.weight // expected, "register", OUTERMOST))
            row.append(part.digit)
            expected = part.end
        row.append(Digit(-(-extent // expected), "register", OUTERMOST))
        digits.append(tuple(reversed(row)))
    try:
        return arrange(shape, digits, threads)
    except ValueError:  # one thread digit in two dimensions
        return None


def thread_slots(parts: Sequence[Part]) -> frozenset[int]:
    """The thread digits of a sum as steps of prime size in the thread index, comparable whatever the grouping."""
    slots = set()
    for part in parts:
        if part.digit.on_thread:
            slots |= slots_of(part.digit)
    return frozenset(slots)


def slots_of(digit: Digit) -> set[int]:
    """Strides of the smallest digits that a digit consists of."""
    result, stride, left = set(), digit.stride, digit.extent
    factor = 2
    while left > 1:
        while left % factor == 0:
            result.add(stride)
            stride, left = stride * factor, left // factor
        factor += 1
        if factor * factor > left > 1:
            result.add(stride)
            break
    return result
