"""Charts of roles say what the lowered program does: both roles are walked, statement by statement, and what they wait
for, give back and copy is compared with the chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from lowering.hopper import ROLES, attention, matmul
from tvm import tirx as tir
from tvm.sym import Analyzer

from tilelang_nb.language.tile_program import operation_name, read
from tilelang_nb.lowering.barriers import WARP_GROUPS
from tilelang_nb.lowering.launches import THREAD_EXTENT
from tilelang_nb.lowering.rewrite import substitute

CASES: dict[str, Callable[[], Any]] = {
    "matmul": lambda: matmul(128, 256, 512, stages=3),
    "four stages": lambda: matmul(128, 256, 320, bk=32, stages=4, tb=True),
    "stays": lambda: matmul(256, 512, 512, stages=3, out="float16", options={**ROLES, "tl.persistent_blocks": 2}),
    "attention": lambda: attention(seq=768),
    "attention, three stages": lambda: attention(seq=640, dim=64, stages=3),
    "attention in turn": lambda: attention(seq=384, options={**ROLES, "tl.products_in_turn": True}),
}
case_of = cache(lambda name: CASES[name]())
Event = tuple[str, str, int]  # what, of which barrier or tile, in which version


class Walk:
    """The statements that one thread of block 0 executes, in their order."""

    def __init__(self, function: Any, thread: int):
        self.values: dict[Any, int] = {}
        self.thread = thread
        self.analyzer = Analyzer()
        self.events = list(self.statement(function.body))

    def number(self, expr: Any) -> int:
        """The value of an expression over what is bound."""
        if isinstance(expr, int):
            return expr
        known = {var: tir.const(value, var.ty.dtype) for var, value in self.values.items()}
        found = self.analyzer.simplify(substitute(expr, known))
        assert isinstance(found, tir.IntImm), f"{expr} is {found}"
        return int(found.value)

    def statement(self, node: Any) -> Iterator[Event]:
        if isinstance(node, tir.SeqStmt):
            for one in node.seq:
                yield from self.statement(one)
        elif isinstance(node, tir.AttrStmt):
            if node.attr_key == THREAD_EXTENT:
                self.values[node.node.var] = self.thread if str(node.node.thread_tag) == "threadIdx.x" else 0
            groups = str(getattr(node.value, "value", node.value)).split(",")
            if node.attr_key != WARP_GROUPS or str(self.thread // 128) in groups:
                yield from self.statement(node.body)
        elif isinstance(node, tir.Bind):
            self.values[node.var] = self.number(node.value)
        elif isinstance(node, tir.For) and int(node.kind) in (tir.ForKind.SERIAL, tir.ForKind.UNROLLED):
            low = self.number(node.min)
            for turn in range(low, low + self.number(node.extent)):
                self.values[node.loop_var] = turn
                yield from self.statement(node.body)
        elif isinstance(node, tir.IfThenElse):
            taken = node.then_case if self.number(node.condition) else node.else_case
            if taken is not None:
                yield from self.statement(taken)
        elif isinstance(node, tir.Evaluate) and operation_name(node.value) is not None:
            yield from self.operation(read(node.value))

    def operation(self, call: Any) -> Iterator[Event]:
        if call.name in ("barrier_wait", "barrier_arrive"):
            barrier = call["barrier"]
            yield call.name, barrier.buffer.name, self.number(barrier.begin[0])
        elif call.name == "tensor_load":
            target = call["target"]
            versions = len(target.buffer.shape) > 2
            yield call.name, target.buffer.name, self.number(target.begin[0]) if versions else 0


def divided(case: Any) -> Any:
    """The launch as the stage leaves it that divides it."""
    (module,) = [one.module for one in case.lowered.snapshots if one.name == "plan-pipelines"]
    (function,) = module.functions.values()
    return function


def of_chart(loop: Any) -> list[Event]:
    """What the computing threads wait for and give back, column by column."""
    found: list[tuple[int, int, Event]] = []
    for lane in loop.chart.lanes:
        for cell in lane.cells:
            if cell.what == "barrier":
                gives = "arrive at" in cell.said
                what = "barrier_arrive" if gives else "barrier_wait"
                found.append((cell.first, int(gives), (what, lane.name, int(cell.text[1:-1]))))
    return [event for _, _, event in sorted(found, key=lambda one: one[:2])]


def starts_of_chart(loop: Any) -> dict[str, list[int]]:
    """For each group of tiles, how many turns of copies have started by the end of each column."""
    width = sum(count for _, count in loop.chart.columns)
    counts: dict[str, list[int]] = {}
    for lane in loop.chart.lanes:
        if lane.cells[0].what == "copy" and lane.part != lane.name and not lane.name.endswith("]"):
            new = {cell.first: _turns(cell.text) for cell in lane.cells}
            total, counts[lane.name] = 0, []
            for column in range(width):
                total += new.get(column, 0)
                counts[lane.name].append(total)
    return counts


def _turns(text: str) -> int:
    if "–" in text:
        first, last = (int(one.rstrip("′")) for one in text.split("–"))
        return last - first + 1
    return len(text.split(", "))


@pytest.mark.parametrize("name", CASES)
def test_the_computing_threads_wait_and_give_back_as_the_chart_says(name: str) -> None:
    case = case_of(name)
    (loop,) = case.lowered.pipelines
    function = divided(case)
    events = [event for event in Walk(function, 0).events if event[0] != "tensor_load"]
    told = of_chart(loop)
    assert len(told) > 8 and "…" not in {label for label, _ in loop.chart.columns}
    # Blocks that stay go on with their next work, of which the chart shows the beginning.
    assert events[: len(told)] == told and (len(events) == len(told) or name == "stays")


@pytest.mark.parametrize("name", CASES)
def test_copies_start_where_the_chart_says_as_early_as_the_barriers_let_them(name: str) -> None:
    case = case_of(name)
    (loop,) = case.lowered.pipelines
    function = divided(case)
    events = Walk(function, 256).events
    counts = starts_of_chart(loop)
    rings = {ring.split(", ")[0]: ring for ring in counts}  # by their first tile
    order = [rings[tile] for what, tile, _ in events if what == "tensor_load" and tile in rings]
    given: dict[str, set[int]] = {}
    for lane in loop.chart.lanes:
        for cell in lane.cells:
            if cell.what == "barrier" and "arrive at" in cell.said:
                given.setdefault(lane.part, set()).add(cell.first)
    width = sum(count for _, count in loop.chart.columns)
    for column in range(width):
        started: dict[str, int] = dict.fromkeys(counts, 0)
        for ring in order:
            released = len({at for at in given.get(ring, ()) if at < column})
            if ring in given and started[ring] >= loop.stages + released:
                break  # the copying thread waits here
            started[ring] += 1
        assert started == {ring: found[column] for ring, found in counts.items()}, column
