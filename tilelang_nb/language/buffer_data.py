"""Memory as a value: `A.data`, that of a buffer, which only `T.Tensor(shape, dtype, A.data)` and its like take, and
the place of an element, which instructions take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Message
from .protocols import refuse


def _no_pointer(self: BufferData) -> Message:
    _, name, rank = self.buffer.spoken()
    remedy = f"index the buffer: `{name}[{', '.join('ijklmnop'[at % 8] for at in range(rank))}]`"
    return say.UnsupportedSyntax(what=f"arithmetic on the pointer `{name}.data`", remedy=remedy)


@dataclass(frozen=True, repr=False)
class BufferData:
    """The memory of a buffer, `A.data`; not a number, and nothing is known of where it is."""

    buffer: Any

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __getitem__ = __iter__ = __bool__ = refuse(_no_pointer)

    def __repr__(self) -> str:
        return f"{self.buffer.name}.data"


def _no_number(self: Pointer) -> Message:
    remedy = f"index the buffer: `{self.buffer.name}[...]`"
    return say.UnsupportedSyntax(what=f"arithmetic on a pointer to `{self.buffer.name}`", remedy=remedy)


@dataclass(frozen=True, repr=False)
class Pointer:
    """The place of an element, for operations that take places; not a number.

    extent: how many elements from there on are meant, None where nothing was said.  access: 1 read, 2 written, 3 both.
    """

    buffer: Any
    index: tuple[Any, ...]
    extent: int | None
    access: int

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __getitem__ = __iter__ = __bool__ = refuse(_no_number)

    def __repr__(self) -> str:
        return f"a pointer to {self.buffer.name}"

    @property
    def element(self) -> Any:
        """The element that stands there."""
        return self.buffer[self.index]
