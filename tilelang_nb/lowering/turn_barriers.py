"""order-turns: the turns of a pipelined loop are ordered by barriers in shared memory, not by one of the whole block.

Before: a turn waits for its copies (cp.async.wait_group) and starts those for a later turn; a barrier of the block has
to stand between the two, in every turn.  After: each version of the tiles of a turn has two barriers.

    full     every thread arrives when its copies into the version have landed; all wait before they read it
    empty    one lane of each warp arrives when the warp has read it; all wait before they copy into it again

Warps then drift apart, by up to a turn, instead of meeting in each: one has its softmax beside the products of
another.  The copies start behind the first product, a branch that keeps nothing else apart: what stands before it and
after it may mix with both products.

It is done where the whole block runs the loop, and all that a turn writes to shared memory are these copies: then no
barrier of the block is left in it.  It pays in turns of several products, as those of an attention, that copy enough;
a turn of one product has its operands a step ahead, which waiting at barriers cuts in two (445 against 395 TFLOP/s for
a float16 product on an H200).  All other loops stay as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.tile_program import statement_name
from tilelang_nb.layout.matrix import WARP

from .accesses import starts_copy
from .architecture import capability
from .barriers import WARP_GROUPS, thread_axes
from .context import LaunchContext
from .memory_overlap import SELF_ORDERED
from .operands_ahead import arrays_in, products_of
from .pipelines import Pipeline, tile_bytes
from .place_copies import Turn, turn_of_products
from .plan_pipelines import VERSIONS
from .rewrite import constant, has, map_children, scope, sequence, size, statements
from .shared_memory import needed_shared_memory, shared_memory_limit
from .signals import TURNS
from .turn_accesses import BlockBarrier, Turns, parts_in_front, parts_of_turn, turn_of
from .turn_rings import MOST_VERSIONS, Barriers, Order, barriers_of, begun
from .uniformity import Uniformity, agreed_registers

ORDERS = "orders of turns"  # the fact: by variable of a loop of several products, its Barriers, or why it has none
DISABLE = "tl.disable_turn_barriers"  # the option
FIRST = 90  # the architecture whose threads sleep while they wait at such a barrier
# Bytes that a turn copies.  Attention with heads of 64 and tiles of 64 keys, 16 KiB a turn, loses up to 4 of 100 on an
# H200, as its turns are too short for what the barriers take; with 32 KiB and more it gains, 4 to 24 of 100 (heads of
# 128 by 64 keys in 256 threads: 16 where causal, while the full one loses 5).
LEAST = 24 << 10


def order_turns(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts[SELF_ORDERED]` gets the tiles, `launch.facts[TURNS]` the names of the barriers,
    `launch.facts[ORDERS]` what was decided.
    """
    plans = _plans_of_several_products(launch)
    if not plans:
        return function
    orders: dict[Any, Barriers | str] = {var: _against_plan(plan, launch) for var, plan in plans.items()}
    launch.facts[ORDERS] = orders
    plans = {var: plan for var, plan in plans.items() if not orders[var]}
    if not plans:
        return function
    if _asserts(function.body):
        orders.update(dict.fromkeys(plans, "a thread whose assertion fails ends, and the others would wait for it"))
        return function
    orders.update(dict.fromkeys(plans, "not all threads of the block run the loop"))
    uniformity = Uniformity(function.body, dict(thread_axes(function.body)), agreed=agreed_registers(launch))
    loops = _Loops(plans, uniformity, function.body, launch)
    body = loops.statement(function.body, False)
    if not loops.made:
        return function
    body, names = (
        begun(body, loops.made, launch),
        {buffer.name for ring in loops.made for buffer in (ring.full, ring.empty)},
    )
    if needed_shared_memory(body, names) > shared_memory_limit(launch.arch):
        full = "no shared memory is left for barriers of the tiles"
        orders.update((var, full) for var, found in orders.items() if isinstance(found, Barriers))
        return function
    launch.facts[TURNS] = names
    launch.facts[SELF_ORDERED] = {tile for ring in loops.made for tile in ring.tiles}
    return function.with_body(body)


def is_ordered(node: Any, launch: LaunchContext) -> bool:
    """Do barriers of its tiles order the turns of a loop?"""
    return isinstance(launch.facts.get(ORDERS, {}).get(node.loop_var), Barriers)


def _plans_of_several_products(launch: LaunchContext) -> dict[Any, Pipeline]:
    """Of the loops whose copies run ahead in the computing threads, by variable."""
    if not isinstance(launch.facts.get("roles", ""), str):
        return {}
    plans = [plan for plan in launch.facts.get("pipelines", ()) if plan.stages > 1]
    return {plan.loop.loop_var: plan for plan in plans if _products(plan) > 1}


def _products(plan: Pipeline) -> int:
    return sum(statement_name(one) == "gemm" for one in plan.body)


def _against_plan(plan: Pipeline, launch: LaunchContext) -> str:
    """Why the barrier of the block stays, from what is known of a loop without its text; "" where nothing is against
    barriers of its tiles.
    """
    if launch.options.get(DISABLE):
        return f"the option `{DISABLE}` says so"
    if capability(launch.arch) < FIRST:
        return f"waiting at barriers of tiles needs sm_{FIRST}"
    if launch.threads <= WARP:
        return "the block is one warp"
    copied = sum(map(tile_bytes, plan.tiles))
    if copied < LEAST:
        return f"a turn copies {copied:,} bytes; barriers of tiles pay from {LEAST:,} on"
    return "a `break` may end the loop" if plan.left_early else ""


def _asserts(body: Any) -> bool:
    """May an assertion of the text end a thread?"""
    found: list[bool] = []

    def call(one: Any) -> None:
        if one.op.name == "tirx.call_extern":
            found.append(one.args[0].value == "tl_device_assert")

    tvm_ffi.structural_walk(body, (tvm.ir.Call, call))
    return any(found)


@dataclass
class _Loops:
    """All loops of a launch that are changed."""

    plans: dict[Any, Pipeline]
    uniformity: Uniformity
    whole: Any
    launch: LaunchContext
    made: list[Barriers] = field(default_factory=list)

    def statement(self, node: Any, again: bool) -> Any:
        """A statement that all threads of the block execute.  again: more than once."""
        if isinstance(node, tir.SeqStmt) or self._is_planned(node):
            before: list[Any] = []
            changed = False
            for one in statements(node):
                planned = self._is_planned(one)
                made = self._ordered(before, one, again) if planned else [*before, self._inner(one, again)]
                changed = changed or len(made) != len(before) + 1 or not made[-1].same_as(one)
                before = made
            return sequence(before, node.span) if changed else node
        return self._inner(node, again)

    def _inner(self, node: Any, again: bool) -> Any:
        if isinstance(node, tir.For | tir.While):
            return node if self.uniformity.divergent_loop(node) else self._within(node, True)
        if isinstance(node, tir.IfThenElse):
            return self._within(node, again) if self.uniformity.is_uniform(node.condition) else node
        if isinstance(node, tir.AttrStmt) and node.attr_key != WARP_GROUPS:
            return self._within(node, again)
        return node

    def _within(self, node: Any, again: bool) -> Any:
        return map_children(node, lambda one: self.statement(one, again))

    def _is_planned(self, node: Any) -> bool:
        return isinstance(node, tir.For) and node.loop_var in self.plans

    # ---- one loop

    def _ordered(self, before: list[Any], node: Any, again: bool) -> list[Any]:
        """What stands before a loop, and the loop, in the new order where that is possible.  again: it may run more
        than once.
        """
        orders, launch = self.launch.facts[ORDERS], self.launch
        try:
            turn, turns = self._turns(before, node)
        except BlockBarrier as reason:
            orders[node.loop_var] = str(reason)
            return [*before, self._inner(node, again)]
        stages = turns.stages
        ring = orders[node.loop_var] = barriers_of(turns.tiles, stages, again, launch)
        self.made.append(ring)
        order = Order(ring, turns, again, launch)
        return [*order.in_front(before), order.turns_of(turn)]

    def _turns(self, before: list[Any], node: Any) -> tuple[Turn, Turns]:
        """The loop as its turns use the tiles; BlockBarrier where its order is another one."""
        launch, plan = self.launch, self.plans[node.loop_var]
        parts = statements(node.body)
        if len(products_of(parts)) != _products(plan):
            raise BlockBarrier("its products do not all run by mma.sync")
        turn, extent = turn_of_products(parts), constant(node.extent)
        if extent is not None and extent < plan.stages:
            raise BlockBarrier("all of its copies start in front of it")
        if turn is None:
            raise BlockBarrier("other statements stand among the copies for a later turn")
        if plan.stages > MOST_VERSIONS:
            raise BlockBarrier(f"it has more than {MOST_VERSIONS} stages")
        versions = launch.facts.get(VERSIONS, {})
        tiles = tuple(versions[tile] for tile in plan.tiles)
        if any(size(tile.shape[0]) != plan.stages for tile in tiles):
            raise BlockBarrier("other loops copy into its tiles, in more stages")
        if self.uniformity.divergent_loop(node):
            raise BlockBarrier("not all threads of the block make its turns")
        if has(node.body, (tir.Continue, tir.Break)):
            raise BlockBarrier("its turns have a `break` or `continue`")
        if _mentions(self.whole, tiles) != _mentions(sequence([*before, node]), tiles):
            raise BlockBarrier("its tiles are used elsewhere, too")
        _check_stores(node.body, tiles)
        first = turn.products[0]
        inside = [*turn.before, *turn.after[: first + 1], sequence(turn.copies), *turn.after[first + 1 :]]
        turns = Turns(
            node,
            plan.stages,
            tiles,
            parts_of_turn(inside, tiles, node, plan.stages, launch.analyzer),
            parts_in_front(before, tiles),
            len(turn.before) + first + 1,
        )
        turns.check()
        if not self._starts_what_there_is(turn.condition, turns):
            raise BlockBarrier("copies for a later turn stand under a condition")
        return turn, turns

    def _starts_what_there_is(self, condition: Any, turns: Turns) -> bool:
        """Is the condition of copies that their turn exists?"""
        if not isinstance(condition, tir.LT):
            return False
        ahead = turn_of(turns.node) + (turns.stages - 1)
        difference = (turns.node.extent - ahead) - (condition.b - condition.a)
        return bool(constant(self.launch.analyzer.simplify(difference)) == 0)


def _mentions(node: Any, tiles: tuple[Any, ...]) -> Counter[Any]:
    """How often tiles are used."""
    found: Counter[Any] = Counter(dict.fromkeys(tiles, 0))

    def note(var: Any) -> None:
        if var in found:
            found[var] += 1

    def leave(one: Any) -> None:
        if one.buffer in found:
            found[one.buffer] -= 1

    tvm_ffi.structural_walk(node, [(tvm.ir.Var, note), (tir.AllocBuffer, leave)])
    return found


def _check_stores(body: Any, tiles: tuple[Any, ...]) -> None:
    """BlockBarrier where a turn writes, beside its copies, shared memory: then more than these need an order."""
    stored: list[Any] = []
    synchronised: list[bool] = []
    tvm_ffi.structural_walk(body, (tir.BufferStore, lambda one: stored.append(one.buffer)))

    def call(one: Any) -> Any:
        name = getattr(one.op, "name", "")
        if name == "tirx.ptx.ldmatrix":
            return tvm_ffi.WalkResult.SKIP
        if starts_copy(one):
            stored.extend(arrays_in(one.args[0]))
            return tvm_ffi.WalkResult.SKIP
        if name in ("tirx.address_of", "tirx.tvm_access_ptr", "tirx.buffer_data"):
            stored.extend(arrays_in(one))
        synchronised.append(name == "tirx.tvm_storage_sync")
        return None

    tvm_ffi.structural_walk(body, (tvm.ir.Call, call), order="pre")
    if any(synchronised):
        raise BlockBarrier("a turn has a barrier of the text")
    for one in stored:
        if one not in tiles and scope(one).startswith("shared"):
            raise BlockBarrier("a turn writes to shared memory")
