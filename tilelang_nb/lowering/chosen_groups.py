"""Threads that conditions on the thread choose: whole warp groups, as `if tx < 128:` does, which is what `T.ws` says;
and any others, as `if tx == 0:` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx as tir
from tvm.sym import Analyzer

from .context import LaunchContext
from .nests import WARP_GROUP
from .rewrite import constant, dtype_of, substitute, variables, walk

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
    if not chosen or launch.threads % WARP_GROUP:
        return ""
    groups = sorted({thread // WARP_GROUP for thread in chosen})
    whole = len(chosen) == WARP_GROUP * len(groups)
    neighbours = groups == list(range(groups[0], groups[-1] + 1))  # as parts of `T.ws` are
    return ", ".join(map(str, groups)) if whole and neighbours and len(chosen) < launch.threads else ""
