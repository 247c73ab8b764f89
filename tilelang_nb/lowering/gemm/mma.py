"""Matrix multiply-accumulate by mma.sync: every warp owns neighbouring rows and columns of C.

For each step along the depth a warp loads the operands of all its instruction tiles into registers, then multiplies
them. Operands come from shared tiles by ldmatrix where a register holds neighbours of a row (16-bit types also of a
column), else element by element; or from a fragment whose elements lie in the threads that need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import RegionOperand, TileCall
from tilelang_nb.layout.fragment import Fragment
from tilelang_nb.layout.matrix import (
    COLUMNS,
    WARP,
    Instruction,
    WarpGrid,
    accumulator,
    operand_a,
    operand_b,
    same_threads,
    warp_grid,
)
from tilelang_nb.layout.swizzle import swizzle_for

from ..context import FRAGMENT, Inference, LaunchContext
from ..index_arithmetic import fold
from ..ops.all_reduce import unrolled
from ..ops.elementwise import at
from ..rewrite import dtype_of, loop, scope, sequence
from .accumulators import Accumulators
from .engine import extents
from .packing import packed

STEPS = "tl.steps"  # the loop along the depth: loads of operands, then one statement that multiplies them
BYTES = {"uint8": 1, "int8": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


def constrain(call: TileCall, inference: Inference, instruction: Instruction) -> None:
    """C has the layout of accumulators; operands in fragments lie in the threads that multiply them."""
    c = call["c"].buffer
    grid = _grid(call, inference.threads, instruction)
    inference.settle(c, accumulator(_shape(c), grid, instruction), call.span)
    for name, wanted in (("a", operand_a), ("b", operand_b)):
        buffer = call[name].buffer
        if scope(buffer) != FRAGMENT:
            continue
        layout = wanted(_shape(buffer), grid, instruction, call.boolean(f"transpose_{name}"))
        known = inference.layout(buffer)
        if known is None or not same_threads(known, layout):
            inference.settle(buffer, layout, call.span)


def warps(call: TileCall, launch: LaunchContext, instruction: Instruction) -> str:
    """How the warps divide C, for people to read."""
    grid = _grid(call, launch.thread_count, instruction)
    copies = launch.thread_count // WARP // (grid.down * grid.across)
    return f"{grid.down} by {grid.across} warps" + (f", {copies} times the same" if copies > 1 else "")


def _grid(call: TileCall, threads: int, instruction: Instruction) -> WarpGrid:
    grid = warp_grid(*extents(call["c"]), threads, call["policy"], instruction)
    assert grid is not None, "the engine was chosen for whole instructions and warps"
    return grid


def _shape(buffer: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in buffer.ty.shape)


@dataclass(frozen=True)
class _Side:
    """One operand: A with its rows, or B with its columns, as `lines`.

    tiles: instruction tiles of a warp along the lines; height: lines of one.  groups: of 8 lines in a tile.
    first: the first line of the warp.  transposed: lines are the second dimension of the region.
    """

    region: RegionOperand
    layout: Fragment | None
    registers: Any
    tiles: int
    height: int
    groups: int
    first: Any
    transposed: bool
    name: str

    @property
    def dtype(self) -> str:
        return dtype_of(self.region.buffer)


def lower(call: TileCall, launch: LaunchContext, instruction: Instruction) -> tir.Stmt:
    """The product for the C registers of one thread."""
    grid = _grid(call, launch.thread_count, instruction)
    rows, columns = extents(call["c"])
    depth = extents(call["a"])[0 if call.boolean("transpose_a") else 1]
    warp = launch.thread // WARP
    down, across = warp % grid.down, warp // grid.down % grid.across
    slabs, strips = rows // instruction.rows // grid.down, columns // COLUMNS // grid.across

    def side(name: str, **parts: Any) -> _Side:
        region = call[name]
        held = scope(region.buffer) == FRAGMENT
        return _Side(
            region=region,
            layout=launch.layouts[region.buffer] if held else None,
            registers=launch.registers[region.buffer] if held else None,
            name=name,
            **parts,
        )

    a = side(
        "a",
        tiles=slabs,
        height=instruction.rows,
        groups=instruction.halves,
        first=down * (rows // grid.down),
        transposed=call.boolean("transpose_a"),
    )
    b = side(
        "b",
        tiles=strips,
        height=COLUMNS,
        groups=1,
        first=across * (columns // grid.across),
        transposed=not call.boolean("transpose_b"),
    )
    word = "float64" if instruction.form.endswith("f64") else "uint32"
    left = launch.local(slabs * instruction.a_registers, word, "a_operand")
    right = launch.local(strips * instruction.b_registers, word, "b_operand")
    total = Accumulators(call, launch, instruction.c_elements, instruction.form.rsplit(".", 1)[1])

    def multiply(i: Any, j: Any) -> tir.Stmt:
        tile = total.tile(i * strips + j)
        operands = [
            *tile,
            *_registers(left, i * instruction.a_registers, instruction.a_registers),
            *_registers(right, j * instruction.b_registers, instruction.b_registers),
            *tile,
        ]
        return tir.Evaluate(ptx[f"mma.sync.aligned.{instruction.form}"](*operands))

    def step(k: Any) -> tir.Stmt:
        return tir.SeqStmt(
            [
                _Loads(a, left, instruction, k, launch).statement(),
                _Loads(b, right, instruction, k, launch).statement(),
                unrolled("i", slabs, lambda i: unrolled("j", strips, lambda j: multiply(i, j))),
            ]
        )

    body = unrolled("k", depth // instruction.depth, step)
    if isinstance(body, tir.For) and depth > instruction.depth:
        body = loop(body, annotations={STEPS: 1})
    allocations = [tir.AllocBuffer(buffer) for buffer in (left, right)]
    return sequence([*allocations, *total.before(), body, *total.after()], call.span)


def _registers(buffer: Any, first: Any, count: int) -> list[Any]:
    return [tir.BufferLoad(buffer, [first + k]) for k in range(count)]


@dataclass(frozen=True)
class _Loads:
    """Fills the registers of one operand for one step along the depth."""

    side: _Side
    target: Any
    instruction: Instruction
    k: Any
    launch: LaunchContext

    @property
    def steps(self) -> int:
        return self.instruction.steps

    def statement(self) -> tir.Stmt:
        if self.side.layout is not None:
            return self._from_fragment()
        return self._by_ldmatrix() if self._fits_ldmatrix() else self._by_elements()

    # ---- from shared memory, 8x8 matrices ----

    def _fits_ldmatrix(self) -> bool:
        """Whether every 8x8 matrix is made of rows of 16 bytes in the tile, at multiples of 16 bytes."""
        side = self.side
        size = BYTES.get(side.dtype, 1)
        if size == 8 or (side.transposed and size != 2):
            return False
        if swizzle_for(int(side.region.buffer.ty.shape[-1]), size) is None:
            return False
        known = self.launch.analyzer.modular_set(side.region.begin[-1])
        each = 16 // size
        if self.launch.run(side.region.buffer, each) < each:
            return False
        return int(known.coeff) % each == 0 and int(known.base) % each == 0

    def _by_ldmatrix(self) -> tir.Stmt:
        side, thread = self.side, self.launch.thread
        matrices = side.groups * self.steps  # of one instruction tile
        together = next(count for count in (4, 2, 1) if count * matrices <= 4 and side.tiles % count == 0)
        lane = thread % WARP
        matrix = lane // 8 % (together * matrices) if together * matrices > 1 else tir.const(0, "int32")
        row = lane % 8
        span = self.instruction.each * 4  # elements in 16 bytes
        # matrix = (tile * steps + step) * groups + group
        group, step = matrix % side.groups, matrix // side.groups % self.steps
        tile = matrix // matrices

        def load(t: Any) -> tir.Stmt:
            line = side.first + (t * together + tile) * side.height + group * 8
            along = self.k * self.instruction.depth + step * span
            if side.transposed:  # rows of the matrix run along the depth, and the instruction turns it
                offsets = [along + row, line]
            else:
                offsets = [line + row, along]
            address = self._element(offsets)
            count = together * matrices
            text = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if side.transposed else ''}.shared.b16"
            registers = _registers(self.target, t * count, count)
            return tir.Evaluate(ptx[text](*registers, tir.address_of(address)))

        self.launch.facts.setdefault("matrix tiles", {})[side.region.buffer] = None
        return unrolled("i", side.tiles // together, load)

    def _element(self, offsets: list[Any]) -> Any:
        region = self.side.region
        rank = len(region.extent)
        indices = [fold(index, self.launch.analyzer) for index in at(region, (rank - 2, rank - 1), offsets)]
        return tir.BufferLoad(region.buffer, indices)

    # ---- element by element ----

    def _each_register(self, value: Callable[[Any, int, int], Any]) -> tir.Stmt:
        """target[...] = value(tile, group, step) for every register."""
        side = self.side
        count = side.groups * self.steps

        def tile(t: Any) -> tir.Stmt:
            stores = [
                tir.BufferStore(self.target, value(t, group, step), [t * count + step * side.groups + group])
                for step in range(self.steps)
                for group in range(side.groups)
            ]
            return sequence(stores)

        return unrolled("i", side.tiles, tile)

    def _by_elements(self) -> tir.Stmt:
        side, lane, each = self.side, self.launch.thread % WARP, self.instruction.each

        def value(t: Any, group: int, step: int) -> Any:
            line = side.first + t * side.height + group * 8 + lane // 4
            along = self.k * self.instruction.depth + 4 * each * step + lane % 4 * each
            return packed([self._element(self._ordered(line, along + p)) for p in range(each)])

        return self._each_register(value)

    def _ordered(self, line: Any, along: Any) -> list[Any]:
        return [along, line] if self.side.transposed else [line, along]

    def _from_fragment(self) -> tir.Stmt:
        side, each = self.side, self.instruction.each
        layout = side.layout
        assert layout is not None

        def element(line: Any, along: Any) -> Any:
            # The digits on the thread are those of the executing one: the register depends on the others alone.
            index = [tir.const(0, "int32")] * (len(layout.shape) - 2) + self._ordered(line, along)
            register = layout.forward(index)[1]
            if isinstance(register, int):  # the only register
                return tir.BufferLoad(side.registers, [register])
            return tir.BufferLoad(side.registers, [fold(register, self.launch.analyzer)])

        def value(t: Any, group: int, step: int) -> Any:
            line = t * side.height + group * 8
            along = self.k * self.instruction.depth + 4 * each * step
            return packed([element(line, along + p) for p in range(each)])

        return self._each_register(value)
