"""`A.data`, the memory of a buffer: a value that only `T.Tensor(shape, dtype, A.data)` takes."""

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
