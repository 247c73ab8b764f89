"""The names of `T`, the signatures of its operations and the names of dtypes, read from a table without TVM."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from typing import Any

from ...source import catalogue as say
from ...source.calls import CallSignature, no_such_dtype, with_written
from .surface_table import EXPORTED_DTYPES, SCALARS, SIGNATURES, UNCHECKED

_LINE = re.compile(r"(\w+)\((.*)\)(?: -> (\w+))?$")
_LINES = {
    found[1]: found
    for line in re.sub(r"\n +", " ", SIGNATURES).strip().split("\n")
    if (found := _LINE.match(line)) is not None
}
DTYPES = frozenset(EXPORTED_DTYPES.split())
ELEMENTS = frozenset(SCALARS.split())
NAMES = frozenset(_LINES) | frozenset(UNCHECKED.split()) | DTYPES
OPERATIONS = NAMES - DTYPES
SUGGESTED = NAMES - frozenset(UNCHECKED.split()) | {"Dtype", "GemmWarpPolicy", "Ref", "dtype"}  # what there is to use
_VECTOR = re.compile(r"(.+?)x(\d+)$")


@cache
def signature(name: str) -> CallSignature | None:
    """The signature of an operation; None where its arguments are not checked by one."""
    line = _LINES.get(name)
    if line is None:
        return None
    parameters: list[inspect.Parameter] = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for word in (part.strip() for part in line[2].split(",") if part.strip()):
        if word == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif word == "/":
            parameters = [p.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for p in parameters]
        elif word.startswith("**"):
            parameters.append(inspect.Parameter(word[2:], inspect.Parameter.VAR_KEYWORD))
        elif word.startswith("*"):
            parameters.append(inspect.Parameter(word[1:], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            default = ... if word.endswith("=") else inspect.Parameter.empty
            parameters.append(inspect.Parameter(word.rstrip("="), kind, default=default))
    return CallSignature(f"T.{line[3] or name}", tuple(parameters))


def dtype_mistake(given: str) -> say.NoSuchDtype | None:
    """TL205 for a text that names no dtype."""
    name = given.removeprefix("torch.").removeprefix("T.")
    vector = _VECTOR.match(name)
    if name in ELEMENTS or (vector and vector[1] in ELEMENTS and int(vector[2]) > 1):
        return None
    return no_such_dtype(given, name, ELEMENTS)


def call_mistake(signature: CallSignature, node: ast.Call) -> say.BadArgument | say.NoSuchDtype | None:
    """TL004 or TL205 that the text of a call shows: the number and names of its arguments, a dtype written out."""
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if starred or any(keyword.arg is None for keyword in node.keywords):
        return None
    mistake = signature.mistake(len(node.args), [str(keyword.arg) for keyword in node.keywords])
    if mistake is not None:
        return with_written(mistake, node)  # type: ignore[return-value]
    arguments = dict(zip((parameter.name for parameter in signature.positional), node.args))
    arguments |= {str(keyword.arg): keyword.value for keyword in node.keywords}
    dtype = arguments.get("dtype")
    if isinstance(dtype, ast.Constant) and isinstance(dtype.value, str) and signature.called != "T.call_extern":
        return dtype_mistake(dtype.value)
    return None
