"""Texts of cells with small damage: tokens deleted, doubled, swapped; other names, indices and characters; lines cut,
doubled, swapped, moved to another depth; parts of another cell in between."""

from __future__ import annotations

import ast
import io
import keyword
import random
import tokenize
import warnings
from collections.abc import Sequence
from pathlib import Path

CASES = Path(__file__).parent.parent / "cases"
STRANGE = ["é", "变", "\u202e", "\ufeff", "\x00", "\x0c", "\\", "'", '"""', "`", "\t", "🙂", "\ud800", "；", "²", "#"]
WORDS = [
    "None",
    "True",
    "-1",
    "10**30",
    "1e400",
    "n",
    "out",
    "T",
    "T.Parallel(4)",
    "T.Tensor",
    "range(3)",
    "[]",
    "lambda: 0",
]
WORDS += [
    "...",
    "not",
    "await",
    "yield",
    "*",
    "**",
    ":=",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    "=",
    "==",
    "@",
    "->",
    "if",
    "for",
]
WORDS += ["in", "with", "def", "return", "break", "continue", "del", "global", "import", "pass", "class", "while True"]


def cells() -> list[str]:
    """The texts of the acceptance cases, valid and refused; without endless iterables, which take seconds each."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(CASES.glob("c*.py"))]
    return [text for text in texts if "itertools" not in text]


def tokens(text: str) -> list[tuple[int, int, str]]:
    """(begin, end, text) of the words of a text, as offsets; those before the place where it stops being Python."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string.strip():
                begin = starts[token.start[0] - 1] + token.start[1]
                found.append((begin, begin + len(token.string), token.string))
    except (tokenize.TokenError, SyntaxError):
        pass  # what was found up to there
    return found


def mutated(text: str, source: random.Random, others: Sequence[str] = ()) -> str:
    """The text with one to three random changes, which leave it a Python text more often than not.

    others: cells whose lines may be spliced into it.
    """
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        changed = _changed(text, source, others)
        for _ in range(source.choice([0, 4, 8])):
            if _is_python(changed):
                break
            changed = _changed(text, source, others)
        text = changed
    return text


def _is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


def _changed(text: str, source: random.Random, others: Sequence[str]) -> str:
    if source.random() < 0.2:
        return "\n".join(_lines_moved(text.split("\n"), source, others))
    words = tokens(text)
    if len(words) < 2:
        return text + source.choice(WORDS)
    begin, end, word = source.choice(words)
    kind = source.randrange(14)
    if kind == 0:
        return text[:begin] + text[end:]
    if kind == 1:
        return text[:end] + " " + text[begin:]
    if kind == 2:
        first, second = sorted([(begin, end, word), source.choice(words)])
        middle = text[first[1] : max(second[0], first[1])]
        return text[: first[0]] + second[2] + middle + first[2] + text[max(second[1], first[1]) :]
    if kind == 3:
        return text[:begin] + source.choice(words)[2] + text[end:]
    if kind == 4:
        return text[:begin] + source.choice(WORDS) + text[end:]
    if kind == 5:
        at = source.randrange(len(text) + 1)
        return text[:at] + source.choice(STRANGE) + text[at:]
    if kind == 6:
        return text[: source.randrange(len(text))]
    if kind >= 12:  # a name in place of another
        names = [item for item in words if item[2].isidentifier() and not keyword.iskeyword(item[2])] or words
        (begin, end, _), (*_, name) = source.choice(names), source.choice(names)
        return text[:begin] + name + text[end:]
    lines = text.split("\n")
    at = source.randrange(len(lines))
    if kind == 7:
        lines[at] = lines[at][: source.randrange(len(lines[at]) + 1)]
    elif kind == 8:
        lines.insert(source.randrange(len(lines)), lines[at])
    elif kind == 9:
        del lines[at]
    elif kind == 10:
        lines[at] = " " * source.randrange(9) + lines[at].lstrip()
    else:
        names = [item for item in words if item[2].isidentifier()] or words
        numbers = [item for item in words if item[2].isdigit()] or names
        begin, end, _ = source.choice(numbers)
        return text[:begin] + source.choice(["-1", "0", "7", "99999", "2**31", source.choice(names)[2]]) + text[end:]
    return "\n".join(lines)


def _lines_moved(lines: list[str], source: random.Random, others: Sequence[str]) -> list[str]:
    """Lines swapped, runs of lines doubled, moved, taken out, at another depth; or lines of another cell in between."""
    first = source.randrange(len(lines))
    run = lines[first : first + source.choice([1, 1, 2, 3, 5])]
    at = source.randrange(len(lines) + 1)
    kind = source.choice(["swap", "double", "move", "drop", "depth", "splice", "tail"])
    if kind == "swap":
        second = source.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == "double":
        lines[at:at] = run
    elif kind in ("move", "drop"):
        del lines[first : first + len(run)]
        at = min(at, len(lines))
        lines[at:at] = run if kind == "move" else []
    elif kind == "depth":
        shift = source.choice(["    ", "        ", "-4", "-8", "  "])
        lines[first : first + len(run)] = [
            line[min(-int(shift), len(line) - len(line.lstrip())) :] if shift[0] == "-" else shift + line
            for line in run
        ]
    elif others:
        other = source.choice(others).split("\n")
        begin = source.randrange(len(other))
        if kind == "tail":
            return lines[:at] + other[begin:]
        lines[at:at] = other[begin : begin + source.choice([1, 2, 4, 8])]
    return lines
