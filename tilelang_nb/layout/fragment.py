"""Fragment layouts: how one logical tile is spread over the threads of a block and their registers.

Every dimension of the tile is split into mixed-radix *digits*, most significant first.  A digit is held either by the
thread index or by the register index, at a stride: thread = sum of digit * stride over the thread digits, register =
the same sum over the register digits.  Parts of the thread index that no digit uses are *replication*: those threads
hold copies.

Both directions are therefore sums of floor divisions and remainders of plain values; nothing has to be solved.
Blocked tiles, matrix accumulators and row broadcasts are all of this form.  A dimension whose digits span more than
its extent is *padded*: some (thread, register) pairs hold no element, and code that walks registers has to guard it.

Index values may be Python ints, NumPy arrays or TIR expressions alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

Kind = Literal["thread", "register"]


@dataclass(frozen=True)
class Digit:
    """One digit of a dimension: `extent` values, kept in the thread or the register index at `stride`."""

    extent: int
    kind: Kind
    stride: int

    @property
    def on_thread(self) -> bool:
        return self.kind == "thread"


@dataclass(frozen=True)
class Fragment:
    """A layout: per dimension its digits, most significant first.

    shape: extents of the logical tile.
    digits: per dimension; the product of their extents is at least the extent of the dimension.  Digits of extent 1
    are
        dropped and neighbours that count on are merged, so two equal maps compare (and hash) equal.
    threads: size of the set of threads; thread indices run from 0 to threads - 1.

    ValueError where digits overlap, leave a gap in the register index, or do not divide the thread index.
    """

    shape: tuple[int, ...]
    digits: tuple[tuple[Digit, ...], ...]
    threads: int
    replication: tuple[Digit, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.digits):
            raise ValueError(f"{len(self.shape)} extents, {len(self.digits)} lists of digits")
        merged = tuple(_merge(digits) for digits in self.digits)
        object.__setattr__(self, "shape", tuple(int(extent) for extent in self.shape))
        object.__setattr__(self, "digits", merged)
        for extent, digits in zip(self.shape, merged):
            if math.prod(digit.extent for digit in digits) < extent:
                raise ValueError(f"digits {digits} do not span {extent} elements")
        every = [digit for digits in merged for digit in digits]
        object.__setattr__(self, "replication", _gaps([d for d in every if d.on_thread], self.threads))
        registers = [d for d in every if not d.on_thread]
        if _gaps(registers, math.prod(d.extent for d in registers)):
            raise ValueError(f"the register digits {registers} leave a gap")

    # ---- facts ----

    @cached_property
    def register_count(self) -> int:
        """Registers of one thread, padding included."""
        return math.prod(digit.extent for digits in self.digits for digit in digits if not digit.on_thread)

    @cached_property
    def replicas(self) -> int:
        """How many threads hold each element."""
        return math.prod(digit.extent for digit in self.replication)

    @property
    def is_replicated(self) -> bool:
        return self.replicas > 1

    @cached_property
    def is_uniform(self) -> bool:
        """Every thread holds the whole tile."""
        return not any(digit.on_thread for digits in self.digits for digit in digits)

    def span(self, dim: int) -> int:
        """Number of index values that the digits of a dimension can express."""
        return math.prod(digit.extent for digit in self.digits[dim])

    @cached_property
    def padded_dims(self) -> tuple[int, ...]:
        """Dimensions whose digits span more than the extent."""
        return tuple(dim for dim, extent in enumerate(self.shape) if self.span(dim) > extent)

    @property
    def covers(self) -> bool:
        """Every (thread, register) pair holds an element: nothing to guard."""
        return not self.padded_dims

    def thread_digits(self, dim: int) -> tuple[tuple[int, int, int], ...]:
        """(weight in the index, extent, stride in the thread index) of the thread digits of a dimension.

        Two layouts whose dimensions agree in this hold equal indices in the same threads, whatever their registers.
        """
        weights = self.weights(dim)
        return tuple((w, d.extent, d.stride) for w, d in zip(weights, self.digits[dim]) if d.on_thread)

    def weights(self, dim: int) -> tuple[int, ...]:
        """What one step of each digit of a dimension adds to the index."""
        result, weight = [], 1
        for digit in reversed(self.digits[dim]):
            result.append(weight)
            weight *= digit.extent
        return tuple(reversed(result))

    # ---- the maps ----

    def forward(self, index: Sequence[Any]) -> tuple[Any, Any]:
        """(thread, register) of an element; the thread is that of replica 0 (all replication digits zero)."""
        thread: Any = 0
        register: Any = 0
        for dim, value in enumerate(index):
            digits, weights = self.digits[dim], self.weights(dim)
            for position, (digit, weight) in enumerate(zip(digits, weights)):
                part = _take(value, weight, digit.extent if position else None)
                if digit.on_thread:
                    thread = _add(thread, _scale(part, digit.stride))
                else:
                    register = _add(register, _scale(part, digit.stride))
        return thread, register

    def inverse(self, thread: Any, register: Any) -> tuple[Any, ...]:
        """Index of the element that a thread holds in a register; in a padded layout it may lie outside the shape."""
        return self.place(thread, lambda digit: self.part(register, digit, self.register_count))

    def place(self, thread: Any, register_digit: Any) -> tuple[Any, ...]:
        """Index of an element from the thread and the value of each register digit, a function of the digit."""
        result = []
        for dim, digits in enumerate(self.digits):
            index: Any = 0
            for digit, weight in zip(digits, self.weights(dim)):
                value = self.part(thread, digit, self.threads) if digit.on_thread else register_digit(digit)
                index = _add(index, _scale(value, weight))
            result.append(index)
        return tuple(result)

    @staticmethod
    def part(value: Any, digit: Digit, whole: int) -> Any:
        """The value of a digit in a thread or register index that runs from 0 to whole - 1."""
        return _take(value, digit.stride, None if digit.stride * digit.extent == whole else digit.extent)

    def register_digits(self) -> tuple[Digit, ...]:
        """The register digits, largest stride first: the loop nest that walks the registers in order."""
        every = [d for digits in self.digits for d in digits if not d.on_thread]
        return tuple(sorted(every, key=lambda digit: -digit.stride))

    def replica(self, thread: Any) -> Any:
        """0 for exactly one thread of those that hold the same elements."""
        result: Any = 0
        scale = 1
        for digit in self.replication:
            result = _add(result, _scale(self.part(thread, digit, self.threads), scale))
            scale *= digit.extent
        return result

    # ---- new layouts ----

    def project(self, kept: Iterable[int]) -> Fragment:
        """Without the other dimensions: their thread digits become replication, their registers go.

        The layout of a row broadcast, and of the result of a reduction over the dropped dimensions.
        """
        kept = list(kept)
        return arrange([self.shape[d] for d in kept], [self.digits[d] for d in kept], self.threads)

    # ---- concrete evaluation ----

    def owners(self) -> np.ndarray:
        """Thread of replica 0 of every element, an array of the tile's shape."""
        return np.broadcast_to(self.forward(np.indices(self.shape, sparse=True))[0], self.shape)

    def registers(self) -> np.ndarray:
        """Register of every element, an array of the tile's shape."""
        return np.broadcast_to(self.forward(np.indices(self.shape, sparse=True))[1], self.shape)

    def __str__(self) -> str:
        def show(digits: tuple[Digit, ...]) -> str:
            return " ".join(f"{'t' if d.on_thread else 'r'}{d.extent}:{d.stride}" for d in digits) or "1"

        dims = ", ".join(f"{extent} = {show(digits)}" for extent, digits in zip(self.shape, self.digits))
        copies = f", {self.replicas} copies" if self.is_replicated else ""
        return f"({dims}) on {self.threads} threads, {self.register_count} registers{copies}"


def arrange(shape: Sequence[int], digits: Sequence[Sequence[Digit]], threads: int) -> Fragment:
    """A layout from digits whose register strides say only their order: larger is further out, of equals the first."""
    registers = [(d.stride, -dim, -k) for dim, row in enumerate(digits) for k, d in enumerate(row) if not d.on_thread]
    strides, stride = {}, 1
    for _, dim, k in sorted(registers):
        strides[-dim, -k] = stride
        stride *= digits[-dim][-k].extent
    placed = [
        tuple(d if d.on_thread else Digit(d.extent, "register", strides[dim, k]) for k, d in enumerate(row))
        for dim, row in enumerate(digits)
    ]
    return Fragment(tuple(shape), tuple(placed), threads)


def blocked(shape: Sequence[int], threads: int, vector: int = 1) -> Fragment:
    """Neighbouring threads hold neighbouring groups of `vector` elements of the innermost dimension.

    Threads are dealt out from the innermost dimension outwards, powers of two first, only as many as there is work
    for; an odd factor of the thread count goes to the outermost dimension that still has work.  Left over threads
    replicate, left over elements are further registers (rounded up).  `vector` is reduced to a divisor of the
    innermost extent.
    """
    shape = [int(extent) for extent in shape]
    if not shape:
        return Fragment((), (), threads)
    vector = math.gcd(vector, shape[-1])
    work = list(shape)  # what is left of each dimension
    work[-1] //= vector
    two, stride = threads & -threads, 1
    given: list[list[Digit]] = [[] for _ in shape]  # thread digits per dimension, least significant first
    for dim in reversed(range(len(shape))):
        extent = min(two, 1 << max(0, (work[dim] - 1).bit_length()))
        if extent > 1:
            given[dim].append(Digit(extent, "thread", stride))
            stride, two, work[dim] = stride * extent, two // extent, -(-work[dim] // extent)
    odd = threads // (threads & -threads)
    if odd > 1:
        # Its stride must divide the thread index, so it comes after all powers of two, used or not.
        for dim in range(len(shape)):
            if work[dim] > 1:
                given[dim].append(Digit(odd, "thread", threads // odd))
                work[dim] = -(-work[dim] // odd)
                break
    digits = [[Digit(work[dim], "register", 1), *reversed(given[dim])] for dim in range(len(shape))]
    digits[-1].append(Digit(vector, "register", 0))
    return arrange(shape, digits, threads)


def uniform(shape: Sequence[int], threads: int) -> Fragment:
    """Every thread holds the whole tile."""
    return arrange(shape, [[Digit(int(extent), "register", 1)] for extent in shape], threads)


def _merge(digits: Iterable[Digit]) -> tuple[Digit, ...]:
    result: list[Digit] = []
    for digit in digits:
        if digit.extent == 1:
            continue
        last = result[-1] if result else None
        if last is not None and last.kind == digit.kind and last.stride == digit.stride * digit.extent:
            result[-1] = Digit(last.extent * digit.extent, digit.kind, digit.stride)
        else:
            result.append(digit)
    return tuple(result)


def _gaps(digits: Sequence[Digit], whole: int) -> tuple[Digit, ...]:
    """The digits of 0..whole-1 that are missing from `digits`, smallest stride first."""
    gaps, reached = [], 1
    for digit in sorted(digits, key=lambda digit: digit.stride):
        if digit.stride % reached:
            raise ValueError(f"the digits {digits} overlap")
        if digit.stride > reached:
            gaps.append(Digit(digit.stride // reached, digit.kind, reached))
        reached = digit.stride * digit.extent
    if whole % reached or whole < reached:
        raise ValueError(f"the digits {digits} do not divide {whole}")
    if whole > reached:
        gaps.append(Digit(whole // reached, "thread", reached))
    return tuple(gaps)


def _take(value: Any, weight: int, extent: int | None) -> Any:
    if weight > 1:
        value = value // weight
    return value if extent is None else value % extent


def _scale(value: Any, factor: int) -> Any:
    return value if factor == 1 else value * factor


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, int) and left == 0:
        return right
    return left if isinstance(right, int) and right == 0 else left + right
