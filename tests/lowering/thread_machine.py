"""A second engine for thread programs: one Python generator per thread, run in a random order, with a check of
happens-before.

Small and slow on purpose. `run` executes a PrimFunc on NumPy arrays and returns the races it saw: pairs of accesses
to one byte by two threads of a block, one of them a write of another value, that no barrier orders.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import tirx as tir

_BINARY = {
    tir.Add: "+",
    tir.Sub: "-",
    tir.Mul: "*",
    tir.FloorDiv: "//",
    tir.FloorMod: "%",
    tir.LT: "<",
    tir.LE: "<=",
    tir.GT: ">",
    tir.GE: ">=",
    tir.EQ: "==",
    tir.NE: "!=",
    tir.And: "and",
    tir.Or: "or",
    tir.BitwiseAnd: "&",
    tir.BitwiseOr: "|",
    tir.BitwiseXor: "^",
}
_FUNCTIONS = {
    "exp": "np.exp",
    "exp2": "np.exp2",
    "sqrt": "np.sqrt",
    "fabs": "abs",
    "abs": "abs",
    "isnan": "np.isnan",
    "floor": "np.floor",
    "rsqrt": "1 / np.sqrt",
}


def numpy_dtype(name: str) -> np.dtype:
    if name == "bool":
        return np.dtype(bool)
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


class Writer:
    """The Python text of one thread."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.axes: dict[str, tuple[str, str]] = {}

    def name(self, var: Any) -> str:
        if var not in self.names:
            self.names[var] = re.sub(r"\W", "_", var.name) + f"_{len(self.names)}"
        return self.names[var]

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def block(self, header: str, body: Any) -> None:
        self.emit(header)
        self.depth += 1
        self.emit("pass")
        self.statement(body)
        self.depth -= 1

    def statement(self, node: Any) -> None:
        getattr(self, "do_" + type(node).__name__)(node)

    def do_SeqStmt(self, node: Any) -> None:
        for child in node.seq:
            self.statement(child)

    def do_AttrStmt(self, node: Any) -> None:
        if node.attr_key == "thread_extent":
            self.axes[str(node.node.thread_tag)] = (self.name(node.node.var), self.expr(node.value))
        self.statement(node.body)

    def do_AllocBuffer(self, node: Any) -> None:
        buffer = node.buffer
        shape = ", ".join(str(int(extent)) for extent in buffer.ty.shape)
        kind = "shared" if buffer.scope().startswith("shared") else "private"
        self.emit(f"{self.name(buffer)} = m.{kind}({self.name(buffer)!r}, ({shape},), {str(buffer.ty.dtype)!r})")

    def do_DeclBuffer(self, node: Any) -> None:
        arena, offset = node.data.args[0].args[0], int(node.data.args[1])
        shape = ", ".join(str(int(extent)) for extent in node.buffer.ty.shape)
        dtype = str(node.buffer.ty.dtype)
        self.emit(f"{self.name(node.buffer)} = m.view({self.name(arena)}, {offset}, ({shape},), {dtype!r})")

    def do_Bind(self, node: Any) -> None:
        self.emit(f"{self.name(node.var)} = {self.expr(node.value)}")

    def do_BufferStore(self, node: Any) -> None:
        self.emit(f"t.store({self.name(node.buffer)}, {self.index(node.indices)}, {self.expr(node.value)})")

    def do_IfThenElse(self, node: Any) -> None:
        self.block(f"if {self.expr(node.condition)}:", node.then_case)
        if node.else_case is not None:
            self.block("else:", node.else_case)

    def do_For(self, node: Any) -> None:
        low, extent = self.expr(node.min), self.expr(node.extent)
        self.block(f"for {self.name(node.loop_var)} in range({low}, {low} + {extent}):", node.body)

    def do_While(self, node: Any) -> None:
        self.block(f"while {self.expr(node.condition)}:", node.body)

    def do_Break(self, node: Any) -> None:
        self.emit("break")

    def do_Continue(self, node: Any) -> None:
        self.emit("continue")

    def do_Evaluate(self, node: Any) -> None:
        self.emit(self.expr(node.value))

    def index(self, indices: Any) -> str:
        return "(" + "".join(self.expr(index) + ", " for index in indices) + ")"

    def typed(self, value: str, dtype: str) -> str:
        return f"cast({value}, {dtype!r})"

    def expr(self, node: Any) -> str:
        kind = type(node)
        if kind is int:
            return repr(node)
        if kind is tir.IntImm:
            return str(bool(node.value)) if str(node.ty.dtype) == "bool" else str(int(node.value))
        if kind is tir.FloatImm:
            return self.typed(f"float('{float(node.value)}')", str(node.ty.dtype))
        if kind is tvm.ir.Var:
            return self.name(node)
        if kind is tvm.ir.TensorLoad:
            return f"t.load({self.name(node.source)}, {self.index(node.indices)})"
        if kind in _BINARY:
            return f"({self.expr(node.a)} {_BINARY[kind]} {self.expr(node.b)})"
        if kind is tir.Div:
            return f"({self.expr(node.a)} / {self.expr(node.b)})"
        if kind is tir.Min or kind is tir.Max:
            return f"{'least' if kind is tir.Min else 'most'}({self.expr(node.a)}, {self.expr(node.b)})"
        if kind is tir.Not:
            return f"(not {self.expr(node.a)})"
        if kind is tir.Cast:
            return self.typed(self.expr(node.value), str(node.ty.dtype))
        if kind is tir.Select:
            return f"({self.expr(node.true_value)} if {self.expr(node.condition)} else {self.expr(node.false_value)})"
        return self.call(node)

    def call(self, node: Any) -> str:
        name = node.op.name
        args = list(node.args)
        if name == "prim.if_then_else":
            return f"({self.expr(args[1])} if {self.expr(args[0])} else {self.expr(args[2])})"
        if name == "tirx.tvm_storage_sync":
            return "(yield ('barrier', 0, m.threads))"
        if name == "tirx.ptx.bar_sync_count":
            return f"(yield ('barrier', {int(args[0])}, {int(args[1])}))"
        if name == "tirx.call_extern":
            return self.extern(args[0].value, args[1:])
        if name in ("tirx.shift_left", "tirx.shift_right"):
            return f"({self.expr(args[0])} {'<<' if name.endswith('left') else '>>'} {self.expr(args[1])})"
        if name == "tirx.bitwise_not":
            return f"(~{self.expr(args[0])})"
        short = name.split(".")[-1]
        if short in _FUNCTIONS:
            return f"{_FUNCTIONS[short]}({', '.join(self.expr(arg) for arg in args)})"
        raise NotImplementedError(name)

    def extern(self, name: str, args: list[Any]) -> str:
        if name.startswith("__shfl"):
            return f"(yield ({name!r}, {self.expr(args[1])}, {self.expr(args[2])}))"
        if name.startswith("__syncthreads_"):
            return f"(yield ({name!r}, {self.expr(args[0])}, None))"
        if name in ("__syncwarp", "__threadfence"):
            return "None"
        if name in ("tl_floor_divide", "tl_floor_modulo"):
            return f"({self.expr(args[0])} {'//' if name.endswith('divide') else '%'} {self.expr(args[1])})"
        if name.startswith("tl_atomic_"):
            load = args[0].args[0]
            rest = ", ".join(self.expr(arg) for arg in args[1:])
            place = f"{self.name(load.source)}, {self.index(load.indices)}"
            return f"t.atomic({name.removeprefix('tl_atomic_')!r}, {place}, {rest})"
        if name == "tl_print":
            values = [repr(arg.value) if isinstance(arg, tvm.ir.StringImm) else self.expr(arg) for arg in args]
            return f"m.printed.append(({', '.join(values)},))"
        if name == "tl_device_assert":
            return f"m.check({self.expr(args[0])}, {args[1].value!r})"
        raise NotImplementedError(name)


def cast(value: Any, dtype: str) -> Any:
    if dtype.startswith(("int", "uint")) and not isinstance(value, (bool, np.bool_)):
        bits = int(dtype.lstrip("uint"))
        value = int(value) & ((1 << bits) - 1)
        return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value
    if dtype == "bool":
        return bool(value)
    if dtype.startswith(("int", "uint")):
        return int(value)
    return numpy_dtype(dtype).type(value)


def least(a: Any, b: Any) -> Any:
    return b if b < a else a


def most(a: Any, b: Any) -> Any:
    return b if b > a else a


class Buffer:
    def __init__(self, array: np.ndarray, space: Any = None, begin: int = 0):
        self.array, self.space, self.begin = array, space, begin


class Block:
    """Memory and clocks of one block."""

    def __init__(self, threads: int, printed: list[Any]):
        self.threads, self.printed = threads, printed
        self.allocated: dict[str, Buffer] = {}
        self.last: dict[Any, dict[Any, Any]] = {}  # byte -> {(thread, kind): (clock, value)}
        self.races: set[str] = set()

    def shared(self, name: str, shape: tuple[int, ...], dtype: str) -> Buffer:
        if name not in self.allocated:
            self.allocated[name] = Buffer(np.zeros(shape, numpy_dtype(dtype)), name)
        return self.allocated[name]

    def private(self, name: str, shape: tuple[int, ...], dtype: str) -> Buffer:
        return Buffer(np.zeros(shape, numpy_dtype(dtype)))

    def view(self, arena: Buffer, offset: int, shape: tuple[int, ...], dtype: str) -> Buffer:
        kind = numpy_dtype(dtype)
        raw = arena.array[offset : offset + math.prod(shape) * kind.itemsize]
        return Buffer(raw.view(kind).reshape(shape), arena.space, offset)

    def check(self, condition: Any, message: str) -> None:
        if not condition:
            raise AssertionError(message)


class Thread:
    def __init__(self, block: Block, index: int):
        self.block, self.index = block, index
        self.clock = [0] * block.threads
        self.clock[index] = 1

    def _touch(self, buffer: Buffer, index: tuple[int, ...], kind: str, value: Any = None) -> None:
        if buffer.space is None:
            return
        if any(not 0 <= i < n for i, n in zip(index, buffer.array.shape)):
            raise IndexError(f"{buffer.space}{index} outside {buffer.array.shape}")
        flat = int(np.ravel_multi_index(index, buffer.array.shape)) if index else 0
        size = buffer.array.dtype.itemsize
        for byte in range(buffer.begin + flat * size, buffer.begin + (flat + 1) * size):
            known = self.block.last.setdefault((buffer.space, byte), {})
            for (thread, other), (clock, seen) in known.items():
                if thread == self.index or self.clock[thread] >= clock:
                    continue
                if kind == other and (kind in ("read", "atomic") or seen == value):
                    continue
                self.block.races.add(f"{other} then {kind} of {buffer.space} at byte {byte}")
            known[self.index, kind] = (self.clock[self.index], value)

    def load(self, buffer: Buffer, index: tuple[int, ...]) -> Any:
        self._touch(buffer, index, "read")
        value = buffer.array[index]
        if buffer.array.dtype.kind in "iu":
            return int(value)
        return bool(value) if buffer.array.dtype.kind == "b" else value

    def store(self, buffer: Buffer, index: tuple[int, ...], value: Any) -> None:
        stored = numpy_dtype(buffer.array.dtype.name).type(value)
        self._touch(buffer, index, "write", stored.tobytes())
        buffer.array[index] = stored

    def atomic(self, name: str, buffer: Buffer, index: tuple[int, ...], value: Any = None) -> Any:
        self._touch(buffer, index, "atomic")
        old = self.block_value(buffer, index)
        if name != "load":
            new = {
                "add": lambda: old + value,
                "max": lambda: most(old, value),
                "min": lambda: least(old, value),
                "and": lambda: old & value,
                "or": lambda: old | value,
                "xor": lambda: old ^ value,
                "exchange": lambda: value,
                "store": lambda: value,
            }[name]()
            buffer.array[index] = new
        return old

    @staticmethod
    def block_value(buffer: Buffer, index: tuple[int, ...]) -> Any:
        value = buffer.array[index]
        return int(value) if buffer.array.dtype.kind in "iu" else value


class Deadlock(Exception):
    pass


def run(func: tir.PrimFunc, seed: int = 0, **arguments: Any) -> list[str]:
    """Execute on arrays (changed in place); the races found.  `run.printed` holds what T.print printed."""
    writer = Writer()
    names = []
    symbols: dict[str, Any] = {}
    for parameter in func.params:
        value = arguments[parameter.name]
        names.append(writer.name(parameter))
        if isinstance(value, np.ndarray):
            symbols[names[-1]] = Buffer(value, parameter.name)
            for extent, actual in zip(parameter.ty.shape, value.shape):
                if isinstance(extent, tvm.ir.Var):
                    symbols[writer.name(extent)] = actual
        else:
            symbols[names[-1]] = value
    writer.statement(func.body)
    axes = ", ".join(name for name, _ in writer.axes.values())
    lines = [f"def thread(m, t, {axes}):", "    if False: yield", *writer.lines]
    scope = {"np": np, "cast": cast, "least": least, "most": most, **symbols}
    exec("\n".join(lines), scope)
    extents = {tag: int(eval(extent, dict(scope))) for tag, (_, extent) in writer.axes.items()}
    grid = [range(extents[tag]) if tag.startswith("block") else None for tag in writer.axes]
    order = random.Random(seed)
    races: set[str] = set()
    run.printed = []
    inner = [tag for tag in sorted(writer.axes) if tag.startswith("thread")]
    for block_index in itertools.product(*[r for r in grid if r is not None]):
        threads = math.prod(extents[tag] for tag in inner)
        block = Block(threads, run.printed)
        generators = []
        for linear in range(threads):
            coordinates, rest = {}, linear
            for tag in inner:
                coordinates[tag], rest = rest % extents[tag], rest // extents[tag]
            blocks = iter(block_index)
            values = [next(blocks) if tag.startswith("block") else coordinates[tag] for tag in writer.axes]
            thread = Thread(block, linear)
            generators.append((thread, scope["thread"](block, thread, *values)))
        _drive(generators, order)
        races |= block.races
    return sorted(races)


def _drive(generators: list[Any], order: random.Random) -> None:
    waiting: dict[int, Any] = {}
    answers: dict[int, Any] = {}
    alive = set(range(len(generators)))
    while alive:
        ready = [index for index in alive if index not in waiting]
        order.shuffle(ready)
        for index in ready:
            try:
                waiting[index] = generators[index][1].send(answers.pop(index, None))
            except StopIteration:
                alive.discard(index)
        progressed = False
        for request in {waiting[i][:2] if waiting[i][0] == "barrier" else waiting[i][:1] for i in waiting}:
            group = [i for i in waiting if waiting[i][: len(request)] == request]
            if request[0] == "barrier":
                if len(group) < waiting[group[0]][2]:
                    continue
                _meet([generators[i][0] for i in group])
                released = dict.fromkeys(group)
            elif request[0].startswith("__syncthreads"):
                if len(group) < len(generators):
                    continue
                votes = [bool(waiting[i][1]) for i in group]
                vote = {"or": any, "and": all, "count": sum}[request[0].removeprefix("__syncthreads_")](votes)
                _meet([generators[i][0] for i in group])
                released = dict.fromkeys(group, int(vote))
            else:
                released = {}
                for warp in {i // 32 for i in group}:
                    lanes = [i for i in range(warp * 32, min(warp * 32 + 32, len(generators))) if i in alive]
                    if all(i in group for i in lanes):
                        released |= {i: _shuffled(request[0], i, waiting) for i in lanes}
            for index, answer in released.items():
                answers[index] = answer
            for index in released:
                del waiting[index]
            progressed |= bool(released)
        if not progressed and not ready:
            raise Deadlock({waiting[i][:2] for i in waiting})


def _shuffled(name: str, index: int, waiting: dict[int, Any]) -> Any:
    lane, argument = index % 32, waiting[index][2]
    sources = {"__shfl_xor_sync": lane ^ argument, "__shfl_down_sync": lane + argument}
    sources["__shfl_up_sync"] = lane - argument
    source = index - lane + sources.get(name, argument)
    return waiting[source][1] if source in waiting else waiting[index][1]


def _meet(threads: list[Thread]) -> None:
    joined = [max(values) for values in zip(*(thread.clock for thread in threads))]
    for thread in threads:
        thread.clock = list(joined)
        thread.clock[thread.index] += 1
