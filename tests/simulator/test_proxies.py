"""Bulk copies that overwrite what threads loaded or stored: ordered by barriers, and between proxies by a fence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowering.hopper import changed, dropped, lowered
from tvm import tirx as tir

from tilelang_nb.simulator import Program

RING = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((128, 512), "float32")):
    with T.Kernel(1, threads=256) as bx:
        A_s = T.alloc_shared((2, 128, 64), "float16")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([128] * 2)
        with T.ws(0):
            for ko in range(8):
                T.barrier_wait(full[ko % 2], (ko // 2) % 2)
                {read}
                {before}
                T.barrier_arrive(empty[ko % 2])
                {after}
        with T.ws(1):
            for ko in range(8):
                T.barrier_wait(empty[ko % 2], ((ko // 2) % 2) ^ 1)
                {copying}
                T.tma_copy(A[0, ko * 64], A_s[ko % 2, :, :], barrier=full[ko % 2])
                T.barrier_arrive(full[ko % 2])
"""
BY_ELEMENTS = "for i, j in T.Parallel(128, 64): B[i, ko * 64 + j] = A_s[ko % 2, i, j] + 1"
LINES = RING.splitlines()
READ = 1 + next(at for at, line in enumerate(LINES) if "{read}" in line)
COPY = 1 + next(at for at, line in enumerate(LINES) if "T.tma_copy" in line)
STORE = "for i, j in T.Parallel(128, 64): A_s[ko % 2, i, j] = A_s[ko % 2, i, j] + 1"


def ring(read: str = BY_ELEMENTS, before: str = "pass", after: str = "pass", copying: str = "pass") -> Any:
    return lowered(RING.format(read=read, before=before, after=after, copying=copying), {}).launches[0]


def without_fences(launch: Any) -> Any:
    return changed(launch, dropped("fence_proxy"))


def findings(launch: Any) -> Any:
    a = np.random.default_rng(3).integers(-9, 9, (128, 512)).astype(np.float16)
    b = np.full((128, 512), np.nan, np.float32)
    report = Program(launch).run({"A": a, "B": b})
    np.testing.assert_array_equal(b, a.astype(np.float32) + 1)
    return report.findings


def with_fence(launch: Any, place: Callable[[list[Any]], int | None], fence: Callable[[Any], Any]) -> Any:
    """The launch without its fences, and with one at the place that a function finds in a sequence."""
    found = []

    def note(node: Any) -> None:
        if "fence_proxy" in str(getattr(node.value, "op", "")):
            found.append(node)

    tvm_ffi.structural_walk(launch.body, (tir.Evaluate, note))

    def visit(node: Any) -> Any:
        at = place([str(one) for one in node.seq])
        return node if at is None else tir.SeqStmt([*node.seq[:at], fence(found[0]), *node.seq[at:]], node.span)

    body = without_fences(launch).body
    return launch.with_body(tvm_ffi.structural_map(body, (tir.SeqStmt, visit)))


@pytest.mark.parametrize(("read", "kind"), [(BY_ELEMENTS, "load"), (STORE + "\n                " + BY_ELEMENTS.replace(" + 1", ""), "store")])  # fmt: skip
def test_an_ordinary_access_before_a_bulk_copy_without_a_fence_is_found(read: str, kind: str) -> None:
    found = findings(without_fences(ring(read)))
    places = {(one.code, one.span.line, one.notes[0].span.line) for one in found}
    assert ("TL401", COPY + read.count("\n"), READ) in places, [str(one) for one in found]
    assert all("T.fence_proxy_async()" in one.help for one in found)
    assert any(f"ordinary {kind}s" in one.message and "`A_s`" in one.message for one in found)


def test_a_fence_of_the_threads_that_read_is_enough() -> None:
    assert findings(ring(before="T.fence_proxy_async()")) == ()


def test_a_fence_of_the_thread_that_copies_behind_its_wait_is_enough() -> None:
    """It lies between the two on their way, whoever comes to it."""
    launch = ring(copying="T.fence_proxy_async()")
    count = [0]

    def only_the_last(name: str, call: Any) -> Any:
        count[0] += "fence_proxy" in name
        return None if "fence_proxy" in name and count[0] == 1 else call

    assert findings(changed(launch, only_the_last)) == ()
    assert count[0] == 2


def test_a_fence_behind_the_arrival_is_too_late() -> None:
    def behind_the_arrival(texts: list[str]) -> int | None:
        return next((at + 1 for at, text in enumerate(texts) if "arrive" in text and "empty" in text), None)

    late = findings(with_fence(ring(), behind_the_arrival, lambda fence: fence))
    assert {(one.code, one.span.line) for one in late} == {("TL401", COPY)}


@pytest.mark.parametrize(("threads", "wrong"), [(32, True), (128, False)])
def test_a_fence_is_one_for_the_threads_that_come_to_it(threads: int, wrong: bool) -> None:
    text = f"if T.get_thread_binding() < {threads}: T.fence_proxy_async()"
    launch = ring(before=text)
    mine = [0]

    def not_the_added_one(name: str, call: Any) -> Any:
        mine[0] += "fence_proxy" in name
        return None if "fence_proxy" in name and mine[0] == 2 else call

    found = findings(changed(launch, not_the_added_one) if wrong else launch)
    assert [one.span.line for one in found] == ([COPY] if wrong else [])


@pytest.mark.parametrize("threads", [128, 256])
def test_products_of_warps_read_by_ordinary_loads(threads: int) -> None:
    """ldmatrix is one; what wgmma reads is over when it has been waited for."""
    text = """
@T.prim_func
def k(A: T.Tensor((128, 256), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier({threads})
        T.clear(C_l)
        for ko in range(4):
            T.tma_copy(A[0, ko * 64], A_s, barrier=full)
            T.barrier_arrive(full)
            T.mbarrier_wait_parity(full, ko % 2)
            T.gemm(A_s, A_s, C_l, transpose_B=True)
            {more}
        T.copy(C_l, C)
"""
    a = np.random.default_rng(4).integers(-3, 4, (128, 256)).astype(np.float16)
    for more, engine in (("C_l[0, 0] += 0 * A_s[0, 0]", "mma.sync"), ("pass", "wgmma")):
        result = lowered(text.format(threads=threads, more=more), {})
        assert [one.value.split(" ")[0] for one in result.decisions if one.subject == "product"] == [engine]
        for fenced in (True, False):
            launch = result.launches[0]
            if not fenced and engine == "mma.sync":
                launch = without_fences(launch)
            elif not fenced:
                assert "fence.proxy" not in launch.script() and 'fence("proxy"' not in launch.script()
            c = np.full((128, 128), np.nan, np.float32)
            report = Program(launch).run({"A": a, "C": c})
            np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32).T)
            expected = set() if fenced or engine == "wgmma" else {("TL401", 10)}
            assert {(one.code, one.span.line) for one in report.findings} == expected
