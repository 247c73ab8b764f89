"""Matrix multiply-accumulate by warp groups (wgmma), operands in shared tiles that bulk copies filled.

Every warp group owns neighbouring rows of C, or neighbouring columns, and multiplies 64 rows in one instruction.  The
instructions of one T.gemm are a group that is waited for at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx as tir
from tvm.script.tirx import ptx

from tilelang_nb.language.tile_program import RegionOperand, TileCall
from tilelang_nb.layout.matrix import same_threads
from tilelang_nb.layout.wgmma import (
    COLUMNS,
    GROUP,
    ROWS,
    GroupGrid,
    group_accumulator,
    group_grid,
    group_operand,
    instruction_columns,
)

from ..context import FRAGMENT, Inference, LaunchContext, ThreadSet
from ..hopper.tensor_tiles import STEP, TURNED_DEPTH, TensorTile, out_of_step
from ..index_arithmetic import fold
from ..ops.all_reduce import unrolled
from ..rewrite import constant, dtype_of, element_bytes, map_children, nothing, scope, sequence, statements
from ..shared_memory import TILES, WRITTEN
from .accumulators import Accumulators
from .engine import extents, operand_dtype
from .packing import packed

REGISTER = 4  # bytes
OPERANDS = "operands of warp groups"  # the fact: products, each with its engine
PACKED = "packed operands"  # the fact: per-thread arrays that hold fragments as products take them
GROUPED = "accumulators of warp groups"  # the fact: those of products that warp groups multiply
REFUSED = "products of warps"  # the fact: why products are not those of warp groups, by accumulator
RUNNING = "running products"  # the fact: accumulators of products that `T.wait_wgmma` waits for, with their threads
OVER_AT_ONCE = "products that are waited for"  # the fact: accumulators of products that do not run on, and why
MIXED = "products that others count"  # the fact: some of what `T.wait_wgmma` counts is over at once, by warps
DESCRIPTOR = "tl_wgmma_descriptor"
REGISTER_FENCE = "tl_register_fence"
_F32 = {"float32": "f32"}
# operand dtype -> (name in PTX, accumulators of C by its dtype); float8 sums that C holds in float16 are rounded once
_OPERANDS = {
    "float16": ("f16", {**_F32, "float16": "f16"}),
    "bfloat16": ("bf16", _F32),
    "tfloat32": ("tf32", _F32),
    "float8_e4m3fn": ("e4m3", {**_F32, "float16": "f32"}),
    "float8_e5m2": ("e5m2", {**_F32, "float16": "f32"}),
    "int8": ("s8", {"int32": "s32"}),
    "uint8": ("u8", {"int32": "s32"}),
}


@dataclass(frozen=True)
class GroupEngine:
    """How a product runs.  columns, depth: of an instruction.  reason: why it does not run on as the text lets it."""

    grid: GroupGrid
    columns: int
    depth: int
    kinds: tuple[str, str, str]
    turned: tuple[bool, bool]
    reason: str = ""

    @property
    def form(self) -> str:
        return f"m{ROWS}n{self.columns}k{self.depth}.{'.'.join(self.kinds)}"

    @property
    def name(self) -> str:
        return f"wgmma {self.form}"

    @property
    def instruction(self) -> str:
        """Says that these are tensor cores, as other engines do."""
        return self.form


def choose(call: TileCall, tiles: dict[Any, TensorTile], threads: int, decided: bool = False) -> GroupEngine | str:
    """The engine of a gemm whose operands have the layout of bulk copies, or why there is none.

    decided: where its operands begin in their tiles was looked at before.
    """
    a, b, c = call["a"], call["b"], call["c"]
    dtype = operand_dtype(call)
    if dtype not in _OPERANDS or dtype_of(c.buffer) not in _OPERANDS[dtype][1]:
        return f"no wgmma multiplies {dtype} into {dtype_of(c.buffer)}"
    held = scope(a.buffer) == FRAGMENT
    if scope(c.buffer) != FRAGMENT:
        return f"wgmma accumulates in registers, and `{c.buffer.name}` is in shared memory"
    if b.buffer not in tiles or not (held or a.buffer in tiles):
        return "wgmma takes its operands from tiles that bulk copies fill"
    if held and not _whole_fragment(a):
        return "wgmma takes whole fragments"
    if held and call.boolean("transpose_a"):
        return "wgmma takes A from registers only as it is"
    word = _OPERANDS[dtype][0]
    other = _OPERANDS.get(dtype_of(b.buffer), (word, {}))[0] if dtype != "tfloat32" else word
    turned = call.boolean("transpose_a"), not call.boolean("transpose_b")
    for region, is_turned in ((b, turned[1]),) if held else ((a, turned[0]), (b, turned[1])):
        tile = tiles[region.buffer]
        if is_turned and tile.itemsize != 2:
            return f"wgmma takes `{region.buffer.name}` only with its depth along the rows of memory"
        problem = "" if decided else out_of_step(region, tile, is_turned)
        if problem:
            return problem
    size = tiles[b.buffer].itemsize
    if other != word and size != 1:
        return "the operands have two types"
    rows, columns = extents(c)
    depth = extents(a)[0 if turned[0] else 1]
    if depth * size % STEP:
        return f"a depth of {depth} is no multiple of the instruction's {STEP // size}"
    strip = tiles[b.buffer].piece if turned[1] else COLUMNS
    grid = group_grid(rows, columns, threads, call["policy"], strip)
    if grid is None:
        groups = threads // GROUP
        divide = "1 warp group does not divide" if groups == 1 else f"{groups} warp groups do not divide"
        return f"{divide} C of {rows} by {columns} into whole instructions"
    total = _OPERANDS[dtype][1][dtype_of(c.buffer)]
    count = instruction_columns(columns // grid.across, strip, total == "s32")
    return GroupEngine(grid, count, STEP // size, (total, word, other), turned)


def _whole_fragment(region: RegionOperand) -> bool:
    return all(constant(begin) == 0 for begin in region.begin) and all(
        constant(extent) == constant(size) for extent, size in zip(region.extent, region.buffer.shape)
    )


def registers_of(accumulator: Any, threads: int) -> int:
    """Registers of each thread that a tile of C takes."""
    rows, columns = (int(extent) for extent in accumulator.shape[-2:])
    return rows * columns // threads


def operand_words(left: Any, threads: int) -> int:
    """32-bit registers of each thread that an A in a fragment takes as an operand."""
    return registers_of(left, threads) // _each(left)


def _each(buffer: Any) -> int:
    """Elements of an A operand in one register."""
    return REGISTER // element_bytes(buffer)


def engine_of(call: TileCall, launch: LaunchContext, threads: int) -> GroupEngine | None:
    """The engine of a product that warp groups multiply."""
    if call["c"].buffer not in launch.facts.get(GROUPED, ()):
        return None
    found = choose(call, launch.facts.get(TILES, {}), threads, decided=True)
    return found if isinstance(found, GroupEngine) else None


def constrain(call: TileCall, inference: Inference, engine: GroupEngine) -> None:
    """C has the layout of accumulators; an A in a fragment lies in the threads that multiply it."""
    a, c = call["a"].buffer, call["c"].buffer
    inference.settle(c, group_accumulator(tuple(int(extent) for extent in c.ty.shape), engine.grid), call.span)
    if scope(a) == FRAGMENT:
        layout = group_operand(tuple(int(extent) for extent in a.ty.shape), engine.grid, _each(a))
        known = inference.layout(a)
        if known is None or not same_threads(known, layout):
            inference.settle(a, layout, call.span)


def groups(engine: GroupEngine) -> str:
    """How the warp groups divide C, for people to read."""
    return f"{engine.grid.down} by {engine.grid.across} warp groups"


def lower(call: TileCall, launch: LaunchContext, engine: GroupEngine) -> tir.Stmt:
    """The product for the C registers of one thread."""
    tiles = launch.facts[TILES]
    a, b, c = call["a"], call["b"], call["c"]
    rows, columns = extents(c)
    total = Accumulators(call, launch, engine.columns // 2, engine.kinds[0])
    grid = engine.grid
    slabs, parts = rows // ROWS // grid.down, columns // grid.across // engine.columns
    steps = extents(a)[0 if engine.turned[0] else 1] // engine.depth
    group = launch.thread // GROUP
    down, across = group % grid.down, group // grid.down % grid.across
    first_row, first_column = down * (rows // grid.down), across * (columns // grid.across)
    clear = call["clear_accum"]
    left, right = tiles.get(a.buffer), tiles[b.buffer]
    packing: list[Any] = []
    words = None
    if left is None:
        words = launch.facts.get(PACKED, {}).get(a.buffer)
    if left is None and words is None:
        words = launch.local(slabs * steps * 4, "uint32", "a_operand")
        packing = [tir.AllocBuffer(words), _packed_operand(a.buffer, words, slabs, steps, launch)]

    def descriptor(region: RegionOperand, tile: TensorTile, turned: bool, line: Any, k: Any) -> Any:
        row, column = region.begin[-2:]
        if turned:
            offset = tile.turned(line + column, k) + row * tile.span
        else:
            offset = tile.lines(line + row, k + fold(column // (STEP // tile.itemsize), launch.analyzer))
        return _descriptor(region, tile, offset, turned, launch)

    def multiply(i: int, part: int, k: Any) -> tir.Stmt:
        first: list[Any]
        if left is None:
            first = [tir.BufferLoad(words, [(i * steps + k) * 4 + r]) for r in range(4)]
        else:
            first = [descriptor(a, left, engine.turned[0], first_row + i * ROWS, k)]
        second = descriptor(b, right, engine.turned[1], first_column + part * engine.columns, k)
        turns = engine.turned[1:] if left is None else engine.turned
        modifiers = [] if engine.kinds[0] == "s32" else [1, 1]  # neither operand is negated
        if engine.kinds[1] in ("f16", "bf16"):
            modifiers += [int(turned) for turned in turns]
        text = f"wgmma.mma_async.sync.aligned.{engine.form}"
        return tir.Evaluate(ptx[text](*total.tile(i * parts + part), *first, second, _keep(clear, k), *modifiers))

    def step(k: Any) -> tir.Stmt:
        return sequence([multiply(i, part, k) for i in range(slabs) for part in range(parts)])

    body = [
        *packing,
        *_seen(call, launch),
        *total.before(cleared=False),
        tir.Evaluate(ptx["wgmma.fence.sync.aligned"]()),
        unrolled("k", steps, step),
        tir.Evaluate(ptx["wgmma.commit_group.sync.aligned"]()),
    ]
    if call["asynchronous"] is None or total.moved:
        body += [tir.Evaluate(ptx["wgmma.wait_group.sync.aligned"](0)), _registers_fence(total.total), *total.after()]
    else:
        launch.facts.setdefault(RUNNING, {})[c.buffer] = launch.set
    return sequence(body, call.span)


def _seen(call: TileCall, launch: LaunchContext) -> list[tir.Stmt]:
    """What threads wrote into the operands is there for matrix instructions."""
    written = launch.facts.get(WRITTEN, ())
    if not any(call[name].buffer in written for name in "ab"):
        return []
    return [tir.Evaluate(ptx["fence.proxy.async.shared::cta"](), call.span)]


def _packed_operand(buffer: Any, words: Any, slabs: int, steps: int, launch: LaunchContext) -> tir.Stmt:
    """A in registers of one to four elements, all of it before the first product: none may change while one runs."""
    layout, held, each = launch.layouts[buffer], launch.registers[buffer], _each(buffer)

    def element(line: Any, along: Any) -> Any:
        # The digits on the thread are those of the executing one: the register depends on the others alone.
        index = [tir.const(0, "int32")] * (len(layout.shape) - 2) + [line, along]
        return tir.BufferLoad(held, [fold(layout.forward(index)[1], launch.analyzer)])

    def step(i: Any, k: Any) -> tir.Stmt:
        stores = []
        for half in range(2):
            for r in range(2):
                along = k * (2 * 4 * each) + r * 4 * each
                value = packed([element(i * ROWS + half * 8, along + p) for p in range(each)])
                stores.append(tir.BufferStore(words, value, [(i * steps + k) * 4 + r * 2 + half]))
        return sequence(stores)

    return unrolled("i", slabs, lambda i: unrolled("k", steps, lambda k: step(i, k)))


def written(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """All of an accumulator is in its registers: the device compiler would write zeros into some of them while the
    first instruction of a product runs, and wait for it, or let no product run on.
    """
    registers = launch.registers.get(call["accumulator"].buffer)
    return nothing(call.span) if registers is None else _registers_fence(registers)


def pack(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """The A of a product that runs on, packed before it starts."""
    buffer, words = call["source"].buffer, call["packed"].buffer
    steps = int(buffer.ty.shape[-1]) * REGISTER // _each(buffer) // STEP
    slabs = int(words.ty.shape[0]) // (4 * steps)
    return sequence([_packed_operand(buffer, words, slabs, steps, launch)], call.span)


def wait(call: TileCall, launch: LaunchContext) -> tir.Stmt:
    """T.wait_wgmma: all but the last products of these threads are finished."""
    every: dict[Any, ThreadSet] = launch.facts.get(RUNNING, {})
    if not every:
        return nothing(call.span)
    running = [buffer for buffer, part in every.items() if buffer in launch.registers and part.meets(launch.set)]
    pending = 0 if MIXED in launch.facts else call.integer("pending")
    if call["accumulator"] is not None:
        running = [call["accumulator"].buffer]
    elif pending:
        running = []  # it is not known which of them are over
    waiting = tir.Evaluate(ptx["wgmma.wait_group.sync.aligned"](pending))
    return sequence([waiting, *(_registers_fence(launch.registers[buffer]) for buffer in running)], call.span)


def fences_in_scope(node: Any, visible: frozenset[Any] = frozenset()) -> Any:
    """A statement without the fences of accumulators that are allocated inside of another one, where nobody uses them
    any more.
    """
    if isinstance(node, tir.SeqStmt):
        made = []
        for one in statements(node):
            if isinstance(one, tir.AllocBuffer):
                visible |= {one.buffer}
            made.append(fences_in_scope(one, visible))
        return sequence(made, node.span)
    fenced = node.body if isinstance(node, tir.For) else node
    if isinstance(fenced, tir.Evaluate) and _fence_of(fenced.value) not in (None, *visible):
        return nothing(node.span)
    return map_children(node, lambda one: fences_in_scope(one, visible))


def _fence_of(call: Any) -> Any:
    """The array whose registers a call orders; None for any other one."""
    if getattr(getattr(call, "op", None), "name", "") != "tirx.call_extern" or call.args[0].value != REGISTER_FENCE:
        return None
    return call.args[1].source


def _registers_fence(registers: Any) -> tir.Stmt:
    """No use of the accumulators moves to before this."""
    return unrolled(
        "i",
        int(registers.ty.shape[0]),
        lambda i: tir.Evaluate(tir.call_extern("void", REGISTER_FENCE, tir.BufferLoad(registers, [i]))),
    )


def _keep(clear: Any, k: Any) -> Any:
    """Whether the accumulator is added: not in the first step of a product that clears it."""
    if isinstance(clear, tir.IntImm):
        return k > 0 if int(clear) else tir.const(True, "bool")
    return tir.Or(tir.Not(clear), k > 0)


def _descriptor(region: RegionOperand, tile: TensorTile, offset: Any, turned: bool, launch: LaunchContext) -> Any:
    """The matrix that begins `offset` bytes after the start of a version of the tile."""
    element = fold(
        offset // tile.itemsize if not isinstance(offset, int) else tir.const(offset // tile.itemsize, "int32"),
        launch.analyzer,
    )
    row, column = fold(element // tile.columns, launch.analyzer), fold(element % tile.columns, launch.analyzer)
    address = tir.address_of(tir.BufferLoad(region.buffer, [*region.begin[:-2], row, column]))
    leading, stride, layout = tile.descriptor(turned)
    words = [tir.const(value, "int32") for value in (leading, stride, layout)]
    return tir.call_pure_extern("uint64", DESCRIPTOR, address, *words)


assert TURNED_DEPTH * 2 == STEP
