"""Neighbours under an equal condition are one `if`: stages put statements one by one where the threads are the same."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .rewrite import Load, branch, each_statement, has, sequence, statements

_PURE = (0, 1)  # TVM's TCallEffectKind: annotation, pure


def joined(node: Any) -> Any:
    """The sequence with such neighbours joined.  A condition over threads and bound names is the same before and
    after any statement; one that reads memory, or calls what may, is left alone.
    """
    before = statements(node)
    runs = _runs(before)
    return node if len(runs) == len(before) else sequence([_one(run) for run in runs], node.span)


def _runs(parts: list[Any]) -> list[list[Any]]:
    """The statements in order, neighbours that can be one `if` together."""
    runs: list[list[Any]] = []
    names: set[Any] = set()
    for one in parts:
        if runs and _equal_conditions(runs[-1][0], one):
            defined = _defined(one)
            if not names & defined:
                runs[-1].append(one)
                names |= defined
                continue
        runs.append([one])
        names = _defined(one) if type(one) is tir.IfThenElse else set()
    return runs


def _equal_conditions(first: Any, second: Any) -> bool:
    if type(first) is not tir.IfThenElse or type(second) is not tir.IfThenElse:
        return False
    if not tvm_ffi.structural_equal(first.condition, second.condition):
        return False
    return not has(first.condition, Load) and not _calls(first.condition)


def _calls(condition: Any) -> bool:
    """Does the condition call what may have another value the second time?"""
    found: list[Any] = []

    def call(node: Any) -> None:
        kind = node.op.get_attr("TCallEffectKind") if isinstance(node.op, tvm.ir.Op) else None
        if kind is None or int(kind) not in _PURE:
            found.append(node)

    tvm_ffi.structural_walk(condition, (tvm.ir.Call, call))
    return bool(found)


def _defined(node: Any) -> set[Any]:
    """The names and arrays that a statement defines, each of which has one definition in a suite."""
    every = tuple(each_statement(node))
    names = {one.var for one in every if isinstance(one, tir.Bind)}
    return names | {one.buffer for one in every if isinstance(one, tir.AllocBuffer | tir.DeclBuffer)}


def _one(run: list[Any]) -> Any:
    """One `if` of several; what becomes neighbours inside is joined too."""
    first = run[0]
    if len(run) == 1:
        return first
    then = joined(sequence([one.then_case for one in run], first.then_case.span))
    others = [one.else_case for one in run if one.else_case is not None]
    other = joined(sequence(others, others[0].span)) if others else None
    return branch(first.condition, then, other, first.span)
