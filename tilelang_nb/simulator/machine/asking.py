"""Threads that ask for a value until others have stored it.

A loop with atomic operations may ask for what other threads store.  Where a turn has changed nothing, neither registers
nor memory, the next one would do the same until others have stored something else to the places that it has read: its
threads sleep, and a store to one of these places wakes them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from .repetition import equal
from .waits import VALUE, Lack, Wait

STEPS = 16  # that a turn counts as which changes something itself: others run in between, so that few are enough
MOST_READ = 4096  # elements that a sleeping loop remembers
PLACE = 3  # places that stores ring at are of so many bits of an address: an element has at most eight bytes
Array = Any


class Read:
    """Elements that a turn has read, and what they were."""

    def __init__(self, memory: Array, index: Array):
        self.memory, self.index = memory, index
        self.values = memory[index].copy()

    def changed(self) -> bool:
        now = self.memory[self.index]
        return bool((now != self.values).any()) and now.tobytes() != self.values.tobytes()

    def again(self) -> Read:
        """The same elements, as they are now."""
        return Read(self.memory, self.index)

    def key(self) -> Any:
        """Equal for reads of the same elements with the same values."""
        return self.memory.__array_interface__["data"][0], self.index.tobytes(), self.values.tobytes()


class Group:
    """Sleepers that have read the same, in the order in which they came, and what tells whether each still would."""

    def __init__(self, key: Any, reads: tuple[Read, ...], places: frozenset[int]):
        self.key, self.reads, self.places = key, reads, places
        self.sleepers: dict[Any, Callable[[], bool] | None] = {}


class Alarms:
    """Sleepers by the places that they have read.  Those who have read the same are woken one after the other: the
    first may put back what it finds.
    """

    def __init__(self) -> None:
        self._groups: dict[int, dict[Any, Group]] = {}  # by place, and by what was read
        self._rung: dict[int, None] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def set(self, sleeper: Any, reads: tuple[Read, ...], goes_on: Callable[[], bool] | None = None) -> None:
        """goes_on: whether it would sleep on, if it were woken; None where it must be woken to know."""
        self._group(reads, None).sleepers[sleeper] = goes_on

    def _group(self, reads: tuple[Read, ...], places: frozenset[int] | None) -> Group:
        key = tuple(read.key() for read in reads)
        if places is None:
            places = frozenset(place for read in reads for place in places_of(read.memory, read.index).tolist())
        group = self._groups.setdefault(next(iter(places)), {}).get(key)
        if group is None:
            group = Group(key, reads, places)
            for place in places:
                self._groups.setdefault(place, {})[key] = group
        return group

    def ring(self, places: Array) -> None:
        """Something else is stored at some places."""
        if len(places) > len(self._groups):
            known = np.fromiter(self._groups, np.int64, len(self._groups))
            places = known[np.isin(known, places)]
        for place in places.tolist():
            if place in self._groups:
                self._rung[place] = None

    def ring_all(self) -> None:
        self._rung.update(dict.fromkeys(self._groups))

    def next(self) -> Any:
        """A sleeper for whom something has changed; None if there is none."""
        while self._rung:
            place = next(iter(self._rung))
            for group in list(self._groups.get(place, {}).values()):
                sleeper = self._woken(group) if any(read.changed() for read in group.reads) else None
                if sleeper is not None:
                    return sleeper
            del self._rung[place]
        return None

    def _woken(self, group: Group) -> Any:
        """The first that does not sleep on; those before it sleep on with what they would read now."""
        slept: list[Any] = []
        found = None
        for sleeper, goes_on in group.sleepers.items():
            if goes_on is None or not goes_on():
                found = sleeper
                break
            slept.append((sleeper, goes_on))
        for sleeper in [one for one, _ in slept] + [found] * (found is not None):
            del group.sleepers[sleeper]
        if not group.sleepers:
            self._forget(group)
        if slept:
            self._group(tuple(read.again() for read in group.reads), group.places).sleepers.update(slept)
        return found

    def _forget(self, group: Group) -> None:
        for place in group.places:
            del self._groups[place][group.key]
            if not self._groups[place]:
                del self._groups[place]


def places_of(memory: Array, index: Array) -> Array:
    """The places of some elements."""
    addresses = memory.__array_interface__["data"][0] + np.asarray(index, np.int64).reshape(-1) * memory.itemsize
    return np.unique(addresses >> PLACE)


class Asking:
    """The turns of one loop that may ask for what others store.

    goes_on: whether the condition of a loop that does nothing else holds, for all lanes; None where that is not known.
    """

    def __init__(self, strand: Any, site: int, goes_on: Callable[[], bool] | None):
        self.strand, self.site, self.goes_on = strand, site, goes_on
        self.changes = -1
        self.kept: tuple[Any, ...] = ()
        self.outermost = strand.noted is None
        if self.outermost:
            strand.noted = []
        self.start = 0

    def ends(self) -> None:
        """The loop is over."""
        if self.outermost:
            self.strand.noted = None

    def turn_begins(self, *state: Any) -> Generator[Wait, None, None]:
        """Yields before every turn but the first; until others have changed memory where the turn before did nothing.

        state: masks and registers.
        """
        machine = self.strand.machine
        idle = len(self.kept) == len(state) and all(equal(one, kept) for one, kept in zip(state, self.kept))
        before = machine.changes
        if idle and before == self.changes:
            machine.take_steps(-1, self.site)  # the turn is that of those who change memory
            reads = self._reads()
            if reads is None:
                yield Wait(lambda: machine.changes != before, lambda: self._said(), self.site)
            else:
                yield self._sleep(reads)
        elif self.changes >= 0:
            machine.take_steps(STEPS, self.site)
            yield Wait(lambda: True, lambda: self._said(), self.site)
        self.changes = machine.changes
        self.kept = tuple(one.copy() if isinstance(one, np.ndarray) else one for one in state)
        if self.outermost:
            self.strand.noted.clear()
        self.start = len(self.strand.noted)

    def _sleep(self, reads: tuple[Read, ...]) -> Wait:
        return Wait(
            lambda: any(read.changed() for read in reads), lambda: self._said(), self.site, False, reads, self.goes_on
        )

    def _reads(self) -> tuple[Read, ...] | None:
        """What the last turn has read; None where that is not known."""
        noted = self.strand.noted[self.start :]
        if not noted or any(one is None for one in noted):
            return None
        by_memory: dict[int, tuple[Array, list[Array]]] = {}
        for memory, index in noted:
            by_memory.setdefault(id(memory), (memory, []))[1].append(np.asarray(index, np.int64).reshape(-1))
        reads = [(memory, np.unique(np.concatenate(parts))) for memory, parts in by_memory.values()]
        if sum(len(index) for _, index in reads) > MOST_READ:
            return None
        return tuple(Read(memory, index) for memory, index in reads)

    def _said(self) -> Lack:
        return Lack("another value in memory than this loop reads", frozenset((VALUE,)))


class Questions:
    """Part of a strand."""

    def asking(self, site: int, goes_on: Callable[[], bool] | None = None) -> Asking:
        return Asking(self, site, goes_on)

    def goes_on(self, leaving: tuple[Array, ...], running: Array, broken: Array) -> bool:
        """Does no lane of a loop leave it now?  leaving: where it does; running, broken: as in the loop."""
        live = running if broken is False else self.minus(running, broken)
        if live is False:
            return False
        return not any((one if live is None else one & live).any() for one in leaving)

    def peek_global(self, array: Any, part: Array, start: int, bounds: Any) -> Array:
        """A load that is only to look; elements outside are 0."""
        index = start if part is None else part + start
        if bounds is None:
            return array.data[index]
        return np.where(bounds.ok, array.data[np.where(bounds.ok, index, 0)], 0)

    def peek_shared(self, dtype: Any, part: Array, start: int, bounds: Any) -> Array:
        """As `peek_global`."""
        index = start if part is None else part + start
        inside = True if bounds is None else bounds.ok
        flat = self._flat(np.where(inside, index, 0), np.dtype(dtype).itemsize)
        return np.where(inside, self.machine.view(dtype)[flat], 0)

    def note(self, memory: Array, index: Array) -> None:
        """An access that matters to those who ask, or that orders blocks; only where `noted` is a list."""
        self.noted.append((memory, index))
