"""Threads that conditions on the thread choose: whole warp groups, as `if tx < 128:` does, which is what `T.ws` says;
and any others, as `if tx == 0:` does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.sym import Analyzer

from tilelang_nb.language.tile_program import RegionOperand, read, statement_name

from .context import LaunchContext
from .nests import WARP_GROUP, WARP_GROUPS, is_part
from .rewrite import constant, dtype_of, each_statement, map_children, scope, sequence, substitute, variables, walk
from .uniformity import PRIVATE_SCOPES, Uniformity

Under = tuple[tuple[Any, bool], ...]  # conditions, and whether they hold


def threads_under(under: Under, body: Any, launch: LaunchContext, ignored: Callable[[Any], bool]) -> list[int] | None:
    """The threads of the block that get under these conditions; None where more than the thread decides.

    body: of the launch.  ignored: is it a condition that all threads agree on?
    """
    axes = [axis for axis in launch.axes if axis in variables(launch.block_thread)]
    if not under or len(axes) != 1:
        return None
    bound: dict[Any, Any] = {}
    walk(body, (tir.Bind, lambda node: bound.update({node.var: node.value})))
    conditions = []
    for condition, holds in under:
        for part in _parts(_expanded(condition, bound), holds):
            if not ignored(part):
                if variables(part) != {axes[0]}:
                    return None
                conditions.append((part, holds))
    analyzer, chosen = Analyzer(), []
    for thread in range(launch.threads):
        number = tir.const(thread, dtype_of(axes[0]))
        known = [constant(analyzer.simplify(substitute(condition, {axes[0]: number}))) for condition, _ in conditions]
        if None in known:
            return None
        if all(bool(value) == holds for value, (_, holds) in zip(known, conditions)):
            chosen.append(thread)
    return chosen


def _expanded(condition: Any, bound: dict[Any, Any]) -> Any:
    for _ in range(len(bound)):
        if not variables(condition) & bound.keys():
            break
        condition = substitute(condition, bound)
    return condition


def _parts(condition: Any, holds: bool) -> list[Any]:
    """The conditions that all have to hold."""
    if holds and isinstance(condition, tir.And):
        return [*_parts(condition.a, holds), *_parts(condition.b, holds)]
    return [condition]


def warp_groups_under(under: Under, launch: LaunchContext) -> str:
    """ "1" or "1, 2": the warp groups whose threads, and no others, get under these conditions; "" where only some
    threads of a group do, where the groups are no neighbours, or where more than the thread decides.
    """
    chosen = threads_under(under, launch.facts["tile"].body, launch, lambda _: False)
    if chosen is None or launch.threads % WARP_GROUP or len(chosen) == launch.threads:
        return ""
    return _groups_of(chosen)


def _groups_of(chosen: list[int]) -> str:
    """ "1" or "1, 2": the warp groups that these threads are; "" where they are only some threads of a group, or of
    groups that are no neighbours.
    """
    groups = sorted({thread // WARP_GROUP for thread in chosen})
    whole = bool(groups) and len(chosen) == WARP_GROUP * len(groups)
    neighbours = whole and groups == list(range(groups[0], groups[-1] + 1))  # as parts of `T.ws` are
    return ", ".join(map(str, groups)) if neighbours else ""


# What threads do together.
_TOGETHER = frozenset(
    ("copy", "async_copy", "fill", "transpose", "im2col", "gemm", "reduce", "cumulate", "finalize_reducer")
) | {"atomic_region", "copy_to_block", "copy_to_blocks"}


def as_parts(function: Any, launch: LaunchContext) -> Any:
    """The launch with `T.ws` in place of conditions that choose whole warp groups, where these work together.

    `if tx < 128:` with `elif tx < 256:` and `else:` are parts side by side.
    """
    if launch.threads % WARP_GROUP or not any(map(_works_together, each_statement(function.body))):
        return function
    body = _Parts(function.body, launch).statement(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


def _works_together(node: Any) -> bool:
    """Is a statement an `if` with work for many threads in it?"""
    return isinstance(node, tir.IfThenElse) and _works(node)


def _works(node: Any) -> bool:
    return any(map(_for_many, each_statement(node)))


def _for_many(node: Any) -> bool:
    """Is it work of many threads?  What fills an array of each thread is not."""
    if statement_name(node) not in _TOGETHER:
        return isinstance(node, tir.For) and int(node.kind) == tir.ForKind.PARALLEL
    operands = read(node.value, node.span).operands.values()
    return any(isinstance(one, RegionOperand) and scope(one.buffer) not in PRIVATE_SCOPES for one in operands)


def _all_of(under: Under) -> Any:
    parts = [condition if holds else tir.Not(condition) for condition, holds in under]
    return functools.reduce(tir.And, parts)


class _Parts:
    def __init__(self, body: Any, launch: LaunchContext):
        self.body, self.launch = body, launch
        self.uniformity = Uniformity(body, launch.axes)

    def statement(self, node: Any) -> Any:
        if is_part(node):
            return node
        if _works_together(node):
            parts = self._parts(node, ())
            if parts is not None:
                return sequence(parts, node.span)
        return map_children(node, self.statement)

    def _thread_first(self, node: Any) -> Any:
        """`if tx < 128 and n > 0:` as one `if` in the other, where all threads agree on what does not choose them."""
        parts = _parts(node.condition, True)
        agreed = [one for one in parts if self.uniformity.is_uniform(one)]
        if node.else_case is not None or not agreed:
            return node
        choosing = [one for one in parts if not self.uniformity.is_uniform(one)]
        inner = tir.IfThenElse(functools.reduce(tir.And, agreed), node.then_case, None, node.span)
        return tir.IfThenElse(functools.reduce(tir.And, choosing), inner, None, node.span)

    def _parts(self, node: Any, under: Under) -> list[Any] | None:
        """Both sides of an `if` as parts; None where one of them is no whole warp groups."""
        if self.uniformity.is_uniform(node.condition):
            return None
        node = self._thread_first(node)
        found: list[Any] = []
        for side, holds in ((node.then_case, True), (node.else_case, False)):
            if side is None:
                continue
            here = (*under, (node.condition, holds))
            inside = self._parts(side, here) if isinstance(side, tir.IfThenElse) else None
            if inside is not None:
                found += inside
                continue
            chosen = threads_under(here, self.body, self.launch, lambda _: False)
            if chosen is None:
                return None
            groups = _groups_of(chosen)
            if len(chosen) == self.launch.threads:
                found.append(self.statement(side))
            elif groups:
                numbers = StringImm(groups.replace(" ", ""))
                found.append(tir.AttrStmt(tir.const(0, "int32"), WARP_GROUPS, numbers, side, side.span))
            elif chosen and not _works(side):
                found.append(tir.IfThenElse(_all_of(here), side, None, side.span))
            else:
                return None
        return found
