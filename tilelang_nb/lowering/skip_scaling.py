"""skip-scaling: accumulators are scaled only where a factor is not 1.

Before: a turn of an attention multiplies its accumulators by what the new maximum of their row makes of them:
`o[i, j] *= scale[i]`.  After: a warp whose rows keep their maxima, all of whose factors are 1 then, does not.  The
longer a row is, the fewer of its turns bring a new maximum.

A product with 1 is the other factor, whatever that is, so the results are those of the text.  Statements do not move
over the branch.  That is worth it only where barriers of the tiles order the turns, accumulators take most of the
registers, and more of them are scaled than are sums of the first product: for heads of 128 in tiles of 128 by 64 keys
and 128 threads, 363 TFLOP/s against 350 (causal) on an H200, and nothing is spilled any more.  Elsewhere most shapes
lose, up to 12 of 100.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .context import LaunchContext
from .memory_overlap import SELF_ORDERED
from .operands_ahead import MOST_REGISTERS, REGISTER_FILE, products_of, words
from .place_copies import in_loops_ahead
from .rewrite import Load, branch, constant, dtype_of, loop, scope, sequence, size, statements, substitute, variables
from .turn_barriers import is_ordered

DISABLE = "tl.disable_skip_scaling"  # the option
SKIPPED = "skipped scaling"  # the fact: by variable of the loop, (place, array) of the statements
FEWEST = 16  # products of a thread that a branch is worth
CROWDED = 0.75  # of the registers of a thread, those that are accumulators
MOST = 4  # factors that a branch asks about
FULL_MASK = 0xFFFFFFFF


def skip_scaling(function: Any, launch: LaunchContext) -> Any:
    """The stage.  `launch.facts[SKIPPED]` gets the statements that it changes."""
    if launch.options.get(DISABLE) or SELF_ORDERED not in launch.facts:
        return function
    return in_loops_ahead(function, launch, _skipped)


def _skipped(node: Any, launch: LaunchContext) -> Any:
    parts = statements(node.body)
    if not is_ordered(node, launch):
        return node
    scaled = {at: found for at, one in enumerate(parts) if (found := _scaled(one)) is not None}
    sums, *others = (_accumulators(parts[at]) for at in products_of(parts))
    accumulators = sum(map(words, sums.union(*others)))
    crowded = accumulators >= CROWDED * min(MOST_REGISTERS, REGISTER_FILE // launch.threads)
    if not crowded or sum(map(words, {array for array, _ in scaled.values()})) <= sum(map(words, sums)):
        return node
    factors = {factor.source for _, factor in scaled.values()}
    changed = [_scaling(one) for one in parts]
    different = [at for at, one in enumerate(changed) if not one.same_as(parts[at])]
    if not different:
        return node
    launch.facts.setdefault(SKIPPED, {})[node.loop_var] = [(parts[at].span, scaled[at][0]) for at in different]
    return loop(node, body=sequence([_exact(one, factors) for one in changed], node.body.span))


def _accumulators(steps: Any) -> set[Any]:
    """The register arrays that a product adds to."""
    found: set[Any] = set()

    def call(one: Any) -> None:
        if one.op.name == "tirx.ptx.mma":
            found.add(one.args[0].source)

    tvm_ffi.structural_walk(steps, (tvm.ir.Call, call))
    return found


def _nest(node: Any) -> tuple[list[Any], Any]:
    """The loops of known extents around a statement, and it."""
    nest: list[Any] = []
    while isinstance(node, tir.For) and constant(node.extent) is not None and constant(node.min) == 0:
        nest.append(node)
        node = node.body
    return nest, node


def _scaled(node: Any) -> tuple[Any, Any] | None:
    """(array, factor) of a nest that scales registers."""
    nest, inner = _nest(node)
    factor = _factor(inner) if nest else None
    return None if factor is None else (inner.buffer, factor)


def _scaling(node: Any) -> Any:
    """A nest that scales registers under its condition, once for each turn of its outermost loop where the factors
    differ from one to the next; other statements as they are.
    """
    nest, inner = _nest(node)
    factor = _factor(inner)
    if not nest or factor is None:
        return node
    apart = nest[0].loop_var in variables(factor)
    within = nest[1:] if apart else nest
    used = [one for one in within if one.loop_var in variables(factor)]
    places = list(itertools.product(*(range(size(one.extent)) for one in used)))
    if len(places) > MOST or math.prod(size(one.extent) for one in within) < FEWEST:
        return node
    condition: Any = None
    for place in places:
        values = {one.loop_var: tir.const(at, dtype_of(one.loop_var)) for one, at in zip(used, place)}
        other = tir.NE(substitute(factor, values), tir.const(1.0, "float32"))
        condition = other if condition is None else tir.Or(condition, other)
    asked = tir.Select(condition, tir.const(1, "int32"), tir.const(0, "int32"))
    some = tir.NE(tir.call_extern("int32", "__any_sync", tir.const(FULL_MASK, "uint32"), asked), tir.const(0, "int32"))
    if apart:
        return loop(nest[0], body=branch(some, nest[0].body, None, node.span))
    return branch(some, node, None, node.span)


def _exact(node: Any, factors: set[Any]) -> Any:
    """A statement that defines factors, with differences of products that are 0 where the products are equal: with one
    of them rounded and the other not, as the compiler of the device may have them, they are not.
    """
    nest, inner = _nest(node)
    if not nest or not isinstance(inner, tir.BufferStore) or inner.buffer not in factors:
        return node

    def rounded(product: Any) -> Any:
        return tir.call_pure_extern("float32", "__fmul_rn", product.a, product.b)

    def difference(expr: Any) -> Any:
        products = isinstance(expr.a, tir.Mul) and isinstance(expr.b, tir.Mul) and dtype_of(expr) == "float32"
        return tir.Sub(rounded(expr.a), rounded(expr.b)) if products else expr

    return tvm_ffi.structural_map(node, (tir.Sub, difference))


def _factor(node: Any) -> Any:
    """What a statement multiplies a register of a thread by, itself a register; None for other statements."""
    if not isinstance(node, tir.BufferStore) or not isinstance(node.value, tir.Mul):
        return None
    one, other = node.value.a, node.value.b
    if not isinstance(one, Load) or not isinstance(other, Load):
        return None
    if any(scope(array) != "local" or dtype_of(array) != "float32" for array in (one.source, other.source)):
        return None
    for own, factor in ((one, other), (other, one)):
        same = own.source.same_as(node.buffer) and not factor.source.same_as(node.buffer)
        if same and all(map(tvm_ffi.structural_equal, own.indices, node.indices)):
            return factor
    return None
