"""Operators whose operands TVM looks at several times are computed one after the other where they stand deep in one
another.

A condition of a choice is simplified, assumed and simplified again, so the time for conditions in conditions grows
eightfold with every level; a floored division is printed with its dividend twice, and casts of casts are tried both
ways.  From a growth of `MOST` on such an
operand gets a register, filled before the statement that needs it; what is evaluated for some lanes only stays so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.expression_size import BINARY
from tilelang_nb.lowering.rewrite import branch, constant, loop, map_children, sequence, with_body

MOST = 64  # how often TVM may come to one part of an expression
CONSTANTS = frozenset([tir.IntImm, tir.FloatImm, tvm.ir.StringImm])
CONDITION, DIVISION, ABSOLUTE, CAST = 8, 2, 3, 2  # how often it comes to an operand


def nested_choices(function: Any) -> Any:
    """The function with deep operands in registers."""
    found: list[Any] = []
    kinds = (tvm.ir.Call, tir.Select, tir.FloorDiv, tir.FloorMod, tir.Cast)
    tvm_ffi.structural_walk(function.body, (kinds, lambda node: found.append(node) if _factors(node) else None))
    if len(found) <= 2:
        return function
    try:
        rewriter = _Statements()
        body = rewriter.statement(function.body)
        if rewriter.kept:
            zero = tir.const(0, "int32")
            loaded = {var: tir.BufferLoad(register, [zero]) for var, register in rewriter.kept.items()}
            body = tvm_ffi.structural_map(body, (tvm.ir.Var, lambda var: loaded.get(var, var)))
    except RecursionError:  # sums of thousands of terms
        return function
    return function if body.same_as(function.body) else function.with_body(body)


def _is_choice(node: Any) -> bool:
    return isinstance(node, tir.Select) or getattr(getattr(node, "op", None), "name", "").endswith("if_then_else")


def _factors(node: Any) -> tuple[int, ...]:
    """How often TVM comes to each operand; () for once."""
    if _is_choice(node):
        return CONDITION, 1, 1
    if isinstance(node, (tir.FloorDiv, tir.FloorMod)):
        divisor = constant(node.b)
        return () if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0 else (DIVISION, 1)
    if isinstance(node, tir.Cast) and str(node.ty.dtype).startswith(("int", "uint")):
        return (CAST,)
    if getattr(getattr(node, "op", None), "name", "").rpartition(".")[2] == "abs":
        return (ABSOLUTE,)
    return ()


def _parts(node: Any) -> Iterator[Any]:
    """The operands of an expression."""
    if type(node) in BINARY:
        yield from (node.a, node.b)
    elif isinstance(node, tir.Select):
        yield from (node.condition, node.true_value, node.false_value)
    elif isinstance(node, tvm.ir.Call):
        yield from (part for part in node.args if isinstance(part, tvm.ir.Expr))
    elif isinstance(node, tvm.ir.TensorLoad):
        yield from node.indices
    else:
        for name in ("a", "b", "value"):
            part = getattr(node, name, None)
            if isinstance(part, tvm.ir.Expr):
                yield part


class _Statements:
    """Rewrites statements.  growths: of expressions, how often TVM comes to their innermost parts."""

    def __init__(self) -> None:
        self.growths: dict[Any, int] = {}
        self.kept: dict[Any, Any] = {}  # bound variable -> the register that it becomes

    def growth(self, expr: Any) -> int:
        """Without recursion: every part once, however often it is shared."""
        open_nodes = [expr]
        while open_nodes:
            node = open_nodes[-1]
            if self._known(node) is not None:
                open_nodes.pop()
                continue
            parts = list(_parts(node))
            grown = [self._known(part) for part in parts]
            missing = [part for part, growth in zip(parts, grown) if growth is None]
            if missing:
                open_nodes += missing
                continue
            open_nodes.pop()
            factors = _factors(node) or (1,) * len(parts)
            self.growths[node] = max((f * growth for f, growth in zip(factors, grown) if growth), default=1)
        return self._known(expr) or 1

    def _known(self, expr: Any) -> int | None:
        kind = type(expr)
        if kind in CONSTANTS:
            return 1
        growth = self.growths.get(expr)  # asked once: comparing expressions takes long
        return 1 if growth is None and kind is tvm.ir.Var else growth

    def statement(self, node: Any) -> Any:
        kind = type(node)
        if kind is tir.For:
            body = self.statement(node.body)
            if not body.same_as(node.body) and int(node.kind) == tir.ForKind.VECTORIZED:
                return loop(node, kind=tir.ForKind.UNROLLED, body=body)
            node = with_body(node, body)
            return self._with(node, [node.extent], lambda parts: loop(node, extent=parts[0]))
        if kind is tir.BufferStore:
            return self._with(
                node,
                [node.value, *node.indices],
                lambda parts: tir.BufferStore(node.buffer, parts[0], parts[1:], node.span),
            )
        if kind is tir.IfThenElse:
            then = self.statement(node.then_case)
            other = None if node.else_case is None else self.statement(node.else_case)
            changed = not then.same_as(node.then_case) or (other is not None and not other.same_as(node.else_case))
            node = branch(node.condition, then, other, node.span) if changed else node
            return self._with(
                node, [node.condition], lambda parts: branch(parts[0], node.then_case, node.else_case, node.span)
            )
        if kind is tir.Evaluate:
            return self._with(node, [node.value], lambda parts: tir.Evaluate(parts[0], node.span))
        if kind is tir.Bind:
            return self._with(node, [node.value], lambda parts: self._bound(node, parts[0]))
        return map_children(node, self.statement)

    def _bound(self, node: Any, value: Any) -> Any:
        """A binding; a register where TVM, which takes a variable for its value, would come to its parts too often."""
        growth = self.growth(value)
        if growth * CONDITION <= MOST:
            self.growths[node.var] = growth
            return node if value.same_as(node.value) else tir.Bind(node.var, value, node.span)
        register = self.kept[node.var] = _register(node.var.name, node.var)
        self.growths[node.var] = 1
        store = tir.BufferStore(register, value, [tir.const(0, "int32")], node.span)
        return sequence([tir.AllocBuffer(register, None, node.span), store], node.span)

    def _with(self, node: Any, parts: list[Any], build: Any) -> Any:
        """The statement with its expressions rewritten, behind the statements that they need."""
        if all(self.growth(part) <= MOST for part in parts) or any(map(_has_effect, parts)):
            return self._bound(node, node.value) if isinstance(node, tir.Bind) else node
        values = _Values(self, node.span)
        done = [values.value(part) for part in parts]
        return sequence([*values.before, build(done)], node.span)


class _Values:
    """Expressions at one place.  before: the statements that they need, in order.  known: what is in registers."""

    def __init__(self, owner: _Statements, span: Any, known: dict[Any, Any] | None = None):
        self.owner, self.span = owner, span
        self.before: list[Any] = []
        self.known = dict(known or {})

    def value(self, expr: Any) -> Any:
        """An expression of the same value whose parts TVM does not come to too often."""
        if expr in self.known:
            return self.known[expr]
        if self.owner.growth(expr) <= MOST:
            return expr
        if _is_choice(expr):
            return self._choice(expr)
        if isinstance(expr, (tir.And, tir.Or)):
            return self._circuit(expr)
        return _rebuilt(expr, self._operands(expr))

    def _operands(self, expr: Any) -> list[Any]:
        factors = _factors(expr) or (1,) * len(list(_parts(expr)))
        return [self._operand(part, factor) for part, factor in zip(_parts(expr), factors)]

    def _operand(self, part: Any, factor: int) -> Any:
        """An operand that TVM comes to `factor` times."""
        if factor * self.owner.growth(part) <= MOST:
            return part
        if factor == 1:
            return self.value(part)
        growing = _outermost_growing(part)
        for inner in growing:
            if inner not in self.known:
                self._keep(inner)
        kept = {inner: self.known[inner] for inner in growing}  # not those inside them: they would not be found then
        return tvm_ffi.structural_map(part, (tvm.ir.Expr, lambda one: kept.get(one, one)))

    def _choice(self, expr: Any) -> Any:
        condition, then, other = _parts(expr)
        condition = self._operand(condition, CONDITION)
        one, two = self._inner(), self._inner()
        a, b = one.value(then), two.value(other)
        if one.before or two.before:
            return self._filled(expr, condition, (one, a), (two, b))
        return tir.Select(condition, a, b) if isinstance(expr, tir.Select) else tir.if_then_else(condition, a, b)

    def _keep(self, expr: Any) -> None:
        """What TVM comes to the parts of several times, in a register."""
        if _is_choice(expr):
            condition, then, other = _parts(expr)
            condition = self._operand(condition, CONDITION)
            one, two = self._inner(), self._inner()
            self._filled(expr, condition, (one, one.value(then)), (two, two.value(other)))
            return
        register = _register("part", expr)
        store = tir.BufferStore(register, _rebuilt(expr, self._operands(expr)), [tir.const(0, "int32")], self.span)
        self.before += [tir.AllocBuffer(register, None, self.span), store]
        self._know(expr, register)

    def _circuit(self, expr: Any) -> Any:
        left, right = self.value(expr.a), self._inner()
        value = right.value(expr.b)
        if not right.before:
            return type(expr)(left, value)
        ends, same = tir.const(isinstance(expr, tir.Or), "bool"), self._inner()
        cases = ((right, value), (same, ends)) if isinstance(expr, tir.And) else ((same, ends), (right, value))
        return self._filled(expr, left, *cases)

    def _inner(self) -> _Values:
        return _Values(self.owner, self.span, self.known)

    def _filled(self, expr: Any, condition: Any, then: tuple[_Values, Any], other: tuple[_Values, Any]) -> Any:
        """A register that holds one of two values."""
        register = _register("chosen", expr)
        suites = []
        for case, value in (then, other):
            store = tir.BufferStore(register, value, [tir.const(0, "int32")], self.span)
            suites.append(sequence([*case.before, store], self.span))
        self.before.append(tir.AllocBuffer(register, None, self.span))
        self.before.append(branch(condition, suites[0], suites[1], self.span))
        return self._know(expr, register)

    def _know(self, expr: Any, register: Any) -> Any:
        load = self.known[expr] = tir.BufferLoad(register, [tir.const(0, "int32")])
        self.owner.growths[load] = 1
        return load


def _register(name: str, of: Any) -> Any:
    """A private array for one value of the type of an expression."""
    return tir.decl_buffer((1,), str(of.ty.dtype), name, scope="local", layout=None)


def _rebuilt(expr: Any, parts: list[Any]) -> Any:
    """The expression with other operands."""
    if isinstance(expr, tvm.ir.TensorLoad):
        return tir.BufferLoad(expr.source, parts)
    if isinstance(expr, tir.Cast):
        return tir.Cast(str(expr.ty.dtype), parts[0])
    if hasattr(expr, "a"):
        return type(expr)(*parts)
    changed = dict(zip(_parts(expr), parts))
    return tvm_ffi.structural_map(expr, (tvm.ir.Expr, lambda part: changed.get(part, part)))


def _outermost_growing(expr: Any) -> list[Any]:
    found, open_nodes = [], [expr]
    while open_nodes:
        node = open_nodes.pop()
        if _factors(node):
            found.append(node)
        else:
            open_nodes += list(_parts(node))[::-1]
    return found


def _has_effect(expr: Any) -> bool:
    """Calls whose order matters: those of device functions that are not pure."""
    effects: list[Any] = []

    def call(node: Any) -> None:
        name = getattr(node.op, "name", "")
        if name in ("tirx.call_extern", "tirx.address_of") or "ptx" in name:
            effects.append(node)

    tvm_ffi.structural_walk(expr, (tvm.ir.Call, call))
    return bool(effects)
