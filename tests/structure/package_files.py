"""The package's source files as the structure tests see them: paths, syntax trees, and the modules each one imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tilelang_nb"


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file of every module of the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(module: str) -> Iterator[tuple[str, int]]:
    """(absolute dotted name, line) of everything a module imports."""
    path = modules()[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return imports_of(tree(path), package)


def imports_of(text: ast.Module, package: str) -> Iterator[tuple[str, int]]:
    """What a syntax tree imports at any depth: in functions and under conditions too.

    `from a import b` yields `a.b`: whether `b` is a module or a name in `a`, the direction it points to is the same.
    """
    for node in ast.walk(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield (
                    absolute("." * node.level + ".".join(filter(None, [node.module, alias.name])), package),
                    node.lineno,
                )
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield absolute(node.args[0].value, package), node.lineno


def absolute(name: str, package: str) -> str:
    """`..a.b` as seen from a package."""
    stem = name.lstrip(".")
    level = len(name) - len(stem)
    base = package.split(".")[: package.count(".") + 2 - level] if level else []
    return ".".join([*base, stem])
