"""Misspelt words: names, operations, keywords, texts such as dtypes; what Python's parser says to add or leave out."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from .. import catalogue as say
from ..diagnostic import Fix
from ..syntax_tree import Places
from ..text import Span, Text
from .reading import inserted, language, replaced, the


def coroutine(message: say.GeneratorKernel, span: Span, at: Places) -> Iterator[Fix]:
    """A function, loop or value that is no coroutine."""
    yield from without_async(span, at.text)


def name(message: say.UndefinedName, span: Span, at: Places) -> Iterator[Fix]:
    """The nearest name that is bound."""
    node = the(at, span, ast.Name, lambda node: node.id == message.name)
    if node is not None and message.near:
        near = message.near.replace("T.", f"{language(at)}.") if message.near.startswith("T.") else message.near
        yield replaced(f"write `{near}`", at, node, near)


def operation(message: say.UnknownOperation, span: Span, at: Places) -> Iterator[Fix]:
    """The nearest attribute that there is."""
    node = the(at, span, ast.Attribute, lambda node: node.attr == message.name)
    if node is not None and message.near:
        place = at.spans[node]
        word = Span(place.end_line, place.end_column - len(message.name), place.end_line, place.end_column)
        if at.text.slice(word) == message.name:
            yield Fix(f"write `{message.near}`", word, message.near)


def argument(message: say.BadArgument, span: Span, at: Places) -> Iterator[Fix]:
    """The nearest keyword, or the nearest text that an argument takes."""
    yield from _nearest(message, span, at)


def dtype(message: say.NoSuchDtype, span: Span, at: Places) -> Iterator[Fix]:
    """The nearest dtype."""
    yield from _nearest(message, span, at)


def _nearest(message: say.BadArgument | say.NoSuchDtype, span: Span, at: Places) -> Iterator[Fix]:
    place = place_of(message.word, span, at)
    if place is not None and message.near:
        yield Fix(f"write `{message.near}`", place, at.text.slice(place).replace(message.word, message.near))


def place_of(word: str, span: Span, at: Places) -> Span | None:
    """Where a keyword stands in a call, or a literal text with its quotes."""
    if not word:
        return None
    keyword = the(at, span, ast.keyword, lambda node: node.arg == word)
    if keyword is not None:
        place = at.spans[keyword]
        return Span(place.line, place.column, place.line, place.column + len(word))
    text = the(at, span, ast.Constant, lambda node: node.value == word)
    return at.spans[text] if text is not None and at.written(text)[1:-1] == word else None


def syntax(message: say.SyntaxMistake, span: Span, text: Text) -> Iterator[Fix]:
    """What Python's own message says to add or to leave out."""
    if message.problem == "expected ':'":
        yield from _colon(span, text)
    elif "outside async function" in message.problem:
        yield from without_async(span, text)


def without_async(span: Span, text: Text) -> Iterator[Fix]:
    """`for`, `with` and `def` without `async`; a value without `await`."""
    line = text.line(span.line)
    for word in ("async", "await"):
        if line.startswith(word, span.column):
            stop = span.column + len(word)
            stop += len(line[stop:]) - len(line[stop:].lstrip())
            if line[stop:].strip():
                yield Fix(f"leave out `{word}`", Span(span.line, span.column, span.line, stop), "")


def _colon(span: Span, text: Text) -> Iterator[Fix]:
    """`:` behind the last word before the place where Python misses it."""
    line = text.line(span.line)
    column = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(line.lstrip()).readline):
            stop = token.end[1] + len(line) - len(line.lstrip())
            if token.type in (tokenize.COMMENT, tokenize.NEWLINE, tokenize.ENDMARKER) or stop > span.column + 1:
                break
            if stop <= span.column:
                column = stop
    except (tokenize.TokenError, SyntaxError):
        pass  # the line does not end in itself; what was read up to there is enough
    if column:
        yield inserted("add the `:`", span.line, column, ":")
