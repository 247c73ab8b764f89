"""Values that stand for large expressions are kept in registers of their own before TVM's passes see them.

TVM's analyzer takes a bound variable for its value, and that for the values of the variables in it: of a chain such as
`x = x * x + x`, each line a variable, the time doubles with every line.  What memory holds it does not look into.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

LARGEST = 400  # nodes of an expression, with the values of its variables in their places
_FACTORS = {"abs": 3, "if_then_else": 2}  # how often an operand of such a call is met; abs is `x if x >= 0 else -x`


def keep_large_values(function: Any) -> Any:
    """The function with each variable whose value is too large, written out, as a private array of one element."""
    sizes: dict[Any, int] = {}
    kept: dict[Any, Any] = {}

    def measure(bind: Any) -> None:
        size = _size(bind.value, sizes)
        if size > LARGEST:
            dtype = str(bind.var.ty.dtype)
            kept[bind.var] = tir.decl_buffer((1,), dtype, bind.var.name, scope="local", layout=None)
            size = 1
        sizes[bind.var] = size

    tvm_ffi.structural_walk(function.body, (tir.Bind, measure), order="pre")
    if not kept:
        return function

    def stored(bind: Any) -> Any:
        buffer = kept.get(bind.var)
        if buffer is None:
            return bind
        zero = tir.const(0, "int32")
        return tir.SeqStmt(
            [tir.AllocBuffer(buffer, None, bind.span), tir.BufferStore(buffer, bind.value, [zero], bind.span)]
        )

    def loaded(var: Any) -> Any:
        buffer = kept.get(var)
        return var if buffer is None else tir.BufferLoad(buffer, [tir.const(0, "int32")])

    body = tvm_ffi.structural_map(function.body, (tir.Bind, stored))
    return function.with_body(tvm_ffi.structural_map(body, (tvm.ir.Var, loaded)))


def _size(expr: Any, sizes: dict[Any, int]) -> int:
    """Nodes of an expression as the analyzer meets them: the time that it takes over a choice doubles with each."""
    if isinstance(expr, tvm.ir.Var):
        return sizes.get(expr, 1)
    if isinstance(expr, tir.Select):
        return 1 + 2 * sum(_size(part, sizes) for part in (expr.condition, expr.true_value, expr.false_value))
    if isinstance(expr, tvm.ir.Call):
        factor = _FACTORS.get(str(getattr(expr.op, "name", "")).rpartition(".")[2], 1)
        return 1 + factor * sum(_size(part, sizes) for part in expr.args)
    if isinstance(expr, tvm.ir.TensorLoad):
        return 1 + sum(_size(part, sizes) for part in expr.indices)
    return 1 + sum(
        _size(getattr(expr, name), sizes)
        for name in ("a", "b", "value")
        if isinstance(getattr(expr, name, None), tvm.ir.Expr)
    )
