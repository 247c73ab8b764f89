"""One kernel from its text to its tile program: passes of the walk until no mutable scalar is missing."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, TypeVar

from tvm import tirx as tir

from ..language.promotion import Kind
from ..language.values import building
from ..source import catalogue as say
from ..source.collector import collector_paused
from ..source.diagnostic import Diagnostic, Refusal
from .control import ReturnValue
from .definitions import Definition
from .limits import Limits
from .locate import header_span, internal_error
from .macros import parameters as parameters_of
from .names import POISON, Outer, Site
from .parameters import arguments_of, pointed, read_parameters
from .program import Parameter, TileProgram
from .restarts import Shared
from .walk import Walker

W = TypeVar("W", bound=Walker)


@dataclass(frozen=True)
class Built:
    """program: None where an error was found, or something refused earlier was used."""

    program: TileProgram | None
    diagnostics: tuple[Diagnostic, ...]


def build_kernel(
    definition: Definition,
    annotations: Mapping[str, Any],
    defaults: Mapping[str, Any],
    outer: Outer,
    evaluate: Callable[[str | CodeType], Any],
    limits: Limits,
) -> Built:
    """Build a kernel; never raises for a mistake.

    annotations, defaults: of its parameters; `evaluate` resolves postponed annotations.
    """
    text = definition.text
    parameters, wrong = read_parameters(text, definition.node, annotations, defaults, evaluate)
    refused = tuple([_located(refusal, definition) for refusal in wrong])
    shared = Shared()
    shared.remember_outside(definition, outer)

    def begin(promoted: dict[Site, Kind]) -> Walker:
        return Walker(definition, outer, promoted, shared, limits)

    try:
        walker, printed = final_pass(begin, lambda walker: walk(walker, parameters), shared, limits)
    except RecursionError:
        message = say.UnsupportedSyntax(
            what="a kernel nested too deeply", remedy="split it, with `@T.macro` for the parts"
        )
        return Built(None, (*refused, message.at(header_span(text, definition.node))))
    except Exception as error:  # a fault of this package must not end the session
        return Built(None, (*refused, internal_error(error).at(header_span(text, definition.node))))
    print(printed, end="")  # a cell may have taken `sys.stdout` away
    if len(parameters) < len(parameters_of(definition.node)):
        return Built(None, (*refused, *walker.found.values()))
    return finish(walker, definition, parameters, printed)


def _located(refusal: Refusal, definition: Definition) -> Diagnostic:
    place = refusal.place if refusal.place is not None else definition.node
    span = header_span(definition.text, place) if hasattr(place, "lineno") else place
    return refusal.message.at(span, refusal.notes, refusal.fixes)


def final_pass(
    begin: Callable[[dict[Site, Kind]], W], walk_over: Callable[[W], None], shared: Shared, limits: Limits
) -> tuple[W, str]:
    """Passes of a walk until one requests no new scalar; the last walk, and what was printed in it.

    begin: makes the walk of a pass for the scalars found so far.  It ends: a pass either requests a site that was not
    promoted, or a wider kind for one that was, and the sites and kinds of a text are finite.
    """
    promoted: dict[Site, Kind] = {}
    for _ in range(limits.passes):
        shared.restore()
        walker = begin(promoted)
        captured = io.StringIO()
        with building(walker.builder), contextlib.redirect_stdout(captured), collector_paused():
            walk_over(walker)
        grown = {**promoted, **walker.requested}
        if grown == promoted:
            return walker, captured.getvalue()
        promoted = grown
    raise RuntimeError(f"no end after {limits.passes} passes")


def walk(walker: Walker, parameters: list[Parameter]) -> None:
    """One pass over the body of a kernel, with its parameters bound; a refused one is silent in the body."""
    node = walker.definition.node
    walker.builder.at(node, walker.definition.text)
    for extent in itertools.chain.from_iterable(p.shape for p in parameters):
        walker.builder.ranges.size(extent)
    try:
        arguments = arguments_of(parameters)
        walker.arguments = dict(arguments)
        for name in {argument.arg for argument in parameters_of(node)} - arguments.keys():
            walker.frame.set(name, POISON)
        walker.report_text(walker.definition)
        walker.bind_parameters(walker.definition, arguments)
        walker.suite(node.body)
    except ReturnValue as returned:
        walker.returned = returned.value
    for message in walker.builder.lost[:1]:
        walker.report(Refusal(message), node)
    walker.scope.open = False  # what was made here is of no use to another kernel


def finish(walker: Walker, definition: Definition, parameters: list[Parameter], printed: str) -> Built:
    """The tile program of a complete walk."""
    text, node = definition.text, definition.node
    diagnostics = tuple(walker.found.values())
    if walker.errors or not walker.complete:
        return Built(None, diagnostics)
    try:
        parameters = [pointed(p, walker.arguments[p.name], node) if p.kind == "pointer" else p for p in parameters]
    except Refusal as refusal:
        return Built(None, (*diagnostics, _located(refusal, definition)))
    body = walker.builder.body()
    walker.builder.at(node, text)
    function = tir.PrimFunc([p.var for p in parameters], body, span=walker.builder.span)
    stray = _undefined(function)
    if stray:
        names = ", ".join(f"`{name}`" for name in stray)
        problem = f"{names} is known to no parameter of `{node.name}`"
        message = say.BadArgument(problem=problem, remedy="a `T.dynamic` size must stand in the shape of a parameter")
        return Built(None, (*diagnostics, message.at(header_span(text, node))))
    program = TileProgram(
        node.name,
        function.with_attr("global_symbol", node.name),
        tuple(parameters),
        text,
        header_span(text, node),
        walker.record.root,
        tuple(walker.builder.statement_spans),
        dict(walker.builder.layouts),
        printed,
    )
    return Built(program, diagnostics)


def _undefined(function: Any) -> list[str]:
    """Names of variables that the program uses and nothing defines."""
    known = list(function.params)
    for parameter in function.params:
        for extent in getattr(parameter, "shape", ()) or ():
            known.extend(tir.analysis.undefined_vars(tir.Evaluate(extent), []))
    return sorted({var.name for var in tir.analysis.undefined_vars(function.body, known)})
