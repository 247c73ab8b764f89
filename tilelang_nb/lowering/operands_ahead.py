"""load-operands-ahead: in a pipelined product, the operands of a step are in registers before the step begins.

Before: a turn of the loop waits for its tiles, starts copies for a later turn, and then, for every step along the
depth, loads the operands of the step from shared memory and multiplies them.  After: while a step multiplies, the
operands of the next one are loaded, into registers of their own; the last step of a turn does so for the first step of
the next turn, after that turn's wait.  The order of everything else stays: the loop begins one step later.

It is done for a loop whose turns do nothing else than that product, where twice the operands fit into registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Range

from .accesses import waits_for_copies
from .context import LaunchContext
from .gemm.mma import STEPS
from .index_arithmetic import fold_indices
from .own_names import with_own_names
from .rewrite import (
    Load,
    branch,
    constant,
    dtype_of,
    has,
    loop,
    map_children,
    scope,
    sequence,
    size,
    statements,
    substitute,
    variables,
)

REGISTER_FILE = 65536  # of a multiprocessor
MOST_REGISTERS = 255  # of a thread
OTHERS = 40  # addresses, counters and what else a thread holds


def load_operands_ahead(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts["operands ahead"]` gets the loops that it changed."""
    pipelines = {plan.loop.loop_var: plan for plan in launch.facts.get("pipelines", ()) if plan.stages > 1}
    ahead = launch.facts.setdefault("operands ahead", [])

    def visit(node: Any) -> Any:
        if type(node) is not tir.For:
            return map_children(node, visit)
        if node.loop_var in pipelines:
            turn = _turn(node, launch)
            if turn is not None:
                ahead.append(pipelines[node.loop_var].loop)
                return turn.rotated(pipelines[node.loop_var].stages)
        if STEPS in node.annotations:
            rest = {key: one for key, one in node.annotations.items() if key != STEPS}
            return loop(node, annotations=rest, body=visit(node.body))
        return map_children(node, visit)

    body = visit(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


@dataclass(frozen=True)
class _Turn:
    """The parts of a turn, in their order.

    slot: which version of the tiles it uses.  wait, copies: statements.  operands: register arrays.  before, after:
    what the product does with its accumulators.  steps: the loop along the depth.
    """

    node: Any
    slot: Any
    wait: Any
    copies: tuple[Any, ...]
    operands: tuple[Any, ...]
    before: tuple[Any, ...]
    steps: Any
    after: tuple[Any, ...]
    analyzer: Any

    def rotated(self, stages: int) -> Any:
        node, count = self.node, size(self.steps.extent)
        kind = dtype_of(node.loop_var)
        wide = {one: _twice(one) for one in self.operands}
        turn = node.loop_var if constant(node.min) == 0 else node.loop_var - node.min
        extent = constant(node.extent)
        following = tir.Var("next", kind)

        def at(statement: Any, values: dict[Any, Any]) -> Any:
            return with_own_names(fold_indices(substitute(statement, values), self.analyzer))

        def half(statement: Any, step: Any) -> Any:
            return fold_indices(_in_half(statement, wide, step % 2), self.analyzer)

        def load(step: Any, slot: Any) -> Any:
            parts = [at(one, {self.steps.loop_var: step, self.slot.var: slot}) for one in self.loads]
            return half(sequence(parts, node.span), step)

        def multiply(step: Any) -> Any:
            return half(at(self.product, {self.steps.loop_var: step}), step)

        def first(ahead: Any, slot: Any, exists: Any) -> list[Any]:
            """The beginning of a turn, up to the operands of its first step."""
            copies = [at(one, {node.loop_var: ahead}) for one in self.copies]
            loads = load(tir.const(0, "int32"), slot)
            return [
                with_own_names(self.wait),
                *copies,
                loads if exists is None else branch(exists, loads, None, node.span),
            ]

        # A turn after the last one has no tiles: what it would load from is of an earlier turn, if there is one.
        certain = extent is not None and extent >= stages
        begin = first(node.min, tir.const(0, kind), None if certain else node.extent > 0)
        body: list[Any] = [self.slot, *self.before]
        for step in range(count - 1):
            now, then = tir.const(step, "int32"), tir.const(step + 1, "int32")
            if step == 0 or count <= 3:
                body += [load(then, self.slot.var), multiply(now)]
        if count > 3:
            k = tir.Var(self.steps.loop_var.name, "int32")
            self.analyzer.bind(k, Range(1, count - 1))
            pair = sequence([load(k + 1, self.slot.var), multiply(k)], node.span)
            body.append(tir.For(k, 1, count - 2, tir.ForKind.UNROLLED, pair, span=self.steps.span))
        body.append(tir.Bind(following, tir.floormod(turn + 1, stages), node.span))
        body += first(node.loop_var + 1, following, None if certain else turn + 1 < node.extent)
        body += [multiply(tir.const(count - 1, "int32")), *self.after]
        allocations = [tir.AllocBuffer(one, None, node.span) for one in wide.values()]
        return sequence([*allocations, *begin, loop(node, body=sequence(body, node.span))], node.span)

    @property
    def loads(self) -> list[Any]:
        return statements(self.steps.body)[:-1]

    @property
    def product(self) -> Any:
        return statements(self.steps.body)[-1]


def _turn(node: Any, launch: LaunchContext) -> _Turn | None:
    """The parts of the turn of a loop; None where the loop does something else, or registers are too few."""
    parts = statements(node.body)
    waits = [at for at, one in enumerate(parts) if isinstance(one, tir.Evaluate) and waits_for_copies(one.value)]
    products = products_of(parts)
    if waits != [1] or len(products) != 1 or not isinstance(parts[0], tir.Bind):
        return None
    steps = parts[products[0]]
    committed = [at for at, one in enumerate(parts) if isinstance(one, tir.Evaluate) and commits(one.value)]
    if len(committed) != 1 or committed[0] > products[0]:
        return None
    before, after = parts[committed[0] + 1 : products[0]], parts[products[0] + 1 :]
    body = statements(steps.body)
    loaded = {one for part in body[:-1] for one in stored_arrays(part)}
    operands = tuple(one.buffer for one in before if isinstance(one, tir.AllocBuffer) and one.buffer in loaded)
    before = [one for one in before if not (isinstance(one, tir.AllocBuffer) and one.buffer in operands)]
    copies = tuple(parts[2 : committed[0] + 1])
    turn = _Turn(node, parts[0], parts[1], copies, operands, tuple(before), steps, tuple(after), launch.analyzer)
    if set(operands) != loaded or size(steps.extent) < 2 or size(steps.extent) % 2 or not _plain(turn):
        return None
    return turn if _fits(turn, launch) else None


def _plain(turn: _Turn) -> bool:
    """Do accumulators live in registers alone, and do the loads depend on nothing that a turn changes but its slot?"""
    others = [*turn.before, *turn.after]
    if any(has(one, (tir.Break, tir.Continue, tir.While, tir.IfThenElse)) or not _local(one) for one in others):
        return False
    changed = {one for part in (*others, turn.product) for one in stored_arrays(part)} - set(turn.operands)
    used = {var for part in turn.loads for var in variables(part)}
    return turn.node.loop_var not in used and changed.isdisjoint(used)


def _local(node: Any) -> bool:
    """Touches nothing but registers."""
    return all(scope(array) in ("local", "local.var") for array in arrays_in(node))


def _fits(turn: _Turn, launch: LaunchContext) -> bool:
    operands = sum(words(one) for one in turn.operands)
    held = arrays_in(turn.product) - set(turn.operands)
    most = min(MOST_REGISTERS, REGISTER_FILE // launch.threads)
    return 2 * operands + sum(words(one) for one in held) + OTHERS <= most


def products_of(parts: list[Any]) -> list[int]:
    """The positions of the products of a turn."""
    return [at for at, one in enumerate(parts) if isinstance(one, tir.For) and STEPS in one.annotations]


def arrays_in(node: Any) -> set[Any]:
    """The arrays, of threads and in memory, that occur in a node."""
    return {var for var in variables(node) if isinstance(var.ty, tir.BufferType)}


def words(buffer: Any) -> int:
    """Registers of 32 bits that a buffer of a thread takes."""
    return size(buffer.shape[0]) * max(tvm.DataType(dtype_of(buffer)).bits, 32) // 32


def commits(call: Any) -> bool:
    """cp.async.commit_group."""
    return isinstance(call, tvm.ir.Call) and call.op.name == "tirx.ptx.cp_async_commit_group"


def stored_arrays(node: Any) -> set[Any]:
    """The register arrays that a statement changes: by stores, or by handing their elements to an instruction."""
    found: set[Any] = set()

    def call(one: Any) -> None:
        if one.op.name.startswith("tirx.ptx."):
            found.update(arg.source for arg in one.args if isinstance(arg, Load) and scope(arg.source) == "local")

    def evaluate(one: Any) -> None:
        if isinstance(one.value, tvm.ir.Call):
            call(one.value)

    tvm_ffi.structural_walk(node, [(tir.BufferStore, lambda one: found.add(one.buffer)), (tir.Evaluate, evaluate)])
    return found


def _twice(buffer: Any) -> Any:
    count = size(buffer.shape[0])
    return tir.decl_buffer((2 * count,), dtype_of(buffer), buffer.name, scope="local", layout=None)


def _in_half(node: Any, wide: dict[Any, Any], half: Any) -> Any:
    """The statement with one half of the wider arrays in place of each array."""

    def place(buffer: Any, indices: Sequence[Any]) -> tuple[Any, list[Any]]:
        return wide[buffer], [half * size(buffer.shape[0]) + indices[0]]

    def load(one: Any) -> Any:
        return tir.BufferLoad(*place(one.source, one.indices)) if one.source in wide else one

    def store(one: Any) -> Any:
        if one.buffer not in wide:
            return one
        buffer, indices = place(one.buffer, one.indices)
        return tir.BufferStore(buffer, one.value, indices, one.span)

    return tvm_ffi.structural_map(node, [(Load, load), (tir.BufferStore, store)])
