"""`@T.macro`: a function whose body is inlined at the call by the walk that is at work."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

from ..language.calling import nearest
from ..language.tensors import Ref
from ..language.unavailable import REFUSED
from ..language.values import Buffer, Value, builder
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .definitions import Definition
from .definitions import parameters as parameters
from .names import Outer

VAR = REFUSED["Var"]  # elsewhere it makes a variable of the IR


class Macro:
    """What a name decorated with `@T.macro` is bound to.

    references: names of the parameters that write through (`T.Ref`).
    """

    def __init__(self, definition: Definition, outer: Outer, defaults: Mapping[str, Any], references: frozenset[str]):
        self.definition, self.outer, self.defaults, self.references = definition, outer, defaults, references
        self.__name__ = definition.node.name
        self.__doc__ = ast.get_docstring(definition.node)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inline at the statement at hand; TL004 outside a kernel."""
        return builder().inline(self, args, kwargs, None)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<macro {self.__name__}>"

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by parameter name; TL004 for what does not fit."""
        a = self.definition.node.args
        name = self.__name__
        positional = [p.arg for p in a.posonlyargs + a.args]
        by_keyword = [p.arg for p in a.args + a.kwonlyargs]
        takes = f"its parameters are {', '.join(f'`{p}`' for p in [*positional, *(p.arg for p in a.kwonlyargs)])}"
        if not positional and not a.kwonlyargs:
            takes = "it has no parameters"
        if len(args) > len(positional) and a.vararg is None:
            problem = (
                f"`{name}` takes {len(positional)} positional argument{'s' * (len(positional) != 1)}, {len(args)} given"
            )
            raise Refusal(say.BadArgument(problem=problem, remedy=takes))
        bound: dict[str, Any] = dict(zip(positional, args))
        extra: dict[str, Any] = {}
        for key, value in kwargs.items():
            if key in bound and key in by_keyword:
                raise Refusal(say.BadArgument(problem=f"`{name}` is given `{key}` twice", remedy=f"give `{key}` once"))
            if key in by_keyword:
                bound[key] = value
            elif a.kwarg is not None:
                extra[key] = value
            else:
                near = nearest(key, by_keyword)
                remedy = f"did you mean `{near}`?" if near else takes
                problem = f"`{name}` has no argument `{key}`"
                raise Refusal(say.BadArgument(problem=problem, remedy=remedy, word=key, near=near or ""))
        bound = {**self.defaults, **bound}
        missing = [f"`{p}`" for p in [*positional, *(p.arg for p in a.kwonlyargs)] if p not in bound]
        if missing:
            problem = f"`{name}` needs {', '.join(missing)}"
            raise Refusal(say.BadArgument(problem=problem, remedy="give every argument that has no default"))
        if a.vararg is not None:
            bound[a.vararg.arg] = tuple(args[len(positional) :])
        if a.kwarg is not None:
            bound[a.kwarg.arg] = extra
        return bound

    def argument_names(self, names: Any) -> dict[str, str]:
        """Parameter -> the plain name given for it at the call.  names: as `Intrinsics.call` has them."""
        if not names:
            return {}
        a = self.definition.node.args
        positional, keyword = names
        found = {p.arg: name for p, name in zip(a.posonlyargs + a.args, positional) if name}
        return found | dict(keyword)


def references_of(function: Any) -> frozenset[str]:
    """Names of the parameters of a function that are annotated with `T.Ref`, or `T.Var`, which says the same there."""
    return frozenset(name for name, kind in getattr(function, "__annotations__", {}).items() if _is_reference(kind))


def _is_reference(annotation: Any) -> bool:
    if isinstance(annotation, str):  # postponed
        return annotation.split("[")[0].split(".")[-1] in (Ref.__name__, VAR.__name__)
    return annotation is VAR or (isinstance(annotation, type) and issubclass(annotation, Ref))


class Element(Buffer):
    """An element of a buffer as a variable: reads load it, assignments store to it."""

    is_variable = True

    def __init__(self, buffer: Buffer, index: tuple[Any, ...]):
        super().__init__(buffer.name, buffer.shape, buffer.dtype, buffer.memory, buffer.var, home=buffer.home)
        self.buffer, self.index = buffer, index

    def __getitem__(self, _: Any) -> Any:
        return self.buffer[self.index]

    def indices(self, _: Any) -> tuple[Any, ...]:
        self.check_alive()
        return self.index


def reference(value: Any, parameter: str) -> Buffer:
    """The variable that a `T.Ref` argument stands for; its place is fixed now.  TL004 for what is no place."""
    if isinstance(value, Buffer) and value.is_variable:
        return value
    if not isinstance(value, Value) or value.origin is None:
        problem = f"the `T.Ref` parameter `{parameter}` needs a variable or a buffer element"
        raise Refusal(say.BadArgument(problem=problem, remedy="pass a name or an element such as `A[i]`"))
    buffer, index = value.origin
    if buffer.is_variable:
        return buffer
    for position in index:
        if isinstance(position, Value) and position.reads:
            builder().keep(position, "at")
    value.reads = False  # it is meant as a place: its load is not part of the program
    return Element(buffer, index)
