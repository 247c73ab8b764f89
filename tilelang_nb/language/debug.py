"""Output and checks of a running kernel: `T.print`, `T.device_assert`, `T.assume`.

`T.print` and `T.assert` carry Python's names in `T`; here they are `print_of` and `Assert`.
"""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .operands import BARRIER, content, described, integer, scalar
from .promotion import as_type, strong, weak
from .values import Buffer, Region, Value, builder, constant, is_device, number, truth, written


def _text(message: Any, called: str, name: str) -> str:
    if not isinstance(message, str):
        bad_argument(f"`{name}` of `{called}` is text, {described(message)} given", f'write `{name}="..."`')
    return message


def _named(name: str) -> Any:
    return lambda function: checked_call(function, name)


@_named("print")
def print_of(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Prints from the kernel: `T.print(x)`, `T.print(tile)`, `T.print(x, msg="x is")`, `T.print(msg="here")`.

    obj: a device value (each executing thread prints it), a buffer or region (printed once per block), a number or
    text.
    msg: text in front; default what is printed.  warp_group_id, warp_id: accepted, a buffer is printed whole in any
    case.
    Errors: TL004 (nothing to print, no text).  Source: upstream `tilelang/cuda/language/print.py`.
    """
    called = "T.print"
    if isinstance(obj, str) and not isinstance(msg, str):
        words = f"`msg` of `T.print` is text, {described(msg)} given"
        bad_argument(words, f'write `T.print(value, msg="{obj}")`: the value comes first')
    message = _text(msg, called, "msg")
    integer(warp_group_id, called, "warp_group_id", 0)
    integer(warp_id, called, "warp_id", 0)
    if isinstance(obj, str):
        obj, message = None, f"{message} {obj}".strip()
    if obj is None:
        if not message:
            bad_argument("`T.print` has nothing to print", 'write `T.print(x)` or `T.print(msg="...")`')
        builder().operation("print", message)
        return
    if isinstance(obj, Buffer) and obj.is_variable:
        message, obj = message or obj.name, content(obj)
    if isinstance(obj, (Buffer, Region)):
        if obj.memory == BARRIER:
            bad_argument("`T.print` of a barrier", "print the parity that you wait for")
        builder().operation("print", message or written(obj), obj)
        return
    value = number(obj)
    if value is None:
        bad_argument(
            f"`T.print` prints device values, buffers, numbers and text, {described(obj)} given", "use Python's `print`"
        )
    if not isinstance(value, Value):
        value = Value(as_type(value, strong(weak(value), value)), strong(weak(value), value))
    builder().operation("print", message or (written(obj) if isinstance(obj, Value) else str(obj)), value)


def _condition(condition: Any, called: str) -> Value:
    if not is_device(condition):
        if number(condition) is None:
            bad_argument(
                f"`{called}` takes a condition, {described(condition)} given", f"write `{called}(n > 0, message)`"
            )
        return Value(constant(bool(condition), "bool"), "bool")
    return truth(scalar(condition, called, "its condition"))


@checked_call
def device_assert(condition: Any, msg: str = "", no_stack_info: bool = False) -> None:
    """Stops the launch with `msg` where `condition` is false in an executing thread.

    condition: a device value or number; a number means `!= 0`.  msg: text, default the condition.
    Errors: TL004 (no condition, no text); a failing launch raises TL404.  Source: upstream `T.device_assert`.
    """
    builder().operation("device_assert", _condition(condition, "T.device_assert"), _text(msg, "T.device_assert", "msg"))


@checked_call
def Assert(condition: Any, message: str = "", error_kind: str = "RuntimeError") -> None:
    """`T.device_assert` by the name that `T.assert(...)` is read as.

    Errors: TL004 (no condition, no text); a failing launch raises TL404.  Source: TVM's `T.Assert`.
    """
    builder().operation("device_assert", _condition(condition, "T.Assert"), _text(message, "T.Assert", "message"))


@checked_call
def assume(cond: Any = None) -> None:
    """Promises that `cond` holds here; guards that follow from it may be left out.  Before a launch it says nothing.

    A promise that does not hold makes the kernel undefined.  Errors: TL004 (no condition).
    Source: upstream `T.assume`.
    """
    if cond is None:
        return
    condition = _condition(cond, "T.assume")
    found = builder()
    if found.launch is not None:
        found.operation("assume", condition)


@checked_call
def evaluate(value: Any = None) -> None:
    """Accepts a statement written as an expression: `T.evaluate(T.atomic_add(C[i], x))`; what it names has been done
    already.

    Errors: TL004 outside a kernel.  Source: TVM's `T.evaluate`.
    """
    builder()
