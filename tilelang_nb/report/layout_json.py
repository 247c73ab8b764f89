"""Where the tiles of a kernel are, in the JSON report.

    layout      {name, memory, dtype, shape, line?, launch?, own?, note?} and
      fragment  {threads, registers, copies, digits, replication}
      shared    {item, offset, bytes, versions, swizzle?{chunk, every, span}, piece?, places?,
                 uses?[[subject, text, line?]]}

`digits` has for each dimension [extent, "t" or "r", stride], the most significant first.  A digit of an index adds its
value times the stride to the thread ("t") or to the register ("r"); `replication` has [extent, stride] of the parts of
the thread that number the copies, the least significant first.

`item` is the bytes of an element; version v of a tile begins v * bytes / versions after `offset`.  With a swizzle,
column c of row r is at ((c div chunk) xor (r div every mod span)) * chunk + c mod chunk.  With a `piece` the
tile is boxes of that many columns, one after the other, each with all rows; columns of a box count from its first.
`uses` says what bulk copies and products of warp groups make of the tile: "boxes", "tensor map", "descriptor".
`places` has the positions of all elements, in row-major order, of a tile whose order the text gives, up to a size.
"""

from __future__ import annotations

from typing import Any

from ..layout.maps import FragmentMap, SharedMap

MOST_PLACES = 16384


def layout(one: FragmentMap | SharedMap) -> dict[str, Any]:
    """The map of a tile; keys that say nothing are left out."""
    common = {
        "name": one.name,
        "memory": one.memory,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "line": one.line,
        "launch": one.launch or None,
        "own": one.own or None,
        "note": one.note or None,
    }
    special = _fragment(one) if isinstance(one, FragmentMap) else _shared(one)
    return {key: value for key, value in {**common, **special}.items() if value is not None}


def _fragment(one: FragmentMap) -> dict[str, Any]:
    return {
        "threads": one.layout.threads,
        "registers": one.registers,
        "copies": len(one.copies),
        "digits": [
            [[digit.extent, "t" if digit.on_thread else "r", digit.stride] for digit in digits]
            for digits in one.layout.digits
        ],
        "replication": [[digit.extent, digit.stride] for digit in one.layout.replication],
    }


def _shared(one: SharedMap) -> dict[str, Any]:
    swizzle = one.swizzle
    small = one.places is not None and one.places.size <= MOST_PLACES
    return {
        "item": one.itemsize,
        "offset": one.offset,
        "bytes": one.bytes,
        "versions": one.versions,
        "swizzle": swizzle and {"chunk": swizzle.chunk, "every": swizzle.every, "span": swizzle.span},
        "piece": one.piece,
        "uses": [[use.subject, str(use), use.line] for use in one.uses] or None,
        "places": one.places.reshape(-1).tolist() if small and one.places is not None else None,
    }
