"""Where the text of a `%%tilelang` cell stands: its lines as the editor counts them, its name for tracebacks and
`inspect`.

IPython hands a cell magic the body only.  The lines above it (the magic line, comments, `%%time`) are counted from the
cell as it was typed, so that every message, traceback and breakpoint speaks of the editor's lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MAGIC = "%%tilelang"
_HEAD = re.compile(re.escape(MAGIC) + r"(?=\s|$)")
_HELP = re.compile(r"\s(-h|--help)(?=\s|$)")


@dataclass(frozen=True)
class CellText:
    """The body of a cell.

    `first_line` is its first line's number, `name` what messages call it, `code_name` what Python does.
    """

    body: str
    first_line: int
    name: str
    code_name: str


def register(shell: Any, body: str, raw_cell: str) -> CellText:
    """Give the body a file name that `inspect`, `linecache` and tracebacks understand, with the editor's line numbers.

    raw_cell: the cell as typed, "" if the magic was called by code.
    """
    above = lines_above(body, raw_cell)
    padded = "\n" * above + body
    number = shell.displayhook.prompt_count  # `execution_count` is ahead of it while a cell runs, in some versions
    # The raw code only feeds the file name (a hash in ipykernel).  The mark keeps it apart from the name of the cell
    # itself, whose entry in linecache holds the call of the magic.
    code_name = shell.compile.cache(padded, number, raw_code=f"#{MAGIC}\n{raw_cell or padded}")
    return CellText(body, above + 1, f"In[{number}]", code_name)


def file_name(shell: Any, file: str) -> str:
    """`In[3]` for the file name under which IPython compiled a cell; other files as they are."""
    named = shell.compile.format_code_name(file)
    return named[1].replace(" ", "") if named and named[0] == "Cell" else file


def lines_above(body: str, raw_cell: str) -> int:
    """How many lines of the editor stand above the body: at least the magic line."""
    raw, tail = raw_cell.rstrip(), body.rstrip()
    above = raw.count("\n", 0, len(raw) - len(tail)) if tail and raw.endswith(tail) else 0
    return max(above, 1)


def hoist_magic(lines: list[str]) -> list[str]:
    """An input transformer: comments and blank lines above `%%tilelang` would make IPython take the cell for plain
    code.

    The magic line moves to the top and the comments down by one, so the body keeps its line numbers.  A tab after the
    magic's name becomes a space, which IPython needs to find the name's end.  `%%tilelang --help` alone
    gets an empty body, without which IPython refuses it before the magic sees it.
    """
    for index, line in enumerate(lines):
        if _HEAD.match(line):
            head = re.sub(r"^(%%tilelang)\t", r"\1 ", line)
            body = [*lines[:index], *lines[index + 1 :]]
            if not body and _HELP.search(head):
                body = ["\n"]
            return [head if head.endswith("\n") else head + "\n", *body]
        if line.strip() and not line.lstrip().startswith("#"):
            return lines
    return lines
