"""`tilelang-nb check | run | explain | export`: the compiler on files and notebooks, without Jupyter.

Exit status: 0 all is well, 1 the files have errors (or a run had findings), 2 the command itself was wrong.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import html
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __version__
from .source.catalogue.page import UnknownCode, explain, page
from .source.diagnostic import Diagnostic
from .source.text import Text

MAGIC = re.compile(r"%%tilelang(\s|$)")
# Statements of plain notebook cells that only make names, which kernels of later cells may use.
NAMING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class UsageError(Exception):
    """The command cannot be carried out as it was given; exit status 2."""


@dataclass(frozen=True)
class Unit:
    """A text to compile: a whole file, or one `%%tilelang` cell of a notebook with its number among all cells."""

    path: Path
    text: str
    first_line: int = 1
    cell: int | None = None

    @property
    def place(self) -> str:
        return f"{self.path}:cell {self.cell}" if self.cell is not None else str(self.path)


@dataclass(frozen=True)
class Found:
    """A diagnostic and the text that it speaks of."""

    unit: Unit
    diagnostic: Diagnostic


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.command is None:
        parser.print_help()
        return 2
    try:
        return asked.command(asked)
    except UsageError as error:
        print(f"tilelang-nb: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tilelang-nb: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        from .runtime.internal import report_text

        print(
            f"tilelang-nb: error[TL900]: a fault of tilelang_nb; please report it: {report_text(error)}",
            file=sys.stderr,
        )
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tilelang-nb", description="Check, run and explain TileLang kernels.")
    parser.add_argument("--version", action="version", version=f"tilelang-nb {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    check = commands.add_parser("check", help="compile files and notebooks, one line per diagnostic")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .py file or a notebook (.ipynb)")
    check.add_argument("--format", choices=sorted(FORMATS), default="text", help="how diagnostics are written")
    check.add_argument("--build", action="store_true", help="also lower every kernel for the target")
    _add_target(check)
    check.set_defaults(command=check_files)

    run = commands.add_parser("run", help="run a file or the %%%%tilelang cells of a notebook")
    run.add_argument("file", type=Path, metavar="FILE")
    _add_target(run)
    run.set_defaults(command=run_file)

    explain = commands.add_parser("explain", help="the page of a diagnostic code")
    explain.add_argument("code", metavar="CODE", help="a code or its slug: TL101, chained-assignment")
    explain.set_defaults(command=explain_code)

    export = commands.add_parser("export", help="compile a file and write its report as an HTML page")
    export.add_argument("file", type=Path, metavar="FILE")
    export.add_argument("-o", "--output", type=Path, required=True, metavar="PAGE", help="the page to write")
    _add_target(export)
    export.set_defaults(command=export_file)
    return parser


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", choices=["auto", "cuda", "sim"], default="auto", help="the device to compile for")
    command.add_argument("--arch", metavar="ARCH", help="the architecture, as sm_90a")


# -- commands


def check_files(asked: Any) -> int:
    """Compile every text of the files and write what is wrong with them."""
    found = [item for path in asked.files for item in _check(path, asked)]
    FORMATS[asked.format](found)
    return int(any(item.diagnostic.severity == "error" for item in found))


def run_file(asked: Any) -> int:
    """Run a file as a program, or the cells of a notebook in order, stopping at the first that fails."""
    from .runtime.kernel import SimulatorFindings, launches

    launches.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatorFindings)  # shown below, with their lines
        status = 0
        for unit, compilation in _compile_all(asked.file, asked, "__main__"):
            _show(unit, compilation.diagnostics)
            if not compilation.ok:
                status = 1
                break
    for launch in launches:
        if launch.findings:
            print(f"the simulated device found faults in a launch of {launch.kernel.name}:", file=sys.stderr)
            _show_in(launch.kernel.text, launch.findings)
            status = 1
    return status


def explain_code(asked: Any) -> int:
    """Print the page of a code or slug."""
    try:
        page(asked.code)
    except UnknownCode as error:
        raise UsageError(str(error)) from None
    print(explain(asked.code), end="")
    return 0


def export_file(asked: Any) -> int:
    """Compile a file or notebook and write the reports of its texts as one page."""
    from .runtime.views import view

    compiled, status = [], 0
    for unit, compilation in _compile_all(asked.file, asked, asked.file.stem):
        compiled.append(compilation)
        _show(unit, compilation.diagnostics)
        status = max(status, int(not compilation.ok))
    page = view("page")(compiled[0]) if len(compiled) == 1 else _page_of_several(asked.file.name, compiled)
    try:
        asked.output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {asked.output}: {error.strerror}") from error
    return status


def _page_of_several(title: str, compiled: list[Any]) -> str:
    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
    return head + "\n<hr>\n".join(compilation.to_html() for compilation in compiled) + "\n</html>\n"


# -- texts


def _check(path: Path, asked: Any) -> Iterator[Found]:
    # What the file prints would mix with our lines; its kernels are checked, its main program is not run.
    with contextlib.redirect_stdout(sys.stderr):
        for unit, compilation in _compile_all(path, asked, path.stem, lower=asked.build):
            for diagnostic in compilation.diagnostics:
                yield Found(unit, diagnostic)


def _compile_all(path: Path, asked: Any, module: str, *, lower: bool = True) -> Iterator[tuple[Unit, Any]]:
    """Every text of a file with its compilation; the texts share their names, as the cells of a notebook do."""
    units = list(_units(path))
    from .runtime.compilation import compile_cell

    names: dict[str, Any] = {"__name__": module, "__file__": str(path)}
    with _directory_on_path(path):
        for unit in units:
            if isinstance(unit, ast.Module):
                _run_naming_statements(unit, names)
                continue
            try:
                compilation = compile_cell(
                    unit.text,
                    names,
                    filename=unit.place,
                    first_line=unit.first_line,
                    target=asked.target,
                    arch=asked.arch,
                    lower=lower,
                )
            except SystemExit as stop:
                raise UsageError(f"{unit.place} ended itself with status {stop.code}") from None
            yield unit, compilation


def _units(path: Path) -> Iterator[Unit | ast.Module]:
    """The texts of a file in order; between the cells of a notebook, plain cells as syntax trees."""
    try:
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}") from error
    if path.suffix != ".ipynb":
        yield Unit(path, source)
        return
    try:
        cells = json.loads(source)["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no notebook") from error
    for number, cell in enumerate(cells, 1):
        if cell.get("cell_type") != "code":
            continue
        lines = "".join(cell.get("source", "")).split("\n")
        above = _magic_line(lines)
        if above is None:
            plain = _plain_python(lines)
            if plain is not None:
                yield plain
        else:
            yield Unit(path, "\n".join(lines[above:]), above + 1, number)


def _magic_line(lines: list[str]) -> int | None:
    """The number of the line of `%%tilelang`, counted from 1; None if the cell has none at its top."""
    for index, line in enumerate(lines):
        if MAGIC.match(line):
            return index + 1
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


def _plain_python(lines: list[str]) -> ast.Module | None:
    """The statements of a plain cell that make names; None for a cell of another magic or no Python."""
    if lines and lines[0].startswith("%%"):
        return None
    kept = ["" if line.lstrip().startswith(("%", "!")) else line for line in lines]
    try:
        tree = ast.parse("\n".join(kept))
    except SyntaxError:
        return None
    tree.body = [node for node in tree.body if isinstance(node, NAMING)]
    return tree


def _run_naming_statements(tree: ast.Module, names: dict[str, Any]) -> None:
    """Best effort: a name that cannot be made here is reported where a kernel uses it."""
    for node in tree.body:
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


# -- output


def _show(unit: Unit, diagnostics: tuple[Diagnostic, ...]) -> None:
    _show_in(Text(unit.text, unit.place, unit.first_line), diagnostics)


def _show_in(text: Text, diagnostics: tuple[Diagnostic, ...]) -> None:
    from .source.render import render

    if diagnostics:
        print(render(text, diagnostics, colour=sys.stderr.isatty()), end="", file=sys.stderr)


def _write_text(found: list[Found]) -> None:
    for item in found:
        d = item.diagnostic
        place = f"{item.unit.place}:{d.span.line}:{d.span.column + 1}" if d.span else item.unit.place
        severity = "" if d.severity == "error" else f"{d.severity}: "
        print(f"{place}: {d.code} {severity}{' '.join(d.message.split())}")
    errors = sum(item.diagnostic.severity == "error" for item in found)
    others = len(found) - errors
    said = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (others, "warning")) if n]
    print(f"Found {' and '.join(said)}." if said else "All checks passed!")


def _write_json(found: list[Found]) -> None:
    print(json.dumps([_as_json(item) for item in found], indent=2, ensure_ascii=False))


def _as_json(item: Found) -> dict[str, Any]:
    d = item.diagnostic
    span = d.span
    return {
        "path": str(item.unit.path),
        "cell": item.unit.cell,
        "line": span.line if span else None,
        "column": span.column + 1 if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column + 1 if span else None,
        "code": d.code,
        "slug": d.slug,
        "severity": d.severity,
        "message": d.message,
        "help": d.help,
        "notes": [{"message": note.message, "line": note.span.line if note.span else None} for note in d.notes],
    }


def _write_github(found: list[Found]) -> None:
    """Workflow commands, which GitHub shows as annotations at the lines of the file."""
    kinds = {"error": "error", "warning": "warning", "note": "notice"}
    for item in found:
        d = item.diagnostic
        fields = {"file": str(item.unit.path), "title": f"{d.code} ({d.slug})"}
        said = d.message + (f"\nhelp: {d.help}" if d.help else "")
        if item.unit.cell is not None:
            # A line of the cell is no line of the notebook's file.
            said = f"cell {item.unit.cell}, line {d.span.line if d.span else '?'}: {said}"
        elif d.span:
            fields |= {"line": str(d.span.line), "col": str(d.span.column + 1)}
            fields |= {"endLine": str(d.span.end_line), "endColumn": str(d.span.end_column + 1)}
        written = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in fields.items())
        print(f"::{kinds[d.severity]} {written}::{_escaped(said)}")


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


FORMATS: dict[str, Callable[[list[Found]], None]] = {"text": _write_text, "json": _write_json, "github": _write_github}
