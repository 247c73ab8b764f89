"""A refused launch, located: each argument that does not fit at its place in the call, with the parameter beside it.

Where the text of the call cannot be had (`exec`, a call by other code) the places are those of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Message, Note, Refusal
from ..source.text import Span, Text
from .call_site import CallSite, call_site, shown_name
from .errors import LaunchError
from .misfits import remedied

AT_THE_CALL = ("TL301", "TL302")


@dataclass(frozen=True)
class Callee:
    """What was called.

    positional: its parameters in the order in which a call gives them.  place: of a parameter by name, or of the whole
    with "", in `text`.
    """

    name: str
    text: Text
    positional: Sequence[str]
    place: Callable[[str], Span | None]


def refused_launch(refusal: Refusal, of: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]) -> LaunchError:
    """The error of a call whose caller is on the stack."""
    mistakes: tuple[Message, ...] = getattr(refusal, "mistakes", (refusal.message,))
    notes = () if len(mistakes) > 1 else refusal.notes
    site = call_site(of.name) if refusal.code in AT_THE_CALL else None
    if site is None:
        found = tuple(remedied(m).at(of.place(_parameter(m)) or of.place(""), notes) for m in mistakes)
        return LaunchError(found, of.text, refusal)
    passed = site.passed(of.positional, args, kwargs)
    found = tuple(_at_call(message, notes, site, passed, of) for message in mistakes)
    return LaunchError(found, site.text, refusal, at_call=True)


def _parameter(message: Message) -> str:
    return getattr(message, "argument", "")


def _at_call(
    message: Message, notes: tuple[Note, ...], site: CallSite, passed: Mapping[str, Span], of: Callee
) -> Diagnostic:
    name = _parameter(message)
    span = passed.get(name)
    written = site.written(span) if span is not None and name else ""
    said = remedied(message, written)
    if type(said) is say.ArgumentMismatch and written and written != name:
        fields = (said.argument, said.expected, said.given, said.remedy, said.about)
        said = say.PassedMismatch(*fields, passed=written)
    about = passed.get(getattr(message, "about", ""))
    if about is not None and about != span:
        notes = (*notes, Note(f"`{site.written(about) or said.about}` is passed for `{said.about}`", about))  # type: ignore[attr-defined]
    return said.at(span or site.span, (*notes, *_parameter_note(name, site, of)))


def _parameter_note(name: str, site: CallSite, of: Callee) -> tuple[Note, ...]:
    """Where the parameter stands."""
    span = of.place(name) if name else None
    if span is None:
        return ()
    if of.text == site.text:
        return (Note(f"the parameter `{name}` of `{of.name}`", span),)
    stands = f"in {shown_name(of.text.name)}, line {span.line}"
    return (Note(f"the parameter of `{of.name}` is `{of.text.slice(span)}` {stands}"),)
