"""`name := value` in an operand that runs only under a condition of the device.

Nothing may be emitted for such an operand.  Inside of it the name holds the value; behind it the name holds what it was
given where the condition holds, and what it held before where not.  Where it held nothing before, it may be read only
where the text shows that the operand was evaluated: in the branch of `if a and (b := c) > 0`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir

from ..language.promotion import as_type, join_rebound, kind_of
from ..language.values import Value, derived, is_device, number
from ..source import catalogue as say
from ..source.diagnostic import Message, Poisoned, Refusal
from .bindings import described_object, dtype_of_kind, is_number
from .merge import same
from .names import POISON, UNBOUND, Frame, Gone, Plain


@dataclass(eq=False)
class Guarded(Gone):
    """The state of a name that has a value only where a condition held.

    value: what it holds there, and some number elsewhere.  binding: the place that bound it.
    """

    value: Any = None
    binding: Any = None


class ConditionalBindings:
    """The names that the guarded operands of the expression at hand bind.

    bound: (frame, name) -> (what it held before the innermost operand, the node that binds it).
    """

    def __init__(self, walker: Any):
        self.walker = walker
        self.bound: dict[tuple[Frame, str], tuple[Any, ast.AST]] = {}

    def bind(self, name: str, value: Any, node: ast.AST) -> None:
        """`name := value` in a guarded operand."""
        walker, frame = self.walker, self.walker.frame
        self._note(name, node)
        frame.set(name, Plain(value, frame.site(name, node), node, walker.scope))

    def guarded(self, thunk: Callable[[], Any], evaluated: tuple[str, ...] = ()) -> tuple[Any, dict[str, Any]]:
        """The value of an operand that runs only under a condition, and what it binds.

        evaluated: names that the condition bound where this operand runs.
        """
        walker, frame = self.walker, self.walker.frame
        walker.builder.guard += 1
        outer, self.bound = self.bound, {}
        try:
            for name in evaluated:
                state = frame.states.get(name)
                if isinstance(state, Guarded):
                    self.bind(name, state.value, state.binding)
            value = thunk()
        finally:
            walker.builder.guard -= 1
            here, self.bound = self.bound, outer
            found = {}
            for (owner, name), (before, node) in here.items():
                if owner is frame:  # not one of a macro that the operand called, which is over
                    found[name] = (frame.binding(name), node)
                    frame.set(name, before)
        return value, found

    def join(self, condition: Value, then: dict[str, Any], other: dict[str, Any]) -> None:
        """Bind what the operands bound that run where the condition holds, and where it does not."""
        frame = self.walker.frame
        for name in dict.fromkeys([*then, *other]):
            before = frame.binding(name)
            first, node = then.pop(name, (before, None))
            second, last = other.pop(name, (before, None))
            self._join(name, condition, [first, second], node or last)

    def _join(self, name: str, condition: Value, bindings: list[Any], node: ast.AST) -> None:
        if any(binding is POISON for binding in bindings):
            self._set(name, POISON, node)
            return
        refused = next((b for b in bindings if isinstance(b, Gone) and b.message.code not in UNBOUND), None)
        if refused is not None:
            self._set(name, refused, node)
            return
        if same(*bindings):
            self._set(name, bindings[0], node)
            return
        unbound = [binding is None or isinstance(binding, Gone) for binding in bindings]
        try:
            values = [None if lost else self._value(name, binding) for lost, binding in zip(unbound, bindings)]
        except Refusal as refusal:
            self._set(name, Gone(refusal.message), node)
            return
        except Poisoned:
            self._set(name, POISON, node)
            return
        for at, binding in enumerate(bindings):
            if isinstance(binding, Guarded):
                values[at] = binding.value
        bindings.clear()
        given = [value for value in values if value is not None]
        wrong = self._mistake(name, given)
        if wrong is not None or not given:
            self._set(name, Gone(wrong or _maybe_unbound(name)), node)
            return
        kind = kind_of(given[0]) if len(given) == 1 else join_rebound(kind_of(given[0]), kind_of(given[1]))
        literals = [value for value in given if not isinstance(value, Value)]
        dtype = dtype_of_kind(kind, max(literals, key=abs, default=0))  # type: ignore[arg-type]
        x, y = (as_type(0 if value is None else value, dtype) for value in values)
        sources = [condition, *(value for value in values if isinstance(value, Value))]
        chosen = derived(tir.if_then_else(condition.use(), x, y), dtype, *sources)
        del values, given, sources, x, y  # what outlives this is bound before an effect, outside of its condition
        if any(unbound):
            if not self.walker.builder.guard:
                chosen = self._kept(name, chosen)
            self._set(name, Guarded(_maybe_unbound(name), chosen, node), node)
        elif self.walker.builder.guard:
            self.bind(name, chosen, node)
        else:
            box = [chosen]
            del chosen
            self.walker.bind(name, box, node)

    def _kept(self, name: str, value: Value) -> Value:
        builder = self.walker.builder
        if value.reads:
            builder.check_readable()
        dtype, expr = value.dtype, value.use()
        del value
        return Value(builder.bind(name, expr, dtype), dtype, self.walker.scope)

    def _value(self, name: str, binding: Any) -> Any:
        """What a binding holds, as a read of the name at hand gives it."""
        frame = self.walker.frame
        if isinstance(binding, Plain):
            held = binding.value
        else:
            at_hand = frame.binding(name)
            frame.set(name, binding)
            try:
                held = frame.names[name]
            finally:
                frame.set(name, at_hand)
        found = number(held) if not is_device(held) else held
        return held if found is None else found

    def _mistake(self, name: str, values: list[Any]) -> Message | None:
        for value in values:
            if not is_number(value):
                what = f"`{name}` is {described_object(value)} and is re-bound under a condition"
                return say.CompileTimeObjectChanged(what=what, remedy="choose with a compile-time condition")
        if len(values) == 2 and join_rebound(kind_of(values[0]), kind_of(values[1])) is None:
            return self.walker.type_conflict(name, kind_of(values[1]), kind_of(values[0]), None).message  # type: ignore[no-any-return]
        return None

    def _set(self, name: str, binding: Any, node: ast.AST) -> None:
        """The state of a name behind an operand; in the operand around it as what that one binds."""
        walker, frame = self.walker, self.walker.frame
        if walker.builder.guard:
            self._note(name, node)
        else:
            walker.note_rebound(name, node)
        frame.set(name, binding)

    def _note(self, name: str, node: ast.AST) -> None:
        """The operand at hand binds a name."""
        key = (self.walker.frame, name)
        before = self.bound[key][0] if key in self.bound else key[0].binding(name)
        self.bound[key] = (before, node)


def _maybe_unbound(name: str) -> Message:
    how = "has a value only where the operand that binds it is evaluated"
    return say.MaybeUnbound(name=name, what="this expression", how=how)


def enter_branch(walker: Any, names: tuple[str, ...]) -> None:
    """Names that the condition of a branch has bound where the branch runs hold their values in its scope."""
    frame = walker.frame
    for name in names:
        state = frame.states.get(name)
        if isinstance(state, Guarded):
            walker.scope.saved.setdefault((frame, name), state)
            frame.set(name, Plain(state.value, frame.site(name, state.binding), state.binding, walker.scope))
