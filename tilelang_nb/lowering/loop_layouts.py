"""The layout of a T.Parallel loop and of the fragments in it, one from the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tvm import tirx as tir

from tilelang_nb.layout.fragment import Digit, Fragment, arrange
from tilelang_nb.layout.indexing import Sum, decompose, held, layout_for, slots_of, thread_slots, variable

from .context import LaunchContext
from .nests import Access, Nest
from .rewrite import Var, constant, size, variables
from .views import root, views


class Contradiction(Exception):
    """A thread would touch an element that it does not hold, or leave a copy of one behind."""


class LoopLayouts:
    """Chooses how the iterations of each `T.Parallel` nest are dealt to threads and registers."""

    def __init__(self, launch: LaunchContext):
        self.launch = launch
        self._sources = views(launch.facts["tile"].body) if "tile" in launch.facts else {}

    def owners(self, buffer: Any) -> Any:
        return root(buffer, self._sources)

    def granule(self, value: Any) -> int:
        """A number that divides the value whatever its variables are; 0 for 0."""
        if isinstance(value, int):
            return abs(value)
        known = self.launch.analyzer.modular_set(value)
        return math.gcd(int(known.coeff), int(known.base))

    def sums(self, nest: Nest, loop: Fragment, access: Access) -> list[Sum | None]:
        """The indices of an access, digit by digit; None where an index is not such a sum."""
        env = environment(nest, loop)
        return [None if env is None else decompose(index, env, self.granule) for index in access.indices]

    # ---- fragments from loops ----

    def fragment_for(self, nest: Nest, loop: Fragment, buffer: Any) -> Fragment | None:
        """The layout that an open fragment gets from a loop: from its writes if it is written, else from its reads.

        None where the loop does not say.
        """
        shape = [size(extent) for extent in buffer.shape]
        accesses = [access for access in nest.accesses if access.buffer.same_as(buffer)]
        best: Fragment | None = None
        for access in sorted(accesses, key=lambda access: not access.write):
            layout = layout_for(shape, self.sums(nest, loop, access), nest.threads.count, self.granule)
            if layout is not None and (best is None or layout.replicas < best.replicas):
                best = layout
            if best is not None and access.write:
                break
        return best

    # ---- loops from fragments ----

    def candidates(self, nest: Nest, layouts: Mapping[Any, Fragment]) -> list[Fragment]:
        """Loop layouts under which some settled fragment is held by the executing threads."""
        found: dict[Fragment, None] = {}
        for access in nest.accesses:
            layout = layouts.get(access.buffer)
            if layout is not None and layout.threads == nest.threads.count:
                loop = self._loop_for(nest, access, layout)
                if loop is not None:
                    found[loop] = None
        return list(found)

    def _loop_for(self, nest: Nest, access: Access, layout: Fragment) -> Fragment | None:
        if None in nest.extents:
            return None
        order = {var: k for k, var in enumerate(nest.variables)}
        given: dict[int, list[Digit]] = {}
        for dim, index in enumerate(access.indices):
            terms = linear(index, order)
            if terms is None:
                return None
            if not terms:
                continue
            if not self._deal(layout, dim, list(terms.items()), nest.extents, given):
                return None
        return self._complete(nest, layout, given)

    def _deal(
        self,
        layout: Fragment,
        dim: int,
        terms: list[tuple[int, int]],
        extents: tuple[Any, ...],
        given: dict[int, list[Digit]],
    ) -> bool:
        """Hand the digits of a dimension to the loop variables of `sum of variable * weight`."""
        digits = [(weight, digit) for weight, digit in zip(layout.weights(dim), layout.digits[dim])]
        digits.reverse()  # least significant first
        terms = sorted(terms, key=lambda term: term[1])
        for number, (loop, weight) in enumerate(terms):
            if loop in given:
                return False
            limit = terms[number + 1][1] if number + 1 < len(terms) else None
            if limit is not None and limit != weight * extents[loop]:
                return False
            row, reached = [], 1
            for at, digit in digits:
                end = at * digit.extent
                if end <= weight or (limit is not None and at >= limit):
                    continue
                low, high = max(at, weight), end if limit is None else min(end, limit)
                if low % at or end % high or (high // low) * low != high:
                    return False
                if reached >= extents[loop]:
                    break
                extent, stride = high // low, digit.stride * (low // at)
                if not digit.on_thread:
                    extent = min(extent, -(-extents[loop] // reached))
                row.append(Digit(extent, digit.kind, stride))
                reached *= extent
            row.append(Digit(-(-extents[loop] // reached), "register", 1 << 40))
            given[loop] = list(reversed(row))
        return True

    def _complete(self, nest: Nest, layout: Fragment, given: dict[int, list[Digit]]) -> Fragment | None:
        """Variables that the fragment says nothing about share its replicas between them, innermost first."""
        extents = [extent or 1 for extent in nest.extents]
        free = list(layout.replication)
        rows: list[list[Digit]] = [given.get(k, []) for k in range(len(extents))]
        for k in reversed(range(len(extents))):
            if k in given:
                continue
            left, row = extents[k], []
            while left > 1 and free:
                digit = free.pop(0)
                row.append(digit)
                left = -(-left // digit.extent)
            rows[k] = [Digit(left, "register", 1 << 30), *reversed(row)]
        try:
            return arrange(extents, rows, layout.threads)
        except ValueError:
            return None

    # ---- checks ----

    def check(self, nest: Nest, loop: Fragment, access: Access, layout: Fragment) -> None:
        """Contradiction unless the executing threads hold the element and, for a write, all its copies are written."""
        if layout.threads != nest.threads.count:
            raise Contradiction
        sums = self.sums(nest, loop, access)
        if not held(layout, sums, self.granule):
            raise Contradiction
        if not access.write:
            return
        mine = {slot for digits in layout.digits for digit in digits if digit.on_thread for slot in slots_of(digit)}
        for k, digits in enumerate(loop.digits):
            slots = {slot for digit in digits if digit.on_thread for slot in slots_of(digit)}
            if slots <= mine:
                continue
            # Threads that differ in these digits hold copies; all of them have to write the same.
            var = nest.variables[k]
            used = any(s is None or thread_slots(s.parts) & slots - mine for s in sums)
            if used or loop.span(k) != loop.shape[k] or var in access.depends or access.buffer in access.reads:
                raise Contradiction


def environment(nest: Nest, loop: Fragment) -> dict[Any, Sum] | None:
    """The sums of the loop variables; None for loops whose extent is known only at run time."""
    if None in nest.extents:
        return None
    result = {}
    for node, digits in zip(nest.loops, loop.digits):
        start = constant(node.min)
        base = variable(digits)
        result[node.loop_var] = base if start == 0 else Sum(base.parts, node.min if start is None else start)
    return result


def linear(index: Any, order: Mapping[Any, int]) -> dict[int, int] | None:
    """Coefficients of the loop variables (by number) in an index such as `i * 8 + j + 64`; None if not linear."""
    if isinstance(index, Var):
        return {order[index]: 1} if index in order else {}
    kind = type(index).__name__
    if kind == "Cast":
        return linear(index.value, order)
    if kind in ("Add", "Sub"):
        left, right = linear(index.a, order), linear(index.b, order)
        if left is None or right is None or (kind == "Sub" and right):
            return None
        return {k: left.get(k, 0) + right.get(k, 0) for k in {**left, **right}}
    if kind == "Mul":
        for one, other in ((index.a, index.b), (index.b, index.a)):
            if isinstance(other, tir.IntImm):
                part = linear(one, order)
                return None if part is None else {k: weight * int(other.value) for k, weight in part.items()}
    return None if any(var in order for var in variables(index)) else {}
