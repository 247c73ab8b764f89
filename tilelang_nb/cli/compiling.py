"""Files and notebooks compiled: their texts in order, which share their names as the cells of a notebook do."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..frontend.limits import limits_of, settings_of
from ..frontend.static import Checker
from ..source.diagnostic import Diagnostic, Refusal
from ..source.document import Document, NotReadable, PlainCell, Unit

# Statements of plain notebook cells that only make names, which kernels of later cells may use.
NAMING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class UsageError(Exception):
    """The command cannot be carried out as it was given; exit status 2."""


@dataclass(frozen=True)
class Found:
    """A diagnostic and the text that it speaks of."""

    unit: Unit
    diagnostic: Diagnostic


def document(path: Path) -> Document:
    """A file as it is given.  UsageError: it cannot be read."""
    try:
        return Document.read(path)
    except (OSError, NotReadable) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def check(file: Document, asked: Any) -> list[Found]:
    """What is wrong with the texts of a file, as far as it can be known without running it; with `--build` also what
    comes to light when its host code runs and its kernels are built.  Its main program is not run.
    """
    found = list(_from_text(file))
    if not asked.build:
        return found
    known = {(item.unit, item.diagnostic.key) for item in found}
    # What the file prints would mix with our lines.
    with contextlib.redirect_stdout(sys.stderr):
        for unit, compilation in compile_all(file, asked, file.path.stem):
            built = [Found(unit, diagnostic) for diagnostic in compilation.diagnostics]
            found += [item for item in built if (unit, item.diagnostic.key) not in known]
    return sorted(found, key=lambda item: (item.unit.cell or 0, item.diagnostic.order))


def _from_text(file: Document) -> Iterator[Found]:
    checker = Checker()
    for part in _parts(file):
        if isinstance(part, PlainCell):
            checker.skip(part.lines)
        else:
            yield from (Found(part, diagnostic) for diagnostic in checker.check(part.text))


def compile_all(file: Document, asked: Any, module: str) -> Iterator[tuple[Unit, Any]]:
    """Every text of a file with its compilation.  module: their `__name__`."""
    from ..runtime.compilation import compile_cell
    from ..runtime.target import ARCHITECTURES, TARGETS

    names: dict[str, Any] = {"__name__": module, "__file__": str(file.path)}
    limits = _limits(asked.limits)
    with _directory_on_path(file.path):
        for part in _parts(file):
            if isinstance(part, PlainCell):
                _run_naming_statements(part, names)
                continue
            target = asked.target
            if target == "auto":
                target = _known(part, "--target", TARGETS) or target
            try:
                compilation = compile_cell(
                    "\n".join(part.text.lines),
                    names,
                    filename=part.place,
                    first_line=part.first_line,
                    target=target,
                    arch=asked.arch or _known(part, "--arch", ARCHITECTURES),
                    limits={**_limits_of_cell(part), **limits},
                )
            except SystemExit as stop:
                raise UsageError(f"{part.place} ended itself with status {stop.code}") from None
            yield part, compilation


def _option(unit: Unit, name: str) -> str:
    """What the line of a cell's magic says of an option."""
    found = re.search(rf"(?:^|\s){name}[\s=]+(\S+)", unit.options)
    return found[1] if found else ""


def _known(unit: Unit, name: str, values: Sequence[str]) -> str | None:
    """The same; None where it says nothing that is known without running."""
    found = _option(unit, name)
    return found if found in values else None


def _limits_of_cell(unit: Unit) -> dict[str, int]:
    """Limits that the line of a cell's magic sets, where they are known without running."""
    try:
        return _limits(_option(unit, "--limits"))
    except UsageError:
        return {}


def _limits(text: str) -> dict[str, int]:
    try:
        found = settings_of(text, "--limits")
        limits_of(found)
    except Refusal as refusal:
        message = refusal.message
        said = f"{message.fill(message.text)}; {message.fill(message.advice)}"
        raise UsageError(f"--limits {text}: {said}") from None
    return found


def _parts(file: Document) -> list[Unit | PlainCell]:
    try:
        return list(file.parts())
    except NotReadable as error:
        raise UsageError(f"{file.path} is no notebook") from error


def _run_naming_statements(cell: PlainCell, names: dict[str, Any]) -> None:
    """Best effort: a name that cannot be made here is reported where a kernel uses it."""
    if cell.lines and cell.lines[0].startswith("%%"):
        return
    kept = ["" if line.lstrip().startswith(("%", "!")) else line for line in cell.lines]
    try:
        tree = ast.parse("\n".join(kept))
    except SyntaxError:
        return
    for node in tree.body:
        if isinstance(node, NAMING):
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([node], []), "<cell>", "exec", dont_inherit=True), names)


@contextlib.contextmanager
def _directory_on_path(path: Path) -> Iterator[None]:
    """As `python FILE` does: modules beside the file can be imported."""
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.path.pop(0)
