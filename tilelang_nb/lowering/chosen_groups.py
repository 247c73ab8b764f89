"""Whole warp groups that conditions on the thread choose, as `if tx < 128:` does: what `T.ws` says."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir
from tvm.sym import Analyzer

from .context import LaunchContext
from .nests import WARP_GROUP
from .rewrite import constant, dtype_of, substitute, variables, walk


def warp_groups_under(under: tuple[tuple[Any, bool], ...], launch: LaunchContext) -> str:
    """ "1" or "1, 2": the warp groups whose threads, and no others, get under these conditions; "" where only some
    threads of a group do, where the groups are no neighbours, or where more than the thread decides.

    under: conditions, and whether they hold.
    """
    axes = [axis for axis in launch.axes if axis in variables(launch.block_thread)]
    if not under or len(axes) != 1 or launch.threads % WARP_GROUP:
        return ""
    bound: dict[Any, Any] = {}
    walk(launch.facts["tile"].body, (tir.Bind, lambda node: bound.update({node.var: node.value})))
    conditions = []
    for condition, holds in under:
        for _ in range(len(bound)):
            if not variables(condition) & bound.keys():
                break
            condition = substitute(condition, bound)
        if variables(condition) != {axes[0]}:
            return ""
        conditions.append((condition, holds))
    analyzer = Analyzer()

    def gets_there(thread: int) -> bool | None:
        number = tir.const(thread, dtype_of(axes[0]))
        for condition, holds in conditions:
            known = constant(analyzer.simplify(substitute(condition, {axes[0]: number})))
            if known is None:
                return None
            if bool(known) != holds:
                return False
        return True

    chosen = []
    for group in range(launch.threads // WARP_GROUP):
        found = {gets_there(thread) for thread in range(group * WARP_GROUP, (group + 1) * WARP_GROUP)}
        if None in found or len(found) != 1:
            return ""
        if True in found:
            chosen.append(group)
    neighbours = bool(chosen) and chosen == list(range(chosen[0], chosen[-1] + 1))  # as parts of `T.ws` are
    return ", ".join(map(str, chosen)) if neighbours and len(chosen) < launch.threads // WARP_GROUP else ""
