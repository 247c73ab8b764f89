"""Tiles of accumulators to shared memory as matrices: stmatrix in place of stores of two elements.

It takes the loops of a tile operation that stores one 16-bit element for each element of a fragment of accumulators,
where a thread holds two neighbours of a row, and those of the row 8 further on: four matrices of 8 by 8, of 16 rows and
16 columns, are stored by one instruction of a warp.  A lane gives the address of one row of one matrix; the rows are
those of a thread that holds their first element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx as tir
from tvm.ir import Range
from tvm.script.tirx import ptx

from tilelang_nb.layout.fragment import Digit, Fragment
from tilelang_nb.layout.matrix import WARP
from tilelang_nb.layout.swizzle import swizzle_for

from ..architecture import capability
from ..context import LaunchContext
from ..gemm.packing import packed
from ..index_arithmetic import fold, fold_indices
from ..rewrite import dtype_of, has, scope, sequence, substitute, variables
from ..shared_memory import TILES
from .all_reduce import PARALLEL
from .elementwise import TILE

FIRST = 90  # the architecture that has the instruction
MATRICES = 4  # of one instruction
_STORE = "stmatrix.sync.aligned.m8n8.x4.shared.b16"


def fits(outer: Any, loops: Sequence[Any], body: Any, layout: Fragment, launch: LaunchContext) -> bool:
    """Whether the nest is such a store."""
    if capability(launch.arch) < FIRST or TILE not in outer.annotations or len(loops) != 2:
        return False
    if not isinstance(body, tir.BufferStore) or not isinstance(launch.block_thread, tvm.ir.Var):
        return False
    buffer = body.buffer
    if not scope(buffer).startswith("shared") or buffer in launch.facts.get(TILES, ()) or len(buffer.shape) < 2:
        return False
    if tvm.DataType(dtype_of(buffer)).bits != 16 or launch.run(buffer, 8) < 8:
        return False
    if swizzle_for(int(buffer.shape[-1]), 2) is None or _digits(layout) is None or layout.threads % WARP:
        return False
    return _in_step(body.indices, [loop.loop_var for loop in loops], launch)


def _digits(layout: Fragment) -> tuple[Digit, Digit, Digit] | None:
    """(groups of 8 rows, groups of 8 columns, neighbours) of a layout of accumulators; None for any other."""
    if len(layout.shape) != 2 or layout.padded_dims or layout.is_replicated or not layout.covers:
        return None
    rows, columns = layout.digits
    if len(rows) < 2 or len(columns) < 3 or rows[-1] != Digit(8, "thread", 4):
        return None
    halves, (strips, lanes, pair) = rows[-2], columns[-3:]
    if lanes != Digit(4, "thread", 1) or pair.on_thread or pair.extent != 2 or strips.on_thread or strips.extent % 2:
        return None
    return None if halves.on_thread or halves.extent != 2 else (halves, strips, pair)


def _in_step(indices: Sequence[Any], variables_: list[Any], launch: LaunchContext) -> bool:
    """Are the last indices the loop variables, and what begins at a multiple of 16 bytes?"""
    row, column = variables_
    begins = [launch.analyzer.simplify(index - var) for index, var in zip(indices[-2:], variables_)]
    for index in (*indices[:-2], *begins):
        if not {row, column}.isdisjoint(variables(index)) or has(index, tvm.ir.TensorLoad):
            return False
    known = launch.analyzer.modular_set(begins[1])
    return int(known.coeff) % 8 == 0 and int(known.base) % 8 == 0


def stored(store: Any, registers: dict[Digit, Any], layout: Fragment, launch: LaunchContext, span: Any) -> Any:
    """The store as matrices.

    store: in terms of the thread and of the variables of the register digits.
    """
    found = _digits(layout)
    assert found is not None
    halves, strips, pair = found
    half, strip, which = registers[halves], registers[strips], registers[pair]
    words = launch.local(MATRICES, "uint32", "matrices")
    two = tir.Var(strip.name, "int32")  # number of two neighbouring groups of columns
    launch.analyzer.bind(two, Range(0, strips.extent // 2))
    parts: list[Any] = []
    for matrix in range(MATRICES):
        place = {half: tir.const(matrix % 2, "int32"), strip: two * 2 + matrix // 2}
        pair_of = [substitute(store.value, {**place, which: tir.const(p, "int32")}) for p in range(2)]
        word = packed([fold_indices(value, launch.analyzer) for value in pair_of])
        parts.append(tir.BufferStore(words, word, [matrix]))
    thread = launch.block_thread
    lane = thread % WARP
    first = thread // WARP * WARP + lane % 8 * 4  # of this warp, the thread that holds the beginning of the row
    place = {half: lane // 8 % 2, strip: two * 2 + lane // 16, which: tir.const(0, "int32"), thread: first}
    indices = [fold(substitute(index, place), launch.analyzer) for index in store.indices]
    loaded = [tir.BufferLoad(words, [matrix]) for matrix in range(MATRICES)]
    address = tir.address_of(tir.BufferLoad(store.buffer, indices))
    result: Any = sequence([*parts, tir.Evaluate(ptx[_STORE](address, *loaded), span)], span)
    result = tir.For(two, 0, strips.extent // 2, tir.ForKind.UNROLLED, result, annotations=PARALLEL, span=span)
    for digit in reversed([one for one in layout.register_digits() if one not in found and one.extent > 1]):
        var = registers[digit]
        result = tir.For(var, 0, digit.extent, tir.ForKind.UNROLLED, result, annotations=PARALLEL, span=span)
    return sequence([tir.AllocBuffer(words, None, span), result], span)
