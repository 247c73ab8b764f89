"""Runs a tile program on NumPy arrays, one block after another: the second engine that results are checked with.

A block is one thread unless the body names a thread variable (then every thread runs in turn); `T.Parallel` loops run
in order, and `T.ws` bodies run for the threads of their groups.  It interprets copy, fill, reduce, device_assert and
atomic operations on elements; other tile operations raise NotImplementedError.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import tvm_ffi
from tvm.ir import Var

from tilelang_nb.language.tile_program import RegionOperand, operation_name, read

WHILE_LIMIT = 100_000


class BreakLoop(Exception):
    pass


class ContinueLoop(Exception):
    pass


def numpy_dtype(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


class Interpreter:
    """`run(arguments)` executes in place; arguments are arrays and numbers in parameter order."""

    def __init__(self, function: Any):
        self.function, self.values = function, {}

    def run(self, arguments: list[Any]) -> None:
        for parameter, value in zip(self.function.params, arguments):
            self.values[parameter] = value
            for extent, size in zip(getattr(parameter, "shape", ()), getattr(value, "shape", ())):
                if isinstance(extent, Var):
                    self.values[extent] = size
        self.statement(self.function.body)

    def wrap(self, value: Any, dtype: str) -> Any:
        """A result as the dtype holds it."""
        if dtype == "bool":
            return bool(value)
        if "int" in dtype:
            bits, value = int(dtype.lstrip("uint")), int(value)
            value &= (1 << bits) - 1
            return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value
        with np.errstate(all="ignore"):
            return numpy_dtype(dtype).type(value)

    # -- statements ------------------------------------------------------------------------------------------------
    def statement(self, node: Any) -> None:
        getattr(self, "run_" + type(node).__name__)(node)

    def run_SeqStmt(self, node: Any) -> None:
        for part in node.seq:
            self.statement(part)

    def run_AttrStmt(self, node: Any) -> None:
        if str(node.attr_key) == "tl.warp_groups":
            group = self.values.get("thread", 0) // 128
            if group in [int(g) for g in str(node.value.value).split(",")]:
                self.statement(node.body)
            return
        var, extent = node.node.var, int(self.value(node.value))
        tag = str(node.node.thread_tag)
        thread = tag.startswith("threadIdx")
        used: list[int] = []
        if thread:
            tvm_ffi.structural_walk(node.body, (Var, lambda v: used.append(1) if v.same_as(var) else None))
            if "tl.warp_groups" in node.body.script():
                used.append(1)
        for index in range(extent if not thread or used else min(1, extent)):
            self.values[var] = index
            if tag == "threadIdx.x":
                self.values["thread"] = index
            self.statement(node.body)

    def run_AllocBuffer(self, node: Any) -> None:
        shape = [int(n) for n in node.buffer.shape]
        self.values[node.buffer] = np.zeros(shape, numpy_dtype(str(node.buffer.dtype)))

    def run_Bind(self, node: Any) -> None:
        self.values[node.var] = self.value(node.value)

    def run_BufferStore(self, node: Any) -> None:
        array = self.values[node.buffer]
        index = tuple(self.value(i) for i in node.indices)
        if not all(0 <= i < n for i, n in zip(index, array.shape)):
            raise IndexError(f"store outside {node.buffer.name}{index}")
        array[index] = self.value(node.value)

    def run_Evaluate(self, node: Any) -> None:
        self.value(node.value)

    def run_IfThenElse(self, node: Any) -> None:
        if self.value(node.condition):
            self.statement(node.then_case)
        elif node.else_case is not None:
            self.statement(node.else_case)

    def turn(self, body: Any) -> None:
        try:
            self.statement(body)
        except ContinueLoop:
            pass

    def run_For(self, node: Any) -> None:
        start, extent = self.value(node.min), self.value(node.extent)
        try:
            for index in range(start, start + extent):
                self.values[node.loop_var] = index
                self.turn(node.body)
        except BreakLoop:
            pass

    def run_While(self, node: Any) -> None:
        turns = 0
        try:
            while self.value(node.condition):
                self.turn(node.body)
                turns += 1
                if turns > WHILE_LIMIT:
                    raise RuntimeError("endless while")
        except BreakLoop:
            pass

    def run_Break(self, node: Any) -> None:
        raise BreakLoop

    def run_Continue(self, node: Any) -> None:
        raise ContinueLoop

    # -- expressions -----------------------------------------------------------------------------------------------
    def value(self, node: Any) -> Any:
        name = type(node).__name__
        method = getattr(self, "value_" + name, None)
        if method:
            return method(node)
        with np.errstate(all="ignore"):
            a, b = self.value(node.a), self.value(node.b)
            return self.wrap(BINARY[name](a, b), str(node.ty.dtype))

    def value_IntImm(self, node: Any) -> Any:
        return self.wrap(node.value, str(node.ty.dtype))

    def value_FloatImm(self, node: Any) -> Any:
        return self.wrap(node.value, str(node.ty.dtype))

    def value_Var(self, node: Any) -> Any:
        return self.values[node]

    def value_StringImm(self, node: Any) -> Any:
        return node.value

    def value_TensorLoad(self, node: Any) -> Any:
        array = self.values[node.source]
        index = tuple(self.value(i) for i in node.indices)
        if not all(0 <= i < n for i, n in zip(index, array.shape)):
            raise IndexError(f"load outside {node.source.name}{index}")
        value = array[index]
        return value.item() if value.dtype.kind in "iub" else value

    def value_Cast(self, node: Any) -> Any:
        value = self.value(node.value)
        dtype = str(node.ty.dtype)
        return self.wrap(np.trunc(value) if "int" in dtype and not isinstance(value, (int, bool)) else value, dtype)

    def value_And(self, node: Any) -> Any:
        return self.value(node.a) and self.value(node.b)

    def value_Or(self, node: Any) -> Any:
        return self.value(node.a) or self.value(node.b)

    def value_BitwiseNot(self, node: Any) -> Any:
        return self.wrap(~self.value(node.a), str(node.ty.dtype))

    def value_Not(self, node: Any) -> Any:
        return not self.value(node.a)

    def value_Select(self, node: Any) -> Any:
        return self.value(node.true_value if self.value(node.condition) else node.false_value)

    def value_Call(self, node: Any) -> Any:
        name = node.op.name
        if name.endswith("if_then_else"):
            return self.value(node.args[1] if self.value(node.args[0]) else node.args[2])
        if name.endswith("call_extern"):
            return self.extern(node)
        arguments = [self.value(a) for a in node.args]
        with np.errstate(all="ignore"):
            return self.wrap(CALLS[name.split(".")[-1]](*arguments), str(node.ty.dtype))

    def extern(self, node: Any) -> Any:
        """A tile operation, or a device call."""
        if node.args[0].value in DEVICE_CALLS:
            arguments = [self.value(a) for a in node.args[1:]]
            with np.errstate(all="ignore"):
                return self.wrap(DEVICE_CALLS[node.args[0].value](*arguments), str(node.ty.dtype))
        return self.operation(node)

    # -- tile operations -------------------------------------------------------------------------------------------
    def region(self, operand: RegionOperand) -> tuple[Any, list[int], list[int]]:
        begin = [self.value(i) for i in operand.begin]
        return self.values[operand.buffer], begin, [self.value(e) for e in operand.extent]

    def operation(self, node: Any) -> Any:
        name = operation_name(node)
        if name not in OPERATIONS:
            raise NotImplementedError(str(node))
        return getattr(self, f"operation_{name}")(read(node))

    def operation_copy(self, call: Any) -> None:
        array, begin, extent = self.region(call["target"])
        source, first, size = self.region(call["source"])
        values = np.zeros(size, source.dtype)
        got = source[tuple(slice(b, b + e) for b, e in zip(first, size))]
        values[tuple(slice(0, n) for n in got.shape)] = got
        if values.size == int(np.prod(extent)):
            values = values.reshape(extent)
        target = array[tuple(slice(b, b + e) for b, e in zip(begin, extent))]
        target[...] = values[tuple(slice(0, n) for n in target.shape)]

    def operation_fill(self, call: Any) -> None:
        array, begin, extent = self.region(call["target"])
        array[tuple(slice(b, b + e) for b, e in zip(begin, extent))] = self.value(call["value"])

    def operation_reduce(self, call: Any) -> None:
        source, _, _ = self.region(call["source"])
        target, _, _ = self.region(call["target"])
        function = {"sum": np.sum, "max": np.max, "min": np.min}[call["operation"]]
        target[...] = function(source, int(call["dim"])).reshape(target.shape)

    def operation_device_assert(self, call: Any) -> None:
        if not self.value(call["condition"]):
            raise AssertionError(call["message"])

    def operation_atomic_element(self, call: Any) -> Any:
        array, begin, _ = self.region(call["target"])
        old, given = array[tuple(begin)], self.value(call["value"])
        change = {"add": old + given, "max": max(old, given), "min": min(old, given)}
        array[tuple(begin)] = change[call["operation"]]
        return old

    def operation_print(self, call: Any) -> None:
        pass


OPERATIONS = frozenset(name.removeprefix("operation_") for name in vars(Interpreter) if name.startswith("operation_"))
BINARY = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
    "LShift": lambda a, b: a << b,
    "RShift": lambda a, b: a >> b,
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}
DEVICE_CALLS = {"tl_floor_divide": np.floor_divide, "tl_floor_modulo": np.mod}
CALLS = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "bitwise_not": lambda a: ~a,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
    "fabs": abs,
    "abs": abs,
    "floor": np.floor,
    "sqrt": np.sqrt,
    "pow": np.power,
    "exp": np.exp,
    "nearbyint": np.rint,
}
