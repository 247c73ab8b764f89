"""Writing Python: suites, names, temporaries as far outside as they can be computed, sites of accesses."""

from __future__ import annotations

from typing import Any

from .suites import Nested, Suite, Tracked
from .values import Site, Value, integer_range, place_of

INLINE = 48  # characters; a longer uniform expression gets a name, so that texts do not grow when it is used twice
# Turns of a compile-time loop that findings tell apart, as long as the sites are few: records have 12 bits for them.
MOST_TURNS, MOST_SITES = 64, 2048


class Writer:
    """The state of a translation that every part of the translator shares."""

    def __init__(self, checks: bool):
        self.checks = checks
        self.suites = [Suite(names={"S"}, function=True)]
        self.counter = 0
        self.reserved: set[str] = set()  # names of parameters and symbolic sizes
        self.mask: str | None = None  # name of the mask of the lanes that run; None: all lanes
        self.span: Any = None
        self.sites: list[Site] = []
        self._site_numbers: dict[Site, int] = {}
        self._turns: dict[Any, dict[Any, int]] = {}  # place -> span objects of the statements there
        self.varying: set[str] = set()  # register buffers that hold no value while a product is running
        self.tracked: set[str] = set()  # register buffers whose initialisation is checked at run time

    @property
    def depth(self) -> int:
        return len(self.suites) - 1

    @property
    def function_depth(self) -> int:
        """Index of the suite of the generated function that is being written."""
        return max(index for index, suite in enumerate(self.suites) if suite.function)

    def fresh(self, stem: str) -> str:
        self.counter += 1
        stem = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in stem)
        while f"{stem}_{self.counter}" in self.reserved:
            self.counter += 1
        return f"{stem}_{self.counter}"

    def emit(self, line: str) -> None:
        self.suites[-1].lines.append(line)

    def emit_tracked(self, buffer: str, line: str) -> None:
        if self.checks:
            self.suites[-1].lines.append(Tracked(buffer, line))

    def define(self, *names: str) -> None:
        self.suites[-1].names.update(names)

    def assign(self, stem: str, text: str) -> str:
        """Emit `name = text` here and now; returns the name."""
        name = self.fresh(stem)
        self.emit(f"{name} = {text}")
        self.define(name)
        return name

    def open(self, *names: str) -> None:
        self.suites.append(Suite(names=set(names)))

    def close(self, header: str) -> None:
        suite = self.suites.pop()
        self.suites[-1].lines.append(Nested(header, suite.lines))

    def site(self, kind: str, buffer: str = "", space: str = "") -> int:
        """Number of the site of an access in the statement that is being translated."""
        place = place_of(self.span)
        turns = self._turns.setdefault(place, {})
        if self.span not in turns and len(turns) < MOST_TURNS and len(self.sites) < MOST_SITES:
            turns[self.span] = len(turns)
        turn = turns.get(self.span, -1)  # -1: one of those that are not told apart
        site = Site(kind, buffer, space, place, turn, self.span if turn >= 0 else None)
        if site not in self._site_numbers:
            self._site_numbers[site] = len(self.sites)
            self.sites.append(site)
        return self._site_numbers[site]

    def at_depth(self, stem: str, text: str, depth: int) -> str:
        """Name of `text` computed once in the suite at `depth`; equal texts share a name."""
        suite = self.suites[depth]
        if text not in suite.memo:
            name = suite.memo[text] = self.fresh(stem)
            suite.names.add(name)
            suite.lines.append(f"{name} = {text}")
        return suite.memo[text]

    def temporary(self, value: Value) -> Value:
        """Name a pure value in the outermost suite where it can be computed.

        A uniform value that changes in this suite and is short stays inline: a name costs as much as an operation.
        """
        if value.atom or not value.pure:
            return value
        if value.axes == 0 and value.depth == self.depth and len(value.text) < INLINE:
            return value
        name = self.at_depth("e", value.text, value.depth)
        return Value(name, value.dtype, value.axes, value.depth, True, True, value.low, value.high)

    def make(self, text: str, dtype: str, *parts: Value, low: int | None = None, high: int | None = None) -> Value:
        """A value computed from `parts`: its axes, depth and purity follow from theirs."""
        axes, depth, pure = 0, 0, True
        for part in parts:
            axes, depth, pure = axes | part.axes, max(depth, part.depth), pure and part.pure
        return self.temporary(Value(text, dtype, axes, depth, pure, False, low, high))

    def integer(self, text: str, dtype: str, low: int | None, high: int | None, *parts: Value) -> Value:
        """An integer result: NumPy arrays wrap by themselves, Python ints are wrapped where they may leave the type."""
        smallest, largest = integer_range(dtype)
        fits = low is not None and high is not None and smallest <= low and high <= largest
        if not fits:
            low, high = smallest, largest
            if all(part.axes == 0 for part in parts):
                text = f"wrap_{dtype}({text})"
        return self.make(text, dtype, *parts, low=low, high=high)

    def initialised(self, buffer: str, registers: range | list[int]) -> bool:
        """True if every active lane has certainly written these registers."""
        if buffer in self.varying:
            return False
        known: set[int] = set()
        for suite in self.suites:
            known |= suite.assigned.get(buffer, set())
        return known.issuperset(registers)

    def record_initialised(self, buffer: str, registers: range | list[int]) -> None:
        self.suites[-1].assigned.setdefault(buffer, set()).update(registers)
