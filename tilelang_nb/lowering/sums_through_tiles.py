"""Sums of a product that later statements read in a layout that its registers do not have: they go through a shared
tile once, after the last statement that changes them, and those statements read the tile.

The product keeps its registers, and the launch its roles.  Only sums whose product is over by then can be copied: a
statement that waits for products counts as one that changes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation, operation_name, region

from .context import SHARED, LaunchContext
from .loop_effects import Effects
from .rewrite import dtype_of, map_children, sequence, statements, substitute
from .views import root, views

# Facts of a launch.
THROUGH_TILES = "sums through tiles"  # fragment -> ThroughTile
_TRIED = "sums tried through tiles"  # the fragments that were asked for
_BEFORE = "tile program before sums through tiles"
_INSTEAD = "sums through tiles instead of others"  # fragment -> those for which it went there


@dataclass(frozen=True)
class ThroughTile:
    """tile: what later statements read.  span: of the first of them."""

    tile: Any
    span: Any


def put_through_tiles(buffers: set[Any], launch: LaunchContext) -> bool:
    """Let later statements read tiles in the place of these fragments; True if there are such for one of them.

    A fragment for which that did not help is not tried again.
    """
    tried: set[Any] = launch.facts.setdefault(_TRIED, set())
    original = launch.facts.setdefault(_BEFORE, launch.facts["tile"])
    through: dict[Any, ThroughTile] = launch.facts.setdefault(THROUGH_TILES, {})
    failed = buffers & through.keys()
    for buffer in failed:
        del through[buffer]
    asked = [*through, *sorted(buffers - tried, key=lambda buffer: str(buffer.name))]
    tried |= buffers
    body, made = original.body, {}
    for buffer in asked:
        attempt = _Split(buffer, body, launch, through.get(buffer))
        body = attempt.statement(body)
        if attempt.made is not None:
            made[buffer] = attempt.made
    through.clear()
    through.update(made)
    launch.facts["tile"] = original if body.same_as(original.body) else original.with_body(body)
    return bool(failed) or bool(buffers & made.keys())


def put_others_through_tiles(buffers: set[Any], others: set[Any], launch: LaunchContext) -> bool:
    """The same for one of the others, which then leaves the loops that these fragments stay in; what did not help is
    taken back.  True if something changed.
    """
    instead: dict[Any, set[Any]] = launch.facts.setdefault(_INSTEAD, {})
    for other in [one for one, helped in instead.items() if helped & buffers]:
        del instead[other]
        if put_through_tiles({other}, launch):
            return True
    for other in sorted(others - launch.facts[_TRIED], key=lambda buffer: str(buffer.name)):
        if put_through_tiles({other}, launch):
            instead[other] = set(buffers)
            return True
    return False


class _Split:
    """One fragment.  made: what was done, None for nothing."""

    def __init__(self, buffer: Any, body: Any, launch: LaunchContext, before: ThroughTile | None):
        self.buffer, self.launch = buffer, launch
        self.sources = views(body)
        self.tile = before.tile if before is not None else None
        self.made: ThroughTile | None = None
        self.is_viewed = any(root(view, self.sources).same_as(buffer) for view in self.sources)

    def statement(self, node: Any) -> Any:
        """Descend to the sequence whose statements share the fragment."""
        if self.is_viewed or self.made is not None:
            return node
        if not isinstance(node, tir.SeqStmt):
            return map_children(node, self.statement)
        parts = statements(node)
        using = [at for at, part in enumerate(parts) if self._uses(part)]
        if len(using) < 2:
            return map_children(node, self.statement)
        changing = [at for at in using if self._changes(parts[at])]
        waiting = [at for at, part in enumerate(parts) if _waits(part)]
        last = max([*changing, *waiting], default=-1)
        readers = [at for at in using if at > last]
        if not changing or not readers:
            return node
        return self._through_tile(parts, readers[0], node.span)

    def _through_tile(self, parts: list[Any], first: int, span: Any) -> Any:
        source, where = self.buffer, parts[first].span
        if self.tile is None:
            name = self.launch.fresh(f"{source.name}_tile")
            self.tile = tir.decl_buffer(list(source.shape), dtype_of(source), name, scope=SHARED, layout=None)
        start = [tir.const(0, "int32")] * len(source.shape)
        whole = [region(one, start, list(source.shape)) for one in (source, self.tile)]
        self.made = ThroughTile(self.tile, where)
        return sequence(
            [
                *parts[:first],
                tir.AllocBuffer(self.tile, None, where),
                tir.Evaluate(operation("copy", *whole), where),
                *(substitute(part, {source: self.tile}) for part in parts[first:]),
            ],
            span,
        )

    def _uses(self, node: Any) -> bool:
        if isinstance(node, tir.AllocBuffer):
            return False
        effects = Effects(node, self.sources)
        return any(self.buffer in part for part in (effects.reads, effects.writes, effects.other))

    def _changes(self, node: Any) -> bool:
        return self.buffer in Effects(node, self.sources).writes


def _waits(node: Any) -> bool:
    """Does a statement wait for products?"""
    found: list[Any] = []

    def look(call: Any) -> None:
        if operation_name(call) == "wait_wgmma":
            found.append(call)

    tvm_ffi.structural_walk(node, (tvm.ir.Call, look))
    return bool(found)
