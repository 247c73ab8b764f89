"""What names hold after device control flow: kept, decided when read, loop-carried, or gone.

Nothing is promoted here for being re-bound; a name is promoted when a read needs more than one of its bindings.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tvm import tirx as tir

from ..language.promotion import Kind, as_type, join_rebound, kind_of
from ..language.values import Buffer, Region, Value, is_device
from ..source import catalogue as say
from ..source.diagnostic import Message, Poisoned, Refusal
from .accumulation import carried
from .bindings import dtype_of_kind, is_number
from .names import POISON, UNBOUND, Conflict, Gone, Hidden, Mutable, Plain
from .scopes import Scope
from .unreached_operands import operands


def merge(walker: Any, key: Any, binding: Any) -> None:
    """Bind a name after a branch or loop, so that the scope around can undo it."""
    frame, name = key
    walker.scope.saved.setdefault(key, frame.binding(name))
    frame.set(name, binding)


def merge_branches(walker: Any, branches: list[Scope], node: Any, what: str = "the `if`") -> None:
    """After a run-time `if`: a name with one binding on all live branches keeps it; the rest is decided when read.

    what: what messages call the branch.
    """
    live = [branch for branch in branches if not branch.terminated]
    if live:
        walker.scope.stored |= set.intersection(*(branch.stored for branch in live))
    for key in dict.fromkeys(k for branch in branches for k in branch.saved):
        frame, name = key
        old = frame.binding(name)
        values = [branch.final.get(key, old) for branch in live]
        if not values:
            continue
        if all(same(value, values[0]) for value in values) and not is_local(values[0], live):
            merge(walker, key, values[0])
        elif any(value is POISON for value in values):
            merge(walker, key, POISON)
        elif any(value is None or isinstance(value, Gone) for value in values):
            refused = (v for v in values if isinstance(v, Gone) and v.message.code not in UNBOUND)
            merge(walker, key, next(refused, Gone(say.MaybeUnbound(name=name, what=what))))
        else:
            meeting = frame.site(name, node)
            rebinding = next((branch.rebound[key] for branch in branches if key in branch.rebound), node)
            values.sort(key=lambda value: value is not old)  # the first binding comes first in messages
            merge(walker, key, conflict(values, declaring_site(old, meeting), rebinding, meeting))


def conflict(values: list[Any], site: Any, node: Any, meeting: Any, parallel: Any = None) -> Conflict:
    """What a name holds where these bindings meet."""
    flat = []
    for value in values:
        flat += value.bindings if isinstance(value, Conflict) else [value]
        parallel = parallel or of_parallel(value)
    return Conflict(flat, site, node, meeting, parallel)


def of_parallel(binding: Any) -> Any:
    """The node that binds a name in a `T.Parallel` loop, where it holds what the last iteration left; else None."""
    return binding.parallel if isinstance(binding, Conflict) else None


def merge_host_branches(walker: Any, condition: Value, then: Scope, other: Scope) -> None:
    """After a run-time `if` around launches: numbers are chosen where they are bound, nothing is stored."""
    for key in dict.fromkeys([*then.saved, *other.saved]):
        frame, name = key
        old = frame.binding(name)
        first, second = then.final.get(key, old), other.final.get(key, old)
        if same(first, second):
            merge(walker, key, first)
        elif first is POISON or second is POISON:
            merge(walker, key, POISON)
        elif not isinstance(first, Plain) or not isinstance(second, Plain):
            merge(walker, key, Gone(say.MaybeUnbound(name=name, what="the `if`")))
        elif is_number(first.value) and is_number(second.value):
            kinds = kind_of(first.value), kind_of(second.value)
            kind = join_rebound(*kinds)
            if kind is None:
                merge(walker, key, Gone(walker.type_conflict(name, *kinds, first.node).message))
                continue
            values = [_kept(binding.value, walker, (then, other)) for binding in (first, second)]
            chosen = _chosen(walker, condition, *values, name, kind)
            merge(walker, key, Plain(chosen, first.site, first.node, walker.scope))
        else:
            what = f"`{name}` is re-bound to an object under a runtime condition"
            message = say.CompileTimeObjectChanged(what=what, remedy="choose with a compile-time condition")
            merge(walker, key, Gone(message))


def _kept(value: Any, walker: Any, branches: tuple[Scope, Scope]) -> Any:
    """A value of a branch around launches: nothing runs there, so its variable stands before the launch and stays."""
    ended = isinstance(value, Value) and value.scope in branches
    return Value(value.expr, value.dtype, walker.scope) if ended else value


def _chosen(walker: Any, condition: Value, first: Any, second: Any, name: str, kind: Kind) -> Value:
    dtype = dtype_of_kind(kind)
    node = tir.if_then_else(condition.use(), as_type(first, dtype), as_type(second, dtype))
    return Value(walker.builder.bind(name, node, dtype), dtype, walker.scope)


def merge_loop(walker: Any, scope: Scope, targets: set[str], bound: Mapping[Any, Any] = {}) -> None:
    """After a device loop: what was read before it was re-bound is loop-carried and becomes a mutable scalar.

    bound: (frame, name) -> binding by the condition of a `while`, which runs at least once.
    """
    for key, final in scope.final.items():
        if final is POISON and key not in scope.rebound:  # a refused statement of the body would have bound it
            merge(walker, key, POISON)
    for key, node in list(scope.rebound.items()):
        frame, name = key
        if frame is not walker.frame:
            continue
        old, new = frame.binding(name), scope.final.get(key)
        plain = old.outside if isinstance(old, Hidden) else old
        meeting = frame.site(name, scope.node)
        parallel = node if scope.kind == "parallel" else of_parallel(new) or scope.escaped.get(key)
        if key in scope.exposed and _unbound_next(scope, key):
            walker.report(Refusal(_unbound_again(name), _reader(name, scope.exposed[key]) or node), node)
            merge(walker, key, POISON)
        elif isinstance(new, Gone) and new.message.code not in UNBOUND and not isinstance(old, Gone):
            said = any(found.said == new.message for found in walker.found.values())
            if key in scope.exposed and not said:  # the next turn would read it
                walker.report(Refusal(new.message, node), node)
            merge(walker, key, POISON if key in scope.exposed else new)
        elif key in scope.exposed and isinstance(plain, (Plain, Mutable) if parallel else Plain):
            try:
                if parallel:
                    raise Refusal(carried(name, walker.binders.get(parallel), scope.node), parallel)
                _carry(walker, name, plain, new, node, meeting)
            except Poisoned:
                merge(walker, key, POISON)
            except Refusal as refusal:
                walker.report(refusal, node)
                merge(walker, key, POISON)
        elif key in bound and not isinstance(old, Mutable):
            _merge_condition(walker, key, bound[key], new, node, scope)
        elif name in targets and not isinstance(old, Mutable):
            merge(walker, key, Gone(say.LoopVariableAfterLoop(name=name)))
        elif old is None or isinstance(old, Gone) or isinstance(new, Gone) or key in scope.final and new is None:
            merge(walker, key, Gone(say.MaybeUnbound(name=name, what="the loop")))
        elif old is not POISON and (parallel or not isinstance(old, Mutable)):
            # Without a binding at its end, the body bound the name before a `break` or `continue`.
            bindings = [old] if new is None else [old, new]
            merge(walker, key, conflict(bindings, declaring_site(old, meeting), node, meeting, parallel))
        if key in scope.unbound_after and frame.binding(name) is not POISON:
            merge(walker, key, Gone(say.MaybeUnbound(name=name, what="the loop")))


def _unbound_next(scope: Scope, key: Any) -> bool:
    """Whether a name may be without a value when the next turn begins."""
    if key in scope.unbound_next:
        return True
    final = scope.final.get(key)
    gone = final is None or (isinstance(final, Gone) and final.message.code in UNBOUND)
    return gone and not scope.terminated and key in scope.final


def _unbound_again(name: str) -> Message:
    return say.MaybeUnbound(
        name=name, what="this line in each turn", how="may have no value when the loop comes here again"
    )


def _reader(name: str, statement: Any) -> ast.AST | None:
    """Where a statement reads a name."""
    if statement is None:
        return None
    parts = [operand for operand, _ in operands(statement)] or [statement]
    found = (part for operand in parts for part in ast.walk(operand) if isinstance(part, ast.Name) and part.id == name)
    return next(found, statement)


def _merge_condition(walker: Any, key: Any, first: Any, last: Any, node: Any, scope: Scope) -> None:
    """After a `while` whose condition bound the name: it holds what the condition or the body gave it last."""
    bindings = [first] if last is None else [first, last]
    if any(binding is None for binding in (first, last)):
        merge(walker, key, Gone(say.MaybeUnbound(name=key[1], what="the loop")))
    elif POISON in bindings:
        merge(walker, key, POISON)
    elif same(first, last) and not is_local(first, [scope]):
        merge(walker, key, first)
    else:
        meeting = key[0].site(key[1], scope.node)
        merge(walker, key, conflict(bindings, meeting, node, meeting))


def _carry(walker: Any, name: str, plain: Plain, new: Any, node: Any, meeting: Any) -> None:
    kind: Kind = walker.kind_of_binding(name, plain, node)
    for binding in new.bindings if isinstance(new, Conflict) else [new]:
        if isinstance(binding, (Plain, Mutable, Hidden)):
            second = walker.kind_of_binding(name, binding, node)
            joined = join_rebound(kind, second)
            if joined is None:
                raise walker.type_conflict(name, kind, second, node)
            kind = joined
    walker.request_one_of((declaring_site(plain, meeting), meeting), kind, name)


def declaring_site(binding: Any, meeting: Any) -> Any:
    """Where a scalar for a name begins: at its binding, or where the bindings meet if that is outside of the launch."""
    if isinstance(binding, Hidden):
        if any(scope.kind == "parallel" for scope in binding.scopes):
            return meeting  # an iteration has scalars of its own
        binding = binding.outside
    if isinstance(binding, Plain):
        return meeting if binding.scope.host else binding.site
    return binding.site if isinstance(binding, (Mutable, Conflict)) else meeting


def close_launch(walker: Any, scope: Scope) -> None:
    """After a launch: compile-time objects stay bound, as in Python; what only its threads know is gone."""
    for key in scope.saved:
        _frame, name = key
        new = scope.final.get(key)
        if (
            (isinstance(new, Plain) and not is_device(new.value))
            or (isinstance(new, Plain) and isinstance(new.value, (Value, Buffer, Region)) and _outlives(new.value))
            or new is POISON
            or new is None
        ):
            merge(walker, key, new)
        else:
            how = "is known only to the threads of the launch that bound it"
            merge(walker, key, Gone(say.MaybeUnbound(name=name, what="the launches", how=how)))


def _outlives(value: Any) -> bool:
    if isinstance(value, Region):
        value = value.buffer
    scope = value.home if isinstance(value, Buffer) else value.scope
    return scope is None or scope.open


def same(a: Any, b: Any) -> bool:
    """Whether two bindings hold one value for certain."""
    if a is b:
        return True
    if isinstance(a, Hidden):
        a = a.outside
    if isinstance(b, Hidden):
        b = b.outside
    if a is b:
        return True
    return isinstance(a, Plain) and isinstance(b, Plain) and _same_value(a.value, b.value)


def _same_value(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if type(x) in (int, str, bool, bytes):
        return x == y
    if type(x) is float:
        return x == y and str(x) == str(y)  # 0.0 and -0.0 differ
    return type(x) is tuple and len(x) == len(y) and all(map(_same_value, x, y))


def is_local(binding: Any, branches: list[Scope]) -> bool:
    """Whether a binding ends with one of these branches."""
    if isinstance(binding, Mutable):
        return binding.scope in branches
    return isinstance(binding, Plain) and isinstance(binding.value, Value) and binding.value.scope in branches
