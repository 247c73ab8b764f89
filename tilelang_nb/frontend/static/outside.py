"""What the names around kernels stand for, as far as the text tells: imports, other names, and what may bind more."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...source.foreign_names import for_name
from ..names import bound_names
from . import surface

LANGUAGE = ("tilelang.language", "tilelang_nb.language")
PREBOUND = {"T": "tilelang.language", "tilelang": "tilelang", "jit": "tilelang.jit"}
BUILTINS = frozenset(dir(builtins))
# Functions that may bind names which no text shows.
BINDING = frozenset(
    ("exec", "globals", "locals", "vars", "setattr", "__import__", "get_ipython", "__dict__", "modules")
)
NOTEBOOK = ("In", "Out", "get_ipython", "display", "exit", "quit", "_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh")
_BOUND_BY_LINE_MAGIC = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=\s*[!%].*")
_BINDING_MAGIC = re.compile(r"\s*%(run|pylab|store|load|loadpy|macro|recall|rerun|edit|(re)?load_ext)\b")
_QUIET_MAGIC = re.compile(r"\s*%(re)?load_ext\s+(tilelang_nb|autoreload)\b")


def dotted(name: str) -> str:
    """A path of this package as upstream has it."""
    return "tilelang" + name.removeprefix("tilelang_nb") if name.split(".")[0] == "tilelang_nb" else name


@dataclass
class Names:
    """The names of one scope outside kernels: a text with those before it, or a function.

    bound: every name.  paths: the module or attribute that an import makes of a name; None where it may be something
    else too.  numbers: names of whole numbers, as far as one assignment tells.  open: more may be bound than the text
    shows.
    """

    bound: dict[str, None] = field(default_factory=dict)
    paths: dict[str, str | None] = field(default_factory=dict)
    numbers: dict[str, int | None] = field(default_factory=dict)
    open: bool = False

    def add(self, nodes: Iterable[ast.AST]) -> None:
        """Add what statements bind, at any depth of control flow."""
        nodes = list(nodes)
        imported: dict[str, str] = {}
        for node in _own(nodes):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    path = alias.name if alias.asname else alias.name.split(".")[0]
                    imported[alias.asname or path] = dotted(path)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self._import_from(node, alias, imported)
        for name in bound_names(*nodes):
            made = imported.get(name)
            before = self.paths.get(name, made) if name in self.bound else made
            self.paths[name] = made if made == before else None
            self.numbers[name] = None
            self.bound[name] = None
        seen: dict[str, int] = {}
        for node in _own(nodes):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                seen[node.id] = seen.get(node.id, 0) + 1
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                value, name = node.value, node.targets[0].id
                if isinstance(value, ast.Constant) and type(value.value) is int and seen[name] == 1:
                    self.numbers[name] = value.value

    def _import_from(self, node: ast.ImportFrom, alias: ast.alias, imported: dict[str, str]) -> None:
        module = dotted(node.module or "") if not node.level else "."
        if alias.name != "*":
            imported[alias.asname or alias.name] = f"{module}.{alias.name}"
        elif module == "tilelang.language":
            for name in surface.NAMES:
                self.bound[name], self.paths[name] = None, f"{module}.{name}"
        else:
            self.open = True

    def add_text(self, tree: ast.Module) -> None:
        """Add a text that runs: its statements, `global` names of its functions, and whether more may be bound."""
        self.add(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                self.bound.update(dict.fromkeys(node.names))
                self.paths.update(dict.fromkeys(node.names))
            elif isinstance(node, (ast.Name, ast.Attribute)):
                self.open = self.open or (node.id if isinstance(node, ast.Name) else node.attr) in BINDING
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.open = self.open or any(alias.name == "builtins" for alias in node.names)

    def add_plain_cell(self, lines: Iterable[str]) -> None:
        """Add what a cell of a notebook without `%%tilelang` may bind."""
        lines = list(lines)
        self.bound.update(dict.fromkeys(NOTEBOOK))
        if lines and lines[0].startswith("%%"):
            self.bound.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", lines[0])))
            lines = ["", *lines[1:]]
        kept = []
        for line in lines:
            made = _BOUND_BY_LINE_MAGIC.fullmatch(line)
            if _BINDING_MAGIC.match(line) and not _QUIET_MAGIC.match(line):
                self.open = True
            indent = line[: len(line) - len(line.lstrip())]
            magic = line.lstrip().startswith(("%", "!", "?")) or line.rstrip().endswith("?")
            kept.append(f"{indent}{made[1]} = None" if made else f"{indent}pass" if magic else line)
        try:
            tree = ast.parse("\n".join(kept))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.open = True
            return
        self.add_text(tree)


@dataclass(frozen=True)
class Outside:
    """Scopes around a kernel, innermost first; the last is the module's."""

    scopes: tuple[Names, ...]

    def path(self, name: str) -> str | None:
        """The module or attribute that a name is; `builtins.x` for a built-in; None where it is not known."""
        for scope in self.scopes:
            if name in scope.bound:
                return scope.paths.get(name)
        if name in PREBOUND:
            return PREBOUND[name]
        return f"builtins.{name}" if name in BUILTINS and not self.open else None

    def has(self, name: str) -> bool:
        """Whether the name may be bound outside."""
        known = any(name in scope.bound for scope in self.scopes) or name in PREBOUND or name in BUILTINS
        return known or name.startswith("__") and not for_name(name) or bool(re.fullmatch(r"_i?\d+", name))

    @property
    def open(self) -> bool:
        return any(scope.open for scope in self.scopes)

    def number(self, name: str) -> int | None:
        """A whole number that the text gives to a name of the module."""
        if any(name in scope.bound for scope in self.scopes[:-1]):
            return None
        return self.scopes[-1].numbers.get(name)

    def resolve(self, node: ast.expr) -> str | None:
        """The path of a name with attributes, as decorators are written."""
        if isinstance(node, ast.Name):
            return self.path(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            return f"{owner}.{node.attr}" if owner is not None else None
        return None

    def inside(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Outside:
        """The scopes around what is defined in a function."""
        a = function.args
        names = Names()
        every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *[p for p in (a.vararg, a.kwarg) if p is not None]]
        names.bound.update(dict.fromkeys(p.arg for p in every))
        names.add(function.body)
        return Outside((names, *self.scopes))


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of statements, without what is inside functions and classes."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))
