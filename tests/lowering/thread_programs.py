"""Launches written by hand, and single operations lowered without the stages before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from lowering.thread_machine import numpy_dtype, run
from tvm import tirx as tir
from tvm.ir import Range
from tvm.sym import Analyzer

from tilelang_nb.language.tile_program import operation, read, region
from tilelang_nb.layout.fragment import Fragment
from tilelang_nb.lowering.barriers import insert_barriers
from tilelang_nb.lowering.context import LaunchContext, ThreadSet
from tilelang_nb.lowering.ops.operations import OPERATIONS
from tilelang_nb.lowering.shared_memory import plan_shared_memory
from tilelang_nb.simulator import Program
from tilelang_nb.source.text import Text


def buffer(name: str, shape: Any, dtype: str = "int32", scope: str = "global") -> Any:
    return tir.decl_buffer(shape, dtype, name, scope=scope, layout=None)


def shared(name: str, shape: Any, dtype: str = "int32") -> Any:
    return buffer(name, shape, dtype, "shared.dyn")


def fragment(name: str, shape: Any, dtype: str = "float32") -> Any:
    return buffer(name, shape, dtype, "local.fragment")


def load(source: Any, *indices: Any) -> Any:
    return tir.BufferLoad(source, list(indices))


def store(target: Any, value: Any, *indices: Any) -> Any:
    return tir.BufferStore(target, value, list(indices))


def integer(value: int) -> Any:
    return tir.const(value, "int32")


def loop(name: str, extent: Any, body: Callable[[Any], Any], kind: Any = tir.ForKind.SERIAL, **annotations: Any) -> Any:
    var = tir.Var(name, "int32")
    return tir.For(var, 0, extent, kind, body(var), annotations=annotations or None)


class Launch:
    """A launch of one block (or `blocks`) with its context; `tx` is its thread index."""

    def __init__(self, threads: int, arch: str = "sm_90a"):
        self.threads, self.tx = threads, tir.Var("tx", "int32")
        analyzer = Analyzer()
        analyzer.bind(self.tx, Range(0, threads))
        self.context = LaunchContext(
            Text(""), arch, {}, threads, self.tx, (self.tx,), (), analyzer, ThreadSet(0, threads), function=self.tx
        )

    def function(self, parameters: Any, *body: Any) -> Any:
        allocated = [tir.AllocBuffer(one) for one in self.context.shared]
        axis = tir.IterVar(Range(0, self.threads), self.tx, tir.IterVar.ThreadIndex, "threadIdx.x")
        statements = tir.SeqStmt([*allocated, *body]) if len(allocated) + len(body) > 1 else body[0]
        inner = tir.AttrStmt(axis, "thread_extent", self.threads, statements)
        return tir.PrimFunc(list(parameters), inner).with_attr("global_symbol", "k")

    def with_barriers(self, function: Any) -> Any:
        return insert_barriers(plan_shared_memory(function, self.context), self.context)

    # ---- one operation ----

    def hold(self, one: Any, layout: Fragment) -> Any:
        """Registers for a fragment; the statement that allocates them."""
        self.context.layouts[one] = layout
        self.context.registers[one] = self.context.local(layout.register_count, str(one.dtype), one.name)
        return tir.AllocBuffer(self.context.registers[one])

    def lower(self, name: str, *operands: Any) -> Any:
        call = read(operation(name, *operands))
        return OPERATIONS[name].lower(call, self.context)

    def move(self, one: Any, memory: Any, to_fragment: bool) -> Any:
        """Between a fragment and a global buffer of its shape, every thread its own elements."""
        layout, registers = self.context.layouts[one], self.context.registers[one]

        def element(k: Any) -> Any:
            index = layout.inverse(self.tx, k)
            statement: Any = store(memory, load(registers, k), *index)
            if to_fragment:
                statement = store(registers, load(memory, *index), k)
            for dim in layout.padded_dims:
                statement = tir.IfThenElse(index[dim] < layout.shape[dim], statement, None)
            return statement

        return loop("k", layout.register_count, element, tir.ForKind.UNROLLED, **{"tl.parallel": 1})


def whole(one: Any) -> Any:
    shape = [int(extent) for extent in one.ty.shape]
    return region(one, [0] * len(shape), shape)


def fill_shared(target: Any, source: Any, launch: Launch) -> Any:
    """A copy from global to shared memory of the same shape, by all threads."""
    shape = [int(extent) for extent in target.ty.shape]
    total = int(np.prod(shape))

    def one(k: Any) -> Any:
        flat, index = k * launch.threads + launch.tx, []
        for dim in range(len(shape)):
            inner = int(np.prod(shape[dim + 1 :]))
            index.append(tir.floormod(tir.floordiv(flat, inner), shape[dim]))
        statement = store(target, load(source, *index), *index)
        return statement if total % launch.threads == 0 else tir.IfThenElse(flat < total, statement, None)

    return loop("k", -(-total // launch.threads), one, **{"tl.parallel": 1})


def spill_shared(source: Any, target: Any, launch: Launch) -> Any:
    """The way back."""
    return fill_shared(target, source, launch)


def random_array(rng: np.random.Generator, shape: Any, dtype: str) -> np.ndarray:
    kind = numpy_dtype(dtype)
    if kind.kind in "iu":
        return rng.integers(0 if kind.kind == "u" else -9, 10, shape).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(-8, 9, shape).astype(np.float32).astype(kind) / kind.type(4)


def run_twice(function: Any, **arguments: Any) -> list[str]:
    """Run in the second engine and on the simulated device: races of the one and findings of the other.

    The arrays are those of the second engine; the simulated device must agree with them.
    """
    copies = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    found = run(function, **arguments)
    report = Program(function).run(copies)
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(np.asarray(copies[name], value.dtype), value)
    return found + [str(finding) for finding in report.findings]


__all__ = ["Launch", "run", "run_twice"]
