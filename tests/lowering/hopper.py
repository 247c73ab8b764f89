"""Kernels for sm_90a with roles: lowered with the option that asks for them, run on the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import tvm_ffi
from lowering.products import numpy_type
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.lowering import lower
from tilelang_nb.simulator import Program

ROLES = {"tl.enable_auto_warp_specialization": True}
MATMUL = """
@T.prim_func
def k(A: T.Tensor({a}, "{dtype}"), B: T.Tensor({b}, "{other}"), C: T.Tensor(({m}, {n}), "{out}")):
    with T.Kernel(T.ceildiv({n}, {bn}), T.ceildiv({m}, {bm}), threads={threads}) as (bx, by):
        A_s = T.alloc_shared({a_tile}, "{tile}")
        B_s = T.alloc_shared({b_tile}, "{other_tile}")
        C_l = T.alloc_fragment(({bm}, {bn}), "{total}")
        T.clear(C_l)
        for ko in T.Pipelined(T.ceildiv({k}, {bk}), num_stages={stages}):
            T.copy(A[{a_from}], A_s)
            T.copy(B[{b_from}], B_s)
            T.gemm(A_s, B_s, C_l, transpose_A={ta}, transpose_B={tb}, policy=T.GemmWarpPolicy.{policy})
        T.copy(C_l, C[by * {bm}, bx * {bn}])
"""


def changed(launch: Any, change: Callable[[str, Any], Any]) -> Any:
    """The launch with every call as a statement replaced by what `change(name, call)` gives; None drops it."""
    count = [0]

    def visit(node: Any) -> Any:
        name = getattr(getattr(node.value, "op", None), "name", "").rpartition(".")[2]
        result = change(name, node.value)
        if result is node.value:
            return node
        count[0] += 1
        return tir.Evaluate(tir.const(0, "int32") if result is None else result, node.span)

    body = tvm_ffi.structural_map(launch.body, (tir.Evaluate, visit))
    assert count[0] > 0
    return launch.with_body(body)


def dropped(name: str, operand: str = "") -> Callable[[str, Any], Any]:
    return lambda found, call: None if name in found and operand in str(call) else call


def lowered(text: str, options: dict[str, Any] | None = None) -> Any:
    """The lowered kernel `k` of a text, for sm_90a."""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    result = lower(cell.namespace["k"].program, arch="sm_90a", options=ROLES if options is None else options)
    assert not [found for found in result.diagnostics if found.severity == "error"], result.diagnostics
    return result


def matmul(
    m: int = 128, n: int = 256, k: int = 192, *, bm: int = 128, bn: int = 256, bk: int = 64, threads: int = 256,
    stages: int = 3, ta: bool = False, tb: bool = False, dtype: str = "float16", other: str = "", out: str = "",
    total: str = "float32", policy: str = "Square", options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """A product in a pipelined loop: .lowered, .launch, .program, .arguments, .expected."""
    host, host_other = dtype.replace("tfloat32", "float32"), (other or dtype).replace("tfloat32", "float32")
    a, b = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    text = MATMUL.format(
        a=a, b=b, m=m, n=n, k=k, bm=bm, bn=bn, bk=bk, dtype=host, other=host_other, tile=dtype,
        other_tile=other or dtype, out=out or "float32", total=total, threads=threads, stages=stages, ta=ta, tb=tb,
        policy=policy, a_tile=(bk, bm) if ta else (bm, bk), b_tile=(bn, bk) if tb else (bk, bn),
        a_from=f"ko * {bk}, by * {bm}" if ta else f"by * {bm}, ko * {bk}",
        b_from=f"bx * {bn}, ko * {bk}" if tb else f"ko * {bk}, bx * {bn}",
    )  # fmt: skip
    result = lowered(text, options)
    rng = np.random.default_rng(m + n + k)

    def numbers(shape: tuple[int, ...], name: str) -> np.ndarray:
        return rng.integers(-4, 5, shape).astype(np.float32).astype(numpy_type(name))

    left, right = numbers(a, host), numbers(b, host_other)
    if dtype == "uint8":
        left, right = rng.integers(0, 9, a).astype(np.uint8), rng.integers(0, 9, b).astype(np.uint8)
    wide = left.astype(np.float64), right.astype(np.float64)
    expected = (wide[0].T if ta else wide[0]) @ (wide[1].T if tb else wide[1])
    untouched = 99 if out == "int32" else np.nan
    c = np.full((m, n), untouched, ml_dtypes.bfloat16 if out == "bfloat16" else numpy_type(out or "float32"))
    return SimpleNamespace(
        lowered=result, launch=result.launches[0], arguments={"A": left, "B": right, "C": c}, expected=expected
    )


def run(case: Any, launch: Any = None, checks: bool = True) -> tuple[np.ndarray, Any]:
    """(C, report) of a run on copies of the arguments."""
    arguments = {name: array.copy() for name, array in case.arguments.items()}
    report = Program(launch or case.launch, checks=checks).run(arguments)
    return arguments["C"], report


def engine(case: Any) -> str:
    """How the product is computed."""
    return next(one.value for one in case.lowered.decisions if one.subject == "product")


ATTENTION = """
@T.prim_func
def k(
    Q: T.Tensor({shape}, "float16"), K: T.Tensor({shape}, "float16"), V: T.Tensor({shape}, "float16"),
    C: T.Tensor({shape}, "{out}"),
):
    with T.Kernel(T.ceildiv({seq}, 128), {heads}, {batch}, threads=256) as (bx, by, bz):
        Q_s = T.alloc_shared((128, {dim}), "float16")
        K_s = T.alloc_shared(({bn}, {dim}), "float16")
        V_s = T.alloc_shared(({bn}, {dim}), "float16")
        s = T.alloc_fragment((128, {bn}), "float32")
        p = T.alloc_fragment((128, {bn}), "float16")
        o = T.alloc_fragment((128, {dim}), "float32")
        top = T.alloc_fragment((128,), "float32")
        top_before = T.alloc_fragment((128,), "float32")
        shrink = T.alloc_fragment((128,), "float32")
        total = T.alloc_fragment((128,), "float32")
        part = T.alloc_fragment((128,), "float32")
        T.copy(Q[bz, bx * 128 : (bx + 1) * 128, by, :], Q_s)
        T.fill(o, 0)
        T.fill(total, 0)
        T.fill(top, -T.infinity("float32"))
        blocks = T.min(T.ceildiv({seq}, {bn}), T.ceildiv((bx + 1) * 128, {bn})) if {causal} else T.ceildiv({seq}, {bn})
        for k in T.Pipelined(blocks, num_stages={stages}):
            T.copy(K[bz, k * {bn} : (k + 1) * {bn}, by, :], K_s)
            for i, j in T.Parallel(128, {bn}):
                inside = (bx * 128 + i >= k * {bn} + j) if {causal} else (k * {bn} + j < {seq})
                s[i, j] = T.if_then_else(inside, 0, -T.infinity("float32"))
            T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(top, top_before)
            T.reduce_max(s, top, dim=1, clear=False)
            for i in T.Parallel(128):
                shrink[i] = T.exp2((top_before[i] - top[i]) * {scale})
            for i, j in T.Parallel(128, {bn}):
                s[i, j] = T.exp2((s[i, j] - top[i]) * {scale})
            T.reduce_sum(s, part, dim=1)
            for i in T.Parallel(128):
                total[i] = total[i] * shrink[i] + part[i]
            T.copy(s, p)
            for i, j in T.Parallel(128, {dim}):
                o[i, j] *= shrink[i]
            {between}
            T.copy(V[bz, k * {bn} : (k + 1) * {bn}, by, :], V_s)
            T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel(128, {dim}):
            o[i, j] /= total[i]
        {result}
"""
DIRECTLY = "T.copy(o, C[bz, bx * 128 : (bx + 1) * 128, by, :])"
THROUGH_A_TILE = """O_s = T.alloc_shared((128, {dim}), "{out}")
        T.copy(o, O_s)
        T.copy(O_s, C[bz, bx * 128 : (bx + 1) * 128, by, :])"""


def attention(
    batch: int = 1, seq: int = 256, heads: int = 1, dim: int = 128, *, bn: int = 128, stages: int = 2,
    causal: bool = False, out: str = "float16", between: str = "pass", result: str = DIRECTLY,
    options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Softmax of products of rows, times values: as `matmul`; expected in float64.

    between: a statement between the two products that changes nothing.  result: what stores `o`.
    """
    shape, scale = (batch, seq, heads, dim), 1.44269504 / dim**0.5
    text = ATTENTION.format(
        shape=shape, batch=batch, seq=seq, heads=heads, dim=dim, bn=bn, stages=stages, causal=causal, out=out,
        scale=scale, between=between, result=result.format(dim=dim, out=out),
    )  # fmt: skip
    found = lowered(text, options)
    rng = np.random.default_rng(seq + dim)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for _ in range(3))
    wide = [array.astype(np.float64).transpose(0, 2, 1, 3) for array in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 1, 3, 2) / dim**0.5
    if causal:
        scores = np.where(np.tril(np.ones((seq, seq), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (weights / weights.sum(-1, keepdims=True) @ wide[2]).transpose(0, 2, 1, 3)
    o = np.full(shape, np.nan, numpy_type(out))
    return SimpleNamespace(
        lowered=found, launch=found.launches[0], arguments={"Q": q, "K": k, "V": v, "C": o}, expected=expected
    )
