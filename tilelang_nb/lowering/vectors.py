"""How many neighbouring elements one access may move: only what is provably contiguous and aligned.

An access is wide in a loop variable when its last index moves with the variable one by one and everything else
stays; it must start at a multiple of the width, because wide accesses trap on other addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import tvm
from tvm import DataType
from tvm import tirx as tir
from tvm.sym import Analyzer

from .context import LaunchContext
from .rewrite import constant, dtype_of, loads, scope, size, substitute, variables, walk

if TYPE_CHECKING:
    from .nests import Nest

VECTOR_BYTES = 16
REGISTERS = ("local", "local.var")


def lanes_of(dtype: str) -> int:
    """Elements of the type in one wide access; 1 for types without vectors."""
    if dtype.startswith(("bool", "handle")):
        return 1
    bits = DataType(dtype).bits
    return max(1, VECTOR_BYTES * 8 // bits) if bits >= 8 else 1


def vector_width(nest: Nest, launch: LaunchContext) -> int:
    """The widest group of neighbouring innermost iterations whose memory accesses are all wide or all the same."""
    if not nest.simple or None in nest.extents or not nest.memory or constant(nest.loops[-1].min) != 0:
        return 1
    var, extent = nest.loops[-1].loop_var, size(nest.loops[-1].extent)
    lanes = (launch.run(access.buffer, lanes_of(dtype_of(access.buffer))) for access in nest.memory)
    width = max(1, min(lanes, default=1))
    while width > 1:
        if extent % width == 0 and all(
            is_wide(access.buffer, access.indices, var, width, launch.analyzer, step=True) for access in nest.memory
        ):
            return width
        width //= 2
    return 1


def is_wide(buffer: Any, indices: Iterable[Any], var: Any, width: int, analyzer: Analyzer, step: bool = False) -> bool:
    """Do `width` values of the variable touch neighbouring elements from an aligned one on, or all the same element?

    step: the variable itself runs over all numbers, and the groups begin at its multiples of `width`.
    """
    indices = list(indices)
    if not any(var in variables(index) for index in indices):
        return True
    if any(var in variables(index) for index in indices[:-1]):
        return False
    dtype = dtype_of(var)
    start = tir.Var("group", dtype) * width if step else tir.const(0, dtype)
    first = substitute(indices[-1], {var: start})
    last = substitute(indices[-1], {var: start + 1})
    if constant(analyzer.simplify(last - first)) != 1:
        return False
    if step and constant(analyzer.simplify(substitute(indices[-1], {var: start + (width - 1)}) - first)) != width - 1:
        return False
    return _multiple(first, width, analyzer) and all(
        _multiple(index, width, analyzer) or _multiple(stride, width, analyzer)
        for index, stride in zip(indices[:-1], outer_strides(buffer))
    )


def outer_strides(buffer: Any) -> list[Any]:
    """Element strides of all dimensions but the last."""
    strides = list(buffer.strides)
    if strides:
        return strides[:-1]
    result, stride = [], tir.const(1, "int64")
    for extent in reversed(list(buffer.shape)[1:]):
        extent = extent if dtype_of(extent) == "int64" else tir.Cast("int64", extent)
        stride = stride * extent
        result.append(stride)
    return list(reversed(result))


def _multiple(value: Any, width: int, analyzer: Analyzer) -> bool:
    known = analyzer.modular_set(value)
    return int(known.coeff) % width == 0 and int(known.base) % width == 0


def widest(stores: Iterable[Any], var: Any, limit: int, launch: LaunchContext) -> int:
    """The width for a loop over `var` whose body is these stores, under conditions or not.

    1 where a statement cannot be done for several iterations at once.
    """
    accesses: list[tuple[Any, list[Any]]] = []
    width = limit & -limit
    for node in stores:
        if not isinstance(node, tir.BufferStore) or not any(var in variables(index) for index in node.indices):
            return 1
        if not lane_by_lane(node.value):
            return 1
        accesses += [(node.buffer, list(node.indices)), *((load.source, list(load.indices)) for load in loads(node))]
    # Registers need no vectors: only what is in memory says how wide one access may be.
    shared = [buffer for buffer, _ in accesses if scope(buffer) not in REGISTERS]
    for buffer in shared or [buffer for buffer, _ in accesses]:
        width = min(width, launch.run(buffer, lanes_of(dtype_of(buffer))))
    while width > 1:
        if all(is_wide(buffer, indices, var, width, launch.analyzer, step=True) for buffer, indices in accesses):
            return width
        width //= 2
    return 1


# Calls that can be made for every lane by itself.
_ELEMENTWISE = {
    *("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sinh"),
    *("cosh", "asin", "acos", "atan", "atan2", "erf", "floor", "ceil", "fabs", "abs", "pow", "fmod", "round", "trunc"),
    *("nearbyint", "sigmoid", "isnan", "isinf", "isfinite", "reinterpret", "if_then_else", "popcount", "clz"),
}
# Functions of the device that look at one number.
_ELEMENTWISE_FUNCTIONS = {
    *("__expf", "__exp10f", "__logf", "__log2f", "__log10f", "__sinf", "__cosf", "__tanf", "__tanhf", "__powf"),
    *("__fdividef", "__fdiv_rn", "__fadd_rn", "__fsub_rn", "__fmul_rn", "__fmaf_rn", "__frcp_rn", "__fsqrt_rn"),
    *("__frsqrt_rn", "tl_floor_divide", "tl_floor_modulo", "__popc", "__clz", "__ffs"),
}


def lane_by_lane(expr: Any) -> bool:
    """Can the value be computed for several lanes at once?"""
    found: list[Any] = []
    walk(expr, (tvm.ir.Call, found.append))
    return all(_is_elementwise(call) for call in found)


def _is_elementwise(call: Any) -> bool:
    name = getattr(call.op, "name", "")
    if name in ("tirx.call_extern", "tirx.call_pure_extern"):
        return call.args[0].value in _ELEMENTWISE_FUNCTIONS
    return name.removeprefix("tirx.").removeprefix("prim.") in _ELEMENTWISE
