"""Eager kernels: functions whose body is the kernel, built for the arguments of a call.

The parameters are annotated in the body, so building has two parts.  An *outline* walks the body without its launches,
with every `T.const` size as a variable: it tells which parameters are tensors, and of what shape.  The caller gets the
sizes from the arguments, and *builds* the kernel with their values.  Arguments that are no run-time parameters are
compile-time values in both.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tvm import tirx as tir

from ..language import entry
from ..language.dtypes import Dtype
from ..language.parameter_pointers import ParameterPointer, pointer_kind
from ..language.promotion import Kind
from ..language.protocols import refuse
from ..language.tensors import EmptyTensor, Tensor, named_sizes
from ..language.values import Buffer, builder, is_building, is_device
from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Message, Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.text import Text
from .assign import annotation
from .build import final_pass, finish
from .control import ReturnValue
from .definitions import Definition, definition_of, session_of
from .eager_syntax import annotated_parameters, constant_names
from .large_integers import compiled, host_names
from .limits import Limits
from .locate import MARK, header_span, internal_error
from .macros import parameters
from .names import Gone, Outer, Plain, Site
from .parameters import argument_of, parameter, sizes_of_launch
from .program import Parameter, TileProgram
from .refusals import empty_like, is_array, missing_annotation
from .restarts import Shared
from .session import outer_of
from .surroundings import surroundings
from .walk import Walker

RUN_TIME = object()  # stands for an argument that is known when the kernel runs


@dataclass(frozen=True)
class EagerDefinition:
    """An eager kernel before any argument is known.

    kinds: annotations of the `def` line that make run-time parameters.  run_time: names that these or annotations in
    the body make run-time parameters.  constants: names given to `T.const`.
    """

    function: Callable[..., Any]
    definition: Definition
    session: Any
    kinds: Mapping[str, Any]
    run_time: frozenset[str]
    constants: frozenset[str]
    of_module: Limits

    @property
    def text(self) -> Text:
        return self.definition.text

    @property
    def limits(self) -> Limits:
        return self.session.limits if self.session is not None else self.of_module

    @property
    def outer(self) -> Outer:
        """Names outside, as they are now."""
        return outer_of(self.function, self.session)

    @property
    def surroundings(self) -> tuple[Any, ...]:
        """What a build reads from outside now, to be compared."""
        return surroundings(self.definition, self.outer)


@dataclass(frozen=True)
class Outline:
    """parameters: those annotated before the first launch, in order.  sizes: name of `T.const` -> its variable.

    mistakes: why sizes are not known: annotations that are refused, and for each unknown size where it stands.
    """

    parameters: tuple[Parameter, ...]
    sizes: Mapping[str, Any]
    refused: tuple[Diagnostic, ...]
    places: Mapping[str, Any]

    def undetermined(self, names: list[str]) -> tuple[Diagnostic, ...]:
        """What is wrong where no argument tells these sizes: the refused annotations, else TL004 for each."""
        return self.refused or tuple(
            say.BadArgument(
                problem=f"no argument tells the size `{name}`",
                remedy=f"use `{name}` alone as a dimension of an annotated parameter",
            ).at(self.places[name])
            for name in names
        )


@dataclass(frozen=True)
class EagerBuilt:
    """program: None where it is refused.  collection: tuple or list, where it returns one."""

    program: TileProgram | None
    diagnostics: tuple[Diagnostic, ...]
    collection: type | None = None


@dataclass
class Call:
    """What a kernel is built for.

    arguments: by name, RUN_TIME for run-time parameters.  sizes: of `T.const`, as far as they are known.
    arrays: rank and dtype of the arrays that are passed, for messages only.
    """

    arguments: Mapping[str, Any]
    sizes: dict[str, int] = field(default_factory=dict)
    shared: Shared = field(default_factory=Shared)
    arrays: Mapping[str, tuple[int, str]] = field(default_factory=dict)


def describe(function: Callable[..., Any], limits: Limits) -> EagerDefinition:
    """The eager kernel that a function is; TL001 where its text cannot be had.

    limits: of one that no cell defines.
    """
    definition, session = definition_of(function), session_of(function)
    kinds = {}
    for name, kind in getattr(function, "__annotations__", {}).items():
        kind = _evaluated(kind, function)
        annotates = isinstance(kind, (Tensor, Dtype)) or (isinstance(kind, type) and issubclass(kind, Tensor))
        if annotates or pointer_kind(kind) is not None:
            kinds[name] = kind
    in_body = annotated_parameters(definition.node)
    return EagerDefinition(
        function, definition, session, kinds, in_body | kinds.keys(), constant_names(definition.node), limits
    )


def _evaluated(kind: Any, function: Any) -> Any:
    """A postponed annotation; one that cannot be evaluated makes no run-time parameter."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # not bound yet
            names[name] = cell.cell_contents
    frame = sys._getframe(1)
    while frame is not None and function.__code__ not in frame.f_code.co_consts:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None:  # it may name variables of the defining function that no code uses
        names = {**names, **frame.f_locals}
    names["__builtins__"] = {**function.__builtins__, **host_names(Limits().bits)}
    while isinstance(kind, str) and not isinstance(kind, Dtype):
        try:
            kind = eval(compiled(kind, MARK), names)
        except BaseException as error:
            pass_on_interrupt(error)
            return None
    return kind


def report(session: Any, diagnostics: tuple[Diagnostic, ...]) -> bool:
    """Add diagnostics to those of the cell of the kernel; False where it is no cell, or its run is over."""
    if session is None or not session._running:
        return False
    for diagnostic in diagnostics:
        session.report(diagnostic)
    return True


def outline(eager: EagerDefinition, call: Call) -> Outline:
    """The parameters of the kernel for these arguments; never raises for a mistake."""
    try:
        walker, _ = _walk(eager, call, launches=False)
    except Exception:  # the build says what is wrong
        return Outline((), {}, (), {})
    finally:
        call.shared.restore()
    ordered = [p.arg for p in parameters(eager.definition.node)]
    tensors = [p for p in walker.declared.values() if p.kind != "pointer"]  # which tells no size
    declared = tuple(sorted(tensors, key=lambda p: ordered.index(p.name)))
    refused = tuple(
        found
        for found in walker.found.values()
        if found.span is not None and any(n.lineno <= found.span.line <= n.end_lineno for n in walker.unread)
    )
    sizes = {name: value.expr for name, value in walker.sizes.items()}
    return Outline(declared, sizes, refused, walker.size_places)


def build(eager: EagerDefinition, call: Call) -> EagerBuilt:
    """The kernel for these arguments, whose sizes are known; never raises for a mistake."""
    definition = eager.definition
    place = header_span(definition.text, definition.node)
    try:
        walker, printed = _walk(eager, call, launches=True)
    except RecursionError:
        message = say.UnsupportedSyntax(
            what="a kernel nested too deeply", remedy="split it, with `@T.macro` for the parts"
        )
        return EagerBuilt(None, (message.at(place),))
    except Exception as error:  # a fault of this package must not end the session
        return EagerBuilt(None, (internal_error(error).at(place),))
    print(printed, end="")
    results, collection = walker.results()
    ordered = [p.arg for p in parameters(definition.node)]
    declared = sorted(walker.declared.values(), key=lambda p: ordered.index(p.name))
    if walker.errors or not walker.complete:
        return EagerBuilt(None, tuple(walker.found.values()))
    built = finish(walker, definition, [*declared, *results], printed)
    returns = tuple(range(len(declared), len(declared) + len(results)))
    program = replace(built.program, returns=returns) if built.program is not None else None
    return EagerBuilt(program, built.diagnostics, collection)


def _walk(eager: EagerDefinition, call: Call, *, launches: bool) -> tuple[EagerWalker, str]:
    """Passes of the walk until none requests a new mutable scalar, as for other kernels."""
    outer, shared = eager.outer, call.shared
    shared.remember_outside(eager.definition, outer)
    for argument in call.arguments.values():
        if argument is not RUN_TIME:
            shared.remember(argument)

    def begin(promoted: dict[Site, Kind]) -> EagerWalker:
        return EagerWalker(eager, outer, promoted, call, launches)

    return final_pass(begin, EagerWalker.run, shared, eager.limits)


class EagerWalker(Walker):
    """One pass over an eager kernel.

    declared: run-time parameters annotated so far.  sizes: `T.const` sizes that are not known.  unread: annotations
    of parameters that were refused.  made: what `T.empty` made.
    """

    def __init__(self, eager: EagerDefinition, outer: Outer, promoted: dict[Site, Kind], call: Call, launches: bool):
        super().__init__(eager.definition, outer, promoted, call.shared, eager.limits)
        self.eager, self.call, self.walks_launches = eager, call, launches
        self.builder.eager = self  # type: ignore[attr-defined]
        self.may_return = True
        self.own_frame = self.frame
        self.declared: dict[str, Parameter] = {}
        self.known: set[Any] = set()  # variables that a launch knows
        self.sizes: dict[str, Any] = {}
        self.size_places: dict[str, Any] = {}
        self.unread: list[Any] = []
        self.made: list[Buffer] = []
        self.unannotated: dict[Message, ast.arg] = {}

    def run(self) -> None:
        """Walk the body with the arguments bound."""
        node = self.definition.node
        self.builder.at(node, self.definition.text)
        arguments = dict(self.call.arguments)
        try:
            for argument in parameters(node):
                if arguments.get(argument.arg) is RUN_TIME:
                    arguments[argument.arg] = self.run_time_argument(argument)
            self.bind_parameters(self.definition, arguments)
            self.suite(node.body)
        except ReturnValue as returned:
            self.returned = returned.value
        self.scope.open = False

    def bind_run_time(self, name: str, kind: Any) -> Any:
        """Make `name` a run-time parameter of this annotation; what it is bound to."""
        found = self.declared[name] = parameter(name, kind)
        self.known |= sizes_of_launch([found])
        if found.kind == "pointer":
            made = self.arguments[name] = ParameterPointer(
                name, Dtype(found.dtype) if found.dtype else None, self.known
            )
            return made
        return argument_of(found)

    def run_time_argument(self, argument: ast.arg) -> Any:
        """What a run-time parameter is bound to when the body begins."""
        kind = self.eager.kinds.get(argument.arg)
        if isinstance(kind, (Tensor, Dtype)) or pointer_kind(kind) is not None:
            try:
                return self.bind_run_time(argument.arg, kind)
            except Refusal as refusal:
                self.report(refusal, argument)
        known = argument.arg in self.eager.run_time
        problem = "is used before an annotation says what it is" if known else "is given an array and has no annotation"
        rank, dtype = self.call.arrays.get(argument.arg, (1, "float32"))
        message = missing_annotation(argument.arg, f"parameter `{argument.arg}` {problem}", eager=(rank, dtype))
        self.unannotated[message] = argument
        return Unannotated(message)

    # -- what the body of an eager kernel says ---------------------------------------------------------------------
    def declare_parameter(self, node: ast.AnnAssign) -> None:
        """`A: T.Tensor(...)` makes the parameter `A` an array, `x: T.float32` a scalar known at the launch."""
        target = node.target
        if self.frame is not self.own_frame or not isinstance(target, ast.Name):
            return
        name = target.id
        if name not in self.eager.run_time or self.call.arguments.get(name) is not RUN_TIME:
            return
        if self.builder.launch is not None or not self.scope.host:
            remedy = "annotate parameters before `with T.Kernel(...)`"
            raise Refusal(say.BadArgument(problem=f"`{name}` is annotated inside the launch", remedy=remedy), node)
        try:
            kind = annotation(self, node.annotation)
            argument = self.locate(node.annotation, self.bind_run_time, name, kind)
        except (Refusal, Poisoned):
            self.unread.append(node)
            raise
        self.bind(name, [argument], target, own=False)

    def begin_launch(self) -> bool:
        """From here on a parameter without annotation is no compile-time value."""
        if not self.walks_launches:
            return False
        for name in self.call.arguments:
            held = self.own_frame.binding(name)
            if isinstance(held, Plain) and isinstance(held.value, Unannotated):
                self.own_frame.set(name, Gone(held.value.message))
        return True

    def const(self, name: Any, dtype: Any) -> Any:
        """The sizes of these names: integers where the arguments tell them, variables until then."""
        found = named_sizes(name, dtype, "T.const")
        several = isinstance(found, tuple)
        sizes = [self._size(size) for size in (found if several else (found,))]
        return tuple(sizes) if several else sizes[0]

    def _size(self, size: Any) -> Any:
        name = str(size.expr.name)
        given = self.call.sizes.get(name, self.call.arguments.get(name))
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        self.size_places.setdefault(name, header_span(self.frame.text, self.statement))
        return self.sizes.setdefault(name, size)

    def empty(self, declared: EmptyTensor) -> Buffer:
        """A tensor that the call allocates: a result where the kernel returns it, else a workspace."""
        if self.builder.launch is not None:
            remedy = "put it before `with T.Kernel(...)`"
            raise Refusal(say.LaunchConfiguration(problem="`T.empty` inside a launch", remedy=remedy))
        taken = {*self.call.arguments, *(buffer.name for buffer in self.made)}
        wanted = self.builder.hint or "result"
        others = (f"{wanted}_{n}" for n in itertools.count(1))
        name = next(name for name in itertools.chain([wanted], others) if name not in taken)
        made = self.builder.allocate(name, declared.shape, declared.dtype, "global")
        self.made.append(made)
        return made

    def results(self) -> tuple[list[Parameter], type | None]:
        """The tensors that the kernel returns, as parameters, and the type of the tuple or list that holds them."""
        returned = self.returned
        collection = next((kind for kind in (tuple, list) if isinstance(returned, kind)), None)
        buffers = list(returned) if collection is not None else [] if returned is None else [returned]
        found: list[Parameter] = []
        for buffer in buffers:
            if not any(buffer is made for made in self.made) or any(p.name == buffer.name for p in found):
                problem = "an eager kernel returns tensors that it makes with `T.empty`, each once"
                remedy = "tensors that are passed are written in place and need no `return`"
                if not is_device(buffer) and is_array(buffer):
                    remedy = f"make it with `{empty_like(buffer.shape, buffer.dtype)}`"
                self.report(Refusal(say.NoResult(problem=problem, remedy=remedy)), self.statement)
                return [], collection
            shape = tuple([e if isinstance(e, int) else e.use() for e in buffer.shape])
            found.append(Parameter(buffer.name, "tensor", str(buffer.dtype), shape, None, buffer.var))
        returned_vars = [p.var for p in found]
        self.builder.frames[0][:] = [
            statement
            for statement in self.builder.frames[0]
            if not (isinstance(statement, tir.AllocBuffer) and any(map(statement.buffer.same_as, returned_vars)))
        ]
        return found, collection

    def report(self, refusal: Refusal, node: ast.AST) -> None:
        """A parameter without annotation is said once, at the parameter."""
        argument = self.unannotated.get(refusal.message)
        if argument is not None:
            refusal.place, refusal.notes, node = argument, (), argument
        super().report(refusal, node)


class Unannotated:
    """An array, or a number known at the launch, before an annotation says which: it may only be compared with None."""

    __slots__ = ("message",)

    def __init__(self, message: Message):
        self.message = message

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Refusal(self.message)

    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = refuse(lambda self: self.message)
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = refuse(lambda self: self.message)


def _walker() -> EagerWalker | None:
    return getattr(builder(), "eager", None) if is_building() else None


def _const(name: Any, dtype: Any) -> Any:
    walker = _walker()
    return None if walker is None else walker.const(name, dtype)


def _empty(declared: EmptyTensor) -> Any:
    walker = _walker()
    return None if walker is None else walker.empty(declared)


entry.install(const=_const, empty=_empty)
