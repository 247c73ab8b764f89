"""The decorators `T.prim_func` and `T.macro`, and `T.const`: they need the front end, which installs itself here.

This package may not import the front end; `install` is the way back from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.providers import provided
from ..source.wording import of_type
from .calling import bad_argument, checked_call

_HOOKS: dict[str, Callable[..., Any]] = {}


def install(**hooks: Callable[..., Any]) -> None:
    """Sets what the entry points call: `prim_func(function, **options)`, `macro(function)`, `jit(function)`, and
    for the eager kernel that is being built `const(name, dtype)` and `empty(declared)`, None where there is none.
    """
    unknown = set(hooks) - {"prim_func", "macro", "const", "empty", "jit"}
    if unknown:
        raise TypeError(f"no such hook: {', '.join(sorted(unknown))}")
    _HOOKS.update(hooks)


def installed(name: str) -> Callable[..., Any] | None:
    """The hook of that name; outside a session what the package provides for functions of modules."""
    if name in _HOOKS:
        return _HOOKS[name]
    try:
        return provided(name)
    except LookupError:
        return None


def _decorated(name: str, function: Any, options: dict[str, Any]) -> Any:
    if function is None:
        return lambda late: _decorated(name, late, options)
    if not callable(function):
        bad_argument(f"`@T.{name}` stands before {of_type(function)}", "put it before a `def`")
    if type(function).__name__ == "Kernel" and not hasattr(function, "__code__"):
        bad_argument(f"`@T.{name}` stands before a kernel", f"write `@T.{name}` once, above the `def`")
    hook = installed(name)
    if hook is None:
        raise Refusal(say.SourceUnavailable(function=getattr(function, "__name__", str(function))))
    return hook(function, **options)


@checked_call
def prim_func(
    func: Any = None, *, private: bool = False, check_well_formed: bool = True, eager_jit: bool = False
) -> Any:
    """Makes a kernel of a function: `@T.prim_func` before `def k(A: T.Tensor((M,), "float32")):`.

    The body holds bindings and launches (`with T.Kernel(...)`).  private, check_well_formed: accepted, no effect.
    eager_jit: the function is an eager kernel, as under `@tilelang.jit`.
    Errors: TL001 (its text cannot be had), TL207 (a parameter without annotation), and those of the kernel's text.
    Source: upstream `T.prim_func`.
    """
    return _decorated("jit" if eager_jit else "prim_func", func, {})


@checked_call
def macro(func: Any = None) -> Any:
    """Makes a macro of a function: its body is expanded at each call, with arguments by value and buffers by handle.

    `T.Ref` parameters write through; it may return values; it may hold a whole launch.
    Errors: TL001 (its text cannot be had), TL004 (arguments of a call), TL143 (recursion), and those of the text.
    Source: upstream `T.macro`.
    """
    return _decorated("macro", func, {})


@checked_call
def const(name: str, dtype: Any = "int32") -> Any:
    """A size of an eager kernel, read from its arguments: `M, N = T.const("M, N")` in a `@tilelang.jit` function.

    Errors: TL004 outside of one.  Source: upstream `T.const`.
    """
    hook = installed("const")
    found = hook(name, dtype) if hook is not None else None
    if found is None:
        bad_argument("`T.const` stands outside an eager kernel", 'use `T.dynamic("n")`, or a parameter of the factory')
    return found
