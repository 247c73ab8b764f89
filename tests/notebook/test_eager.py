"""Eager kernels in a real kernel: across cells, with their results, findings and stages."""

from __future__ import annotations

from typing import Any

CELL = """%%tilelang --quiet
@jit
def added(A, B):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((N,), T.float32)
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            C[i] = A[i] + B[i]
    return C
"""


def test_plain_cells_call_an_eager_kernel_and_get_arrays(kernel: Any) -> None:
    assert kernel.run(CELL).status == "ok"
    reply = kernel.run("x = np.arange(8, dtype='f4')\nprint(added(x, x).tolist() == (x + x).tolist())")
    assert (reply.status, reply.stdout) == ("ok", "True\n")


def test_the_cell_that_compiles_shows_the_stages(kernel: Any) -> None:
    kernel.run(CELL)
    reply = kernel.run("%%tilelang\nx = np.arange(16, dtype='f4')\nadded(x, x).sum()")
    assert reply.status == "ok" and reply.value in ("np.float32(240.0)", "240.0")
    assert "added" in reply.shown and "<details" in reply.html


def test_inspect_shows_the_kernel_of_the_last_call(kernel: Any) -> None:
    kernel.run(CELL)
    reply = kernel.run("%tilelang inspect added")
    assert reply.status == "error" and "`added` has no kernel yet" in reply.error + reply.stderr
    kernel.run("x = np.arange(8, dtype='f4')\nx = added(x, x)")
    assert "<details" in kernel.run("%tilelang inspect added").html


def test_a_wrong_argument_shows_a_report_in_place_of_a_traceback(kernel: Any) -> None:
    kernel.run(CELL)
    reply = kernel.run("added(np.zeros(4, 'f4'), np.zeros(5, 'f4'))")
    assert reply.status == "error" and reply.error.startswith("error[TL301]")
    assert "Traceback" not in reply.error
