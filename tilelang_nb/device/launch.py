"""What a launcher must know: the kernel's symbol, its parameters in their order, and the sizes of grid and block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from tilelang_nb.lowering.hopper.persistent import MULTIPROCESSORS
from tilelang_nb.lowering.hopper.tensor_maps import TensorMap, is_map_variable

DYNAMIC_SHARED = "tirx.use_dyn_shared_memory"
Extent = int | Any


@dataclass(frozen=True)
class DeviceParameter:
    """A parameter of the CUDA kernel.

    kind: "pointer" (a global address, of elements of `dtype`), "scalar" or "tensor map".  name: of the kernel's
    parameter, shape or stride variable, or workspace.  variable: the same as a variable of the thread program.
    """

    name: str
    kind: str
    dtype: str
    variable: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class DeviceLaunch:
    """One launch of a program.

    name: the symbol in the cubin.  parameters: in the order of the CUDA kernel, which is not that of the source.
    grid, block: x, y, z; a number, or an expression over the kernel's scalars and shape variables.
    shared_bytes: dynamic shared memory.  report: name of the parameter for `reports.Report`, "" for none.
    tensor_maps: what the host encodes for the parameters of that kind.  cluster: blocks of a cluster along x, y and z,
    which divide the grid.  multiprocessors: name of the parameter that takes their number, "" for none.
    """

    name: str
    parameters: tuple[DeviceParameter, ...]
    grid: tuple[Extent, Extent, Extent]
    block: tuple[Extent, Extent, Extent]
    shared_bytes: Extent
    report: str = ""
    tensor_maps: tuple[TensorMap, ...] = field(default=(), compare=False, repr=False)
    cluster: tuple[int, int, int] = (1, 1, 1)
    multiprocessors: str = ""
    _compiled: list[Any] = field(default_factory=list, compare=False, repr=False)

    def configuration(self, values: Mapping[str, Any]) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
        """Grid, block and dynamic shared bytes for values of scalars and shape variables by name.

        Where the number of multiprocessors is not among them, it is that of most devices.
        KeyError: one that an expression needs is missing.
        """
        if self.multiprocessors:
            values = {self.multiprocessors: MULTIPROCESSORS, **values}
        if not self._compiled:
            self._compiled.append([evaluator(extent) for extent in (*self.grid, *self.block, self.shared_bytes)])
        found = [compute(values) for compute in self._compiled[0]]
        return (found[0], found[1], found[2]), (found[3], found[4], found[5]), found[6]

    @property
    def threads(self) -> int | None:
        """Threads of a block; None where arguments decide."""
        product = 1
        for extent in self.block:
            if not isinstance(extent, int):
                return None
            product *= extent
        return product


def evaluator(extent: Extent) -> Callable[[Mapping[str, Any]], int]:
    """A function of the variables' values."""
    if isinstance(extent, int):
        return lambda values: extent
    return eval(f"lambda values: int({_python(extent)})", {"math": math, **_FUNCTIONS})


def _quotient(a: Any, b: Any) -> Any:
    """Division of floats; of integers the one that truncates, and 0 by 0."""
    if isinstance(a, float):
        return a / b if b else math.copysign(math.inf, a) if a else math.nan
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quotient": _quotient,
    "remainder": lambda a, b: math.fmod(a, b) if isinstance(a, float) else a - _quotient(a, b) * b,
    "floor_quotient": lambda a, b: a // b if b else 0,
    "floor_remainder": lambda a, b: a % b if b else 0,
    "shifted_left": lambda a, b: a << b if 0 <= b < 64 else 0,
    "shifted_right": lambda a, b: a >> b if 0 <= b < 64 else 0,
}
_OPERATORS = {
    pe.Add: "({} + {})",
    pe.Sub: "({} - {})",
    pe.Mul: "({} * {})",
    pe.FloorDiv: "floor_quotient({}, {})",
    pe.FloorMod: "floor_remainder({}, {})",
    pe.Div: "quotient({}, {})",
    pe.Mod: "remainder({}, {})",
    pe.Min: "min({}, {})",
    pe.Max: "max({}, {})",
    pe.EQ: "({} == {})",
    pe.NE: "({} != {})",
    pe.LT: "({} < {})",
    pe.LE: "({} <= {})",
    pe.GT: "({} > {})",
    pe.GE: "({} >= {})",
    pe.And: "({} and {})",
    pe.Or: "({} or {})",
    pe.LShift: "shifted_left({}, {})",
    pe.RShift: "shifted_right({}, {})",
    pe.BitwiseAnd: "({} & {})",
    pe.BitwiseOr: "({} | {})",
    pe.BitwiseXor: "({} ^ {})",
}
_CALLS = {
    "if_then_else": "({1} if {0} else {2})",
    "abs": "abs({})",
    "fabs": "abs({})",
    "floor": "math.floor({})",
    "ceil": "math.ceil({})",
    "trunc": "math.trunc({})",
    "nearbyint": "round({})",
    "round": "math.trunc({0} + math.copysign(0.5, {0}))",
    "max": "max({}, {})",
    "min": "min({}, {})",
    "floor_divide": "floor_quotient({}, {})",
    "floor_modulo": "floor_remainder({}, {})",
    **{f"to_{sign}int{bits}": "math.trunc({})" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "shift_left": "shifted_left({}, {})",
    "shift_right": "shifted_right({}, {})",
    "bitwise_and": "({} & {})",
    "bitwise_or": "({} | {})",
    "bitwise_xor": "({} ^ {})",
    "bitwise_not": "(~{})",
}


def _python(expr: Any) -> str:
    kind = type(expr)
    if kind in _OPERATORS:
        return _OPERATORS[kind].format(_python(expr.a), _python(expr.b))
    if kind is tir.IntImm:
        return str(int(expr.value))
    if kind is tir.FloatImm:
        return f"float({float(expr.value)!r})"
    if kind is tvm.ir.Var:
        return f"{_number_type(expr)}(values[{expr.name!r}])"
    if kind is tir.Cast:
        return f"{_number_type(expr)}({_python(expr.value)})"
    if kind is tir.Not:
        return f"(not {_python(expr.a)})"
    if kind is tir.Select:
        return _CALLS["if_then_else"].format(*map(_python, (expr.condition, expr.true_value, expr.false_value)))
    if kind is tvm.ir.Call:
        name, arguments = expr.op.name.rpartition(".")[2], list(expr.args)
        if name.endswith("extern"):
            name, arguments = arguments[0].value, arguments[1:]
        name = name.removeprefix("tl_")
        if name in _CALLS:
            return _CALLS[name].format(*map(_python, arguments))
    raise NotImplementedError(f"{kind.__name__} in the size of a launch")


def _number_type(expr: Any) -> str:
    return "float" if "float" in str(expr.ty.dtype) else "int"


def launch_of(
    host: Any, report: str = "", tensor_maps: tuple[TensorMap, ...] = (), cluster: tuple[int, int, int] = (1, 1, 1),
    multiprocessors: str = "",
) -> DeviceLaunch:  # fmt: skip
    """Read the call that SplitHostDevice left in the host function of one launch."""
    calls: list[Any] = []
    views: dict[Any, Any] = {}

    def visit_call(call: Any) -> None:
        if getattr(call.op, "name", "") == "tirx.call_ffi_kernel":
            calls.append(call)

    def visit_view(view: Any) -> None:  # FlattenBuffer passes a flat view of each parameter
        views[view.buffer] = view.data.args[0]

    tvm_ffi.structural_walk(host.body, [(tvm.ir.Call, visit_call), (tir.DeclBuffer, visit_view)])
    (call,) = calls
    tags = [str(tag) for tag in call.attrs.launch_params]
    split = len(call.args) - len(tags)
    sizes = dict(zip(tags, map(_number, call.args[split:])))
    return DeviceLaunch(
        name=str(call.args[0].value),
        parameters=tuple(_parameter(argument, views) for argument in call.args[1:split]),
        grid=(sizes.get("blockIdx.x", 1), sizes.get("blockIdx.y", 1), sizes.get("blockIdx.z", 1)),
        block=(sizes.get("threadIdx.x", 1), sizes.get("threadIdx.y", 1), sizes.get("threadIdx.z", 1)),
        shared_bytes=sizes.get(DYNAMIC_SHARED, 0),
        report=report,
        tensor_maps=tensor_maps,
        cluster=cluster,
        multiprocessors=multiprocessors,
    )


def _number(extent: Any) -> Extent:
    return int(extent) if isinstance(extent, tir.IntImm) else extent


def _parameter(argument: Any, views: Mapping[Any, Any]) -> DeviceParameter:
    variable = argument.args[0] if isinstance(argument, tvm.ir.Call) else argument
    variable = views.get(variable, variable)
    if hasattr(variable.ty, "shape"):
        return DeviceParameter(variable.name, "pointer", str(variable.ty.dtype), variable)
    if hasattr(variable.ty, "dtype"):
        return DeviceParameter(variable.name, "scalar", str(variable.ty.dtype), variable)
    if is_map_variable(variable):
        return DeviceParameter(variable.name, "tensor map", "uint64", variable)
    element = getattr(variable.ty, "element_type", None)
    return DeviceParameter(variable.name, "pointer", str(getattr(element, "dtype", "uint8")), variable)
