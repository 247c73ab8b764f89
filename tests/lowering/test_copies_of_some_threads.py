"""`T.tma_copy` under conditions on the thread, as texts for Hopper have it: the first thread that gets there starts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((256, 64), "float16"), n: T.int32, B: T.Tensor((256, 64), "float16")):
    with T.Kernel(1, threads={threads}):
        s = T.alloc_shared((2, 64, 64), "float16")
        full = T.alloc_barrier([{arrivals}] * 2)
        tx = T.get_thread_binding()
        {before}
        for i in range(n):
            {copy}
            {wait}
"""
COPY = """if {condition}:
                T.tma_copy(A[i * 64, 0], s[i % 2, :, :], barrier=full[i % 2])
                T.barrier_arrive(full[i % 2])"""
USE = """T.barrier_wait(full[i % 2], i // 2 % 2)
            T.copy(s[i % 2, :, :], B[i * 64, 0])
            T.sync_threads()"""
# name -> (threads, arrivals, condition, statement before)
CONDITIONS = {
    "the first thread": (128, 1, "tx == 0", "pass"),
    "another thread": (128, 1, "tx == 37", "pass"),
    "one warp": (128, 32, "tx < 32", "pass"),
    "one of each warp": (128, 4, "tx % 32 == 0", "pass"),
    "the elected one": (128, 1, "T.shuffle_elect(128)", "pass"),
    "a name": (128, 1, "leads", "leads = tx == 64"),
    "with what all agree on": (128, 1, "tx == 0 and i >= 0", "pass"),
    "the last warp": (160, 32, "tx >= 128", "pass"),
}
PARTS = """
@T.prim_func
def k(A: T.Tensor((256, 64), "float16"), n: T.int32, B: T.Tensor((256, 64), "float16")):
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((2, 64, 64), "float16")
        full = T.alloc_barrier([1] * 2)
        empty = T.alloc_barrier([128] * 2)
        tx = T.get_thread_binding()
        with T.ws(1):
            for i in range(n):
                T.barrier_wait(empty[i % 2], i // 2 % 2 ^ 1)
                if {condition}:
                    T.tma_copy(A[i * 64, 0], s[i % 2, :, :], barrier=full[i % 2])
                    T.barrier_arrive(full[i % 2])
        with T.ws(0):
            for i in range(n):
                T.barrier_wait(full[i % 2], i // 2 % 2)
                T.copy(s[i % 2, :, :], B[i * 64, 0])
                T.barrier_arrive(empty[i % 2])
"""
STORE = """
@T.prim_func
def k(A: T.Tensor((256, 64), "float16"), n: T.int32, B: T.Tensor((256, 64), "float16")):
    with T.Kernel(4, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        tx = T.get_thread_binding()
        T.copy(A[bx * 64, 0], s)
        T.fence_proxy_async()
        T.sync_threads()
        if tx == 5:
            T.tma_copy(s, B[bx * 64, 0])
            T.tma_store_arrive()
            T.tma_store_wait()
"""


def run(text: str) -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    a = np.random.default_rng(1).standard_normal((256, 64)).astype(np.float16)
    b = np.zeros_like(a)
    kernel(a, 4, b)
    np.testing.assert_array_equal(b, a)
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    return kernel


def text_of(name: str) -> str:
    threads, arrivals, condition, before = CONDITIONS[name]
    copy = COPY.format(condition=condition)
    return TEXT.format(threads=threads, arrivals=arrivals, before=before, copy=copy, wait=USE)


@pytest.mark.parametrize("name", CONDITIONS)
def test_the_first_thread_that_gets_there_starts_the_copy(name: str) -> None:
    run(text_of(name))


@pytest.mark.parametrize("condition", ["tx == 128", "T.shuffle_elect(128)", "tx < 160 and tx == 140"])
def test_in_a_part_of_the_warp_groups(condition: str) -> None:
    run(PARTS.format(condition=condition))


def test_a_store_by_one_thread() -> None:
    run(STORE)


REFUSED = {
    "what memory says": TEXT.format(
        threads=128, arrivals=128, before="pass", copy=COPY.format(condition="A[tx, 0] > 0"), wait=USE
    ),
    "no thread of the part": PARTS.format(condition="tx == 0"),
    "turns of its own": TEXT.format(
        threads=128, arrivals=128, before="pass", wait=USE,
        copy="for j in range(tx):\n                T.tma_copy(A[i * 64, 0], s[i % 2, :, :], barrier=full[i % 2])",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_where_no_thread_is_known_to_get_there_it_is_refused_at_the_copy(name: str) -> None:
    cell = tilelang_nb.compile_cell(REFUSED[name], {}, target="sim", arch="sm_90a")
    (found,) = cell.diagnostics
    line = 1 + next(at for at, one in enumerate(REFUSED[name].splitlines()) if "T.tma_copy" in one)
    assert (found.code, found.span.line) == ("TL210", line)
    assert "leave the condition out: one of the threads starts the copy" in found.help
