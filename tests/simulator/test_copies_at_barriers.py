"""Asynchronous copies that both a group and an mbarrier count."""

from __future__ import annotations

import numpy as np

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((128, 4), "int32"), C: T.Tensor((128, 4), "int32")):
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((128, 4), "int32")
        here = T.alloc_barrier(128)
        t = T.get_thread_binding()
        T.async_copy(A[0:128, 0:4], S)
        T.ptx_commit_group()
        T.cp_async_barrier_noinc(here)
        T.ptx_wait_group(0)
        T.sync_threads()
        for j in T.serial(4):
            S[t, j] = S[t, j] + 1
        T.barrier_wait(here, 0)
        for j in T.serial(4):
            C[t, j] = S[t, j]
"""


def test_a_copy_that_has_landed_for_a_group_lands_for_no_barrier_again() -> None:
    cell = tilelang_nb.compile_cell(TEXT, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    a = np.arange(512, dtype=np.int32).reshape(128, 4)
    c = np.zeros_like(a)
    kernel(a, c)
    assert tuple(kernel.findings) == (), [str(one) for one in kernel.findings]
    np.testing.assert_array_equal(c, a + 1)
