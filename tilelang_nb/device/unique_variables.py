"""Every binding and every loop of a thread program gets a variable of its own.

Vector loops of one statement may share a variable, which the passes of TVM do not expect: they keep what is known of a
variable by the variable alone, and end where two definitions have different bounds.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.own_names import with_own_names


def unique_variables(function: Any) -> Any:
    """The function with new variables for all loops and bindings where two share one; else as it is."""
    defined: list[Any] = []
    tvm_ffi.structural_walk(
        function.body,
        [(tir.Bind, lambda node: defined.append(node.var)), (tir.For, lambda node: defined.append(node.loop_var))],
    )
    return function if len(set(defined)) == len(defined) else function.with_body(with_own_names(function.body))
