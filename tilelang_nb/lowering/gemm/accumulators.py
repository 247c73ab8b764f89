"""The accumulators of a product while it runs, and their way from and to the fragment C.

float32 and float64 accumulate in the registers of C themselves.  Integers do so in unsigned registers, as the
instructions want them; float16 in registers that hold two; a float16 C that is accumulated in float32 is rounded once.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import TileCall

from ..context import LaunchContext
from ..ops.all_reduce import unrolled
from .packing import packed, unpacked


class Accumulators:
    """`before()` and `after()` are statements around the product; `tile(number)` the operand of an instruction.

    elements: of C in an instruction, for one thread.  total: the type in which it accumulates, as PTX names it.
    """

    def __init__(self, call: TileCall, launch: LaunchContext, elements: int, total: str):
        c = call["c"].buffer
        self.held = launch.registers[c]
        self.count = launch.layouts[c].register_count
        self.dtype, self.clear = str(c.dtype), call["clear_accum"]
        self.each = 1  # elements in a register
        self.elements = elements
        if self.dtype == "int32":
            self.total = launch.local(self.count, "uint32", "total")
        elif self.dtype == "float16":
            self.each = 2 if total == "f16" else 1
            self.total = launch.local(self.count // self.each, "uint32" if self.each == 2 else "float32", "total")
        else:
            self.total = self.held

    @property
    def moved(self) -> bool:
        return not self.total.same_as(self.held)

    def tile(self, number: Any) -> list[Any]:
        """The accumulators of an instruction tile."""
        count = self.elements // self.each
        return [tir.BufferLoad(self.total, [number * count + k]) for k in range(count)]

    def before(self, cleared: bool = True) -> list[tir.Stmt]:
        """C, or zero where `clear_accum` holds; cleared: false where the instructions see to that themselves."""
        known = bool(self.clear.value) if isinstance(self.clear, tir.IntImm) else None
        result: list[tir.Stmt] = [tir.AllocBuffer(self.total)] if self.moved else []
        if not cleared:
            if self.moved and known is None:
                result.append(tir.IfThenElse(tir.Not(self.clear), self._loaded(), None))
            elif self.moved and not known:
                result.append(self._loaded())
        elif known is True:
            result.append(self._cleared())
        elif known is None:
            result.append(tir.IfThenElse(self.clear, self._cleared(), self._loaded() if self.moved else None))
        elif self.moved:
            result.append(self._loaded())
        return result

    def _cleared(self) -> tir.Stmt:
        dtype = str(self.total.dtype)
        zero = tir.const(0.0 if dtype.startswith("float") else 0, dtype)
        return unrolled("i", self.count // self.each, lambda i: tir.BufferStore(self.total, zero, [i]))

    def _loaded(self) -> tir.Stmt:
        def value(i: Any) -> Any:
            mine = [tir.BufferLoad(self.held, [i * self.each + p]) for p in range(self.each)]
            return tir.Cast("float32", mine[0]) if str(self.total.dtype) == "float32" else packed(mine)

        return unrolled("i", self.count // self.each, lambda i: tir.BufferStore(self.total, value(i), [i]))

    def after(self) -> list[tir.Stmt]:
        """The result into the registers of C."""
        if not self.moved:
            return []

        def back(i: Any) -> tir.Stmt:
            word = tir.BufferLoad(self.total, [i])
            if str(word.ty.dtype) == "float32":
                return tir.BufferStore(self.held, tir.Cast(self.dtype, word), [i])
            stores = [
                tir.BufferStore(self.held, unpacked(word, p, self.dtype), [i * self.each + p]) for p in range(self.each)
            ]
            return stores[0] if self.each == 1 else tir.SeqStmt(stores)

        return [unrolled("i", self.count // self.each, back)]
