"""The options of the `%%tilelang` line: their table, their help text, and the line as a value.

`--call` takes a Python expression up to the next option, quotes not needed; in the values of the other options `{name}`
and `$name` stand for notebook variables, and a name that is not defined is said so instead of being passed on as text.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.utils.text import DollarFormatter

from ..frontend.limits import limits_of, settings_of
from ..runtime.target import TARGETS
from ..source.diagnostic import Refusal
from ..source.wording import nearest

DESCRIPTION = """\
%%tilelang [options]   compile the kernels of this cell, run its other statements, show every stage
%tilelang COMMAND      explain [CODE] | devices | inspect NAME | clear-cache | freeze

In the cell `T`, `tilelang` and `jit` are there already, and `import tilelang` means this package.
The cell is ordinary Python otherwise: its names land in the notebook, its last expression is shown
(end it with `;` to silence it)."""

EPILOG = """\
In option values `{NAME}` and `$NAME` stand for notebook variables: --arch {ARCH}. The expression of
--call is Python as it is.

examples:
  %%tilelang
  %%tilelang --call add(A, B, C)
  %%tilelang --target sim --stages tile,thread
  %tilelang explain TL101"""


@dataclass(frozen=True)
class CellOptions:
    """What a `%%tilelang` line asks for.

    call: a Python expression evaluated in the notebook after the cell ran; its value is the result of the cell.
    stages: names of the stages to show, in the order given; empty for all.  limits: settings of `frontend.limits`.
    """

    target: str = "auto"
    arch: str | None = None
    call: str | None = None
    bench: bool = False
    stages: tuple[str, ...] = ()
    widget: bool = True
    quiet: bool = False
    help: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as IPython's usage errors do, and leaves the process alone."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%tilelang: {message} (`%%tilelang --help` lists the options)")


def parser() -> argparse.ArgumentParser:
    """The options as `argparse` knows them; `completion` reads the table from here."""
    parser = _Parser(
        prog="%%tilelang",
        usage=argparse.SUPPRESS,
        description=DESCRIPTION,
        epilog=EPILOG,
        add_help=False,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=20, width=100),
    )
    add = parser.add_argument
    add("--target", choices=TARGETS, default="auto", help="where to run; auto: a GPU where there is one, else sim")
    add("--arch", metavar="ARCH", help="architecture to compile for, such as sm_90a")
    add("--call", metavar="EXPR", help="evaluate EXPR after the cell ran and show its value, e.g. add(A, B, C)")
    add("--bench", action="store_true", help="time the launches; refused on sim, whose times say nothing about a GPU")
    add("--stages", metavar="NAMES", help="show only these stages, separated by commas, e.g. tile,thread")
    add("--limits", metavar="NAME=N", help="what a build may take: items, turns, statements, macro_depth, bits")
    add("--no-widget", action="store_true", help="show static text only")
    add("--quiet", action="store_true", help="show results, prints and diagnostics, but no stages")
    add("-h", "--help", action="store_true", help="show this text")
    return parser


PARSER = parser()
HELP = PARSER.format_help()


def parse(line: str, names: Mapping[str, Any] | None = None) -> CellOptions:
    """The options of a magic line.

    names: the notebook's variables, for `{name}` and `$name` in each word but the expression of `--call`.
    Raises UsageError with one line of text for an unknown option, a bad value, or a name that is not defined.
    """
    known = dict(names or {})
    given, others = PARSER.parse_known_args(
        [word if literal else _expanded(word, known) for word, literal in _words(line)]
    )
    if others:
        PARSER.error(_unrecognised(others, given.stages))
    if given.arch is not None and not re.fullmatch(r"sm_\d{2,3}[af]?", given.arch):
        PARSER.error(f"--arch {given.arch}: write an architecture such as sm_90a")
    stages = tuple(name.strip() for name in (given.stages or "").split(",") if name.strip())
    limits = _limits(given.limits or "")
    return CellOptions(
        given.target, given.arch, given.call, given.bench, stages, not given.no_widget, given.quiet, given.help, limits
    )


def _unrecognised(words: list[str], stages: str | None) -> str:
    """What words that belong to no option were meant to be."""
    first, written = words[0].partition("=")[0], " ".join(words)
    message = f"unrecognized arguments: {written}"
    if first.startswith("-"):
        near = nearest(first, PARSER._option_string_actions)
        return f"{message}; did you mean {near}?" if near else message
    if "(" in first:
        return f"{message}; did you mean --call {written}?"
    if stages is not None and all(re.fullmatch(r"[\w,-]+", word) for word in words):
        return f"{message}; separate stages by commas: --stages {','.join([stages.strip(','), *words])}"
    return message


def _limits(text: str) -> dict[str, int]:
    try:
        found = settings_of(text, "--limits")
        limits_of(found)
    except Refusal as refusal:
        message = refusal.message
        PARSER.error(f"--limits {text}: {message.fill(message.text)}; {message.fill(message.advice)}")
    return found


def _expanded(word: str, names: dict[str, Any]) -> str:
    """A word with the notebook's variables in it.

    IPython itself leaves it as it is, without a word, where one fails.
    """
    if "{" not in word and "$" not in word:
        return word
    try:
        return DollarFormatter().vformat(word, (), names)
    except Exception as error:  # whatever the user's expression raises
        PARSER.error(f"{word}: {error}" if isinstance(error, NameError) else f"{word}: {type(error).__name__}: {error}")


def _words(line: str) -> list[tuple[str, bool]]:
    """The words of the line; (word, is it a Python expression to be left alone)."""
    words: list[tuple[str, bool]] = []
    rest = line.strip()
    while rest:
        head = re.match(r"--call(?=[\s=]|$)=?", rest)
        if head:
            end = _expression_end(rest, head.end())
            expression = rest[head.end() : end].strip()
            if not expression:
                PARSER.error("--call needs an expression, e.g. --call add(A, B, C)")
            # As one `--call=` word: an expression may begin with a minus sign.
            words.append((f"--call={_unquoted(expression)}", True))
            rest = rest[end:].lstrip()
            continue
        word = re.match(r"\{[^{}]*\}\S*|(?:[^\s\"'{]|\"[^\"]*\"|'[^']*'|\{[^{}]*\}|[\"'{])+", rest)
        assert word is not None  # rest is stripped and not empty, and any character but a space begins a word
        words.append((_unquoted(word.group()), False))
        rest = rest[word.end() :].lstrip()
    return words


def _unquoted(word: str) -> str:
    """`--call "add(A, B)"`: quotes around the whole are the shell's habit, not a Python string."""
    match = re.fullmatch(r"\"([^\"]*)\"|'([^']*)'", word)
    return (match.group(1) or match.group(2) or "") if match else word


def _expression_end(line: str, start: int) -> int:
    """Where the expression that begins at `start` ends: at the next ` --option` outside brackets and strings."""
    depth, quote, position = 0, "", start
    while position < len(line):
        character = line[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character.isspace() and depth <= 0 and re.match(r"\s+(--[a-z]|-h\b)", line[position:]):
            return position
        position += 1
    return len(line)
