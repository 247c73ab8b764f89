"""Operations whose meaning the CUDA printer would not keep are written as calls of functions of the prelude.

Conversions of floats to integers saturate, also to narrow types, and do not depend on what C++ leaves undefined;
conversions to float8 keep infinity where the type has one; shifts take any distance; elementary functions of narrow
floats are computed in float32 and rounded once.  `T.print` and `T.device_assert` become records of a report.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.ir.prim import expr as pe

from tilelang_nb.lowering.rewrite import constant, dtype_of, has, map_children, variables, with_body
from tilelang_nb.lowering.spans import source_span
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Refusal

from .predicated_copies import predicated_copies
from .reports import ReportWriter
from .resources import number

NARROW = ("float16", "bfloat16")
WIDTHS = {"bool": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}

# Functions of the prelude for what TVM has no CUDA name for, or another meaning than ours, by TIR operator.
FLOAT_FUNCTIONS = {
    "asin": "tl_asin",
    "acos": "tl_acos",
    "atan": "tl_atan",
    "asinh": "tl_asinh",
    "acosh": "tl_acosh",
    "atanh": "tl_atanh",
    "atan2": "tl_atan2",
    "sinh": "tl_sinh",
    "cosh": "tl_cosh",
    "tan": "tl_tan",
    "erf": "tl_erf",
    "log1p": "tl_log1p",
    "hypot": "tl_hypot",
    "copysign": "tl_copysign",
    "nextafter": "tl_nextafter",
    "ldexp": "tl_ldexp",
    "exp10": "tl_exp10",
    "fmod": "tl_fmod",
    "nearbyint": "tl_nearbyint",
    "round": "tl_round",
    "sigmoid": "tl_sigmoid",
}
ARITHMETIC = (pe.Add, pe.Sub, pe.Mul, pe.Div)
COMPARISONS = (pe.EQ, pe.NE, pe.LT, pe.LE, pe.GT, pe.GE)
KEPT = ("exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tanh", "pow", "floor", "ceil", "trunc")
MATHEMATICS = (*KEPT, *FLOAT_FUNCTIONS)
CLASSIFYING = {"isnan": "tl_isnan", "isinf": "tl_isinf", "isfinite": "tl_isfinite"}


def is_float(dtype: str) -> bool:
    """A floating-point type of any width."""
    return "float" in dtype


# Barriers in shared memory: from which architecture on.
BARRIERS = {
    "tirx.ptx.mbarrier_arrive_expect_tx": 90,
    "tirx.ptx.mbarrier_expect_tx": 90,
    "tirx.ptx.mbarrier_init": 80,
    "tirx.cuda.mbarrier_wait": 80,
}


def spell_out(function: Any, report: ReportWriter, arch: str) -> Any:
    """The thread program with such operations as calls.

    TL302 (Refusal): the architecture has no barriers in shared memory, or none that count bytes.
    """
    if number(arch) < max(BARRIERS.values()):
        function = function.with_body(_older_barriers(function.body, arch))
    body = report.rewrite(function.body) if has(function.body, tir.Evaluate) else function.body
    body = _shared_divisors(predicated_copies(body), frozenset())
    body = tvm_ffi.structural_map(
        body,
        [
            (tir.Cast, _conversion),
            ((pe.LShift, pe.RShift), _shift),
            ((tir.Max, tir.Min), _extremum),
            ((*ARITHMETIC, *COMPARISONS), _of_float8),
            (tir.FloatImm, _constant),
            (tir.Select, _choice),
            (tvm.ir.Call, _call),
        ],
    )
    return function if body.same_as(function.body) else function.with_body(body)


def _shared_divisors(node: Any, lanes: frozenset[Any]) -> Any:
    """Divisions in unrolled loops by what does not change with one of them."""
    if isinstance(node, tir.For):
        unrolled = tir.ForKind(node.kind) in (tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED)
        return with_body(node, _shared_divisors(node.body, lanes | {node.loop_var} if unrolled else lanes))
    if not isinstance(node, tir.BufferStore | tir.Bind):
        return map_children(node, lambda child: _shared_divisors(child, lanes))
    if not lanes:
        return node

    def division(expr: Any) -> Any:
        changing = (lanes & variables(expr.a)) - variables(expr.b)
        shared = bool(changing) and not isinstance(expr.b, tir.FloatImm)
        return _call_of("tl_divide", "float32", expr.a, expr.b) if shared and dtype_of(expr) == "float32" else expr

    return tvm_ffi.structural_map(node, (pe.Div, division))


def _older_barriers(node: Any, arch: str) -> Any:
    """Waiting for a barrier without the instruction that waits."""
    if not isinstance(node, tir.Evaluate) or not isinstance(node.value, tvm.ir.Call):
        return map_children(node, lambda child: _older_barriers(child, arch))
    call = node.value
    needed = BARRIERS.get(getattr(call.op, "name", ""), 0)
    if number(arch) < needed:
        problem = f"this barrier needs sm_{needed}, and the kernel is compiled for {arch}"
        remedy = "order the threads of a block with `T.sync_threads()`, or choose a newer architecture"
        raise Refusal(say.TargetUnavailable(problem=problem, remedy=remedy), source_span(node.span))
    if call.op.name != "tirx.cuda.mbarrier_wait":
        return node
    return tir.Evaluate(tir.call_extern("void", "tl_mbarrier_wait", *call.args), node.span)


def _call_of(name: str, dtype: str, *arguments: Any) -> Any:
    return tir.call_pure_extern(dtype, name, *arguments)


def _conversion(node: Any) -> Any:
    source, target = dtype_of(node.value), dtype_of(node)
    if target.startswith("float8") and source != target:
        wide = node.value if source == "float32" else tir.Cast("float32", node.value)
        return _call_of(f"tl_to_{target}", target, wide)
    if source.startswith("float8") and target != source:
        wide = _call_of("tl_from_float8", "float32", node.value)
        return wide if target == "float32" else _conversion(tir.Cast(target, wide))
    if is_float(source) and not is_float(target):
        wide = node.value if source in ("float32", "float64") else tir.Cast("float32", node.value)
        if target == "bool":
            return tir.NE(wide, tir.const(0.0, dtype_of(wide)))
        return _call_of(f"tl_to_{target}", target, wide)
    if is_float(source) and {source, target} == set(NARROW):
        return tir.Cast(target, tir.Cast("float32", node.value))
    if target in NARROW and not is_float(source):
        return tir.Cast(target, tir.Cast("float32", node.value))
    return node


def _of_float8(node: Any) -> Any:
    """Arithmetic of float8 is that of float32, rounded."""
    dtype = dtype_of(node.a)
    if not dtype.startswith("float8"):
        return node
    wide = type(node)(*[_conversion(tir.Cast("float32", operand)) for operand in (node.a, node.b)])
    return wide if isinstance(node, COMPARISONS) else _conversion(tir.Cast(dtype, wide))


def _constant(node: Any) -> Any:
    """The printer's constructors of float8 saturate."""
    dtype = dtype_of(node)
    if dtype.startswith("float8") and not math.isfinite(node.value):
        return _call_of(f"tl_to_{dtype}", dtype, tir.const(node.value, "float32"))
    return node


def _shift(node: Any) -> Any:
    dtype, distance = dtype_of(node), constant(node.b)
    if distance is None and isinstance(node.b, pe.BitwiseAnd):
        distance = constant(node.b.b)  # at most that
    if distance is not None and 0 <= distance < WIDTHS[dtype.lstrip("u")]:
        return node
    name = "tl_shift_left" if isinstance(node, pe.LShift) else "tl_shift_right"
    return _call_of(name, dtype, node.a, node.b)


def _choice(node: Any) -> Any:
    """`x if x > y or isnan(x) else y`, as reductions compare, is one instruction of the device."""
    x, y, condition = node.true_value, node.false_value, node.condition
    dtype = dtype_of(node)
    if not isinstance(condition, tir.Or) or dtype not in ("float32", "float16", "bfloat16"):
        return node
    compared, call = condition.a, condition.b
    if not isinstance(compared, pe.GT | pe.LT) or not isinstance(call, tvm.ir.Call):
        return node
    if not (isinstance(call.args[0], StringImm) and call.args[0].value == CLASSIFYING["isnan"]):
        return node
    given = call.args[1].value if dtype in NARROW and isinstance(call.args[1], tir.Cast) else call.args[1]
    if all(tvm_ffi.structural_equal(one, other) for one, other in ((compared.a, x), (compared.b, y), (given, x))):
        return _call_of("tl_nan_max" if isinstance(compared, pe.GT) else "tl_nan_min", dtype, x, y)
    return node


def _extremum(node: Any) -> Any:
    dtype = dtype_of(node)
    if not is_float(dtype):
        return node
    if dtype.startswith("float8"):
        wide = [_conversion(tir.Cast("float32", operand)) for operand in (node.a, node.b)]
        return _conversion(tir.Cast(dtype, _extremum(type(node)(*wide))))
    return _call_of("tl_max" if isinstance(node, tir.Max) else "tl_min", dtype, node.a, node.b)


def _call(node: Any) -> Any:
    name = getattr(node.op, "name", "")
    short = name.removeprefix("tirx.").removeprefix("prim.")
    if short in MATHEMATICS or short in CLASSIFYING or short in ("fabs", "abs"):
        return _mathematics(short, node)
    if short in ("popcount", "clz"):
        return _call_of(f"tl_{short}", dtype_of(node), *node.args)
    if short == "reinterpret" and hasattr(node.ty, "dtype"):
        source, target = dtype_of(node.args[0]), dtype_of(node)
        return node.args[0] if source == target else _call_of(f"tl_as_{target}", target, node.args[0])
    if short in ("shift_left", "shift_right"):
        return _shift((pe.LShift if short == "shift_left" else pe.RShift)(*node.args))
    if short in ("call_extern", "call_pure_extern"):
        function = node.args[0].value
        if function in ("max", "fmaxf", "min", "fminf"):
            return _call_of("tl_max" if "max" in function else "tl_min", dtype_of(node), *node.args[1:])
        if function in ("tl_floor_divide", "tl_floor_modulo") and dtype_of(node) in NARROW:
            wide = [tir.Cast("float32", argument) for argument in node.args[1:]]
            return tir.Cast(dtype_of(node), _call_of(function, "float32", *wide))
    return node


def _mathematics(short: str, node: Any) -> Any:
    dtype = dtype_of(node.args[0])
    if not is_float(dtype):
        if short == "pow":
            return _call_of("tl_integer_power", dtype_of(node), *node.args)
        return node
    if dtype in NARROW and short not in ("fabs", "abs"):
        arguments = [tir.Cast("float32", argument) for argument in node.args]
        wide = _mathematics_of(short, "bool" if short in CLASSIFYING else "float32", arguments)
        return wide if short in CLASSIFYING else tir.Cast(dtype, wide)
    if short in KEPT:
        return node
    return _mathematics_of(short, dtype_of(node), list(node.args))


def _mathematics_of(short: str, dtype: str, arguments: list[Any]) -> Any:
    if short in KEPT:
        return tir.power(*arguments) if short == "pow" else getattr(tir, short)(*arguments)
    names = {**FLOAT_FUNCTIONS, **CLASSIFYING, "fabs": "tl_abs", "abs": "tl_abs"}
    return _call_of(names[short], dtype, *arguments)
