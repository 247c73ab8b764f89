"""The syntax tree of a text, and the nodes at a place of it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from .text import Span, Text

KERNEL_TEXT = "<kernel>"  # what the code of expressions in a kernel's text calls its file


def parse(text: Text) -> ast.Module:
    """The tree of a text, with the lines that the user sees; raises what `ast.parse` raises."""
    try:
        return ast.parse(text.padded)
    except SyntaxError:
        spelt = with_assert_operations(text.padded)
        if spelt == text.padded:
            raise
        return ast.parse(spelt)


def with_assert_operations(source: str) -> str:
    """`T.assert(` read as `T.Assert(`: a keyword is no attribute name, and the width stays."""
    lines = source.split("\n")
    before: tokenize.TokenInfo | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.string == "assert" and before is not None and before.string == ".":
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column] + "Assert" + lines[row - 1][column + 6 :]
            before = token
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass  # what was found up to there; the parser says the rest
    return "\n".join(lines)


class Places:
    """The nodes of a tree by place, with their parents."""

    def __init__(self, text: Text, tree: ast.Module):
        self.text, self.tree = text, tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.spans = {node: text.span(node) for node in self.parents if hasattr(node, "lineno")}

    def inside(self, span: Span, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Nodes of these kinds that lie in a range, in the order of the text."""
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        for node, place in self.spans.items():
            if isinstance(node, kinds) and start <= (place.line, place.column):
                if (place.end_line, place.end_column) <= end:
                    yield node

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What the node lies in, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node belongs to; itself if it is one."""
        return next((n for n in (node, *self.around(node)) if isinstance(n, ast.stmt)), None)

    def written(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.text.slice(self.spans[node])

    def names(self) -> set[str]:
        """Every name in the text."""
        found = {node.id for node in self.parents if isinstance(node, ast.Name)}
        return found | {node.arg for node in self.parents if isinstance(node, ast.arg)}


@lru_cache(maxsize=4)
def places(text: Text) -> Places | None:
    """The places of a text; None if it is no Python."""
    try:
        return Places(text, parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
