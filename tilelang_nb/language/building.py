"""The kernel being built, for operations: `builder()` is the way from an operation to it.

The front end puts its builder there with `building`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
        raise Refusal(outside_kernel("a T operation"))
    return stack[-1]


def outside_kernel(what: str) -> say.OutsideKernel:
    """TL004 for an operation in code of the host."""
    return say.OutsideKernel(f"{what} outside a kernel", "call it in a function with `@T.prim_func` or `@T.macro`")


def on_host(refusal: Refusal, called: str = "", arguments: Iterable[Any] = ()) -> Refusal:
    """What a refused call in plain host code raises: the diagnostic with the line of the caller.

    called: its function.  arguments: with an array among them it was meant for a kernel, whatever else was wrong.
    """
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
    try:
        yield
    finally:
        BUILDERS.reset(token)
