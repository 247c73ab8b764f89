"""Questions about TIR nodes: calls and jumps inside a statement, linear forms, loads, sameness of indices."""

from __future__ import annotations

import math
import operator
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from .values import Unsupported, dtype_of, is_float, is_integer

# Calls at which a thread may have to wait for other threads: a divergent `if` around one runs its branches side by
# side.
BLOCKING = frozenset(
    {
        "tirx.cuda.mbarrier_wait",
        "tirx.cuda.mbarrier_wait_acquire_cluster",
        "tirx.ptx.barrier_cluster_wait",
        "tirx.ptx.bar_sync",
        "tirx.ptx.barrier_sync",
        "tirx.ptx.bar_sync_count",
        "tirx.ptx.barrier_sync_count",
        "tirx.ptx.setmaxnreg",
    }
)
# Arithmetic that some right operands leave undefined: by their node classes and by their calls.
PARTIAL = (pe.FloorDiv, pe.FloorMod, pe.Div, pe.Mod, pe.LShift, pe.RShift)
SHIFTS = ("tirx.shift_left", "tirx.shift_right")
_JUMPS = ("tirx.break_loop", "tirx.continue_loop")


def call_name(node: Any) -> str:
    """Name of the operator of a call, "" for other nodes."""
    return getattr(getattr(node, "op", None), "name", "") or ""


def extern_name(call: Any) -> str:
    """Function of a `call_extern`, else ""."""
    return call.args[0].value if call_name(call) in ("tirx.call_extern", "tirx.call_pure_extern") else ""


def contains_call(node: Any, names: frozenset[str]) -> bool:
    """Does a node hold a call of one of these names?"""
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (tvm.ir.Call, lambda call: found.append(1) if call_name(call) in names else None))
    return bool(found)


def calls_extern(node: Any, names: tuple[str, ...]) -> bool:
    """Does a node hold a call of one of these functions of the device?"""
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (tvm.ir.Call, lambda call: found.append(1) if extern_name(call) in names else None))
    return bool(found)


def has_jump(statement: Any) -> bool:
    """True if a break or continue is inside (also one that belongs to a loop inside)."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, (tir.Break, tir.Continue)) or call_name(node) in _JUMPS:
            found.append(node)

    tvm_ffi.structural_walk(statement, look)
    return bool(found)


def jumps_out(statement: Any) -> bool:
    """True if a break or continue leaves `statement`: those of loops inside it do not."""
    if isinstance(statement, (tir.For, tir.While)):
        return False
    if isinstance(statement, tir.SeqStmt):
        return any(jumps_out(child) for child in statement.seq)
    if isinstance(statement, tir.IfThenElse):
        return jumps_out(statement.then_case) or (statement.else_case is not None and jumps_out(statement.else_case))
    if isinstance(statement, tir.AttrStmt):
        return jumps_out(statement.body)
    return has_jump(statement)


def loads(node: Any) -> list[Any]:
    """Every buffer load inside `node`."""
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (tvm.ir.TensorLoad, found.append))
    return found


def variables(node: Any) -> list[Any]:
    """Every occurrence of a variable."""
    if isinstance(node, int):
        return []
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (tvm.ir.Var, found.append))
    return found


def uses(node: Any, variable: Any) -> bool:
    """Does a node read the variable?"""
    return any(other.same_as(variable) for other in variables(node))


def reads_memory(expression: Any) -> bool:
    """True if evaluating the expression does more than arithmetic that any operands have: a load, a call that may have
    an effect, or a division or shift that is undefined for some operands.
    """
    found: list[Any] = []

    def look(node: Any) -> None:
        loads = isinstance(node, tvm.ir.TensorLoad) or isinstance(node, tvm.ir.Call) and extern_name(node)
        if loads or _is_partial(node):
            found.append(node)

    tvm_ffi.structural_walk(expression, look)
    return bool(found)


def _is_partial(node: Any) -> bool:
    if call_name(node) in SHIFTS:
        return constant(node.args[1]) is None
    return isinstance(node, PARTIAL) and constant(node.b) is None and is_integer(dtype_of(node))


def same_indices(a: Any, b: Any) -> bool:
    """Are two index lists the same expressions?"""
    return len(a) == len(b) and all(
        tvm_ffi.structural_equal(x, y, map_free_vars=False) for x, y in zip(a, b, strict=True)
    )


def linear(expression: Any) -> dict[Any, int] | None:
    """Coefficients of the variables of an integer expression.

    Parts that are not linear contribute None for each of their variables, so a caller can tell "absent" from "not
    linear".
    """
    result: dict[Any, Any] = {}

    def add(node: Any, factor: int) -> None:
        if isinstance(node, pe.IntImm):
            return
        if isinstance(node, tvm.ir.Var):
            known = result.get(node, 0)
            result[node] = None if known is None else known + factor
        elif isinstance(node, pe.Add):
            add(node.a, factor)
            add(node.b, factor)
        elif isinstance(node, pe.Sub):
            add(node.a, factor)
            add(node.b, -factor)
        elif isinstance(node, pe.Mul) and isinstance(node.b, pe.IntImm):
            add(node.a, factor * int(node.b.value))
        elif isinstance(node, pe.Mul) and isinstance(node.a, pe.IntImm):
            add(node.b, factor * int(node.a.value))
        elif isinstance(node, pe.Cast) and "int" in str(node.ty.dtype):
            add(node.value, factor)
        else:
            for variable in variables(node):
                result[variable] = None

    add(expression, 1)
    return result


def constant(expression: Any) -> int | None:
    """Value of an integer constant, else None."""
    if isinstance(expression, int):
        return expression
    return int(expression.value) if isinstance(expression, pe.IntImm) else None


def accessed_buffers(statement: Any) -> tuple[set[Any], set[Any]]:
    """(buffers that are read, buffers that are written) by loads, stores and calls that are given an address."""
    reads: set[Any] = set()
    writes: set[Any] = set()
    addressed: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, tir.BufferStore):
            writes.add(node.buffer)
        elif call_name(node).startswith(("tirx.ptx.cp_async_cg", "tirx.ptx.cp_async_ca")):
            sources.append(node.args[1].args[0])
        elif call_name(node) == "tirx.address_of" and isinstance(node.args[0], tvm.ir.TensorLoad):
            addressed.append(node.args[0])

    sources: list[Any] = []  # of asynchronous copies: only read
    tvm_ffi.structural_walk(statement, look)
    writes |= {load.source for load in addressed if not any(load.same_as(source) for source in sources)}
    reads |= {load.source for load in sources}
    for load in loads(statement):
        if not any(load.same_as(place) for place in addressed):
            reads.add(load.source)
    return reads, writes


def evaluate(expression: Any, values: dict[Any, Any]) -> Any:
    """An expression over known variables, in Python."""
    number = constant(expression)
    if number is not None:
        return number
    if isinstance(expression, pe.FloatImm):
        return float(expression.value)
    if isinstance(expression, tvm.ir.Var):
        held = values[expression]
        return float(held) if is_float(dtype_of(expression)) else int(held)
    if isinstance(expression, pe.Cast):
        value = evaluate(expression.value, values)
        return float(value) if is_float(dtype_of(expression)) else int(value)
    if isinstance(expression, pe.Not):
        return int(not evaluate(expression.a, values))
    chosen = _choice(expression)
    if chosen is not None:
        condition, then, other = chosen
        return evaluate(then if evaluate(condition, values) else other, values)
    operation, operands = _operation(expression)
    return operation(*[evaluate(operand, values) for operand in operands])


def _choice(expression: Any) -> tuple[Any, Any, Any] | None:
    """Condition, value where it holds, and the other one."""
    if isinstance(expression, pe.Select):
        return expression.condition, expression.true_value, expression.false_value
    if _function(expression) == "if_then_else":
        return tuple(expression.args)  # type: ignore[return-value]
    return None


def _operation(expression: Any) -> tuple[Any, list[Any]]:
    operation = _OPERATIONS.get(type(expression))
    if operation is not None:
        return operation, [expression.a, expression.b]
    operation = _CALLS.get(_function(expression))
    if operation is None:
        raise Unsupported(f"{_function(expression) or type(expression).__name__} in the extent of a launch")
    return operation, list(expression.args[1:] if extern_name(expression) else expression.args)


def _function(expression: Any) -> str:
    return extern_name(expression) or call_name(expression).rpartition(".")[2]


def _quotient(a: Any, b: Any) -> Any:
    return a / b if isinstance(a, float) else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS = {
    pe.Add: lambda a, b: a + b,
    pe.Sub: lambda a, b: a - b,
    pe.Mul: lambda a, b: a * b,
    pe.FloorDiv: lambda a, b: a // b if b else 0,
    pe.FloorMod: lambda a, b: a % b if b else 0,
    pe.Div: lambda a, b: _quotient(a, b) if b else 0,
    pe.Mod: lambda a, b: math.fmod(a, b) if isinstance(a, float) else a - b * _quotient(a, b) if b else 0,
    pe.Max: max,
    pe.Min: min,
    pe.And: lambda a, b: a and b,
    pe.Or: lambda a, b: a or b,
    pe.EQ: operator.eq,
    pe.NE: operator.ne,
    pe.LT: operator.lt,
    pe.LE: operator.le,
    pe.GT: operator.gt,
    pe.GE: operator.ge,
    pe.LShift: lambda a, b: a << b if 0 <= b < 64 else 0,
    pe.RShift: lambda a, b: a >> b if 0 <= b < 64 else 0,
    pe.BitwiseAnd: operator.and_,
    pe.BitwiseOr: operator.or_,
    pe.BitwiseXor: operator.xor,
}
_CALLS = {
    "abs": abs,
    "fabs": abs,
    "tl_floor_divide": _OPERATIONS[pe.FloorDiv],
    "tl_floor_modulo": _OPERATIONS[pe.FloorMod],
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "nearbyint": round,
    "shift_left": _OPERATIONS[pe.LShift],
    "shift_right": _OPERATIONS[pe.RShift],
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert,
}
