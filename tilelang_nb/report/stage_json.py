"""The stages of a kernel in the JSON report.

stage       {name, group, language, reason, state, landmark, why?, milliseconds, changed, plus, minus,
             text | same_as, lines, gaps, statements}
state       "landmark", "changed", "same", "failed" (with `why`), "not_reached" or "on_demand" (device code that has to
            be compiled first); the last three may have no text
lines       [[first, count, [origin, further ...], [kind of each further one]?]]: lines of the text and the lines
            of the cell they come from.  kinds: "call" of the macro they are in, innermost first; "statement", a
            further line of the same statement; "return", of a macro whose value they hold; "definition" of a buffer
            that they use
gaps        [[first, count, reason]]: lines that come from no line of the cell
statements  [[first, count, first statement]]: lines of consecutive statements of the front end
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..lowering.pipeline import FIRST, LAST, SPLIT, STAGES
from ..source.render import count
from ..source.text import Text
from .diagnostic_json import string
from .expansion_json import calls, returns
from .facts import changes, lowered, ready_stages
from .stage_text import stage_files, stage_statements

LANDMARKS = ("source", "tile", "thread", "cuda", "ptx", "sass")
LANGUAGES = {"source": "python", "cuda": "cuda", "ptx": "ptx", "sass": "sass"}
ALLOCATION = re.compile(r"\s*(\w+) = T\.alloc_\w+\((?:\(([^()]*)\), \"(\w+)\")?")
# A statement that is spread over more lines than this is a block, and its first line stands for it.
LONGEST_STATEMENT = 30
Origin = tuple[tuple[int, ...], tuple[str, ...]]


def pipeline() -> list[dict[str, Any]]:
    """The stages that every kernel passes, in order."""
    named = [("source", "what the cell says"), FIRST, SPLIT, *((stage.name, stage.why) for stage in STAGES), LAST]
    return [{"name": name, "group": _group(name), "reason": reason} for name, reason in named]


def _group(name: str, after_thread: bool = False) -> str | None:
    if name in LANDMARKS:
        return None
    return "tir" if after_thread else "lowering"


def stages(one: Any, show: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The stages in order, also those that a kernel with errors did not reach.

    The text of a stage that is equal to an earlier one is given by the name of that.  show: stages whose text is made
    if it is not there.
    """
    shown = list(ready_stages(one, show))
    origins = _Origins(one)
    seen: dict[str, str] = {}
    result: list[dict[str, Any]] = []
    before: list[tuple[str, frozenset[str]]] = []
    for stage, change in zip(shown, changes(shown)):
        entry: dict[str, Any] = {
            "name": stage.name,
            "group": _group(stage.name, any(known["name"] == "thread" for known in result)),
            "language": LANGUAGES.get(stage.name, "tir"),
            "reason": string(stage.reason),
            "state": "landmark" if stage.name in LANGUAGES else "changed" if _marked(stage, change) else "same",
            "landmark": stage.name in LANDMARKS,
            "milliseconds": round(float(stage.milliseconds), 3),
            "changed": bool(stage.changed),
            "plus": len(change.new),
            "minus": change.removed,
        }
        text = stage.text
        if text in seen:
            entry["same_as"] = seen[text]
        else:
            seen[text] = stage.name
            entry["text"] = string(text)
            entry |= origins.of(stage, text, before)
            if stage.name != "source":
                before.append((stage.name, frozenset(line.strip() for line in text.split("\n"))))
        result.append(entry)
    there = {entry["name"] for entry in result}
    later = [stage for stage in one.stages if stage.name not in there]
    return [*result, *map(_on_demand, later), *_unreached(one, result)]


def _on_demand(stage: Any) -> dict[str, Any]:
    """A stage whose text runs the CUDA compiler."""
    named = {"name": stage.name, "group": None, "reason": string(stage.reason)}
    return _without_text(named, {"state": "on_demand", "why": "compiled when asked for"})


def _without_text(named: dict[str, Any], state: dict[str, str]) -> dict[str, Any]:
    return {
        **named,
        "language": LANGUAGES.get(named["name"], "tir"),
        **state,
        "landmark": named["name"] in LANDMARKS,
        "milliseconds": None,
        "changed": False,
        "plus": 0,
        "minus": 0,
        "lines": [],
        "gaps": [],
        "statements": [],
    }


def chosen_of(entries: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The source and the stages of these names; one whose text was that of a stage left out gets it itself."""
    known = {entry["name"]: entry for entry in entries}
    kept: dict[str, str] = {}  # the stage that had a text -> the one that has it now
    result = []
    for entry in entries:
        if entry["name"] != "source" and entry["name"] not in names:
            continue
        owner = entry.get("same_as", entry["name"])
        if owner in kept:
            entry = {**entry, "same_as": kept[owner]}
        elif "same_as" in entry:
            entry = {key: value for key, value in entry.items() if key != "same_as"}
            entry |= {key: known[owner][key] for key in ("text", "lines", "gaps", "statements")}
        kept.setdefault(owner, entry["name"])
        result.append(entry)
    return result


def _marked(stage: Any, change: Any) -> bool:
    return stage.name in LANDMARKS[:2] or bool(change.new or change.removed)


def _unreached(one: Any, reached: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stages of a kernel with errors after the last that it has; the stage that refused it comes first."""
    if one.ok and reached:
        return []
    errors = sum(found.severity == "error" for found in one.diagnostics)
    why = count([found for found in one.diagnostics if found.severity == "error"]) if errors else ""
    names = {stage["name"] for stage in reached}
    program = lowered(one)
    failed = getattr(program, "failed_in", "") or (FIRST[0] if "tile" not in names else "")
    left = [stage for stage in pipeline() if stage["name"] not in names]
    result = []
    if not reached:
        result.append(_source_of_refused(one))
        left = [stage for stage in left if stage["name"] != "source"]
    for entry in reached:
        if entry["name"] == failed:
            entry |= {"state": "failed", "why": why}
    for stage in left:
        state = {"state": "failed", "why": why} if stage["name"] == failed else {"state": "not_reached"}
        result.append(_without_text(stage, state))
    return result


def _source_of_refused(one: Any) -> dict[str, Any]:
    """The text of a kernel that the front end refused: its definition, or the cell where that cannot be found."""
    first, last = _definition(one.text, one.name)
    numbers = range(first, last + 1)
    return {
        "name": "source",
        "group": None,
        "language": "python",
        "reason": "what the cell says",
        "state": "landmark",
        "landmark": True,
        "milliseconds": 0.0,
        "changed": True,
        "plus": 0,
        "minus": 0,
        "text": string("\n".join(one.text.line(number) for number in numbers)),
        "lines": [[line, 1, [number]] for line, number in enumerate(numbers, 1)],
        "gaps": [],
        "statements": [],
    }


def _definition(text: Text, name: str) -> tuple[int, int]:
    try:
        tree = ast.parse(text.padded)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text.first_line, text.last_line
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return first, node.end_lineno or node.lineno
    return text.first_line, text.last_line


class Allocation(NamedTuple):
    """Where a kernel allocates a buffer, and of which shape ("64 × 32") and type; "" where the text does not say it."""

    line: int
    shape: str
    dtype: str


def allocations(one: Any) -> dict[str, Allocation]:
    """The buffers that a kernel allocates, by name."""
    tile = next((stage for stage in one.stages if stage.name == "tile"), None)
    found: dict[str, Allocation] = {}
    for line, numbers in zip(tile.text.split("\n"), tile.lines) if tile is not None else ():
        match = ALLOCATION.match(line)
        if match and numbers:
            shape = " × ".join(extent.strip() for extent in (match[2] or "").split(",") if extent.strip())
            found.setdefault(match[1], Allocation(numbers[0], shape, match[3] or ""))
    return found


class _Origins:
    """Where the lines of the stages of one kernel come from."""

    def __init__(self, one: Any):
        self.text: Text = one.text
        self.statement_spans = one.program.statement_spans if one.program is not None else ()
        # Places speak of the cell that built the program first, maybe an earlier run of the same text.
        self.name = getattr(getattr(one.program, "text", one.text), "name", "")
        self.calls: dict[int, tuple[int, ...]] = {}
        self.returns: dict[int, tuple[int, ...]] = {}
        self.foreign = False
        if one.program is not None:
            self.calls, self.foreign = calls(one.unroll, one.text)
            self.returns = returns(one.unroll, one.text)
        self.allocated = allocations(one)
        names = "|".join(map(re.escape, sorted(self.allocated, key=len, reverse=True)))
        self.uses = re.compile(rf"\b(?:{names})\b") if names else None

    def of(self, stage: Any, text: str, before: Sequence[tuple[str, frozenset[str]]]) -> dict[str, Any]:
        """`lines`, `gaps` and `statements` of a stage.  before: the lines of the stages before it, without indent."""
        statements = self._statements(stage)
        files = stage_files(stage.module) if self.foreign and stage.module is not None else ()
        origins = list(self._lines(stage, text, statements, files))
        first_linked = next((at for at, origin in enumerate(origins) if origin[0]), len(origins))
        gaps = [
            "" if origin[0] or not line.strip() else self._reason(stage, line.strip(), at < first_linked, before)
            for at, (line, origin) in enumerate(zip(text.split("\n"), origins))
        ]
        return {
            "lines": [
                [first, number, list(lines), *([list(kinds)] if kinds else [])]
                for first, number, (lines, kinds) in runs(origins)
                if lines
            ],
            "gaps": [[first, number, reason] for first, number, reason in runs(gaps) if reason],
            "statements": numbered(statements),
        }

    def _statements(self, stage: Any) -> Sequence[int | None]:
        given = getattr(stage, "statements", None)
        if given is not None:
            return given
        return stage_statements(stage.module, self.statement_spans) if stage.module is not None else ()

    def _lines(
        self, stage: Any, text: str, statements: Sequence[int | None], files: Sequence[str | None]
    ) -> Iterator[Origin]:
        lines = text.split("\n")
        source = stage.name == "source"
        for at, (line, own, span) in enumerate(zip(lines, stage.lines, stage.spans)):
            made_by = statements[at] if at < len(statements) else None
            further = self.calls.get(made_by, ()) if made_by is not None else ()
            kinds = ["call"] * len(further)
            if files and files[at] not in (None, self.name):
                own, further, kinds = further[:1], further[1:], kinds[1:]  # the line is one of another text
            elif not source and span is not None and 0 < span.end_line - span.line < LONGEST_STATEMENT:
                rest = range(own[-1] + 1 if own else span.line, span.end_line + 1)
                further, kinds = (*further, *rest), [*kinds, *["statement"] * len(rest)]
            given = [line for line in self.returns.get(made_by, ()) if line not in own] if made_by is not None else []
            further, kinds = (*further, *given), [*kinds, *["return"] * len(given)]
            if self.uses is not None and not source and own:
                defined = {self.allocated[name].line for name in self.uses.findall(line)} - {*own, *further}
                further, kinds = (*further, *sorted(defined)), [*kinds, *["definition"] * len(defined)]
            yield (*own, *further), ((*["statement"] * (len(own) - 1), *kinds) if own else ())

    @staticmethod
    def _reason(stage: Any, line: str, ahead: bool, before: Sequence[tuple[str, frozenset[str]]]) -> str:
        """Why a line comes from no line of the cell.  ahead: no line before it does."""
        if stage.name == "cuda" and ahead:
            return "prelude"
        if stage.name in ("ptx", "sass") and (ahead or line.startswith((".", "//")) or line.endswith(":")):
            return "directives and labels"
        if line in ("{", "}", "};", "else:", "} else {", "else {") or line.startswith("#pragma"):
            return "structure"
        if ahead and (line.startswith(("@T.", "def ", "T.func_attr")) or line == "):" or line.endswith(",")):
            return "declaration of the kernel"
        return next((f"made by {name}" for name, lines in before if line in lines), f"made by {stage.name}")


def runs(values: Iterable[Any]) -> list[tuple[int, int, Any]]:
    """Equal neighbours as (number of the first from 1, how many, value)."""
    result: list[tuple[int, int, Any]] = []
    for number, value in enumerate(values, 1):
        if result and result[-1][2] == value:
            first, many, _ = result[-1]
            result[-1] = (first, many + 1, value)
        else:
            result.append((number, 1, value))
    return result


def numbered(statements: Sequence[int | None]) -> list[list[int]]:
    """Lines of consecutive statements as [first line, how many, number of the first statement]."""
    keys = [None if number is None else number - line for line, number in enumerate(statements)]
    return [[first, many, key + first - 1] for first, many, key in runs(keys) if key is not None]
