"""The arguments of a call that do not fit, collected, so that one refusal says them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ..source import catalogue as say
from ..source.diagnostic import Message, Note, Refusal
from .host_arrays import PLACEHOLDER


def mismatch(argument: str, expected: str, given: str, remedy: str, about: str = "") -> Refusal:
    """TL301 of one argument.  remedy: PLACEHOLDER in it stands for the argument as the caller writes it."""
    return Refusal(say.ArgumentMismatch(argument, expected, given, remedy, about))


def remedied(message: Message, written: str = "") -> Message:
    """The message with the argument in its remedy: as the caller wrote it, else by the parameter's name."""
    if not isinstance(message, say.ArgumentMismatch) or PLACEHOLDER not in message.remedy:
        return message
    written = written or message.argument
    if not isinstance(ast.parse(written, mode="eval").body, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        written = f"({written})"
    return replace(message, remedy=message.remedy.replace(PLACEHOLDER, written))


class Misfits(Refusal):
    """A refused call.  mistakes: one for each argument that does not fit, in the order of the parameters.

    As a single refusal it is the first of them, with the others as notes.
    """

    def __init__(self, mistakes: Sequence[Message]):
        first, *others = map(remedied, mistakes)
        notes = [Note(f"{other.fill(other.text)}; {other.fill(other.advice)}") for other in others]
        super().__init__(first, None, notes)
        self.mistakes = tuple(mistakes)


class Collection:
    """The mistakes of a call, by argument."""

    def __init__(self) -> None:
        self._found: dict[str, list[Message]] = {}

    def add(self, message: Message) -> None:
        self._found.setdefault(getattr(message, "argument", ""), []).append(message)

    def __contains__(self, argument: str) -> bool:
        return argument in self._found

    def __bool__(self) -> bool:
        return bool(self._found)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """What is refused in the block is collected, and the block ends there."""
        try:
            yield
        except Refusal as refusal:
            self.add(refusal.message)

    def raise_if_any(self, order: Sequence[str]) -> None:
        """Misfits: something was collected.  order: of the parameters; what is said of none of them comes first."""
        if not self._found:
            return
        rank = {name: at for at, name in enumerate(order)}
        names = sorted(self._found, key=lambda name: rank.get(name, -1))
        raise Misfits([message for name in names for message in _joined(self._found[name])])


def _joined(messages: list[Message]) -> list[Message]:
    """What is said of one argument: of several mismatches one message that expects all of it."""
    plain = [message for message in messages if type(message) is say.ArgumentMismatch]
    if len(plain) < 2 or len(plain) < len(messages):
        return messages
    first, second, *_ = plain
    # The remedy for a wrong dtype of an array to write is a new array, which has the right shape too.
    remedy = next((m.remedy for m in plain if "np.zeros(" in m.remedy), f"{first.remedy} and {second.expected}")
    expected, given = f"{first.expected} and {second.expected}", f"{first.given} and {second.given}"
    return [say.ArgumentMismatch(first.argument, expected, given, remedy, first.about)]
