"""TL0xx: where the text comes from, names and arguments."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Message, for_edits

__all__ = [
    "SourceUnavailable",
    "NoFunction",
    "UndefinedName",
    "UnknownOperation",
    "UnknownAttribute",
    "BadArgument",
    "MissingArguments",
    "NoKernelReturned",
    "OutsideKernel",
    "SyntaxMistake",
]


@dataclass(frozen=True)
class SourceUnavailable(Message):
    """The text of a function is not to be found."""

    code, slug = "TL001", "source-unavailable"
    text = "the source text of `{function}` cannot be found"
    label = "a kernel is built from its text"
    advice = "define it in a cell or a file, or give the text to `tilelang_nb.compile_cell`"

    function: str


@dataclass(frozen=True)
class NoFunction(SourceUnavailable):
    """A lambda or a class where a function is needed.  function: which."""

    text = "{function} as a kernel"
    label = "a kernel is a function with `def`"
    advice = "write it as a function: `def k(A: T.Tensor((M,), dtype)):`"


@dataclass(frozen=True)
class UndefinedName(Message):
    """A name is not bound; `remedy` gives `near`, the nearest real name."""

    code, slug = "TL002", "undefined-name"
    text = "`{name}` is not defined"
    label = "no such name here"
    advice = "{remedy}"

    name: str
    remedy: str
    near: str = for_edits()


@dataclass(frozen=True)
class UnknownOperation(Message):
    """`T.xyz` does not exist."""

    code, slug = "TL003", "unknown-operation"
    text = "`{namespace}.{name}` does not exist"
    label = "no such operation"
    advice = "{remedy}"

    namespace: str
    name: str
    remedy: str
    near: str = for_edits()


@dataclass(frozen=True)
class UnknownAttribute(UnknownOperation):
    """A buffer or a device value has no such attribute.

    namespace: a phrase, as `an element of `A``.  instead: what a kernel writes for it, with `{x}` for a scalar or
    `{arguments}` for those of the method.
    """

    text = "{namespace} has no attribute `{name}`"
    label = "no such attribute"

    instead: str = for_edits()


@dataclass(frozen=True)
class BadArgument(Message):
    """A wrong, missing or unknown argument of an operation or macro.

    word, near: a misspelt keyword, or text of an argument, and the nearest real one.
    """

    code, slug = "TL004", "bad-argument"
    text = "{problem}"
    label = "this argument does not fit"
    advice = "{remedy}"

    problem: str
    remedy: str
    word: str = for_edits()
    near: str = for_edits()


@dataclass(frozen=True)
class MissingArguments(BadArgument):
    """Arguments that a call lacks.  missing: what to write for each."""

    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoKernelReturned(BadArgument):
    """A `@jit` function that is to return a kernel returns something else."""

    label = "returns no kernel"


@dataclass(frozen=True)
class OutsideKernel(BadArgument):
    """An operation where no kernel is being built."""

    label = "works only in a kernel or macro"


@dataclass(frozen=True)
class SyntaxMistake(Message):
    """The cell is not Python."""

    code, slug = "TL005", "syntax-error"
    text = "{problem}"
    label = "Python cannot read this"
    advice = "{remedy}"

    problem: str
    remedy: str
