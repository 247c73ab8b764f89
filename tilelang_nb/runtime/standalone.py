"""`@T.prim_func` and `@T.macro` in an ordinary module: kernels built when the module is imported, from its source
file.
"""

from __future__ import annotations

import linecache
import os
from functools import partial
from typing import Any

from ..frontend.limits import VARIABLE, Limits, limits_of
from ..frontend.session import standalone
from ..source.diagnostic import Diagnostic, Refusal
from ..source.providers import register
from ..source.text import Span, Text
from .errors import CompileError
from .kernel import Kernel
from .target import resolve


def make_kernel(name: str, program: Any, diagnostics: tuple[Diagnostic, ...], text: Text | None = None) -> Kernel:
    """The kernel of a definition.  CompileError: it was refused; the text of the error is the rendered report."""
    if program is None:
        raise CompileError(tuple(diagnostics), text)
    found = tuple(diagnostics)
    return Kernel(name, program, found, text=program.text, target=resolve(), outputs=program.returns)


def text_of(function: Any) -> Text | None:
    """The source file of a function; None where it cannot be had."""
    name: str = getattr(getattr(function, "__code__", None), "co_filename", "")
    lines = linecache.getlines(name) if name else []
    return Text("".join(lines), name) if lines else None


def module_limits() -> Limits:
    """What a build may take that no cell asks for: the settings of the environment.  Refusal TL004: they are none."""
    return limits_of(None, os.environ.get(VARIABLE, ""))


def prim_func(function: Any, **options: Any) -> Any:
    """The kernel of a function of a module.  CompileError: it was refused."""

    def build() -> Any:
        return standalone(partial(make_kernel, text=text_of(function)), module_limits())[0](function, **options)

    return _or_compile_error(function, build)


def macro(function: Any) -> Any:
    """The macro of a function of a module.  CompileError: its text cannot be had."""
    _, make = standalone(make_kernel)
    return _or_compile_error(function, partial(make, function))


def _or_compile_error(function: Any, make: Any) -> Any:
    try:
        return make()
    except Refusal as refusal:
        place = refusal.place if isinstance(refusal.place, Span) else None
        raise CompileError((refusal.message.at(place, refusal.notes, refusal.fixes),), text_of(function)) from None


register("prim_func", prim_func)
register("macro", macro)
