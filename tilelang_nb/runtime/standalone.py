"""`@T.prim_func` and `@T.macro` in an ordinary module: kernels built when the module is imported, from its source
file.
"""

from __future__ import annotations

from typing import Any

from ..frontend.session import standalone
from ..source.diagnostic import Diagnostic
from ..source.providers import register
from ..source.text import Text
from .errors import CompileError
from .kernel import Kernel
from .target import resolve


def make_kernel(name: str, program: Any, diagnostics: tuple[Diagnostic, ...], text: Text | None = None) -> Kernel:
    """The kernel of a definition.  CompileError: it was refused; the text of the error is the rendered report."""
    if program is None:
        raise CompileError(tuple(diagnostics), text)
    return Kernel(name, program, tuple(diagnostics), text=program.text, target=resolve(), outputs=program.returns)


prim_func, macro = standalone(make_kernel)
register("prim_func", prim_func)
register("macro", macro)
