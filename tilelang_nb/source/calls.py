"""Calls and names of the language held against what there is: arguments, indices, and what does not exist."""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .arrays import call_for_array, element_of, for_array, for_scalar
from .catalogue.operations import NoIndices, NoSuchDtype, WrongNumberOfIndices
from .catalogue.sources import BadArgument, UnknownAttribute, UnknownOperation
from .foreign_names import for_operation
from .wording import listed, nearest


@dataclass(frozen=True)
class CallSignature:
    """What a function takes.  called: its name in messages.  parameters: without `self`."""

    called: str
    parameters: tuple[inspect.Parameter, ...]

    @cached_property
    def positional(self) -> list[inspect.Parameter]:
        named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [p for p in self.parameters if p.kind in named]

    @cached_property
    def keywords(self) -> list[str]:
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return [p.name for p in self.parameters if p.kind in named]

    @property
    def fewest(self) -> int:
        """Positional arguments that a call without keywords needs."""
        return sum(p.default is p.empty for p in self.positional)

    @property
    def most(self) -> int:
        """Positional arguments that a call may have."""
        starred = any(p.kind is p.VAR_POSITIONAL for p in self.parameters)
        return 1 << 30 if starred else len(self.positional)

    @property
    def needs_keyword(self) -> bool:
        return any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in self.parameters)

    def mistake(self, given: int, keywords: Iterable[str]) -> BadArgument | None:
        """TL004 for a call with so many positional arguments and these keywords; None where they fit."""
        called, keywords = self.called, list(keywords)
        for key in keywords:
            if key not in self.keywords:
                near = nearest(key, self.keywords)
                takes = f"its keywords are {listed(self.keywords)}" if self.keywords else "it takes no keywords"
                remedy = f"did you mean `{near}`?" if near else takes
                return BadArgument(f"`{called}` has no argument `{key}`", remedy, key, near or "")
        if given > self.most:
            limit = self.most
            only = [p.name for p in self.parameters if p.kind is p.KEYWORD_ONLY]
            more = f"; write {listed([f'{k}=' for k in only])} with the name" if only else ""
            return BadArgument(
                f"`{called}` takes {limit} positional argument{'s' * (limit != 1)}, {given} given",
                f"its arguments are {listed([p.name for p in self.positional])}{more}",
            )
        by_place = {p.name for p in self.positional[:given]}
        twice = next((key for key in keywords if key in by_place), None)
        if twice is not None:
            return BadArgument(f"`{called}` is given `{twice}` twice", f"give `{twice}` once")
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        needed = [p.name for p in self.parameters if p.default is p.empty and p.kind not in variadic]
        missing = [name for name in needed if name not in by_place and name not in keywords]
        if missing:
            shown = [p.name for p in self.parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
            return BadArgument(f"`{called}` needs {listed(missing)}", f"write `{called}({', '.join(shown)})`")
        return None


def unknown_operation(name: str, names: Iterable[str]) -> UnknownOperation:
    """TL003 for `T.name`, with what other libraries' names mean here, or the nearest of the names that there are."""
    near, known = for_operation(name)
    if known:
        return UnknownOperation(namespace="T", name=name, remedy=known)
    near = near or nearest(name, names) or ""
    remedy = f"did you mean `T.{near}`?" if near else "see `dir(T)` for the names there are"
    return UnknownOperation(namespace="T", name=name, remedy=remedy, near=near)


def unknown_attribute_of_array(
    namespace: str, name: str, array: str, rank: int, operations: Container[str]
) -> UnknownAttribute:
    """TL003 for an attribute or method of a buffer.  namespace: its name in the message.  array: the buffer's name."""
    near = nearest(name, ("dtype", "shape")) or ""
    known = for_array(name, array, rank, operations)
    if known:
        return UnknownAttribute(namespace, name, known, instead=call_for_array(name, array))
    otherwise = "it has `dtype` and `shape`; operations are functions of `T`"
    return UnknownAttribute(namespace, name, f"did you mean `{near}`?" if near else otherwise, near)


def unknown_attribute_of_scalar(namespace: str, name: str, operations: Container[str]) -> UnknownAttribute:
    """TL003 for an attribute or method of a device value."""
    instead = for_scalar(name, operations)
    if instead:
        return UnknownAttribute(namespace, name, f"write `{instead.format(x='x')}`", instead=instead)
    near = nearest(name, ("dtype",)) or ""
    otherwise = "it has `dtype`; operations are functions of `T`"
    return UnknownAttribute(namespace, name, f"did you mean `{near}`?" if near else otherwise, near)


def no_such_dtype(given: str, name: str, names: Iterable[str]) -> NoSuchDtype:
    """TL205 for a text that names no dtype.  name: what it was read as."""
    near = nearest(name, names)
    remedy = f"did you mean `{near}`?" if near else 'name one, such as `"float16"` or `T.float16`'
    return NoSuchDtype(problem=f"there is no dtype `{name}`", remedy=remedy, word=given, near=near or "")


def shape_text(shape: Iterable[Any]) -> str:
    """A shape as Python writes a tuple, with its extents as they stand."""
    sizes = [str(extent) for extent in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def used_as_number(what: str, name: str, shape: Iterable[Any], rank: int) -> NoIndices:
    """TL201 for a buffer, or a region of it, in arithmetic.  what: its name in the message.  rank: of the buffer."""
    return NoIndices(name, str(rank), shape_text(shape), "0", element_of(name, rank), what)


def wrong_rank(name: str, shape: Iterable[Any], given: int) -> WrongNumberOfIndices:
    """TL201 with so many indices given.  shape: extents, which are shown as they stand."""
    sizes = tuple(shape)
    shown, example = shape_text(sizes), element_of(name, len(sizes))
    if not given and sizes:
        return used_as_number(f"`{name}`", name, sizes, len(sizes))
    return WrongNumberOfIndices(name, str(len(sizes)), shown, str(given), example)
