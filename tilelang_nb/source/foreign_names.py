"""Names that people bring from CUDA, Triton, NumPy and PyTorch, and what a kernel says for them."""

from __future__ import annotations

from collections.abc import Iterable

# `T.name` -> the operation of the language that takes the same arguments.
SAME = {
    "syncthreads": "sync_threads",
    "__syncthreads": "sync_threads",
    "barrier": "sync_threads",
    "debug_barrier": "sync_threads",
    "cdiv": "ceildiv",
    "maximum": "max",
    "minimum": "min",
    "power": "pow",
    "absolute": "abs",
    "arctan2": "atan2",
    "where": "if_then_else",
    "select": "if_then_else",
    "astype": "cast",
    "clip": "clamp",
    "alloc_smem": "alloc_shared",
    "shared_memory": "alloc_shared",
    "alloc_registers": "alloc_local",
    "alloc_register": "alloc_local",
    "range": "serial",
    "prange": "Parallel",
    "unrolled": "unroll",
}
# `T.name` -> how a kernel says it otherwise.
OTHERWISE = {
    **dict.fromkeys(("threadIdx", "thread_idx", "thread_id", "tid", "threadidx"), "write `T.get_thread_binding()`"),
    **dict.fromkeys(
        ("blockIdx", "block_idx", "block_id", "program_id", "bid"),
        "name it at the launch: `with T.Kernel(...) as bx`",
    ),
    **dict.fromkeys(("blockDim", "block_dim", "num_threads"), "write `T.get_thread_extent()`"),
    **dict.fromkeys(("gridDim", "grid_dim", "num_programs"), "write `T.get_block_extent()`"),
    **dict.fromkeys(("zeros", "zeros_like"), "allocate a tile, then `T.clear(tile)`"),
    **dict.fromkeys(("full", "full_like", "ones", "ones_like"), "allocate a tile, then `T.fill(tile, value)`"),
    **dict.fromkeys(("matmul", "dot", "mm", "mma"), "write `T.gemm(A, B, C)`, which adds the product to a tile"),
    "sum": "write `T.reduce_sum(tile, result, dim=0)`",
    "mean": "write `T.reduce_sum(tile, result, dim=0)`, then divide by the count",
    "amax": "write `T.reduce_max(tile, result, dim=0)`",
    "amin": "write `T.reduce_min(tile, result, dim=0)`",
    **dict.fromkeys(("load", "ldg"), "read an element, `A[i]`, or a tile: `T.copy(A[i, j], tile)`"),
    **dict.fromkeys(("store",), "store an element, `A[i] = x`, or a tile: `T.copy(tile, A[i, j])`"),
    **dict.fromkeys(("arange", "iota"), "loop over the numbers: `for i in T.Parallel(n)`"),
    "relu": "write `T.max(x, 0.0)`",
    "softmax": "subtract `T.reduce_max`, take `T.exp`, divide by `T.reduce_sum`",
    "atomic_sub": "write `T.atomic_add(place, -value)`",
    "atomic_inc": "write `T.atomic_add(place, 1)`",
    **dict.fromkeys(("shared", "alloc"), "write `T.alloc_shared(shape, dtype)`"),
    **dict.fromkeys(("registers", "local"), "write `T.alloc_local(shape, dtype)`, or `T.alloc_fragment`"),
    **dict.fromkeys(("constexpr", "constant"), "use a Python number: it is known while the kernel is built"),
    "square": "write `x * x`",
    "printf": "write `T.print(x)`",
    **dict.fromkeys(("jit", "kernel"), "put `@T.prim_func` above the function"),
    "len": "write `A.shape[0]`",
}
# Names that stand alone.
ALONE = {
    **dict.fromkeys(("__syncthreads", "syncthreads"), "write `T.sync_threads()`"),
    **dict.fromkeys(("__syncwarp", "syncwarp"), "write `T.sync_warp()`"),
    "atomicAdd": "write `T.atomic_add(A[i], value)`",
    "atomicMax": "write `T.atomic_max(A[i], value)`",
    "atomicMin": "write `T.atomic_min(A[i], value)`",
    "threadIdx": OTHERWISE["threadIdx"],
    "blockIdx": OTHERWISE["blockIdx"],
    "blockDim": OTHERWISE["blockDim"],
    "gridDim": OTHERWISE["gridDim"],
    "tl": "the language is `T` here",
}
# Keyword arguments by other names.
KEYWORDS = {
    **dict.fromkeys(("stages", "n_stages", "pipeline_stages", "depth"), "num_stages"),
    **dict.fromkeys(("num_threads", "nthreads", "block_size", "n_threads"), "threads"),
    **dict.fromkeys(("axis", "axes"), "dim"),
}
MODULES = {"np": "import numpy as np", "plt": "import matplotlib.pyplot as plt"}
MODULES |= {name: f"import {name}" for name in ("numpy", "torch", "math", "itertools", "functools", "random", "time")}
MODULES |= {name: f"import {name}" for name in ("os", "sys", "cupy", "operator", "collections", "ml_dtypes")}


def for_operation(name: str) -> tuple[str, str]:
    """(the operation that is meant, "") or ("", a remedy) for `T.name`; two empty texts where nothing is known."""
    return SAME.get(name, ""), OTHERWISE.get(name, "")


def for_keyword(name: str, keywords: Iterable[str]) -> str:
    """The keyword that is meant by another name, where the call has it; "" where nothing is known."""
    known = KEYWORDS.get(name, "")
    return known if known in set(keywords) else ""


def for_name(name: str) -> str:
    """The remedy for an undefined name; "" where nothing is known."""
    if name in MODULES:
        return f"write `{MODULES[name]}` first, at the top of the cell"
    return ALONE.get(name, "")
