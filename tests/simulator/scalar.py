"""A second engine for thread programs: one thread after the other, one operation at a time, in plain Python.

For programs whose threads do not communicate.  Integers are Python ints wrapped at the width of their type, floats
NumPy scalars.  An access outside a buffer raises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import tirx as tir


class Jump(Exception):
    def __init__(self, leave: bool):
        self.leave = leave


def wrap(value: int, dtype: str) -> int:
    if dtype == "bool":
        return bool(value)
    limits = np.iinfo(dtype)
    return (int(value) - limits.min) % (1 << limits.bits) + limits.min


def saturate(value: Any, dtype: str) -> int:
    limits = np.iinfo(dtype)
    value = float(value)
    if np.isnan(value):
        return 0
    return (
        int(min(max(value, limits.min), limits.max)) if np.isfinite(value) else limits.max if value > 0 else limits.min
    )


INTEGER = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b if b else 0,
    "FloorMod": lambda a, b: a % b if b else 0,
    "Div": lambda a, b: 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "Mod": lambda a, b: 0 if not b else abs(a) % abs(b) * (-1 if a < 0 else 1),
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
    "Max": max,
    "Min": min,
}
FLOAT = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Max": np.fmax,
    "Min": np.fmin,
}
COMPARE = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


class Thread:
    """One thread.  memory: buffer -> array; locals are made here."""

    def __init__(self, memory: dict[Any, np.ndarray]):
        self.memory, self.variables = dict(memory), {}

    # ---- expressions ----
    def value(self, node: Any) -> Any:
        kind = type(node).__name__
        if kind == "IntImm":
            return wrap(node.value, str(node.ty.dtype))
        dtype = str(node.ty.dtype)
        if kind == "FloatImm":
            return np.dtype(dtype).type(float(node.value))
        if kind == "Var":
            return self.variables[node]
        if kind == "TensorLoad":
            return self.read(node.source, node.indices)
        if kind in COMPARE:
            return bool(COMPARE[kind](self.value(node.a), self.value(node.b)))
        if kind == "And":
            return bool(self.value(node.a)) and bool(self.value(node.b))
        if kind == "Or":
            return bool(self.value(node.a)) or bool(self.value(node.b))
        if kind == "Not":
            return not self.value(node.a)
        if kind == "Select":
            return self.value(node.true_value if self.value(node.condition) else node.false_value)
        if kind == "Cast":
            return self.cast(self.value(node.value), str(node.value.ty.dtype), dtype)
        if kind in ("LShift", "RShift"):
            a, b, bits = self.value(node.a), self.value(node.b), np.iinfo(dtype).bits
            inside = 0 <= b < bits
            if kind == "LShift":
                return wrap(a << b, dtype) if inside else 0
            return a >> (b if inside else 64)
        if kind == "Call":
            name = node.op.name.split(".")[-1]
            if name == "if_then_else":
                return self.value(node.args[1] if self.value(node.args[0]) else node.args[2])
            return {"sqrt": np.sqrt, "exp": np.exp}[name](self.value(node.args[0]))
        a, b = self.value(node.a), self.value(node.b)
        if "float" in dtype:
            return FLOAT[kind](a, b)
        return wrap(INTEGER[kind](a, b), dtype)

    def cast(self, value: Any, source: str, target: str) -> Any:
        if "float" in target:
            return np.dtype(target).type(value)
        if target == "bool":
            return bool(value != 0)
        return saturate(value, target) if "float" in source else wrap(value, target)

    def place(self, buffer: Any, indices: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        array, index = self.memory[buffer], tuple(int(self.value(i)) for i in indices)
        if any(not 0 <= i < extent for i, extent in zip(index, array.shape)):
            raise IndexError(f"{buffer.name}{index}")
        return array, index

    def read(self, buffer: Any, indices: Any) -> Any:
        array, index = self.place(buffer, indices)
        value = array[index]
        return value if array.dtype.kind == "f" else value.item()

    # ---- statements ----
    def run(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "SeqStmt":
            for child in node.seq:
                self.run(child)
        elif kind == "AllocBuffer":
            self.memory[node.buffer] = np.zeros([int(e) for e in node.buffer.ty.shape], str(node.buffer.ty.dtype))
        elif kind == "BufferStore":
            value = self.value(node.value)
            array, index = self.place(node.buffer, node.indices)
            array[index] = value
        elif kind == "Bind":
            self.variables[node.var] = self.value(node.value)
        elif kind == "IfThenElse":
            if self.value(node.condition):
                self.run(node.then_case)
            elif node.else_case is not None:
                self.run(node.else_case)
        elif kind == "For":
            low, extent = self.value(node.min), self.value(node.extent)
            self.loop(node, iter(range(low, low + extent)))
        elif kind == "While":
            while self.value(node.condition):
                if self.turn(node.body):
                    break
        elif kind in ("Break", "Continue"):
            raise Jump(kind == "Break")
        elif kind == "Evaluate":
            pass
        else:
            raise NotImplementedError(kind)

    def loop(self, node: Any, numbers: Any) -> None:
        for number in numbers:
            self.variables[node.loop_var] = number
            if self.turn(node.body):
                break

    def turn(self, body: Any) -> bool:
        try:
            self.run(body)
        except Jump as jump:
            return jump.leave
        return False


def run(func: tir.PrimFunc, arguments: dict[str, Any]) -> None:
    """Run every thread of every block; arrays are written in place."""
    axes, body = [], func.body
    while isinstance(body, tir.AttrStmt):
        axes.append((body.node.var, int(body.value)))
        body = body.body
    memory = {p: arguments[p.name] for p in func.params if hasattr(p.ty, "shape")}
    scalars = {p: arguments[p.name] for p in func.params if not hasattr(p.ty, "shape")}
    with np.errstate(all="ignore"):
        for position in np.ndindex(*[extent for _, extent in axes]):
            thread = Thread(memory)
            thread.variables.update(scalars)
            thread.variables.update({var: int(i) for (var, _), i in zip(axes, position)})
            thread.run(body)


_ = tvm
