"""T.async_copy, T.ptx_commit_group and T.ptx_wait_group in kernels: results, and what a missing wait looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

from tilelang_nb.runtime.kernel import SimulatorFindings

HEAD = """
@T.prim_func
def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((64,), "float32")
        t = T.alloc_shared((64,), "float32")
        ring = T.alloc_shared((3, 64), "float32")
"""
TAKES_S = "for x in T.Parallel(64):\n    C[0, x] = s[63 - x]"
TAKES_T = "for x in T.Parallel(64):\n    C[1, x] = t[63 - x]"


def text_of(*parts: str) -> str:
    lines = [line for part in parts for line in part.strip("\n").splitlines()]
    return HEAD + "\n".join("        " + line for line in lines) + "\n"


def line_of(text: str, statement: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if statement in line)


def ran(text: str, arch: str = "sm_80") -> tuple[Any, np.ndarray, np.ndarray]:
    kernel = compiled(text, arch)
    a = np.random.default_rng(0).integers(1, 9, (8, 64)).astype(np.float32)
    c = np.zeros_like(a)
    kernel(a, c)
    return kernel, a, c


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("barrier", ["", "T.sync_threads()"])
def test_groups_land_in_their_order(arch, barrier):
    """A barrier of the text is not needed: one is put before the use, after the wait."""
    text = text_of(
        "T.async_copy(A[0, :], s)", "T.async_copy(A[1, :], t)",
        "T.ptx_wait_group(1)", barrier, TAKES_S, "T.ptx_wait_group(0)", barrier, TAKES_T,
    )  # fmt: skip
    kernel, a, c = ran(text, arch)
    assert tuple(kernel.findings) == ()
    np.testing.assert_array_equal(c[:2], a[:2, ::-1])
    assert ("cp.async" in thread_text(kernel)) == (arch == "sm_80")


def test_a_ring_of_stages_by_hand():
    text = text_of(
        "for i in T.unroll(2):\n    T.async_copy(A[i, :], ring[i, :])",
        """
for i in T.serial(8):
    T.ptx_wait_group(1)
    T.sync_threads()
    if i + 2 < 8:
        T.async_copy(A[i + 2, :], ring[(i + 2) % 3, :])
    else:
        T.ptx_commit_group()
    for x in T.Parallel(64):
        C[i, x] = ring[i % 3, 63 - x]
""",
    )
    kernel, a, c = ran(text)
    assert tuple(kernel.findings) == ()
    np.testing.assert_array_equal(c, a[:, ::-1])


MISSING = {
    "no wait": ("", "C[0, x] = s[63 - x]", "T.async_copy(A[0, :], s)"),
    "a wait that allows the group": ("T.ptx_wait_group(2)", "C[0, x] = s[63 - x]", "T.async_copy(A[0, :], s)"),
    "a write before the wait": (
        "for x in T.Parallel(64):\n    s[x] = 1.0\nT.ptx_wait_group(0)", "s[x] = 1.0", "T.async_copy(A[0, :], s)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_wait_is_found_with_both_lines(name):
    between, later, first = MISSING[name]
    text = text_of("T.async_copy(A[0, :], s)", "T.async_copy(A[1, :], t)", between, TAKES_S)
    with pytest.warns(SimulatorFindings):
        kernel, _, _ = ran(text)
    finding = kernel.findings[0]
    assert (finding.code, finding.span.line) == ("TL401", line_of(text, later))
    assert [note.span.line for note in finding.notes if note.span] == [line_of(text, first)]
    assert "asynchronous copy" in finding.message and finding.help == "put `T.ptx_wait_group(0)` before this"


def test_the_group_that_is_waited_for_is_not_the_one_that_is_read():
    text = text_of("T.async_copy(A[0, :], s)", "T.async_copy(A[1, :], t)", "T.ptx_wait_group(1)", TAKES_T)
    with pytest.warns(SimulatorFindings):
        kernel, _, _ = ran(text)
    (finding,) = kernel.findings
    assert finding.span.line == line_of(text, "C[1, x]")
    assert finding.notes[0].span.line == line_of(text, "T.async_copy(A[1, :], t)")


def test_a_copy_over_a_version_that_is_still_read_is_found():
    """The turn starts the copy for the version that it reads: one version too few."""
    text = text_of(
        """
for i in T.unroll(2):
    T.async_copy(A[i, :], ring[i, :])
for i in T.serial(6):
    T.ptx_wait_group(1)
    T.async_copy(A[i + 2, :], ring[i % 2, :])
    for x in T.Parallel(64):
        C[i, x] = ring[i % 2, 63 - x]
""",
    )
    with pytest.warns(SimulatorFindings):
        kernel, _, _ = ran(text)
    finding = kernel.findings[0]
    lines = {finding.span.line, *(note.span.line for note in finding.notes if note.span)}
    assert finding.code == "TL401"
    assert lines == {line_of(text, "T.async_copy(A[i + 2"), line_of(text, "C[i, x] = ring")}


@pytest.mark.parametrize(("threads", "bytes_each"), [(16, 16), (32, 8), (64, 4), (128, 4), (48, 4)])
def test_elements_are_copied_asynchronously_however_many_a_thread_has(threads, bytes_each):
    text = text_of("T.async_copy(A[0, :], s)", TAKES_S).replace("threads=32", f"threads={threads}")
    with pytest.warns(SimulatorFindings):
        kernel, _, _ = ran(text)
    assert kernel.findings[0].span.line == line_of(text, "C[0, x]")
    waited = text_of("T.async_copy(A[0, :], s)", "T.ptx_wait_group(0)", TAKES_S)
    kernel, a, c = ran(waited.replace("threads=32", f"threads={threads}"))
    assert tuple(kernel.findings) == ()
    np.testing.assert_array_equal(c[0], a[0, ::-1])
    assert f", {bytes_each})" in next(line for line in thread_text(kernel).splitlines() if "cp.async_.c" in line)


def test_copies_by_hand_around_a_pipeline_keep_their_groups():
    text = text_of(
        """
for q in T.serial(3):
    T.async_copy(A[q, :], t)
    for i in T.Pipelined(4, num_stages=3):
        T.copy(A[i, :], s)
        for x in T.Parallel(64):
            C[4 + i, x] += s[63 - x]
    T.ptx_wait_group(0)
    for x in T.Parallel(64):
        C[q, x] = t[63 - x]
""",
    )
    kernel, a, c = ran(text)
    assert tuple(kernel.findings) == ()
    np.testing.assert_array_equal(c[:3], a[:3, ::-1])
    np.testing.assert_array_equal(c[4:], 3 * a[:4, ::-1])


@pytest.mark.parametrize("options", ["coalesced_width=2", "coalesced_width=4"])
def test_a_copy_over_the_edge_is_filled_with_zeros(options):
    text = text_of(f"T.async_copy(A[7, 16], s, {options})", "T.ptx_wait_group(0)", TAKES_S)
    kernel, a, c = ran(text)
    assert tuple(kernel.findings) == ()
    expected = np.concatenate([a[7, 16:], np.zeros(16, np.float32)])
    np.testing.assert_array_equal(c[0], expected[::-1])


def test_a_copy_that_converts_needs_no_wait_and_may_have_one():
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            h = T.alloc_shared((64,), "float16")
            T.async_copy(A[0, :], h)
            T.ptx_wait_group(0)
            for x in T.Parallel(64):
                C[0, x] = h[63 - x]
    """
    kernel, a, c = ran(text)
    assert tuple(kernel.findings) == () and "cp.async.c" not in thread_text(kernel)
    np.testing.assert_array_equal(c[0], a[0, ::-1])


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("T.async_copy(s, C[0, :])", "global"),
        ("T.async_copy(s, t)", "global"),
        ("T.ptx_wait_group(-1)", "0 or more"),
        ("T.ptx_wait_group(bx)", "known only when the kernel runs"),
    ],
)
def test_a_mistake_is_refused_at_its_line(statement, problem):
    import tilelang_nb

    text = text_of("T.copy(A[0, :], s)", statement)
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    found = [one for one in cell.diagnostics if one.severity == "error"]
    assert [(one.code, one.span.line) for one in found] == [("TL004", line_of(text, statement))]
    assert problem in found[0].message + found[0].help
