"""The bodies of refused statements, walked for further mistakes.

An iterable, a launch or a condition of the device that is refused says nothing of the statements below it.  They are
walked once in a scope of their own whose program is thrown away.  Whether, how often and with what they would run is
not known, so the names that the header binds are silent there, and what depends on the header is not said (UNCERTAIN).

What stands below a condition that may be one of compile time is left out: perhaps it would not have been built.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from tvm import tirx as tir

from ..language.promotion import constant
from ..language.values import Buffer, Region, Value
from ..source.diagnostic import Poisoned, Refusal
from .emit import Launch
from .loops import Loop
from .unreached_operands import condition, is_of_device

COMPOUND: tuple[type[ast.stmt], ...] = (
    ast.For,
    ast.While,
    ast.If,
    ast.With,
    ast.Match,
    ast.Try,
    ast.AsyncFor,
    ast.AsyncWith,
    getattr(ast, "TryStar", ast.Try),
)
OF_NUMBERS = (min, max, abs, round, int, float, bool, sum)
LOOPS = (ast.For, ast.While, ast.AsyncFor)
# What a statement may only do where it surely runs, and exceptions that the condition may be there to avoid.
UNCERTAIN = frozenset(("TL110", "TL115", "TL121", "TL130", "TL133", "TL144", "TL145", "TL208"))


def suites(node: ast.stmt) -> list[tuple[ast.AST, list[ast.stmt]]]:
    """The blocks of a compound statement, each with the part of the statement that it belongs to."""
    if not isinstance(node, COMPOUND):
        return []
    parts = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    blocks = [(part, getattr(part, name, [])) for part in parts for name in ("body", "orelse", "finalbody")]
    return [(part, block) for part, block in blocks if block]


def header(part: ast.AST) -> Iterator[ast.AST]:
    """What stands before the colon of a statement, case or handler, and may bind names."""
    for name, value in ast.iter_fields(part):
        if name not in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.AST))
    if isinstance(part, ast.ExceptHandler) and part.name:
        yield ast.Name(part.name, ast.Store())


def search(walker: Any, node: ast.stmt, blocks: list[tuple[ast.AST, list[ast.stmt]]]) -> None:
    """Walk the blocks that a refused statement did not reach."""
    if isinstance(node, (ast.If, ast.Match)) and not of_device(walker, condition(node)):
        return
    unreached = [(part, block) for part, block in blocks if id(block) not in walker.entered]
    if not unreached or not walker.walks_launches:
        return
    builder = walker.builder
    launch = builder.launch
    walker.unsure += 1
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # what only might run prints nothing
            for part, block in unreached:
                _search_block(walker, node, part, block, launch)
    finally:
        walker.unsure -= 1
        builder.launch = launch


def of_device(walker: Any, node: ast.expr) -> bool:
    """Whether the value of an expression is certainly the device's, whatever its refused parts are."""

    def is_of_device_name(name: ast.Name) -> bool:
        with contextlib.suppress(Refusal, Poisoned):
            return issubclass(type(walker.evaluate(name)), (Value, Buffer, Region))
        return False

    def gives_number(name: ast.expr) -> bool:
        function: Any = None
        with contextlib.suppress(Refusal, Poisoned):
            function = walker.evaluate(name)
        return (
            type(function) is FunctionType
            and hasattr(function, "call_signature")
            or any(function is known for known in OF_NUMBERS)
        )

    return is_of_device(node, is_of_device_name, gives_number)


def _search_block(walker: Any, node: ast.stmt, part: ast.AST, block: list[ast.stmt], launch: Any) -> None:
    try:
        scope = walker.open("unknown", node)
    except Refusal:  # nested too deeply, which is said elsewhere
        return
    loops = len(walker.loops)
    walker.builder.launch = launch or Launch((_axis("tx"),), (_axis("bx"),), pretended=True)
    if isinstance(node, LOOPS):
        walker.poison(node)
        walker.loops.append(Loop("unknown", node, scope))
    else:
        for bound in header(part):
            walker.poison(bound)
    try:
        walker.suite(block)
    finally:
        del walker.loops[loops:]
        while walker.scope is not scope.parent:
            walker.close()


def _axis(name: str) -> tuple[Any, Any]:
    return tir.Var(name, "int32"), constant(1024, "int32")
