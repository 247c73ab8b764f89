"""TL10x to TL14x: device values in places that need a value while the kernel is built; loops; operators."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Message, for_edits

__all__ = [
    "RuntimeAssert",
    "PrintOfDeviceValue",
    "LenOfBuffer",
    "TypeOfDeviceValue",
    "IsinstanceOfDeviceValue",
    "RuntimeBreakOfCompileTimeLoop",
    "NotIterable",
    "EndlessIterable",
    "RuntimeComprehensionBound",
    "RuntimeComprehensionFilter",
    "GeneratorOutOfScope",
    "RuntimeIndexIntoPythonObject",
    "EndlessWhile",
    "BreakNotAllowed",
    "ValueNeededWhileBuilding",
    "LossyConstant",
    "LossyOperand",
    "IntegerTrueDivision",
    "MatrixMultiplyOperator",
    "BufferAsCondition",
    "IdentityOfDeviceValues",
    "NotANumber",
    "ZeroStep",
    "LargeExpansion",
    "MacroRecursionLimit",
    "ExceptionWhileBuilding",
    "ExceptionInHostCode",
    "AssertionFailedWhileBuilding",
]


@dataclass(frozen=True)
class RuntimeAssert(Message):
    """`assert` on a device value."""

    code, slug = "TL105", "runtime-assert"
    text = "`assert` on a device value"
    label = "known only when the kernel runs"
    advice = "write `T.device_assert({condition}, message)`"

    condition: str


@dataclass(frozen=True)
class PrintOfDeviceValue(Message):
    """`print` of a device value.

    number: of the argument, from 0; "" where its name is given.  item: the index of the value in a list or tuple
    that is printed, as `[0]`.
    """

    code, slug = "TL106", "print-of-device-value"
    text = "`print` of {what}"
    label = "known only when the kernel runs"
    advice = "write `T.print({name})`"

    what: str
    name: str
    number: str = for_edits()
    item: str = for_edits()


@dataclass(frozen=True)
class LenOfBuffer(Message):
    """`len` of a buffer or device value.  shaped: it has a shape."""

    code, slug = "TL107", "len-of-buffer"
    text = "`len` of {what}"
    label = "its extents are in `.shape`"
    advice = "write {remedy}"

    what: str
    remedy: str
    shaped: str = for_edits()


@dataclass(frozen=True)
class TypeOfDeviceValue(Message):
    """`type` of a device value."""

    code, slug = "TL108", "type-of-device-value"
    text = "`type` of {what}"
    label = "a device value has a dtype, no Python type"
    advice = "use `{name}.dtype`"

    what: str
    name: str = "value"


@dataclass(frozen=True)
class IsinstanceOfDeviceValue(Message):
    """`isinstance` of a device value."""

    code, slug = "TL109", "isinstance-of-device-value"
    text = "`isinstance` of {what}"
    label = "a device value has a dtype, no Python type"
    advice = "compare the dtype: `{name}.dtype == T.float32`"

    what: str
    name: str = "value"


@dataclass(frozen=True)
class RuntimeBreakOfCompileTimeLoop(Message):
    """`break`/`continue` of a compile-time loop under a runtime condition.  remedy: which serial loop."""

    code, slug = "TL110", "runtime-break-of-compile-time-loop"
    text = "`{word}` of the compile-time loop on line {line} under a runtime condition"
    label = "the loop is expanded before the condition is known"
    advice = "use a serial loop{remedy}"

    word: str
    line: str
    remedy: str


@dataclass(frozen=True)
class NotIterable(Message):
    """A device value, buffer, region or number as an iterable.

    extent: what `range` takes for a loop over it.  element: the one-dimensional buffer whose elements are meant.
    """

    code, slug = "TL111", "not-iterable"
    text = "{what} cannot be iterated"
    label = "nothing to iterate over while building"
    advice = "{remedy}"

    what: str
    remedy: str
    extent: str = for_edits()
    element: str = for_edits()


@dataclass(frozen=True)
class EndlessIterable(Message):
    """A compile-time loop passes the item limit."""

    code, slug = "TL112", "endless-iterable"
    text = "a compile-time loop over more than {limit} items"
    label = "the loop body is expanded once per item"
    advice = "bound it: `itertools.islice(items, n)`, or use a device loop; the limit is the setting `{setting}`"

    limit: str
    setting: str = "items"


@dataclass(frozen=True)
class RuntimeComprehensionBound(Message):
    """Comprehension over a runtime extent."""

    code, slug = "TL113", "runtime-comprehension-bound"
    text = "{what} over a runtime extent"
    label = "the item count is known only when the kernel runs"
    advice = "store into a buffer in a loop: `for i in T.serial(n)`"

    what: str = "a comprehension"


@dataclass(frozen=True)
class RuntimeComprehensionFilter(Message):
    """A comprehension filter needs a device value."""

    code, slug = "TL114", "runtime-comprehension-filter"
    text = "a comprehension filter on a device value"
    label = "known only when the kernel runs"
    advice = "use `if` in a loop: `for i in T.serial(n)`"


@dataclass(frozen=True)
class GeneratorOutOfScope(Message):
    """A generator is consumed where a captured device value is gone."""

    code, slug = "TL115", "generator-out-of-scope"
    text = "{problem}"
    label = "a value that it captured is gone"
    advice = "consume the generator inside the loop or branch that made it"

    problem: str


@dataclass(frozen=True)
class RuntimeIndexIntoPythonObject(Message):
    """A list, tuple, dict, set or str indexed by a device value."""

    code, slug = "TL116", "runtime-index-into-python-object"
    text = "{what} is indexed by a device value"
    label = "a Python object has no device copy"
    advice = "{remedy}"

    what: str
    remedy: str = "put the values into a buffer, or compute them from the index"


@dataclass(frozen=True)
class EndlessWhile(Message):
    """A constant-true `while` that nothing leaves."""

    code, slug = "TL118", "endless-while"
    text = "this loop never ends"
    label = "no `break` leaves it"
    advice = "{remedy}"

    remedy: str = "leave it with `break`, or give it a condition"


@dataclass(frozen=True)
class BreakNotAllowed(Message):
    """`break`/`continue` in a loop kind that cannot have it."""

    code, slug = "TL119", "break-not-allowed-here"
    text = "`{word}` in a {kind} loop"
    label = "this kind of loop cannot be left early"
    advice = "use `T.serial`, or guard the statements with `if`"

    word: str
    kind: str


@dataclass(frozen=True)
class ValueNeededWhileBuilding(Message):
    """A helper or a Python protocol needs the value of a device value."""

    code, slug = "TL128", "value-needed-while-building"
    text = "{what}"
    label = "known only when the kernel runs"
    advice = "{remedy}"

    what: str
    remedy: str


@dataclass(frozen=True)
class LossyConstant(Message):
    """A constant does not fit the type of the buffer."""

    code, slug = "TL135", "lossy-constant"
    text = "{value} does not fit `{target}`, which holds {dtype}"
    label = "the constant would change"
    advice = "{remedy}"

    value: str
    target: str
    dtype: str
    remedy: str


@dataclass(frozen=True)
class LossyOperand(LossyConstant):
    """A constant does not fit the type that it is computed in; target: "", for no memory takes it."""

    text = "{value} does not fit {dtype}"


@dataclass(frozen=True)
class IntegerTrueDivision(Message):
    """`/` on two device integers."""

    code, slug = "TL136", "integer-true-division"
    text = "`/` on two integers"
    label = "the quotient may have a fraction"
    advice = 'write `{left} // {right}`, or `T.cast({left}, "float32") / {right}`'

    left: str
    right: str


@dataclass(frozen=True)
class MatrixMultiplyOperator(Message):
    """`@`."""

    code, slug = "TL137", "matrix-multiply-operator"
    text = "`@` in a kernel"
    label = "not an operator of the language"
    advice = "write `T.gemm(A, B, C)` on tiles"


@dataclass(frozen=True)
class BufferAsCondition(Message):
    """A buffer as a condition."""

    code, slug = "TL138", "buffer-as-condition"
    text = "{what} as a condition"
    label = "a buffer is neither true nor false"
    advice = "compare an element: `{name}[i] > 0`"

    what: str
    name: str = "A"


@dataclass(frozen=True)
class IdentityOfDeviceValues(Message):
    """`is` between device values."""

    code, slug = "TL139", "identity-of-device-values"
    text = "`{word}` between device values"
    label = "device values have no identity"
    advice = "write `{operator}`"

    word: str
    operator: str


@dataclass(frozen=True)
class NotANumber(Message):
    """None, a string, a list stored into a buffer."""

    code, slug = "TL140", "not-a-number"
    text = "{what} is stored into `{target}`"
    label = "only numbers can be stored"
    advice = "store a number, here of dtype {dtype}"

    what: str
    target: str
    dtype: str


@dataclass(frozen=True)
class ZeroStep(Message):
    """`range` with constant step 0."""

    code, slug = "TL141", "zero-step"
    text = "a step of 0"
    label = "the loop would never end"
    advice = "use a step of 1 or -1"


@dataclass(frozen=True)
class LargeExpansion(Message):
    """A compile-time loop or comprehension makes more statements than are worth writing out."""

    code, slug = "TL142", "large-expansion"
    severity = "warning"
    text = "{what} makes {statements} statements: {iterations} iterations × {each}"
    label = "written out once per item"
    advice = "{remedy}"

    what: str
    statements: str
    iterations: str
    each: str
    remedy: str


@dataclass(frozen=True)
class MacroRecursionLimit(Message):
    """Macros nested too deeply."""

    code, slug = "TL143", "macro-recursion-limit"
    text = "the macro `{name}` calls itself more than {limit} times"
    label = "every call of a macro is expanded"
    advice = "end the recursion with a condition that is known while building; the limit is the setting `{setting}`"

    name: str
    limit: str
    setting: str = "macro_depth"


@dataclass(frozen=True)
class ExceptionWhileBuilding(Message):
    """The user's compile-time code raised a Python exception."""

    code, slug = "TL144", "exception-while-building"
    text = "{exception}"
    label = "Python raised this while the kernel was built"
    advice = "{remedy}"

    exception: str
    remedy: str


@dataclass(frozen=True)
class ExceptionInHostCode(ExceptionWhileBuilding):
    """Code of the cell outside its kernels raised a Python exception."""

    label = "Python raised this"


@dataclass(frozen=True)
class AssertionFailedWhileBuilding(Message):
    """A compile-time `assert` is false."""

    code, slug = "TL145", "assertion-failed"
    text = "assertion failed: {condition}"
    label = "false while building"
    advice = "{remedy}"

    condition: str
    remedy: str
