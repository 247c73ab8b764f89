"""TL215: asynchronous copies that nothing waits for before the kernel ends.

A scan of the text.  In a suite without loops and branches groups are counted, as the device does; elsewhere any wait
behind the copy is taken for the right one, and one in front of it in a loop where the copy is under a condition: the
simulator finds what is read too early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import read, statement_name
from tilelang_nb.source import catalogue as say

from .context import LaunchContext
from .rewrite import each_statement

# Whatever ends, or waits for, groups; an arrival that counts copies takes in all that were started.
_STARTS, _COMMITS, _WAITS, _ARRIVES = ("async_copy", "cp_async"), "commit_group", "wait_group", "copies_arrive"
_EVENTS = (*_STARTS, _COMMITS, _WAITS, _ARRIVES)


@dataclass(frozen=True)
class _Event:
    """An operation on groups.  around: the loops and branches that it stands in, outermost first."""

    name: str
    call: Any
    around: tuple[Any, ...]


def warn_unwaited_copies(body: Any, launch: LaunchContext) -> None:
    """Report TL215 at each copy that is under way when the kernel ends."""
    if not any(statement_name(one) in _STARTS for one in each_statement(body)):
        return
    events = list(_events(body, ()))
    for at, event in enumerate(events):
        if event.name not in _STARTS:
            continue
        again = [one for one in events[:at] if _together(one, event)]  # the next turn of a loop around both
        remedy = _missing(event, events[at + 1 :], again)
        if remedy:
            target = event.call["target"].buffer.name
            launch.report(say.UnwaitedCopy(buffer=target, remedy=remedy), event.call.span)


def _events(node: Any, around: tuple[Any, ...]) -> Any:
    if isinstance(node, tir.SeqStmt):
        for one in node.seq:
            yield from _events(one, around)
    elif isinstance(node, tir.IfThenElse):
        for side in (node.then_case, node.else_case):
            if side is not None:
                yield from _events(side, (*around, node))
    elif isinstance(node, tir.For | tir.While):
        yield from _events(node.body, (*around, node))
    elif isinstance(node, tir.AttrStmt):
        yield from _events(node.body, around)
    elif statement_name(node) in _EVENTS:
        call = read(node.value, node.span)
        yield _Event(call.name, call, around)


def _together(one: _Event, other: _Event) -> bool:
    """Do both stand in one loop?"""
    shared = {id(node) for node in one.around if not isinstance(node, tir.IfThenElse)}
    return any(id(node) in shared for node in other.around)


def _missing(copy: _Event, later: list[_Event], again: list[_Event]) -> str:
    """What to write where nothing waits for a copy; "" where something does."""
    if any(one.name == _ARRIVES for one in (*later, *again)):
        return ""
    own = copy.name == "async_copy" and copy.call["group"] is None
    ends = own or any(one.name in (_COMMITS, "async_copy") for one in (*later, *again))
    if not ends:
        return "end its group with `T.ptx_commit_group()` and put `T.ptx_wait_group(0)` before the end of the kernel"
    waits = [one for one in (*later, *again) if one.name == _WAITS]
    if not waits:
        return "put `T.ptx_wait_group(0)` before the end of the kernel, and before its data is used"
    certain = not any(isinstance(node, tir.IfThenElse) for node in copy.around)
    if certain and not any(one.name == _WAITS for one in later):
        return "put `T.ptx_wait_group(0)` behind the loop, or start it only in turns whose data a later one uses"
    if copy.around or any(one.around for one in later):
        return ""
    committed, behind = own, 0  # whether its group has ended, and how many have since
    for one in later:
        if one.name == _WAITS and committed and one.call.integer("pending") <= behind:
            return ""
        if one.name == _COMMITS or (one.name == "async_copy" and one.call["group"] is None):
            behind += committed
            committed = True
    most = max(one.call.integer("pending") for one in waits)
    return f"put `T.ptx_wait_group(0)` behind `T.ptx_wait_group({most})`, which lets {_groups(most)} be under way"


def _groups(count: int) -> str:
    return "one group" if count == 1 else f"{count} groups"
