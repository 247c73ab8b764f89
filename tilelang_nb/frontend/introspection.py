"""Built-in functions that ask about an object: its type, attributes, identity, length, and the names at hand.

A device value is a number of the kernel, whatever object stands for it while the kernel is built: what such a question
would tell of that object is refused, or answered as the language has it.
"""

from __future__ import annotations

import builtins
import itertools
import operator
from collections.abc import Callable
from typing import Any

from ..language.loops import DeviceLoop
from ..language.operands import described
from ..language.values import Buffer, Region, Value, is_device
from ..source import catalogue as say
from ..source.diagnostic import Message, Refusal
from .attributes import HIDDEN, OPERATORS, PUBLIC
from .locate import no_attribute
from .names import Frame, Namespace
from .refusals import length_of
from .scopes import Scope

LONGEST_RESULT = 1000  # items of a result that are looked at
OF_LANGUAGE = "use what the language gives: `x.dtype`, `A.shape`, `A.dtype`"
_WORKINGS = (Scope, Frame, Namespace)


def public_names(value: Any) -> frozenset[str]:
    """Attributes that a device value, buffer or region has for a kernel."""
    return PUBLIC[type(value).__name__]


def is_hidden(value: Any, name: str) -> bool:
    """Whether a kernel has no such attribute although the object has."""
    return name in HIDDEN and is_device(value) and name not in public_names(value)


GETTERS = (operator.attrgetter, operator.methodcaller)


def checked_getter(function: Any) -> Callable[..., Any]:
    """`operator.attrgetter` or `methodcaller` that reads of a device value only what a kernel may read."""
    made = function.__reduce__()
    paths = made[1] if made[0] is operator.attrgetter else _called_name(made)

    def get(*args: Any, **kwargs: Any) -> Any:
        for path in paths if args else ():
            name = path.split(".")[0]
            if is_device(args[0]) and is_hidden(args[0], name):
                raise Refusal(no_attribute(args[0], name))
        return function(*args, **kwargs)

    return get


def _called_name(made: tuple[Any, ...]) -> tuple[str, ...]:
    """The name of a `methodcaller`, which with keywords is made by a `partial`."""
    return (made[1][0] if made[1] else made[0].args[0],)


def refuse_objects_of_compiler(result: Any) -> None:
    """TL127 for a result of Python code that the language has no meaning for, alone or in a container."""
    pending, seen = [result], 0
    while pending and seen < LONGEST_RESULT:
        value = pending.pop()
        seen += 1
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            pending.extend(itertools.islice(value, LONGEST_RESULT))
        elif kind is dict:
            pending.extend(itertools.islice(value.values(), LONGEST_RESULT))
        elif kind.__module__.startswith(("tvm.", "tvm_ffi.")) or kind in _WORKINGS:
            raise Refusal(say.UnsupportedSyntax(what="an object of the compiler as a value", remedy=OF_LANGUAGE))


def _refusing(function: Any, message: Callable[[Any], Message]) -> Callable[..., Any]:
    """`function`, refused for a device value, buffer or region as first argument."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        if args and is_device(args[0]):
            raise Refusal(message(args[0]))
        return function(*args, **kwargs)

    return checked


def _length_message(value: Any) -> Message:
    shaped = value.name if isinstance(value, Buffer) else "region" if isinstance(value, Region) else ""
    return length_of(described(value), shaped)


def _length(*args: Any, **kwargs: Any) -> Any:
    if args and is_device(args[0]):
        raise Refusal(_length_message(args[0]))
    if args and isinstance(args[0], DeviceLoop):
        raise Refusal(length_of("a `range` whose bounds are known only when the kernel runs"))
    return builtins.len(*args, **kwargs)


def _hash_message(value: Any) -> Message:
    return say.ValueNeededWhileBuilding(what=f"the hash of {described(value)}", remedy="use a Python object")


def _identity(*args: Any, **kwargs: Any) -> Any:
    if args and isinstance(args[0], Value):
        what = f"the identity of {described(args[0])}"
        raise Refusal(say.ValueNeededWhileBuilding(what=what, remedy="compare values with `==`"))
    return builtins.id(*args, **kwargs)


def _get(*args: Any, **kwargs: Any) -> Any:
    if len(args) in (2, 3) and not kwargs and isinstance(args[1], str) and is_hidden(args[0], args[1]):
        if len(args) == 3 and not args[1].startswith("__"):
            return args[2]
        raise Refusal(no_attribute(args[0], args[1]))
    return builtins.getattr(*args, **kwargs)


def _has(*args: Any, **kwargs: Any) -> Any:
    """Of a device value: whether the language has the attribute.  What only Python's numbers have has no answer."""
    if len(args) != 2 or kwargs or not is_device(args[0]) or not isinstance(args[1], str):
        return builtins.hasattr(*args, **kwargs)
    value, name = args
    public = name in public_names(value)
    if not public and isinstance(value, Value) and (hasattr(int, name) or hasattr(float, name)):
        raise Refusal(no_attribute(value, name))
    return public


def _changing(function: Any) -> Callable[..., Any]:
    """`setattr` and `delattr`."""

    def change(*args: Any, **kwargs: Any) -> Any:
        if args and is_device(args[0]):
            remedy = "bind a name, or store into a buffer"
            raise Refusal(
                say.UnsupportedSyntax(what=f"a change of an attribute of {described(args[0])}", remedy=remedy)
            )
        return function(*args, **kwargs)

    return change


def questions(walker: Any) -> dict[Any, Callable[..., Any]]:
    """Built-in -> what a call of it means in the kernel that is walked."""

    def names() -> dict[str, Any]:
        return {name: value for name, value in walker.frame.names.items() if not name.startswith("__")}

    def dir_(*args: Any) -> Any:
        if not args:
            return sorted(walker.frame.known())
        return sorted(public_names(args[0]) - OPERATORS) if is_device(args[0]) else builtins.dir(*args)

    def vars_(*args: Any) -> Any:
        if not args:
            return names()
        if is_device(args[0]):
            raise Refusal(no_attribute(args[0], "__dict__"))
        return builtins.vars(*args)

    return {
        builtins.len: _length,
        builtins.type: _refusing(builtins.type, lambda value: say.TypeOfDeviceValue(what=described(value))),
        builtins.isinstance: _refusing(
            builtins.isinstance, lambda value: say.IsinstanceOfDeviceValue(what=described(value))
        ),
        builtins.hash: _refusing(builtins.hash, _hash_message),
        builtins.id: _identity,
        builtins.getattr: _get,
        builtins.hasattr: _has,
        builtins.setattr: _changing(builtins.setattr),
        builtins.delattr: _changing(builtins.delattr),
        builtins.globals: lambda: walker.frame.outer.module,
        builtins.locals: names,
        builtins.vars: vars_,
        builtins.dir: dir_,
    }
