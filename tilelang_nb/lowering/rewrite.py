"""Walking and rebuilding statements: the few moves that every stage makes.

Rebuilt statements keep their span.  A statement that does not change stays the same object, so a stage that has
nothing to do returns its input and shows as unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.expression_size import BINARY, LEAVES
from tilelang_nb.language.expression_size import manageable as manageable
from tilelang_nb.language.expression_size import walkable as walkable
from tilelang_nb.language.tvm_arrays import elements as elements

Var = tvm.ir.Var
Load = tvm.ir.TensorLoad
Call = tvm.ir.Call
IntImm = tir.IntImm
# Types are compared, not asked with `isinstance`: TVM's classes have no subclasses here, and are abstract base classes,
# for which that takes ten times as long.
WITH_BODY = frozenset([tir.For, tir.While, tir.AttrStmt])


def nothing(span: Any = None) -> tir.Stmt:
    """A statement without effect; `sequence` drops it."""
    return tir.Evaluate(tir.const(0, "int32"), span)


def is_nothing(statement: Any) -> bool:
    """A statement without effect, as passes leave behind."""
    kind = type(statement)
    if kind is tir.Evaluate:
        return type(statement.value) is IntImm
    return kind is tir.SeqStmt and all(map(is_nothing, elements(statement.seq)))


def statements(statement: Any) -> list[Any]:
    """The statements of a sequence, or the statement itself; nested sequences are opened."""
    if type(statement) is not tir.SeqStmt:
        return [statement]
    parts = elements(statement.seq)
    if any(type(part) is tir.SeqStmt for part in parts):
        return [one for part in parts for one in statements(part)]
    return parts


def sequence(parts: Iterable[Any], span: Any = None) -> Any:
    """One statement from several; statements without effect are dropped."""
    every = [one for part in parts for one in statements(part) if not is_nothing(one)]
    if not every:
        return nothing(span)
    return every[0] if len(every) == 1 else tir.SeqStmt(every, span)


def with_body(node: Any, body: Any) -> Any:
    """The same loop or attribute around another body."""
    if body is node.body or body.same_as(node.body):
        return node
    if isinstance(node, tir.For):
        return loop(node, body=body)
    if isinstance(node, tir.While):
        return tir.While(node.condition, body, node.span)
    return tir.AttrStmt(node.node, node.attr_key, node.value, body, node.span)


def loop(node: Any, **changes: Any) -> Any:
    """A copy of a loop with some parts changed: loop_var, min, extent, kind, body, annotations, step."""
    part = {
        name: changes.get(name, getattr(node, name)) for name in ("loop_var", "min", "extent", "kind", "body", "step")
    }
    annotations = changes.get("annotations", node.annotations)
    return tir.For(
        part["loop_var"],
        part["min"],
        part["extent"],
        tir.ForKind(part["kind"]),
        part["body"],
        annotations=annotations,
        step=part["step"],
        span=node.span,
    )


def map_children(node: Any, visit: Callable[[Any], Any]) -> Any:
    """The statement with `visit` applied to the statements directly inside it."""
    kind = type(node)
    if kind is tir.SeqStmt:
        before = elements(node.seq)
        after = [visit(one) for one in before]
        return node if all(a is b or a.same_as(b) for a, b in zip(after, before)) else sequence(after, node.span)
    if kind in WITH_BODY:
        return with_body(node, visit(node.body))
    if kind is tir.IfThenElse:
        then, other = visit(node.then_case), None if node.else_case is None else visit(node.else_case)
        if then.same_as(node.then_case) and (other is None or other.same_as(node.else_case)):
            return node
        return branch(node.condition, then, other, node.span)
    return node


def each_statement(node: Any) -> Iterator[Any]:
    """A statement and all inside it, parents first; expressions, which may be without bounds, are not looked at."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        kind = type(one)
        if kind is tir.SeqStmt:
            waiting += reversed(elements(one.seq))
        elif kind in WITH_BODY:
            waiting.append(one.body)
        elif kind is tir.IfThenElse:
            if one.else_case is not None:
                waiting.append(one.else_case)
            waiting.append(one.then_case)


def branch(condition: Any, then: Any, other: Any = None, span: Any = None) -> Any:
    """An `if`; empty branches are left out."""
    if other is not None and is_nothing(other):
        other = None
    if is_nothing(then):
        return nothing(span) if other is None else tir.IfThenElse(tir.Not(condition), other, None, span)
    return tir.IfThenElse(condition, then, other, span)


def substitute(node: Any, values: Mapping[Any, Any]) -> Any:
    """Replace variables (also buffers) in an expression or statement; the definitions of loops must not be among
    them.

    Nothing is folded: float algebra stays as it is written.
    """
    if not values:
        return node
    return tvm_ffi.structural_map(node, (Var, lambda var: values.get(var, var)))


def walk(node: Any, *callbacks: tuple[Any, Callable[[Any], Any]], order: str = "post") -> None:
    """Call each callback with every node of its class, children before parents unless `order` says otherwise."""
    tvm_ffi.structural_walk(node, list(callbacks), order=order)


def variables(expr: Any) -> set[Any]:
    """The variables of an expression, buffers included."""
    found: set[Any] = set()
    tvm_ffi.structural_walk(expr, (Var, found.add))
    return found


def loads(node: Any) -> list[Any]:
    """The buffer loads in an expression or statement, inner ones first."""
    found: list[Any] = []
    _collect_loads(node, found)
    return found


def _collect_loads(node: Any, found: list[Any]) -> None:
    """Plain arithmetic is looked through here: starting a structural walk costs more than that for one statement."""
    kind = type(node)
    if kind in LEAVES:
        return
    if kind in BINARY:
        _collect_loads(node.a, found)
        _collect_loads(node.b, found)
    elif kind is Load:
        for index in elements(node.indices):
            _collect_loads(index, found)
        found.append(node)
    else:
        tvm_ffi.structural_walk(node, (Load, found.append))


def has(node: Any, kinds: Any) -> bool:
    """Does a node of these types occur?"""
    return tvm_ffi.structural_walk(node, (kinds, tvm_ffi.VisitInterrupt)) is not None


def scope(buffer: Any) -> str:
    """The memory scope of a buffer."""
    return str(buffer.scope())


def dtype_of(expr: Any) -> str:
    """The type of an expression, or of the elements of a buffer."""
    return str(expr.ty.dtype)


def element_bytes(buffer: Any) -> int:
    """Bytes of an element of a buffer, at least one."""
    return max(tvm.DataType(dtype_of(buffer)).bits // 8, 1)


def as_int32(expr: Any) -> Any:
    """The integer, converted to 32 bits where it has others."""
    return expr if dtype_of(expr) == "int32" else tir.Cast("int32", expr)


def constant(expr: Any) -> int | None:
    """The value of an integer immediate, None for anything else."""
    if isinstance(expr, int):
        return expr
    return int(expr.value) if isinstance(expr, IntImm) else None


def size(extent: Any) -> int:
    """The extent of a tile or of a loop that is known to be constant."""
    value = constant(extent)
    assert value is not None, f"{extent} is no constant"
    return value


def with_span(statement: Any, span: Any) -> Any:
    """Give the span to every statement inside that has none."""
    if span is None:
        return statement

    def visit(node: Any) -> Any:
        node = map_children(node, visit)
        if node.span is not None:
            return node
        if isinstance(node, tir.SeqStmt):
            return node
        if isinstance(node, tir.BufferStore):
            return tir.BufferStore(node.buffer, node.value, node.indices, span)
        if isinstance(node, tir.Evaluate):
            return tir.Evaluate(node.value, span)
        if isinstance(node, tir.IfThenElse):
            return tir.IfThenElse(node.condition, node.then_case, node.else_case, span)
        if isinstance(node, tir.Bind):
            return tir.Bind(node.var, node.value, span)
        if isinstance(node, tir.AllocBuffer):
            return tir.AllocBuffer(node.buffer, node.annotations, span)
        if isinstance(node, tir.DeclBuffer):
            return tir.DeclBuffer(node.buffer, data=node.data, span=span)
        if isinstance(node, tir.AttrStmt):
            return tir.AttrStmt(node.node, node.attr_key, node.value, node.body, span)
        if isinstance(node, tir.While):
            return tir.While(node.condition, node.body, span)
        if isinstance(node, tir.For):
            return tir.For(
                node.loop_var,
                node.min,
                node.extent,
                tir.ForKind(node.kind),
                node.body,
                annotations=node.annotations,
                step=node.step,
                span=span,
            )
        return node

    return visit(statement)
