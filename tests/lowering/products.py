"""Kernels with one T.gemm, run on the simulated device and compared with NumPy."""

from __future__ import annotations

import textwrap
from typing import Any

import ml_dtypes
import numpy as np

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor({a}, "{dtype}"), B: T.Tensor({b}, "{other}"), C: T.Tensor(({m}, {n}), "{total}")):
    with T.Kernel(1, threads={threads}) as bx:
        A_s = T.alloc_{a_memory}({a}, "{tile}")
        B_s = T.alloc_{b_memory}({b}, "{other_tile}")
        C_l = T.alloc_{c_memory}(({m}, {n}), "{total}")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.copy(C, C_l)
        T.gemm(A_s, B_s, C_l, transpose_A={ta}, transpose_B={tb}, policy=T.GemmWarpPolicy.{policy}{options})
        T.copy(C_l, C)
"""


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def compiled(text: str, arch: str | None = None, **names: Any) -> Any:
    cell = tilelang_nb.compile_cell(textwrap.dedent(text), dict(names), target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


def compiled_product(
    m: int, n: int, k: int, *, dtype: str = "float16", other: str = "", total: str = "float32", threads: int = 128,
    ta: bool = False, tb: bool = False, policy: str = "Square", a_memory: str = "shared", b_memory: str = "shared",
    c_memory: str = "fragment", options: str = "", arch: str | None = None,
) -> tuple[Any, tuple[tuple[int, int], ...]]:  # fmt: skip
    """(kernel, shapes of A, B and C); None for a kernel that has too little shared memory."""
    other = other or dtype
    host, host_other = (name.replace("tfloat32", "float32") for name in (dtype, other))
    shape_a, shape_b = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    text = TEXT.format(
        a=shape_a, b=shape_b, m=m, n=n, dtype=host, other=host_other, tile=dtype, other_tile=other, total=total,
        threads=threads, ta=ta, tb=tb, policy=policy, a_memory=a_memory, b_memory=b_memory, c_memory=c_memory,
        options=options,
    )  # fmt: skip
    cell = tilelang_nb.compile_cell(textwrap.dedent(text), {}, target="sim", arch=arch)
    too_large = [found.code for found in cell.diagnostics] == ["TL209"]
    assert cell.ok or too_large, cell.to_text()
    return None if too_large else cell.namespace["k"], (shape_a, shape_b, (m, n))


def product(m: int, n: int, k: int, **given: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """(kernel after its run, result, expected), for the options of `compiled_product`; the run has no finding."""
    kernel, shapes = compiled_product(m, n, k, **given)
    dtype, total = given.get("dtype", "float16"), given.get("total", "float32")
    types = [name.replace("tfloat32", "float32") for name in (dtype, given.get("other") or dtype, total)]
    rng = np.random.default_rng(m * n + k)
    a, b, c = (values(rng, shape, name) for shape, name in zip(shapes, types, strict=True))
    result = c.copy()
    kernel(a, b, result)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    wide = np.int64 if total == "int32" else np.float64
    left, right = (
        matrix.astype(wide).T if given.get(turned) else matrix.astype(wide) for matrix, turned in ((a, "ta"), (b, "tb"))
    )
    return kernel, result, c.astype(wide) * ("clear" not in given.get("options", "")) + left @ right


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("u") else -100
        return rng.integers(low, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(numpy_type(dtype))


def thread_text(kernel: Any) -> str:
    return next(stage.text for stage in kernel.stages if stage.name == "thread")
