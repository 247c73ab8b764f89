"""`tilelang-nb check --fix`: the edits of diagnostics made in files and notebooks, until none is left to make."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..source.diagnostic import Diagnostic, Fix
from ..source.document import Document, PlainCell, Unit
from ..source.edits import apply, chosen
from ..source.syntax_tree import places
from .compiling import Found, UsageError, check, document
from .output import FORMATS

ROUNDS = 50  # an edit may uncover another mistake; no text needs more turns than this


@dataclass(frozen=True)
class Fixed:
    """A file after its edits.  made: them in order, each with what it cured.  left: what is still wrong."""

    file: Document
    made: tuple[tuple[Unit, Diagnostic, Fix], ...]
    left: tuple[Found, ...]


def fix_files(asked: Any) -> int:
    """Cure the files and write what was done and what is left; with `--diff` show it and write nothing."""
    fixed = []
    for path in asked.files:
        before = document(path)
        after = fix(before, asked)
        fixed.append(after)
        if asked.diff:
            sys.stdout.writelines(_difference(before, after.file))
        elif after.made:
            try:
                after.file.write()
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}") from error
    # Lines for people stand aside where standard output is for a program.
    told = sys.stdout if asked.format == "text" and not asked.diff else sys.stderr
    made = [item for after in fixed for item in after.made]
    for unit, diagnostic, edit in made:
        print(f"{unit.place}:{edit.span.line}:{edit.span.column + 1}: {diagnostic.code} {edit.title}", file=told)
    number = f"{len(made)} edit{'s' * (len(made) != 1)}"
    print(f"{number} would be made." if asked.diff else f"{number} made.", file=told)
    left = [item for after in fixed for item in after.left]
    if not asked.diff:
        FORMATS[asked.format](left)
    status = int(any(item.diagnostic.severity == "error" for item in left))
    return 1 if asked.diff and made else status


def fix(file: Document, asked: Any) -> Fixed:
    """Make the first edit of every diagnostic that has one, look again, and so on."""
    made: list[tuple[Unit, Diagnostic, Fix]] = []
    seen = {file.raw}
    found = check(file, asked)
    for _ in range(ROUNDS):
        edits = list(_edits(found))
        following = file.with_texts({unit: source for unit, source, _ in edits})
        if not edits or following.raw in seen:
            break
        seen.add(following.raw)
        file = following
        made += [(unit, diagnostic, edit) for unit, _, done in edits for diagnostic, edit in done]
        found = check(file, asked)
    return Fixed(file, tuple(made), tuple(found))


def _edits(found: list[Found]) -> Iterator[tuple[Unit, str, list[tuple[Diagnostic, Fix]]]]:
    """Units with their new sources and the edits made in them; a text that was Python stays Python."""
    for unit in dict.fromkeys(item.unit for item in found):
        done = chosen([item.diagnostic for item in found if item.unit == unit])
        if not done:
            continue
        source = apply(unit.text, [edit for _, edit in done])
        if places(unit.text) is None or places(replace(unit, source=source).text) is not None:
            yield unit, source, done


def _difference(before: Document, after: Document) -> Iterator[str]:
    """The changed texts of a file as a unified difference."""
    for old, new in zip(before.parts(), after.parts()):
        if isinstance(old, PlainCell) or isinstance(new, PlainCell) or old.source == new.source:
            continue
        lines = [[f"{line}\n" for line in unit.text.lines] for unit in (old, new)]
        yield from difflib.unified_diff(*lines, old.place, new.place)
