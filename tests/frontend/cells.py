"""Cells for tests of the front end: a text is run in a session whose kernels are their tile programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from frontend.interpreter import Interpreter

import tilelang_nb.language as language
from tilelang_nb.frontend.limits import Limits
from tilelang_nb.frontend.program import TileProgram
from tilelang_nb.frontend.session import Session
from tilelang_nb.source.diagnostic import Diagnostic
from tilelang_nb.source.text import Text

HEAD = "import tilelang.language as T\n"


@dataclass
class Cell:
    """A text that was run."""

    session: Session
    namespace: dict[str, Any]
    kernels: dict[str, TileProgram | None]
    refused: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.session.diagnostics

    @property
    def errors(self) -> list[tuple[str, int]]:
        """(code, line) of every error."""
        return [(d.code, d.span.line if d.span else 0) for d in self.diagnostics if d.severity == "error"]

    def marked(self) -> list[tuple[str, str]]:
        """(code, text under the caret) of every error."""
        text = self.session.text
        return [(d.code, text.slice(d.span)) for d in self.diagnostics if d.severity == "error" and d.span]

    def run(self, *arguments: Any, kernel: str = "k") -> None:
        """Run a kernel on NumPy arrays, in place."""
        assert not self.errors, [str(d) for d in self.diagnostics]
        program = self.kernels[kernel]
        assert program is not None
        Interpreter(program.function).run(list(arguments))


def run_cell(source: str, namespace: dict[str, Any] | None = None, limits: Limits | None = None, **text: Any) -> Cell:
    """Run a text as a cell."""
    kernels: dict[str, TileProgram | None] = {}
    refused: dict[str, tuple[Diagnostic, ...]] = {}

    def factory(name: str, program: TileProgram | None, diagnostics: tuple[Diagnostic, ...]) -> Any:
        kernels[name] = program
        if program is None:
            refused[name] = diagnostics
        return program

    tilelang = SimpleNamespace(language=language, jit=lambda function: function)
    session = Session(
        Text(source, **text),
        kernel_factory=factory,
        modules={"tilelang": tilelang, "tilelang.language": language},
        limits=limits,
    )
    found = {} if namespace is None else namespace
    session.run(found)
    return Cell(session, found, kernels, refused)


def kernel(body: str, parameters: str = "", before: str = "", threads: int = 1) -> str:
    """The text of a cell with a kernel `k`.

    Without parameters given it has `a` and `out` (int32), `f` (float32), of 8 elements each, and `n` and `m` (int32).
    """
    given = parameters or ", ".join(f'{name}: T.Tensor((8,), "int32")' for name in ("a", "out"))
    given += "" if parameters else ', f: T.Tensor((8,), "float32"), n: T.int32, m: T.int32'
    lines = "\n".join("        " + line for line in body.strip("\n").split("\n"))
    return f"{HEAD}{before}\n@T.prim_func\ndef k({given}):\n    with T.Kernel(1, threads={threads}):\n{lines}\n"


def titled(text: str) -> dict[str, str]:
    """Pieces of text by the title on the line `## title` before each."""
    pieces = text.strip("\n").split("## ")[1:]
    return {piece.split("\n", 1)[0]: piece.split("\n", 1)[1].rstrip("\n") for piece in pieces}
