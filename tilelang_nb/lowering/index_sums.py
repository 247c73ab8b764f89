"""Index expressions as sums over digits of variables.

A *term* is a digit of a variable, written (variable, divisor, modulus): `variable // divisor % modulus`, modulus
None for none. A `Sum` is a constant plus coefficients of terms; most index expressions of lowered programs are one.

Variables are known here by number (`identity`). Numbers below zero stand for two more kinds of things that an index
may move with: an expression over values that all threads agree on and nothing changes, and a function of the thread
index that is no sum of digits, known by its values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm_ffi import VisitInterrupt

Term = tuple[int, int, Any]  # (variable, divisor, modulus or None)
Remainder = tuple[frozenset[tuple[Term, int]], int, int]  # (terms, constant, modulus) of `(terms + constant) % modulus`


def identity(variable: Any) -> int:
    """A number for a variable: its address.  Comparing variables of TVM makes an expression, which is slow."""
    return hash(variable)


@dataclass
class Sum:
    """constant + sum of coefficient * term."""

    constant: int = 0
    terms: dict[Term, int] = field(default_factory=dict)

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        if not other.terms:
            return Sum(self.constant + other.constant * factor, self.terms)
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            total = terms.get(term, 0) + coefficient * factor
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return Sum(self.constant + other.constant * factor, terms)

    def times(self, factor: int) -> Sum:
        return Sum(self.constant * factor, {t: c * factor for t, c in self.terms.items()} if factor else {})


class IndexReader:
    """What is known of the variables of one launch, and index expressions read with it.

    axes: extent of each thread index variable, x first.
    uniform: says whether all threads agree on a variable.
    """

    def __init__(self, axes: Mapping[Any, int], uniform: Any):
        self.uniform = uniform
        self.threads = math.prod(axes.values())
        self._ranges: dict[int, tuple[int | None, int | None]] = {}
        self._bindings: dict[int, Any] = {}
        self._values: dict[int, np.ndarray] = {}  # per thread, of everything that is a function of the thread index
        self._opaque: dict[int, frozenset[int]] = {}  # the variables of an expression known by its text
        self._turned: dict[int, Remainder] = {}  # such expressions that are remainders
        self._numbers: dict[Any, int] = {}
        self._parsed: dict[int, Sum | None] = {}
        below = 1
        for variable, extent in axes.items():
            self._ranges[identity(variable)] = (0, extent - 1)
            self._values[identity(variable)] = np.arange(self.threads) // below % extent
            below *= extent

    def enter(self, variable: Any, low: int | None, high: int | None) -> None:
        """A loop variable with its inclusive bounds, where known."""
        self._ranges[identity(variable)] = (low, high)

    def bind(self, variable: Any, value: Any) -> None:
        """A variable that stands for an expression."""
        self._bindings[identity(variable)] = value
        self._parsed.pop(identity(variable), None)

    def parse(self, expr: Any) -> Sum | None:
        """The sum that an index is; None where it is none, or where it reads memory."""
        kind = type(expr)
        if kind is tir.IntImm:
            return Sum(int(expr.value))
        if kind is tvm.ir.Var:
            return self._variable(expr)
        if kind is tir.Add or kind is tir.Sub:
            left, right = self.parse(expr.a), self.parse(expr.b)
            if left is None or right is None:
                return None
            return left.plus(right, 1 if kind is tir.Add else -1)
        if kind is tir.Mul:
            left, right = self.parse(expr.a), self.parse(expr.b)
            if left is not None and right is not None:
                if not right.terms:
                    return left.times(right.constant)
                if not left.terms:
                    return right.times(left.constant)
        elif kind is tir.FloorDiv or kind is tir.FloorMod:
            left, right = self.parse(expr.a), self.parse(expr.b)
            if left is not None and right is not None and not right.terms and right.constant > 0:
                split = self._divide if kind is tir.FloorDiv else self._remainder
                result = split(left, right.constant)
                if result is not None:
                    return result
                if kind is tir.FloorMod:
                    return self._remainder_of(expr, left, right.constant)
        elif kind is tir.Cast:
            return self.parse(expr.value)
        values = self._evaluate(expr)
        return self._expression(expr) if values is None else self._thread_map(values)

    def _remainder_of(self, expr: Any, value: Sum, modulus: int) -> Sum | None:
        """A remainder that is no sum of digits: known by its text, and by what it is the remainder of."""
        values = self._evaluate(expr)
        if values is not None:
            return self._thread_map(values)
        result = self._expression(expr)
        if result is not None:
            ((number, _, _),) = result.terms
            self._turned[number] = (frozenset(value.terms.items()), value.constant % modulus, modulus)
        return result

    def remainder(self, term: Term) -> Remainder | None:
        """What a term is the remainder of; None where it is none, or is not known to be one."""
        variable, divisor, modulus = term
        if variable in self._turned:
            return self._turned[variable]
        if divisor != 1 or modulus is None or variable in self._values:
            return None
        return frozenset({((variable, 1, None), 1)}), 0, modulus

    def _variable(self, variable: Any) -> Sum | None:
        number = identity(variable)
        if number not in self._bindings:
            return Sum(0, {(number, 1, None): 1})
        if number not in self._parsed:
            value = self.parse(self._bindings[number])
            if value is None and self.uniform(variable):
                value = Sum(0, {(number, 1, None): 1})
            self._parsed[number] = value
        return self._parsed[number]

    def _named(self, key: Any) -> int:
        return self._numbers.setdefault(key, -1 - len(self._numbers))

    def _thread_map(self, values: Any) -> Sum:
        """A function of the thread index."""
        values = np.broadcast_to(np.asarray(values, np.int64), (self.threads,))
        number = self._named(values.tobytes())
        self._values[number] = values
        self._ranges[number] = (int(values.min()), int(values.max()))
        return Sum(0, {(number, 1, None): 1})

    def _expression(self, expr: Any) -> Sum | None:
        """Something that nothing in the launch changes, known by its text; None for anything else."""
        if type(expr) is tvm.ir.Call and getattr(expr.op, "name", "") == "tirx.call_extern":
            return None
        variables: set[int] = set()

        def visit(variable: Any) -> Any:
            known = self._variable(variable)
            if known is None or any(term[0] in self._values for term in known.terms):
                return VisitInterrupt(variable)
            variables.add(identity(variable))
            return None

        stop = [(tvm.ir.TensorLoad, VisitInterrupt), (tvm.ir.Var, visit)]
        if isinstance(tvm_ffi.structural_walk(expr, stop, order="pre"), VisitInterrupt):
            return None
        number = self._named((str(expr), frozenset(variables)))
        self._opaque[number] = frozenset(variables)
        return Sum(0, {(number, 1, None): 1})

    def bounds(self, term: Term) -> tuple[int | None, int | None]:
        """Inclusive range of a term."""
        variable, divisor, modulus = term
        low, high = self._ranges.get(variable, (None, None))
        if divisor > 1:
            low = None if low is None else low // divisor
            high = None if high is None else high // divisor
        if modulus is None:
            return low, high
        if low is not None and high is not None and low >= 0 and high < modulus:
            return low, high
        return 0, modulus - 1

    def _digit(self, term: Term) -> np.ndarray:
        """The value of a thread digit in every thread."""
        variable, divisor, modulus = term
        value = self._values[variable] // divisor
        return value if modulus is None else value % modulus

    def _span(self, value: Sum) -> tuple[int | None, int | None]:
        low: int | None = value.constant
        high: int | None = value.constant
        for term, coefficient in value.terms.items():
            ends = self.bounds(term) if coefficient > 0 else self.bounds(term)[::-1]
            low = None if low is None or ends[0] is None else low + coefficient * ends[0]
            high = None if high is None or ends[1] is None else high + coefficient * ends[1]
        return low, high

    def _split(self, value: Sum, divisor: int) -> tuple[Sum, Sum]:
        """value = divisor * first + second."""
        whole, rest = Sum(value.constant // divisor), Sum(value.constant % divisor)
        for term, coefficient in value.terms.items():
            if coefficient % divisor == 0:
                whole.terms[term] = coefficient // divisor
            else:
                rest.terms[term] = coefficient
        return whole, rest

    def _divide(self, value: Sum, divisor: int) -> Sum | None:
        whole, rest = self._split(value, divisor)
        low, high = self._span(rest)
        if low is not None and high is not None and low // divisor == high // divisor:
            return whole.plus(Sum(low // divisor))
        digit = self._single(rest, divisor)
        if digit is None:
            return None
        (variable, inner, modulus), step = digit
        if modulus is not None and modulus % step:
            return None
        modulus = None if modulus is None else modulus // step
        return whole.plus(Sum(0, {(variable, inner * step, modulus): 1}))

    def _remainder(self, value: Sum, divisor: int) -> Sum | None:
        _, rest = self._split(value, divisor)
        low, high = self._span(rest)
        if low is not None and high is not None and low // divisor == high // divisor:
            return rest.plus(Sum(-(low // divisor) * divisor))
        digit = self._single(rest, divisor)
        if digit is None:
            return None
        term, step = digit
        variable, inner, modulus = term
        if modulus is not None and modulus % step:
            return None
        kept = Sum(0, {(variable, inner, step): divisor // step}) if step > 1 else Sum()
        # the smaller terms stay, the digit keeps its low part
        small = Sum(rest.constant, {t: c for t, c in rest.terms.items() if t != term})
        return kept.plus(small)

    def _single(self, rest: Sum, divisor: int) -> tuple[Term, int] | None:
        """The one term of `rest` that is not smaller than its own coefficient, with divisor / coefficient."""
        if not rest.terms:
            return None
        term, coefficient = max(rest.terms.items(), key=lambda item: abs(item[1]))
        if coefficient <= 0 or divisor % coefficient:
            return None
        low, high = self._span(Sum(rest.constant, {t: c for t, c in rest.terms.items() if t != term}))
        if low is None or high is None or low < 0 or high >= coefficient:
            return None
        return term, divisor // coefficient

    def condition(self, expr: Any, holds: bool = True) -> np.ndarray | None:
        """Which threads can find the condition true (or false): None where it does not depend on threads alone."""
        kind = type(expr)
        if kind is tir.Not:
            return self.condition(expr.a, not holds)
        if kind is (tir.And if holds else tir.Or):
            left, right = self.condition(expr.a, holds), self.condition(expr.b, holds)
            if left is None or right is None:
                return left if right is None else right
            return left & right
        value = self._evaluate(expr)
        if value is None:
            return None
        value = np.broadcast_to(np.asarray(value, bool), (self.threads,))
        return value if holds else ~value

    def _evaluate(self, expr: Any) -> Any:
        """The value per thread of an expression over thread indices and constants."""
        kind = type(expr)
        if kind is tir.IntImm:
            return int(expr.value)
        if kind is tvm.ir.Var:
            number = identity(expr)
            if number in self._values:
                return self._values[number]
            return self._evaluate(self._bindings[number]) if number in self._bindings else None
        if kind is tir.Cast:
            return self._evaluate(expr.value) if str(expr.ty.dtype) in ("int32", "int64", "bool") else None
        operator = _OPERATORS.get(kind)
        if operator is None:
            return None
        left, right = self._evaluate(expr.a), self._evaluate(expr.b)
        if left is None or right is None or (kind in (tir.FloorDiv, tir.FloorMod) and np.any(np.asarray(right) == 0)):
            return None
        return operator(left, right)


_OPERATORS = {
    tir.Add: lambda a, b: a + b,
    tir.Sub: lambda a, b: a - b,
    tir.Mul: lambda a, b: a * b,
    tir.FloorDiv: lambda a, b: a // b,
    tir.FloorMod: lambda a, b: a % b,
    tir.BitwiseXor: lambda a, b: a ^ b,
    tir.BitwiseAnd: lambda a, b: a & b,
    tir.BitwiseOr: lambda a, b: a | b,
    tir.LT: lambda a, b: a < b,
    tir.LE: lambda a, b: a <= b,
    tir.GT: lambda a, b: a > b,
    tir.GE: lambda a, b: a >= b,
    tir.EQ: lambda a, b: a == b,
    tir.NE: lambda a, b: a != b,
    tir.And: lambda a, b: np.logical_and(a, b),
    tir.Or: lambda a, b: np.logical_or(a, b),
    tir.Min: lambda a, b: np.minimum(a, b),
    tir.Max: lambda a, b: np.maximum(a, b),
}
