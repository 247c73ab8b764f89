"""A fragment that several parts of `T.ws` use: each has its own, or is told that registers are not shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb

HEAD = """
@T.prim_func
def k(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads={threads}):
        A_s = T.alloc_shared((2, 64, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        c = T.alloc_fragment((64, 128), "float32")
        top = T.alloc_fragment((64,), "float32")
"""
COPIED = """
        T.copy(A[0, 0], A_s[0, :, :])
        T.copy(A[64, 0], A_s[1, :, :])
        T.copy(B, B_s)
        T.sync_threads()
"""
BULK = """
        full = T.alloc_barrier(1)
        with T.ws(2):
            T.tma_copy(A[0, 0], A_s[0, :, :], barrier=full)
            T.tma_copy(A[64, 0], A_s[1, :, :], barrier=full)
            T.tma_copy(B, B_s, barrier=full)
            if T.get_thread_binding() == 256:
                T.barrier_arrive(full)
"""
PARTS = """
        for g in [0, 1]:
            with T.ws(g):
                {wait}
                {body}
"""
PRODUCT = "T.clear(c)\n                T.gemm(A_s[g, :, :], B_s, c)\n                T.copy(c, C[g * 64, 0])"
BODIES: dict[str, Any] = {
    "products": (PRODUCT, lambda r: r),
    "a product that clears": (
        PRODUCT.replace("T.clear(c)\n                ", "").replace("B_s, c)", "B_s, c, clear_accum=True)"), lambda r: r,
    ),
    "reductions": (
        PRODUCT.replace("T.copy(c, C[g * 64, 0])", "T.reduce_max(c, top, dim=1)") + "\n                "
        "for i, j in T.Parallel(64, 128):\n                    C[g * 64 + i, j] = c[i, j] - top[i]",
        lambda r: r - r.max(1, keepdims=True),
    ),
    "loops over elements": (
        "for i, j in T.Parallel(64, 128):\n                    c[i, j] = B_s[i, j] + g\n"
        "                for i, j in T.Parallel(64, 128):\n                    C[g * 64 + i, j] = c[i, j] * 2",
        None,
    ),
    "running sums": (
        "T.clear(c)\n                for i in T.serial(3):\n                    T.gemm(A_s[g, :, :], B_s, c)\n"
        "                T.copy(c, C[g * 64, 0])",
        lambda r: 3 * r,
    ),
}  # fmt: skip


def compiled(text: str, arch: str) -> Any:
    return tilelang_nb.compile_cell(text, {}, target="sim", arch=arch)


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((128, 64), (64, 128)))
    return a, b, np.zeros((128, 128), np.float32)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", BODIES)
def test_each_part_has_registers_of_its_own(name: str, arch: str) -> None:
    body, expected = BODIES[name]
    cell = compiled(HEAD.format(threads=256) + COPIED + PARTS.format(wait="pass", body=body), arch)
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    a, b, c = arrays()
    kernel(a, b, c)
    wide = a.astype(np.float32), b.astype(np.float32)
    if expected is None:
        want = np.concatenate([wide[1] * 2, wide[1] * 2 + 2])
    else:
        want = expected(wide[0] @ wide[1])
    np.testing.assert_array_equal(c, want)
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    told = [str(one) for one in kernel.decisions if one.subject == "layout"]
    assert any("warp groups 0 and 1 each have their own c" in one for one in told)
    assert not any("shared memory" in one for one in told)


@pytest.mark.parametrize("product", ["T.gemm(", "T.wgmma_gemm("])
def test_warp_groups_multiply_tiles_of_bulk_copies_each_into_its_own_sums(product: str) -> None:
    body = PRODUCT.replace("T.gemm(", product)
    if "wgmma" in product:
        body = body.replace("T.copy(c", "T.wait_wgmma(0)\n                T.copy(c")
    wait = "T.barrier_wait(full, 0)"
    cell = compiled(HEAD.format(threads=384) + BULK + PARTS.format(wait=wait, body=body), "sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    a, b, c = arrays()
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    products = [one.value for one in kernel.decisions if one.subject == "product"]
    assert products and all(one.startswith("wgmma") for one in products)


REFUSED = {
    "one reads what the other wrote": (
        "with T.ws(0):\n            T.copy(B, c)\n        T.sync_threads()\n        with T.ws(1):\n"
        "            T.copy(c, C[64, 0])",
        "T.copy(c, C[64, 0])",
    ),
    "both go on with what all cleared": (
        "T.clear(c)\n        with T.ws(0):\n            T.gemm(A_s[0, :, :], B_s, c)\n"
        "            T.copy(c, C[0, 0])\n        with T.ws(1):\n            T.gemm(A_s[1, :, :], B_s, c)",
        "T.gemm(A_s[1, :, :], B_s, c)",
    ),
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", REFUSED)
def test_registers_do_not_go_from_one_warp_group_to_another(name: str, arch: str) -> None:
    body, place = REFUSED[name]
    text = HEAD.format(threads=256) + COPIED + f"        {body}\n"
    cell = compiled(text, arch)
    (found,) = cell.diagnostics
    assert found.code == "TL210" and text.splitlines()[found.span.line - 1].strip() == place
    assert "warp groups 0 and 1 use the fragment `c`" in found.message and "T.alloc_shared" in found.help


def test_a_fragment_of_all_threads_and_of_one_part_is_told_to_be_in_shared_memory() -> None:
    body = "T.clear(c)\n        with T.ws(0):\n            T.copy(c, C[0, 0])\n"
    cell = compiled(HEAD.format(threads=256) + COPIED + f"        {body}", "sm_80")
    assert cell.ok, cell.to_text()
    told = [str(one) for one in cell.namespace["k"].decisions if one.subject == "layout"]
    assert told == ["layout (line 7): c is kept in shared memory; no layout in registers serves all of its uses"]
