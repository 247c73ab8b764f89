"""`%%tilelang` and `%tilelang`: from a cell's text to what stands under it.

Thin over `compile_cell`: it registers the text, shows what came back, and fails the cell where it has errors.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.display import display

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic
from ..source.text import Text
from . import line_commands, options
from .cell_text import CellText, register
from .loading import Loading
from .refusal import CellRefused, begin_at_cell


@magics_class
class TilelangMagics(Magics):
    """The two magics and the two events they need; made and registered by `extension`."""

    def __init__(self, shell: Any, loading: Loading):
        super().__init__(shell)
        self.loading = loading
        self.raw_cell = ""

    def note_cell(self, info: Any) -> None:
        """Event pre_run_cell: remember the cell as typed.  `%%capture` runs a nested one, without history."""
        if info.store_history:
            self.raw_cell = info.raw_cell or ""

    def show_findings(self, result: Any = None) -> None:
        """Event post_run_cell: what the simulator found in launches of a plain cell stands under that cell."""
        runtime = sys.modules.get("tilelang_nb.runtime.kernel")
        if runtime is not None:
            from .findings import show

            show(self.shell)

    # Expansion by IPython would replace braces of the --call expression; `options.parse` expands the other words itself.
    @no_var_expand
    @output_can_be_silenced
    @line_cell_magic
    def tilelang(self, line: str, cell: str | None = None) -> Any:
        if cell is None:
            if line.split()[:1] in (["devices"], ["inspect"], ["clear-cache"]):
                self.loading.wait()
            return line_commands.run(self.shell, line)
        asked = options.parse(line, self.expand)
        if asked.help:
            print(options.HELP)
            return None
        return self.run_cell(asked, cell)

    tilelang.__doc__ = options.HELP

    def expand(self, word: str) -> str:
        """`{name}` and `$name` of an option's value, from the notebook's names."""
        return self.shell.var_expand(word, depth=1)

    def run_cell(self, asked: options.CellOptions, body: str) -> Any:
        """Compile and run the body, show its report, and return the value of `--call` or of its last expression."""
        self.loading.wait()
        from ..runtime.compilation import compile_cell

        cell = register(self.shell, body, self.raw_cell)
        compilation = compile_cell(
            body,
            self.shell.user_ns,
            filename=cell.name,
            first_line=cell.first_line,
            target=asked.target,
            arch=asked.arch,
            compiler=self.shell.compile,
            code_name=cell.code_name,
        )
        return compilation
