"""Schedules by hand of `T.Pipelined` against the statements of its loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import tirx as tir

from ..language.loops import DeviceLoop
from ..source import catalogue as say
from ..source.diagnostic import Refusal

# Names that the text gives to values, and tiles that it allocates: whether they are statements is nobody's concern.
_NAMES = (tir.Bind, tir.AllocBuffer, tir.DeclBuffer)


def check_schedule(spec: DeviceLoop, body: Any, call: Any) -> None:
    """TL004 where `order` or `stage` has no entry for each statement, or `group` names one that there is not.

    call: the syntax of `T.Pipelined(...)`.  Copies count, and so does each statement of a macro; a compile-time `if` or
    loop counts as what it leaves.
    """
    every = list(_statements(body))
    most, least = len(every), sum(not isinstance(one, _NAMES) for one in every)
    group = spec.annotations.get("group")
    if group:
        _check_group(group, most, least, _argument(call, "group"))
        return
    for name in ("order", "stage"):
        entries = spec.annotations.get(name)
        if entries and not least <= len(entries) <= most:
            problem = f"`{name}` of `T.Pipelined` has {_count(len(entries), 'entry', 'entries')}, and its loop"
            problem += f" {_count(least, 'statement', 'statements')}"
            remedy = f"give {least}, one for each statement in the order of the text, or leave `order` and `stage` out"
            raise Refusal(say.BadArgument(problem=problem, remedy=remedy), _argument(call, name))


def _argument(call: Any, name: str) -> Any:
    """Where an argument is given by name; else the call."""
    given = getattr(call, "keywords", ())
    return next((one.value for one in given if one.arg == name), call)


def _check_group(group: Any, most: int, least: int, place: Any) -> None:
    named = [one for part in group for one in (part if isinstance(part, (list, tuple)) else [part])]
    numbers = [one for one in named if isinstance(one, int)]
    beyond = next((one for one in numbers if not 0 <= one < most), None)
    if beyond is not None:
        problem = f"`group` of `T.Pipelined` names statement {beyond}, and its loop has {least}, counted from 0"
        remedy = f"give lists of the numbers 0 to {least - 1}, or leave `group` out"
        raise Refusal(say.BadArgument(problem=problem, remedy=remedy), place)
    twice = next((one for one in numbers if numbers.count(one) > 1), None)
    if twice is not None:
        problem = f"`group` of `T.Pipelined` names statement {twice} twice"
        raise Refusal(say.BadArgument(problem=problem, remedy="name each statement in one of its lists"), place)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _statements(node: Any) -> Iterator[Any]:
    if isinstance(node, tir.SeqStmt):
        for one in node.seq:
            yield from _statements(one)
    elif not (isinstance(node, tir.Evaluate) and isinstance(node.value, tir.IntImm)):
        yield node
