"""`%load_ext tilelang_nb` and `%unload_ext tilelang_nb`: what is put into IPython, and how it is taken out again."""

from __future__ import annotations

from typing import Any

from .cell_text import hoist_magic
from .completion import option_matcher
from .loading import Loading
from .magic import TilelangMagics

NAME = "tilelang"
_loaded: dict[int, TilelangMagics] = {}


def load_ipython_extension(shell: Any) -> None:
    """Register the magics, their completion and the events; the compiler is loaded behind it."""
    unload_ipython_extension(shell)  # `%reload_ext` and a second load must not register twice
    magics = TilelangMagics(shell, Loading())
    shell.register_magics(magics)
    shell.events.register("pre_run_cell", magics.note_cell)
    shell.events.register("post_run_cell", magics.show_findings)
    shell.Completer.custom_matchers.append(option_matcher)
    shell.input_transformers_cleanup.append(hoist_magic)
    _loaded[id(shell)] = magics
    magics.loading.start()


def unload_ipython_extension(shell: Any) -> None:
    """Take out everything that loading put in; nothing to do where it is not loaded."""
    magics = _loaded.pop(id(shell), None)
    if magics is None:
        return
    shell.events.unregister("pre_run_cell", magics.note_cell)
    shell.events.unregister("post_run_cell", magics.show_findings)
    shell.Completer.custom_matchers.remove(option_matcher)
    shell.input_transformers_cleanup.remove(hoist_magic)
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop(NAME, None)
