"""Python's built-in functions in a kernel: their T forms on device values, refusals, and limits on endless iterators.

Callees are compared by identity, so an alias of a built-in is the built-in and a user's function of the same name is
not.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx as tir

from ..language.loops import DeviceLoop
from ..language.operands import described
from ..language.promotion import integer_of, is_integer, join_operands
from ..language.protocols import HASH, KEY
from ..language.values import Buffer, Region, Value, derived, is_device, number, truth, written
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import with_article
from .contents import check_used_up
from .describing_text import device_values
from .introspection import questions
from .large_integers import check_size

NUMPY_TYPES = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMPY_TYPES += ("float16", "float32", "float64")


def device_range(*bounds: Any, **keywords: Any) -> Any:
    """`range`: a device loop where a bound is known only at the launch, else Python's."""
    for bound in bounds:
        if is_device(bound) and not isinstance(bound, Value) and not getattr(bound, "is_variable", False):
            remedy = f"use an extent: `range({described(bound).strip('`')}.shape[0])`"
            raise Refusal(say.NotIterable(what=f"{described(bound)} as a bound of `range`", remedy=remedy))
        if isinstance(bound, float):
            problem = f"a bound of `range` is the float {bound}"
            raise Refusal(say.BadArgument(problem=problem, remedy="divide with `//`, or give an integer"))
    if len(bounds) == 3 and isinstance(bounds[2], int) and bounds[2] == 0:
        raise Refusal(say.ZeroStep())
    if keywords or not 1 <= len(bounds) <= 3 or not any(isinstance(bound, Value) for bound in bounds):
        return builtins.range(*bounds, **keywords)
    for bound in bounds:
        if isinstance(bound, Value) and not is_integer(bound.dtype):
            raise Refusal(
                say.BadArgument(
                    problem=f"{with_article(bound.dtype)} value as a bound of `range`", remedy="cast it to int32"
                )
            )
        if not isinstance(bound, (Value, int)):
            problem = f"a bound of `range` is {described(bound)}"
            raise Refusal(say.BadArgument(problem=problem, remedy="divide with `//`, or give an integer"))
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return DeviceLoop("serial", ((start, stop, step),))


def _extreme(python: Callable[..., Any], node: Any, items_of: Callable[[Any], Any]) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (Buffer, Region)):
            remedy = f"write `T.reduce_{python.__name__}({args[0].spoken()[1]}, result, dim=0)`"
            raise Refusal(
                say.NotIterable(what=f"{described(args[0])} as the operand of `{python.__name__}`", remedy=remedy)
            )
        items = list(items_of(args[0])) if len(args) == 1 else list(args)
        if not any(isinstance(item, Value) for item in items):
            return python(items, **kwargs)
        for item in items:
            if number(item) is None:
                problem = f"`{python.__name__}` of a device value and {described(item)}"
                raise Refusal(say.BadArgument(problem=problem, remedy="give numbers, or elements of buffers"))
        if len(args) == 1:
            kwargs.pop("default", None)  # there are items
        if kwargs:
            problem = f"`{python.__name__}` of device values takes no {next(iter(kwargs))}"
            raise Refusal(say.BadArgument(problem=problem, remedy="leave it out"))
        result = items[0]
        for item in items[1:]:
            if isinstance(result, Value) or isinstance(item, Value):
                x, y, dtype = join_operands(result, item)
                result = derived(node(x, y), dtype, result, item)
            else:
                result = python(result, item)
        return result

    return extreme


def _sum(items_of: Callable[[Any], Any]) -> Callable[..., Any]:
    def total(items: Any, /, start: Any = 0) -> Any:
        if is_device(items):
            remedy = "use `T.reduce_sum`, or a generator: `sum(A[i] for i in range(4))`"
            raise Refusal(say.NotIterable(what=f"{described(items)} as the operand of `sum`", remedy=remedy))
        result = start
        for item in items_of(items):
            first = type(result) is int and result == 0 and isinstance(item, Value) and item.dtype != "bool"
            result = item if first else result + item
        return result

    return total


def _convert(function: Any, type_of: Callable[[str], str]) -> Callable[..., Any]:
    """`int`, `float`, or a type of NumPy.  type_of: the type of the result for a value of a type."""

    def converted(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Value) and not kwargs:
            dtype = type_of(args[0].dtype)
            return args[0] if args[0].dtype == dtype else args[0].astype(dtype)
        return function(*args, **kwargs)

    return converted


def _boolean(*args: Any, **kwargs: Any) -> Any:
    return truth(args[0]) if len(args) == 1 and is_device(args[0]) else builtins.bool(*args, **kwargs)


def _consuming(function: Any, items_of: Callable[[Any], Any]) -> Callable[..., Any]:
    """A built-in that takes everything its first argument has."""

    def consume(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return function(*args, **kwargs)
        first = args[0]
        _check_iterable(first, function)
        try:
            if function is builtins.sorted and "key" not in kwargs:
                return function(_known_order(items_of(first)), *args[1:], **kwargs)
            return function(items_of(first), *args[1:], **kwargs)
        except Refusal as refusal:
            if refusal.message == HASH:
                refusal.message = KEY
            raise

    return consume


def _known_order(items: Any) -> list[Any]:
    """Items that Python can sort: TL128 for several of which one is a device value."""
    found = list(items)
    if len(found) > 1 and any(isinstance(item, Value) for item in found):
        remedy = "put two in order with `T.min(a, b)` and `T.max(a, b)`"
        raise Refusal(say.ValueNeededWhileBuilding(what="the order of device values", remedy=remedy))
    return found


def _taking(walker: Any, function: Any) -> Callable[..., Any]:
    """A built-in whose result gives the items of its arguments later."""

    def take(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            _check_iterable(value, function)
            check_used_up(walker, value)
        return function(*args, **kwargs)

    return take


def _check_iterable(value: Any, function: Any) -> None:
    if isinstance(value, DeviceLoop):
        raise Refusal(say.RuntimeComprehensionBound(f"`{function.__name__}`"))
    if is_device(value):
        raise Refusal(say.NotIterable(what=described(value), remedy=loop_over(value)))


def loop_over(value: Any) -> str:
    """What to write for an iteration over something of the device."""
    if isinstance(value, Region):
        return f"loop over its indices: `for i in range({value.shape[0]})`"
    if isinstance(value, Buffer) and value.shape:
        index = ", ".join(["i", *["..."][: len(value.shape) - 1]])
        return f"loop over its indices, `for i in range({value.name}.shape[0])`, and read `{value.name}[{index}]`"
    return "iterate over `range(n)`"


def _no_kernel_code(name: str, remedy: str = "write the code into the kernel") -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Refusal(say.UnsupportedSyntax(what=f"`{name}` in a kernel", remedy=remedy))

    return refuse


def table(intrinsics: Any) -> dict[int, Callable[..., Any]]:
    """id of a built-in -> what a call of it means in a kernel."""
    walker, items_of = intrinsics.walker, intrinsics.bounded

    def print_(*args: Any, **kwargs: Any) -> None:
        for at, argument in enumerate(args):
            for value in device_values(argument)[:1]:
                names = intrinsics.argument_names if value is argument else ()
                name = (names[at] if at < len(names) else None) or written(value)
                items = argument if isinstance(argument, (list, tuple)) else ()
                item = next((f"[{index}]" for index, part in enumerate(items) if part is value), "")
                raise Refusal(say.PrintOfDeviceValue(described(value), name, str(at), item))
        for value in device_values(*kwargs.values())[:1]:
            raise Refusal(say.PrintOfDeviceValue(described(value), written(value)))
        builtins.print(*args, **kwargs)

    def next_(iterator: Any, *default: Any) -> Any:
        if is_device(iterator):
            raise Refusal(say.NotIterable(what=described(iterator), remedy="index a buffer"))
        check_used_up(walker, iterator)
        return builtins.next(walker.replayed(iterator) if hasattr(iterator, "__next__") else iterator, *default)

    def power(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            check_size("**", *args, walker.limits.bits)
        return builtins.pow(*args, **kwargs)

    def any_(items: Any, /) -> Any:
        return intrinsics.any_of(items_of(items))

    def all_(items: Any, /) -> Any:
        return intrinsics.not_(intrinsics.any_of(items_of(items), negated=True))

    meanings: dict[Any, Callable[..., Any]] = {
        builtins.range: device_range,
        builtins.min: _extreme(builtins.min, tir.Min, items_of),
        builtins.max: _extreme(builtins.max, tir.Max, items_of),
        builtins.sum: _sum(items_of),
        builtins.float: _convert(builtins.float, lambda dtype: dtype if dtype == "float64" else "float32"),
        builtins.int: _convert(builtins.int, integer_of),
        builtins.bool: _boolean,
        builtins.print: print_,
        builtins.next: next_,
        builtins.any: any_,
        builtins.all: all_,
        builtins.pow: power,
        builtins.eval: _no_kernel_code("eval"),
        builtins.exec: _no_kernel_code("exec"),
        builtins.compile: _no_kernel_code("compile"),
        builtins.breakpoint: _no_kernel_code("breakpoint", "print on the device with `T.print(x)`"),
        **questions(walker),
    }
    for name in NUMPY_TYPES:
        convert = getattr(np, name)
        meanings[convert] = _convert(convert, lambda _, dtype=name.removesuffix("_"): dtype)
    for function in (builtins.enumerate, builtins.zip, builtins.reversed, builtins.map, builtins.filter, builtins.iter):
        meanings[function] = _taking(walker, function)
    for function in (builtins.list, builtins.tuple, builtins.set, builtins.frozenset, builtins.sorted, builtins.dict):
        meanings[function] = _consuming(function, items_of)
    return {id(function): meaning for function, meaning in meanings.items()}
