"""The parts of a block that `T.ws` names, as conditions on the thread index, and how neighbouring parts stand together.

Parts of different threads run at the same time: they become the branches of one chain of `if` and `else`.  A thread
that several parts name runs them in the order of the text: such parts stay one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx as tir

from .context import LaunchContext
from .nests import is_part, threads_of_part
from .rewrite import is_nothing, map_children, sequence


def condition_of_part(first: int, end: int, launch: LaunchContext) -> Any:
    """Is this thread one of `first` to `end - 1` of its block?  None where all threads are."""
    thread, conditions = launch.block_thread, []
    if first > 0:
        conditions.append(thread >= first)
    if end < launch.threads:
        conditions.append(thread < end)
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else tir.And(*conditions)


def without_parts(body: tir.Stmt, launch: LaunchContext) -> tir.Stmt:
    """The attributes of `T.ws` have done their part: what selects the threads are conditions alone."""
    if not _has_parts(body):
        return body

    def visit(node: Any) -> Any:
        if is_part(node):
            return visit(node.body)
        if not isinstance(node, tir.SeqStmt):
            return map_children(node, visit)
        result: list[Any] = []
        parts: list[_Part] = []
        for child in node.seq:
            if is_part(child) and is_nothing(child.body):
                continue
            part = _part(child, launch)
            if part is not None:
                part.body = visit(part.body)
                parts.append(part)
                continue
            result += _arranged(parts, launch)
            parts = []
            result.append(visit(child))
        return sequence([*result, *_arranged(parts, launch)], node.span)

    return visit(body)


@dataclass
class _Part:
    """Threads `first` to `end - 1` of the block, and what they run (without the condition that selects them)."""

    first: int
    end: int
    body: Any
    span: Any


def _has_parts(body: tir.Stmt) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (tir.AttrStmt, lambda node: found.append(node) if is_part(node) else None))
    return bool(found)


def _part(node: Any, launch: LaunchContext) -> _Part | None:
    """None where the statement is no part, or where what it does is not exactly under the condition of its threads."""
    if not is_part(node):
        return None
    threads = threads_of_part(node, launch)
    if threads is None:
        return None
    first, end = threads.base, threads.base + threads.count
    condition, body = condition_of_part(first, end, launch), node.body
    if condition is None:
        return _Part(first, end, body, node.span)
    if not isinstance(body, tir.IfThenElse) or body.else_case is not None:
        return None
    if not tvm_ffi.structural_equal(body.condition, condition):
        return None
    return _Part(first, end, body.then_case, body.span)


def _arranged(parts: list[_Part], launch: LaunchContext) -> list[Any]:
    """Neighbouring parts as statements: side by side where no thread is in two of them, otherwise in their order."""
    if not parts:
        return []
    sets = _apart(parts)
    if len(sets) > 1:
        return [_chained([_joined(one, launch) for one in sets], launch)]
    if len({(part.first, part.end) for part in parts}) == 1:
        return [_under(_joined(parts, launch), launch)]
    together = max((count for count in range(2, len(parts)) if len(_apart(parts[:count])) > 1), default=1)
    return [*_arranged(parts[:together], launch), *_arranged(parts[together:], launch)]


def _apart(parts: list[_Part]) -> list[list[_Part]]:
    """The parts in sets that share no thread, each in the order of the text; the sets by their first parts."""
    sets: list[list[int]] = []
    for position, part in enumerate(parts):
        met = [one for one in sets if any(_meet(part, parts[other]) for other in one)]
        sets = [one for one in sets if one not in met]
        sets.append(sorted([position, *(other for one in met for other in one)]))
    return [[parts[position] for position in one] for one in sorted(sets)]


def _meet(part: _Part, other: _Part) -> bool:
    return part.first < other.end and other.first < part.end


def _joined(parts: list[_Part], launch: LaunchContext) -> _Part:
    """One part of all their threads, which are neighbours: parts that share threads in turn leave no gap."""
    first, end = min(part.first for part in parts), max(part.end for part in parts)
    if all((part.first, part.end) == (first, end) for part in parts):
        bodies = [part.body for part in parts]
    else:
        bodies = _arranged(parts, launch)
    return _Part(first, end, sequence(bodies, parts[0].span), parts[0].span)


def _chained(parts: list[_Part], launch: LaunchContext) -> Any:
    result = None
    for part in reversed(parts):
        result = _under(part, launch, result)
    return result


def _under(part: _Part, launch: LaunchContext, other: Any = None) -> Any:
    condition = condition_of_part(part.first, part.end, launch)
    return part.body if condition is None else tir.IfThenElse(condition, part.body, other, part.span)
