"""A small interpreter of thread-level statements: all threads of a block do one statement after the other, in
lockstep.

It needs no barriers and knows nothing of the simulator, so lowering can be judged by itself, stage by stage.  Two
threads that store different values to one place in one statement are a fault, as is an access outside a buffer or a
register read before it is written.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import tirx as tir

from tilelang_nb.language.tile_program import RegionOperand, TileCall, operation_name, read


class Fault(AssertionError):
    """The program does something that no correct thread program does."""


class _Outside(Exception):
    """An element over the edge, in a tile program."""


def numpy_type(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)


def run(function: Any, single: bool = False, **arguments: Any) -> None:
    """Run a launch over NumPy arrays (written in place) and numbers, by parameter name.

    single: one thread does it all.  That is what the text of a tile program means, one iteration after the other; what
    is outside of a buffer reads 0 then and is not written.
    """
    values: dict[Any, Any] = {}
    memory: dict[Any, np.ndarray] = {}
    for parameter in function.params:
        given = arguments[parameter.name]
        if isinstance(parameter.ty, tir.BufferType):
            memory[parameter] = given
            for extent, size in zip(parameter.shape, given.shape):
                if isinstance(extent, tvm.ir.Var):
                    values[extent] = size
        else:
            values[parameter] = given
    node, grid, threads = function.body, [], []
    while isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
        (grid if "block" in node.node.thread_tag else threads).append((node.node.var, node.value))
        node = node.body
    start = _Block(dict(values), dict(memory), 1, single)
    sizes = [int(np.asarray(start.value(extent)).flat[0]) for _, extent in grid]
    count = [1 if single else int(extent) for _, extent in threads]
    for position in np.ndindex(*sizes):
        block = _Block(dict(values), dict(memory), int(np.prod(count)), single)
        for (var, _), index in zip(grid, position):
            block.values[var] = index
        lane = np.arange(block.threads)
        for (var, _), size in zip(threads, count):
            block.values[var] = (lane % size).astype(np.int32)
            lane = lane // size
        block.execute(node, np.ones(block.threads, bool))


class _Block:
    def __init__(self, values: dict[Any, Any], memory: dict[Any, np.ndarray], threads: int, single: bool):
        self.single = single
        self.values, self.memory, self.threads = values, memory, threads
        self.private: dict[Any, np.ndarray] = {}
        self.written: dict[Any, np.ndarray] = {}
        self.gone = np.zeros(threads, bool)

    # ---- statements ----

    def execute(self, node: Any, mask: np.ndarray) -> None:
        mask = mask & ~self.gone
        if not mask.any():
            return
        getattr(self, "_" + type(node).__name__)(node, mask)

    def _SeqStmt(self, node: Any, mask: np.ndarray) -> None:
        for one in node.seq:
            self.execute(one, mask)

    def _AttrStmt(self, node: Any, mask: np.ndarray) -> None:
        self.execute(node.body, mask)

    def _AllocBuffer(self, node: Any, mask: np.ndarray) -> None:
        shape, dtype = [int(extent) for extent in node.buffer.shape], numpy_type(str(node.buffer.ty.dtype))
        if node.buffer.scope() == "local":
            self.private[node.buffer] = np.zeros((self.threads, *shape), dtype)
            self.written[node.buffer] = np.zeros((self.threads, *shape), bool)
        else:
            self.memory[node.buffer] = np.zeros(shape, dtype)
            self.written[node.buffer] = np.zeros(shape, bool)

    def _DeclBuffer(self, node: Any, mask: np.ndarray) -> None:
        owner = node.data.args[0]
        shape = [int(np.asarray(self.value(extent)).flat[0]) for extent in node.buffer.shape]
        dtype = numpy_type(str(node.buffer.ty.dtype))
        self.memory[node.buffer] = self.memory[owner].reshape(-1).view(dtype).reshape(shape)

    def _Bind(self, node: Any, mask: np.ndarray) -> None:
        value = self.value(node.value, mask)
        self.values[node.var] = np.array(value, copy=True)

    def _Evaluate(self, node: Any, mask: np.ndarray) -> None:
        if operation_name(node.value) is not None:
            self._tile(read(node.value))
        elif not isinstance(node.value, tir.IntImm):
            self.value(node.value, mask)

    def _tile(self, call: TileCall) -> None:
        """A tile operation as NumPy sees it (for a tile program, run as one thread)."""
        name, target = call.name, call["target"]
        if name == "copy":
            value = self._read(call["source"])
        elif name == "fill":
            value = np.full([int(extent) for extent in target.extent], self.value(call["value"]))
        elif name == "reduce":
            function = {"sum": np.sum, "max": np.max, "min": np.min}[call["operation"]]
            value = function(self._read(call["source"]), axis=call.integer("dim"))
        else:
            raise NotImplementedError(name)
        self._write(target, value)

    def _range(self, operand: RegionOperand) -> tuple[list[int], list[int], np.ndarray]:
        begin = [int(np.asarray(self.value(part)).flat[0]) for part in operand.begin]
        return begin, [int(extent) for extent in operand.extent], self.memory[operand.buffer]

    def _read(self, operand: RegionOperand) -> np.ndarray:
        begin, extents, array = self._range(operand)
        result = np.zeros(extents, array.dtype)
        inside = _inside(begin, extents, array.shape)
        result[tuple(slice(a - b, c - b) for (a, c), b in zip(inside, begin))] = array[tuple(slice(*p) for p in inside)]
        return result

    def _write(self, operand: RegionOperand, value: np.ndarray) -> None:
        begin, extents, array = self._range(operand)
        inside = _inside(begin, extents, array.shape)
        with np.errstate(all="ignore"):
            value = value.reshape(extents).astype(array.dtype)
        places = tuple(slice(*part) for part in inside)
        array[places] = value[tuple(slice(a - b, c - b) for (a, c), b in zip(inside, begin))]
        if operand.buffer in self.written:
            self.written[operand.buffer][places] = True

    def _BufferStore(self, node: Any, mask: np.ndarray) -> None:
        try:
            array, where = self._place(node.buffer, node.indices, mask)
        except _Outside:
            return
        value = np.broadcast_to(np.asarray(self.value(node.value, mask)), (self.threads,))[mask]
        with np.errstate(all="ignore"):
            value = value.astype(array.dtype)
        array[where] = value
        after = array[where]
        if not (_bits(after) == _bits(value)).all():
            raise Fault(f"threads store different values to one place of {node.buffer.name}: {node}")
        if node.buffer in self.written:
            self.written[node.buffer][where] = True

    def _IfThenElse(self, node: Any, mask: np.ndarray) -> None:
        condition = np.broadcast_to(np.asarray(self.value(node.condition, mask)).astype(bool), (self.threads,))
        self.execute(node.then_case, mask & condition)
        if node.else_case is not None:
            self.execute(node.else_case, mask & ~condition)

    def _For(self, node: Any, mask: np.ndarray) -> None:
        low = np.broadcast_to(np.asarray(self.value(node.min, mask)), (self.threads,))
        extent = np.broadcast_to(np.asarray(self.value(node.extent, mask)), (self.threads,))
        outer, self.gone = self.gone, np.zeros(self.threads, bool)
        broken = np.zeros(self.threads, bool)
        for turn in range(int(extent[mask].max(initial=0))):
            self.gone[:] = False
            self.values[node.loop_var] = low + turn
            self._broken = broken
            self.execute(node.body, mask & (turn < extent) & ~broken)
            self._broken = broken
        self.gone = outer

    def _While(self, node: Any, mask: np.ndarray) -> None:
        outer, self.gone = self.gone, np.zeros(self.threads, bool)
        broken, active = np.zeros(self.threads, bool), mask.copy()
        for _ in range(100_000):
            active &= ~broken
            if active.any():
                active &= np.broadcast_to(np.asarray(self.value(node.condition, active)).astype(bool), (self.threads,))
            if not active.any():
                self.gone = outer
                return
            self.gone[:] = False
            self._broken = broken
            self.execute(node.body, active)
        raise Fault("endless loop")

    def _Break(self, node: Any, mask: np.ndarray) -> None:
        self._broken |= mask
        self.gone |= mask

    def _Continue(self, node: Any, mask: np.ndarray) -> None:
        self.gone |= mask

    # ---- expressions ----

    def _place(self, buffer: Any, indices: Any, mask: np.ndarray) -> tuple[np.ndarray, Any]:
        where = []
        array = self.private.get(buffer)
        shape = self.memory[buffer].shape if array is None else array.shape[1:]
        for index, extent in zip(indices, shape):
            value = np.broadcast_to(np.asarray(self.value(index, mask)), (self.threads,))[mask]
            if ((value < 0) | (value >= extent)).any():
                if self.single and array is None:
                    raise _Outside
                raise Fault(f"{buffer.name}[{list(indices)}] is outside {shape}: {value}")
            where.append(value)
        if array is None:
            return self.memory[buffer], tuple(where) if where else ...
        return array, (np.flatnonzero(mask), *where)

    def value(self, expr: Any, mask: np.ndarray | None = None) -> Any:
        kind = type(expr).__name__
        if kind == "IntImm":
            return (
                np.dtype(bool).type(expr.value)
                if str(expr.ty.dtype) == "bool"
                else numpy_type(str(expr.ty.dtype)).type(expr.value)
            )
        if kind == "FloatImm":
            return numpy_type(str(expr.ty.dtype)).type(expr.value)
        if kind == "Var":
            return self.values[expr]
        if kind == "Cast":
            with np.errstate(all="ignore"):
                return np.asarray(self.value(expr.value, mask)).astype(numpy_type(str(expr.ty.dtype)))
        if kind == "TensorLoad":
            try:
                array, where = self._place(expr.source, expr.indices, mask)
            except _Outside:
                return np.zeros(self.threads, self.memory[expr.source].dtype)
            if expr.source in self.written and not self.written[expr.source][where].all():
                raise Fault(f"{expr} is read before it is written")
            result = np.zeros(self.threads, array.dtype)
            result[mask] = array[where]
            return result
        if kind == "Call":
            return self._call(expr, mask)
        if kind == "Not":
            return ~np.asarray(self.value(expr.a, mask)).astype(bool)
        if kind == "And":
            left = np.broadcast_to(np.asarray(self.value(expr.a, mask)).astype(bool), (self.threads,))
            return left & self._under(expr.b, mask & left, np.dtype(bool))
        if kind == "Or":
            left = np.broadcast_to(np.asarray(self.value(expr.a, mask)).astype(bool), (self.threads,))
            return left | self._under(expr.b, mask & ~left, np.dtype(bool))
        if kind == "Select":
            parts = [self.value(part, mask) for part in (expr.condition, expr.true_value, expr.false_value)]
            return np.where(*parts)
        with np.errstate(all="ignore"):
            return _BINARY[kind](np.asarray(self.value(expr.a, mask)), np.asarray(self.value(expr.b, mask)))

    def _under(self, expr: Any, mask: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if not mask.any():
            return np.zeros(self.threads, dtype)
        return np.broadcast_to(np.asarray(self.value(expr, mask)).astype(dtype), (self.threads,))

    def _call(self, expr: Any, mask: np.ndarray) -> Any:
        name = expr.op.name
        if name.endswith("if_then_else"):
            condition = np.broadcast_to(np.asarray(self.value(expr.args[0], mask)).astype(bool), (self.threads,))
            dtype = numpy_type(str(expr.ty.dtype))
            then = self._under(expr.args[1], mask & condition, dtype)
            return np.where(condition, then, self._under(expr.args[2], mask & ~condition, dtype))
        if name == "tirx.call_extern" and str(expr.args[0].value).startswith("tl_atomic_"):
            return self._atomic(expr.args[0].value, expr.args[1].args[0], expr.args[2], mask)
        if name == "tirx.tvm_storage_sync":
            return 0
        function = {"tirx.exp": np.exp, "tirx.exp2": np.exp2, "tirx.sqrt": np.sqrt, "tirx.fabs": np.abs}[name]
        return function(np.asarray(self.value(expr.args[0], mask)))

    def _atomic(self, name: str, load: Any, value: Any, mask: np.ndarray) -> Any:
        array, where = self._place(load.source, load.indices, mask)
        values = np.broadcast_to(np.asarray(self.value(value, mask)), (self.threads,))
        result = np.zeros(self.threads, array.dtype)
        for k, lane in enumerate(np.flatnonzero(mask)):
            place = tuple(part[k] for part in where) if where is not ... else ...
            result[lane] = array[place]
            step = {"add": np.add, "max": np.maximum, "min": np.minimum}[name.removeprefix("tl_atomic_")]
            array[place] = step(array[place], values[lane])
        return result


def _inside(begin: list[int], extents: list[int], shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Per dimension the part of a region that lies in the array."""
    return [(min(max(b, 0), n), max(min(b + e, n), min(max(b, 0), n))) for b, e, n in zip(begin, extents, shape)]


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1).sum(1) * 0 + np.where(
        np.isnan(values.astype(np.float64)), 0, values.astype(np.float64)
    )


_BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Min": np.minimum,
    "Max": np.maximum,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
