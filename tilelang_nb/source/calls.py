"""Calls and names of the language held against what there is: arguments, indices, and what does not exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .arrays import INDICES, call_for_array, element_of, for_array, for_scalar
from .catalogue.operations import NoIndices, NoSuchDtype, OneElement, WrongNumberOfIndices
from .catalogue.sources import BadArgument, MissingArguments, UnknownAttribute, UnknownOperation
from .diagnostic import Message
from .foreign_names import for_keyword, for_operation
from .wording import listed, nearest

# What to give for an argument that is missing.
_EXAMPLES = {"dtype": '"float32"', "cluster_dims": "(2, 1, 1)"}
_WITH_RESULT = (
    "it writes into a tile: allocate `out`, as `out = T.alloc_fragment((1,), dtype)` for a tile of one dimension,"
    " then write `{called}(tile, out, dim=0)`"
)


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
                near = for_keyword(key, self.keywords) or nearest(key, self.keywords)
                takes = f"its keywords are {listed(self.keywords)}" if self.keywords else "it takes no keywords"
                remedy = f"did you mean `{near}`?" if near else takes
                return BadArgument(f"`{called}` has no argument `{key}`", remedy, key, near or "")
        if given > self.most:
            limit = self.most
            only = [p.name for p in self.parameters if p.kind is p.KEYWORD_ONLY]
            more = f"; write {listed([f'{k}=' for k in only])} with the name" if only else ""
            takes = f"its arguments are {listed([p.name for p in self.positional])}" if limit else f"write `{called}()`"
            return BadArgument(
                f"`{called}` takes {limit} positional argument{'s' * (limit != 1)}, {given} given", takes + more
            )
        by_place = {p.name for p in self.positional[:given]}
        twice = next((key for key in keywords if key in by_place), None)
        if twice is not None:
            return BadArgument(f"`{called}` is given `{twice}` twice", f"give `{twice}` once")
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        needed = [p.name for p in self.parameters if p.default is p.empty and p.kind not in variadic]
        missing = [name for name in needed if name not in by_place and name not in keywords]
        if missing:
            shown = [p for p in self.parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
            if called.startswith("T.reduce_") and missing == ["out"]:
                return BadArgument(f"`{called}` needs `out`", _WITH_RESULT.format(called=called))
            remedy = f"write `{called}({', '.join(_written(p) if p.name in missing else p.name for p in shown)})`"
            lacking = tuple(_written(p) for p in shown if p.name in missing)
            return MissingArguments(f"`{called}` needs {listed(missing)}", remedy, missing=lacking)
        return None


def _written(parameter: inspect.Parameter) -> str:
    """What to write for an argument that is missing."""
    example = _EXAMPLES.get(parameter.name, parameter.name)
    return f"{parameter.name}={example}" if parameter.kind is parameter.KEYWORD_ONLY else example


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
    sizes = tuple(shape)
    if len(sizes) == rank and all(isinstance(extent, int) and extent == 1 for extent in sizes):
        only = f"{name}[{', '.join(['0'] * rank)}]"
        return OneElement(name, str(rank), shape_text(sizes), "0", only, what)
    indices = ", ".join(INDICES[at % len(INDICES)] for at in range(len(sizes)))
    loop = f"for {indices} in T.Parallel({', '.join(str(extent) for extent in sizes)})" if len(sizes) == rank else ""
    if len(loop) > 60:
        loop = ""
    return NoIndices(
        name, str(rank), shape_text(sizes), "0", element_of(name, rank), what, f": `{loop}`" if loop else ""
    )


def with_written(message: Message, node: Any, behind: str = "") -> Message:
    """A message of this file with what the text of its expression says; any other message as it is.

    behind: the text after the expression, of its line.
    """
    if isinstance(message, MissingArguments) and isinstance(node, ast.Call):
        return _with_arguments(message, node)
    plain = isinstance(message, WrongNumberOfIndices) and not isinstance(message, NoIndices)
    if plain and isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _with_indices(message, node, behind)  # type: ignore[arg-type]
    return message


def _with_arguments(message: MissingArguments, node: ast.Call) -> MissingArguments:
    """The call as it stands with what it lacks, where that comes last."""
    if not node.args or any(isinstance(argument, ast.Starred) for argument in node.args):
        return message
    called = message.remedy.removeprefix("write `").partition("(")[0]
    given = [ast.unparse(argument) for argument in node.args]
    given += message.missing
    given += [ast.unparse(keyword) for keyword in node.keywords]
    written = f"write `{called}({', '.join(given)})`".replace("'", '"')
    return replace(message, remedy=written) if len(written) < 80 else message


def _with_indices(message: WrongNumberOfIndices, node: ast.Subscript, behind: str) -> WrongNumberOfIndices:
    """The element with the indices that are given, those in a second pair of brackets among them, and letters for the
    rest.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    given = [ast.unparse(part) for part in parts]
    rank = int(message.rank)
    second = re.match(r"(?:\[[^\[\]]+\])+", behind)
    inner = re.findall(r"\[([^\[\]]+)\]", second[0]) if second else []
    if inner and len(given) + len(inner) == rank:
        given += [part.strip() for part in inner]
    if len(given) > rank:
        return message
    letters = [letter for letter in INDICES if not any(re.search(rf"\b{letter}\b", part) for part in given)]
    usual = [INDICES[at % len(INDICES)] for at in range(rank)]
    rest = [usual[at] if usual[at] in letters else letters[at % len(letters)] for at in range(len(given), rank)]
    example = f"{ast.unparse(node.value)}[{', '.join([*given, *rest])}]"
    return replace(message, example=example) if len(example) < 60 else message


def wrong_rank(name: str, shape: Iterable[Any], given: int) -> WrongNumberOfIndices:
    """TL201 with so many indices given.  shape: extents, which are shown as they stand."""
    sizes = tuple(shape)
    shown, example = shape_text(sizes), element_of(name, len(sizes))
    if not given and sizes:
        return used_as_number(f"`{name}`", name, sizes, len(sizes))
    return WrongNumberOfIndices(name, str(len(sizes)), shown, str(given), example)
