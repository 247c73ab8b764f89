"""What is wrong with a text as far as it can be known without running it, and without TVM.

The kernels and macros of the text are found by their decorators, also those of factories that nobody calls.  What is
said is what building would say, in the same words and at the same places; what depends on values is left to it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType

from ...source.cures import with_fixes
from ...source.diagnostic import Diagnostic
from ...source.text import Text
from ..compile_mistakes import CompileMistakes, compile_mistakes
from ..names import bound_names
from ..reading import future_flags, read
from .kernels import Found, kernels, mistakes
from .outside import PREBOUND, Names, Outside, dotted


class Checker:
    """The texts of one file or notebook in order: each sees the names of those before it."""

    def __init__(self) -> None:
        self.names = Names()

    def skip(self, lines: Iterable[str]) -> None:
        """A cell that is not compiled; its names are bound for the texts behind it."""
        self.names.add_plain_cell(lines)

    def check(self, text: Text) -> tuple[Diagnostic, ...]:
        """The mistakes of a text, sorted by place, with the edits that cure them."""
        tree, unread = read(text)
        if tree is None:
            return tuple(with_fixes([unread], text)) if unread is not None else ()
        before = [*PREBOUND, *self.names.bound]
        self.names.add_text(tree)
        found: dict[object, Diagnostic] = {}
        for node in tree.body:
            wrong = compile_mistakes(node, future_flags(tree), text)
            for diagnostic in wrong.diagnostics:
                found.setdefault(diagnostic.key, diagnostic)
            if wrong.rest is None:
                continue
            for kernel in kernels([node], Outside((self.names,))):
                for diagnostic in mistakes(
                    kernel, text, [*before, *_names_before(tree, node, kernel)], wrong.statements
                ):
                    found.setdefault(diagnostic.key, diagnostic)
        return tuple(sorted(with_fixes(list(found.values()), text), key=lambda diagnostic: diagnostic.order))


def mistakes_of_unbuilt(
    tree: ast.Module, text: Text, flags: int, namespace: Mapping[str, object], is_built: Callable[[ast.AST], bool]
) -> Iterator[Diagnostic]:
    """The mistakes of the kernels that a cell did not build: eager ones, and those of factories.

    flags: of `compile`.  namespace: of the cell, after it ran.
    """
    names = Names()
    for name, value in namespace.items():
        names.bound[name] = None
        # What `import tilelang` gives in a cell is a part of this package.
        written = vars(value).get("__name__") if issubclass(type(value), ModuleType) else None
        written = written if type(written) is str else ""
        names.paths[name] = dotted(written.replace("tilelang_nb.tilelang", "tilelang")) or None
    names.add_text(tree)
    before = [*PREBOUND, *names.bound]
    for node in tree.body:
        wrong: CompileMistakes | None = None
        for kernel in kernels([node], Outside((names,))):
            if (kernel.kind == "eager" or kernel.factory is not None) and not is_built(kernel.node):
                wrong = wrong or compile_mistakes(node, flags, text)
                yield from mistakes(kernel, text, before, wrong.statements)


def check_text(source: str, name: str = "<cell>", first_line: int = 1) -> tuple[Diagnostic, ...]:
    """The mistakes of a text that stands alone."""
    return Checker().check(Text(source, name, first_line))


def _names_before(tree: ast.Module, node: ast.stmt, kernel: Found) -> list[str]:
    """Names that the text has bound when a kernel is built: where it is defined, or where its factory is first used."""
    at = tree.body.index(node)
    if kernel.factory is not None:
        uses = range(at + 1, len(tree.body))
        at = next((use for use in uses if _uses(tree.body[use], kernel.factory)), len(tree.body))
    return list(bound_names(*tree.body[:at]))


def _uses(node: ast.stmt, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
