"""Loops: device loops in all their forms, `while`, compile-time expansion, `break` and `continue`."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from ..language.loops import DeviceLoop
from ..language.operands import described
from ..language.promotion import constant, is_integer
from ..language.values import Buffer, Region, Value, is_device
from ..source import catalogue as say
from ..source.diagnostic import Note, Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.wording import of_type
from .assign import bind_target
from .branches import truth_at
from .conditional_bindings import enter_branch
from .contents import check_used_up
from .control import Leave, ReturnValue
from .device_loops import bound_loop, device_loop
from .locate import exception_text, frames, line_span
from .merge import merge_loop, of_parallel
from .names import Gone, bound_names
from .refusals import iterates_over_buffer, iterates_over_number, leaves_expanded_loop, leaves_loop_of_kind
from .scopes import Scope
from .unroll import Node, named, targets
from .walruses import bound_where


@dataclass
class Loop:
    """A loop whose body is being walked.

    kind: unknown for a refused one.  left: a `break` leaves it.  perhaps_left: a refused statement holds a `break`.
    """

    kind: str
    node: Any
    scope: Scope
    left: bool = False
    perhaps_left: bool = False


def for_statement(walker: Any, node: ast.For) -> None:
    """A device loop for `range` and the loops of `T`, else a compile-time loop: once per item, while building."""
    if node.orelse:
        walker.report(Refusal(say.LoopElse(), node.orelse[0]), node)
    _for_loop(walker, node)
    if node.orelse:
        raise Poisoned


def _for_loop(walker: Any, node: ast.For) -> None:
    iterable = walker.evaluate(node.iter)
    if isinstance(iterable, builtins.range):
        iterable = DeviceLoop("serial", ((iterable.start, iterable.stop, iterable.step),))
    if isinstance(iterable, DeviceLoop):
        if iterable.kind == "thread_binding":
            bound_loop(walker, node, iterable)
            return
        kind = "serial" if iterable.kind == "grid" and len(iterable.dims) == 1 else iterable.kind
        loop = Loop(kind, node, walker.scope)
        device_loop(walker, node, iterable, loop)
    elif is_device(iterable) or isinstance(iterable, (int, float)) or not _is_iterable(iterable):
        what = described(iterable) if is_device(iterable) or iterable is None else of_type(iterable)
        if isinstance(iterable, (int, float)):
            what = f"a Python {type(iterable).__name__}"
        raise Refusal(_not_iterable(what, node.iter, iterable), node.iter)
    else:
        expand(walker, node, iterable)


def _is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")


def _not_iterable(what: str, node: ast.expr, value: Any) -> say.NotIterable:
    """TL111 with the loop that someone who iterates over `value` means."""
    if isinstance(value, Region):
        return say.NotIterable(what=what, remedy=f"loop over its indices: `for i in range({value.shape[0]})`")
    if isinstance(value, Buffer) and isinstance(node, ast.Name):
        return iterates_over_buffer(what, node, len(value.shape))
    if isinstance(value, Value) and is_integer(value.dtype) or type(value) is int:
        return iterates_over_number(what, node)
    return say.NotIterable(what=what, remedy="iterate over `range(n)`, or over a list")


# -- compile-time loops ------------------------------------------------------------------------------------------------
def expand(walker: Any, node: ast.For, iterable: Any) -> None:
    """Consume the iterable while building, and walk the body once per item; TL142 where that makes very much."""
    record = walker.record.enter(Node("for", node.lineno, ast.unparse(node.target)))
    _expand_items(walker, node, record, iterable)
    message = walker.record.large(record, walker.limits.statements)
    if message is not None:
        walker.report(Refusal(message), node)


def _expand_items(walker: Any, node: ast.For, record: Node, iterable: Any) -> None:
    loop = Loop("compile-time", node, walker.scope)
    walker.loops.append(loop)
    builder, frame, names = walker.builder, walker.frame, targets(node.target)
    outside, limit, failures = frame.turns, walker.limits.items, walker.record.failures
    walker.locate(node.iter, check_used_up, walker, iterable)
    items = walker.locate(node.iter, iter, walker.replayed(iterable))
    del iterable
    number = 0
    try:
        while True:
            item = _next_item(walker, node, items)
            if item is _END:
                return
            if number == limit:
                raise Refusal(say.EndlessIterable(limit=f"{limit:,}"), node)
            turn = walker.record.turn(record, item, named(names, item))
            frame.turns = (*outside, number)
            builder.at(node, frame.text)
            try:
                box, item = [item], None
                bind_target(walker, node.target, box, node)
                walker.suite(node.body)
            except Leave as leaving:
                if isinstance(leaving.statement, ast.Break):
                    return
            finally:
                walker.record.end(turn)
            if (
                loop.perhaps_left
                or walker.scope.terminated
                or walker.record.failures - failures >= walker.limits.failures
            ):
                return
            number += 1
    finally:
        frame.turns = outside
        walker.loops.pop()


_END = object()


def _next_item(walker: Any, node: ast.For, items: Any) -> Any:
    try:
        return next(items, _END)
    except (Poisoned, ReturnValue, Leave):
        raise
    except Refusal as refusal:  # a lazy generator: what it needs is gone, or not known yet
        text = walker.frame.text
        for frame in frames(refusal.__traceback__):
            if frame.tb_frame.f_code.co_name == "<genexpr>":
                line = frame.tb_lineno
                refusal.notes += (Note(f"the generator is on line {line}", line_span(text, line)),)
                break
        if refusal.code in ("TL130", "TL131"):
            refusal.message = say.GeneratorOutOfScope(problem=refusal.message.fill(refusal.message.text))
        refusal.place = node.iter
        raise
    except BaseException as error:
        pass_on_interrupt(error)
        message = say.ExceptionWhileBuilding(exception=exception_text(error), remedy="the iterable raised it")
        raise Refusal(message, node.iter) from None


# -- while -------------------------------------------------------------------------------------------------------------
def while_statement(walker: Any, node: ast.While) -> None:
    """A device loop whose condition is evaluated on every turn; TL118 where nothing can end it."""
    if node.orelse:
        walker.report(Refusal(say.LoopElse(), node.orelse[0]), node)
    _while_loop(walker, node)
    if node.orelse:
        raise Poisoned


def _while_loop(walker: Any, node: ast.While) -> None:
    builder, span = walker.builder, walker.builder.span
    if walker.scope.host:
        condition = truth_at(walker, node.test)
        if not isinstance(condition, Value) and not condition:
            return
        builder.allow("a loop")
    names, failures = bound_names(node), walker.record.failures
    walker.declare_before(node, names, bound_names(node.test))
    scope = walker.open("while", node, names)
    loop = Loop("while", node, scope)
    try:
        condition = truth_at(walker, node.test)
        bound = {key: frame.binding(name) for key in scope.saved for frame, name in (key,)}
        is_constant = not isinstance(condition, Value)
        skipped = is_constant and not condition
        prelude = list(builder.frames[-1])  # what the condition emitted runs on every turn
        test = constant(True, "bool") if is_constant else condition.use()
        condition = None
        if prelude:
            builder.emit(tir.IfThenElse(tir.Not(test), tir.Break(span), None, span))
            test = constant(True, "bool")
        walker.loops.append(loop)
        try:
            if not skipped:
                enter_branch(walker, bound_where(node.test, True))
                walker.suite(node.body)
        finally:
            walker.loops.pop()
    finally:
        body = walker.close()
    if not skipped:
        builder.append_at(tir.While(test, body, span), span)
    elif prelude:  # the condition runs once
        builder.append_at(body, span)
    before = dict(walker.requested)
    merge_loop(walker, scope, set(), bound)
    names_asked = sorted({part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)})
    # What was refused may be what ends the loop.
    refused = loop.perhaps_left or (bool(names_asked) and walker.record.failures > failures)
    if is_constant and not skipped and not loop.left and not refused and walker.requested == before:
        if names_asked:
            changed = " or ".join(f"`{name}`" for name in names_asked)
            raise Refusal(say.EndlessWhile(f"change {changed} in the loop, or leave it with `break`"), node)
        raise Refusal(say.EndlessWhile(), node)


# -- break and continue ------------------------------------------------------------------------------------------------
def leave(walker: Any, node: ast.Break | ast.Continue) -> None:
    """`break` and `continue` of the nearest loop of the text; TL110 and TL119 where that loop cannot have it."""
    word = "break" if isinstance(node, ast.Break) else "continue"
    loop = walker.loops[-1] if walker.loops else None
    if loop is None:
        message = say.SyntaxMistake(problem=f"`{word}` outside a loop", remedy="remove it, or put it into a loop")
        raise Refusal(message, node)
    if loop.kind == "unknown":
        walker.scope.terminated = True
        return
    if loop.kind == "compile-time":
        if walker.scope is not loop.scope:
            raise leaves_expanded_loop(word, node, loop.node, walker.frame.text)
        raise Leave(node)
    refused = leaves_loop_of_kind(word, node, loop.kind)
    if refused is not None:
        raise refused
    loop.left = loop.left or word == "break"
    scope = walker.scope
    while True:
        for key in scope.saved:
            binding = key[0].binding(key[1])
            if binding is None or isinstance(binding, Gone):
                (loop.scope.unbound_after if word == "break" else loop.scope.unbound_next).add(key)
            bound = of_parallel(binding)
            if bound is not None:
                loop.scope.escaped.setdefault(key, bound)
        if scope is loop.scope:
            break
        scope = scope.parent
    walker.builder.effect()
    walker.builder.emit((tir.Break if word == "break" else tir.Continue)(walker.builder.span))
    walker.scope.terminated = True
