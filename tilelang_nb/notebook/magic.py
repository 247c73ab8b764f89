"""`%%tilelang` and `%tilelang`: from a cell's text to what stands under it.

Thin over `compile_cell`: it registers the text, shows what came back, and fails the cell where it has errors.
"""

from __future__ import annotations

import dataclasses
import linecache
import time
from contextlib import nullcontext
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.display import display

from ..runtime.errors import CompileError, LaunchError
from ..source.diagnostic import Diagnostic
from ..source.text import Text
from . import findings, line_commands, options
from .cell_text import CellText, register
from .completion import stage_names
from .loading import Loading
from .outputs import Outputs
from .refusal import CellRefused, begin_at_cell, has_colours, unavailable
from .shown import diagnostics_view, mark_of, new_ident, report

CALL = "<%%tilelang --call>"
NO_BENCH = (
    "--bench times launches on a GPU; here kernels run on the simulated device, whose times say nothing about one",
    "leave out `--bench`",
)


@magics_class
class TilelangMagics(Magics):
    """The two magics and the two events they need; made and registered by `extension`."""

    def __init__(self, shell: Any, loading: Loading):
        super().__init__(shell)
        self.loading = loading
        self.outputs = Outputs()
        self.raw_cell = ""

    def before_cell(self, info: Any) -> None:
        """Event pre_run_cell: remember the cell as typed.  `%%capture` runs a nested one, without history."""
        if info.store_history:
            self.raw_cell, self.outputs.cell = info.raw_cell or "", getattr(info, "cell_id", None) or ""
        findings.begin()

    def after_cell(self, result: Any) -> None:
        """Event post_run_cell: what the simulator found in launches of a plain cell stands under that cell."""
        findings.show(getattr(result.error_in_exec, "diagnostic", None))
        findings.show_device_faults()

    # Expansion by IPython would replace braces of the --call expression; `options.parse` expands the other words.
    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def tilelang(self, line: str, cell: str | None = None) -> Any:
        """Replaced by the help text below."""
        if cell is None:
            return line_commands.run(self.shell, line, self.loading, self.outputs)
        asked = options.parse(line, self.shell.user_ns)
        if asked.help:
            print(options.HELP)
            return None
        return self.run_cell(asked, cell)

    tilelang.__doc__ = options.HELP

    def run_cell(self, asked: options.CellOptions, body: str) -> Any:
        """Compile and run the body, show its report, and return the value of `--call` or of its last expression."""
        self.loading.wait()
        findings.silence_warning()
        from ..runtime.compilation import compile_cell
        from ..runtime.launch_record import recording
        from ..runtime.target import resolve

        known = stage_names()
        for name in asked.stages:
            if name not in known:
                raise UsageError(f"%%tilelang: there is no stage `{name}`; the stages are {', '.join(known)}")
        if asked.bench and resolve(asked.target).kind == "sim":
            raise unavailable(*NO_BENCH)
        cell = register(self.shell, body, self.raw_cell)
        benchmarks: tuple[Any, ...] = ()
        with recording() if asked.bench else nullcontext() as launches:
            begin = time.perf_counter()
            compilation = compile_cell(
                body,
                self.shell.user_ns,
                filename=cell.name,
                first_line=cell.first_line,
                target=asked.target,
                arch=asked.arch,
                compiler=self.shell.compile,
                code_name=cell.code_name,
                limits=asked.limits,
            )
            elapsed = (time.perf_counter() - begin) * 1e3
            result = None
            failure = None if compilation.ok else self.failure(compilation, cell)
            try:  # the report of a launch by `--call` holds what it found, and that of a timed one its times
                if failure is not None:
                    raise failure
                result = compilation.result if asked.call is None else self.evaluate(asked.call)
                benchmarks = tuple(launches.timed()) if launches is not None else ()
                return result
            finally:
                self.show(compilation, asked, failure, elapsed, benchmarks, result)

    def show(
        self,
        compilation: Any,
        asked: options.CellOptions,
        failure: BaseException | None,
        elapsed: float,
        benchmarks: tuple[Any, ...] = (),
        result: Any = None,
    ) -> None:
        """The report of the cell, the findings of its launches and the times of those that were timed.

        A cell that fails shows its diagnostics as its error; what ran before may explain it and is shown all the same.
        """
        for benchmark in benchmarks:
            print(benchmark)
        refused = isinstance(failure, CompileError)
        reported = getattr(compilation.exception, "diagnostic", None)
        if not asked.quiet and asked.widget and (compilation.kernels or refused) and self.has_widgets():
            from ..report.cell_run import CellRun, result_text
            from ..runtime.internal import internal_error

            ident = new_ident()
            number = self.shell.displayhook.prompt_count
            launched = tuple(findings.counts().items())
            told = isinstance(failure, CellRefused)
            run = CellRun(
                ident, number, self.raw_cell, asked.call, elapsed, launched, benchmarks, told, result_text(result)
            )
            try:
                inspector = self.outputs.show(compilation, run, asked.stages, diagnostics=failure is None)
                if isinstance(failure, CellRefused):
                    failure.summed_up = inspector
            except Exception as error:  # the cell has run: its result counts, whatever becomes of the report
                fault = internal_error(error, "showing the report of the cell")
                display(diagnostics_view(compilation.text, (fault,)))
            findings.show(reported, {id(compilation.text): mark_of(ident)})
            return
        ran = failure is None or not isinstance(compilation.exception, (CompileError, type(None)))
        if ran and not asked.quiet and compilation.kernels:
            display(report(compilation, stages=asked.stages, diagnostics=failure is None))
        elif failure is None and compilation.diagnostics:
            display(diagnostics_view(compilation.text, compilation.diagnostics))
        findings.show(reported)

    def has_widgets(self) -> bool:
        """Is this a kernel, whose front end may show widgets, and not IPython in a terminal?"""
        return getattr(self.shell, "kernel", None) is not None

    def failure(self, compilation: Any, cell: CellText) -> BaseException:
        """The exception by which the cell fails.

        Rendered diagnostics, or what its Python code outside kernels raised.
        """
        error = compilation.exception
        errors = [diagnostic for diagnostic in compilation.diagnostics if diagnostic.severity == "error"]
        if isinstance(error, (CompileError, LaunchError)):
            if error.text != compilation.text:  # a kernel of another cell: its lines are not those of this one
                return error
        elif error is not None and len(errors) == 1:
            return begin_at_cell(error, cell.code_name, self.shell)
        found = tuple(without_magics(diagnostic, compilation.text) for diagnostic in compilation.diagnostics)
        painted = has_colours(self.shell)
        return CellRefused(found, compilation.text, painted and not self.has_widgets(), painted and self.has_widgets())

    def evaluate(self, expression: str) -> Any:
        """The value of `--call`, in the notebook's namespace."""
        linecache.cache[CALL] = (len(expression), None, [expression], CALL)
        try:
            code = self.shell.compile(expression, CALL, "eval")
        except SyntaxError as error:
            raise UsageError(f"%%tilelang --call {expression}: {error.msg}") from None
        return eval(code, self.shell.user_ns)


def without_magics(diagnostic: Diagnostic, text: Text) -> Diagnostic:
    """A line of IPython's own syntax inside the cell is no Python: say what to do with it."""
    if diagnostic.code != "TL005" or diagnostic.span is None:
        return diagnostic
    line = text.line(diagnostic.span.line).strip()
    if line.startswith(("%", "!")) or line.endswith("?"):
        return dataclasses.replace(
            diagnostic,
            help="magics and `!` commands cannot stand inside a `%%tilelang` cell: give them a cell of their own",
        )
    return diagnostic
