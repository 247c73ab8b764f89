"""The kernel being built, for operations: `builder()` is the way from an operation to it.

The front end puts its builder there with `building`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from ..source import catalogue as say
from ..source.diagnostic import Message, Refusal
from ..source.providers import provided

if TYPE_CHECKING:
    from .values import Buffer, Value


class Builder(Protocol):
    """What operations may ask of the kernel being built; implemented by `frontend.emit`.

    hint: the name being assigned, for allocations.  span: where the statement at hand stands.  launch: None, or an
    object with `threads` and `blocks`, each a tuple of (variable, extent).  layouts: layouts by key, for
    `annotate_layout`.
    """

    hint: str | None
    span: Any
    launch: Any
    layouts: dict[str, Any]
    pending: list[Any]

    def emit(self, statement: Any) -> None: ...
    def effect(self) -> None: ...
    def keep(self, value: Value) -> None: ...
    def bind(self, name: str, expr: Any, dtype: str) -> Any: ...
    def operation(self, name: str, *operands: Any, dtype: str = "void") -> Any: ...
    def allocate(self, name: str, shape: Any, dtype: str, memory: str) -> Buffer: ...
    def store(self, buffer: Buffer, index: Any, value: Any) -> None: ...
    def warn(self, message: Message) -> None: ...


BUILDERS: ContextVar[tuple[Any, ...]] = ContextVar("builders of the kernels being built", default=())


def builder() -> Any:
    """The builder of the kernel being built; TL004 where there is none."""
    stack = BUILDERS.get()
    if not stack:
        if _AT_WORK:
            raise _lost()
        raise Refusal(outside_kernel("a T operation"))
    return stack[-1]


def outside_kernel(what: str) -> say.OutsideKernel:
    """TL004 for an operation in code of the host."""
    return say.OutsideKernel(f"{what} outside a kernel", "call it in a function with `@T.prim_func` or `@T.macro`")


def on_host(refusal: Refusal, called: str = "", arguments: Iterable[Any] = ()) -> Refusal:
    """What a refused call in plain host code raises: the diagnostic with the line of the caller.

    called: its function.  arguments: with an array among them it was meant for a kernel, whatever else was wrong.
    """
    if _AT_WORK:
        return _lost()
    meant = refusal.code == "TL004" and any(
        hasattr(a, "__array_interface__") or hasattr(a, "__dlpack__") for a in arguments
    )
    if called and (meant or isinstance(refusal.message, say.OutsideKernel)):
        refusal.message = outside_kernel(f"`{called}`")
    return provided("refused_call")(refusal)


def is_building() -> bool:
    """Is a kernel being built just now?"""
    return bool(BUILDERS.get())


@contextmanager
def building(found: Any) -> Iterator[None]:
    """Make `found` the builder that operations reach."""
    token = BUILDERS.set((*BUILDERS.get(), found))
    _AT_WORK.append(found)
    before = _watch_threads()
    try:
        yield
    finally:
        BUILDERS.reset(token)
        _AT_WORK.remove(found)
        if threading.excepthook is _of_thread and before is not None and not _AT_WORK:
            threading.excepthook = before


# Python code of a kernel may start threads.  The builder belongs to the thread that builds: an operation in another one
# has no place among the statements, and what it raises there reaches nobody.  So it is also noted at the builders.
_AT_WORK: list[Any] = []  # the builders of all threads
_hook_before: Callable[[Any], Any] = threading.excepthook


def _watch_threads() -> Callable[[Any], Any] | None:
    """Let what is refused in other threads be noted instead of printed; the hook that was there."""
    global _hook_before
    if threading.excepthook is not _of_thread:
        _hook_before, threading.excepthook = threading.excepthook, _of_thread
    return _hook_before


def _of_thread(args: Any) -> None:
    if not (isinstance(args.exc_value, Refusal) and _AT_WORK):
        _hook_before(args)
    elif not isinstance(args.exc_value.message, say.OutsideKernel):  # those are noted where they are raised
        _lost()


def _lost() -> Refusal:
    """The refusal of an operation in another thread than that which builds, noted at the builders at work."""
    problem = "a T operation in another thread"
    refusal = Refusal(say.OutsideKernel(problem, "call it in the thread that builds the kernel, without a pool"))
    for found in list(_AT_WORK):
        lost = getattr(found, "lost", None)
        if lost is not None:
            lost.append(refusal.message)
    return refusal
