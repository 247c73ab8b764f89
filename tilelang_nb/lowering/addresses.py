"""What two index expressions prove about who touches what.

For two accesses by unknown threads, `Prover.relate` asks whether equal addresses imply equal threads (then program
order orders them), or whether the addresses always differ. Both are proofs over sums of digits (`index_sums`):
where nothing is proven the answer is "unordered".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from .index_sums import IndexReader, Term

Relation = Literal["disjoint", "same thread", "unordered"]


class Form(NamedTuple):
    """The indices of an access apart from their constants: what many accesses of one kind have in common.

    dims: per dimension the terms of its Sum, or None where the index is not known.
    mask: position in `Prover.masks` of the threads that execute the access.
    stale: variables that may have another value by now, because their scope was left or entered again.
    earlier: loop variables that certainly have another value by now, in a later turn of the loop.
    """

    dims: tuple[frozenset[tuple[Term, int]] | None, ...]
    mask: int
    stale: frozenset[int] = frozenset()
    earlier: frozenset[int] = frozenset()


class Window(NamedTuple):
    """The numbers low, low + step, ... up to high; a step of 0 for one number."""

    low: int
    high: int
    step: int

    def minus(self, other: Window) -> Window:
        """All differences of a number of this and one of the other."""
        return Window(self.low - other.high, self.high - other.low, math.gcd(self.step, other.step))

    def joined(self, other: Window) -> Window:
        """All numbers of both."""
        step = math.gcd(math.gcd(self.step, other.step), self.low - other.low)
        return Window(min(self.low, other.low), max(self.high, other.high), step)

    def holds(self, other: Window) -> bool:
        """All numbers of the other are among these."""
        if other.low < self.low or other.high > self.high:
            return False
        apart = math.gcd(other.step, other.low - self.low)
        return apart % self.step == 0 if self.step else apart == 0


class Prover(IndexReader):
    """Proofs over the accesses of one launch.

    masks: sets of threads that execute something, as arrays of bool; the first is all of them.
    """

    def __init__(self, axes: Mapping[Any, int], uniform: Any):
        super().__init__(axes, uniform)
        self.masks: list[np.ndarray] = [np.ones(self.threads, bool)]
        self._mask_keys = {self.masks[0].tobytes(): 0}
        self._one_owner: dict[Any, bool] = {}
        self._held_ranges: dict[tuple[Term, int], tuple[int, int]] = {}

    def variables(self, form: Form) -> frozenset[int]:
        """What the indices move with, threads apart."""
        found: set[int] = set()
        for dim in form.dims:
            for (variable, _, _), _ in dim or ():
                if variable in self._opaque:
                    found |= self._opaque[variable]
                elif variable not in self._values:
                    found.add(variable)
        return frozenset(found)

    def mask(self, outer: int, condition: np.ndarray | None) -> int:
        """The mask `outer` narrowed to the threads that fulfil a condition."""
        if condition is None:
            return outer
        narrowed = self.masks[outer] & condition
        key = narrowed.tobytes()
        if key not in self._mask_keys:
            self._mask_keys[key] = len(self.masks)
            self.masks.append(narrowed)
        return self._mask_keys[key]

    def _held(self, term: Term, mask: int) -> tuple[int, int]:
        """Inclusive range of a thread digit among the threads of a mask."""
        key = (term, mask)
        if key not in self._held_ranges:
            values = self._digit(term)[self.masks[mask]]
            self._held_ranges[key] = (int(values.min()), int(values.max())) if values.size else (0, 0)
        return self._held_ranges[key]

    def relate(self, a: Form, b: Form, offsets: tuple[Window, ...]) -> Relation:
        """What holds for two accesses of one buffer by any two threads at addresses that might be equal.

        offsets: per dimension what (constant of a) - (constant of b) may be.
        """
        found: set[Term] = set()
        for dim_a, dim_b, offset in zip(a.dims, b.dims, offsets):
            if dim_a is None or dim_b is None:
                continue
            if self._dimension(dict(dim_a), dict(dim_b), a, b, offset, found):
                return "disjoint"
        key = (frozenset(found), a.mask, b.mask)
        if key not in self._one_owner:
            self._one_owner[key] = self._determined(found, a.mask, b.mask)
        return "same thread" if self._one_owner[key] else "unordered"

    def _dimension(
        self,
        a: dict[Term, int],
        b: dict[Term, int],
        form_a: Form,
        form_b: Form,
        offset: Window,
        found: set[Term],
    ) -> bool:
        """Solve a - b = 0 for one dimension.

        True when it has no solution; the thread digits that must be equal in every solution are added to `found`.
        """
        if self._different_turns(a, b, form_a, form_b, offset):
            return True
        constant = offset.low
        step = 0  # gcd of all coefficients
        # |coefficient|, range of the product, thread digit, and whether the factor is known not to be zero
        unknowns: list[tuple[int, float, float, Term | None, bool]] = []
        if offset.high > offset.low:
            step = offset.step
            constant = (offset.low + step // 2) % step - step // 2  # as near to zero as the grid allows
            unknowns.append((step, offset.low - constant, offset.high - constant, None, False))

        def unknown(coefficient: int, low: float, high: float, digit: Term | None = None, moved: bool = False) -> None:
            nonlocal step
            step = math.gcd(step, coefficient)
            products = (coefficient * low, coefficient * high)
            unknowns.append((abs(coefficient), min(products), max(products), digit, moved))

        for term in a.keys() | b.keys():
            left, right = a.get(term, 0), b.get(term, 0)
            variable = term[0]
            if variable in self._values:
                (low_a, high_a), (low_b, high_b) = self._held(term, form_a.mask), self._held(term, form_b.mask)
                if left == right:
                    unknown(left, low_a - high_b, high_a - low_b, term)
                else:
                    if left:
                        unknown(left, low_a, high_a)
                    if right:
                        unknown(-right, low_b, high_b)
                continue
            least, most = self.bounds(term)
            low = -math.inf if least is None else least
            high = math.inf if most is None else most
            moved = term[1:] == (1, None) and (variable in form_a.earlier) != (variable in form_b.earlier)
            if moved or self._stale(variable, form_a) or self._stale(variable, form_b):
                if left == right:
                    unknown(left, low - high, high - low, moved=moved)
                else:
                    if left:
                        unknown(left, low, high)
                    if right:
                        unknown(-right, low, high)
            elif left != right:
                unknown(left - right, low, high)
        if step and constant % step or not step and constant:
            return True
        # From the largest coefficient down: what the smaller ones cannot make up for must be zero.
        unknowns.sort(key=lambda item: item[0])
        rests = [(float(constant), float(constant))]
        for _, low, high, _, _ in unknowns:
            rests.append((rests[-1][0] + low, rests[-1][1] + high))
        if rests[-1][0] > 0 or rests[-1][1] < 0:
            return True
        for (coefficient, smallest, largest, digit, moved), (low, high) in zip(
            reversed(unknowns), reversed(rests[:-1])
        ):
            if low <= -coefficient or high >= coefficient:
                return False
            if smallest > 0 or largest < 0 or moved:
                return True
            if digit is not None:
                found.add(digit)
        return constant != 0

    def _different_turns(
        self, a: dict[Term, int], b: dict[Term, int], form_a: Form, form_b: Form, offset: Window
    ) -> bool:
        """`k % 2` and `(k + 1) % 2`, of one turn: versions of a tile."""
        if len(a) != 1 or len(b) != 1 or offset.low or offset.high:
            return False
        ((term_a, factor_a),), ((term_b, factor_b),) = a.items(), b.items()
        one, other = self.remainder(term_a), self.remainder(term_b)
        if factor_a != factor_b or not factor_a or one is None or other is None:
            return False
        still = not any(self._stale(term[0], form) for term in (term_a, term_b) for form in (form_a, form_b))
        return still and one[0] == other[0] and one[2] == other[2] and one[1] != other[1]

    def _determined(self, digits: set[Term], mask_a: int, mask_b: int) -> bool:
        """Whether a thread of mask a and one of mask b that agree in the digits are one thread."""
        key = np.zeros(self.threads, np.int64)
        for digit in sorted(digits, key=repr):
            _, value = np.unique(self._digit(digit), return_inverse=True)
            key = np.unique(key * (int(value.max()) + 1) + value, return_inverse=True)[1]
        in_a, in_b = self.masks[mask_a], self.masks[mask_b]
        size = int(key.max()) + 1
        count_a, count_b = np.bincount(key[in_a], minlength=size), np.bincount(key[in_b], minlength=size)
        both = (count_a > 0) & (count_b > 0)
        count_same = np.bincount(key[in_a & in_b], minlength=size)
        return bool(np.all((count_a == 1)[both] & (count_b == 1)[both] & (count_same == 1)[both]))

    def _stale(self, variable: int, form: Form) -> bool:
        stale = form.stale | form.earlier if form.earlier else form.stale
        if not stale:
            return False
        return not stale.isdisjoint(self._opaque[variable]) if variable in self._opaque else variable in stale
