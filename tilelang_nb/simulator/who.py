"""Threads, indices and places of findings in words."""

from __future__ import annotations

from typing import Any

from ..source.text import Span

Place = tuple[tuple[int, int, int], tuple[int, int, int]]  # block, thread


def user_span(span: tuple[int, int, int, int] | None) -> Span | None:
    """A TVM span (line, end line, column, end column; columns from 1) as the span of the user's text."""
    if span is None:
        return None
    line, end_line, column, end_column = span
    return Span(line, max(column - 1, 0), end_line, max(end_column - 1, 0))


def numbered(numbers: list[int]) -> str:
    """The numbers of an index or a shape."""
    return ", ".join(map(str, numbers))


def does(who: tuple[Any, Any], verb: str) -> str:
    """Who does what: the threads and the verb in their number ("thread 3 ... reads", "several threads ... read")."""
    alone = who[0] is not None and who[1] is not None
    third = {"copy": "copies", "do": "does"}.get(verb, verb + "s")
    return f"{called(who)} {third if alone else verb}"


def called(who: tuple[Any, Any]) -> str:
    """Who did something: one thread; several of a block, where the thread is None; or those of several blocks."""
    block, thread = who
    if block is None:
        return "threads of several blocks"
    if thread is None:
        return f"several threads of block {block}"
    return f"thread {thread} of block {block}"
