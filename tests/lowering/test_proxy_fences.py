"""Where fences stand between ordinary accesses of tiles and bulk copies that overwrite them, and where none is needed.

That a fence is needed is said by the simulated device: without it the launch has a finding.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES, changed, dropped, lowered

from tilelang_nb.simulator import Program

HEAD = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((128, 512), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        tx = T.get_thread_binding()
"""
IN_STEP = """        s = T.alloc_shared((128, 64), "float16")
        full = T.alloc_barrier(128)
        {first}
        for ko in range({turns}):
            T.tma_copy(A[0, ko * 64], s, barrier=full)
            T.barrier_arrive(full)
            T.mbarrier_wait_parity(full, ko % 2)
            for i, j in T.Parallel(128, 64):
                B[i, ko * 64 + j] = s[i, j]
            {last}
"""
RING = """        s = T.alloc_shared((2, 128, 64), "float16")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([{count}] * 2)
        with T.ws(0):
            for ko in range(8):
                T.barrier_wait(full[ko % 2], (ko // 2) % 2)
                for i, j in T.Parallel(128, 64):
                    B[i, ko * 64 + j] = s[ko % 2, i, j]
                {give}
        with T.ws(1):
            for ko in range(8):
                T.barrier_wait(empty[ko % 2], ((ko // 2) % 2) ^ 1)
                T.tma_copy(A[0, ko * 64], s[ko % 2, :, :], barrier=full[ko % 2])
                T.barrier_arrive(full[ko % 2])
"""
LANE = """T.sync_warp()
                if tx % 32 == 0:
                    T.barrier_arrive(empty[ko % 2])"""
AHEAD = """        s = T.alloc_shared((128, 64), "float16")
        full = T.alloc_barrier(128)
        for ko in T.Pipelined(8, num_stages=3):
            T.tma_copy(A[0, ko * 64], s, barrier=full)
            T.barrier_arrive(full)
            T.mbarrier_wait_parity(full, ko % 2)
            for i, j in T.Parallel(128, 64):
                B[i, ko * 64 + j] = s[i, j]
"""
ONCE_FOR_A_WORK = """        s = T.alloc_shared((128, 64), "float16")
        q = T.alloc_shared((128, 64), "float16")
        held = T.alloc_fragment((128, 64), "float32")
        full = T.alloc_barrier(128)
        loaded = T.alloc_barrier(128)
        for work in range(2):
            T.tma_copy(A[0, work * 64], q, barrier=loaded)
            T.barrier_arrive(loaded)
            T.mbarrier_wait_parity(loaded, work % 2)
            for i, j in T.Parallel(128, 64):
                held[i, j] = q[i, j]
            for ko in range(4):
                T.tma_copy(A[0, ko * 64 + work * 256], s, barrier=full)
                T.barrier_arrive(full)
                T.mbarrier_wait_parity(full, ko % 2)
                for i, j in T.Parallel(128, 64):
                    B[i, ko * 64 + work * 256 + j] = s[i, j] + 0 * held[i, j]
"""
STORED_AGAIN = """        s = T.alloc_shared((128, 64), "float16")
        for ko in range(8):
            for i, j in T.Parallel(128, 64):
                s[i, j] = A[i, ko * 64 + j]
            T.sync_threads()
            for i, j in T.Parallel(128, 64):
                B[i, ko * 64 + j] = s[i, j]
"""
# the text, threads -> what stands behind each fence that is inserted
CASES: dict[str, tuple[str, int, list[str]]] = {
    "a block barrier before the next turn's copy": (IN_STEP.format(first="pass", turns=8, last="pass"), 128, ["sync"]),
    "a barrier of the text": (IN_STEP.format(first="pass", turns=8, last="T.sync_threads()"), 128, ["sync"]),
    "a copy that is the only one": (IN_STEP.format(first="pass", turns=1, last="pass"), 128, []),
    "a tile that threads clear first": (IN_STEP.format(first="T.clear(s)", turns=1, last="pass"), 128, ["sync"]),
    "a fence of the text": (IN_STEP.format(first="pass", turns=8, last="T.fence_proxy_async()"), 128, []),
    "roles, all threads arrive": (RING.format(count=128, give="T.barrier_arrive(empty[ko % 2])"), 256, ["arrive"]),
    "roles, a lane of each warp arrives": (RING.format(count=4, give=LANE), 256, ["syncwarp"]),
    "roles with a fence of the text": (
        RING.format(count=128, give="T.fence_proxy_async(); T.barrier_arrive(empty[ko % 2])"), 256, [],
    ),
    "copies that run ahead": (AHEAD, 128, ["sync"]),
    "a tile that is copied once for a work": (ONCE_FOR_A_WORK, 128, ["sync"]),
    "no bulk copy": (STORED_AGAIN, 128, []),
}  # fmt: skip


def text_of(name: str) -> str:
    text, threads, _ = CASES[name]
    return HEAD.format(threads=threads) + text


def behind_fences(launch: Any) -> list[str]:
    """The kind of statement behind each proxy fence."""
    lines = [*launch.script().splitlines(), "the end"]
    found = [lines[at + 1] for at, line in enumerate(lines) if re.search(r'fence\("proxy"|fence\.proxy', line)]
    kinds = ("syncwarp", "sync", "arrive")
    return [next((kind for kind in kinds if kind in line), line.strip()) for line in found]


def findings(launch: Any) -> list[str]:
    a = np.random.default_rng(3).integers(-9, 9, (128, 512)).astype(np.float16)
    b = np.full((128, 512), np.nan, np.float32)
    report = Program(launch).run({"A": a, "B": b})
    wide = np.isfinite(b).all(0)
    assert wide.any()
    np.testing.assert_array_equal(b[:, wide], a[:, wide].astype(np.float32))
    return [one.code for one in report.findings]


@pytest.mark.parametrize("name", CASES)
def test_fences_stand_where_tiles_are_given_back(name: str) -> None:
    text, expected = text_of(name), CASES[name][2]
    launch = lowered(text, {}).launches[0]
    own = text.count("T.fence_proxy_async")
    assert len(behind_fences(launch)) == len(expected) + own
    assert own or behind_fences(launch) == expected
    assert findings(launch) == []
    if expected or own:
        assert set(findings(changed(launch, dropped("fence_proxy")))) == {"TL401"}


LOADED = """
@T.prim_func
def k(A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=128) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        A_l = T.alloc_fragment((128, 64), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.Pipelined(4, num_stages=2):
            T.copy(A[0, ko * 64], A_s)
            T.copy(B[ko * 64, 0], B_s)
            T.copy(A_s, A_l)
            T.gemm({left}, B_s, C_l)
        T.copy(C_l, C)
"""


@pytest.mark.parametrize(("left", "expected"), [("A_l", ["syncwarp", "sync"]), ("A_s", ["sync"])])
def test_slots_of_the_compilers_roles_are_given_back_behind_a_fence(left: str, expected: list[str]) -> None:
    """Those that threads load into registers; a product of warp groups reads in the same proxy as the copy.  The last
    fence is that of the results.
    """
    text = LOADED.format(left=left)
    if left == "A_s":
        text = text.replace("            T.copy(A_s, A_l)\n", "")
    result = lowered(text, ROLES)
    assert [one.value for one in result.decisions if one.subject == "roles"] == ["1 warp group copies, 1 computes"]
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((128, 256), (256, 128)))

    def found(launch: Any) -> set[tuple[str, int]]:
        c = np.full((128, 128), np.nan, np.float32)
        report = Program(launch).run({"A": a, "B": b, "C": c})
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        return {(one.code, one.span.line) for one in report.findings}

    launch = result.launches[0]
    assert behind_fences(launch) == expected
    assert found(launch) == set()
    missing = {("TL401", 11), ("TL401", 15)} if left == "A_l" else {("TL401", 14)}
    assert found(changed(launch, dropped("fence_proxy"))) == missing


BLOCKS = """
@T.prim_func
def k(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float32")):
    with T.ClusterKernel(4, threads=128, cluster_dims=4) as bx:
        s = T.alloc_shared((64, 64), "float16")
        full = T.alloc_barrier(128)
        for ko in range(4):
            T.tma_copy(A[0, ko * 64], s, barrier=full, cluster_mask=0b1111)
            T.barrier_arrive(full)
            T.mbarrier_wait_parity(full, ko % 2)
            for i, j in T.Parallel(64, 64):
                B[i, bx * 64 + j] = s[i, j] + ko
            T.cluster_sync()
            T.sync_threads()
"""


def test_a_tile_that_another_block_overwrites_is_given_back_at_the_barrier_of_the_cluster() -> None:
    """A barrier of the own block behind it is too late."""
    launch = lowered(BLOCKS, {}).launches[0]
    a = np.random.default_rng(6).integers(-9, 9, (64, 256)).astype(np.float16)

    def found(program: Any) -> set[tuple[str, int]]:
        b = np.full((64, 256), np.nan, np.float32)
        report = Program(program).run({"A": a, "B": b})
        np.testing.assert_array_equal(b, np.tile(a[:, 192:].astype(np.float32) + 3, 4))
        return {(one.code, one.span.line) for one in report.findings}

    assert behind_fences(launch) == ["arrive"] and "cluster" in launch.script()
    assert found(launch) == set()
    assert found(changed(launch, dropped("fence_proxy"))) == {("TL401", 8)}
