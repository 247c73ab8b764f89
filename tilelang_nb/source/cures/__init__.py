"""The edits that cure a mistake, where its cure is mechanical: what the text then says is what it said in Python.

`CURES` maps a message to the function that makes its fixes, best first, from the message, its place and the syntax tree
there.  Where the tree at the place is not what the message speaks of, there is no fix: an edit is exact or not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from .. import catalogue as say
from ..diagnostic import Diagnostic, Fix, Message
from ..syntax_tree import Places, places
from ..text import Span, Text
from . import control_flow, expressions, operations, statements, words

Cure = Callable[[Any, Span, Places], Iterator[Fix]]

CURES: dict[type[Message], Cure] = {
    say.UndefinedName: words.name,
    say.UnknownOperation: words.operation,
    say.UnknownAttribute: expressions.attribute,
    say.BadArgument: words.argument,
    say.NoSuchDtype: words.dtype,
    say.ChainedAssignment: statements.one_target_each,
    say.RuntimeAssert: statements.device_assert,
    say.PrintOfDeviceValue: statements.device_print,
    say.LenOfBuffer: expressions.shape,
    say.TypeOfDeviceValue: expressions.dtype_of,
    say.RuntimeBreakOfCompileTimeLoop: control_flow.range_of_items,
    say.NotIterable: control_flow.loop_over_indices,
    say.LoopElse: control_flow.after_the_loop,
    say.ReturnNotAllowed: control_flow.rest_under_else,
    say.RaiseStatement: statements.assert_for_raise,
    say.GeneratorKernel: words.coroutine,
    say.ImportInKernel: statements.import_before,
    say.MatchOnDeviceValue: control_flow.branches,
    say.RegionStore: operations.region_store,
    say.ValueNeededWhileBuilding: expressions.device_function,
    say.TypeConflict: operations.cast_of_rebound,
    say.LossyConstant: operations.whole_number,
    say.IntegerTrueDivision: expressions.floor_division,
    say.IdentityOfDeviceValues: expressions.equality,
    say.ShapeMismatch: operations.fitting,
    say.OneElement: operations.only_element,
    say.WrongNumberOfIndices: operations.one_bracket,
    say.ImplicitFloatToInteger: operations.cast_of_stored,
}


def cured(diagnostic: Diagnostic, text: Text) -> Diagnostic:
    """The diagnostic with the edits that cure it."""
    said, span = diagnostic.said, diagnostic.span
    if diagnostic.fixes or said is None or span is None:
        return diagnostic
    if isinstance(said, say.SyntaxMistake):
        fixes = tuple(words.syntax(said, span, text))
    else:
        cure, at = CURES.get(type(said)), None
        if cure is None or (at := places(text)) is None:
            return diagnostic
        fixes = tuple(cure(said, span, at))
        if isinstance(said, (say.BadArgument, say.NoSuchDtype)):  # the call was known, the word is the place
            span = words.place_of(said.word, span, at) or span
    return replace(diagnostic, span=span, fixes=fixes)


def with_fixes(diagnostics: Iterable[Diagnostic], text: Text) -> tuple[Diagnostic, ...]:
    """The diagnostics of a text, each with the edits that cure it."""
    return tuple(cured(diagnostic, text) for diagnostic in diagnostics)
