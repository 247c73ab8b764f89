"""What the pipelines of a launch do, turn by turn: copies under way, and what each version of a tile holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tvm

from .context import LaunchContext
from .pipelines import Pipeline, Producer, wanted_stages
from .plan_pipelines import IN_TURN
from .rewrite import constant, dtype_of
from .spans import source_span

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


@dataclass(frozen=True)
class PipelineSteps:
    """One T.Pipelined loop.

    line, variable: of the loop.  wanted: stages that the text asks for; stages: versions of each tile, 1 for a loop
    that stays as it is, with the reason.  turns: how often it runs, None where that depends on arguments.  engine:
    "cp.async" in all threads, or "bulk" copies of a warp group of their own.  launch: its name, with several.
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

    def __str__(self) -> str:
        """The loop, the copies that start in each turn and what the versions hold: `*` in use, `>` under way."""
        tiles = ", ".join(copy.tile for group in self.groups for copy in group.copies)
        lines = [
            f"for {self.variable} (line {self.line}): " + (self._summary(tiles) if tiles else "no copy runs ahead")
        ]
        if self.reason:
            lines[0] += f" ({self.reason})"
        if self.ahead:
            rows = [("", "starts", *(f"version {version}" for version in range(self.stages)))]
            rows.append(self._row("before", None, self.held(-1)))
            shown = SHOWN_TURNS if self.turns is None else min(self.turns, SHOWN_TURNS)
            rows += [self._row(f"turn {turn}", turn, self.held(turn)) for turn in range(shown)]
            widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
            lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
            if self.turns is None or self.turns > shown:
                lines.append("  ...")
        lines += [f"  line {copy.line}: {copy.tile} is copied in its turn: {copy.reason}" for copy in self.staying]
        return "\n".join(lines)

    def _summary(self, tiles: str) -> str:
        how = {"cp.async": "asynchronous copies", "bulk": "bulk copies of a warp group of their own"}[self.engine]
        turns = f"{self.ahead} turn{'s' * (self.ahead > 1)}"
        return f"{self.stages} versions of {tiles}; {how} start {turns} before their use"

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
        first = range(self.ahead) if turn is None else range(turn + self.ahead, turn + self.ahead + 1)
        return tuple(one for one in first if self.ahead and (self.turns is None or one < self.turns))

    def held(self, turn: int) -> tuple[int | None, ...]:
        """For each version, the turn whose data it holds or awaits while a turn computes; None for none."""
        last = turn + self.ahead
        found: list[int | None] = [None] * self.stages
        for one in range(max(last - self.stages + 1, 0), last + 1):
            if self.turns is None or one < self.turns:
                found[one % self.stages] = one
        return tuple(found)


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
            StayingCopy(target.name, source.name, _line(copy.call.span), copy.reason)
        )
    plans = {plan.loop.loop_var: plan for plan in launch.facts.get("pipelines", ())}
    found = [_steps(plan, engine, tuple(staying.get(var, ())), symbol) for var, plan in plans.items()]
    for var, left in staying.items():
        if var not in plans:
            plan = Pipeline(loops[var], (), wanted_stages(loops[var]), 1, ())
            found.append(_steps(plan, engine, tuple(left), symbol))
    return tuple(sorted(found, key=lambda one: one.line or 0))


def _steps(plan: Pipeline, engine: str, staying: tuple[StayingCopy, ...], symbol: str) -> PipelineSteps:
    count = len(plan.groups)
    groups = tuple(
        CopyGroup(
            _line(plan.body[group[0].first_use].span),
            max((plan.stages - 1) * count - 1, 0) if number == 0 else plan.stages * count - number - 1,
            tuple(map(_copy, group)),
        )
        for number, group in enumerate(plan.groups)
    )
    return PipelineSteps(
        line=_line(plan.loop.span),
        variable=plan.loop.loop_var.name,
        wanted=plan.wanted,
        stages=plan.stages,
        turns=constant(plan.loop.extent),
        engine=engine,
        groups=groups if plan.stages > 1 else (),
        staying=staying,
        reason=plan.reason,
        launch=symbol,
    )


def _copy(producer: Producer) -> AheadCopy:
    tile = producer.target
    count = math.prod(int(extent) for extent in tile.shape)
    item = max(tvm.DataType(dtype_of(tile)).bits // 8, 1)
    return AheadCopy(tile.name, producer.call["source"].buffer.name, _line(producer.call.span), count * item)


def _line(span: Any) -> int | None:
    place = source_span(span)
    return None if place is None else place.line
