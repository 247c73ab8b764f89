"""What a kernel computes and touches, counted from its thread program: floating-point operations of all threads, and
the tensors that are read and written.

The count is of the program, not of a run.  A branch on the number of the thread counts for the threads that take it;
of another one that cannot be decided the costlier side counts.  A loop whose length depends on the block, the thread or
an outer loop is taken at the middle of their range, which is exact where the length grows evenly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx as tir
from tvm.ir.prim import expr as pe

from tilelang_nb.lowering.hopper.persistent import count_of
from tilelang_nb.lowering.hopper.tensor_maps import tensor_maps_of
from tilelang_nb.lowering.rewrite import dtype_of, scope, variables, walk

from .launch import evaluator

ARITHMETIC = (pe.Add, pe.Sub, pe.Mul, pe.Div)
COMPARED = (pe.Min, pe.Max)
MANY = 1 << 30  # multiprocessors: every block that stays does one work, and all works are alike
_TILE = re.compile(r"m(\d+)n(\d+)k(\d+)")
# Calls that are no operation on numbers of their own.
_MOVING = re.compile(r"address_of|reinterpret|if_then_else|likely|isnan|isinf|isfinite|shfl|ptr|vector|cast|large_uint")


@dataclass(frozen=True)
class Counted:
    """operations: of CUDA cores; matrix_operations: of matrix units; both are of floating point.  None where a loop's
    length is read from data.  read, written: names of the tensors whose memory is accessed.
    """

    operations: float | None
    matrix_operations: float | None
    read: frozenset[str]
    written: frozenset[str]


def count(launches: Any, values: Mapping[str, int]) -> Counted:
    """The launches (thread programs) of a kernel, for values of scalars and shape variables by name."""
    total, matrix = 0.0, 0.0
    read: set[str] = set()
    written: set[str] = set()
    known = True
    for launch in launches:
        _accesses(launch, read, written)
        number = count_of(launch)
        known_here = {} if number is None else {number.name: MANY}
        counter = _Counter({**known_here, **values})
        try:
            plain, tiles = counter.statement(launch.body)
        except KeyError:
            known = False
            continue
        total, matrix = total + plain, matrix + tiles
    return Counted(total if known else None, matrix if known else None, frozenset(read), frozenset(written))


class _Counter:
    """values: of the variables in reach; those with a range stand at its middle.  threads: the range of each axis."""

    def __init__(self, values: dict[str, int]):
        self.values = values
        self.threads: dict[str, int] = {}

    def statement(self, node: Any) -> tuple[float, float]:
        """Operations of (cores, matrix units).  KeyError: a length depends on data."""
        if isinstance(node, tir.AttrStmt):
            if node.attr_key == "thread_extent":
                extent = self._value(node.value)
                self.values[node.node.var.name] = max(extent - 1, 0) // 2
                if node.node.thread_tag.startswith("threadIdx"):
                    self.threads[node.node.var.name] = extent
                return _times(extent, self.statement(node.body))
            return self.statement(node.body)
        if isinstance(node, tir.SeqStmt):
            return _sum(self.statement(child) for child in node.seq)
        if isinstance(node, tir.For):
            extent = max(self._value(node.extent), 0)
            self.values[node.loop_var.name] = self._value(node.min) + max(extent - 1, 0) // 2
            return _times(extent, self.statement(node.body))
        if isinstance(node, tir.While):
            raise KeyError("a while loop")
        if isinstance(node, tir.IfThenElse):
            return _sum((self.expression(node.condition), self._branch(node)))
        if isinstance(node, tir.Bind):
            try:
                self.values[node.var.name] = self._value(node.value)
            except (KeyError, NotImplementedError):
                self.values.pop(node.var.name, None)
            return self.expression(node.value)
        if isinstance(node, tir.BufferStore):
            return self.expression(node.value)
        if isinstance(node, tir.Evaluate):
            return self.expression(node.value)
        return 0.0, 0.0

    def _branch(self, node: Any) -> tuple[float, float]:
        then = self.statement(node.then_case)
        other = self.statement(node.else_case) if node.else_case is not None else (0.0, 0.0)
        share = self._share(node.condition)
        if share is None:
            return max(then, other, key=sum)
        return _sum((_times(share, then), _times(1 - share, other)))

    def _share(self, condition: Any) -> float | None:
        """The share of the threads for which a condition holds; None where it depends on data."""
        names = {variable.name for variable in variables(condition)}
        try:
            holds = evaluator(condition)
            axis = next((name for name in self.threads if name in names), None)
            if axis is None:
                return float(bool(holds(self.values)))
            extent = self.threads[axis]
            return sum(bool(holds({**self.values, axis: thread})) for thread in range(extent)) / extent
        except (KeyError, NotImplementedError, ZeroDivisionError):
            return None

    def expression(self, expr: Any) -> tuple[float, float]:
        """Operations of one evaluation."""
        plain, matrix = 0.0, 0.0

        def operator(node: Any) -> None:
            nonlocal plain
            if "float" in dtype_of(node):
                plain += _lanes(dtype_of(node))

        def call(node: Any) -> None:
            nonlocal plain, matrix
            name = getattr(node.op, "name", "")
            name = node.args[0].value if name == "tirx.call_extern" else name
            texts = [argument.value for argument in node.args if isinstance(argument, tvm.ir.StringImm)]
            tile = next(filter(None, map(_TILE.search, texts)), None) if "mma" in name else None
            if tile is not None:
                m, n, k = map(int, tile.groups())
                matrix += 2 * m * n * k / (128 if "wgmma" in name else 32)
                return
            dtype = str(getattr(node.ty, "dtype", ""))  # addresses have none
            if "float" in dtype and not _MOVING.search(name):
                plain += (2 if "fma" in name else 1) * _lanes(dtype)

        walk(expr, *((kind, operator) for kind in (*ARITHMETIC, *COMPARED)), (tvm.ir.Call, call))
        return plain, matrix

    def _value(self, extent: Any) -> int:
        if isinstance(extent, int):
            return extent
        if isinstance(extent, tir.IntImm):
            return int(extent.value)
        try:
            return evaluator(extent)(self.values)
        except NotImplementedError:
            raise KeyError(str(extent)) from None


def _accesses(launch: Any, read: set[str], written: set[str]) -> None:
    """Names of the global tensors that the launch loads from and stores to."""
    shown = {one.variable: one.buffer.name for one in tensor_maps_of(launch)}

    def loaded(load: Any) -> None:
        if scope(load.source) == "global":
            read.add(load.source.name)

    def stored(store: Any) -> None:
        if scope(store.buffer) == "global":
            written.add(store.buffer.name)

    def taken(call: Any) -> None:  # an address: of an atomic operation or an asynchronous copy
        name = getattr(call.op, "name", "")
        extern = call.args[0].value if name == "tirx.call_extern" else ""
        if "bulk_tensor" in name:
            (read if "g2s" in name else written).update(shown[one] for one in variables(call) if one in shown)
        for argument in call.args:
            if getattr(getattr(argument, "op", None), "name", "") == "tirx.address_of":
                source: Any = getattr(argument.args[0], "source", None)  # a tensor map has none
                if extern.startswith("tl_atomic") and scope(source) == "global":
                    written.add(source.name)

    walk(launch.body, (tvm.ir.TensorLoad, loaded), (tir.BufferStore, stored), (tvm.ir.Call, taken))


def _lanes(dtype: str) -> int:
    found = re.search(r"x(\d+)$", dtype)
    return int(found[1]) if found else 1


def _times(factor: float, count: tuple[float, float]) -> tuple[float, float]:
    return factor * count[0], factor * count[1]


def _sum(counts: Any) -> tuple[float, float]:
    plain, matrix = 0.0, 0.0
    for one, other in counts:
        plain, matrix = plain + one, matrix + other
    return plain, matrix
