"""Powers of two beside matrix products take one instruction each.

`exp2f` spends three more instructions on results below the smallest normal number, 2 ** -126.  In a kernel that
multiplies on tensor cores such results are 0: a softmax has them beside the 1 of its largest element, and attention
spends a good part of its time on powers.  All other results, infinities and NaN are those of `exp2f`.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.rewrite import dtype_of

PRODUCTS = ("tirx.ptx.mma", "tirx.ptx.wgmma")


def short_powers(function: Any) -> Any:
    """The thread program with such powers as calls of the prelude."""

    def note(call: Any) -> Any:
        return tvm_ffi.VisitInterrupt(call) if getattr(call.op, "name", "").startswith(PRODUCTS) else None

    if not isinstance(tvm_ffi.structural_walk(function.body, (tvm.ir.Call, note)), tvm_ffi.VisitInterrupt):
        return function

    def short(call: Any) -> Any:
        return tir.call_pure_extern("float32", "tl_exp2", *call.args) if _is_power(call) else call

    body = tvm_ffi.structural_map(function.body, (tvm.ir.Call, short))
    return function if body.same_as(function.body) else function.with_body(body)


def _is_power(call: Any) -> bool:
    return getattr(call.op, "name", "") == "tirx.exp2" and dtype_of(call) == "float32"
