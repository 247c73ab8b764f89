"""The walk over one kernel: evaluation of expressions, scopes, reports, inlining of macros.

Statements go through `syntax.statement`; binding and promotion of names are in `bindings`, merging after control flow
in `merge`.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..language.promotion import Kind
from ..language.values import Buffer, Region, Value
from ..source import catalogue as say
from ..source.calls import CallSignature
from ..source.diagnostic import Diagnostic, Message, Note, Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.text import Text
from .bindings import Bindings
from .contents import check_change, check_unseen, objects_with_code
from .control import Leave, ReturnValue
from .definitions import Definition
from .emit import Builder
from .expressions import compile_expression, too_deep
from .intrinsics import Intrinsics
from .limits import Limits
from .locate import header_span, internal_error, is_internal, line_span, place_of, raised, with_operands
from .macros import Macro, parameters, reference
from .names import (
    INTRINSICS,
    MISSING,
    POISON,
    Frame,
    Gone,
    Hidden,
    Mutable,
    Outer,
    Plain,
    Site,
    only_augmented,
    unbound_at_first,
)
from .python_state import Watch
from .restarts import Shared
from .scopes import Scope, ScopeKind
from .static.surface import call_mistake
from .syntax import walk_statement
from .unreached import UNCERTAIN, header, of_device
from .unreached_operands import Search, walruses
from .unroll import Node, Record, named

LOOPS = ("for", "while", "parallel")


class Walker(Bindings):
    """One pass over one kernel.

    promoted: binding site -> kind of the mutable scalar there.  requested: what this pass found missing.
    """

    def __init__(
        self, definition: Definition, outer: Outer, promoted: dict[Site, Kind], shared: Shared, limits: Limits
    ):
        self.definition, self.outer, self.shared, self.limits = definition, outer, shared, limits
        self.promoted, self.requested = promoted, {}
        self.found: dict[Any, Diagnostic] = {}
        self.scope = Scope("kernel", definition.node, None)
        self.builder = Builder(definition.text, self.scope, self.warn)
        self.builder.inline = self.inline
        self.record = Record(definition.node.lineno, definition.node.name, self.builder, limits)
        self.intrinsics = Intrinsics(self)
        self.loops: list[Any] = []
        self.calls: list[tuple[Text, ast.AST]] = []
        self.taken: dict[int, int] = {}  # items taken in this pass from an outside iterator
        self.statement: ast.AST = definition.node
        self.entered: set[int] = set()  # blocks of statements, by id, whose walk has begun
        self.too_deep = False  # was it said that control flow is nested too deep?
        self.unsure = 0  # above 0 in the body of a refused statement
        self.binders: dict[ast.AST, ast.AST] = {}  # node that binds a name -> its statement
        self.first_binders: dict[ast.AST, ast.AST] = {}  # statement -> node that TL133 was said at
        self.doubtful = {}
        self.half_used: dict[int, Any] = {}  # iterators, by id, that gave some of their items under a condition
        self.lost_attributes: list[tuple[Any, str]] = []  # that a refused statement would have stored or deleted
        self.said_only: frozenset[str] = frozenset()  # where not empty, the codes that may be said
        self.host_conditions: list[Any] = []
        self.arguments: dict[str, Any] = {}  # what the parameters of the kernel are bound to
        self.may_return = False  # eager kernels return tensors
        self.returned: Any = None
        self.complete = True  # no statement was dropped
        self.frame = self.new_frame(definition, (definition.node.name,), outer)

    @property
    def line(self) -> int:
        return self.statement.lineno  # type: ignore[attr-defined]

    # -- evaluation ------------------------------------------------------------------------------------------------
    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression; a refusal leaves with the exact range of what failed."""
        codes = self.frame.codes
        code = codes.get(node)
        if code is None:
            code = codes[node] = compile_expression(node)
        if self.lost_attributes and any(map(self.is_lost, ast.walk(node))):
            raise Poisoned
        try:
            value = eval(code, self.frame.names)
            if self.builder.lost:
                raise Refusal(self.builder.lost[0])
            return value
        except (Poisoned, ReturnValue, Leave):
            raise
        except Refusal as refusal:
            self.builder.lost.clear()
            raise self.located(refusal, node, code) from None
        except RecursionError:
            raise Refusal(too_deep("a call"), node) from None
        except BaseException as error:  # whatever the user's compile-time code raises, SystemExit included
            pass_on_interrupt(error)
            if self.builder.lost:
                raise self.located(Refusal(self.builder.lost.pop()), node, code) from None
            raise self.located(self.python_exception(error), node, code) from None

    def python_exception(self, error: BaseException) -> Refusal:
        """An exception that is no refusal, as one."""
        if isinstance(getattr(error, "diagnostics", None), tuple):  # of a kernel that was refused
            remedy = "make it a `@T.macro`, or launch the kernels one after the other"
            message: Message = say.UnsupportedSyntax(what="a call of a refused kernel in a kernel", remedy=remedy)
        elif is_internal(error.__traceback__):
            message = internal_error(error)
        else:
            message = raised(error)
        return Refusal(message).with_traceback(error.__traceback__)

    def located(self, refusal: Refusal, node: ast.expr, code: Any) -> Refusal:
        """Attach the range, once: an inner evaluation (a macro's) has already done so."""
        if refusal.place is None:
            text = self.frame.text
            place = place_of(refusal.__traceback__, text, code)
            refusal.place = place.span or text.span(node)
            refusal.notes += place.notes
            refusal.message = with_operands(refusal.message, text, refusal.place)
            if place.foreign and refusal.code in ("TL130", "TL131"):
                refusal.message = say.GeneratorOutOfScope(problem=refusal.message.fill(refusal.message.text))
        return refusal

    def locate(self, node: ast.AST, function: Any, *arguments: Any) -> Any:
        """Call something that may fail outside an expression: the place is `node`."""
        try:
            return function(*arguments)
        except Refusal as refusal:
            if refusal.place is None:
                refusal.place = node
                refusal.message = with_operands(refusal.message, self.frame.text, self.frame.text.span(node))
            raise
        except (Poisoned, ReturnValue, Leave):
            raise
        except BaseException as error:
            pass_on_interrupt(error)
            raise Refusal(raised(error), node) from None

    # -- reports ---------------------------------------------------------------------------------------------------
    @property
    def errors(self) -> bool:
        return any(diagnostic.severity == "error" for diagnostic in self.found.values())

    def report(self, refusal: Refusal, node: ast.AST) -> None:
        """Add a diagnostic, with the chain of macro calls; what was said at this place is not said again."""
        if self.unsure and refusal.code in UNCERTAIN or self.is_repeated(refusal):
            return
        if self.said_only and refusal.code not in self.said_only:
            return
        text, home = self.frame.text, self.definition.text
        where = refusal.place or node
        span = header_span(text, where) if isinstance(where, ast.AST) else where
        notes = list(refusal.notes)
        if text is not home:  # a macro of another cell or module: the place to show is its call in this text
            notes.insert(0, Note(f"in `{text.name}`, line {span.line}: {text.line(span.line).strip()}"))
            span = next(caller.span(call) for caller, call in self.calls if caller is home)
        for caller, call in reversed(self.calls):
            line = call.lineno  # type: ignore[attr-defined]
            known = caller is home and any(note.span and note.span.line == line for note in notes)
            if not known:
                place = line_span(caller, line) if caller is home else None
                notes.append(Note(f"called from line {line}" + ("" if caller is home else f" of {caller.name}"), place))
        diagnostic = refusal.message.at(span, tuple(notes), refusal.fixes)
        if text is not home:
            diagnostic = replace(diagnostic, said=None)
        self.found.setdefault(diagnostic.key, diagnostic)

    def report_text(self, definition: Definition) -> None:
        """What Python refused of the text of the kernel or macro at hand."""
        for mistake in definition.mistakes:
            if mistake.said is not None and mistake.span is not None:
                self.report(Refusal(mistake.said, mistake.span), definition.node)

    def is_repeated(self, refusal: Refusal) -> bool:
        """Whether TL133 was said of another name that the same statement binds: `x, y = y, x`."""
        statement = self.binders.get(refusal.place) if isinstance(refusal.place, ast.AST) else None
        if refusal.code != "TL133" or statement is None:
            return False
        return self.first_binders.setdefault(statement, refusal.place) is not refusal.place

    def search_operands(self, node: ast.stmt, mistake: Refusal | Poisoned) -> None:
        """Report what is wrong in the parts of a refused statement that were not evaluated."""
        if not self.walks_launches:
            return
        for part in walruses(node):
            self.poison(part)
        search = Search(
            self.frame.text,
            self.evaluate_part,
            self.call_mistake,
            self.is_poisoned,
            lambda operand: of_device(self, operand),
        )
        with contextlib.suppress(RecursionError):  # of a text nested so deep one mistake is enough
            for refusal in search.mistakes(node, mistake):
                self.report(refusal, node)

    def evaluate_part(self, node: ast.expr) -> None:
        """An expression, or the place that a target stands for."""
        if not isinstance(getattr(node, "ctx", None), ast.Store):
            self.evaluate(node)
        elif isinstance(node, ast.Subscript):
            base, index = self.evaluate(node.value), self.evaluate(node.slice)
            if isinstance(base, (Buffer, Region)):
                self.locate(node, base.indices if isinstance(base, Buffer) else base.inner, index)

    def call_mistake(self, node: ast.Call) -> Message | None:
        """What the text of a call of an operation shows to be wrong with its arguments."""
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            return None
        function = self.evaluate(node.func)
        signature = getattr(function.__init__ if isinstance(function, type) else function, "call_signature", None)
        return call_mistake(signature, node) if isinstance(signature, CallSignature) else None

    def is_poisoned(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether an earlier mistake left a name, or an attribute of an object, without a value."""
        if isinstance(node, ast.Attribute):
            return self.is_lost(node)
        name = node.id
        skipped = name not in self.frame.local_names and name in self.frame.outer.skipped
        return skipped or self.frame.states.get(name) is POISON

    def lose_attributes(self, node: ast.stmt) -> None:
        """Attributes that a refused statement would have stored or deleted give no second message."""
        for part in header(node):
            for target in ast.walk(part):
                if isinstance(target, ast.Attribute) and not isinstance(target.ctx, ast.Load):
                    owner = self.named_object(target.value)
                    if owner is not MISSING:
                        self.lost_attributes.append((owner, target.attr))

    def is_lost(self, node: ast.AST) -> bool:
        """Whether an expression reads an attribute that a refused statement would have stored or deleted."""
        if not isinstance(node, ast.Attribute) or all(name != node.attr for _, name in self.lost_attributes):
            return False
        owner = self.named_object(node.value)
        return any(owner is known and name == node.attr for known, name in self.lost_attributes)

    def named_object(self, node: ast.expr) -> Any:
        """What a name, or an attribute of one, stands for; MISSING for other expressions and what has no value."""
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        binding = self.frame.binding(node.id) if isinstance(node, ast.Name) else None
        try:
            if isinstance(binding, Plain):
                value = binding.value
            else:
                own = not isinstance(node, ast.Name) or binding is not None or node.id in self.frame.local_names
                value = MISSING if own else self.frame.outer.look_up(node.id)  # type: ignore[attr-defined]
            while path and value is not MISSING:
                value = getattr(value, path.pop())
            return value
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever the user's object does
            return MISSING

    def warn(self, message: Message) -> None:
        """A warning at the statement at hand."""
        self.report(Refusal(message), self.statement)

    # -- objects from outside ----------------------------------------------------------------------------------------
    def replayed(self, iterable: Iterable[Any]) -> Iterable[Any]:
        """An iterator from outside gives its items once; a restarted build must see the same items again.

        Any other iterable is given as it is: a generator around one would close it when it is dropped.
        """
        memory = self.shared.iterators.get(id(iterable))
        return iterable if memory is None else self._replay(*memory)

    def _replay(self, source: Iterator[Any], items: list[Any]) -> Iterator[Any]:
        while True:
            at = self.taken.get(id(source), 0)
            if at == len(items):
                try:
                    items.append(next(source))
                except StopIteration:
                    return
            self.taken[id(source)] = at + 1
            yield items[at]

    def check_change(self, owner: Any) -> None:
        """A container may change under device control flow only if this scope made it (TL133)."""
        check_change(self, owner)

    # -- scopes ----------------------------------------------------------------------------------------------------
    def open(self, kind: ScopeKind, node: ast.AST, hide: Iterable[str] = ()) -> Scope:
        """Enter a scope.  hide: names that the body of a loop may re-bind; reading one first makes it loop-carried."""
        self.check_depth(kind, node)
        if kind != "host-if":
            self.builder.open()
        scope = Scope(kind, node, self.scope)
        for name in hide:
            binding = self.frame.binding(name)
            if isinstance(binding, Plain) or (kind == "parallel" and isinstance(binding, Mutable)):
                self.frame.set(name, Hidden(binding, [scope]))
            elif isinstance(binding, Hidden):
                binding.scopes.append(scope)
            else:
                if binding is None and self.is_bound_later(name, node):
                    scope.saved[self.frame, name] = None
                    self.frame.set(name, Gone(unbound_at_first(name)))
                continue
            scope.hidden.append(name)
        self.scope = self.builder.scope = scope
        if scope.device:
            scope.unseen = Watch(objects_with_code(self))
        return scope

    def is_bound_later(self, name: str, loop: ast.AST) -> bool:
        """Whether a name without a value is one that the body of a loop gives a value, and not one that is missing."""
        codes = self.frame.codes
        missing = codes.get(("augmented", loop))
        if missing is None:
            missing = codes["augmented", loop] = only_augmented(loop)
        try:
            return name not in missing and self.frame.outer.look_up(name) is MISSING
        except Poisoned:
            return False

    def check_depth(self, kind: ScopeKind, node: ast.AST) -> None:
        """TL127 for control flow that no program text could nest so deep: through `elif`s, or through macros."""
        loops, scope = 0, self.scope if kind in LOOPS else None
        while scope is not None:
            loops, scope = loops + (scope.kind in LOOPS), scope.parent
        deep = self.scope.depth >= self.limits.nesting
        if deep or loops >= self.limits.loops:
            if self.unsure and self.too_deep:
                raise Poisoned  # of what is nested in it, too, that is said already
            self.too_deep = True
            count, what = (self.limits.nesting, "control flow") if deep else (self.limits.loops, "loops")
            also = ", where every `elif` nests one deeper" if deep else ""
            remedy = "split the chain, or loop over a list of its cases" if deep else "use fewer loops"
            raise Refusal(say.UnsupportedSyntax(what=f"{what} more than {count} deep{also}", remedy=remedy), node)

    def close(self) -> Any:
        """Leave the scope; its statements.

        Names get back what they held before; `scope.final` keeps what they held inside.
        """
        scope = self.scope
        check_unseen(self, scope)
        body = self.builder.close() if scope.kind != "host-if" else None
        for key, before in scope.saved.items():
            frame, name = key
            scope.final[key] = frame.binding(name)
            frame.set(name, before)
        for name in scope.hidden:
            state = self.frame.states[name]
            assert isinstance(state, Hidden)
            state.scopes.pop()
            if not state.scopes:
                self.frame.set(name, state.outside)
        scope.open = False
        assert scope.parent is not None
        self.scope = self.builder.scope = scope.parent
        for key, node in scope.rebound.items():
            self.scope.rebound.setdefault(key, node)
        return body

    def under_device_control(self) -> bool:
        """Whether device control flow was entered since the kernel or macro at hand was."""
        scope: Scope | None = self.scope
        while scope is not None and scope is not self.frame.entry:
            if scope.device:
                return True
            scope = scope.parent
        return False

    # -- functions -------------------------------------------------------------------------------------------------
    def new_frame(self, definition: Definition, path: tuple[Any, ...], outer: Outer) -> Frame:
        caller = getattr(self, "frame", None)
        frame = Frame(
            path,
            definition.local_names,
            outer,
            self.scope,
            definition.text,
            definition.codes,
            self.read_conflict,
            self.note_read,
            self.shared.remember,
            caller,
        )
        frame.refused = definition.refused
        frame.names[INTRINSICS] = self.intrinsics
        frame.names["__builtins__"] = {}
        return frame

    def bind_parameters(self, definition: Definition, arguments: dict[str, Any]) -> None:
        """Bind arguments to parameter names; one that must be mutable is copied on entry."""
        for parameter in parameters(definition.node):
            if parameter.arg in arguments:
                self.bind(parameter.arg, [arguments.pop(parameter.arg)], parameter, own=False)

    def inline(self, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any], names: Any) -> Any:
        """Inline a macro at its call: its own frame, the caller's scope, messages with the chain of call lines."""
        if len(self.calls) >= self.limits.macro_depth:
            self.record.endless = True
            raise Refusal(say.MacroRecursionLimit(name=macro.__name__, limit=str(self.limits.macro_depth)))
        definition = macro.definition
        # What ends the recursion may be what was refused; and one that has no end was refused once.
        around = self.instance_of(definition)
        if around is not None and (self.unsure or self.record.endless or self.record.failures > around.failures):
            raise Poisoned
        arguments = macro.arguments(args, kwargs)
        if macro.references:
            given = macro.argument_names(names)
            for name in macro.references & arguments.keys():
                variable = self.name_reference(given[name]) if name in given else None
                if variable is not None and isinstance(arguments[name], Value):
                    arguments[name].reads = False  # it is meant as a place: its load is not part of the program
                arguments[name] = variable if variable is not None else reference(arguments[name], name)
        args = kwargs = ()
        caller, loops, statement, span, hint = (
            self.frame,
            self.loops,
            self.statement,
            self.builder.span,
            self.builder.hint,
        )
        caller.calls += 1
        node = self.record.enter(Node("macro", self.line, macro.__name__, definition.node.lineno))
        turn = self.record.turn(node, "", named(tuple(arguments), list(arguments.values())))
        place = (macro.__name__, self.line, statement.col_offset, caller.calls, caller.turns)  # type: ignore[attr-defined]
        self.calls.append((caller.text, statement))
        self.loops = []
        failures, result, given = self.record.failures, None, len(self.record.given)
        try:
            self.frame = self.new_frame(definition, (*caller.path, place), macro.outer)
            self.frame.failures = failures
            self.report_text(definition)
            self.bind_parameters(definition, arguments)
            self.suite(definition.node.body)
        except ReturnValue as returned:
            result = returned.value
            turn.returned = self.line if _holds_value(result) else 0
        finally:
            self.calls.pop()
            self.record.end(turn)
            self.frame, self.loops, self.statement = caller, loops, statement
            self.builder.span, self.builder.hint = span, hint
        if result is None and self.record.failures > failures and self.errors:
            raise Poisoned
        if turn.returned:
            self.record.given.append(turn)
        else:
            del self.record.given[given:]
        return result

    def instance_of(self, definition: Definition) -> Frame | None:
        """The innermost frame of a macro that is being inlined."""
        frame: Frame | None = self.frame
        while frame is not None and frame.codes is not definition.codes:
            frame = frame.caller
        return frame

    def suite(self, statements: list[ast.stmt]) -> None:
        """Walk statements until one of them ends the scope."""
        self.entered.add(id(statements))
        for node in statements:
            if self.scope.terminated:
                return
            walk_statement(self, node)


def _holds_value(result: Any) -> bool:
    """A device value, or one in what a macro returned together."""
    parts = result if type(result) in (tuple, list) else (result,)
    return any(isinstance(part, Value) for part in parts)
