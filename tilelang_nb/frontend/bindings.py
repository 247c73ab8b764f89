"""Binding names, and the decision which of them become mutable per-thread scalars.

A name is promoted on *read*, never for being re-bound: after a branch or loop a name with several bindings is a
Conflict, and reading it requests a scalar at a *site* (the place of a binding, the same in every pass).  The pass
goes on with a stand-in of the right type, so that one pass collects all requests; then the build starts again with
them.  `promoted` only grows: a request that brings nothing new falls back to the branch or loop where the bindings
met, and if that brings nothing either the statement is refused.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import Any

from tvm import tirx as tir

from ..language.operands import described, stored
from ..language.promotion import Kind, constant, in_ir, join_rebound, kind_of, kind_text, strong
from ..language.values import Buffer, Value, is_device, number
from ..source import catalogue as say
from ..source.diagnostic import Poisoned, Refusal
from ..source.wording import of_type
from .accumulation import carried
from .names import POISON, Conflict, Frame, Gone, Hidden, Mutable, Plain, Site, bound_names, changed_names
from .scopes import Scope

CONTAINERS = (list, dict, set, deque, bytearray)


def is_number(value: Any) -> bool:
    """A device value or a Python number."""
    return isinstance(value, (Value, bool, int, float))


def is_bound(binding: Any) -> bool:
    """Does the binding have something to read?"""
    return binding is not None and binding is not POISON and not isinstance(binding, Gone)


def dtype_of_kind(kind: Kind, value: Any = 0) -> str:
    """The type of a variable that holds values of a kind; a weak kind takes the type of its literal."""
    return strong(kind[1], value) if isinstance(kind, tuple) else kind


def described_object(value: Any) -> str:
    """What a message calls a compile-time object that cannot become a scalar."""
    return described(value) if is_device(value) or value is None else of_type(value)


class Bindings:
    """Part of the walker."""

    frame: Frame
    scope: Scope
    builder: Any
    intrinsics: Any
    promoted: dict[Site, Kind]
    requested: dict[Site, Kind]
    shared: Any
    errors: bool
    statement: ast.AST
    binders: dict[ast.AST, ast.AST]
    doubtful: dict[tuple[Frame, str], Plain]  # containers that a refused statement would have changed

    # -- what only eager kernels do ---------------------------------------------------------------------------------
    walks_launches = True  # the bodies of launches are walked

    def declare_parameter(self, node: ast.AnnAssign) -> None:
        """`A: T.Tensor(...)` in the body: only people read it."""

    def begin_launch(self) -> bool:
        """A launch is met; whether its body is to be walked."""
        return True

    # -- binding ---------------------------------------------------------------------------------------------------
    def bind(self, name: str, box: list[Any], node: ast.AST, own: bool = True) -> None:
        """`name = box[0]` here: a store when the name is a mutable scalar of an outer scope, else a new binding.

        The box is emptied: a value that a statement consumes must have no other reference, or it would be kept
        (emit.py). own: False for parameters, whose values keep their expressions.
        """
        frame, scope = self.frame, self.scope
        state = frame.states.get(name)
        site = frame.site(name, node)
        explicit = isinstance(box[0], Buffer) and box[0].is_variable
        if not isinstance(state, Mutable) and not explicit and name not in frame.names:
            state = self.underlying(name, state, node)
        if isinstance(state, Mutable) and not explicit and (state.scope is not scope or state.explicit):
            self.store_scalar(state, name, box, node)
            return
        self.note_rebound(name, node)
        if site in self.promoted and not is_device(box[0]):
            found = number(box[0])
            box[0] = box[0] if found is None else found
        if explicit:
            frame.set(name, Mutable(box[0], scope, site, True))
        elif site in self.promoted and is_number(box[0]) and not scope.host:
            if not (isinstance(state, Mutable) and state.site == site and state.scope is scope):
                state = self.declare(name, site)
            self.store_scalar(state, name, box, node)
        else:
            value = box.pop()
            if isinstance(value, Value) and own and not isinstance(value.expr, tir.Var):
                if value.reads:
                    self.builder.check_readable()
                expr, dtype, reads = value.use(), value.dtype, value.reads
                value = None  # used up: it needs no variable of its own
                value = Value(self.builder.bind(name, expr, dtype), dtype, scope)
                if not reads:
                    self.builder.meanings[value.expr] = expr
            frame.set(name, Plain(value, site, node, scope))

    def underlying(self, name: str, state: Any, node: ast.AST) -> Any:
        """The mutable scalar of an outer scope that a name without a value here stands for; else its state.

        The name lost the scalar in this scope (`del`, a refusal, a `T.Parallel` loop); a new binding goes on with it.
        """
        saved = None if isinstance(state, Hidden) else self.outer_scalar(name)
        if saved is None:
            return state
        self.note_rebound(name, node)  # after this scope the name may again be without a value
        self.frame.set(name, saved)
        return saved

    def outer_scalar(self, name: str) -> Mutable | None:
        """The mutable scalar of an outer scope that a name held before it lost its value in this one."""
        key, scope = (self.frame, name), self.scope
        while scope is not None and scope.kind != "parallel":
            saved = scope.saved.get(key)
            if isinstance(saved, Mutable) and saved.scope.open and (saved.scope is not self.scope or saved.explicit):
                return saved
            scope = scope.parent  # type: ignore[assignment]
        return None

    def note_rebound(self, name: str, node: ast.AST) -> None:
        """The name is about to change in this scope."""
        key = (self.frame, name)
        if key not in self.scope.saved:
            self.scope.saved[key] = self.frame.binding(name)
        self.scope.rebound[key] = node
        self.binders[node] = self.statement

    def declare(self, name: str, site: Site) -> Mutable:
        dtype = dtype_of_kind(self.promoted[site])
        buffer = self.builder.allocate(name, (1,), dtype, "local.var")
        buffer.is_variable = True
        state = Mutable(buffer, self.scope, site)
        self.frame.set(name, state)
        return state

    def declare_before(self, node: ast.AST, names: tuple[str, ...], first: tuple[str, ...] = ()) -> None:
        """Scalars whose site is the loop `node`: they begin with what the name holds.

        first: names that the loop may bind before its body can read them, which need nothing to begin with.
        """
        for name in names:
            site = self.frame.site(name, node)
            if site not in self.promoted or self.scope.host:
                continue
            binding = self.frame.binding(name)
            if isinstance(binding, Mutable) or not (is_bound(binding) or name in first):
                continue
            box = [self.frame.names[name]] if is_bound(binding) else []
            fits = bool(box) and is_number(box[0])
            if fits and name in first:
                fits = join_rebound(self.promoted[site], kind_of(number(box[0]))) is not None
            if fits or name in first:
                self.note_rebound(name, node)
                state = self.declare(name, site)
                if fits:
                    self.store_scalar(state, name, box, node)

    def joined_after(self, node: ast.AST, names: tuple[str, ...]) -> dict[str, Mutable]:
        """Scalars whose site is the branch `node`.

        In the branches the name keeps the binding it has, or none; each branch stores what the name holds at its end.
        """
        scalars = {}
        for name in names:
            site = self.frame.site(name, node)
            before = self.frame.binding(name)
            lost = before is None or isinstance(before, Gone)
            if isinstance(before, Mutable) or (lost and self.outer_scalar(name) is not None):
                continue  # the branches store into it
            if site in self.promoted and not self.scope.host:
                scalars[name] = self.declare(name, site)
                self.frame.set(name, before)
        return scalars

    def store_joined(self, scalars: dict[str, Mutable], node: ast.AST) -> None:
        """The end of a branch: store what the names hold; one that is unbound here is no scalar after the branch."""
        for name in list(scalars):
            if not is_bound(self.frame.binding(name)):
                del scalars[name]
                continue
            box = [self.frame.names[name]]
            if is_number(box[0]):
                self.store_scalar(scalars[name], name, box, node)
            else:
                del scalars[name]

    def store_scalar(self, state: Mutable, name: str, box: list[Any], node: ast.AST) -> None:
        value = box.pop()
        found = number(value) if not is_device(value) else value
        if not is_number(found):
            what = f"`{name}` is a number known only when the kernel runs; here it becomes {described_object(value)}"
            raise Refusal(say.CompileTimeObjectChanged(what=what, remedy="use another name"), node)
        value = found
        found = None
        scope: Any = self.scope
        while scope is not None and scope is not state.scope:
            if scope.kind == "parallel" and state.buffer.memory == "local.var":
                raise Refusal(carried(name, self.statement, scope.node), node)
            scope = scope.parent
        buffer = state.buffer
        if state.explicit:
            target = name if buffer.name == name else buffer.name
            expr = stored(value, target, buffer.dtype).use()
        else:
            kind = self.promoted[state.site]
            joined = join_rebound(kind, kind_of(value))
            if joined is None:
                raise self.type_conflict(name, kind, kind_of(value), node)
            self.request(state.site, joined)
            if isinstance(value, Value):
                expr = value.astype(buffer.dtype).use()
            else:
                expr = constant(value, buffer.dtype)
        value = None
        places = [buffer.index_expr(i) for i in buffer.indices((0,) * len(buffer.shape))]
        self.builder.store_expr(buffer, places, expr)
        self.scope.stored.add((self.frame, name))

    # -- conflicts -------------------------------------------------------------------------------------------------
    def type_conflict(self, name: str, first: Kind, second: Kind, node: ast.AST) -> Refusal:
        target = first if isinstance(first, str) else dtype_of_kind(second)
        message = say.TypeConflict(name=name, first=kind_text(first), second=kind_text(second), target=target)
        return Refusal(message, node)

    def kind_of_binding(self, name: str, binding: Any, node: ast.AST) -> Kind:
        """The kind a scalar needs for a binding; TL133 for an object, TL130 for a variable that is gone."""
        if isinstance(binding, Hidden):
            binding = binding.outside
        if isinstance(binding, Mutable):
            if binding.explicit and not binding.scope.open:
                raise Refusal(say.MaybeUnbound(name=name, what="the `if` or loop"))
            return str(binding.buffer.dtype) if binding.explicit else self.promoted[binding.site]
        value = binding.value
        found = number(value) if not is_device(value) else value
        if not is_number(found):
            what = f"`{name}` is {described_object(value)} and is re-bound under runtime control flow"
            remedy = "choose with a compile-time condition, or use a buffer"
            raise Refusal(say.CompileTimeObjectChanged(what=what, remedy=remedy), node)
        return kind_of(found)

    def read_conflict(self, frame: Frame, name: str, conflict: Conflict) -> Value:
        """A name with different bindings is read: request a mutable scalar and go on with a stand-in of its type."""
        if conflict.parallel is not None:
            raise Refusal(carried(name, self.binders.get(conflict.parallel), None), conflict.parallel)
        kind: Kind | None = None
        for binding in conflict.bindings:
            if binding is POISON:
                raise Poisoned
            if isinstance(binding, Gone):
                raise Refusal(binding.message)
            new = self.kind_of_binding(name, binding, conflict.node)
            joined = new if kind is None else join_rebound(kind, new)
            if joined is None:
                node = binding.node if isinstance(binding, Plain) else conflict.node
                raise self.type_conflict(name, kind, new, node)  # type: ignore[arg-type]
            kind = joined
        assert kind is not None
        self.request_one_of((conflict.site, conflict.meeting), kind, name)
        dtype = dtype_of_kind(kind)
        return Value(tir.Var(name, in_ir(dtype)), dtype, None)

    def note_read(self, frame: Frame, name: str, state: Mutable | Hidden) -> None:
        """A mutable scalar, or a name that a loop may re-bind, is read."""
        if isinstance(state, Mutable):
            self.expose(frame, name, state.scope)
            return
        for scope in state.scopes:
            scope.exposed.setdefault((frame, name), self.statement if frame is self.frame else None)

    def expose(self, frame: Frame, name: str, outside: Scope) -> None:
        """What a name holds may come from an earlier turn of the loops inside the scope `outside`, but for loops whose
        turn has stored it by now.
        """
        key, scope = (frame, name), self.scope
        while scope is not outside and scope.parent is not None and key not in scope.stored:
            scope.exposed.setdefault(key, self.statement if frame is self.frame else None)
            scope = scope.parent

    def request(self, site: Site, kind: Kind) -> bool:
        """Ask for a scalar of this kind at a site; whether that brings anything new to the next pass."""
        known = self.requested.get(site, self.promoted.get(site))
        joined = kind if known is None else join_rebound(known, kind) or known
        if joined != self.promoted.get(site):
            self.requested[site] = joined
            return True
        return site in self.requested

    def request_one_of(self, sites: tuple[Site, ...], kind: Kind, name: str) -> None:
        """Request at the first site that brings something new.

        Where none does, an earlier mistake has taken the scalar away; without one no scalar can serve: refuse.
        """
        if any(self.request(site, kind) for site in sites):
            return
        if self.errors:
            raise Poisoned
        report = f"no scalar serves {name}: {[str(site[-3:]) for site in sites]}"
        raise Refusal(say.InternalError(problem=f"`{name}` cannot be kept over this control flow", report=report))

    def bind_walrus(self, name: str, value: Any, place: tuple[int, int, int, int]) -> Any:
        """`name := value`; where it runs only under a condition, what the name holds is decided behind the operand."""
        if self.builder.guard:
            return self.bind_under_condition(name, value, place)
        box = [value]
        del value
        node = ast.Name(name, ast.Store())
        node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place
        self.bind(name, box, node)
        return self.frame.names[name]

    def bind_under_condition(self, name: str, value: Any, place: tuple[int, int, int, int]) -> Any:
        node = ast.Name(name, ast.Store())
        node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place
        self.intrinsics.conditional.bind(name, value, node)
        return value

    def name_reference(self, name: str) -> Buffer | None:
        """A plain name given for a `T.Ref` parameter: from here on a mutable scalar.  None where it holds no number."""
        frame = self.frame
        state = frame.states.get(name)
        if isinstance(state, Mutable):
            return state.buffer
        value = frame.names[name]
        binding = frame.binding(name)
        if not is_number(value) or not isinstance(binding, (Plain, Hidden)):
            return None
        if isinstance(binding, Plain):  # no syntax told the loops around that the name changes in them
            self.expose(frame, name, binding.scope)
        del binding
        place = ast.copy_location(ast.Name(name, ast.Store()), self.statement)
        site = frame.site(name, place)
        kind = str(value.dtype) if isinstance(value, Value) else dtype_of_kind(kind_of(value), value)
        self.promoted.setdefault(site, kind)
        box = [value]
        del value
        self.note_rebound(name, place)
        state = self.declare(name, site)
        self.store_scalar(state, name, box, place)
        return state.buffer

    def poison(self, node: ast.AST) -> None:
        """Names that a refused statement would have bound give no second message, nor what containers lack by it."""
        held = self.frame.names
        changed = {n: self.doubtful.get((self.frame, n)) or self.frame.binding(n) for n in changed_names(node)}
        bound = bound_names(node)
        for name in (*bound, *(name for name in changed if issubclass(type(dict.get(held, name)), CONTAINERS))):
            key = (self.frame, name)
            self.doubtful.pop(key, None)
            binding = changed.get(name)
            if isinstance(binding, Plain) and issubclass(type(binding.value), CONTAINERS):
                self.doubtful[key] = binding
            if key not in self.scope.saved:
                self.scope.saved[key] = self.frame.binding(name)
            self.frame.set(name, POISON)
