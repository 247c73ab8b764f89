"""TileLang in notebooks: `%%tilelang` compiles the kernels of a cell through a TIR pipeline, runs them and shows
every stage.

Names are loaded when first used: importing the package costs a few milliseconds, TVM comes with the first kernel.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .source import requirements
from .source.providers import announce

if TYPE_CHECKING:
    from . import language, tilelang
    from .runtime.compilation import Compilation, compile_cell
    from .runtime.errors import CompileError, LaunchError
    from .runtime.kernel import Kernel
    from .tilelang import autotune, compile, jit, lower, profiler

__version__ = "0.1.0"
requirements.require()

# Public name -> (module, name in it); None stands for the module itself.
_PUBLIC: dict[str, tuple[str, str | None]] = {
    "Compilation": ("runtime.compilation", "Compilation"),
    "CompileError": ("runtime.errors", "CompileError"),
    "Kernel": ("runtime.kernel", "Kernel"),
    "LaunchError": ("runtime.errors", "LaunchError"),
    "autotune": ("tilelang", "autotune"),
    "compile": ("tilelang", "compile"),
    "compile_cell": ("runtime.compilation", "compile_cell"),
    "jit": ("tilelang", "jit"),
    "language": ("language", None),
    "lower": ("tilelang", "lower"),
    "profiler": ("tilelang", "profiler"),
    "tilelang": ("tilelang", None),
}
__all__ = [
    "Compilation",
    "CompileError",
    "Kernel",
    "LaunchError",
    "autotune",
    "compile",
    "compile_cell",
    "jit",
    "language",
    "load_ipython_extension",
    "lower",
    "profiler",
    "tilelang",
    "unload_ipython_extension",
]

announce(
    {
        "text": "tilelang_nb.report",
        "html": "tilelang_nb.report",
        "json": "tilelang_nb.report",
        "page": "tilelang_nb.report",
        "stage_text": "tilelang_nb.report",
        "diagnostics_html": "tilelang_nb.report",
        "stage_statements": "tilelang_nb.report",
        "modules": "tilelang_nb.tilelang",
        "profiler": "tilelang_nb.tilelang",
        "widget": "tilelang_nb.notebook.widget",
        "viewer": "tilelang_nb.notebook.bundle",
        # `@T.prim_func` and `@T.macro` outside a cell: language -> runtime, which builds them through the front end
        "prim_func": "tilelang_nb.runtime.standalone",
        "macro": "tilelang_nb.runtime.standalone",
        "jit": "tilelang_nb.tilelang",
        "refused_call": "tilelang_nb.runtime.errors",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    try:
        loaded = importlib.import_module(f"{__name__}.{module}")
    except ImportError as error:
        raise requirements.explained(error) from error
    value = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tilelang_nb`: register `%%tilelang` and `%tilelang`."""
    from .notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext tilelang_nb`."""
    from .notebook import extension

    extension.unload(shell)
