"""Which `while` loops can only end by what they compute themselves.

A loop that stores into registers alone, and calls nothing with an effect, runs the same turn again once its registers
and the lanes that take part are as they were: no other thread runs in between, because threads run in lockstep or
change places only where they wait.  The simulated device ends such a loop with a finding
(`simulator/machine/repetition.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir

from .inspection import call_name, extern_name
from .values import Storage

HARMLESS = (0, 1, 2, 6)  # TVM's TCallEffectKind: annotation, pure, reads state, jump
READS = ("tl_atomic_load",)


def registers_of_turns(loop: Any, buffers: Mapping[Any, Storage]) -> list[str] | None:
    """Names of the register arrays that turns of a `while` store into; None if a turn may do more than that.

    Buffers that the body allocates are new in each turn, and not named.
    """
    stores: list[Any] = []
    inner: list[Any] = []
    other: list[Any] = []

    def look(node: Any) -> None:
        if isinstance(node, tir.BufferStore):
            stores.append(node.buffer)
        elif isinstance(node, tir.AllocBuffer):
            inner.append(node.buffer)
        elif isinstance(node, tvm.ir.Call):
            kind = node.op.get_attr("TCallEffectKind") if isinstance(node.op, tvm.ir.Op) else None
            if kind not in HARMLESS and extern_name(node) not in READS and not call_name(node).endswith("address_of"):
                other.append(node)
        elif isinstance(node, tir.AttrStmt):
            other.append(node)

    tvm_ffi.structural_walk(loop, look)
    outside = [buffer for buffer in stores if not any(buffer.same_as(one) for one in inner)]
    if other or any(buffer not in buffers or buffers[buffer].space != "local" for buffer in outside):
        return None
    return sorted({buffers[buffer].name for buffer in outside})
