"""sum-lanes-later: a sum that a loop carries on over its turns is completed between lanes once, after the loop.

Before: `T.reduce_sum(s, row, dim=1)` and `total[i] = total[i] * scale[i] + row[i]` in a loop, as a softmax has them:
every turn adds up the parts of a row that its lanes hold by shuffles, which wait for one another.  After: every lane
carries the sum of its own part on; the parts meet after the loop.  One lane of a row begins with the old total, the
others with 0.

It is done where nothing else uses the sum of a turn, nothing in the loop the total, and the lanes scale alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .context import LaunchContext
from .ops.all_reduce import unrolled
from .own_names import with_own_names
from .rewrite import Load, constant, dtype_of, has, loop, map_children, sequence, size, statements, variables, with_span

SHUFFLE = "__shfl_xor_sync"
ALL_LANES = 0xFFFFFFFF
_ARITHMETIC = (tir.Add, tir.Sub, tir.Mul)


def sum_lanes_later(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    later = _Later(function, launch)
    body = later.statement(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


@dataclass(frozen=True)
class _Sum:
    """The statements of a loop that sum up and carry on, by position.

    shuffles: those that add up `part` between lanes.  part, total: register arrays.  distances: of the shuffles.
    """

    shuffles: tuple[int, ...]
    part: Any
    total: Any
    distances: tuple[int, ...]


class _Later:
    def __init__(self, function: Any, launch: LaunchContext):
        self.launch, self.body = launch, function.body
        reducers = launch.facts.get("reducers", ())
        self.fragments = {held: one for one, held in launch.registers.items() if one not in reducers}

    def statement(self, node: Any) -> Any:
        node = map_children(node, self.statement)
        if not isinstance(node, tir.For) or int(node.kind) != tir.ForKind.SERIAL or not has(node.body, tvm.ir.Call):
            return node
        parts = statements(node.body)
        found = [one for one in (self._sum(at, parts) for at in range(len(parts))) if one is not None]
        return self._rewritten(node, parts, found) if found and not has(node.body, (tir.Break, tir.Continue)) else node

    def _rewritten(self, node: Any, parts: list[Any], found: list[_Sum]) -> Any:
        dropped = {at for one in found for at in one.shuffles}
        inner = [part for at, part in enumerate(parts) if at not in dropped]
        before = [with_span(self._only_one_lane(one), node.span) for one in found]
        after = [self._of_total(parts[at], one) for one in found for at in one.shuffles]
        return sequence([*before, loop(node, body=sequence(inner, node.body.span)), *after], node.span)

    def _only_one_lane(self, found: _Sum) -> Any:
        lane = tir.bitwise_and(self.launch.block_thread, tir.const(sum(found.distances), "int32"))
        zero = tir.const(0, dtype_of(found.total))

        def start(k: Any) -> Any:
            value = tir.Select(tir.EQ(lane, 0), tir.BufferLoad(found.total, [k]), zero)
            return tir.BufferStore(found.total, value, [k])

        return unrolled("k", size(found.total.shape[0]), start)

    @staticmethod
    def _of_total(shuffle: Any, found: _Sum) -> Any:
        def load(one: Any) -> Any:
            return tir.BufferLoad(found.total, one.indices) if one.source.same_as(found.part) else one

        def store(one: Any) -> Any:
            if not one.buffer.same_as(found.part):
                return one
            return tir.BufferStore(found.total, one.value, one.indices, one.span)

        return with_own_names(tvm_ffi.structural_map(shuffle, [(Load, load), (tir.BufferStore, store)]))

    # ---- what is looked for ----

    def _sum(self, at: int, parts: list[Any]) -> _Sum | None:
        """The sum that the statement at a position carries on."""
        carried = self._carried(parts[at])
        if carried is None:
            return None
        row, total = carried
        stores = [n for n in range(at) if _copied(parts[n], row) is not None]
        if len(stores) != 1:
            return None
        part, end = _copied(parts[stores[0]], row), stores[0]
        begin = end
        while begin and _shuffled(parts[begin - 1], part) is not None:
            begin -= 1
        distances = tuple(_shuffled(parts[n], part) or 0 for n in range(begin, end))
        if begin == end or len(set(distances)) != len(distances) or dtype_of(part) != dtype_of(total):
            return None
        inside, everywhere = _uses(parts), _uses([self.body])
        only_here = (
            _uses(parts[: end + 1])[part] == everywhere[part]
            and inside[row] == 2
            and _loads(self.body)[row] == 1
            and inside[total] == _uses([parts[at]])[total]
        )
        return _Sum(tuple(range(begin, end)), part, total, distances) if only_here else None

    def _carried(self, node: Any) -> tuple[Any, Any] | None:
        """(row, total) of `total[i] = total[i] * scale + row[i]`."""
        store = _innermost(node)
        if not isinstance(store, tir.BufferStore) or not isinstance(store.value, tir.Add):
            return None
        total = store.buffer
        for row, carried in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
            factors = [carried.a, carried.b] if isinstance(carried, tir.Mul) else [carried]
            old = [one for one in factors if _is_element(one, total, store)]
            if len(old) != 1 or not isinstance(row, Load) or not _is_element(row, row.source, store):
                continue
            scale = [one for one in factors if not one.same_as(old[0])]
            if row.source.same_as(total) or not all(self._alike(one, (row.source, total)) for one in scale):
                continue
            fragments = [self.fragments.get(one) for one in (row.source, total)]
            if None in fragments or self.launch.layouts[fragments[0]] != self.launch.layouts[fragments[1]]:
                continue
            return row.source, total
        return None

    def _alike(self, expr: Any, others: tuple[Any, ...]) -> bool:
        """Is a factor the same for all lanes that hold parts of a row: made of elements of fragments and constants?"""
        if isinstance(expr, _ARITHMETIC):
            return self._alike(expr.a, others) and self._alike(expr.b, others)
        if isinstance(expr, Load):
            known = expr.source in self.fragments and not any(expr.source.same_as(one) for one in others)
            return known and self._registers_alone(expr)
        return constant(expr) is not None or isinstance(expr, tir.FloatImm)

    def _registers_alone(self, load: Any) -> bool:
        threads = {*self.launch.axes}
        return not has(load.indices[0], (Load, tvm.ir.Call)) and threads.isdisjoint(variables(load.indices[0]))


def _innermost(node: Any) -> Any:
    while isinstance(node, tir.For):
        node = node.body
    return node


def _is_element(expr: Any, buffer: Any, store: Any) -> bool:
    """Is an expression the element of a buffer with the index of a store?"""
    return (
        isinstance(expr, Load)
        and expr.source.same_as(buffer)
        and tvm_ffi.structural_equal(list(expr.indices), list(store.indices))
    )


def _copied(node: Any, row: Any) -> Any | None:
    """The array of which a loop stores every element into the row."""
    store = _innermost(node)
    if not isinstance(store, tir.BufferStore) or not store.buffer.same_as(row) or not isinstance(store.value, Load):
        return None
    part = store.value.source
    whole = size(part.shape[0]) == size(row.shape[0]) and _is_element(store.value, part, store)
    return part if whole and _every(node, part, store.indices[0]) else None


def _every(node: Any, buffer: Any, index: Any) -> bool:
    """Is a statement a loop over all elements of an array, or for its only one?"""
    if not isinstance(node, tir.For):
        return size(buffer.shape[0]) == 1 and constant(index) == 0
    return constant(node.min) == 0 and constant(node.extent) == size(buffer.shape[0]) and index.same_as(node.loop_var)


def _shuffled(node: Any, part: Any) -> int | None:
    """The distance of a statement that adds to all elements of an array those of another lane."""
    inner = statements(_innermost(node))
    if len(inner) != 2 or not isinstance(inner[0], tir.Bind) or not isinstance(inner[1], tir.BufferStore):
        return None
    call, store = inner[0].value, inner[1]
    if not isinstance(call, tvm.ir.Call) or getattr(call.op, "name", "") != "tirx.call_extern":
        return None
    name, mask, mine, distance = (*call.args, *([None] * 4))[:4]
    if getattr(name, "value", "") != SHUFFLE or constant(mask) != ALL_LANES or constant(distance) is None:
        return None
    if not store.buffer.same_as(part) or not _is_element(mine, part, store) or not isinstance(store.value, tir.Add):
        return None
    added = _is_element(store.value.a, part, store) and store.value.b.same_as(inner[0].var)
    return constant(distance) if added and _every(node, part, store.indices[0]) else None


def _loads(body: Any) -> Counter[Any]:
    """How often each array is read."""
    found: Counter[Any] = Counter()

    def note(load: Any) -> None:
        found[load.source] += 1

    tvm_ffi.structural_walk(body, (Load, note))
    return found


def _uses(parts: list[Any]) -> Counter[Any]:
    """How often each variable occurs."""
    found: Counter[Any] = Counter()

    def note(var: Any) -> None:
        found[var] += 1

    for part in parts:
        tvm_ffi.structural_walk(part, (tvm.ir.Var, note))
    return found
