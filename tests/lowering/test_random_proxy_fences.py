"""Random texts that copy by hand, load from their tiles and store to them: the fences that lowering inserts are enough.

The simulated device says whether one is missing; it knows nothing of where lowering looked.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

from tilelang_nb.simulator import Program

HEAD = """
@T.prim_func
def k(A: T.Tensor((64, 512), "float16"), B: T.Tensor((64, 512), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((64, 64), "float16")
        q = T.alloc_shared((64, 64), "float16")
        full = T.alloc_barrier(128)
        loaded = T.alloc_barrier(128)
        given = T.alloc_barrier({arrivals})
"""
ACCESSES = (
    "for i, j in T.Parallel(64, 64): B[i, j] = {tile}[i, j]",
    "for i, j in T.Parallel(64, 64): {tile}[i, j] = {tile}[i, j] + 1",
    "for i, j in T.Parallel(64, 64): {tile}[i, j] = 2",
    "if tx < 64: B[tx, 0] = {tile}[tx, 3]",
    "if {turn} % 2 == 0:\n    for i, j in T.Parallel(64, 64): B[i, j] = {tile}[i, j]",
    "for i, j in T.Parallel(64, 64): B[i, 64 + j] = s[i, j] + q[i, j]",
    "for r in T.serial(2):\n    for i, j in T.Parallel(64, 64): B[i, r * 64 + j] = {tile}[i, j]",
    "T.copy({tile}, B[0, 128])",
    "T.sync_threads()",
    "T.fence_proxy_async()",
    "pass",
)


def indented(text: str, depth: int) -> str:
    return "".join(" " * depth + line + "\n" for line in text.split("\n"))


class Text:
    """A text by its number: copies in step with their use, once for a work and in every turn, or in a role."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.in_roles = seed % 3 == 2
        self.by_lanes = self.rng.random() < 0.5
        arrivals = 4 if self.by_lanes else 128
        self.text = HEAD.format(threads=256 if self.in_roles else 128, arrivals=arrivals)
        self.text += self._roles() if self.in_roles else self._in_step()

    def _some(self, depth: int, tile: str, turn: str, most: int = 2) -> str:
        chosen = (self.rng.choice(ACCESSES) for _ in range(self.rng.randint(0, most)))
        return "".join(indented(one.format(tile=tile, turn=turn), depth) for one in chosen)

    def _copied(self, depth: int, tile: str, barrier: str, turn: str, column: str) -> str:
        lines = [
            f"T.tma_copy(A[0, ({column}) % 8 * 64], {tile}, barrier={barrier})",
            f"T.barrier_arrive({barrier})",
            f"T.mbarrier_wait_parity({barrier}, ({turn}) % 2)",
        ]
        return indented("\n".join(lines), depth)

    def _in_step(self) -> str:
        works, turns = self.rng.choice([1, 2]), self.rng.choice([1, 3, 4])
        text = indented(self.rng.choice(["T.clear(s)", "T.clear(s)\nT.clear(q)"]), 8)
        text += f"        for work in range({works}):\n"
        text += self._copied(12, "q", "loaded", "work", "work") + self._some(12, "q", "work")
        text += f"            for ko in range({turns}):\n"
        text += self._copied(16, "s", "full", f"work * {turns} + ko", "ko + work")
        text += self._some(16, "s", "ko") + self._some(16, "q", "ko") + "                pass\n"
        return text + self._some(12, "q", "work") + self._some(12, "s", "work", 1)

    def _roles(self) -> str:
        give = "T.barrier_arrive(given)"
        if self.by_lanes:
            give = "T.sync_warp()\nif tx % 32 == 0:\n    T.barrier_arrive(given)"
        text = "        with T.ws(0):\n            for ko in range(5):\n"
        text += indented("T.barrier_wait(full, ko % 2)", 16)
        accesses = [one for one in ACCESSES if "q[" not in one]
        for one in self.rng.choices(accesses, k=self.rng.randint(1, 3)):
            text += indented(one.format(tile="s", turn="ko").replace("T.sync_threads()", "pass"), 16)
        text += indented(give, 16)
        text += "        with T.ws(1):\n            for ko in range(5):\n"
        text += indented("T.barrier_wait(given, (ko % 2) ^ 1)", 16)
        text += indented("T.tma_copy(A[0, ko * 64], s, barrier=full)\nT.barrier_arrive(full)", 16)
        return text


def findings(launch: Any) -> list[str]:
    a = np.random.default_rng(7).integers(-9, 9, (64, 512)).astype(np.float16)
    report = Program(launch).run({"A": a, "B": np.zeros((64, 512), np.float32)})
    return [str(one) for one in report.findings]


@pytest.mark.parametrize("seed", range(24))
def test_bulk_copies_wait_for_what_threads_did_with_their_tiles(seed: int) -> None:
    text = Text(seed).text
    found = findings(lowered(text, {}).launches[0])
    assert found == [], text + "\n".join(found)
