"""What Python refuses of a statement only when it compiles it: every such mistake, and the statement without them.

Python's compiler stops at its first mistake.  Each mistake is taken out of a copy of the statement, and the copy is
compiled again.  The code of the copy only serves to define a kernel or macro, whose body never runs: the walk over its
text refuses the statements that hold a mistake, and goes on with the others.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..source.diagnostic import Diagnostic
from ..source.text import Text
from .eager_syntax import is_eager_text
from .expressions import ASYNCHRONOUS, REFUSED
from .places import header_span
from .python_mistakes import python_mistake
from .reading import compiling_mistake, syntax_mistake
from .refusals import STATEMENTS

LIMIT = 100  # mistakes of one statement of the cell
_LOOPS: dict[type[ast.AST], type[ast.stmt]] = {ast.AsyncFor: ast.For, ast.AsyncWith: ast.With}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class CompileMistakes:
    """diagnostics: of one statement of a cell.

    statements: the statements that hold one, at any depth, with the first of theirs.  rest: the statement without the
    mistakes; None where they cannot be taken out.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    statements: dict[ast.stmt, Diagnostic] = field(default_factory=dict)
    rest: ast.stmt | None = None


def compile_mistakes(node: ast.stmt, flags: int, text: Text) -> CompileMistakes:
    """Every mistake of a statement that Python finds only when it compiles.  flags: of `compile`."""
    found = CompileMistakes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code that runs warns
            _Search(node, flags, text, found).run()
    except (RecursionError, MemoryError, ValueError) as error:
        if not found.diagnostics:
            found.diagnostics.append(compiling_mistake(error, node, text))
        found.rest = None
    return found


def is_kernel_text(node: ast.AST) -> bool:
    """Whether a function is decorated as a kernel or macro, whose body is walked and never runs."""
    if not isinstance(node, ast.FunctionDef):
        return False
    words = {_last_word(decorator) for decorator in node.decorator_list}
    return not words.isdisjoint(("prim_func", "macro")) or ("jit" in words and is_eager_text(node))


def _last_word(decorator: ast.expr) -> str:
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")


class _Search:
    def __init__(self, node: ast.stmt, flags: int, text: Text, found: CompileMistakes):
        self.node, self.flags, self.text, self.found = node, flags, text, found

    def run(self) -> None:
        error = self._error(self.node)
        if error is None:
            self.found.rest = self.node
            return
        memo: dict[int, Any] = {}
        self.tree = ast.Module([copy.deepcopy(self.node, memo)], [])
        self.originals = {id(memo[id(part)]): part for part in ast.walk(self.node) if id(part) in memo}
        while error is not None:
            if len(self.found.diagnostics) == LIMIT or not self._take_out(error):
                return
            error = self._error(self.tree.body[0])
        self.found.rest = self.tree.body[0]

    def _error(self, node: ast.stmt) -> SyntaxError | None:
        try:
            compile(ast.Module([node], []), self.text.name, "exec", self.flags, dont_inherit=True)
        except SyntaxError as error:
            return error
        return None

    def _take_out(self, error: SyntaxError) -> bool:
        """Report one mistake and change the tree so that it is gone; whether that was possible."""
        parents = {child: part for part in ast.walk(self.tree) for child in ast.iter_child_nodes(part)}
        at = self._nodes_at(error, parents)
        statement = next((part for part in _around(at[0], parents) if isinstance(part, ast.stmt)), None) if at else None
        if statement is None:
            self.found.diagnostics.append(syntax_mistake(error, self.text))
            return False
        functions = [part for part in _around(statement, parents) if isinstance(part, _FUNCTIONS)]
        said = self._said(error, at, statement, any(map(is_kernel_text, functions)))
        self.found.diagnostics.append(said)
        original = self.originals.get(id(statement), statement)
        self.found.statements.setdefault(original, said)
        for change in _CHANGES:
            if any(change(part, str(error.msg)) for part in at):
                return True
        return self._without(statement, parents)

    def _nodes_at(self, error: SyntaxError, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
        """Nodes at the place of an error, outermost first; else the innermost one around it."""
        line, column = error.lineno or 0, (error.offset or 1) - 1
        end = (error.end_lineno or line, (error.end_offset or column + 2) - 1)
        placed = [part for part in parents if hasattr(part, "lineno")]
        exact = [part for part in placed if (*_start(part), *_end(part)) == (line, column, *end)]
        around = [part for part in placed if _start(part) <= (line, column) < _end(part)]
        found = exact or around[-1:]
        if "assignment expression" in str(error.msg):  # Python may name its target
            found += [parents[part] for part in found if isinstance(parents[part], ast.NamedExpr)]
        return found

    def _said(self, error: SyntaxError, at: list[ast.AST], statement: ast.stmt, in_kernel: bool) -> Diagnostic:
        """In a kernel what the walk says of such a statement or expression, else Python's message in plain words."""
        if in_kernel:
            for part in at:
                if type(part).__name__ in REFUSED and str(error.msg).startswith(("'await'", "'yield")):
                    return REFUSED[type(part).__name__].at(self.text.span(part))
                if isinstance(part, _COMPREHENSIONS) and "asynchronous" in str(error.msg):
                    return ASYNCHRONOUS.at(self.text.span(part))
            refused = STATEMENTS.get(type(statement).__name__)
            if refused is not None and not isinstance(statement, (ast.ClassDef, *_FUNCTIONS, ast.Try)):
                return refused(statement).at(header_span(self.text, statement))
        message = python_mistake(str(error.msg))
        if statement in at and isinstance(statement, tuple(_LOOPS)):
            return message.at(header_span(self.text, statement))
        where = syntax_mistake(error, self.text).span
        if where is not None and error.end_offset is not None:
            end_line = error.end_lineno or where.line
            where = self.text.positions(where.line, end_line, (error.offset or 1) - 1, error.end_offset - 1)
        return message.at(where)

    def _without(self, statement: ast.stmt, parents: dict[ast.AST, ast.AST]) -> bool:
        """Put an expression with the names that a statement reads in its place: they are still looked up outside."""
        if statement is self.tree.body[0] or isinstance(statement, (ast.ClassDef, *_FUNCTIONS)):
            return False
        if type(statement) in _LOOPS:
            fields = {name: getattr(statement, name, None) for name in statement._fields}
            new: ast.stmt = _LOOPS[type(statement)](**fields)
        else:
            names = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}
            new = ast.Expr(ast.Tuple([ast.Name(name, ast.Load()) for name in sorted(names)], ast.Load()))
        for part in ast.walk(new) if isinstance(new, ast.Expr) else (new,):
            ast.copy_location(part, statement)
        self.originals[id(new)] = self.originals.get(id(statement), statement)
        return _replace(parents[statement], statement, new)


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """A node and what it lies in, innermost first."""
    yield node
    while node in parents:
        node = parents[node]
        yield node


def _replace(parent: ast.AST, old: ast.AST, new: ast.AST) -> bool:
    for name, value in ast.iter_fields(parent):
        if value is old:
            setattr(parent, name, new)
            return True
        if isinstance(value, list) and any(part is old for part in value):
            value[:] = [new if part is old else part for part in value]
            return True
    return False


# -- what takes a mistake out of a node that stands at its place; whether it could ------------------------------------
def _plain_clauses(node: Any, said: str) -> bool:
    if not isinstance(node, _COMPREHENSIONS) or "asynchronous" not in said:
        return False
    for clause in node.generators:
        clause.is_async = 0
    return True


def _plain_value(node: Any, said: str) -> bool:
    """`await x` becomes `(x,)`, and so do `yield x` and `*x` where they may not stand."""
    asked = isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)) and said.startswith(("'await'", "'yield"))
    if not asked and not (isinstance(node, ast.Starred) and "starred" in said):
        return False
    value, context = getattr(node, "value", None), getattr(node, "ctx", ast.Load())
    node.__class__ = ast.Tuple
    node.elts, node.ctx = [] if value is None else [value], context
    return True


def _one_star(node: Any, said: str) -> bool:
    if not isinstance(node, (ast.Tuple, ast.List)) or not said.startswith("multiple starred expressions"):
        return False
    first = next(at for at, part in enumerate(node.elts) if isinstance(part, ast.Starred))
    node.elts = [p.value if isinstance(p, ast.Starred) and at > first else p for at, p in enumerate(node.elts)]
    return True


def _other_name(node: Any, said: str) -> bool:
    """A parameter or keyword that is given twice gets a name of its own."""
    if isinstance(node, ast.arg) and said.startswith("duplicate argument"):
        node.arg = f"__again_{node.lineno}_{node.col_offset}"
        return True
    if isinstance(node, ast.keyword) and said.startswith("keyword argument repeated"):
        node.arg = None
        return True
    return False


def _no_binding(node: Any, said: str) -> bool:
    if not isinstance(node, ast.NamedExpr) or "assignment expression" not in said:
        return False
    value, node.__class__ = node.value, ast.Tuple
    node.elts, node.ctx = [value], ast.Load()
    return True


def _other_case(node: Any, said: str) -> bool:
    if isinstance(node, ast.pattern):
        value = ast.copy_location(ast.Constant(0), node)
        node.__class__, node.value = ast.MatchValue, value
        return True
    if isinstance(node, ast.ExceptHandler) and said.startswith("default 'except:'"):
        node.type = ast.Tuple(
            [], ast.Load(), lineno=node.lineno, col_offset=0, end_lineno=node.lineno, end_col_offset=0
        )
        return True
    return False


_CHANGES: tuple[Callable[[Any, str], bool], ...] = (
    _plain_clauses,
    _plain_value,
    _one_star,
    _other_name,
    _no_binding,
    _other_case,
)
