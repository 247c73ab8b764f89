"""TL10x and TL12x: syntax that a kernel cannot contain."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Message, for_edits

__all__ = [
    "ChainedAssignment",
    "NestedFunction",
    "NestedClass",
    "UnsupportedWith",
    "LoopElse",
    "TryStatement",
    "ReturnNotAllowed",
    "NoResult",
    "RaiseStatement",
    "GeneratorKernel",
    "ImportInKernel",
    "GlobalStatement",
    "MatchOnDeviceValue",
    "UnsupportedSyntax",
    "RegionStore",
]


@dataclass(frozen=True)
class ChainedAssignment(Message):
    """`a = b = c`."""

    code, slug = "TL101", "chained-assignment"
    text = "chained assignment"
    label = "one target per assignment in a kernel"
    advice = "write {statements}"

    statements: str


@dataclass(frozen=True)
class NestedFunction(Message):
    """`def` in a kernel."""

    code, slug = "TL102", "nested-function"
    text = "the function `{name}` is defined inside a kernel"
    label = "a kernel contains no functions"
    advice = "define `{name}` outside the kernel, with `@T.macro`"

    name: str


@dataclass(frozen=True)
class NestedClass(Message):
    """`class` in a kernel."""

    code, slug = "TL103", "nested-class"
    text = "the class `{name}` is defined inside a kernel"
    label = "a kernel contains no classes"
    advice = "define `{name}` outside the kernel; for shared code use `@T.macro`"

    name: str


@dataclass(frozen=True)
class UnsupportedWith(Message):
    """`with` of anything but T.Kernel and T.ws."""

    code, slug = "TL104", "unsupported-with"
    text = "`with` of {what}"
    label = "`with` takes `T.Kernel` and `T.ws` only"
    advice = "{remedy}"

    what: str
    remedy: str


@dataclass(frozen=True)
class LoopElse(Message):
    """`for ... else`, `while ... else`."""

    code, slug = "TL117", "loop-else"
    text = "`else` on a loop"
    label = "a loop in a kernel has no `else`"
    advice = "set a flag before `break` and test it with `if` after the loop"


@dataclass(frozen=True)
class TryStatement(Message):
    """`try`."""

    code, slug = "TL120", "try-statement"
    text = "`try` in a kernel"
    label = "a GPU raises no exceptions"
    advice = "test the condition with `if` beforehand, or with `T.device_assert`"


@dataclass(frozen=True)
class ReturnNotAllowed(Message):
    """An early or valued `return`."""

    code, slug = "TL121", "return-not-allowed-here"
    text = "{problem}"
    label = "a kernel ends at its last statement"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class NoResult(ReturnNotAllowed):
    """An eager kernel returns something that it did not make with `T.empty`."""

    label = "not a tensor of `T.empty`"


@dataclass(frozen=True)
class RaiseStatement(Message):
    """`raise`."""

    code, slug = "TL122", "raise-statement"
    text = "`raise` in a kernel"
    label = "a GPU raises no exceptions"
    advice = "use `T.device_assert(condition, message)`"


@dataclass(frozen=True)
class GeneratorKernel(Message):
    """`yield`, `await`, async forms."""

    code, slug = "TL123", "generator-kernel"
    text = "{what} in a kernel"
    label = "a kernel is no generator or coroutine"
    advice = "{remedy}"

    what: str
    remedy: str


@dataclass(frozen=True)
class ImportInKernel(Message):
    """`import`."""

    code, slug = "TL124", "import-in-kernel"
    text = "`import` in a kernel"
    label = "a GPU imports nothing"
    advice = "move the `import` to the top of the cell"


@dataclass(frozen=True)
class GlobalStatement(Message):
    """`global`, `nonlocal`."""

    code, slug = "TL125", "global-statement"
    text = "`{word}` in a kernel"
    label = "the names of a kernel are its own"
    advice = "pass a buffer as an argument, or return the value from a `@T.macro`"

    word: str


@dataclass(frozen=True)
class MatchOnDeviceValue(Message):
    """`match` on a device value."""

    code, slug = "TL126", "match-on-device-value"
    text = "`match` on a device value"
    label = "known only when the kernel runs"
    advice = "write `if` and `elif`"


@dataclass(frozen=True)
class UnsupportedSyntax(Message):
    """Any other refused class, named."""

    code, slug = "TL127", "unsupported-syntax"
    text = "{what}"
    label = "not part of the kernel language"
    advice = "{remedy}"

    what: str
    remedy: str


@dataclass(frozen=True)
class RegionStore(UnsupportedSyntax):
    """`A[i:j] = value`.  operation: "fill" or "copy", which does it."""

    label = "an assignment stores one element"

    operation: str = for_edits()
