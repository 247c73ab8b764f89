"""What a pipelined loop does over time, as a chart: who copies, what each version of a tile holds, and who computes.

Columns are what the computing threads do one after the other, from before the loop on.  What that is, and which version
of a tile each part of it waits for and gives back, is the plan that lowering carried out.  Copies stand in the first
column in which they can start: with roles the copying thread starts them in their order, each as soon as the version
that it fills was given back; with cp.async the computing threads start them at the head of a turn.  When bytes arrive
only the device knows: a version is under way until it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

NEXT = "′"  # marks turns of the next execution of a loop
GAP = "…"
MARKS = {"copy": "+", "wait": ">", "use": "*"}
LEGEND = "+ the copy starts, > it is under way or there, * in use from its wait until it is given back"


@dataclass(frozen=True)
class ChartCell:
    """first, count: columns.  what: "copy" (started there), "wait" (under way), "use" (between its wait and its being
    given back), "barrier" or "run".  text: short; said: in words.  lines: of the cell of the notebook.
    """

    first: int
    count: int
    what: str
    text: str
    said: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChartLane:
    """A row: who or what it belongs to, its name, and what happens in it."""

    part: str
    name: str
    cells: tuple[ChartCell, ...]


@dataclass(frozen=True)
class Chart:
    """columns: names, each with the number of columns that share it."""

    columns: tuple[tuple[str, int], ...]
    lanes: tuple[ChartLane, ...]

    def rows(self) -> list[list[str]]:
        """As a table of text, a row for each column: `+` starts, `>` under way, `*` in use.

        The copies are where the versions are, so their own lanes are left out.
        """
        names = [name if not at else "" for name, count in self.columns for at in range(count)]
        lanes = [lane for lane in self.lanes if not (lane.cells[0].what == "copy" and lane.part not in lane.name)]
        table = [[name, *("" if name == GAP else "-" for _ in lanes)] for name in names]
        for place, lane in enumerate(lanes, 1):
            for cell in lane.cells:
                for column in range(cell.first, cell.first + cell.count):
                    table[column][place] = MARKS.get(cell.what, "") + cell.text
        return [["", *(lane.name for lane in lanes)], *table]


@dataclass(frozen=True)
class Ring:
    """Tiles that are copied and waited for together.

    versions: of each; 0 for tiles that are copied once and stay.  bytes: of one turn.  lines: of the copies.  full: the
    barrier, or the instruction, that is waited for; empty: the barrier where `warps` warps give a version back, for a
    ring of roles.  barrier: is `full` one, though nobody arrives to give back?  late: turns by which its copies stand
    behind those of the other rings, in the order of copies.  once: what is said of tiles that stay.
    """

    tiles: tuple[str, ...]
    versions: int
    bytes: int
    lines: tuple[int, ...]
    full: str
    empty: str = ""
    warps: int = 0
    barrier: bool = False
    late: int = 0
    once: str = "once"

    @property
    def name(self) -> str:
        return ", ".join(self.tiles)

    @property
    def has_barriers(self) -> bool:
        return self.barrier or bool(self.warps) or not self.versions


@dataclass(frozen=True)
class Phase:
    """What the computing threads do in one column; turns are counted over all executions of the loop.

    runs: (lane, turn or None, lines).  waits, releases: (number of the ring, turn).  jump: of a gap, the versions that
    were given back before its last, hidden, phase.
    """

    label: str
    runs: tuple[tuple[str, int | None, tuple[int, ...]], ...] = ()
    waits: tuple[tuple[int, int], ...] = ()
    releases: tuple[tuple[int, int], ...] = ()
    jump: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Drawing:
    """A chart in the making.

    turns: of one execution of the loop, total: of all; None where arguments decide.  early: how many versions are
    filled before the loop.  copying, computing: names of the parts.
    """

    rings: tuple[Ring, ...]
    phases: tuple[Phase, ...]
    turns: int | None
    total: int | None
    early: Callable[[Ring], int]
    copying: str
    computing: str

    def chart(self) -> Chart:
        """The chart."""
        lanes = [self._copies(number) for number in range(len(self.rings))]
        for number, ring in enumerate(self.rings):
            lanes += [self._version(number, version) for version in range(max(ring.versions, 1))]
            lanes += [self._waits(number), self._given_back(number)]
        lanes += self._work()
        columns: list[tuple[str, int]] = []
        for phase in self.phases:
            if columns and columns[-1][0] == phase.label != GAP:
                columns[-1] = (phase.label, columns[-1][1] + 1)
            else:
                columns.append((phase.label, 1))
        return Chart(tuple(columns), tuple(lane for lane in lanes if lane.cells))

    # ---- copies

    @cached_property
    def _released(self) -> list[tuple[int, ...]]:
        """For each column, the turns of every ring that were given back before it."""
        counts = [0] * len(self.rings)
        found = []
        for phase in self.phases:
            counts = list(phase.jump) if phase.jump is not None else counts
            found.append(tuple(counts))
            for number, turn in phase.releases:
                counts[number] = turn + 1
        return found

    @cached_property
    def _begun(self) -> list[tuple[int, ...]]:
        """For each column, the turns of every ring whose copies were started until its end: they start in order."""
        found = []
        for column, released in enumerate(self._released):
            room = [
                (count + ring.versions if column else self.early(ring)) if ring.versions else 1
                for count, ring in zip(released, self.rings)
            ]
            turns = [(count + ring.late, number) for number, (count, ring) in enumerate(zip(room, self.rings))]
            # The first copy that has to wait; a ring whose copies have all started holds up no other.
            waiting = [
                (count, number)
                for count, number in turns
                if self.rings[number].versions and (self.total is None or count - self.rings[number].late < self.total)
            ]
            last, stuck = min(waiting, default=(2 * self._end, 0))
            counts = [
                min(last - ring.late + (number < stuck), self._end) if ring.versions else 1
                for number, ring in enumerate(self.rings)
            ]
            found.append(tuple(max(count, 0) for count in counts))
        return found

    @property
    def _end(self) -> int:
        return 1 << 60 if self.total is None else self.total

    def _new(self, number: int, column: int) -> range:
        return range(self._begun[column - 1][number] if column else 0, self._begun[column][number])

    def _copies(self, number: int) -> ChartLane:
        ring, cells = self.rings[number], []
        for column, phase in enumerate(self.phases):
            new = self._new(number, column)
            if phase.label == GAP or not new:
                continue
            text = self._spans(new) if ring.versions else ring.once
            waited = [turn for turn in new if turn >= ring.versions and ring.warps]
            said = f"copies {ring.name}" + (f" of turn {text}" if ring.versions else "") + f", {ring.bytes:,} bytes"
            said += " each" if len(new) > 1 else ""
            if waited:
                said += f", when the warps have arrived at {ring.empty}[{waited[0] % ring.versions}]"
            cells.append(ChartCell(column, 1, "copy", text, said, ring.lines))
        return ChartLane(self.copying, ring.name, tuple(cells))

    def _version(self, number: int, version: int) -> ChartLane:
        ring, cells = self.rings[number], _Cells()
        every = max(ring.versions, 1)
        taken: set[int] = set()
        for column, phase in enumerate(self.phases):
            if phase.label == GAP:
                continue
            taken |= {turn for one, turn in phase.waits if one == number}
            new = self._new(number, column)
            for turn in range(self._released[column][number], self._begun[column][number]):
                if turn % every != version:
                    continue
                what = "copy" if turn in new else "use" if turn in taken else "wait"
                if not ring.versions:
                    words = {"copy": "is copied", "use": "stays", "wait": "is under way"}[what]
                    cells.add(column, what, "kept" if what == "use" else ring.once, f"{ring.name} {words}", ring.lines)
                    continue
                words = {"copy": "the copy starts", "use": "is read", "wait": "under way, or there"}[what]
                said = f"{ring.name}, version {version}: data of turn {self._named(turn)}, {words}"
                cells.add(column, what, self._named(turn), said, ring.lines)
        return ChartLane(ring.name, f"{ring.name} [{version}]" if ring.versions else ring.name, cells.made())

    def _waits(self, number: int) -> ChartLane:
        """Where the computing threads wait for the copies of a turn."""
        ring, cells = self.rings[number], []
        every = max(ring.versions, 1)
        for column, turn in self._turns_of(number, lambda phase: phase.waits):
            if ring.has_barriers:
                parity = f", parity {turn // every % 2}" if ring.versions else ""
                text = f"[{turn % every}]"
                said = f"waits at {ring.full}{text}{parity}, until {ring.bytes:,} bytes have arrived"
            else:
                text, said = self._named(turn), f"waits for the copies of turn {self._named(turn)}: {ring.full}"
            cells.append(ChartCell(column, 1, "barrier", text, said, ring.lines))
        return ChartLane(ring.name, ring.full if ring.has_barriers else "wait_group", tuple(cells))

    def _given_back(self, number: int) -> ChartLane:
        """Where they say that a version may be filled again; nowhere without roles."""
        ring, cells = self.rings[number], []
        for column, turn in self._turns_of(number, lambda phase: phase.releases) if ring.warps else ():
            text = f"[{turn % ring.versions}]"
            said = (
                f"{ring.warps} warps arrive at {ring.empty}{text}: version {turn % ring.versions} may be filled again"
            )
            cells.append(ChartCell(column, 1, "barrier", text, said, ring.lines))
        return ChartLane(ring.name, ring.empty, tuple(cells))

    def _turns_of(
        self, number: int, events: Callable[[Phase], tuple[tuple[int, int], ...]]
    ) -> Iterator[tuple[int, int]]:
        """(column, turn) of a ring's events."""
        for column, phase in enumerate(self.phases):
            for one, turn in events(phase) if phase.label != GAP else ():
                if one == number:
                    yield column, turn

    # ---- work

    def _work(self) -> list[ChartLane]:
        lanes: dict[str, _Cells] = {}
        for column, phase in enumerate(self.phases):
            for name, turn, lines in phase.runs if phase.label != GAP else ():
                text = "runs" if turn is None else self._named(turn)
                said = name if turn is None else f"{name}, of turn {text}"
                lanes.setdefault(name, _Cells()).add(column, "run", text, said, lines)
        return [ChartLane(self.computing, name, cells.made()) for name, cells in lanes.items()]

    # ---- words

    def _named(self, turn: int) -> str:
        """A turn as its execution of the loop counts it."""
        return str(turn) if self.turns is None or turn < self.turns else f"{turn % self.turns}{NEXT}"

    def _spans(self, turns: Sequence[int]) -> str:
        """`0–2`, or one after the other where an execution of the loop begins among them."""
        names = [self._named(turn) for turn in turns]
        alike = names[0].endswith(NEXT) == names[-1].endswith(NEXT)
        return f"{names[0]}–{names[-1]}" if len(names) > 2 and alike else ", ".join(names)


class _Cells:
    """Cells of a lane; equal neighbours are one."""

    def __init__(self) -> None:
        self.found: list[ChartCell] = []

    def add(self, column: int, what: str, text: str, said: str, lines: Iterable[int]) -> None:
        last = self.found[-1] if self.found else None
        if last is not None and (last.what, last.text) == (what, text) and last.first + last.count == column:
            joined = tuple(dict.fromkeys((*last.lines, *lines)))
            self.found[-1] = ChartCell(last.first, last.count + 1, what, text, said, joined)
        else:
            self.found.append(ChartCell(column, 1, what, text, said, tuple(lines)))

    def made(self) -> tuple[ChartCell, ...]:
        return tuple(self.found)
