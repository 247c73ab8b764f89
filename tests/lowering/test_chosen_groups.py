"""Tile operations under conditions that choose whole warp groups are done by these, as in `T.ws`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), C: T.Tensor((3, 64, 64), "float32"), n: T.int32):
    with T.Kernel(1, threads=384):
        a = T.alloc_shared((64, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        d = T.alloc_fragment((64, 64), "float32")
        tx = T.get_thread_binding()
        T.copy(A, a)
        {first}
            T.copy(a, c)
            T.copy(c, C[0, 0, 0])
        {second}
            T.clear(d)
            T.copy(d, C[1, 0, 0])
"""


def diagnostics(first: str, second: str = "if True:") -> tuple[Any, ...]:
    cell = tilelang_nb.compile_cell(TEXT.format(first=first, second=second), {}, target="sim", arch="sm_90a")
    return cell.diagnostics


def run(first: str, second: str = "if True:") -> np.ndarray:
    cell = tilelang_nb.compile_cell(TEXT.format(first=first, second=second), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    a, c = np.arange(4096, dtype=np.float32).reshape(64, 64), np.ones((3, 64, 64), np.float32)
    kernel = cell.namespace["k"]
    kernel(a, c, 1)
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    assert np.array_equal(c[0], a) and not c[1].any() and c[2].all()
    return kernel


CHOSEN = {
    "if tx < 128:": "0",
    "if tx >= 256:": "2",
    "if tx >= 128 and tx < 256:": "1",
    "if 127 < tx:": "1,2",
    "if tx // 128 == 1:": "1",
    "if tx < 128 and n > 0:": "0",
    "if n == 1 and tx >= 256 and n < 5:": "2",
}


@pytest.mark.parametrize("condition", CHOSEN)
def test_the_warp_groups_that_are_chosen_are_a_part(condition: str) -> None:
    kernel = run(condition)
    stage = next(one for one in kernel.stages if one.name == "plan-pipelines")
    assert f"T.ws({CHOSEN[condition]})" in stage.text.replace(" ", "")


@pytest.mark.parametrize("second", ["elif tx < 256:", "elif tx >= 256:", "else:"])
def test_each_side_of_an_if_is_a_part(second: str) -> None:
    run("if tx < 128:", second)


def test_work_of_single_threads_stays_beside_a_part() -> None:
    text = TEXT.format(first="if tx < 128:", second="elif tx < 140:")
    text = text.replace("T.clear(d)\n            T.copy(d, C[1, 0, 0])", "C[1, 0, tx - 128] = 7")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    a, c = np.arange(4096, dtype=np.float32).reshape(64, 64), np.ones((3, 64, 64), np.float32)
    cell.namespace["k"](a, c, 1)
    assert np.array_equal(c[0], a) and (c[1, 0, :12] == 7).all() and (c[1, 0, 12:] == 1).all()


def test_a_condition_that_all_threads_meet_is_none() -> None:
    run("if tx < 384:")


IN_TURNS = """
@T.prim_func
def k(A: T.Tensor((512, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((512, 128), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((2, 128, 64), "float16")
        b = T.alloc_shared((64, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        ready = T.alloc_barrier([128] * 2)
        free = T.alloc_barrier([128] * 2)
        tx = T.get_thread_binding()
        T.copy(B, b)
        T.sync_threads()
        if tx >= 128:
            for i in range(4):
                T.barrier_wait(free[i % 2], i // 2 % 2 ^ 1)
                T.copy(A[i * 128, 0], a[i % 2, :, :])
                T.barrier_arrive(ready[i % 2])
        else:
            for i in range(4):
                T.barrier_wait(ready[i % 2], i // 2 % 2)
                {product}
                T.barrier_arrive(free[i % 2])
                T.copy(c, C[i * 128, 0])
"""


PRODUCTS = (
    "T.gemm(a[i % 2, :, :], b, c, clear_accum=True)",
    "T.wgmma_gemm(a[i % 2, :, :], b, c, clear_accum=True)\n                T.wait_wgmma(0)",
)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_producers_and_consumers(product: str, arch: str) -> None:
    cell = tilelang_nb.compile_cell(IN_TURNS.format(product=product), {}, target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (512, 64)).astype(np.float16), rng.integers(-4, 5, (64, 128)).astype(np.float16)
    c = np.zeros((512, 128), np.float32)
    kernel = cell.namespace["k"]
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    (found,) = [one.value for one in kernel.decisions if one.subject == "product"]
    assert found.startswith("wgmma" if arch == "sm_90a" and "wgmma" in product else ("mma", "wgmma")), found


@pytest.mark.parametrize(
    "condition", ["if tx < 100:", "if tx < n:", "if tx % 2 == 0:", "if tx % 256 < 128:", "if a[tx // 64, tx % 64] > 0:"]
)
def test_other_conditions_belong_inside(condition: str) -> None:
    found = diagnostics(condition)
    assert found and all("put the condition inside" in one.help for one in found)


def test_a_side_that_is_no_part_is_refused_alone() -> None:
    found = diagnostics("if tx < 128:", "elif tx < 200:")
    assert {(one.code, one.span.line) for one in found} == {("TL210", 14), ("TL210", 15)}
    assert all("put the condition inside" in one.help for one in found)


def test_arrays_of_each_thread_make_no_part() -> None:
    text = TEXT.format(first="if True:", second="if True:").replace(
        "        T.copy(A, a)\n",
        '        T.copy(A, a)\n        own = T.alloc_local((4,), "float32")\n        T.clear(own)\n'
        "        if tx < 128:\n            T.fill(own, 1.0)\n",
    )
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    assert not any("T.ws" in stage.text for stage in cell.namespace["k"].stages)
