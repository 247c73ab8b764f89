"""A cell: its definitions are built as they are met, its other statements run as ordinary Python.

`Session` is one run of one text.  The code of a cell belongs to its session as long as it lives, so a factory that is
called later still finds its text.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..language import entry
from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Note, Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.providers import provided
from ..source.text import Span, Text
from .build import build_kernel
from .compile_mistakes import compile_mistakes, is_kernel_text
from .definitions import SESSION, Definition, Definitions, definition_of, register_code, session_of
from .imports import CellBuiltins, Imports, kept_builtins
from .large_integers import bounded, compiled, host_names
from .limits import Limits
from .locate import MARK, exception_text, frames, instruction_place, internal_error, is_internal, line_span
from .macros import Macro, parameters, references_of
from .names import Outer, bound_names, undefined
from .places import narrowed
from .reading import future_flags, read
from .static import mistakes_of_unbuilt

KernelFactory = Callable[[str, Any, tuple[Diagnostic, ...]], Any]
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
PREBOUND = {"T": "tilelang.language", "tilelang": "tilelang"}


class Session:
    """One run of the text of a cell.

    kernel_factory: (name, program or None, diagnostics) -> what the name of a kernel is bound to.
    modules: what `import` gives in the cell for these names; `sys.modules` is left alone.
    result: the value of the last statement where it is an expression.  exception: what a host statement raised.
    """

    def __init__(
        self, text: Text, *, kernel_factory: KernelFactory, modules: Mapping[str, Any], limits: Limits | None = None
    ):
        self.text, self.kernel_factory, self.modules = text, kernel_factory, modules
        self.limits = limits or Limits()
        self.code_name = text.name
        self.definitions = Definitions(text, ast.Module([], []))
        self.skipped: set[str] = set()  # names that refused or skipped statements would have bound
        self.result: Any = None
        self.exception: BaseException | None = None
        self._found: dict[Any, Diagnostic] = {}
        self._running = False
        self._namespace: dict[str, Any] = {}
        self._flags = 0
        self._built: set[ast.AST] = set()  # the kernels of this text that were built or refused
        self._may_grow = "**" in text.source or "<<" in text.source
        self._builtins: dict[str, Any] = {}

    # -- diagnostics -----------------------------------------------------------------------------------------------
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found so far, sorted by place."""
        return tuple(sorted(self._found.values(), key=lambda diagnostic: diagnostic.order))

    @property
    def failed(self) -> bool:
        return any(diagnostic.severity == "error" for diagnostic in self._found.values())

    def report(self, diagnostic: Diagnostic) -> None:
        self._found.setdefault(diagnostic.key, diagnostic)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Kernels of the block are tried: what is refused in it is no mistake of the cell."""
        running, self._running = self._running, False
        try:
            yield
        finally:
            self._running = running

    # -- running ---------------------------------------------------------------------------------------------------
    def run(
        self, namespace: dict[str, Any], compiler: Callable[..., Any] | None = None, code_name: str | None = None
    ) -> tuple[Diagnostic, ...]:
        """Run the cell in a namespace; the diagnostics.

        compiler: (tree, code name, "exec" or "eval") -> code, for host statements.  code_name: `co_filename` of the
        code. After the first error definitions are still built and other statements are not run.
        """
        self.code_name = code_name or self.text.name
        tree = self.parse()
        if tree is None:
            return self.diagnostics
        self.definitions = Definitions(self.text, tree)
        self._flags = future_flags(tree)
        compiler = compiler or _compiler(self._flags)
        self._builtins = {**vars(builtins), **host_names(self.limits.bits), SESSION: self}
        self._builtins["__import__"] = Imports({**self.modules, "builtins": CellBuiltins(self._builtins)})
        before = namespace.get("__builtins__", _ABSENT)
        namespace["__builtins__"] = self._builtins
        self._bind_modules(namespace)
        self._running, self._namespace = True, namespace
        try:
            for node in tree.body:
                self._run_statement(node, node is tree.body[-1], namespace, compiler)
            if self.failed:
                self._check_unbuilt(tree, namespace)
        finally:
            self._running = False
            namespace["__builtins__"] = builtins if before is _ABSENT else before
        return self.diagnostics

    def _check_unbuilt(self, tree: ast.Module, namespace: dict[str, Any]) -> None:
        """What the text shows of kernels that were not built, since the statements that call them did not run."""
        try:
            found = list(mistakes_of_unbuilt(tree, self.text, self._flags, namespace, self._built.__contains__))
        except RecursionError:  # of a text nested so deep its own mistake is enough
            return
        for diagnostic in found:
            self.report(diagnostic)

    def parse(self) -> ast.Module | None:
        """The syntax tree; None after a syntax error, which is reported."""
        tree, mistake = read(self.text)
        if mistake is not None:
            self.report(mistake)
        return tree

    def _bind_modules(self, namespace: dict[str, Any]) -> None:
        """`T`, `tilelang` and `jit` are there already, where the names are not taken."""
        for name, module in PREBOUND.items():
            if module in self.modules:
                namespace.setdefault(name, self.modules[module])
        jit = getattr(self.modules.get("tilelang"), "jit", None)
        if jit is not None:
            namespace.setdefault("jit", jit)

    def _run_statement(
        self, node: ast.stmt, last: bool, namespace: dict[str, Any], compiler: Callable[..., Any]
    ) -> None:
        if self.failed and not isinstance(node, DEFINITIONS):
            self.skipped.update(bound_names(node))
            for diagnostic in compile_mistakes(node, self._flags, self.text).diagnostics:
                self.report(diagnostic)
            return
        shown = last and isinstance(node, ast.Expr)
        try:
            code = self._compile(node, shown, compiler)
            if code is None:
                return
            with kept_builtins(self._builtins):
                value = eval(code, namespace)
            if shown:
                self.result = value
        except BaseException as error:  # host code may raise anything, SystemExit included
            pass_on_interrupt(error)
            later = self._with_later_annotations(error, node)
            if later is not None:
                before = len(self._found)
                self._run_statement(later, last, namespace, compiler)
                if len(self._found) > before:
                    return
            self.skipped.update(bound_names(node))
            self._report_exception(error, node)

    def _with_later_annotations(self, error: BaseException, node: ast.stmt) -> ast.stmt | None:
        """A kernel one of whose annotations fails, with annotations in quotes: each is then read by itself, and the
        mistakes of the others and of the body are said too.
        """
        if not isinstance(error, (Refusal, NameError)):
            return None
        if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
            return None
        place = error.place if isinstance(error, Refusal) else None
        span = place if isinstance(place, Span) else self.host_place(error.__traceback__, node)[0]
        later, found = copy.deepcopy(node), False
        for argument in parameters(later):
            if argument.annotation is not None and not isinstance(argument.annotation, ast.Constant):
                found = found or self.text.span(argument.annotation).covers(span)
                quoted = ast.Constant(ast.unparse(argument.annotation))
                argument.annotation = ast.copy_location(quoted, argument.annotation)
        return later if found else None

    def _compile(self, node: ast.stmt, shown: bool, compiler: Callable[..., Any]) -> Any:
        """The code of a statement; None after a mistake that Python finds only when it compiles, which is reported.

        A kernel or macro with such mistakes is defined without them: the walk over its text finds its other mistakes.
        """
        tree = ast.Expression(node.value) if shown else ast.Module([node], [])  # type: ignore[attr-defined]
        try:
            code = self._code(tree, shown, compiler)
        except (SyntaxError, RecursionError, MemoryError, ValueError):
            found = compile_mistakes(node, self._flags, self.text)
            for diagnostic in found.diagnostics:
                self.report(diagnostic)
            definition = self.definitions.of(node) if found.rest is not None and is_kernel_text(node) else None
            if definition is None:
                self.skipped.update(bound_names(node))
                return None
            definition.mistakes, definition.refused = tuple(found.diagnostics), found.statements
            code = self._code(ast.Module([found.rest], []), False, compiler)
        register_code(code, self)
        return code

    def _code(self, tree: Any, shown: bool, compiler: Callable[..., Any]) -> Any:
        if self._may_grow:
            tree = bounded(tree)
        return compiler(tree, self.code_name, "eval" if shown else "exec")

    def _report_exception(self, error: BaseException, node: ast.stmt) -> None:
        if isinstance(error, Poisoned) or (
            isinstance(error, NameError) and getattr(error, "name", None) in self.skipped
        ):
            return
        span, notes = self.host_place(error.__traceback__, node)
        if isinstance(error, Refusal):
            place = error.place
            where = self.text.span(place) if isinstance(place, ast.AST) else place or span
            self.report(error.message.at(where, (*error.notes, *notes), error.fixes))
            return
        carried = [*(getattr(error, "diagnostics", None) or ()), getattr(error, "diagnostic", None)]
        carried = [diagnostic for diagnostic in carried if isinstance(diagnostic, Diagnostic)]
        if carried:
            self.exception = error
            other = getattr(error, "text", None)
            if other is not None and other != self.text:
                carried = [_of_another_text(diagnostic, other) for diagnostic in carried]
            for diagnostic in (_at_line(diagnostic, span) for diagnostic in carried):
                self._found.setdefault((diagnostic.key, diagnostic.message), diagnostic)  # they may share a place
            return
        self.exception = error
        if is_internal(error.__traceback__) and not isinstance(error, ModuleNotFoundError):
            self.report(internal_error(error).at(span, tuple(notes)))
            return
        message = say.ExceptionInHostCode(exception=exception_text(error), remedy=self._remedy(error))
        self.report(message.at(span, tuple(notes)))

    def _remedy(self, error: BaseException) -> str:
        """What to do about an exception of host code."""
        if isinstance(error, ModuleNotFoundError):
            if (error.name or "").partition(".")[0] in self.modules:
                known = ", ".join(f"`{name}`" for name in sorted(self.modules) if name.count(".") == 1)
                return f"leave it out: of TileLang there are {known} here"
            return "correct the name, or install the module"
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in self.modules:
            return f"leave it out: `{error.name}` has no such name here"
        if isinstance(error, SystemExit):
            return "leave it out: the cell ends after its last line"
        if type(error) is NameError and error.name is not None:
            message = undefined(error.name, [name for name in self._namespace if not name.startswith("__")])
            return message.fill(message.advice)
        return "correct the Python code of this line"

    def host_place(self, traceback: Any, node: ast.stmt) -> tuple[Span, list[Note]]:
        """The innermost place in this cell that a traceback leads to, and notes of the lines on the way."""
        here = [frame for frame in frames(traceback) if frame.tb_frame.f_code.co_filename == self.code_name]
        if not here:
            return self.text.span(node), []
        line = here[-1].tb_lineno
        span = instruction_place(here[-1], self.text) or line_span(self.text, line) or self.text.span(node)
        span = narrowed(self.text, span)
        lines = dict.fromkeys(frame.tb_lineno for frame in reversed(here[:-1]) if frame.tb_lineno != line)
        return span, [Note(f"called from line {n}", line_span(self.text, n)) for n in lines]

    # -- decorators ------------------------------------------------------------------------------------------------
    def prim_func(self, function: Any, **options: Any) -> Any:
        """Build the kernel of a decorated function."""
        return build_function(function, self.kernel_factory, self.limits, self)

    def calling_place(self) -> Span | None:
        """The line of this cell that is running."""
        for frame in _frames_outward():
            if frame.f_code.co_filename == self.code_name:
                return line_span(self.text, frame.f_lineno)
        return None


_ABSENT = object()


def _compiler(flags: int) -> Callable[..., Any]:
    def compile_host(tree: Any, name: str, mode: str) -> Any:
        return compile(tree, name, mode, flags, dont_inherit=True)

    return compile_host


def _at_line(diagnostic: Diagnostic, span: Span) -> Diagnostic:
    """A diagnostic that an exception of host code carried: placed at the host line if it has no place of its own."""
    if diagnostic.span is None:
        return replace(diagnostic, span=span, said=None)
    if span.covers(diagnostic.span):
        return diagnostic
    return replace(diagnostic, notes=(*diagnostic.notes, Note(f"used in line {span.line}", span)))


def _of_another_text(diagnostic: Diagnostic, text: Text) -> Diagnostic:
    """A diagnostic of a kernel from an earlier cell or a module: this cell's lines are not the ones it speaks of."""
    notes = [Note(note.message) for note in diagnostic.notes]
    if diagnostic.span is not None:
        place = f"{text.name}, line {diagnostic.span.line}"
        notes.insert(0, Note(f"at `{text.line(diagnostic.span.line).strip()}` in {place}"))
    return replace(diagnostic, span=None, notes=tuple(notes), fixes=())


def _frames_outward() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _defining_frame(function: Any) -> types.FrameType | None:
    """The frame that executes the `def`, if it is still running."""
    code = function.__code__
    for frame in _frames_outward():
        if any(constant is code for constant in frame.f_code.co_consts):
            return frame
    return None


def outer_of(function: Any, session: Session | None) -> Outer:
    """Names outside a function, as Python finds them."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    skipped = session.skipped if session is not None else set()
    return Outer(cells, function.__globals__, function.__builtins__, skipped)


def build_function(function: Any, kernel_factory: KernelFactory, limits: Limits, session: Session | None) -> Any:
    """What a kernel's name is bound to: the factory's object for the built or refused kernel."""
    name = getattr(function, "__name__", type(function).__name__)
    running = session is not None and session._running
    try:
        definition = definition_of(function)
    except Refusal as refusal:
        span = session.calling_place() if session is not None else None
        found: tuple[Diagnostic, ...] = (refusal.message.at(refusal.place or span),)  # type: ignore[arg-type]
        program = None
    else:
        if running:
            assert session is not None
            session._built.add(definition.node)
        outer = outer_of(function, session)
        frame = _defining_frame(function)
        seen = dict(frame.f_locals) if frame is not None and frame.f_locals is not frame.f_globals else {}

        def evaluate(annotation: str | types.CodeType) -> Any:
            """A postponed annotation; it may name variables of the defining function that no code uses."""
            known = {**outer.builtins, **host_names(limits.bits)}
            names = {**outer.module, "__builtins__": known, **seen, **_contents(outer.cells)}
            try:
                code = compiled(annotation, MARK) if isinstance(annotation, str) else annotation
                return eval(code, names)
            except NameError as error:
                if error.name in outer.skipped:
                    raise Poisoned from None
                known = [name for name in names if not name.startswith("__")]
                refusal = Refusal(undefined(error.name, known, "assign it before the kernel"))
                raise refusal.with_traceback(error.__traceback__) from None

        defaults = _defaults(function)
        built = build_kernel(definition, function.__annotations__, defaults, outer, evaluate, limits)
        program, found = built.program, built.diagnostics
    found = tuple(sorted(found, key=lambda diagnostic: diagnostic.order))
    if running:
        assert session is not None
        for diagnostic in found:
            session.report(diagnostic)
        if program is None and not found:  # it uses something that was refused before
            found = session.diagnostics
    return kernel_factory(name, program, found)


def _contents(cells: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, cell in cells.items():
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return found


def make_macro(function: Any) -> Macro:
    """The macro of a decorated function; TL001 where its text cannot be had."""
    definition: Definition = definition_of(function)
    outer = outer_of(function, session_of(function))
    return Macro(definition, outer, _defaults(function), references_of(function))


def _defaults(function: Any) -> dict[str, Any]:
    """Defaults of a function's parameters by name."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    given = function.__defaults__ or ()
    return {**dict(zip(positional[len(positional) - len(given) :], given)), **(function.__kwdefaults__ or {})}


def standalone(
    kernel_factory: KernelFactory, limits: Limits | None = None
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`prim_func` and `macro` for functions of modules: their text is their file."""

    def prim_func(function: Any, **options: Any) -> Any:
        session = session_of(function)
        if session is not None:
            return session.prim_func(function, **options)
        return build_function(function, kernel_factory, limits or Limits(), None)

    return prim_func, make_macro


def _prim_func(function: Any, **options: Any) -> Any:
    session = session_of(function)
    if session is not None:
        return session.prim_func(function, **options)
    try:
        build = provided("prim_func")
    except LookupError:
        raise Refusal(say.SourceUnavailable(function=getattr(function, "__name__", "a kernel"))) from None
    return build(function, **options)


def _macro(function: Any) -> Any:
    """In a cell the walk reports what is wrong; in a module the package's entry point says it with the text."""
    if session_of(function) is not None:
        return make_macro(function)
    try:
        make = provided("macro")
    except LookupError:
        return make_macro(function)
    return make(function)


entry.install(prim_func=_prim_func, macro=_macro)
