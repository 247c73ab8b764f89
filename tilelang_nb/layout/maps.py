"""Where every element of a tile is: in which thread and register, or at which byte and bank of shared memory.

These are the values of `k.layouts`: `k.layouts["C_l"].register(3, 5)`.  Printed, each shows a corner of its tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from . import picture
from .fragment import Fragment
from .swizzle import Swizzle

BANKS = 32
BANK_BYTES = 4


def _inside(index: tuple[int, ...], shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The index with negative ones counted from the end.  IndexError outside of the tile."""
    if len(index) != len(shape):
        raise IndexError(f"{name} has {len(shape)} dimension(s), {len(index)} given")
    counted = tuple(int(i) + extent if i < 0 else int(i) for i, extent in zip(index, shape))
    if any(not 0 <= i < extent for i, extent in zip(counted, shape)):
        raise IndexError(f"{index} is outside of {name}, shape {shape}")
    return counted


@dataclass(frozen=True, repr=False)
class FragmentMap:
    """A tile in the registers of a set of threads.

    name, dtype, shape: as in the text.  layout: the map by digits.  line: of the allocation in the cell, None for a
    tile that the compiler added (`own`).  launch: the name of its launch.  note: what else is to be said.
    """

    name: str
    dtype: str
    layout: Fragment
    line: int | None = None
    own: bool = False
    launch: str = ""
    note: str = ""

    memory = "fragment"

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tile."""
        return self.layout.shape

    @property
    def registers(self) -> int:
        """Registers that each thread has for it, one an element."""
        return self.layout.register_count

    def threads(self, *index: int) -> tuple[int, ...]:
        """The threads that hold an element, smallest first; several where it is replicated.  IndexError outside."""
        first = int(self.layout.forward(_inside(index, self.shape, self.name))[0])
        return tuple(sorted(first + copy for copy in self.copies))

    def register(self, *index: int) -> int:
        """The register of an element, the same in all threads that hold it.  IndexError outside."""
        return int(self.layout.forward(_inside(index, self.shape, self.name))[1])

    def held_by(self, thread: int) -> tuple[tuple[int, ...], ...]:
        """The elements that a thread holds, in the order of its registers."""
        if not 0 <= thread < self.layout.threads:
            raise IndexError(f"thread {thread} of {self.layout.threads}")
        places = [self.layout.inverse(thread, register) for register in range(self.registers)]
        return tuple(place for place in places if all(i < extent for i, extent in zip(place, self.shape)))

    @cached_property
    def copies(self) -> tuple[int, ...]:
        """What is added to the first thread of an element for each of its copies."""
        found = [0]
        for digit in self.layout.replication:
            found = [one + step * digit.stride for step in range(digit.extent) for one in found]
        return tuple(found)

    @cached_property
    def thread_table(self) -> np.ndarray:
        """The first thread of every element, an array of the tile's shape."""
        return self.layout.owners()

    @cached_property
    def register_table(self) -> np.ndarray:
        """The register of every element, an array of the tile's shape."""
        return self.layout.registers()

    @property
    def summary(self) -> str:
        """The map in a line."""
        copies = f", {len(self.copies)} copies" if len(self.copies) > 1 else ""
        return (
            f"{self.name}: {self.dtype} {picture.shape_text(self.shape)} in registers, "
            f"{self.registers} in each of {self.layout.threads} threads{copies}"
        )

    def __repr__(self) -> str:
        return picture.fragment_text(self)

    def _repr_html_(self) -> str:
        return picture.fragment_html(self)


@dataclass(frozen=True, repr=False)
class SharedMap:
    """A tile in shared memory.

    name, dtype, shape: as in the text.  itemsize: bytes of an element.  offset, bytes: its place in the shared memory
    of a block, in bytes.  versions: how many times the tile is there, one for each stage of its pipeline.  swizzle: how
    16-byte chunks of a row change places, None for the order of the text.  places: position of each element in an order
    by hand (`T.annotate_layout`).  piece: columns of a box, where boxes stand one after the other.  uses: what bulk
    copies and products of warp groups make of it: .subject .value .reason .line.  line, own, launch, note: as in
    `FragmentMap`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    itemsize: int
    offset: int
    bytes: int
    versions: int = 1
    swizzle: Swizzle | None = None
    piece: int | None = None
    places: np.ndarray | None = field(default=None, compare=False)
    uses: tuple[Any, ...] = ()
    line: int | None = None
    own: bool = False
    launch: str = ""
    note: str = ""

    memory = "shared"

    @cached_property
    def place_table(self) -> np.ndarray:
        """The position of every element from the start of the tile, in elements, an array of the tile's shape."""
        if self.places is not None:
            return self.places
        plain = np.arange(int(np.prod(self.shape, dtype=np.int64))).reshape(self.shape)
        if self.swizzle is None and self.piece is None:
            return plain
        rows, columns = np.arange(self.shape[-2])[:, None], np.arange(self.shape[-1])
        piece = self.piece or self.shape[-1]
        inside = columns % piece if self.swizzle is None else self.swizzle.column(rows, columns % piece)
        return plain[..., :1, :1] + columns // piece * (piece * self.shape[-2]) + rows * piece + inside

    @property
    def version_bytes(self) -> int:
        """Bytes from one version of the tile to the next."""
        return self.bytes // self.versions

    def address(self, *index: int, version: int = 0) -> int:
        """The byte of an element in the shared memory of the block.  IndexError outside."""
        if not 0 <= version < self.versions:
            raise IndexError(f"version {version} of {self.versions}")
        place = int(self.place_table[_inside(index, self.shape, self.name)])
        return self.offset + version * self.version_bytes + place * self.itemsize

    def bank(self, *index: int, version: int = 0) -> int:
        """The bank, of 32 with 4 bytes each, of the first byte of an element.  IndexError outside."""
        return self.address(*index, version=version) // BANK_BYTES % BANKS

    @cached_property
    def bank_table(self) -> np.ndarray:
        """The bank of every element in the first version, an array of the tile's shape."""
        return (self.offset + self.place_table * self.itemsize) // BANK_BYTES % BANKS

    @property
    def summary(self) -> str:
        """The map in a line."""
        times = f", {self.versions} versions" if self.versions > 1 else ""
        order = ""
        if self.swizzle is not None:
            every = f" / {self.swizzle.every}" if self.swizzle.every > 1 else ""
            order = f"; 16-byte chunk c of row r at c xor (r{every} mod {self.swizzle.span})"
        elif self.places is not None:
            order = "; in the order of its annotation"
        if self.piece is not None:
            order = f"; {self.shape[-1] // self.piece} boxes of {self.piece} columns, one after the other" + order
        return (
            f"{self.name}: {self.dtype} {picture.shape_text(self.shape)} in shared memory, "
            f"{self.bytes:,} bytes at {self.offset:,}{times}{order}"
        )

    def __repr__(self) -> str:
        return picture.shared_text(self)

    def _repr_html_(self) -> str:
        return picture.shared_html(self)


class Layouts(Mapping[str, "FragmentMap | SharedMap"]):
    """The maps of a kernel by the names of its tiles; a name that is used again is given as `name@line`.

    Printed, a line for each tile.
    """

    def __init__(self, maps: tuple[Any, ...]):
        self.maps = maps
        self._by_name: dict[str, Any] = {}
        for one in maps:
            name = one.name if one.name not in self._by_name else f"{one.name}@{one.line}"
            self._by_name.setdefault(name, one)

    def __getitem__(self, name: str) -> Any:
        if name not in self._by_name:
            raise KeyError(f"no tile {name}: there are {', '.join(self._by_name) or 'none'}")
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __str__(self) -> str:
        return "\n".join(one.summary for one in self.maps) or "no tiles"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.maps)
