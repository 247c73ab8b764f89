"""Fragments that several parts of `T.ws` use: registers are each thread's own, so each part gets a tile of its own.

Before: one allocation, used inside of `T.ws(0)` and `T.ws(1)`, as in a compile-time loop over warp groups.  After: one
for each of them.  A part that reads what another one wrote, or what all threads did, is refused: registers do not go
from one warp group to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_effects import WRITTEN
from tilelang_nb.language.tile_program import RegionOperand, operation_name, read
from tilelang_nb.source import catalogue as say

from .context import FRAGMENT, LaunchContext, ThreadSet
from .nests import WARP_GROUP, is_part, threads_of_part
from .rewrite import dtype_of, each_statement, loads, map_children, scope, sequence, statements, substitute
from .uninitialised import reads_target
from .views import root, views

PARTS = "fragments of parts"  # the fact: fragment -> the OwnTiles that its parts have


@dataclass(frozen=True)
class OwnTiles:
    """groups: "0 and 1", the parts of the text, each with a tile of its own.  span: of the allocation."""

    groups: str
    span: Any


@dataclass
class _Uses:
    """Of one fragment: by part in the order of the text, whether its first use reads, and where that is.

    outside: used by all threads, or through a view or a reducer, which no part has of its own.
    """

    parts: dict[ThreadSet, tuple[bool, Any]] = field(default_factory=dict)
    outside: bool = False


def own_fragments(function: Any, launch: LaunchContext) -> Any:
    """The launch with a fragment for each part that fills its own; TL210 where a part reads what it has not filled."""
    if not any(is_part(one) for one in each_statement(function.body)):
        return function
    uses = _Reader(function.body, launch).uses
    shared = {buffer: found for buffer, found in uses.items() if len(found.parts) > 1}
    own: dict[ThreadSet, dict[Any, Any]] = {}
    copies: dict[Any, list[Any]] = {}
    told = launch.facts.setdefault(PARTS, {})
    for buffer, found in shared.items():
        reading = next((at for at, (reads, _) in found.parts.items() if reads), None)
        if found.outside or reading is not None:
            _refuse(buffer, found, reading, launch)
            continue
        for part in list(found.parts)[1:]:
            copy = tir.decl_buffer(list(buffer.shape), dtype_of(buffer), buffer.name, scope=FRAGMENT, layout=None)
            own.setdefault(part, {})[buffer] = copy
            copies.setdefault(buffer, []).append(copy)
            if buffer in launch.wanted:
                launch.wanted[copy] = launch.wanted[buffer]
        told[buffer] = OwnTiles(_names(found.parts), None)
    if not copies:
        return function
    body = _split(function.body, own, copies, launch)
    for one in each_statement(body):
        if isinstance(one, tir.AllocBuffer) and one.buffer in told:
            told[one.buffer] = OwnTiles(told[one.buffer].groups, one.span)
    return function.with_body(body)


def _refuse(buffer: Any, found: _Uses, reading: ThreadSet | None, launch: LaunchContext) -> None:
    parts = list(found.parts)
    at = reading if reading is not None and reading != parts[0] else parts[1]
    problem = f"warp groups {_names(found.parts)} use the fragment `{buffer.name}`, and registers are each group's own"
    remedy = "give each a fragment of its own, or put what they share into a tile by `T.alloc_shared`"
    launch.report(say.ThreadMapping(problem=problem, remedy=remedy), found.parts[at][1])


def _names(parts: Any) -> str:
    """ "0 and 1" for two parts of a warp group each."""
    names = [
        str(part.base // WARP_GROUP)
        if part.count == WARP_GROUP
        else f"{part.base // WARP_GROUP} to {(part.base + part.count) // WARP_GROUP - 1}"
        for part in parts
    ]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _split(node: Any, own: dict[ThreadSet, dict[Any, Any]], copies: dict[Any, list[Any]], launch: LaunchContext) -> Any:
    if is_part(node):
        part = threads_of_part(node, launch)
        mine = own.get(part, {}) if part is not None else {}
        return substitute(node, mine)
    if isinstance(node, tir.AllocBuffer) and node.buffer in copies:
        more = [tir.AllocBuffer(copy, node.annotations, node.span) for copy in copies[node.buffer]]
        return sequence([node, *more], node.span)
    if isinstance(node, tir.SeqStmt):
        before = statements(node)
        after = [_split(one, own, copies, launch) for one in before]
        return node if all(a.same_as(b) for a, b in zip(after, before)) else sequence(after, node.span)
    return map_children(node, lambda one: _split(one, own, copies, launch))


class _Reader:
    """uses: of each fragment."""

    def __init__(self, body: Any, launch: LaunchContext):
        self.uses: dict[Any, _Uses] = {}
        self.launch = launch
        self.sources = views(body)
        self._statement(body, None)
        for view in self.sources:
            owner = root(view, self.sources)
            if owner in self.uses:
                self.uses[owner].outside = True

    def _statement(self, node: Any, part: ThreadSet | None) -> None:
        if is_part(node):
            part = threads_of_part(node, self.launch) or part
        for buffer, reads in _accesses(node):
            self._note(root(buffer, self.sources), reads, part, node.span)

        def visit(child: Any) -> Any:
            self._statement(child, part)
            return child

        map_children(node, visit)

    def _note(self, buffer: Any, reads: bool, part: ThreadSet | None, span: Any) -> None:
        if scope(buffer) != FRAGMENT:
            return
        found = self.uses.setdefault(buffer, _Uses())
        if part is None:
            found.outside = True
        else:
            found.parts.setdefault(part, (reads, span))


def _accesses(node: Any) -> Iterator[tuple[Any, bool]]:
    """(buffer, whether it is read) of a statement without those inside it, reads first."""
    kind = type(node)
    if kind is tir.BufferStore:
        for part in (*node.indices, node.value):
            yield from ((load.source, True) for load in loads(part))
        yield node.buffer, False
    elif kind is tir.Evaluate and operation_name(node.value) is not None:
        yield from _of_operation(node)
    else:
        parts = {
            tir.Evaluate: ("value",),
            tir.Bind: ("value",),
            tir.IfThenElse: ("condition",),
            tir.While: ("condition",),
            tir.For: ("min", "extent"),
        }.get(kind, ())
        for name in parts:
            yield from ((load.source, True) for load in loads(getattr(node, name)))


def _of_operation(node: Any) -> Iterator[tuple[Any, bool]]:
    call = read(node.value, node.span)
    if call.name == "annotate_layout":
        return
    written = WRITTEN.get(call.name, ())
    reading = reads_target(call)
    for name, value in call.operands.items():
        if isinstance(value, RegionOperand):
            for index in value.begin:
                yield from ((load.source, True) for load in loads(index))
            if name not in written or reading:
                yield value.buffer, True
        elif value is not None and not isinstance(value, str):
            yield from ((load.source, True) for load in loads(value))
    for name in written:
        value = call.operands.get(name)
        if isinstance(value, RegionOperand):
            yield value.buffer, False
