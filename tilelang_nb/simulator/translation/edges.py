"""Counting of what guards keep from happening: accesses of global memory beyond the edge of a buffer.

The lowering says which accesses of which statements it put under a condition.  A choice around such a load, and an `if`
around such a store, count the lanes that the condition keeps out; a user's own condition around the same access is not
counted.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx as tir

from .inspection import extern_name, variables
from .values import Storage, Value, place_of

Guard = tuple[str, str, tuple[int, int, int, int]]  # kind of access, buffer, place of the statement


def guarded(kind: str, buffer: str, place: Any, guards: frozenset[Guard]) -> str:
    """The kind of a guarded access, "safe read" where it gives a safe value; "" where it has no guard."""
    return next((known for known in (kind, f"safe {kind}") if (known, buffer, place) in guards), "")


class Edges:
    """Part of a translator.  guards: what the lowering says."""

    guards: frozenset[Guard]

    def count_kept_load(self, node: Any, condition: Value, outer: str | None) -> None:
        """A choice of `node` where the condition holds.

        outer: the mask of the lanes that choose; that of those for which it holds is the mask at hand.
        """
        if not self.guards or not self.checks:
            return
        kind = "read"
        if extern_name(node).startswith(("tl_atomic", "atomic")):
            kind, node = "atomic", self.pointer_load(node.args[1])
        if isinstance(node, tvm.ir.TensorLoad):
            self._count_kept(kind, node.source, list(node.indices), condition, outer)

    def count_kept_store(self, node: Any, condition: Value, outer: str | None) -> None:
        """An `if` whose body is a store, an atomic operation, or a vector of stores.  outer: as for a load."""
        if not self.guards or not self.checks or node.else_case is not None:
            return
        body, vectors = node.then_case, 1
        while isinstance(body, tir.For) and isinstance(body.extent, tir.IntImm):
            body, vectors = body.body, vectors * int(body.extent)
        if isinstance(body, tir.BufferStore):
            self._count_kept("write", body.buffer, list(body.indices), condition, outer, vectors)
        elif isinstance(body, tir.Evaluate) and extern_name(body.value).startswith(("tl_atomic", "atomic")):
            load = self.pointer_load(body.value.args[1])
            self._count_kept("atomic", load.source, list(load.indices), condition, outer, vectors)

    def _count_kept(
        self, kind: str, buffer: Any, indices: list[Any], condition: Value, outer: str | None, times: int = 1
    ) -> None:
        storage: Storage = self.storage(buffer)
        if storage.space != "global" or not condition.pure:
            return
        if not guarded(kind, storage.label, place_of(self.span), self.guards):
            return
        axes = 0
        for variable in (variable for index in indices for variable in variables(index)):
            if variable in self.names:  # those of loops in the body of an `if` are in `times`
                axes |= self.names[variable].axes
        for axis in self.vectors.values():
            if axes & self.axis_bit(axis) and not condition.axes & self.axis_bit(axis):
                times *= axis.extent
        site = self.access_site(kind, storage)
        if condition.axes:  # the mask is None where nobody is kept out
            self.emit(f"if {self.mask} is not None: S.kept_out({condition.text}, {times}, {outer}, {site})")
        else:
            self.emit(f"if not {condition.text}: S.all_kept_out({times}, {outer}, {site})")
