"""Whether a launch with pipelined loops is divided into roles on sm_90a: one warp group copies, the others compute.

It does where every copy that runs ahead can be a bulk copy, every tile that they fill is an operand of products of
warp groups and of nothing else, and the copying threads can follow the control flow without reading memory.  Where it
does not, the reason is a decision of the launch, and the pipeline is one of cp.async.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation_name, read

from ..architecture import capability
from ..context import FRAGMENT, LaunchContext
from ..gemm import wgmma
from ..launches import THREAD_EXTENT
from ..legalise import whole
from ..loop_effects import Effects
from ..plan_pipelines import Pipeline, with_versions
from ..rewrite import Load, constant, dtype_of, has, map_children, scope, statements, variables, walk
from ..shared_memory import shared_memory_limit
from ..views import views
from .epilogue import Epilogue, find_epilogue, parts_of, size_of_tile
from .operand_tiles import ENABLE, shallow
from .overlap import Overlap, find_overlap
from .persistent import Persistent, persistent
from .tensor_tiles import ALIGNMENT, TensorTile, tensor_tile

ARCHITECTURE = "sm_90a"
IN_TURN = "tl.products_in_turn"  # the option: no product runs beside other statements
DISABLE = ("tl.disable_warp_specialized", "tl.disable_tma_lower", "tl.disable_wgmma")
MOST_RANK = 5
GROUP = 128
# By the number of computing warp groups: registers of a thread that copies and of one that computes, together at most
# what the block starts with.  None: there are as many as a thread can have.
SHARES: dict[int, tuple[int, int] | None] = {1: None, 2: (40, 232), 3: (32, 160)}
# What every thread starts with, which is what the device compiler takes as the limit of one instruction.
AT_FIRST = {1: 255, 2: 168, 3: 128}
OTHER_VALUES = 32  # registers beside the accumulators
# Operations that keep their meaning when fewer threads than those of the block run them.
_CARRIED = {
    *("copy", "fill", "transpose", "gemm", "reduce", "cumulate", "reducer", "finalize_reducer", "atomic_region"),
    *("atomic_element", "atomic_load", "atomic_store", "assume", "annotate_layout", "use_swizzle", "region"),
}
_BARRIER_BYTES = 16


@dataclass(frozen=True)
class Specialisation:
    """tiles: of the copies that run ahead.  consumers: threads that compute, those of the text.  turns: per loop, how
    many turns of it earlier executions have made.  epilogue: the copy of results that goes through shared memory.
    resident: copies into tiles that stay for the whole launch, by the copying role too.  staying: how blocks do the
    work of several.  overlaps: how the products of a loop run beside what lies between them, by its variable.
    """

    tiles: dict[Any, TensorTile]
    consumers: int
    plans: tuple[Pipeline, ...]
    turns: dict[Any, Any]
    epilogue: Epilogue | None = None
    resident: tuple[TileCall, ...] = ()
    staying: Persistent | None = None
    overlaps: dict[Any, Overlap] = field(default_factory=dict)


def enabled(launch: LaunchContext) -> bool:
    """Do the architecture and the options of the compilation ask for it?"""
    options = launch.options
    return launch.arch == ARCHITECTURE and bool(options.get(ENABLE)) and not any(options.get(name) for name in DISABLE)


def specialisation(function: Any, plans: list[Pipeline], launch: LaunchContext) -> Specialisation | NoRoles:
    """How the launch is divided into roles, or why it is not."""
    assert capability(launch.arch) >= 90
    try:
        return _Decision(function, plans, launch).made()
    except _No as no:
        return NoRoles(str(no), no.span)


class NoRoles(str):
    """Why a launch is not divided.  span: of the statement that it speaks of, None for the pipelined loop."""

    span: Any = None

    def __new__(cls, reason: str, span: Any = None) -> NoRoles:
        made = super().__new__(cls, reason)
        made.span = span
        return made


class _No(Exception):
    def __init__(self, reason: str, span: Any = None):
        super().__init__(reason)
        self.span = span


class _Decision:
    def __init__(self, function: Any, plans: list[Pipeline], launch: LaunchContext):
        self.function, self.plans, self.launch = function, plans, launch
        self.engines: dict[Any, wgmma.GroupEngine] = {}  # by accumulator
        self.resident: dict[Any, TileCall] = {}  # by tile
        self.products: list[Any] = []  # statements
        self.operands: dict[Any, int] = {}  # registers of A in fragments
        self.bound: dict[Any, Any] = {}
        walk(function.body, (tir.Bind, lambda node: self.bound.update({node.var: node.value})))

    def made(self) -> Specialisation:
        if not self.plans:
            raise _No("no copy runs ahead")
        self._block()
        self._body()
        tiles: dict[Any, TensorTile] = {}
        for plan in self.plans:
            for producer in (one for group in plan.groups for one in group):
                if producer.target in tiles:
                    raise _No(f"several loops fill `{producer.target.name}`", producer.call.span)
                if producer.condition is not None:
                    raise _No(f"the copy into `{producer.target.name}` stands under a condition", producer.call.span)
                tiles[producer.target] = self._tile(producer.call)
            self._left_behind(plan)
        self._find_resident(tiles)
        self._sources_stay()
        for plan in self.plans:
            self._uses(plan, tiles)
        self._stay_unused_elsewhere()
        self._registers()
        turns = {plan.loop.loop_var: self._turns(plan) for plan in self.plans}
        plans, room = self._fitting()
        epilogue = find_epilogue(_work(self.function.body), self.engines, self.function, self.launch, room)
        resident = tuple(self.resident.values())
        staying = None
        if SHARES[self.launch.threads // GROUP] is not None and not resident:  # with fewer threads several fit at once
            staying = persistent(self.function, plans, self.launch.options)
        if staying is not None:
            turns = {plan.loop.loop_var: staying.turn * plan.loop.extent for plan in plans}
        overlaps: dict[Any, Overlap] = {}
        for plan in plans:
            found = find_overlap(plan, {})
            if found is not None and not self.launch.options.get(IN_TURN) and self._run_on(found):
                overlaps[plan.loop.loop_var] = found
        return Specialisation(tiles, self.launch.threads, plans, turns, epilogue, resident, staying, overlaps)

    @staticmethod
    def _run_on(found: Overlap) -> bool:
        """Products accumulate in the registers of C themselves."""
        return all(dtype_of(call["c"].buffer) == "float32" for call in (found.first, found.second))

    # ---- the launch ----

    def _block(self) -> None:
        extents: dict[str, int | None] = {}
        walk(
            self.function.body,
            (
                tir.AttrStmt,
                lambda node: (
                    extents.update({str(node.node.thread_tag): constant(node.value)})
                    if node.attr_key == THREAD_EXTENT
                    else None
                ),
            ),
        )
        along = [extent for tag, extent in extents.items() if tag.startswith("threadIdx") and extent != 1]
        if len(along) != 1 or extents.get("threadIdx.x") != self.launch.threads:
            raise _No("the threads of the block have several dimensions")
        threads = self.launch.threads
        if threads % GROUP or threads // GROUP not in SHARES:
            raise _No(f"{threads} threads are not 1, 2 or 3 warp groups")

    def _body(self) -> None:
        """Nothing in the launch may depend on how many threads the block has."""
        found: list[str] = []

        def call(node: Any) -> None:
            name = operation_name(node)
            if name is not None:
                if name not in _CARRIED:
                    found.append(f"`T.{name}` speaks of the threads of the block")
            elif getattr(node.op, "name", "") == "tirx.call_extern" and str(node.args[0].value).startswith("__sync"):
                found.append("the text synchronises threads by itself")
            elif getattr(node.op, "name", "") in ("tirx.tvm_storage_sync", "tirx.address_of", "tirx.tvm_access_ptr"):
                found.append("the text synchronises threads, or takes addresses")

        def attribute(node: Any) -> None:
            if node.attr_key != THREAD_EXTENT:
                found.append("the text divides the warps by itself")

        tvm_ffi.structural_walk(self.function.body, [(tvm.ir.Call, call), (tir.AttrStmt, attribute)])
        walk(self.function.body, (tir.DeclBuffer, lambda node: found.append(f"`{node.buffer.name}` is a view")))
        if found:
            raise _No(found[0])

    # ---- copies ----

    def _left_behind(self, plan: Pipeline) -> None:
        """All copies from global to shared memory of the loop must run ahead: others would wait for themselves."""
        ahead = {producer.position for group in plan.groups for producer in group}
        for position, node in enumerate(plan.body):
            if position in ahead or not isinstance(node, tir.Evaluate) or operation_name(node.value) != "copy":
                continue
            call = read(node.value, node.span)
            if scope(call["source"].buffer) == "global" and scope(call["target"].buffer).startswith("shared"):
                raise _No(f"the copy into `{call['target'].buffer.name}` cannot run ahead", call.span)

    def _find_resident(self, tiles: dict[Any, TensorTile]) -> None:
        """Copies in front of the loops into tiles that products of the loops take."""
        wanted: set[Any] = set()
        for plan in self.plans:
            for node in plan.body:
                if isinstance(node, tir.Evaluate) and operation_name(node.value) == "gemm":
                    call = read(node.value, node.span)
                    wanted |= {call[name].buffer for name in "ab"}
        for node in statements(_work(self.function.body)):
            if not isinstance(node, tir.Evaluate) or operation_name(node.value) != "copy":
                continue
            call = read(node.value, node.span)
            target = call["target"]
            if target.buffer not in wanted or target.buffer in tiles or scope(call["source"].buffer) != "global":
                continue
            if not scope(target.buffer).startswith("shared") or not whole(target):
                continue
            if target.buffer in self.resident:
                raise _No(f"`{target.buffer.name}` is copied twice", call.span)
            tiles[target.buffer] = self._tile(call)
            self.resident[target.buffer] = call

    def _sources_stay(self) -> None:
        """Nothing that the computing threads write is copied: the copying ones do not wait for it."""
        ahead = [producer.call for plan in self.plans for group in plan.groups for producer in group]
        written = Effects(self.function.body, views(self.function.body)).writes
        for call in [*ahead, *self.resident.values()]:
            if call["source"].buffer in written:
                raise _No(f"`{call['source'].buffer.name}` is written, while copies of it run ahead", call.span)

    def _stay_unused_elsewhere(self) -> None:
        """Resident tiles are operands of the products that were looked at, and nothing else."""
        uses: dict[Any, int] = dict.fromkeys(self.resident, 0)

        def count(node: Any) -> None:
            mentioned = _mentioned(node) & uses.keys()
            for tile in mentioned:
                uses[tile] += 1

        for part in parts_of(self.function.body):
            count(part)
        for tile in uses:
            mine = sum(tile in _mentioned(node) for node in self.products)
            if uses[tile] != mine + 1:
                raise _No(f"`{tile.name}` is used by more than products")

    def _tile(self, call: TileCall) -> TensorTile:
        target = call["target"].buffer
        name = target.name
        if call["disable_tma"] is not None and call.boolean("disable_tma"):
            raise _No(f"the copy into `{name}` is not to be a bulk copy", call.span)
        tile = tensor_tile(target)
        if target in getattr(self.launch, "orders", {}):
            raise _No(f"`{name}` has a layout of the text", call.span)
        if tile is None or len(target.shape) != 2:
            raise _No(f"no bulk copy fills a tile of the shape of `{name}`", call.span)
        source: RegionOperand = call["source"]
        array = source.buffer
        extents = [constant(extent) for extent in source.extent]
        if len(extents) > MOST_RANK or tuple(array.ty.strides or ()):
            raise _No(f"`{array.name}` has too many dimensions or strides of its own", call.span)
        if [extent for extent in extents if extent != 1] != [tile.rows, tile.columns] or extents[-1] != tile.columns:
            raise _No(f"the region of `{array.name}` is no box of the shape of `{name}`", call.span)
        if array not in self.function.params:
            raise _No(f"`{array.name}` is no parameter", call.span)
        width = constant(array.shape[-1])
        if not width or width * tile.itemsize % 16:
            raise _No(f"the rows of `{array.name}` are not known to be multiples of 16 bytes", call.span)
        for begin in source.begin:
            if dtype_of(begin) != "int32":
                raise _No(f"an index of `{array.name}` has 64 bits", call.span)
            self._followed(begin)
        return tile

    # ---- uses ----

    def _uses(self, plan: Pipeline, tiles: dict[Any, TensorTile]) -> None:
        """The tiles of a loop are whole operands of products that stand directly in it."""
        mine = set(plan.tiles)
        ahead = {producer.position for group in plan.groups for producer in group}
        products = 0
        for position, node in enumerate(plan.body):
            if position in ahead or not mine & _mentioned(node):
                continue
            name = operation_name(node.value) if isinstance(node, tir.Evaluate) else None
            if name != "gemm":
                raise _No("a tile that is copied ahead is used by more than products", node.span)
            call = read(node.value, node.span)
            for operand in ("a", "b"):
                buffer = call[operand].buffer
                held = operand == "a" and scope(buffer) == FRAGMENT
                if buffer not in mine and buffer not in self.resident and not held:
                    raise _No(f"`{buffer.name}` is not copied ahead in the loop of its product", call.span)
                if held:
                    self.operands[buffer] = wgmma.registers_of(buffer, self.launch.threads) // wgmma.HALVES
            self._product(call, tiles)
            self.products.append(node)
            products += 1
        if not products:
            raise _No("the loop multiplies nothing", plan.loop.span)

    def _product(self, call: TileCall, tiles: dict[Any, TensorTile]) -> None:
        found = wgmma.choose(call, tiles, self.launch.threads)
        if isinstance(found, str):
            raise _No(found, call.span)
        accumulator = call["c"].buffer
        if self.engines.setdefault(accumulator, found).grid != found.grid:
            raise _No(f"products divide `{accumulator.name}` in different ways", call.span)
        faster = shallow(call, self.launch.threads)
        if faster and self.launch.options.get(ENABLE) is not True:
            raise _No(faster, call.span)

    def _registers(self) -> None:
        """The accumulators fit into the registers of the computing threads."""
        held = sum(wgmma.registers_of(accumulator, self.launch.threads) for accumulator in self.engines)
        held += sum(self.operands.values())
        groups = self.launch.threads // GROUP
        one = max(engine.columns // 2 for engine in self.engines.values())
        if one > AT_FIRST[groups] - OTHER_VALUES:
            raise _No(f"one instruction takes {one} registers, and {AT_FIRST[groups] - OTHER_VALUES} are free for it")
        most = (SHARES[groups] or (0, AT_FIRST[groups]))[1] - OTHER_VALUES
        if held > most:
            raise _No(f"accumulators and operands take {held} registers of a thread, and {most} are free for them")

    # ---- control flow ----

    def _turns(self, plan: Pipeline) -> Any:
        """How many turns earlier executions of the loop have made: loops around it, each of as many turns always."""
        around = _around(self.function.body, plan.loop)
        total: Any = tir.const(0, dtype_of(plan.loop.loop_var))
        inner: set[Any] = set()
        for node in around:
            if isinstance(node, tir.IfThenElse):
                self._followed(node.condition)
            elif isinstance(node, tir.For):
                inner.add(node.loop_var)
            else:
                raise _No("a `while` stands around the pipelined loop")
        every = [node for node in around if isinstance(node, tir.For)]
        for node in [*every, plan.loop]:
            if int(node.kind) not in (tir.ForKind.SERIAL, tir.ForKind.UNROLLED):
                raise _No("the pipelined loop stands in a loop of threads")
            if has(node.body, (tir.Break, tir.Continue)) or _has_jump_call(node.body):
                raise _No("the pipelined loop, or a loop around it, is left early")
            self._followed(node.min)
            self._followed(node.extent)
        if every:
            if any(isinstance(node, tir.IfThenElse) for node in around):
                raise _No("a condition stands around the pipelined loop, and a loop around that")
            if any(inner & variables(node.extent) for node in [*every, plan.loop]):
                raise _No("loops around the pipelined loop change its number of turns")
            for node in every:
                total = total * node.extent + (node.loop_var - node.min)
            total = total * plan.loop.extent
        return total

    def _followed(self, expr: Any) -> None:
        """The copying threads compute an expression for themselves."""
        used = variables(expr)
        if has(expr, Load) or set(self.launch.axes) & used:
            raise _No("the copying threads cannot follow the control flow around the pipelined loop")
        for var in used & self.bound.keys():
            self._followed(self.bound[var])

    # ---- memory ----

    def _fitting(self) -> tuple[tuple[Pipeline, ...], int]:
        """The plans with as many stages as shared memory holds; and the bytes that are left.

        Roles are not in step, so every tile has a place of its own.
        """
        plans = list(self.plans)
        limit = shared_memory_limit(self.launch.arch)
        while True:
            barriers = sum(_BARRIER_BYTES * plan.stages * len(plan.groups) for plan in plans) + ALIGNMENT
            needed = _bytes_of_tiles(with_versions(self.function.body, plans)) + barriers
            if needed <= limit:
                return tuple(plans), limit - needed
            deepest = max(plan.stages for plan in plans)
            if deepest == 1:
                raise _No(f"the tiles take {needed} bytes of shared memory where each has a place of its own")
            plans = [replace(plan, stages=min(plan.stages, deepest - 1)) for plan in plans]


def _bytes_of_tiles(body: Any) -> int:
    """Bytes of all shared tiles, each at a multiple of what swizzles need."""
    sizes: list[int] = []

    def note(node: Any) -> None:
        if scope(node.buffer).startswith("shared"):
            sizes.append(size_of_tile(node.buffer))

    walk(body, (tir.AllocBuffer, note))
    return sum(sizes)


def _work(node: Any) -> Any:
    """The body of a launch, inside of its axes."""
    while isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        node = node.body
    return node


def _mentioned(node: Any) -> set[Any]:
    found: set[Any] = set()
    tvm_ffi.structural_walk(node, (tvm.ir.Var, found.add))
    return found


def _has_jump_call(node: Any) -> bool:
    found: list[Any] = []

    def visit(call: Any) -> None:
        if getattr(call.op, "name", "") in ("tirx.break_loop", "tirx.continue_loop"):
            found.append(call)

    tvm_ffi.structural_walk(node, (tvm.ir.Call, visit))
    return bool(found)


def _around(body: Any, loop: Any) -> list[Any]:
    """The statements that decide whether and how often a loop runs, from the outside in."""
    path: list[Any] = []

    def find(node: Any, stack: list[Any]) -> None:
        if isinstance(node, tir.For) and node.loop_var.same_as(loop.loop_var):
            path.extend(stack)
            return
        inside = [*stack, node] if isinstance(node, tir.For | tir.While | tir.IfThenElse) else stack

        def visit(child: Any) -> Any:
            find(child, inside)
            return child

        map_children(node, visit)

    find(body, [])
    return path
