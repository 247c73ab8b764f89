"""Python's protocols that ask an object for its value: a device value refuses each with its code.

The front end finds the place.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from ..source import catalogue as say
from ..source.diagnostic import Message, Refusal
from ..source.syntax_tree import KERNEL_TEXT
from .array_functions import ScalarOfArrays, WholeArray, of_scalar

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_FRONT_END = f"{_PACKAGE}frontend{os.sep}"
_SUBSCRIPT_OPERATOR = 26  # the operand of BINARY_OP that stands for `a[b]` from Python 3.14 on


def refuse(message: Callable[[Any], Message]) -> Callable[..., Any]:
    """A method that refuses with the message made from its object."""

    def method(self: Any, *_: Any) -> Any:
        raise Refusal(message(self))

    return method


def _needed(what: str, remedy: str) -> Callable[..., Any]:
    return refuse(lambda self: say.ValueNeededWhileBuilding(what=what, remedy=remedy))


TEXT = "the text of a device value"
KEY = say.ValueNeededWhileBuilding(
    what="the key of a dict or the item of a set is a device value", remedy="use a list or a tuple"
)

HASH = say.ValueNeededWhileBuilding(
    what="the hash of a device value",
    remedy="leave the cache around the function out, or give it what is known while building",
)
_LOOK_UPS = ("get", "pop", "setdefault", "__getitem__", "__contains__")


def text_refused() -> Message:
    """TL128 for a text that would have to hold the value of a device value."""
    return say.ValueNeededWhileBuilding(what=TEXT, remedy="print it with `T.print(x)`")


def asked_by_message(frame: FrameType) -> bool:
    """Whether the text of a device value is wanted for a message: asked for by this package, not through the front end,
    which calls what the user calls.
    """
    name = frame.f_code.co_filename
    return name.startswith(_PACKAGE) and not name.startswith(_FRONT_END)


_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor")
_COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}  # each with its reflection
# Python's names of the operators that NumPy spells out.
_OPERATOR_OF_NUMPY = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "true_divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "left_shift": "lshift",
    "right_shift": "rshift",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}


def checked_dtype(dtype: Any) -> str:
    """The name of a dtype that a kernel can compute with; TL205 for any other."""
    from .dtypes import computable

    return str(computable(dtype))


class KnownAtLaunch(ScalarOfArrays):
    """A base for what has no value while a kernel is built."""

    __slots__ = ()

    __bool__ = _needed(
        "a device value decides a condition of Python code outside the kernel text",
        "mark the helper with @T.macro, or compute the condition in the kernel",
    )
    __int__ = __float__ = __complex__ = _needed(
        "a device value is needed as a Python number", "use `T.cast(x, dtype)`, or a T function"
    )
    __floor__ = __ceil__ = __trunc__ = _needed(
        "a device value is needed as a Python number", "use `T.floor`, `T.ceil` or `T.trunc`"
    )
    __iter__ = refuse(lambda self: say.NotIterable(what="a device value", remedy="iterate over `range(n)`"))
    __len__ = refuse(lambda self: say.LenOfBuffer(what="a device value", remedy="`buffer.shape[dim]`"))
    __matmul__ = __rmatmul__ = __imatmul__ = refuse(lambda self: say.MatrixMultiplyOperator())
    # TVM's own expressions end the process where they are pickled.
    __reduce__ = __reduce_ex__ = __getstate__ = _needed(
        "a device value is pickled", "store it into a buffer, and pickle what the kernel leaves there"
    )

    def __copy__(self) -> Any:
        return self  # as of a number

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        """NumPy's operators hand over to ours, `np.float32(2) * x`; its functions have no device form."""
        name = _OPERATOR_OF_NUMPY.get(function.__name__, function.__name__)
        if method != "__call__" or options or name not in (*_ARITHMETIC, *_COMPARISONS):
            called = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
            raise Refusal(of_scalar(f"np.{called}"))
        left, right = operands
        if isinstance(left, KnownAtLaunch):
            found = getattr(left, f"__{name}__")(right)
        else:
            found = getattr(right, f"__{_COMPARISONS.get(name, f'r{name}')}__")(left)
        if found is NotImplemented:
            what, remedy = "an array meets a device value", "pass the array as a buffer, or index it with a constant"
            raise Refusal(say.ValueNeededWhileBuilding(what=what, remedy=remedy))
        return found

    def __index__(self) -> int:
        if _subscripts(sys._getframe(1)):
            raise Refusal(say.RuntimeIndexIntoPythonObject(what="a Python object"))
        what, remedy = "a device value is needed as a Python integer", "use a number that is known while building"
        raise Refusal(say.ValueNeededWhileBuilding(what=what, remedy=remedy))

    def __hash__(self) -> int:
        frame = sys._getframe(1)
        instruction = _instruction(frame)
        if instruction.startswith(("BUILD_", "MAP_ADD", "SET_ADD")):
            raise Refusal(KEY)
        if instruction.startswith(("CALL", "PRECALL")):
            called = _called(frame)
            if getattr(called, "__name__", "") not in _LOOK_UPS:
                raise Refusal(KEY if isinstance(getattr(called, "__self__", None), (set, dict)) else HASH)
        raise Refusal(say.RuntimeIndexIntoPythonObject(what="a dict or set"))

    def __array__(self, *_: Any, **__: Any) -> Any:
        """One item of an array of objects, but no index into an array."""
        if _subscripts(sys._getframe(1)):
            raise Refusal(say.RuntimeIndexIntoPythonObject(what="a NumPy array"))
        found = np.empty((), object)
        found[()] = self
        return found


class IndexedOnly(WholeArray):
    """A base for tiles: a kernel computes with elements, so arithmetic on the whole lacks its indices."""

    __hash__ = object.__hash__
    __copy__ = __deepcopy__ = refuse(lambda self: _duplicated("a copy"))
    __reduce__ = __reduce_ex__ = __getstate__ = refuse(lambda self: _duplicated("the pickled form"))

    def __eq__(self, other: Any) -> bool:
        """Identity; refused where a kernel's text compares it with something that has elements or is a number."""
        if self is not other and _compares_in_kernel(sys._getframe(1), other):
            raise Refusal(self.lacks_indices())
        return self is other

    def __ne__(self, other: Any) -> bool:
        if self is not other and _compares_in_kernel(sys._getframe(1), other):
            raise Refusal(self.lacks_indices())
        return self is not other


_OF_ONE = ("neg", "pos", "abs", "invert", "round", "floor", "ceil", "trunc", "divmod", "rdivmod")
for _name in (*_ARITHMETIC, *(f"r{_name}" for _name in _ARITHMETIC), *_OF_ONE, "lt", "le", "gt", "ge"):
    setattr(IndexedOnly, f"__{_name}__", refuse(lambda self: self.lacks_indices()))


def _duplicated(what: str) -> Message:
    """TL128 for Python's ways of making a second object of a tile."""
    remedy = "allocate a tile and copy with `T.copy`"
    return say.ValueNeededWhileBuilding(what=f"{what} of a buffer is needed", remedy=remedy)


def _compares_in_kernel(frame: FrameType, other: Any) -> bool:
    """Whether the text of a kernel says `==` or `!=` here, and not `in`, about what could be compared by elements."""
    written = frame.f_code.co_filename == KERNEL_TEXT and _instruction(frame) == "COMPARE_OP"
    return written and not (other is None or isinstance(other, (str, bytes, type)))


def _instruction(frame: FrameType) -> str:
    """The name of the instruction that the frame executes: it tells what the value is asked for."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


def _called(frame: FrameType) -> Any:
    """What a kernel's text calls just now, through the front end; None in code of the user."""
    return frame.f_locals.get("function") if frame.f_code.co_filename.startswith(_FRONT_END) else None


def _subscripts(frame: FrameType) -> bool:
    """Whether the frame reads, stores or deletes `a[b]` just now."""
    name = _instruction(frame)
    if name == "BINARY_OP":
        return frame.f_code.co_code[frame.f_lasti + 1] == _SUBSCRIPT_OPERATOR
    return "SUBSCR" in name or "SLICE" in name
