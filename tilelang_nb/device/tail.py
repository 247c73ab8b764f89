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

from .vector_accesses import stage_vectors

DEVICE_KERNEL = 2  # value of the attribute "calling_conv" of a kernel


@dataclass(frozen=True)
class Pass:
    """One step of the tail.  why: the reason for its place, shown to the user."""

    name: str
    run: Callable[[Any], Any]  # IRModule -> IRModule
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


def passes_to_split() -> tuple[Pass, ...]:
    """From thread programs to host and device functions."""
    return (
        Pass("flatten-buffers", tx.FlattenBuffer(), "memory is addressed by one index from here on"),
        Pass("narrow-indices", tx.NarrowDataType(32), "64-bit indices stay only where 32 bits provably do not do"),
        Pass("fold-indices", _functions("fold_indices", _fold), "flat indices are sums that fold"),
        Pass(
            "stage-vectors",
            _functions("stage_vectors", stage_vectors),
            "accesses of 16 bytes need flat indices, and a place in registers for what is computed between them",
        ),
        Pass("vectorize", tx.VectorizeLoop(True), "what is left as a vector loop is one access"),
        Pass("mark-entry", tx.AnnotateEntryFunc(), "the split asks which function the host calls"),
        Pass(
            "split-host-device", tx.SplitHostDevice(), "parameters and launch extents are settled; the body is a kernel"
        ),
    )


def passes_of_kernels() -> tuple[Pass, ...]:
    """From device functions to what is printed."""
    return (
        Pass("lower-warp-memory", tx.LowerWarpMemory(), "before intrinsics: it adds shuffles"),
        Pass(
            "lower-intrinsics", tx.LowerIntrin(), "mathematics by its CUDA names, floored division by shifts and masks"
        ),
        Pass("share-subexpressions", tx.CommonSubexprElim(), "last, so that nothing puts them back"),
        Pass(
            "restore-vector-bases",
            _functions("restore_vector_bases", _restore_vector_bases),
            "a vector is printed only where its alignment shows in the index",
        ),
    )


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
        for one in passes_to_split():
            module = _recorded(one, module, snapshots)
        host: dict[str, Any] = {}
        device: dict[Any, Any] = {}
        for name, function in module.functions.items():
            kernel = int(function.attrs.get("calling_conv", 0)) == DEVICE_KERNEL
            (device if kernel else host)[name if kernel else name.name_hint] = function
        # No `__restrict__`: an array may be passed for two parameters.
        device = {name: function.without_attr("tirx.noalias") for name, function in device.items()}
        module = tvm.IRModule(device, attrs=module.attrs)
        for one in passes_of_kernels():
            module = _recorded(one, module, snapshots)
    return Split(tuple(host[name] for name in functions), module, tuple(snapshots), target)


def _recorded(one: Pass, module: Any, snapshots: list[Snapshot]) -> Any:
    started = time.perf_counter()
    after = one.run(module)
    milliseconds = (time.perf_counter() - started) * 1e3
    changed = not after.same_as(module) and not tvm_ffi.structural_equal(after, module)
    snapshots.append(Snapshot(one.name, one.why, after, milliseconds, changed))
    return after
