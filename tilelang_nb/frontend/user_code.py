"""What the code of the user's Python functions may do to state that outlives a call, as far as its text tells.

A *quiet* call changes no such state: nothing needs to be compared around it.  The test is on the safe side: a function
that stores anything but its own names, or calls what cannot be looked up, is not quiet.
"""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .locate import is_own

MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "add",
        "discard",
        "setdefault",
        "popitem",
        "appendleft",
        "extendleft",
        "popleft",
        "rotate",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "fill",
        "put",
        "resize",
        "partition",
        "__setitem__",
        "__delitem__",
        "__iadd__",
        "__imul__",
        "__ior__",
    ]
)
_NOISY = MUTATORS | frozenset(
    [
        "setattr",
        "delattr",
        "globals",
        "locals",
        "vars",
        "exec",
        "eval",
        "random",
        "__dict__",
        "__setattr__",
        "__import__",
        "next",
        "send",
        "seed",
        "shuffle",
        "at",
        "copyto",
        "place",
        "putmask",
        "setflags",
    ]
)
_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_HARMLESS = frozenset(
    [
        "builtins",
        "math",
        "cmath",
        "operator",
        "functools",
        "itertools",
        "numpy",
        "collections",
        "typing",
        "dataclasses",
        "enum",
        "abc",
        "types",
        "numbers",
        "string",
        "fractions",
        "decimal",
        "textwrap",
        "logging",
        "warnings",
        "time",
        "ml_dtypes",
        "copy",
    ]
)
_CODE = (FunctionType, staticmethod, classmethod, property)
_HEAP_TYPE = 1 << 9  # made by a `class` statement
_PATHS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} - {None})
_VALUES = (int, float, complex, bool, str, bytes, type(None), type(...), range, slice, CodeType, np.dtype, np.ufunc)
_plain: dict[type, bool] = dict.fromkeys(_VALUES, True)


@dataclass(frozen=True)
class CodeFacts:
    """names: of globals and attributes, those of nested code included.  quiet: it stores nothing but its own names."""

    names: frozenset[str]
    quiet: bool


@lru_cache(maxsize=4096)
def facts(code: CodeType) -> CodeFacts:
    """What a code object names and stores."""
    names = set(code.co_names)
    quiet = not any(type(c) is tuple and "out" in c for c in code.co_consts)  # `out=` of NumPy
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        outer = name in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars
        in_place = name.startswith("INPLACE_") or (name == "BINARY_OP" and instruction.argrepr.endswith("="))
        quiet = quiet and not (name in _STORES or outer or in_place)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = facts(constant)
            names |= inner.names
            quiet = quiet and inner.quiet
    return CodeFacts(frozenset(names), quiet and not names & _NOISY)


@lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """A file of this package, of Python or of an installed package."""
    installed = "site-packages" in filename or "dist-packages" in filename
    return installed or is_own(filename) or filename.startswith(("<frozen", *_PATHS))


@lru_cache(maxsize=4096)
def is_library_module(name: str) -> bool:
    """A module of this package, of Python or of an installed package; `__main__` and cells are the user's."""
    if name in ("__main__", "builtins"):  # a cell whose namespace has no `__name__` makes classes of "builtins"
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and is_library_file(file)


def own_attributes(kind: type) -> Any:
    """The `__dict__` of a class, whatever its metaclass says."""
    return type.__dict__["__dict__"].__get__(kind)


def bases(kind: type) -> tuple[type, ...]:
    """A class and what it inherits from, in the order of look-up."""
    return type.__dict__["__mro__"].__get__(kind)


def is_user_class(kind: type) -> bool:
    """A class that the user's text made."""
    if not type.__dict__["__flags__"].__get__(kind) & _HEAP_TYPE:
        return False
    module = own_attributes(kind).get("__module__")
    return not isinstance(module, str) or not is_library_module(module)


def is_plain(value: Any) -> bool:
    """Nothing about the value can change, or it belongs to this package."""
    kind = type(value)
    known = _plain.get(kind)
    if known is None:
        module = own_attributes(kind).get("__module__", "")
        own = isinstance(module, str) and module.startswith(("tilelang_nb.", "tvm"))
        known = _plain[kind] = own or issubclass(kind, np.generic)
    return known


def all_plain(values: Any) -> bool:
    """Whether every one of the values is plain; fast for long tables of numbers."""
    return all(_plain.get(kind, False) for kind in set(map(type, values)))


def global_names(function: Any) -> Iterator[tuple[Any, str]]:
    """(dict, name) of every global that a function, or a generator's code, may read or store.

    Attributes of the user's modules are among them.
    """
    code, known = (
        (function.__code__, function.__globals__)
        if type(function) is FunctionType
        else (function.gi_code, function.gi_frame.f_globals if function.gi_frame else {})
    )
    names = facts(code).names
    for name in names:
        if not dict.__contains__(known, name):
            continue
        yield known, name
        value = dict.get(known, name)
        if isinstance(value, ModuleType) and not is_library_module(value.__name__):
            members = vars(value)
            for member in names & members.keys():
                yield members, member


class QuietCalls:
    """Which calls are quiet, for one build."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bool]] = {}

    def are(self, function: Any, arguments: list[Any]) -> bool:
        """Whether a call of `function` with these arguments changes no state that outlives it."""
        for value in arguments:
            if not (is_plain(value) or (type(value) in (tuple, list, dict) and self._quiet_items(value))):
                return False
        found = self._known.get(id(function))
        if found is None:
            found = self._known[id(function)] = (function, self._search(function))
        return found[1]

    def _quiet_items(self, value: Any) -> bool:
        return all_plain(value.values() if type(value) is dict else value)

    def _search(self, function: Any) -> bool:
        pending, seen = [function], set()
        while pending:
            value = pending.pop()
            if id(value) in seen or is_plain(value):
                continue
            seen.add(id(value))
            more = self._parts(value)
            if more is None:
                return False
            pending.extend(more)
        return True

    def _parts(self, value: Any) -> list[Any] | None:
        """What else must be quiet for this to be; None where it is not."""
        kind = type(value)
        if kind is FunctionType:
            if is_library_file(value.__code__.co_filename):
                return [] if _is_harmless(value) else None
            if not facts(value.__code__).quiet:
                return None
            found = [dict.get(known, name) for known, name in global_names(value)]
            return [*found, *(value.__defaults__ or ()), *_cells(value)]
        if kind is BuiltinFunctionType:
            owner = value.__self__
            if owner is None or type(owner) is ModuleType:
                return [] if _is_harmless(value) else None
            pure = type(owner) in (list, dict, set, tuple, frozenset) and value.__name__ not in MUTATORS
            return [] if pure or is_plain(owner) else None
        if kind is ModuleType:
            known = value.__name__.partition(".")[0] in (*_HARMLESS, "tilelang_nb")
            return [] if known or not is_library_module(value.__name__) else None
        if issubclass(kind, type):
            if not is_user_class(value):
                return [] if _is_harmless(value) else None
            code = [part for k in bases(value) for part in own_attributes(k).values() if type(part) in _CODE]
            return [*code, type(value)] if is_user_class(type(value)) else code
        if kind in (tuple, list, dict, set, frozenset):
            return [] if all_plain(value) and (kind is not dict or all_plain(value.values())) else None
        if kind is np.ndarray:
            return [] if value.dtype != object else None
        if issubclass(kind, functools._lru_cache_wrapper):
            return [value.__wrapped__]
        if kind is MethodType:
            return [value.__func__, value.__self__] if issubclass(type(value.__self__), type) else None
        return None


def _is_harmless(value: Any) -> bool:
    """A function or class of a module whose code keeps no state that a program computes with."""
    return str(getattr(value, "__module__", None) or "").partition(".")[0] in (*_HARMLESS, "tilelang_nb")


def _cells(function: FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    return found
