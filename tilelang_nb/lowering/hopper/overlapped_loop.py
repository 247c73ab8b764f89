"""The computing role's loop over turns of two products that run beside what lies between them (see `overlap`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..gemm.wgmma import PACKED, operand_words
from ..pipelines import Pipeline
from ..plan_pipelines import in_version
from ..rewrite import branch, dtype_of, loop, nothing, sequence, substitute
from .overlap import Overlap
from .tile_statements import element, encoded, evaluate, whole_of


def overlapped_loop(
    plan: Pipeline,
    overlap: Overlap,
    barriers: tuple[Any, Any],
    tiles: dict[Any, Any],
    consumers: int,
    launch: LaunchContext,
    turn_of: Callable[[Any], tuple[Any, Any, list[Any]]],
    compute: Callable[[Any], Any],
    release: Callable[[int, Any, Any], Any],
) -> Any:
    """The loop with the first product of a turn started before the second one of the turn before.

    barriers: where the tiles of the first and of the second product arrive, by version.  tiles: with their versions.
    consumers: threads that compute.  turn_of: (version, parity of the lap, their bindings) of a turn.  compute: a
    statement of the text as the role has it.  release: says for the first or second product (0 or 1) that a version is
    free.
    """
    node, span = plan.loop, plan.loop.span
    left = overlap.second["a"].buffer
    words = launch.facts.setdefault(PACKED, {}).setdefault(
        left, launch.local(operand_words(left, consumers), "uint32", "packed")
    )

    def at(turn: Any, parts: tuple[Any, ...], slot: Any) -> list[Any]:
        values_of = {node.loop_var: turn}
        return [in_version(substitute(compute(one), values_of), tiles, slot) for one in parts]

    def multiply(call: TileCall, turn: Any, slot: Any, runs_on: bool) -> Any:
        operands = {**call.operands, "asynchronous": "open" if runs_on else None}
        one = evaluate("gemm", call.span, *(encoded(operands[name]) for name in call.operands))
        return at(turn, (one,), slot)[0]

    def wait(which: int, slot: Any, lap: Any, call: TileCall) -> Any:
        return evaluate("barrier_wait", call.span, element(barriers[which], slot), lap)

    def over(pending: int, call: TileCall) -> Any:
        return evaluate("wait_wgmma", call.span, pending, whole_of(call["c"].buffer))

    first, second = overlap.first, overlap.second
    turn, one = node.loop_var, tir.const(1, dtype_of(node.loop_var))
    before = turn - one
    slot, lap, begin = turn_of(turn)
    old_slot, old_lap, old_begin = turn_of(before)
    is_first = tir.EQ(turn, node.min)
    other = [wait(1, old_slot, old_lap, second), multiply(second, before, old_slot, True)]
    steady = [
        *begin,
        *old_begin,
        wait(0, slot, lap, first),
        *at(turn, overlap.prepare, slot),
        multiply(first, turn, slot, True),
        # Not a group of no products in the first turn: the device compiler would let products run one by one.
        tir.IfThenElse(is_first, over(0, first), sequence([*other, over(1, first)], span), span),
        release(0, slot, first.span),
        *at(turn, overlap.beside, slot),
        over(0, second),
        tir.IfThenElse(is_first, nothing(span), release(1, old_slot, second.span), span),
        *at(turn, overlap.after, slot),
        evaluate("pack_operand", span, whole_of(left), whole_of(words)),
    ]
    last = node.extent - one
    slot, lap, begin = turn_of(last)
    after = [*begin, wait(1, slot, lap, second), multiply(second, last, slot, False), release(1, slot, second.span)]
    whole = sequence([loop(node, body=sequence(steady, span), annotations={}), *after], span)
    if not launch.analyzer.can_prove(node.extent >= 1):
        whole = branch(node.extent >= 1, whole, None, span)
    return sequence([tir.AllocBuffer(words, None, span), whole], span)
