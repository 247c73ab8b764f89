"""Completion on the magic line: options, their values, commands of the line magic, codes and kernels."""

from __future__ import annotations

import re
import sys
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.getipython import get_ipython

from ..runtime.target import ARCHITECTURES
from .cell_text import MAGIC
from .line_commands import COMMANDS
from .options import PARSER

_CELL_LINE = re.compile(re.escape(MAGIC) + r"(?=\s)")
_LINE_MAGIC = re.compile(r"\s*%tilelang\s+(\S*\s+)?\S*$")


@context_matcher(identifier="tilelang_nb.options")
def option_matcher(context: Any) -> dict[str, Any]:
    """What may stand at the cursor on a `%%tilelang` line (comments may stand above it) or after `%tilelang`."""
    shell = get_ipython()
    rows = context.full_text.split("\n")
    row = rows[context.cursor_line] if context.cursor_line < len(rows) else ""
    head = row[: context.cursor_position]
    above = rows[: context.cursor_line]
    word = re.search(r"[^\s,]*$", head).group()  # type: ignore[union-attr]  # the pattern matches the empty word too
    if _CELL_LINE.match(head) and all(not text.strip() or text.lstrip().startswith("#") for text in above):
        found = cell_words(head[: len(head) - len(word)].split())
    elif match := _LINE_MAGIC.match(head):
        found = line_words((match.group(1) or "").strip(), shell)
    else:
        found = []
    hits = [SimpleCompletion(text, type=kind) for text, kind in found if text.startswith(word)]
    return {"completions": hits, "matched_fragment": word, "suppress": bool(hits)}


def cell_words(before: list[str]) -> list[tuple[str, str]]:
    """(text, kind) of what may follow these words of a `%%tilelang` line."""
    options = {name: action for action in PARSER._actions for name in action.option_strings if name.startswith("--")}
    previous = before[-1] if before else ""
    if previous == "--stages" or (previous.endswith(",") and "--stages" in before):
        return [(name, "value") for name in stage_names()]
    if previous == "--arch":
        return [(name, "value") for name in ARCHITECTURES]
    if previous in options and options[previous].choices:
        return [(str(choice), "value") for choice in options[previous].choices or ()]
    if previous in options and options[previous].nargs != 0:
        return []  # an expression: Python's own completion knows better
    return [(name, "param") for name in options if name not in before]


def line_words(command: str, shell: Any) -> list[tuple[str, str]]:
    """(text, kind) of what may follow `%tilelang`, or `%tilelang COMMAND`.  shell: of the notebook."""
    if not command:
        return [(name, "param") for name in COMMANDS]
    return [(name, "value") for name in COMMANDS[command].values(shell)] if command in COMMANDS else []


def stage_names() -> list[str]:
    """The names of the stages, once the compiler is loaded: completion does not wait for it."""
    pipeline, tail = (sys.modules.get(f"tilelang_nb.{name}") for name in ("lowering.pipeline", "device.tail"))
    stages = [pipeline.SPLIT[0], *(stage.name for stage in pipeline.STAGES)] if hasattr(pipeline, "lower") else []
    passes = getattr(tail, "STAGE_NAMES", ())
    return ["source", "tile", *stages, "thread", *passes, "cuda", "ptx", "sass"]
