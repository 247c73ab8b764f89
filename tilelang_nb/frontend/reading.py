"""A text read as Python, and TL005 where it is none."""

from __future__ import annotations
import __future__ as future

import ast
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic
from ..source.syntax_tree import parse
from ..source.text import Span, Text
from .depth import deepest_statement, longest_line, too_deep_for_python
from .places import header_span
from .python_mistakes import python_mistake


def read(text: Text) -> tuple[ast.Module | None, Diagnostic | None]:
    """The syntax tree, or what is wrong with the text."""
    try:
        return parse(text), None
    except SyntaxError as error:
        return None, ("null bytes" in str(error.msg) and _unreadable(text)) or syntax_mistake(error, text)
    except (RecursionError, MemoryError):
        return None, too_deep_for_python("this line").at(longest_line(text))
    except ValueError as error:  # null bytes, lone surrogates
        return None, _unreadable(text) or compiling_mistake(error, ast.Pass(lineno=1, col_offset=0), text)


def _unreadable(text: Text) -> Diagnostic | None:
    """TL005 for the first character that no Python text holds."""
    for line in range(text.first_line, text.last_line + 1):
        for column, character in enumerate(text.line(line)):
            if character == "\0" or "\ud800" <= character <= "\udfff":
                problem = f"a character that no text holds (U+{ord(character):04X})"
                message = say.SyntaxMistake(problem=problem, remedy="remove the character")
                return message.at(Span(line, column, line, column + 1))
    return None


def syntax_mistake(error: SyntaxError, text: Text) -> Diagnostic:
    """TL005 where Python's parser or compiler stopped."""
    line = min(max(error.lineno or text.first_line, text.first_line), text.last_line)
    column = max(0, (error.offset or 1) - 1)
    end_line, end_column = error.end_lineno or line, (error.end_offset or 0) - 1
    if (end_line, end_column) <= (line, column) or end_line > text.last_line:
        end_line, end_column = line, column + 1
    message = python_mistake(str(error.msg))
    return message.at(Span(line, column, end_line, end_column))


def compiling_mistake(error: Exception, node: ast.stmt, text: Text) -> Diagnostic:
    """TL005 for what `compile` raised on a statement."""
    if isinstance(error, SyntaxError):
        return syntax_mistake(error, text)
    if isinstance(error, (RecursionError, MemoryError)):
        return too_deep_for_python("this statement").at(header_span(text, deepest_statement(node)))
    return say.SyntaxMistake(problem=str(error), remedy="correct the line").at(text.span(node))


def future_flags(tree: ast.Module) -> int:
    """Flags of `compile` for the `from __future__` imports of a text."""
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                feature: Any = getattr(future, alias.name, None)
                flags |= getattr(feature, "compiler_flag", 0)
    return flags
