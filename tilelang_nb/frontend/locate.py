"""Where something failed, read from the traceback: no place is ever passed to an operator or an operation.

Compiled expressions keep the places of their syntax nodes (PEP 657), so the failing instruction of the right frame
gives the exact range: `n / m` and not the whole statement.  The right frame is the innermost one that belongs to the
expression being evaluated (thunks, comprehensions and lambdas included) before control left for other code.  A
generator made by an earlier statement is other code: its consumer is where the user must look.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import tvm
import tvm_ffi

from .. import language as T
from ..language import __all__ as OPERATIONS
from ..language.operands import described
from ..language.protocols import TEXT
from ..language.values import Buffer, Region, Value
from ..source import catalogue as say
from ..source.calls import unknown_attribute_of_array, unknown_attribute_of_scalar, with_written
from ..source.diagnostic import Message, Note
from ..source.interrupts import pass_on_interrupt
from ..source.text import Span, Text
from .describing_text import text_needed
from .places import MARK, header_span, line_span

__all__ = [
    "MARK",
    "exception_text",
    "frames",
    "header_span",
    "instruction_place",
    "internal_error",
    "is_internal",
    "is_own",
    "line_span",
    "place_of",
    "raised",
    "with_operands",
]
PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
# What fails in these failed on what the user gave.
USER_FACING = ("intrinsics.py", "builtin_functions.py", "introspection.py", "imports.py", "large_integers.py")
_LIBRARIES = tuple(str(Path(module.__file__).resolve().parent) + os.sep for module in (tvm, tvm_ffi))


@dataclass(frozen=True)
class Place:
    """span: None where no frame tells.  foreign: control was inside a generator of an earlier statement."""

    span: Span | None
    notes: tuple[Note, ...]
    foreign: bool


def _owned(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _owned(constant)


def frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """Outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def instruction_place(traceback: TracebackType, text: Text) -> Span | None:
    """The range of the instruction that a frame stopped at.

    None without positions: Python 3.10, and `-X no_debug_ranges`.
    """
    code = traceback.tb_frame.f_code
    if not hasattr(code, "co_positions"):
        return None
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None))
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return text.positions(line, end_line, column, end_column)


def place_of(traceback: TracebackType | None, text: Text, code: CodeType) -> Place:
    """The place of a failure while `code`, compiled from an expression of `text`, was evaluated."""
    mine = {id(part) for part in _owned(code)}
    span: Span | None = None
    notes: list[Note] = []
    foreign = left = False
    for frame in frames(traceback):
        running, line = frame.tb_frame.f_code, frame.tb_lineno
        if running.co_filename == MARK:
            if id(running) in mine and not left:
                span = instruction_place(frame, text) or span
            elif running.co_name == "<genexpr>":
                foreign = True
                notes.append(Note(f"the generator was made on line {line}", line_span(text, line)))
            elif running.co_name == "<lambda>":
                notes.append(Note(f"in the lambda of line {line}", line_span(text, line)))
        elif not is_own(running.co_filename):
            left = True
            notes.append(_helper_note(running, line, text))
    return Place(span, tuple(notes), foreign)


def _helper_note(code: CodeType, line: int, text: Text) -> Note:
    if code.co_filename == text.name:
        return Note(f"in the Python function `{code.co_name}`, line {line}", line_span(text, line))
    return Note(f"in the Python function `{code.co_name}`, line {line} of {os.path.basename(code.co_filename)}")


def is_own(filename: str) -> bool:
    """A file of this package or of TVM."""
    return filename.startswith(PACKAGE) or filename.startswith(_LIBRARIES)


def is_internal(traceback: TracebackType | None) -> bool:
    """Whether an exception arose in this package's own working and not in what the user's code asked for.

    Operators and operations may raise TypeError and the like on objects of the user: those are the user's.
    """
    names = [frame.tb_frame.f_code.co_filename for frame in frames(traceback)]
    if not names:
        return False
    if names[-1].startswith(_LIBRARIES):
        return True
    return names[-1].startswith(PACKAGE + "frontend") and not names[-1].endswith(USER_FACING)


def internal_error(error: BaseException) -> Message:
    """TL900 with a text to report."""
    parts = []
    for frame in frames(error.__traceback__):
        name = frame.tb_frame.f_code.co_filename
        if is_own(name):
            parts.append(f"{os.path.basename(name)}:{frame.tb_lineno}")
    text = " ".join(str(error).split())[:200]
    report = f"{type(error).__name__}: {text} [{' < '.join(reversed(parts[-4:]))}]"
    return say.InternalError(problem="the front end failed on this statement", report=report)


def raised(error: BaseException) -> Message:
    """What the user's compile-time code raised, as a message."""
    missing = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    if isinstance(missing, (Value, Buffer, Region)):
        return no_attribute(missing, str(error.name))  # type: ignore[attr-defined]
    remedy, text = "correct this line: it is Python that runs while the kernel is built", exception_text(error)
    if text.endswith(("buffer is not callable", "device value is not callable")):
        remedy = "read an element with brackets: `A[i]`"
    elif isinstance(error, IndexError):
        remedy = "index below its length: the last item is `[-1]`"
    return say.ExceptionWhileBuilding(exception=text, remedy=remedy)


_WORDS = {"Value": "device value", "Buffer": "buffer", "Region": "region of a buffer", "DeviceLoop": "device loop"}
_WORDS |= {"Dtype": "dtype", "Macro": "macro", "JitFunction": "kernel", "EagerFunction": "eager kernel"}
_NAMED = "|".join(_WORDS)
_OF_THE_COMPILER = re.compile(rf"'(?:{_NAMED})'(?: object)?|\b(?:{_NAMED})\b(?: object)?")
_INTRINSIC = re.compile(r"\S*\bIntrinsics\.\w+\(\) ")  # what a call of the kernel's text goes through
_MODULE = re.compile(r"\btilelang_nb\.(?:tilelang\b|(?=language\b))")


def no_attribute(owner: Any, name: str) -> Message:
    """TL003 for an attribute that something of the device does not have; TL108 for its class."""
    if name == "__class__":
        return say.TypeOfDeviceValue(what=described(owner))
    if isinstance(owner, Value):
        return unknown_attribute_of_scalar(described(owner), name, OPERATIONS)
    _, array, rank = owner.spoken()
    return unknown_attribute_of_array(described(owner), name, array, rank, OPERATIONS)


LONGEST = 400  # characters of an exception's text that a message shows


def exception_text(error: BaseException) -> str:
    """Type and text of an exception, whatever its class does; of a long text its beginning."""
    try:
        said = str(error)
        text = said[: 2 * LONGEST]
        if isinstance(error, (TypeError, AttributeError)):  # Python names the class of an operand
            text = _OF_THE_COMPILER.sub(lambda found: _WORDS[found[0].split()[0].strip("'")], text)
        text = _INTRINSIC.sub("", text)
        text = _MODULE.sub(lambda found: "tilelang" if found[0].endswith("g") else "tilelang.", text)
        if len(said) > LONGEST:
            text = f"{text[:LONGEST]}... ({len(said):,} characters)"
    except BaseException as fault:
        pass_on_interrupt(fault)
        text = ""
    name = type(error).__name__[:LONGEST]
    return f"{name}: {text}" if text else name


def with_operands(message: Message, text: Text, span: Span | None) -> Message:
    """Fill in what only the text knows: the operands of a division, the argument of a call."""
    wanted = (
        say.IntegerTrueDivision,
        say.MissingArguments,
        say.PrintOfDeviceValue,
        say.WrongNumberOfIndices,
        say.TypeOfDeviceValue,
        say.IsinstanceOfDeviceValue,
        say.BufferAsCondition,
        say.RuntimeIndexIntoPythonObject,
        say.LenOfBuffer,
        say.ValueNeededWhileBuilding,
        say.UnknownAttribute,
        say.RegionStore,
    )
    if span is None or not isinstance(message, wanted):
        return message
    node = _parsed(text.slice(span))
    if isinstance(node, ast.Call) and node.args and _calls_for_each(node.args[0]):
        return message  # not this call asks, but one that it makes: `list(map(len, buffers))`
    if isinstance(message, (say.MissingArguments, say.WrongNumberOfIndices)):
        return with_written(message, node, text.line(span.end_line)[span.end_column :])
    if isinstance(message, say.PrintOfDeviceValue):
        return _printed(message, node)
    if isinstance(message, say.IntegerTrueDivision):
        if isinstance(node, ast.BinOp):
            return replace(message, left=_operand(node.left), right=_operand(node.right))
        if isinstance(node, ast.AugAssign):
            return replace(message, left=_operand(node.target), right=_operand(node.value))
    elif isinstance(message, say.RuntimeIndexIntoPythonObject):
        if isinstance(node, ast.Subscript) and message.what in ("a Python object", "a NumPy array"):
            items, index = ast.unparse(node.value), ast.unparse(node.slice)
            what = f"the Python object `{items}`" if message.what == "a Python object" else message.what
            if not index.isidentifier() or isinstance(node.value, ast.Dict):
                return replace(message, what=what)
            loop = f"for {index}, item in enumerate({items})"
            remedy = f"loop over the object, `{loop}`: it is expanded while building; or put the values into a buffer"
            return replace(message, what=what, remedy=remedy)
    elif isinstance(message, say.ValueNeededWhileBuilding):
        called = node.func if isinstance(node, ast.Call) else None
        if message.what == TEXT:
            shown = _shown_operand(node)
            return message if shown is None else text_needed(ast.unparse(shown))
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "math" and called.attr in T.__all__:
            return replace(message, what=f"`math.{called.attr}` of a device value", remedy=f"use `T.{called.attr}`")
    elif isinstance(message, say.RegionStore):
        if isinstance(node, ast.Subscript):
            return replace(message, remedy=message.remedy.replace("region", ast.unparse(node)))
    elif isinstance(message, say.UnknownAttribute):
        if isinstance(node, ast.Attribute) and "{x}" in message.instead:
            return replace(message, remedy=f"write `{message.instead.format(x=ast.unparse(node.value))}`")
    elif isinstance(message, say.BufferAsCondition):
        if isinstance(node, ast.Name):
            return replace(message, name=node.id)
    elif isinstance(message, say.TypeOfDeviceValue) and isinstance(node, ast.Attribute):
        return replace(message, name=_operand(node.value))
    elif isinstance(node, ast.Call) and node.args:
        written = _operand(node.args[0])
        if not isinstance(message, say.LenOfBuffer):
            return replace(message, name=written)
        if message.shaped:
            return replace(message, remedy=f"`{written}.shape[0]`")
    return message


def _calls_for_each(node: ast.expr) -> bool:
    """Whether an expression calls a function that it is given: `map(len, buffers)`."""
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) in ("map", "filter", "starmap", "accumulate")


def _printed(message: say.PrintOfDeviceValue, node: Any) -> say.PrintOfDeviceValue:
    """The argument of `print` as it is written, not as the compiler would write its value."""
    arguments = node.args if isinstance(node, ast.Call) else []
    if not message.number or int(message.number) >= len(arguments):
        return message
    before = arguments[: int(message.number) + 1]
    if any(isinstance(argument, (ast.Starred, ast.JoinedStr)) for argument in before):
        return message
    return replace(message, name=ast.unparse(before[-1]) + message.item)


def _shown_operand(node: Any) -> ast.expr | None:
    """The operand whose text an expression makes, where it is plain which one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        shown = node.right
    elif isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        shown = node.args[0]
    else:
        return None
    return shown if isinstance(shown, (ast.Name, ast.Subscript, ast.Attribute, ast.BinOp)) else None


def _parsed(text: str) -> Any:
    try:
        statement = ast.parse(text.strip()).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None
    return statement.value if isinstance(statement, ast.Expr) else statement


def _operand(node: ast.AST) -> str:
    written = ast.unparse(node)
    return f"({written})" if isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)) else written
