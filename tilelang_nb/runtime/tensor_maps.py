"""Tensor maps of launches: how a kernel for sm_90 sees an array, encoded by the driver for its address and shape.

A map is a parameter of the kernel by value; its slots in the parameter block are filled when the block shows other
arrays than before.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..device.launch import evaluator
from ..lowering.hopper.tensor_maps import check_outline

WORDS = 16  # of 8 bytes, in a map
KEPT = 4096  # maps that are remembered

_ADDRESS = struct.Struct("<Q")


@dataclass(frozen=True)
class MapPlace:
    """One map of one launch.

    source: offset in the block of the address of its array.  target: offset of the map.  outline: what the driver is
    told besides the address: type of elements, extents, strides, box, swizzle.
    """

    source: int
    target: int
    outline: tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]


def word_name(launch: int, tensor: Any, word: int) -> str:
    """The name of a word of a map among the constants of a plan; no parameter has it."""
    return f"{launch} {tensor.variable.name} {word}"


class EncodedMaps:
    """The maps of a plan.  DriverError: the driver refuses one."""

    def __init__(self, driver: Any, shown: Sequence[MapPlace]):
        self._driver, self._shown = driver, tuple(shown)
        self._known: dict[tuple[MapPlace, int], bytes] = {}

    def put(self, block: Any) -> None:
        """Make the maps in a block those of the arrays whose addresses stand in it."""
        addresses = [_ADDRESS.unpack_from(block.memory, one.source)[0] for one in self._shown]
        if addresses == block.mapped:
            return
        for one, address in zip(self._shown, addresses):
            block.memory[one.target : one.target + 8 * WORDS] = self._encoded(one, address)
        block.mapped = addresses

    def _encoded(self, one: MapPlace, address: int) -> bytes:
        found = self._known.get((one, address))
        if found is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            empty = not address or 0 in one.outline[1]  # of an array without elements nothing is copied
            found = bytes(8 * WORDS) if empty else self._driver.tensor_map(address, *one.outline)
            self._known[one, address] = found
        return found


def outline(
    tensor: Any, sizes: Mapping[str, Any]
) -> tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
    """What the driver is told of a map besides the address, for values of the shape variables by name.

    Refusal TL302: no map shows an array of that shape.
    """
    dims, strides = (tuple(evaluator(extent)(sizes) for extent in part) for part in (tensor.dims, tensor.strides))
    check_outline(tensor.buffer.name, dims, strides)
    return tensor.dtype, dims, strides, tensor.box, tensor.swizzle
