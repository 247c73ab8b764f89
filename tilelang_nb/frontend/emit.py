"""Emission: a stack of statement lists, the span of the statement at hand, and the rule that loads do not move over
effects.

A load is an expression until something could change what it reads.  `pending` holds weak references to values that
contain loads; before an effect, and before a device scope opens, those still alive are bound to a variable.  Values
used up inside one expression are dead by then (reference counting), so nothing is emitted for them; an element kept
in a list, a generator's frame or a default argument keeps the value it had, as in Python.

This is the builder that `language.values.builder()` gives to operations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir
from tvm.ir import SourceName
from tvm.ir import Span as TvmSpan

from ..language import tile_program
from ..language.operands import IN_A_LAUNCH, stored
from ..language.promotion import constant, in_ir
from ..language.values import Buffer, Region, Value, number
from ..source import catalogue as say
from ..source.diagnostic import Message, Refusal
from ..source.text import Span, Text
from .locate import header_span
from .loop_counts import Ranges
from .refusals import stores_region
from .scopes import Scope


@dataclass(frozen=True)
class Launch:
    """The launch at hand: (variable, extent) of `threadIdx.x/y/z` and `blockIdx.x/y/z`.

    pretended: it stands for one that a refused statement may hold.  cluster: blocks of a cluster along x, y, z.
    """

    threads: tuple[tuple[Any, Any], ...]
    blocks: tuple[tuple[Any, Any], ...]
    pretended: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)


class Builder:
    """Collects the statements of one build of one kernel.

    scope: the scope at hand.  hint: the name being assigned.  guard: above 0 while an operand is evaluated that runs
    only under a condition.  warn: reports a warning at the statement at hand.
    """

    def __init__(self, text: Text, scope: Scope, warn: Callable[[Message], None]):
        self.frames: list[list[Any]] = [[]]
        self._kept: list[list[Any]] = [[]]  # per frame, variables that hold values which nothing may use any more
        self.pending: list[Any] = []
        self.span: Any = None
        self.guard = 0
        self.hint: str | None = None
        self.launch: Launch | None = None
        self.reducer: Any = None  # how `T.tvm_thread_allreduce` combines here
        self.layouts: dict[str, Any] = {}
        self.ranges = Ranges()
        self.meanings: dict[Any, Any] = {}  # variable that a name is -> the expression without loads that it holds
        self.lost: list[Message] = []  # refusals of operations in other threads
        self.scope, self.warn = scope, warn
        self.inline: Any = None  # set by the walk: (macro, args, kwargs, names) -> result
        self.statement_spans: list[Any] = []
        self._spans: dict[ast.AST, Any] = {}
        self._places: dict[ast.AST, tuple[Any, ...]] = {}
        self._sources: dict[str, Any] = {}

    # -- places ----------------------------------------------------------------------------------------------------
    def at(self, node: ast.AST, text: Text) -> None:
        """Make `node` the place that emitted statements carry."""
        span = self._spans.get(node)
        if span is None:
            place = self._places.get(node)
            if place is None:
                place = self._places[node] = self._place(header_span(text, node), text.name)
            span = self._spans[node] = TvmSpan(*place)
        self.span = span

    def _place(self, span: Span, name: str) -> tuple[Any, ...]:
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = SourceName(name)
        return source, span.line, span.end_line, span.column + 1, span.end_column + 1

    def renew_spans(self) -> None:
        """From now on statements get span objects of their own: the next turn of an expansion begins."""
        self._spans.clear()

    def copy_of(self, span: Any) -> Any:
        """The same place as a span object of its own."""
        return TvmSpan(span.source_name, span.line, span.end_line, span.column, span.end_column)

    @property
    def count(self) -> int:
        """Statements emitted so far."""
        return len(self.statement_spans)

    # -- statements ------------------------------------------------------------------------------------------------
    def allow(self, what: str, remedy_outside: str = IN_A_LAUNCH) -> None:
        """Refuse an effect where none is possible: in a guarded operand, outside a launch."""
        if self.guard:
            remedy = "use an `if` statement"
            raise Refusal(
                say.UnsupportedSyntax(what=f"{what} in an operand that runs only under a condition", remedy=remedy)
            )
        if self.launch is None:
            problem = f"{what} stands outside a launch"
            raise Refusal(say.OutsideLaunch(problem=problem, remedy=remedy_outside))

    def emit(self, statement: Any) -> None:
        """Append a statement; binds of pure expressions may stand outside a launch."""
        if self.guard or (self.launch is None and not isinstance(statement, tir.Bind)):
            self.allow("an operation")
        self.append(statement)

    def append(self, statement: Any) -> None:
        """Append a statement that may stand anywhere: a launch."""
        self.statement_spans.append(self.span)
        self.frames[-1].append(statement)

    def append_at(self, statement: Any, span: Any) -> None:
        """Append a compound statement, whose own span is that of its first line."""
        self.span = span
        self.append(statement)

    def effect(self) -> None:
        """Bind every live value that contains a load."""
        if self.pending:
            pending, self.pending = self.pending, []
            for reference in pending:
                value = reference()
                if value is not None and value.reads and (value.scope is None or value.scope.open):
                    self.keep(value)

    def keep(self, value: Value, name: str = "kept") -> None:
        """Bind the expression of a value here; it lives as long as this scope."""
        if value.reads:
            self.check_readable()
        value.expr, value.reads = self.bind(name, value.expr, value.dtype), False
        self._kept[-1].append(value.expr)
        if value.scope is None or value.scope.depth < self.scope.depth:
            value.scope = self.scope

    def check_readable(self) -> None:
        """TL208 for an element that is read where no thread runs."""
        if self.launch is None:
            problem = "an element is read outside a launch"
            raise Refusal(say.OutsideLaunch(problem=problem, remedy="read it inside `with T.Kernel(...)`"))

    def bind(self, name: str, expr: Any, dtype: str) -> Any:
        """A variable that holds an expression from here on."""
        var = tir.Var(name, in_ir(dtype))
        self.emit(tir.Bind(var, expr, self.span))
        return var

    def open(self) -> None:
        self.effect()
        self.frames.append([])
        self._kept.append([])

    def close(self) -> Any:
        """The statements since `open`, as one."""
        self.effect()
        return self.body()

    def body(self) -> Any:
        """The statements of the innermost frame, without the variables that were kept and then not used."""
        statements, kept = self.frames.pop(), self._kept.pop()
        if not kept:
            return sequence(statements)
        unsure = set(kept)
        certain = [s for s in statements if not (isinstance(s, tir.Bind) and s.var in unsure)]
        used = set(tir.analysis.undefined_vars(sequence(certain), []))
        needed = []
        for statement in reversed(statements):
            if isinstance(statement, tir.Bind) and statement.var in unsure:
                if statement.var not in used:
                    continue
                used.update(tir.analysis.undefined_vars(tir.Evaluate(statement.value), []))
            needed.append(statement)
        return sequence(needed[::-1])

    def drop_frames(self, depth: int) -> None:
        """Forget the frames that a failed statement left open."""
        del self.frames[depth:], self._kept[depth:]

    def store(self, buffer: Buffer, index: tuple[Any, ...], value: Any) -> None:
        """Store one element; index as `Buffer.indices` gives it."""
        if slice in map(type, index):
            filled = "fill" if number(value) is not None else ""
            raise Refusal(stores_region(buffer.name, "copy" if isinstance(value, (Buffer, Region)) else filled))
        places = [buffer.index_expr(i) for i in index]
        expr = stored(value, buffer.name, buffer.dtype).use()
        del value, index  # used up: they need no variables of their own
        self.store_expr(buffer, places, expr)

    def store_expr(self, buffer: Buffer, index: list[Any], expr: Any) -> None:
        """The caller has dropped its values, so only what outlives the statement is bound."""
        self.allow("a store")
        self.effect()
        self.emit(tir.BufferStore(buffer.var, expr, index, self.span))

    def operation(self, name: str, *operands: Any, dtype: str = "void") -> Value | None:
        """A tile operation (see `language.tile_program`); with a dtype its result, bound to a variable."""
        self.allow(f"`{tile_program.written(name, *operands)}`")
        encoded = [self._encode(operand) for operand in operands]
        self.effect()
        call = tile_program.operation(name, *encoded, dtype=in_ir(dtype) if dtype != "void" else dtype)
        if dtype == "void":
            self.emit(tir.Evaluate(call, self.span))
            return None
        return Value(self.bind(self.hint or name, call, dtype), dtype, self.scope)

    def _encode(self, operand: Any) -> Any:
        if isinstance(operand, Buffer):
            operand.check_alive()
            begin = [constant(0, "int32")] * len(operand.shape)
            return tile_program.region(operand.var, begin, [operand.index_expr(n) for n in operand.shape])
        if isinstance(operand, Region):
            operand.buffer.check_alive()
            for part in (*operand.begin, *operand.extent):
                self._settle(part)
            index_expr = operand.buffer.index_expr
            begin = [index_expr(i) for i in operand.begin]
            return tile_program.region(operand.buffer.var, begin, [index_expr(n) for n in operand.extent])
        if isinstance(operand, Value):
            self._settle(operand)
            return operand.use()
        return constant(operand, "float32") if isinstance(operand, float) else operand

    def _settle(self, value: Any) -> None:
        """The caller still holds this value, so `effect` would bind it: bind it now and use the variable."""
        if isinstance(value, Value) and value.reads:
            self.keep(value)

    def allocate(self, name: str, shape: Any, dtype: str, memory: str) -> Buffer:
        """A buffer that lives until the scope at hand ends; memory "global" may be allocated outside a launch."""
        if memory != "global":
            self.allow("an allocation")
        extents = [extent.use() if isinstance(extent, Value) else extent for extent in shape]
        var = tir.decl_buffer(extents, in_ir(dtype), name, scope=memory, layout=None)
        self.append(tir.AllocBuffer(var, None, self.span))
        return Buffer(name, shape, dtype, memory, var, home=self.scope)


def sequence(statements: list[Any]) -> Any:
    """Several statements as one."""
    if not statements:
        return tir.Evaluate(constant(0, "int32"))
    return statements[0] if len(statements) == 1 else tir.SeqStmt(statements)
