"""The call in the user's text that led here: what its arguments are, as they are written."""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from ..frontend.definitions import SESSION
from ..frontend.places import line_span, narrowed
from ..source.providers import provided
from ..source.syntax_tree import places
from ..source.text import Span, Text

PACKAGE = str(Path(__file__).resolve().parents[1])
LONGEST = 60  # characters of an expression that a message repeats


def shown_name(file: str) -> str:
    """What the user calls a file: a notebook says `In[3]` for the file of a cell."""
    try:
        return provided("file_name")(file)
    except LookupError:
        return file


@dataclass(frozen=True)
class CallSite:
    """A call in a text.  call: its node; None where only the place is known."""

    text: Text
    span: Span
    call: ast.Call | None = field(default=None, compare=False)

    def passed(self, positional: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Span]:
        """Where the argument of each parameter stands; under "" those that are too many.

        positional: the parameters in the order in which the call gives them.  args, kwargs: what came.  Nothing where
        the call in the text is another one than that which was made: of a `functools.partial`, of `map`.
        """
        if self.call is None:
            return {}
        found: dict[str, Span] = {}
        names = {keyword.arg for keyword in self.call.keywords}
        starred = any(isinstance(argument, ast.Starred) for argument in self.call.args)
        if None not in names and names != set(kwargs) or not starred and len(self.call.args) != len(args):
            return {}
        for at, argument in enumerate(self.call.args):
            span = self.text.span(argument)
            if isinstance(argument, ast.Starred):  # it may stand for any of those that follow
                found |= dict.fromkeys(positional[at:], span)
                break
            if at < len(positional):
                found[positional[at]] = span
            else:
                first = found.get("", span)
                found[""] = Span(first.line, first.column, span.end_line, span.end_column)
        for keyword in self.call.keywords:
            if keyword.arg is not None:
                found[keyword.arg] = self.text.span(keyword)
        return found

    def written(self, span: Span) -> str:
        """The expression of an argument at a place that `passed` gave; "" if it is long or stands for several."""
        parts = [*self.call.args, *(keyword.value for keyword in self.call.keywords)] if self.call is not None else []
        for part in parts:
            if not isinstance(part, ast.Starred) and span.covers(self.text.span(part)):
                text = " ".join(self.text.slice(self.text.span(part)).split())
                return text if len(text) <= LONGEST else ""
        return ""


def call_site(name: str = "") -> CallSite | None:
    """The call in the innermost text on the stack that is not of this package; None where that text cannot be had.

    name: of what is called, by which Python 3.10 finds it in its line.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    text = _text(frame)
    if not text.source:
        return None
    at = places(text)
    calls = [node for node in at.spans if isinstance(node, ast.Call)] if at is not None else []
    span = _instruction(frame, text)
    if span is None:
        here = [call for call in calls if call.lineno == frame.f_lineno]
        named = [call for call in here if ast.unparse(call.func).rpartition(".")[2] == name]
        found = named or here
        if len(found) == 1:
            return CallSite(text, text.span(found[0]), found[0])
        line = line_span(text, frame.f_lineno)
        return CallSite(text, line) if line is not None else None
    for call in calls:
        place = text.span(call)
        # Of a call of a method Python 3.11 gives the place from the method's name on.
        if place.covers(span) and (place.end_line, place.end_column) == (span.end_line, span.end_column):
            return CallSite(text, place, call)
    return CallSite(text, narrowed(text, span))


def _text(frame: FrameType) -> Text:
    """The text that the code of a frame was compiled from; an empty one if it is not known."""
    name = frame.f_code.co_filename
    session = frame.f_builtins.get(SESSION)
    if session is not None and session.code_name == name:
        return session.text
    return Text("".join(linecache.getlines(name, frame.f_globals)), shown_name(name))


def _instruction(frame: FrameType, text: Text) -> Span | None:
    """The range of the instruction that a frame is at; None without positions: Python 3.10."""
    if not hasattr(frame.f_code, "co_positions"):
        return None
    place = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, column, end_column = place
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return text.positions(line, end_line, column, end_column)
