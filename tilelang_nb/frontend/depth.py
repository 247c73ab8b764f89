"""Where a text is nested deeper than Python's parser or compiler can go, which do not say it themselves."""

from __future__ import annotations

import ast
import io
import tokenize

from ..source import catalogue as say
from ..source.diagnostic import Message
from ..source.text import Span, Text


def too_deep_for_python(what: str) -> Message:
    """TL005 for a line or statement that Python cannot take in."""
    problem = f"{what} is longer or deeper nested than Python can read"
    return say.SyntaxMistake(problem=problem, remedy="split it, with names for the parts, or use a loop")


def longest_line(text: Text) -> Span:
    """The logical line with the most tokens: what a parser without memory left has stopped at."""
    first = last = text.first_line
    best, count, start = 0, 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.padded).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                continue
            count, start = count + 1, start or token.start[0]
            if token.type == tokenize.NEWLINE:
                if count > best:
                    best, first, last = count, start, token.end[0]
                count = start = 0
    except (tokenize.TokenError, SyntaxError):
        pass  # what was found up to there
    last = min(last, text.last_line)
    indent = len(text.line(first)) - len(text.line(first).lstrip())
    return Span(first, indent, last, max(len(text.line(last).rstrip()), indent + 1))


def deepest_statement(node: ast.stmt) -> ast.stmt:
    """The innermost statement around the node that is nested deepest."""
    best, found = 0, node
    pending: list[tuple[ast.AST, int, ast.stmt]] = [(node, 1, node)]
    while pending:
        part, depth, statement = pending.pop()
        if depth > best:
            best, found = depth, statement
        for child in ast.iter_child_nodes(part):
            pending.append((child, depth + 1, child if isinstance(child, ast.stmt) else statement))
    return found
