"""`%load_ext tilelang_nb` and `%unload_ext tilelang_nb`: what is put into IPython, and how it is taken out again."""

from __future__ import annotations

from typing import Any

from ..source.providers import register
from . import findings
from .cell_text import file_name, hoist_magic
from .completion import option_matcher
from .loading import Loading
from .magic import TilelangMagics
from .progress import line_of

NAME = "tilelang"
_loaded: dict[int, TilelangMagics] = {}


def load(shell: Any) -> None:
    """Register the magics, their completion and the events; the compiler is loaded behind it."""
    unload(shell)  # `%reload_ext` and a second load must not register twice
    magics = TilelangMagics(shell, Loading())
    shell.register_magics(magics)
    shell.events.register("pre_run_cell", magics.before_cell)
    shell.events.register("post_run_cell", magics.after_cell)
    shell.Completer.custom_matchers.append(option_matcher)
    shell.input_transformers_cleanup.append(hoist_magic)
    register("file_name", lambda file: file_name(shell, file))
    register("progress_line", lambda: line_of(shell))
    _loaded[id(shell)] = magics
    magics.loading.start()


def unload(shell: Any) -> None:
    """Take out everything that loading put in; nothing to do where it is not loaded."""
    magics = _loaded.pop(id(shell), None)
    if magics is None:
        return
    shell.events.unregister("pre_run_cell", magics.before_cell)
    shell.events.unregister("post_run_cell", magics.after_cell)
    shell.Completer.custom_matchers.remove(option_matcher)
    shell.input_transformers_cleanup.remove(hoist_magic)
    magics.outputs.close()
    findings.end()
    register("file_name", str)
    register("progress_line", lambda: None)
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop(NAME, None)
