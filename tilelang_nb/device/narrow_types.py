"""Which narrow floats a module only moves and converts from and to float32: those need no header of NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from tilelang_nb.lowering.rewrite import Load

from .resources import number

NAMES = {"float16": "half", "bfloat16": "nv_bfloat16"}
COMPUTING = (
    *(pe.Add, pe.Sub, pe.Mul, pe.Div, pe.Mod, pe.Min, pe.Max),
    *(pe.EQ, pe.NE, pe.LT, pe.LE, pe.GT, pe.GE),
)
# Calls that only say where something is, or take what they are given as float.
MOVING = ("if_then_else", "address_of", "buffer_data", "ptr_byte_offset", "type_annotation", "tvm_access_ptr")
CONVERTING = ("tl_report_write",)


def only_moved(functions: Iterable[Any], arch: str) -> frozenset[str]:
    """The CUDA names of these types.  bfloat16 has conversions of its own from sm_80 on."""
    left = set(NAMES) if number(arch) >= 80 else {"float16"}

    def note(expr: Any) -> None:
        left.discard(_dtype(expr))

    def visit(node: Any) -> None:
        if isinstance(node, tir.Cast):
            pair = {_dtype(node), _dtype(node.value)}
            if "float32" not in pair:
                left.difference_update(pair)
        elif isinstance(node, tvm.ir.Call):
            name = getattr(node.op, "name", "")
            extern = node.args[0].value if name.endswith("extern") else ""
            if not name.endswith(MOVING) and extern not in CONVERTING:
                for expr in (node, *node.args):
                    note(expr)
        else:
            note(node.a)

    for function in functions:
        tvm_ffi.structural_walk(function.body, ((tir.Cast, tvm.ir.Call, *COMPUTING), visit))
    return frozenset(NAMES[dtype] for dtype in left)


def _dtype(expr: Any) -> str:
    """The element type, also of a vector; of a pointer the type of what it points to."""
    kind = getattr(expr, "ty", None)
    if isinstance(expr, Load):
        kind = getattr(expr.source, "ty", kind)
    kind = getattr(kind, "element_type", kind)
    return str(getattr(kind, "dtype", "")).partition("x")[0]
