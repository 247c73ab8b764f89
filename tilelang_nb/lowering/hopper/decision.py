"""Whether a launch with pipelined loops is divided into roles on sm_90a: one warp group copies, the others compute.

It does where every copy that runs ahead can be a bulk copy, every loop has a product of warp groups, and the copying
threads can follow the control flow, reading no memory but what the launch leaves as it is.  Other statements may read
the tiles, too, and the computing threads may write operands themselves, as they do with weights that they widen.  Where
a launch is not divided, the reason is one of its decisions, and the pipeline is one of cp.async.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall, operation_name, read, statement_name
from tilelang_nb.layout.wgmma import GROUP

from ..architecture import capability
from ..context import FRAGMENT, LaunchContext
from ..gemm import wgmma
from ..launches import THREAD_EXTENT
from ..legalise import whole
from ..loop_effects import Effects, orders_blocks
from ..ops.accumulator_store import box_of
from ..plan_pipelines import Pipeline, with_versions
from ..rewrite import constant, dtype_of, scope, statements, variables, walk
from ..shared_memory import shared_memory_limit
from ..views import views
from .bulk_loads import bulk_tile
from .epilogue import Epilogue, find_epilogue, parts_of, size_of_tile
from .followed import Followed, work_of
from .operand_tiles import ENABLE, OTHER_VALUES, Products, shallow
from .overlap import Overlap, find_overlap
from .persistent import Persistent, persistent
from .refusal import Refused
from .tensor_tiles import ALIGNMENT, TensorTile, tensor_tile
from .tile_statements import is_product
from .uneven_blocks import LongestFirst, longest_first

ARCHITECTURE = "sm_90a"
IN_TURN = "tl.products_in_turn"  # the option: no product runs beside other statements
DISABLE = ("tl.disable_warp_specialized", "tl.disable_tma_lower", "tl.disable_wgmma")
# By the number of computing warp groups: registers of a thread that copies and of one that computes, together at most
# what the block starts with.  None: there are as many as a thread can have.
SHARES: dict[int, tuple[int, int] | None] = {1: None, 2: (40, 232), 3: (32, 160)}
# What every thread starts with, which is what the device compiler takes as the limit of one instruction.
AT_FIRST = {1: 255, 2: 168, 3: 128}
# What a computing thread has where registers are not divided: 255, and the one that is always 0.  All of it is taken by
# attention of 128 rows, 64 keys and heads of 128, which is 1.09 to 1.21 times as fast by wgmma as by mma.sync.
WITHOUT_SHARES = 256
# Operations that keep their meaning when fewer threads than those of the block run them.
_CARRIED = {
    *("copy", "fill", "transpose", "gemm", "reduce", "cumulate", "reducer", "finalize_reducer", "atomic_region"),
    *("atomic_element", "atomic_load", "atomic_store", "assume", "annotate_layout", "use_swizzle", "region"),
    "im2col",
    *("tma_copy", "store_arrive", "store_wait"),  # into global memory
}
_BARRIER_BYTES = 16
RESIDENT_VERSIONS = 2  # of the tiles that are copied once for each work: of this one and of the next


@dataclass(frozen=True)
class Specialisation:
    """tiles: of the copies that run ahead.  consumers: threads that compute, those of the text.  turns: per loop, how
    many turns of it earlier executions have made.  epilogue: the copy of results that goes through shared memory.
    resident: copies into tiles that stay for the whole launch, by the copying role too.  staying: how blocks do the
    work of several.  overlaps: how the products of a loop run beside what lies between them, by its variable.
    read: tiles that are copied ahead and read by other statements than products of warp groups.  made: tiles of such
    products that the computing threads write.  accumulators: of those products.  counted: variables of loops whose
    turns the roles count, in the variable that `turns` has for them.
    """

    tiles: dict[Any, TensorTile]
    consumers: int
    plans: tuple[Pipeline, ...]
    turns: dict[Any, Any]
    epilogue: Epilogue | None = None
    resident: tuple[TileCall, ...] = ()
    staying: Persistent | None = None
    overlaps: dict[Any, Overlap] = field(default_factory=dict)
    read: frozenset[Any] = frozenset()
    made: frozenset[Any] = frozenset()
    accumulators: frozenset[Any] = frozenset()
    counted: frozenset[Any] = frozenset()
    resident_versions: int = 1  # of the tiles that `resident` fills


def enabled(launch: LaunchContext) -> bool:
    """Do the architecture and the options of the compilation ask for it?"""
    options = launch.options
    return launch.arch == ARCHITECTURE and bool(options.get(ENABLE)) and not any(options.get(name) for name in DISABLE)


def specialisation(function: Any, plans: list[Pipeline], launch: LaunchContext) -> Specialisation | NoRoles:
    """How the launch is divided into roles, or why it is not."""
    assert capability(launch.arch) >= 90
    try:
        return _Decision(function, plans, launch).made()
    except Refused as no:
        return NoRoles(str(no), no.span)


class NoRoles(str):
    """Why a launch is not divided.  span: of the statement that it speaks of, None for the pipelined loop."""

    span: Any = None

    def __new__(cls, reason: str, span: Any = None) -> NoRoles:
        made = super().__new__(cls, reason)
        made.span = span
        return made


class _Decision:
    def __init__(self, function: Any, plans: list[Pipeline], launch: LaunchContext):
        self.function, self.plans, self.launch = function, plans, launch
        self.engines: dict[Any, wgmma.GroupEngine] = {}  # by accumulator
        self.resident: dict[Any, TileCall] = {}  # by tile
        self.products: list[Any] = []  # statements
        self.operands: dict[Any, int] = {}  # registers of A in fragments
        self.read: set[Any] = set()
        self.read_in: set[Any] = set()  # variables of the loops that do so
        self.written: set[Any] = set()
        self.followed = Followed(function, launch)

    def made(self) -> Specialisation:
        if not self.plans:
            raise Refused("no copy runs ahead")
        self._block()
        self._body()
        tiles: dict[Any, TensorTile] = {}
        operands = self._operands()
        for plan in self.plans:
            if constant(plan.loop.extent) == 0:
                raise Refused("the loop makes no turn")
            for producer in (one for group in plan.groups for one in group):
                if producer.target in tiles:
                    raise Refused(f"several loops fill `{producer.target.name}`", producer.call.span)
                if producer.condition is not None:
                    raise Refused(
                        f"the copy into `{producer.target.name}` stands under a condition", producer.call.span
                    )
                tiles[producer.target] = self._tile(producer.call, operands)
            self._left_behind(plan)
        self._find_resident(tiles, operands)
        self._sources_stay()
        for plan in self.plans:
            self._uses(plan, tiles)
        self._other_products(tiles)
        self._stay_unused_elsewhere()
        self._registers()
        turns = {plan.loop.loop_var: self.followed.turns(plan) for plan in self.plans}
        counted = frozenset(var for var, known in turns.items() if known is None)
        turns |= {var: tir.Var("done", dtype_of(var)) for var in counted}
        plans, room = self._fitting()
        epilogue = find_epilogue(work_of(self.function.body), self.engines, self.function, self.launch, room)
        resident = tuple(self.resident.values())
        staying: Persistent | None = None
        several = SHARES[self.launch.threads // GROUP] is None  # blocks fit on a multiprocessor at once
        if resident and not several and self._room_ahead(epilogue, room):
            staying = longest_first(self.function, plans, self.launch)
        elif not resident and not several:
            staying = persistent(self.function, plans, self.launch)
        versions = RESIDENT_VERSIONS if resident and staying is not None else 1
        if isinstance(staying, LongestFirst):
            counted = frozenset(turns)
            turns = {var: tir.Var("done", dtype_of(var)) for var in counted}
        elif staying is not None:
            turns = {plan.loop.loop_var: staying.turn * plan.loop.extent for plan in plans}
        overlaps: dict[Any, Overlap] = {}
        for plan in plans:
            found = find_overlap(plan, {})
            if found is not None and plan.loop.loop_var not in self.read_in and self._run_on(found):
                overlaps[plan.loop.loop_var] = found
        uses = frozenset(self.read), frozenset(self.written), frozenset(self.engines), counted, versions
        return Specialisation(tiles, self.launch.threads, plans, turns, epilogue, resident, staying, overlaps, *uses)

    def _room_ahead(self, epilogue: Epilogue | None, room: int) -> bool:
        """Is there room for the tiles of the next work beside boxes for the results of this one?"""
        if epilogue is None or self.read & self.resident.keys():
            return False
        boxes = epilogue.slots * epilogue.groups * box_of(dtype_of(epilogue.call["target"].buffer)).bytes
        freed = 0 if epilogue.tile is None else size_of_tile(epilogue.tile)
        return (RESIDENT_VERSIONS - 1) * sum(map(size_of_tile, self.resident)) <= room + freed - boxes

    def _run_on(self, found: Overlap) -> bool:
        """Products may run on: they accumulate in the registers of C themselves, of tiles that bulk copies fill."""
        calls = (found.first, found.second)
        operands = {call[name].buffer for call in calls for name in "ab"}
        if self.launch.options.get(IN_TURN) or self.written & operands:
            return False
        return all(dtype_of(call["c"].buffer) == "float32" for call in calls)

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
            raise Refused("the threads of the block have several dimensions")
        threads = self.launch.threads
        if threads % GROUP or threads // GROUP not in SHARES:
            raise Refused(f"{threads} threads are not 1, 2 or 3 warp groups")

    def _body(self) -> None:
        """Nothing in the launch may depend on how many threads the block has."""
        found: list[str] = []

        def call(node: Any) -> None:
            name = operation_name(node)
            if name is not None:
                if name == "thread_fence":
                    found.append("the text orders what blocks do by a fence")
                elif name not in _CARRIED or (name == "tma_copy" and read(node)["barrier"] is not None):
                    found.append(f"`T.{name}` speaks of the threads of the block")
                elif name.startswith("atomic_") and orders_blocks(read(node)):
                    found.append("blocks wait for each other by an atomic operation")
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
            raise Refused(found[0])

    # ---- copies ----

    def _left_behind(self, plan: Pipeline) -> None:
        """All copies from global to shared memory of the loop must run ahead: others would wait for themselves."""
        ahead = {producer.position for group in plan.groups for producer in group}
        for position, node in enumerate(plan.body):
            if position in ahead or statement_name(node) != "copy":
                continue
            call = read(node.value, node.span)
            if scope(call["source"].buffer) == "global" and scope(call["target"].buffer).startswith("shared"):
                raise Refused(f"the copy into `{call['target'].buffer.name}` cannot run ahead", call.span)

    def _operands(self) -> set[Any]:
        """What products of the loops take."""
        wanted: set[Any] = set()
        for plan in self.plans:
            for node in filter(is_product, plan.body):
                call = read(node.value, node.span)
                wanted |= {call[name].buffer for name in "ab"}
        return wanted

    def _find_resident(self, tiles: dict[Any, TensorTile], wanted: set[Any]) -> None:
        """Copies in front of the loops into tiles that products of the loops take."""
        for node in statements(work_of(self.function.body)):
            if statement_name(node) != "copy":
                continue
            call = read(node.value, node.span)
            target = call["target"]
            if target.buffer not in wanted or target.buffer in tiles or scope(call["source"].buffer) != "global":
                continue
            if not scope(target.buffer).startswith("shared") or not whole(target):
                continue
            if target.buffer in self.resident:
                raise Refused(f"`{target.buffer.name}` is copied twice", call.span)
            tiles[target.buffer] = self._tile(call, wanted)
            self.resident[target.buffer] = call

    def _sources_stay(self) -> None:
        """Nothing that the computing threads write is copied: the copying ones do not wait for it."""
        ahead = [producer.call for plan in self.plans for group in plan.groups for producer in group]
        written = Effects(self.function.body, views(self.function.body)).writes
        for call in [*ahead, *self.resident.values()]:
            if call["source"].buffer in written:
                raise Refused(f"`{call['source'].buffer.name}` is written, while copies of it run ahead", call.span)

    def _stay_unused_elsewhere(self) -> None:
        """Resident tiles are operands of the products that were looked at, and nothing else."""
        if not self.resident:
            return
        uses = [variables(part) for part in parts_of(self.function.body)]
        mine = [variables(node) for node in self.products]
        for tile in self.resident:
            if sum(tile in used for used in uses) != sum(tile in used for used in mine) + 1:
                raise Refused(f"`{tile.name}` is used by more than products")

    def _tile(self, call: TileCall, operands: set[Any]) -> TensorTile:
        return bulk_tile(call, self.function, self.launch, call["target"].buffer in operands, self.followed)

    # ---- uses ----

    def _uses(self, plan: Pipeline, tiles: dict[Any, TensorTile]) -> None:
        """The products of warp groups in the loop, and what else uses tiles that are copied ahead."""
        mine = set(plan.tiles)
        ahead = {producer.position for group in plan.groups for producer in group}
        misfit: tuple[str, Any] = "the products of the loop stand under conditions, or in loops inside of it", None
        products = 0
        for position, node in enumerate(plan.body):
            if position in ahead:
                continue
            problem = self._product(node, mine, tiles) if is_product(node) else ""
            if problem is None:
                self.products.append(node)
                products += 1
                continue
            if problem:
                misfit = problem, node.span
                self.launch.facts.setdefault(wgmma.REFUSED, {})[read(node.value)["c"].buffer] = problem
            used = mine & variables(node)
            self.read |= used
            self.read_in |= {plan.loop.loop_var} if used else set()
        if not products:
            raise Refused(*misfit)

    def _product(self, node: Any, mine: set[Any], tiles: dict[Any, TensorTile]) -> str | None:
        """Why a product is none of warp groups, as far as others may be; None where it is."""
        call = read(node.value, node.span)
        made: dict[Any, TensorTile] = {}
        for operand in ("a", "b"):
            buffer = call[operand].buffer
            if buffer in mine or buffer in self.resident or (operand == "a" and scope(buffer) == FRAGMENT):
                continue
            tile = tensor_tile(buffer) if scope(buffer).startswith("shared") else None
            if buffer in tiles and buffer not in self.written:
                raise Refused(f"`{buffer.name}` is not copied ahead in the loop of its product", node.span)
            if tile is None or buffer in self.launch.orders:
                return f"`{buffer.name}` does not lie as wgmma takes it"
            made[buffer] = tile
        found = wgmma.choose(call, {**tiles, **made}, self.launch.threads)
        if isinstance(found, str):
            return found
        accumulator = call["c"].buffer
        if self.engines.setdefault(accumulator, found).grid != found.grid:
            raise Refused(f"products divide `{accumulator.name}` in different ways", node.span)
        faster = shallow(call, self.launch.threads)
        if faster and self.launch.options.get(ENABLE) is not True:
            raise Refused(faster, node.span)
        if scope(call["a"].buffer) == FRAGMENT:
            left = call["a"].buffer
            self.operands[left] = wgmma.operand_words(left, self.launch.threads)
        self.written |= made.keys()
        tiles.update(made)
        return None

    def _other_products(self, tiles: dict[Any, TensorTile]) -> None:
        """Products outside of the loops; no accumulator is added to by warp groups and by warps."""
        every = Products(self.function, self.launch)
        for node, call in zip(every.nodes, every.calls):
            target = call["c"].buffer
            if any(node.same_as(one) for one in self.products):
                continue
            inside = any(node.same_as(one) for plan in self.plans for one in plan.body)
            problem = "" if inside else every.refused.get(target) or self._product(node, set(), tiles)
            if problem is None:
                self.products.append(node)
                continue
            if problem:
                self.launch.facts.setdefault(wgmma.REFUSED, {})[target] = problem
            if target in self.engines:
                raise Refused(f"not all products into `{target.name}` are those of warp groups", node.span)

    def _registers(self) -> None:
        """The accumulators fit into the registers of the computing threads."""
        held = sum(wgmma.registers_of(accumulator, self.launch.threads) for accumulator in self.engines)
        held += sum(self.operands.values())
        groups = self.launch.threads // GROUP
        one = max(engine.columns // 2 for engine in self.engines.values())
        if one > AT_FIRST[groups] - OTHER_VALUES:
            raise Refused(
                f"one instruction takes {one} registers, and {AT_FIRST[groups] - OTHER_VALUES} are free for it"
            )
        most = (SHARES[groups] or (0, WITHOUT_SHARES))[1] - OTHER_VALUES
        if held > most:
            raise Refused(f"accumulators and operands take {held} registers of a thread, and {most} are free for them")

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
                raise Refused(f"the tiles take {needed} bytes of shared memory where each has a place of its own")
            plans = [replace(plan, stages=min(plan.stages, deepest - 1)) for plan in plans]


def _bytes_of_tiles(body: Any) -> int:
    """Bytes of all shared tiles, each at a multiple of what swizzles need."""
    sizes: list[int] = []

    def note(node: Any) -> None:
        if scope(node.buffer).startswith("shared"):
            sizes.append(size_of_tile(node.buffer))

    walk(body, (tir.AllocBuffer, note))
    return sum(sizes)
