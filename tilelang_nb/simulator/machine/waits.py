"""What strands wait for, and their turns: whichever is ready goes on.  Nothing ready is a deadlock."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# What keeps a strand from going on.
ARRIVALS, SURPLUS, UNKNOWN_BYTES, MISSING_BYTES = "arrivals", "surplus of arrivals", "bytes", "bytes of no copy"
CLUSTER, REGISTERS, VALUE = "barrier of a cluster", "registers", "value in memory"


SHOWN = 4  # strands that a finding names


@dataclass(frozen=True)
class Lack:
    """What a strand waits for, for people to read.  kinds: of those above, for each strand that waits."""

    text: str
    kinds: frozenset[str] = frozenset((ARRIVALS,))


@dataclass(frozen=True)
class Wait:
    """What a blocked strand yields.

    said: what it waits for at the time of asking, as others may have come meanwhile; told: it says for whom, too.
    reads: elements of which another thread must change one (`asking.py`), where nothing else makes it ready, or ().
    goes_on: whether it would wait again; None where that is not known.
    """

    ready: Callable[[], bool]
    said: Callable[[], Lack]
    site: int
    told: bool = False
    reads: tuple[Any, ...] = ()
    goes_on: Callable[[], bool] | None = None


class Deadlock(Exception):
    """No strand can go on; `lack` lists what each one waits for."""

    def __init__(self, lack: Lack, site: int):
        super().__init__(lack.text)
        self.lack, self.site = lack, site


def in_turns(
    strands: list[tuple[Any, Generator[Wait, None, None]]],
    backwards: bool,
    ended: Callable[[Any], None],
    alarms: Any = None,
) -> Iterator[list[tuple[Any, Wait]]]:
    """Run strands, whichever is ready, until all have ended.  Yields what they wait for where none is ready.

    backwards: the last ones first.  ended: told each strand that has.  alarms: where those sleep who wait for a value
    in memory; None: they are asked again and again, as others are.
    """
    waiting: dict[Any, Wait] = {}
    running = dict(reversed(strands) if backwards else strands)
    awake = dict(running)

    def goes_on(strand: Any) -> None:
        try:
            wait = waiting[strand] = next(running[strand])
        except StopIteration:
            del running[strand]
            awake.pop(strand, None)
            ended(strand)
            return
        if alarms is not None and wait.reads:
            awake.pop(strand, None)
            alarms.set(strand, wait.reads, wait.goes_on)
        else:
            awake[strand] = running[strand]

    while running:
        moved = False
        for strand in list(awake):
            wait = waiting.get(strand)
            if wait is None or wait.ready():
                moved = True
                goes_on(strand)
        while alarms is not None and (strand := alarms.next()) is not None:
            moved = True
            goes_on(strand)
        if not moved:
            yield [(strand, waiting[strand]) for strand in running]


def wait_of_all(blocked: list[tuple[Any, Wait]]) -> Wait:
    """Ready when one of the strands is."""

    def said() -> Lack:
        return joined(blocked, lambda strand, text, told: text if told else f"{_named(strand.threads)} {text}")

    reads = tuple(read for _, wait in blocked for read in wait.reads) if all(wait.reads for _, wait in blocked) else ()
    return Wait(lambda: any(wait.ready() for _, wait in blocked), said, blocked[0][1].site, True, reads)


def joined(blocked: list[tuple[Any, Wait]], text: Callable[[Any, str, bool], str]) -> Lack:
    """What several strands wait for.  text: of one, from the strand, what it lacks, and whether that says for whom."""
    lacks = [(strand, wait.said(), wait.told) for strand, wait in blocked]
    texts = [text(strand, lack.text, told) for strand, lack, told in lacks]
    if len(texts) > SHOWN:
        texts[SHOWN:] = [f"{len(texts) - SHOWN} more wait"]
    return Lack("; ".join(texts), frozenset().union(*(lack.kinds for _, lack, _ in lacks)))


def _named(threads: np.ndarray) -> str:
    """The subject and verb of what some threads wait for."""
    if len(threads) == 1:
        return f"thread {threads[0]} waits for"
    return f"threads {threads[0]} to {threads[-1]} wait for"
