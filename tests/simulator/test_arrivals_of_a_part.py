"""An arrival at a barrier orders what the warps that arrive have done, and not what the rest of their role has."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

TEXT = """
import tilelang.language as T


@T.prim_func
def k(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((128,), "float32")
        full = T.alloc_barrier([{count}])
        tx = T.get_thread_binding()
        with T.ws(0):
            T.barrier_wait(full[0], 0)
            for i in T.Parallel(128):
                Y[i] = s[127 - i]  # READ
        with T.ws(1):
            for i in T.Parallel(128):
                s[i] = X[i]  # WRITE
{arrive}
"""

ALL = "T.barrier_arrive(full[0])"
CASES = {
    "one thread of four warps": (1, "if tx == 128:\n    T.barrier_arrive(full[0])", True),
    "two of four warps": (64, "if tx < 192:\n    T.barrier_arrive(full[0])", True),
    "every thread": (128, ALL, False),
    "one thread of each warp": (4, "if tx % 32 == 0:\n    T.barrier_arrive(full[0])", False),
    "one thread after a barrier of the role": (
        1,
        "T.sync_threads(3, 128)\nif tx == 128:\n    T.barrier_arrive(full[0])",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_only_warps_that_arrive_hand_over_what_they_wrote(name):
    count, arrive, raced = CASES[name]
    text = TEXT.format(count=count, arrive="\n".join("            " + line for line in arrive.splitlines()))
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert not cell.diagnostics, [str(one) for one in cell.diagnostics]
    given, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    kernel = cell.namespace["k"]
    if not raced:
        kernel(given, out)
        assert not kernel.findings, [str(one) for one in kernel.findings]
        assert (out == given[::-1]).all()
        return
    with pytest.warns():
        kernel(given, out)
    (finding,) = kernel.findings
    lines = text.splitlines()
    read, write = (next(i + 1 for i, line in enumerate(lines) if word in line) for word in ("# READ", "# WRITE"))
    assert finding.code == "TL401" and finding.span.line == read
    assert [note.span.line for note in finding.notes if note.span is not None] == [write]
    assert "arrive at a barrier" in str(finding)
