"""`tilelang-nb check | run | explain | export`: the compiler on files and notebooks, without Jupyter.

Exit status: 0 all is well, 1 the files have errors (or a run had findings), 2 the command itself was wrong.
"""

from __future__ import annotations

import argparse
import html
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..source.catalogue.page import UnknownCode, explain, listing, page
from .compiling import UsageError, check, compile_all, document
from .fixing import fix_files
from .output import FORMATS, show


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
        from ..runtime.internal import report_text

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

    check = commands.add_parser("check", help="check files and notebooks, one line per diagnostic")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .py file or a notebook (.ipynb)")
    check.add_argument("--format", choices=sorted(FORMATS), default="text", help="how diagnostics are written")
    check.add_argument("--fix", action="store_true", help="make the edits that cure mistakes, and write the files")
    check.add_argument("--diff", action="store_true", help="show the edits of --fix and write nothing")
    check.add_argument("--build", action="store_true", help="also run the host code, and build and lower every kernel")
    _add_target(check)
    check.set_defaults(command=check_files)

    run = commands.add_parser("run", help="run a file or the %%%%tilelang cells of a notebook")
    run.add_argument("file", type=Path, metavar="FILE")
    _add_target(run)
    run.set_defaults(command=run_file)

    explain = commands.add_parser("explain", help="the page of a diagnostic code")
    explain.add_argument("code", metavar="CODE", nargs="?", help="a code or its slug, TL101; without it all are listed")
    explain.set_defaults(command=explain_code)

    operations = commands.add_parser("operations", help="the operations of the language, a line each")
    operations.add_argument("word", metavar="WORD", nargs="?", default="", help="only those that speak of this")
    operations.set_defaults(command=list_operations)

    export = commands.add_parser("export", help="compile a file and write its report as an HTML page")
    export.add_argument("file", type=Path, metavar="FILE")
    export.add_argument("-o", "--output", type=Path, required=True, metavar="PAGE", help="the page to write")
    _add_target(export)
    export.set_defaults(command=export_file)
    return parser


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", choices=["auto", "cuda", "sim"], default="auto", help="the device to compile for")
    command.add_argument("--arch", metavar="ARCH", help="the architecture, as sm_90a")
    command.add_argument("--limits", default="", metavar="NAME=N", help="what a build may take, as items=100000")


# -- commands


def list_operations(asked: Any) -> int:
    """Write the operations of `T`; 1 where none speaks of the word."""
    from ..language.directory import listing, operations

    print(listing(asked.word), end="")
    return int(not operations(asked.word))


def check_files(asked: Any) -> int:
    """Write what is wrong with the texts of the files, or cure what has a cure."""
    if asked.fix or asked.diff:
        return fix_files(asked)
    found = [item for path in asked.files for item in check(document(path), asked)]
    FORMATS[asked.format](found)
    return int(any(item.diagnostic.severity == "error" for item in found))


def run_file(asked: Any) -> int:
    """Run a file as a program, or the cells of a notebook in order, stopping at the first that fails."""
    from ..runtime.kernel import SimulatorFindings, launches

    launches.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatorFindings)  # shown below, with their lines
        status = 0
        for unit, compilation in compile_all(document(asked.file), asked, "__main__"):
            show(unit.text, compilation.diagnostics)
            if not compilation.ok:
                status = 1
                break
    for launch in launches:
        if launch.findings:
            print(f"the simulated device found faults in a launch of {launch.kernel.name}:", file=sys.stderr)
            show(launch.kernel.text, launch.findings)
            status = 1
    return status


def explain_code(asked: Any) -> int:
    """Print the page of a code or slug; without one, the list of codes."""
    if asked.code is None:
        print(listing(), end="")
        return 0
    try:
        page(asked.code)
    except UnknownCode as error:
        raise UsageError(str(error)) from None
    print(explain(asked.code), end="")
    return 0


def export_file(asked: Any) -> int:
    """Compile a file or notebook and write the reports of its texts as one page."""
    from ..runtime.views import view

    compiled, status = [], 0
    for unit, compilation in compile_all(document(asked.file), asked, asked.file.stem):
        compiled.append(compilation)
        show(unit.text, compilation.diagnostics)
        status = max(status, int(not compilation.ok))
    page = view("page")(compiled[0]) if len(compiled) == 1 else _page_of_several(asked.file.name, compiled)
    try:
        asked.output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {asked.output}: {error.strerror}") from error
    print(f"wrote {asked.output}")
    if not status and not any(compilation.kernels for compilation in compiled):
        print(f"no kernel was built: {asked.file} makes none when it is imported", file=sys.stderr)
    return status


def _page_of_several(title: str, compiled: list[Any]) -> str:
    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
    return head + "\n<hr>\n".join(compilation.to_html() for compilation in compiled) + "\n</html>\n"
