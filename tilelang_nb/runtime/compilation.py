"""The text of a cell in, a frozen `Compilation` out: what is wrong with it, its names, its kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, overload

from ..frontend.limits import VARIABLE, limits_of
from ..frontend.session import Session
from ..source.cures import with_fixes
from ..source.diagnostic import Diagnostic, Refusal
from ..source.document import without_magic
from ..source.text import Text
from ..source.uncopied import Uncopied
from . import views
from .errors import CompileError
from .internal import internal_error
from .kernel import Kernel
from .target import Target, resolve


@dataclass(frozen=True)
class Compilation(Uncopied):
    """A compiled cell.

    diagnostics: sorted by place.  namespace: the cell's names after it ran.  kernels: every kernel that the cell
    defined or built, in order.  result: the value of its last statement where that is an expression.  exception: what
    a statement of the cell outside kernels raised; the diagnostics hold it too.
    """

    text: Text
    target: Target
    diagnostics: tuple[Diagnostic, ...]
    namespace: dict[str, Any] = field(repr=False)
    kernels: dict[str, Kernel]
    result: Any = field(default=None, repr=False)
    exception: BaseException | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """No error among the diagnostics."""
        return all(diagnostic.severity != "error" for diagnostic in self.diagnostics)

    def to_text(self) -> str:
        """The report as text."""
        return views.view("text")(self)

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | PathLike[str]) -> Path: ...

    def to_html(self, path: Any = None) -> str | Path:
        """The report as static HTML.

        With a path: the whole view is written there as a page of its own, and the path is returned.
        """
        return views.view("html")(self) if path is None else views.written(self, path)

    def to_json(self) -> str:
        """The report as JSON, version 1."""
        return views.view("json")(self)


class KernelMaker(Uncopied):
    """Makes the kernels of one cell.

    While the cell runs every kernel is collected, and its mistakes are reported with those of the cell.  A factory of
    the cell may be called later: by a later cell, which then has the kernel among its own, or by other code.  Then no
    one collects mistakes, and a refused kernel raises CompileError where it is defined.

    made: kernels of the cell's own text.  kernels: those and the ones that factories from elsewhere made for it.
    """

    def __init__(self, text: Text, target: Target):
        self.text, self.target = text, target
        self.made: list[Kernel] = []
        self.kernels: list[Kernel] = []
        self.session: Any = None

    def __call__(self, name: str, program: Any, diagnostics: tuple[Diagnostic, ...]) -> Kernel:
        running = _RUNNING.get()
        text = program.text if program is not None else self.text
        returned = program.returns if program is not None else ()
        target = running.target if running is not None else self.target
        kernel = Kernel(name, program, tuple(diagnostics), text=text, target=target, outputs=returned)
        if running is self:
            self.made.append(kernel)
        elif program is None:
            raise CompileError(kernel.diagnostics, text)
        if running is not None:
            running.kernels.append(kernel)
        return kernel


# The maker of the cell that is running.
_RUNNING: ContextVar[KernelMaker | None] = ContextVar("the maker of the cell that is running", default=None)


@contextmanager
def trying() -> Iterator[Callable[[Kernel], None]]:
    """Kernels made in the block are tried, not the cell's own: what is wrong with one is raised where it is made.

    The function that it gives takes the kernel that was chosen: that one is among the cell's.
    """
    running = _RUNNING.get()
    token = _RUNNING.set(None)
    try:
        if running is None or running.session is None:
            yield lambda kernel: None
            return
        with running.session.aside():
            yield running.kernels.append
    finally:
        _RUNNING.reset(token)


def compile_cell(
    text: str,
    namespace: dict[str, Any] | None = None,
    *,
    filename: str = "<cell>",
    first_line: int = 1,
    target: str = "auto",
    arch: str | None = None,
    compiler: Callable[..., Any] | None = None,
    code_name: str | None = None,
    lower: bool = True,
    limits: Mapping[str, int] | None = None,
) -> Compilation:
    """Run a cell: build its kernels and lower them for the target.  Never raises for a mistake in the cell.

    namespace: where the cell's names live; changed in place.  filename, first_line: what messages call the text and its
    first line; a `%%tilelang` line at its head is passed over.  compiler, code_name: a stand-in for `compile` and the
    name of the code, for statements outside kernels.
    lower: False leaves out the lowering, and with it what only the lowering finds.
    limits: settings of what a build may take, such as {"items": 100_000}; those in the environment as
    `TILELANG_NB_LIMITS` hold where none is given here.
    """
    cell = Text(without_magic(text), filename, first_line)
    names: dict[str, Any] = {} if namespace is None else namespace
    try:
        wanted = resolve(target, arch)
        set_limits = limits_of(limits, os.environ.get(VARIABLE, ""))
    except Refusal as refusal:
        return Compilation(cell, resolve(), (refusal.message.at(None),), names, {})
    make = KernelMaker(cell, wanted)
    session: Any = None
    found: list[Diagnostic] = []
    token = _RUNNING.set(make)
    try:
        session = make.session = Session(cell, kernel_factory=make, modules=views.view("modules")(), limits=set_limits)
        found += session.run(names, compiler, code_name)
    except Exception as error:
        found.append(internal_error(error, "compiling the cell"))
    finally:
        _RUNNING.reset(token)
    # First what the kernels say of themselves: a statement of the cell that uses a refused one carries it once more.
    own = [kernel.diagnostics if lower else kernel.own_diagnostics for kernel in make.made]
    found = [*(diagnostic for diagnostics in own for diagnostic in diagnostics), *found]
    return Compilation(
        cell,
        wanted,
        tuple(sorted(_once(list(with_fixes(_once(found), cell))), key=lambda diagnostic: diagnostic.order)),
        names,
        _by_name(make.kernels, names),
        getattr(session, "result", None),
        getattr(session, "exception", None),
    )


def _once(found: list[Diagnostic]) -> list[Diagnostic]:
    """Of several that say the same, the first."""
    first: dict[Any, Diagnostic] = {}
    for diagnostic in found:
        first.setdefault((diagnostic.key, diagnostic.message), diagnostic)
    return list(first.values())


def _sorted_once(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by place; of those that say the same at the same place, the first, which has the notes of the cell."""
    first = {diagnostic.key: diagnostic for diagnostic in reversed(found)}
    return tuple(sorted(first.values(), key=lambda diagnostic: diagnostic.order))


def _by_name(kernels: list[Kernel], namespace: dict[str, Any]) -> dict[str, Kernel]:
    """Kernels by name, in order.  Of several with one name, the one that the name means at the end has it; others are
    numbered.
    """
    named: dict[str, Kernel] = {}
    for kernel in kernels:
        alike = [other for other in kernels if other.name == kernel.name]
        owner = next((other for other in alike if namespace.get(other.name) is other), alike[0])
        name, number = kernel.name, 2
        while name in named or (kernel is not owner and name == kernel.name):
            name, number = f"{kernel.name}_{number}", number + 1
        named[name] = kernel
    return named
