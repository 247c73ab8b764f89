"""insert-barriers: every thread sees what others wrote earlier in the text.

Before: a thread program that touches shared memory (and global memory within the block) as if its threads ran one
after another through every statement. After: `tvm_storage_sync` stands between conflicting accesses, in control flow
that all threads of the block follow.

Two accesses conflict when one of them writes, they may touch the same bytes, and it is not proven that equal addresses
mean equal threads (`addresses.Prover`). Statements are processed from the inside out: a sequence puts a barrier before
the first statement that conflicts with what came since the last one, loops look at their bodies a second time for what
the turn before left. Nothing is inserted inside one lowered `T.Parallel` loop: its iterations have no order.

Then bulk copies are ordered with ordinary accesses by fences (`hopper/proxy_fences.py`).

A barrier that belongs inside an `if` which only some threads take cannot stand there. Such an `if` is cut into pieces
under the same condition, with the barrier between them (`barrier_placement`). A loop that threads leave in different
turns cannot be cut: TL210.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.source import catalogue as say

from .accesses import (
    WRITE,
    Access,
    AccessReader,
    Conflict,
    Conflicts,
    Pending,
    starts_bulk_load,
    starts_copy,
    waits_for_copies,
)
from .addresses import Prover
from .barrier_placement import Branch, Chain, Loop, Piece, Scope, Summary, place
from .context import LaunchContext
from .hopper.proxy_fences import fence_bulk_copies
from .index_sums import identity
from .memory_overlap import ORDERED, PARALLEL, SELF_ORDERED, Memory, tracked_memory
from .nests import WARP_GROUPS
from .rewrite import has, map_children, variables
from .signals import TURNS, is_barrier, signals
from .thread_parts import without_parts
from .uniformity import Uniformity, agreed_registers


def insert_barriers(func: tir.PrimFunc, launch: LaunchContext) -> tir.PrimFunc:
    """The stage.  Reports TL210 where a barrier is needed that no place can hold."""
    return fence_bulk_copies(_with_barriers(func, launch), launch)


def _with_barriers(func: tir.PrimFunc, launch: LaunchContext) -> tir.PrimFunc:
    if launch.threads == 1:
        return func
    memory = tracked_memory(func, launch.facts.get(ORDERED, set()), launch.facts.get(SELF_ORDERED, set()))
    if not memory:
        return func.with_body(without_parts(func.body, launch))
    threads = dict(thread_axes(func.body))
    uniformity = Uniformity(func.body, threads, agreed=agreed_registers(launch))
    body = _Builder(Prover(threads, uniformity.is_uniform), memory, uniformity, launch).whole(func.body)
    return func.with_body(without_parts(body, launch))


def thread_axes(body: tir.Stmt) -> list[tuple[Any, int]]:
    """The variables of `threadIdx.x/y/z` of a launch, with their extents."""
    axes: dict[str, tuple[Any, int]] = {}

    def visit(node: Any) -> None:
        if node.attr_key == "thread_extent" and str(node.node.thread_tag).startswith("threadIdx"):
            axes[str(node.node.thread_tag)] = (node.node.var, int(node.value))

    tvm_ffi.structural_walk(body, (tir.AttrStmt, visit))
    return [axes[tag] for tag in sorted(axes)]


@dataclass
class _Builder:
    """Turns statements into pieces and decides where barriers go."""

    prover: Prover
    memory: dict[Any, Memory]
    uniformity: Uniformity
    launch: LaunchContext
    bound: list[set[int]] = field(default_factory=lambda: [set()])  # variables bound in the scopes being built
    guards: int = 0  # divergent branches around the statement being built
    guarded: set[int] = field(default_factory=set)  # variables bound under them
    scope: Scope = field(default_factory=Scope)
    signals: bool = False  # the launch uses mbarriers

    def __post_init__(self) -> None:
        self.reader = AccessReader(self.prover, self.memory)
        self.conflicts = Conflicts(self.prover, self._independent)

    def _independent(self, first: str, second: str) -> bool:
        """Groups of warps that signal each other through mbarriers are ordered by the user."""
        return self.signals and first != second and bool(first) and bool(second)

    def whole(self, body: tir.Stmt) -> tir.Stmt:
        self.signals = signals(body, self.launch.facts.get(TURNS, frozenset()))
        self._note_copies(body, "")
        if type(body) is tir.AttrStmt and body.attr_key != WARP_GROUPS:
            return tir.AttrStmt(body.node, body.attr_key, body.value, self.whole(body.body), body.span)
        chain = self.chain(body)
        self.walk(chain, Pending(), with_entry=False)
        return place(chain, self.launch) if chain.has_barriers else body

    def _note_copies(self, node: tir.Stmt, region: str) -> None:
        """Tell the reader about all asynchronous copies, by statements alone: expressions may be without bounds."""
        if type(node) is tir.AttrStmt and node.attr_key == WARP_GROUPS:
            region = _region(node)
        if type(node) is tir.Evaluate:
            if starts_copy(node.value):
                self.reader.note_copy(node.value, region)
            return

        def visit(child: Any) -> Any:
            self._note_copies(child, region)
            return child

        map_children(node, visit)

    # ---- statements to pieces ----

    def chain(self, body: tir.Stmt) -> Chain:
        pieces: list[Piece] = []
        self._append(body, pieces)
        return Chain(pieces, self.scope)

    def _append(self, node: tir.Stmt, pieces: list[Piece]) -> None:
        kind = type(node)
        if kind is tir.SeqStmt:
            for child in node.seq:
                self._append(child, pieces)
        elif kind is tir.BufferStore:
            self._store(node, pieces)
        elif kind is tir.For:
            pieces.append(self._for(node))
        elif kind is tir.IfThenElse:
            pieces.append(self._branch(node))
        elif kind is tir.While:
            pieces.append(self._while(node))
        elif kind is tir.AttrStmt:
            pieces.append(self._attribute(node))
        elif kind is tir.Bind:
            accesses = self.reader.reads(node.value)
            self.prover.bind(node.var, node.value)
            self.bound[-1].add(identity(node.var))
            if self.guards:
                self.guarded.add(identity(node.var))
            pieces.append(self._leaf(node, accesses, is_barrier(node.value, self.launch.threads, self.scope.count)))
        elif kind is tir.Evaluate:
            accesses = self.reader.reads(node.value)
            if starts_copy(node.value) or starts_bulk_load(node.value):
                pieces.append(self._copy(node, accesses))
                return
            if waits_for_copies(node.value):
                pieces.append(Piece(node, Pending(), Pending(self.reader.landing())))
                return
            pieces.append(self._leaf(node, accesses, is_barrier(node.value, self.launch.threads, self.scope.count)))
        elif kind is tir.Break or kind is tir.Continue:
            pieces.append(Piece(node, Pending(), Pending(), jump=Pending()))
        else:
            pieces.append(Piece(node, Pending(), Pending()))

    def _leaf(self, node: tir.Stmt, accesses: list[Access], is_barrier: bool = False) -> Piece:
        pending = Pending(accesses)
        if is_barrier and not self.guards:
            return Piece(node, pending, Pending(), through=False)
        return Piece(node, pending, pending)

    def _copy(self, node: tir.Stmt, accesses: list[Access]) -> Piece:
        """An asynchronous copy: earlier accesses of its target must be over; later ones see it after the wait."""
        return Piece(node, Pending(accesses), Pending([access for access in accesses if access.kind != WRITE]))

    def _store(self, node: tir.BufferStore, pieces: list[Piece]) -> None:
        indices = list(node.indices)
        reads, writes = self.reader.reads(node.value, *indices), self.reader.write(node.buffer, indices)
        if reads and writes and (self._own_element(writes[0]) or self._same_everywhere(node)):
            conflict = self.conflicts.between(Pending(reads), Pending(writes))
            if conflict is not None:
                # `s[t] = s[63 - t]`, `s[0] = s[0] + 1`: all threads read before any writes
                value = tir.Var(self.launch.fresh("value"), node.value.ty)
                pieces.append(self._leaf(tir.Bind(value, node.value, node.span), reads))
                self.bound[-1].add(identity(value))
                if self.guards:
                    self.guarded.add(identity(value))
                node = tir.BufferStore(node.buffer, value, indices, node.span)
                pieces.append(self._leaf(node, self.reader.reads(*indices) + writes))
                return
        pieces.append(self._leaf(node, reads + writes))

    def _own_element(self, write: Access) -> bool:
        """Every thread writes elements of its own: no two threads store to one place."""
        return self.conflicts.own_elements(write.form)

    def _same_everywhere(self, node: tir.BufferStore) -> bool:
        """All threads store one value to one place."""
        return all(self.uniformity.is_uniform(expr) for expr in (node.value, *node.indices))

    def _for(self, node: tir.For) -> Piece:
        reads = Pending(self.reader.reads(node.min, node.extent))
        low, extent = node.min, node.extent
        known = type(low) is tir.IntImm
        high = int(low.value) + int(extent.value) - 1 if known and type(extent) is tir.IntImm else None
        self.prover.enter(node.loop_var, int(low.value) if known else None, high)
        self.bound.append({identity(node.loop_var)})
        chain = self.chain(node.body)
        bound = self.bound.pop()
        self.bound[-1] |= bound
        ordered = not (node.annotations and PARALLEL in node.annotations) and int(node.kind) != tir.ForKind.VECTORIZED
        if not ordered:
            before, after = _sides(chain)
            entry, exit_ = before.stale(bound, self.prover), after.stale(bound, self.prover)
            entry.add(reads)
            exit_.add(reads)
            return Piece(node, entry, exit_)
        summary = self._turns(chain, Pending(), bound, identity(node.loop_var))
        entry, exit_ = reads.copy(), reads.copy()
        entry.add(summary.entry.stale(bound, self.prover))
        exit_.add(summary.exit.stale(bound, self.prover))
        piece = Piece(node, entry, exit_)
        if type(extent) is tir.IntImm and int(extent.value) > 0 and summary.jump is None:
            piece.through = summary.through  # at least one turn
        if chain.has_barriers:
            piece.inner = self._loop_with_barriers(node, chain, [node.min, node.extent])
            if piece.inner is None:
                everything = _everything(chain).stale(bound, self.prover)
                piece.entry, piece.exit, piece.through = everything, everything, True
        return piece

    def _while(self, node: tir.While) -> Piece:
        condition = Pending(self.reader.reads(node.condition))
        self.bound.append(set())
        chain = self.chain(node.body)
        bound = self.bound.pop()
        self.bound[-1] |= bound
        summary = self._turns(chain, condition, bound, None)
        again = self.conflicts.between(summary.exit, condition)
        if again is not None:
            chain.at_end = again
            if summary.jump is not None:
                self._report(again, node.span, "`break` or `continue` leaves it before the threads have waited")
        entry, exit_ = condition.copy(), condition.copy()
        entry.add(summary.entry.stale(bound, self.prover))
        exit_.add(summary.exit.stale(bound, self.prover))
        piece = Piece(node, entry, exit_)
        if chain.has_barriers:
            piece.inner = self._loop_with_barriers(node, chain, [node.condition])
            if piece.inner is None:
                everything = _everything(chain).stale(bound, self.prover)
                everything.add(condition)
                piece.entry, piece.exit = everything, everything
        return piece

    def _turns(self, chain: Chain, before: Pending, bound: set[int], turn: int | None) -> Summary:
        """Places the barriers of a loop body, also for what an earlier turn leaves; what the loop leaves outside.

        before: what happens in front of every turn; turn: the loop variable, if there is one.
        """
        while True:
            count = len(chain.before)
            left = before.copy()
            summary = self.walk(chain, left)
            carried = summary.exit if summary.jump is None else _joined(summary.exit, summary.jump)
            again = before.copy()
            again.add(carried.stale(bound, self.prover, turn))
            self.walk(chain, again)
            if len(chain.before) == count:
                break
        first = self.walk(chain, Pending())
        if first.jump is not None:
            first.exit.add(first.jump)
        return first

    def _branch(self, node: tir.IfThenElse) -> Piece:
        condition = Pending(self.reader.reads(node.condition))
        group = self.scope.take_group()  # the condition that selects the warps of T.ws holds for all of them
        divergent = not group and not self.uniformity.is_uniform(node.condition)
        mask = self.reader.mask
        sides: list[tuple[Chain, Summary]] = []
        self.guards += divergent
        for holds, body in ((True, node.then_case), (False, node.else_case)):
            if body is None:
                continue
            self.reader.mask = self.prover.mask(mask, self.prover.condition(node.condition, holds))
            chain = self.chain(body)
            sides.append((chain, self.walk(chain, condition.copy())))
        self.guards -= divergent
        self.reader.mask = mask
        entry, exit_ = condition.copy(), condition.copy()
        through = divergent or len(sides) == 1  # a barrier that only some threads reach orders nothing
        jump: Pending | None = None
        for _, summary in sides:
            entry.add(summary.entry)
            exit_.add(summary.exit)
            through = through or summary.through
            if summary.jump is not None:
                jump = _joined(jump or condition, summary.jump)
        between = None
        if divergent and len(sides) == 2 and jump is None and not self.signals:
            between = self.conflicts.between(sides[0][1].exit, sides[1][1].entry)
        piece = Piece(node, entry, exit_, through, jump)
        if between is not None or any(chain.has_barriers for chain, _ in sides):
            if divergent:  # it will be cut, then all threads meet its barriers
                piece.through = all(summary.through for _, summary in sides) and between is None
            then, other = sides[0][0], sides[1][0] if len(sides) == 2 else None
            reusable = not condition and _is_pure(node.condition)
            piece.inner = Branch(node, divergent, then, other, between, reusable)
        return piece

    def _attribute(self, node: tir.AttrStmt) -> Piece:
        if node.attr_key != WARP_GROUPS:
            chain = self.chain(node.body)
            summary = self.walk(chain, Pending())
            piece = Piece(node, summary.entry, summary.exit, summary.through, summary.jump)
            piece.inner = chain if chain.has_barriers else None
            return piece
        outer, region = self.scope, self.reader.region
        self.scope = Scope.of_groups(_groups(node), self.launch.threads)
        self.reader.region = _region(node)
        guards, self.guards = self.guards, 0
        chain = self.chain(node.body)
        self.walk(chain, Pending())
        self.scope, self.reader.region, self.guards = outer, region, guards
        everything = _everything(chain)
        return Piece(node, everything, everything, inner=chain if chain.has_barriers else None)

    # ---- barriers ----

    def walk(self, chain: Chain, pending: Pending, with_entry: bool = True) -> Summary:
        """Puts barriers where the pieces conflict with `pending` (changed here) or with each other.

        with_entry: the result says what happens before the first barrier.
        """
        entry, jump = Pending(), None
        through = True
        for position, piece in enumerate(chain.pieces):
            if position not in chain.before:
                conflict = self.conflicts.between(pending, piece.entry)
                if conflict is not None:
                    chain.before[position] = conflict
            if position in chain.before:
                pending, through = Pending(), False
            if through and with_entry:
                entry.add(piece.entry)
            if piece.jump is not None:
                jump = _joined(jump or Pending(), pending)
                jump.add(piece.jump)
            if not piece.through:
                pending, through = Pending(), False
            pending.add(piece.exit)
        if chain.at_end is not None:
            pending, through = Pending(), False
        return Summary(entry, pending, through, jump)

    def _loop_with_barriers(self, node: Any, chain: Chain, bounds: list[Any]) -> Loop | None:
        """The loop as a place for barriers; None (and a message) where threads go through it differently."""
        reason = None
        if self.uniformity.divergent_loop(node):
            reason = "the threads go through it a different number of times"
        elif self.guards and (type(node) is tir.While or not all(self._known_outside(bound) for bound in bounds)):
            reason = "only some of the threads run it"
        if reason is None:
            return Loop(node, chain)
        conflict = chain.first_conflict
        if conflict.first.is_shared:
            self._report(conflict, node.span, reason)
        chain.drop_barriers()
        return None

    def _known_outside(self, expr: Any) -> bool:
        return self.guarded.isdisjoint(map(identity, variables(expr)))

    def _report(self, conflict: Conflict, span: Any, reason: str) -> None:
        done = "written" if conflict.first_kind == WRITE else "used"
        name = conflict.first.name
        through = "for a tile operation" if self.launch.is_own(name) else f"through `{name}`"
        self.launch.report(
            say.ThreadMapping(
                problem=f"threads exchange data {through} in this loop, but {reason}: "
                f"they cannot wait for each other between the place where it is {done} and the next access",
                remedy="give the loop the same bounds for all threads and put the condition inside it",
            ),
            span,
        )


def _groups(node: tir.AttrStmt) -> list[int]:
    """The warp groups of `T.ws`."""
    return [int(group) for group in str(getattr(node.value, "value", node.value)).split(",")]


def _region(node: tir.AttrStmt) -> str:
    """Their name among the regions of accesses."""
    return str(_groups(node))


def _joined(first: Pending, second: Pending) -> Pending:
    result = first.copy()
    result.add(second)
    return result


def _everything(chain: Chain) -> Pending:
    """All accesses in a chain, whatever barriers stand between them."""
    result, after = _sides(chain)
    result.add(after)
    return result


def _sides(chain: Chain) -> tuple[Pending, Pending]:
    """What a chain asks to be over before it, and what it leaves to be over, whatever barriers stand inside."""
    before, after = Pending(), Pending()
    for piece in chain.pieces:
        before.add(piece.entry)
        after.add(piece.exit)
        inner = piece.inner
        chains: list[Chain | None] = []
        if isinstance(inner, Chain):
            chains = [inner]
        elif isinstance(inner, Loop):
            chains = [inner.body]
        elif isinstance(inner, Branch):
            chains = [inner.then, inner.other]
        for one in chains:
            if one is not None:
                first, last = _sides(one)
                before.add(first)
                after.add(last)
    return before, after


def _is_pure(expr: Any) -> bool:
    """Evaluating it twice gives the same: no memory, no calls."""
    return not has(expr, tvm.ir.TensorLoad) and not has(expr, tvm.ir.Call)
