"""The text of a cell or file: lines, spans in characters; the one place where byte columns become character columns."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, order=True)
class Span:
    """A range of text: 1-based lines as the user sees them, 0-based character columns, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def covers(self, other: Span) -> bool:
        """Whether the other range lies in this one."""
        return (self.line, self.column) <= (other.line, other.column) and (other.end_line, other.end_column) <= (
            self.end_line,
            self.end_column,
        )


@dataclass(frozen=True)
class Text:
    """The text that the user wrote.

    source: the text, unchanged.
    name: what messages call it (`In[3]`, a path).
    first_line: the number of its first line as the user sees it; 2 for the body of a cell whose magic line is line 1.
    """

    source: str
    name: str = "<cell>"
    first_line: int = 1

    @cached_property
    def lines(self) -> tuple[str, ...]:
        # `str.splitlines` also splits at form feeds and Unicode separators, which Python's tokenizer does not.
        return tuple(self.source.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    @cached_property
    def padded(self) -> str:
        """The source with empty lines in front, so that line numbers of Python's parser are those the user sees."""
        return "\n" * (self.first_line - 1) + self.source

    def line(self, number: int) -> str:
        """The text of a line by its number; "" outside the text."""
        index = number - self.first_line
        return self.lines[index] if 0 <= index < len(self.lines) else ""

    @property
    def last_line(self) -> int:
        return self.first_line + len(self.lines) - 1

    def column(self, line: int, byte_column: int) -> int:
        """Python's parser counts UTF-8 bytes; people count characters."""
        text = self.line(line)
        if text.isascii():
            return byte_column
        return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))

    def positions(self, line: int, end_line: int, byte_column: int, end_byte_column: int) -> Span:
        """A span from the numbers that Python's parser and tracebacks give."""
        return Span(line, self.column(line, byte_column), end_line, self.column(end_line, end_byte_column))

    def span(self, node: ast.AST) -> Span:
        """The span of a syntax node that has a position."""
        return self.positions(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]

    def slice(self, span: Span) -> str:
        """The text under a span."""
        if span.line == span.end_line:
            return self.line(span.line)[span.column : span.end_column]
        middle = [self.line(n) for n in range(span.line + 1, span.end_line)]
        return "\n".join([self.line(span.line)[span.column :], *middle, self.line(span.end_line)[: span.end_column]])
