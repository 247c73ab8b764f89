"""Where the values inside a T.Parallel loop come from: which loop variables and which memory they depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .rewrite import variables


@dataclass
class Provenance:
    """What is known inside a nest at one place.

    values: bindings that are plain index arithmetic; depends: what bindings and per-thread buffers depend on, and
    which fragments and memory they were read from; conditions: what decides whether this place is reached.
    """

    values: dict[Any, Any]
    depends: dict[Any, tuple[frozenset[Any], frozenset[Any]]]
    conditions: frozenset[Any]
    conditional: bool
    own: set[Any]
    loops: set[Any]

    def origin(self, expr: Any) -> tuple[frozenset[Any], frozenset[Any]]:
        """(loop variables and other variables, buffers) that a value comes from."""
        if isinstance(expr, tir.IntImm | tir.FloatImm):
            return frozenset(), frozenset()
        found = variables(expr)
        depends: set[Any] = set()
        reads: set[Any] = set()
        for var in found:
            if var in self.depends:
                more, others = self.depends[var]
                depends |= more
                reads |= others
            elif isinstance(var.ty, tir.BufferType):
                reads.add(var)
            else:
                depends.add(var)
        return frozenset(depends), frozenset(reads)

    def taint(self, buffer: Any, depends: frozenset[Any], reads: frozenset[Any]) -> None:
        before, others = self.depends.get(buffer, (frozenset(), frozenset()))
        self.depends[buffer] = before | depends, others | reads

    def expanded(self, expr: Any) -> Any:
        if not self.values or isinstance(expr, tir.IntImm):
            return expr
        return tvm_ffi.structural_map(expr, (tvm.ir.Var, lambda var: self.values.get(var, var)))

    def under(self, condition: Any) -> Provenance:
        depends, _ = self.origin(condition)
        return Provenance(self.values, self.depends, self.conditions | depends, True, self.own, self.loops)
