"""What the pipelines of a launch do, turn by turn: copies under way, and what each version of a tile holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang_nb.language.tile_program import TileCall

from .context import LaunchContext
from .hopper.copies_ahead import AHEAD
from .pipeline_chart import LEGEND, Chart
from .pipeline_phases import chart_of, chart_of_copies, copies_of
from .pipeline_picture import loop_html
from .pipelines import Pipeline, tile_bytes, wanted_stages
from .plan_pipelines import IN_TURN
from .rewrite import constant
from .spans import line_of

SHOWN_TURNS = 6  # of a picture


@dataclass(frozen=True)
class AheadCopy:
    """A copy that runs ahead: its tile and source by name, its line in the cell, bytes of one turn."""

    tile: str
    source: str
    line: int | None
    bytes: int


@dataclass(frozen=True)
class CopyGroup:
    """Copies that are waited for together.

    waits_at: line of the statement that first needs them.  pending: later groups that may still be under way then.
    """

    waits_at: int | None
    pending: int
    copies: tuple[AheadCopy, ...]


@dataclass(frozen=True)
class StayingCopy:
    """A copy that is made in its turn, and why."""

    tile: str
    source: str
    line: int | None
    reason: str


@dataclass(frozen=True, repr=False)
class PipelineSteps:
    """One T.Pipelined loop.

    line, variable: of the loop.  wanted: stages that the text asks for; stages: versions of each tile, 1 for a loop
    that stays as it is, with the reason.  turns: how often it runs, None where that depends on arguments.  engine:
    "cp.async" in all threads, "T.tma_copy" of the text, or "bulk" copies of a warp group of their own.  launch: its
    name, with several.  chart: what happens over time, None where no copy runs ahead.
    """

    line: int | None
    variable: str
    wanted: int
    stages: int
    turns: int | None
    engine: str
    groups: tuple[CopyGroup, ...]
    staying: tuple[StayingCopy, ...] = ()
    reason: str = ""
    launch: str = ""
    chart: Chart | None = None

    def __str__(self) -> str:
        """The loop, the copies that start in each turn and what the versions hold: `*` in use, `>` under way."""
        lines = [self.headline]
        if self.chart is not None and self.engine == "bulk":
            lines += _aligned(self.chart.rows())
            lines.append(f"  {LEGEND}")
        elif self.ahead:
            rows = [("", "starts", *(f"version {version}" for version in range(self.stages)))]
            rows.append(self._row("before", None, self.held(-1)))
            shown = SHOWN_TURNS if self.turns is None else min(self.turns, SHOWN_TURNS)
            rows += [self._row(f"turn {turn}", turn, self.held(turn)) for turn in range(shown)]
            lines += _aligned(rows)
            if self.turns is None or self.turns > shown:
                lines.append("  ...")
        return "\n".join([*lines, *(f"  {line}" for line in self.left_behind)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return loop_html(self)

    @property
    def headline(self) -> str:
        """The loop in a line."""
        tiles = ", ".join(copy.tile for group in self.groups for copy in group.copies)
        said = self._summary(tiles) if tiles else "no copy runs ahead"
        return f"for {self.variable} (line {self.line}): {said}" + (f" ({self.reason})" if self.reason else "")

    @property
    def left_behind(self) -> tuple[str, ...]:
        """A line for each copy that is made in its turn."""
        return tuple(f"line {copy.line}: {copy.tile} is copied in its turn: {copy.reason}" for copy in self.staying)

    def _summary(self, tiles: str) -> str:
        versions = f"{self.stages} version{'s' * (self.stages > 1)} of {tiles}"
        if self.engine == "bulk":
            return f"{versions}; a warp group of its own fills each by bulk copies when it was given back"
        turns = f"{self.ahead} turn{'s' * (self.ahead > 1)}"
        what = "`T.tma_copy` starts" if self.engine == "T.tma_copy" else "asynchronous copies start"
        return f"{versions}; {what} {turns} before their use"

    def _row(self, name: str, turn: int | None, held: tuple[int | None, ...]) -> tuple[str, ...]:
        starts = ", ".join(map(str, self.started(turn))) or "-"
        marks = ["-" if one is None else f"*{one}" if one == turn else f">{one}" for one in held]
        return (name, starts, *marks)

    @property
    def ahead(self) -> int:
        """How many turns before its use a copy is started."""
        return self.stages - 1 if self.groups else 0

    def started(self, turn: int | None) -> tuple[int, ...]:
        """The turns whose copies start in a turn; None for before the loop."""
        if self.engine == "bulk":  # a version is filled again when its turn is over
            first = range(self.stages) if turn is None else range(turn + self.stages - 1, turn + self.stages)
            first = range(0) if turn == 0 or not self.groups else first
        else:
            first = range(self.ahead) if turn is None else range(turn + self.ahead, turn + self.ahead + 1)
            first = first if self.ahead else range(0)
        return tuple(one for one in first if self.turns is None or one < self.turns)

    def held(self, turn: int) -> tuple[int | None, ...]:
        """For each version, the turn whose data it holds or awaits while a turn computes; None for none."""
        last = max(turn, 0) + self.ahead if self.engine == "bulk" else turn + self.ahead
        found: list[int | None] = [None] * self.stages
        for one in range(max(last - self.stages + 1, 0), last + 1):
            if self.turns is None or one < self.turns:
                found[one % self.stages] = one
        return tuple(found)


class Pipelines(tuple[PipelineSteps, ...]):
    """The loops of a kernel.  Printed, a table for each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no T.Pipelined loops"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(loop_html, self)) or "no T.Pipelined loops"


def _aligned(rows: list[tuple[str, ...]] | list[list[str]]) -> list[str]:
    """Rows of text in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def pipeline_steps(launch: LaunchContext, several: bool) -> tuple[PipelineSteps, ...]:
    """All pipelined loops of a launch, in the order of the text.  several: the kernel has more launches."""
    symbol = str(launch.function.attrs["global_symbol"]) if several else ""
    # A launch that is divided into roles has their tiles there; a text says why it is not.
    engine = "bulk" if launch.facts.get("roles") and not isinstance(launch.facts["roles"], str) else "cp.async"
    staying: dict[Any, list[StayingCopy]] = {}
    loops: dict[Any, Any] = {}
    for copy in launch.facts.get(IN_TURN, ()):
        source, target = copy.call["source"].buffer, copy.call["target"].buffer
        loops[copy.loop.loop_var] = copy.loop
        staying.setdefault(copy.loop.loop_var, []).append(
            StayingCopy(target.name, source.name, line_of(copy.call.span), copy.reason)
        )
    plans = {plan.loop.loop_var: plan for plan in launch.facts.get("pipelines", ())}
    found = [_steps(plan, engine, tuple(staying.get(var, ())), symbol, launch) for var, plan in plans.items()]
    found += [_copies_by_hand(loop, stages, symbol) for loop, stages in launch.facts.get(AHEAD, ())]
    for var, left in staying.items():
        if var not in plans:
            plan = Pipeline(loops[var], (), wanted_stages(loops[var]), 1, ())
            found.append(_steps(plan, engine, tuple(left), symbol, launch))
    return tuple(sorted(found, key=lambda one: one.line or 0))


def _steps(
    plan: Pipeline, engine: str, staying: tuple[StayingCopy, ...], symbol: str, launch: LaunchContext
) -> PipelineSteps:
    count = len(plan.groups)
    groups = tuple(
        CopyGroup(
            line_of(plan.body[group[0].first_use].span),
            max((plan.stages - 1) * count - 1, 0) if number == 0 else plan.stages * count - number - 1,
            tuple(_copy(producer.call, producer.target) for producer in group),
        )
        for number, group in enumerate(plan.groups)
    )
    return PipelineSteps(
        line=line_of(plan.loop.span),
        variable=plan.loop.loop_var.name,
        wanted=plan.wanted,
        stages=plan.stages,
        turns=constant(plan.loop.extent),
        engine=engine,
        groups=groups if plan.stages > 1 or engine == "bulk" else (),
        staying=staying,
        reason=plan.reason,
        launch=symbol,
        chart=chart_of(plan, launch),
    )


def _copies_by_hand(loop: Any, stages: int, symbol: str) -> PipelineSteps:
    """A loop whose `T.tma_copy` start ahead."""
    copies = tuple(_copy(call, call["target"].buffer) for call in copies_of(loop))
    return PipelineSteps(
        line=line_of(loop.node.span),
        variable=loop.node.loop_var.name,
        wanted=wanted_stages(loop.node),
        stages=stages,
        turns=constant(loop.node.extent),
        engine="T.tma_copy",
        groups=(CopyGroup(line_of(loop.body[loop.waits[0]].span), stages - 1, copies),),
        reason="" if stages == wanted_stages(loop.node) else "more stages do not fit into shared memory",
        launch=symbol,
        chart=chart_of_copies(loop, stages),
    )


def _copy(call: TileCall, tile: Any) -> AheadCopy:
    return AheadCopy(tile.name, call["source"].buffer.name, line_of(call.span), tile_bytes(tile))
