"""The passes from a thread program to what CUDA C is printed from, each with the reason for its place.

Simplifiers that know float algebra (`StmtSimplify`) are left out: they take `x * 0` for 0, also where x is infinite or
NaN.  Indices are folded by the last stage of lowering, and after flattening here.
"""

from __future__ import annotations

import os

# Source-only CUDA modules, also where a CUDA runtime is present.
os.environ.setdefault("TVM_COMPILE_FORCE_FALLBACK", "1")

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir  # noqa: F401  registers the passes that the device module needs
from tvm import tirx as tir

from tilelang_nb.lowering.context import Snapshot
from tilelang_nb.lowering.index_arithmetic import fold_indices

from .large_values import keep_large_values
from .load_ahead import load_ahead
from .matrix_addresses import matrix_addresses
from .matrix_descriptors import matrix_descriptors
from .nested_choices import nested_choices
from .short_circuits import short_circuits
from .unique_variables import unique_variables
from .vector_accesses import stage_vectors
from .wide_vectors import ramps_of_wide_indices

KERNEL_SUFFIX = "_kernel"  # what SplitHostDevice adds to the name of a launch
DEVICE_KERNEL = 2  # value of the attribute "calling_conv" of a kernel


@dataclass(frozen=True)
class Pass:
    """One step of the tail.  runs: passes over modules.  why: the reason for its place, shown to the user."""

    name: str
    runs: tuple[Callable[[Any], Any], ...]
    why: str


@lru_cache(maxsize=16)
def cuda_target(arch: str) -> Any:
    """TVM's target, e.g. for "sm_90a".  SplitHostDevice needs the host, or it does nothing."""
    return tvm.target.Target({"kind": "cuda", "arch": arch}).with_host(tvm.target.Target("llvm"))


def _functions(name: str, rewrite: Callable[[Any], Any]) -> Any:
    """A module pass that rewrites every function."""

    @tir.transform.prim_func_pass(opt_level=0, name=name)
    def run(function: Any, _module: Any, _context: Any) -> Any:
        return rewrite(function)

    return run


def _fold(function: Any) -> Any:
    return function.with_body(fold_indices(function.body, tvm.sym.Analyzer()))


def _restore_vector_bases(function: Any) -> Any:
    """Undo common-subexpression elimination inside the index of vector loads.

    The printer makes `*(float4*)(A + base)` of a load only if it can prove that `base` is a multiple of the lanes; a
    `cse_v*` variable hides that, and the load would become a gather, element by element.
    """
    values: dict[Any, Any] = {}

    def collect(bind: Any) -> None:
        if bind.var.name.startswith("cse_v"):
            values[bind.var] = bind.value

    def expand(expr: Any) -> Any:
        return tvm_ffi.structural_map(expr, (tvm.ir.Var, lambda var: expand(values[var]) if var in values else var))

    def restore(load: Any) -> Any:
        indices = list(load.indices)
        if not any(isinstance(index, tir.Ramp) for index in indices):
            return load
        return tir.BufferLoad(load.source, [expand(index) for index in indices])

    tvm_ffi.structural_walk(function.body, (tir.Bind, collect))
    if not values:
        return function
    return function.with_body(tvm_ffi.structural_map(function.body, (tvm.ir.TensorLoad, restore)))


tx = tir.transform


def passes_to_split(places: Any) -> tuple[Pass, ...]:
    """From thread programs to host and device functions.  places: puts places back that passes drop."""
    return (
        Pass(
            "load-ahead",
            (
                _functions("unique_variables", unique_variables),
                _functions("short_circuits", short_circuits),
                _functions("nested_choices", nested_choices),
                _functions("keep_large_values", keep_large_values),
                _functions("load_ahead", load_ahead),
            ),
            "loops still have their turns, and private arrays one index each",
        ),
        Pass("flatten-buffers", (tx.FlattenBuffer(),), "memory is addressed by one index from here on"),
        Pass(
            "narrow-indices",
            (tx.NarrowDataType(32), _functions("fold_indices", _fold), places),
            "64-bit indices stay only where 32 bits provably do not do; flat indices are sums that fold",
        ),
        Pass(
            "matrix-addresses",
            (
                _functions("matrix_addresses", matrix_addresses),
                _functions("matrix_descriptors", matrix_descriptors),
            ),
            "flat indices are sums whose terms show what an unrolled loop moves",
        ),
        Pass(
            "stage-vectors",
            (
                _functions("stage_vectors", stage_vectors),
                tx.VectorizeLoop(True),
                _functions("ramps_of_wide_indices", ramps_of_wide_indices),
            ),
            "accesses of 16 bytes need flat indices, and registers for what is computed between them",
        ),
        Pass(
            "split-host-device",
            (tx.AnnotateEntryFunc(), tx.SplitHostDevice(), places),
            "parameters and launch sizes are settled; the body is a kernel",
        ),
    )


def passes_of_kernels(places: Any) -> tuple[Pass, ...]:
    """From device functions to what is printed.  places: as before."""
    return (
        Pass(
            "lower-intrinsics",
            (tx.LowerWarpMemory(), tx.LowerIntrin(), places),
            "mathematics by its CUDA names, floored division by shifts and masks",
        ),
        Pass(
            "share-subexpressions",
            (tx.CommonSubexprElim(), _functions("restore_vector_bases", _restore_vector_bases), places),
            "last, so that nothing puts them back; the alignment of a vector must show in its index",
        ),
    )


# What the tail's passes are called as stages, in order.
STAGE_NAMES = tuple(one.name for one in (*passes_to_split(None), *passes_of_kernels(None)))


@dataclass(frozen=True)
class Split:
    """The tail's result.

    host: per launch, the function whose one call launches it.  device: the module of all kernels.
    """

    host: tuple[Any, ...]
    device: Any
    snapshots: tuple[Snapshot, ...]
    target: Any


def run_tail(functions: dict[str, Any], arch: str, fast_math: bool = False) -> Split:
    """Run all passes on the thread programs, by name."""
    target = cuda_target(arch)
    snapshots: list[Snapshot] = []
    module = tvm.IRModule(functions)
    with tvm.transform.PassContext(config={"tirx.enable_fast_math": fast_math}):
        module = tx.BindTarget(target)(module)
        places = _functions("restore_places", _Places(functions))
        for one in passes_to_split(places):
            module = _recorded(one, module, snapshots)
        host = {name.name_hint: function for name, function in module.functions.items() if not _is_kernel(function)}
        # No `__restrict__`: an array may be passed for two parameters.
        kernels = {n: f.without_attr("tirx.noalias") for n, f in module.functions.items() if _is_kernel(f)}
        module = tvm.IRModule(kernels, attrs=module.attrs)
        for one in passes_of_kernels(places):
            module = _recorded(one, module, snapshots)
    return Split(tuple(host[name] for name in functions), module, tuple(snapshots), target)


def _is_kernel(function: Any) -> bool:
    return int(function.attrs.get("calling_conv", 0)) == DEVICE_KERNEL


def _recorded(one: Pass, module: Any, snapshots: list[Snapshot]) -> Any:
    before = _shown(module)
    started = time.perf_counter()
    after = module
    for run in one.runs:
        after = run(after)
    milliseconds = (time.perf_counter() - started) * 1e3
    shown = _shown(after)
    changed = not tvm_ffi.structural_equal(before, shown, map_free_vars=True)
    snapshots.append(Snapshot(one.name, one.why, shown, milliseconds, changed))
    return after


def _shown(module: Any) -> Any:
    """The module as a snapshot: a copy, since some passes change the module that they are given.

    Without targets, which no one reads there, and after the split without the host's part, which is only a call.
    """
    functions = dict(module.functions.items())
    kernels = {name: function for name, function in functions.items() if _is_kernel(function)}
    shown = {name: _without(function, "target", "tirx.noalias") for name, function in (kernels or functions).items()}
    return tvm.IRModule(shown, attrs=module.attrs)


def _without(function: Any, *names: str) -> Any:
    for name in names:
        function = function.without_attr(name)
    return function


class _Places:
    """Puts back the places of thread axes, which NarrowDataType and others drop: those of the launch they belong to."""

    def __init__(self, functions: dict[str, Any]):
        self.spans: dict[str, dict[str, Any]] = {}
        for name, function in functions.items():
            found = self.spans[name] = self.spans[name + KERNEL_SUFFIX] = {}
            tvm_ffi.structural_walk(function.body, (tir.AttrStmt, lambda node, found=found: self._note(node, found)))

    def _note(self, node: Any, found: dict[str, Any]) -> None:
        if node.attr_key == "thread_extent":
            found[str(node.node.thread_tag)] = node.span

    def __call__(self, function: Any) -> Any:
        spans = self.spans.get(str(function.attrs["global_symbol"]), {}) if "global_symbol" in function.attrs else {}

        def visit(node: Any) -> Any:
            if node.attr_key != "thread_extent" or node.span is not None:
                return node
            return tir.AttrStmt(node.node, node.attr_key, node.value, node.body, spans.get(str(node.node.thread_tag)))

        return function.with_body(tvm_ffi.structural_map(function.body, (tir.AttrStmt, visit)))
