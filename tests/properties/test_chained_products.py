"""Two products in a row, the result of the first one as an operand of the second: random tiles, policies and ways.

Small integers make every sum exact, so results are equal bit for bit wherever the compiler keeps what is in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st
from lowering.products import compiled, numpy_type
from properties.amounts import amount

POLICIES = st.sampled_from(["Square", "FullRow", "FullCol"])
BETWEEN = {
    "as it is": ("", lambda s: s),
    "elementwise": ("for i, j in T.Parallel(M, N):\n            s[i, j] = T.max(s[i, j], 0.0) - 1.0", lambda s: np.maximum(s, 0) - 1),
    "less the largest of its row": (
        "T.reduce_max(s, m, dim=1)\n        for i, j in T.Parallel(M, N):\n            s[i, j] = s[i, j] - m[i]",
        lambda s: s - s.max(1, keepdims=True),
    ),
    "with the sum of its column": (
        "T.reduce_sum(s, q, dim=0)\n        for i, j in T.Parallel(M, N):\n            s[i, j] = T.min(T.max(s[i, j] + q[j], -8.0), 8.0)",
        lambda s: np.clip(s + s.sum(0, keepdims=True), -8, 8),
    ),
    "masked by its place": (
        "for i, j in T.Parallel(M, N):\n            s[i, j] = T.if_then_else(i >= j, s[i, j], 0.0)",
        lambda s: np.tril(s),
    ),
}  # fmt: skip

TEXT = """
@T.prim_func
def k(A: T.Tensor((steps * M, K), dtype), B: T.Tensor((steps * {b0}, {b1}), dtype), D: T.Tensor(({d0}, {d1}), dtype),
      C: T.Tensor(({c0}, {c1}), "float32"), S: T.Tensor((M, N), "float32")):
    with T.Kernel(1, threads=threads) as bx:
        A_s = T.alloc_shared((M, K), dtype)
        B_s = T.alloc_shared(({b0}, {b1}), dtype)
        D_s = T.alloc_shared(({d0}, {d1}), dtype)
        s = T.alloc_fragment((M, N), "float32")
        p = T.alloc_{memory}((M, N), dtype)
        c = T.alloc_fragment(({c0}, {c1}), "float32")
        m = T.alloc_fragment((M,), "float32")
        q = T.alloc_fragment((N,), "float32")
        T.copy(D, D_s)
        T.clear(s)
        for k in T.Pipelined(steps, num_stages=stages):
            T.copy(A[k * M, 0], A_s)
            T.copy(B[k * {b0}, 0], B_s)
            T.gemm(A_s, B_s, s, transpose_B={turned}, policy=T.GemmWarpPolicy.{first})
        {between}
        T.copy(s, p)
        T.clear(c)
        T.gemm({operands}, c, policy=T.GemmWarpPolicy.{second}{options})
        T.copy(c, C)
        T.copy(s, S)
"""


@st.composite
def chains(draw: Any) -> dict[str, Any]:
    return {
        "M": 16 * draw(st.integers(1, 6)),
        "N": 16 * draw(st.integers(1, 6)),
        "K": 16 * draw(st.integers(1, 3)),
        "L": 16 * draw(st.integers(1, 5)),
        "threads": 32 * draw(st.sampled_from([1, 2, 3, 4, 6, 8, 12])),
        "steps": draw(st.integers(1, 3)),
        "stages": draw(st.integers(1, 3)),
        "dtype": draw(st.sampled_from(["float16", "bfloat16"])),
        "memory": draw(st.sampled_from(["fragment", "fragment", "fragment", "shared"])),
        "turned": draw(st.booleans()),
        "first": draw(POLICIES),
        "second": draw(POLICIES),
        "between": draw(st.sampled_from(list(BETWEEN))),
        "side": draw(st.sampled_from(["left", "left turned", "right", "right turned"])),
        "arch": draw(st.sampled_from(["sm_75", "sm_80", "sm_90a"])),
    }


@given(chains())
@amount(60, 3000)
def test_the_result_of_a_product_is_an_operand(case: dict[str, Any]) -> None:
    m, n, k, l = (case[name] for name in "MNKL")
    text, between = BETWEEN[case["between"]]
    side, p_turned = case["side"].split()[0], "turned" in case["side"]
    rows, depth = (n, m) if p_turned else (m, n)  # of p as it is multiplied
    if side == "right":
        rows, depth = depth, rows
    d_shape = (depth, l) if side == "left" else (l, depth)
    c_shape = (rows, l) if side == "left" else (l, rows)
    b_shape = (n, k) if case["turned"] else (k, n)
    options = (", transpose_A=True" if side == "left" else ", transpose_B=True") if p_turned else ""
    source = TEXT.format(
        b0=b_shape[0], b1=b_shape[1], d0=d_shape[0], d1=d_shape[1], c0=c_shape[0], c1=c_shape[1],
        memory=case["memory"], turned=case["turned"], first=case["first"], second=case["second"], between=text,
        operands="p, D_s" if side == "left" else "D_s, p", options=options,
    )  # fmt: skip
    names = {name: case[name] for name in ("M", "N", "K", "threads", "steps", "stages", "dtype")}
    kernel = compiled(source, case["arch"], **names)
    rng = np.random.default_rng(m * n + k + l)
    kind = numpy_type(case["dtype"])

    def small(*shape: int) -> np.ndarray:
        return rng.integers(-1, 2, shape).astype(kind)

    a, b, d = small(case["steps"] * m, k), small(case["steps"] * b_shape[0], b_shape[1]), small(*d_shape)
    c, s = np.zeros(c_shape, np.float32), np.zeros((m, n), np.float32)
    kernel(a, b, d, c, s)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    scores = np.zeros((m, n))
    for step in range(case["steps"]):
        left = a[step * m : step * m + m].astype(np.float64)
        right = b[step * b_shape[0] : (step + 1) * b_shape[0]].astype(np.float64)
        scores += left @ (right.T if case["turned"] else right)
    scores = between(scores)
    np.testing.assert_array_equal(s, scores)
    p = scores.astype(kind).astype(np.float64)
    p = p.T if p_turned else p
    wide = d.astype(np.float64)
    np.testing.assert_array_equal(c, p @ wide if side == "left" else wide @ p)
    event(
        f"p in {kernel.layouts['p'].memory} memory"
        if case["memory"] == "fragment"
        else "p in a shared tile of the text"
    )
