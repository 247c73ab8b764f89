"""T.ptx_cp_async between T.access_ptr places, with its groups and waits, on the simulated device against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime.simulated_launches import SimulatorFindings

TURNED = """
@T.prim_func
def k(A: T.Tensor((4, {columns}), "{dtype}"), B: T.Tensor((4, 256), "{dtype}")):
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((4, 256), "{dtype}")
        {layout}
        tx = T.get_thread_binding()
        for step in range(256 // {count} // 32):
            row = tx // 32
            column = (step * 32 + tx % 32) * {count}
            T.ptx_cp_async({target}, {source}, {count}{predicate})
        T.ptx_commit_group()
        {wait}
        for i, j in T.Parallel(4, 256):
            B[i, j] = S[i, 255 - j]
"""


def kernel(text: str, arch: str = "sm_80") -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


def turned(
    dtype: str = "float16", count: int = 8, columns: int = 256, predicate: str = "", wait: str = "T.ptx_wait_group(0)",
    layout: str = "pass", plain: bool = False, arch: str = "sm_80",
) -> tuple[Any, np.ndarray, np.ndarray]:  # fmt: skip
    """(kernel, A, B) after a run."""
    places = {"target": "S[row, column]", "source": "A[row, column]"}
    if not plain:
        places["target"] = f'T.access_ptr({places["target"]}, "w", {count})'
        places["source"] = f'T.access_ptr({places["source"]}, "r", {count})'
    text = TURNED.format(
        dtype=dtype, count=count, columns=columns, predicate=predicate, wait=wait, layout=layout, **places
    )
    made = kernel(text, arch)
    rng = np.random.default_rng(7)
    a = rng.integers(-50, 50, (4, columns)).astype(dtype)
    b = np.full((4, 256), 99, dtype)
    if "wait_group(0)" in wait or arch == "sm_75" or "commit" in wait:
        made(a, b)
    else:
        with pytest.warns(SimulatorFindings):
            made(a, b)
    return made, a, b


def instructions(made: Any) -> int:
    """How many copies of the program of a thread are asynchronous."""
    text = next(stage.text for stage in made.stages if stage.name == "thread")
    return sum(f"cp.async_.{kind}.shared" in line for line in text.split("\n") for kind in ("cg", "ca"))


@pytest.mark.parametrize(
    ("dtype", "count"), [("float16", 8), ("float16", 2), ("float32", 1), ("float32", 4), ("int8", 4)]
)
@pytest.mark.parametrize("plain", [False, True])
def test_each_thread_copies_its_neighbours(dtype: str, count: int, plain: bool) -> None:
    made, a, b = turned(dtype, count, plain=plain)
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert instructions(made) == 1 and made.findings == ()


@pytest.mark.parametrize(
    ("predicate", "rows"), [("row < 2", 2), ("row - 2", None), ("False", 0), ("True", 4), ("1", 4)]
)
def test_where_the_predicate_is_0_zeros_arrive(predicate: str, rows: int | None) -> None:
    made, a, b = turned(predicate=f", {predicate}")
    kept = [0, 1, 3] if rows is None else list(range(rows))
    expected = np.zeros_like(b)
    expected[kept] = a[kept, ::-1]
    np.testing.assert_array_equal(b, expected)
    assert made.findings == () and (instructions(made) == 1 or predicate == "False")


@pytest.mark.parametrize(("columns", "count"), [(248, 8), (250, 2), (100, 4)])
@pytest.mark.parametrize("predicate", ["", ", row != 1"])
def test_elements_over_the_edge_of_the_source_are_zeros(columns: int, count: int, predicate: str) -> None:
    made, a, b = turned(count=count, columns=columns, predicate=predicate)
    expected = np.zeros((4, 256), np.float16)
    expected[:, :columns] = a
    if predicate:
        expected[1] = 0
    np.testing.assert_array_equal(b, expected[:, ::-1])
    assert made.findings == ()


EDGE = """
@T.prim_func
def k(A: T.Tensor((61,), "float16"), B: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((64,), "float16")
        tx = T.get_thread_binding()
        if tx < 8:
            T.ptx_cp_async(S[tx * 8], A[tx * 8], 8)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        for i in T.Parallel(64):
            B[i] = S[63 - i]
"""


def test_neighbours_of_which_some_lie_over_the_edge() -> None:
    made = kernel(EDGE)
    a, b = np.arange(1, 62).astype(np.float16), np.full(64, 99, np.float16)
    made(a, b)
    np.testing.assert_array_equal(b, np.concatenate([a, np.zeros(3, np.float16)])[::-1])
    assert made.findings == () and instructions(made) == 1


def test_a_place_that_is_no_multiple_is_found() -> None:
    text = EDGE.replace("A[tx * 8]", "A[tx * 8 + 1]").replace("tx < 8", "tx < 7")
    made = kernel(text)
    with pytest.warns(SimulatorFindings):
        made(np.zeros(61, np.float16), np.zeros(64, np.float16))
    assert [one.code for one in made.findings if one.code != "TL403"] == ["TL402"]
    assert "16 bytes" in made.findings[0].message


def test_a_wait_that_was_forgotten_is_found_with_both_lines() -> None:
    made, _, _ = turned(wait="pass")
    (found,) = made.findings
    line = 1 + next(n for n, line in enumerate(TURNED.split("\n")) if "B[i, j] =" in line)
    started = 1 + next(n for n, line in enumerate(TURNED.split("\n")) if "T.ptx_cp_async" in line)
    assert (found.code, found.span.line) == ("TL401", line)
    assert "while an asynchronous copy is writing it" in found.message
    assert f"In[1]:{started}" in str(found) or any(note.span.line == started for note in found.notes)


def test_a_wait_for_another_group_is_not_enough() -> None:
    wait = "T.ptx_commit_group(); T.ptx_wait_group(1)"  # the empty group is the last one
    made, a, b = turned(wait=wait)
    np.testing.assert_array_equal(b, a[:, ::-1])
    made, _, _ = turned(wait="T.ptx_wait_group(1)")
    assert [one.code for one in made.findings] == ["TL401"]


def test_older_architectures_copy_at_once() -> None:
    made, a, b = turned(wait="pass", arch="sm_75")
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert made.findings == () and instructions(made) == 0


@pytest.mark.parametrize(
    ("layout", "copies"),
    [
        ("T.annotate_layout({S: T.make_swizzled_layout(S)})", 1),
        ("T.annotate_layout({S: lambda i, j: i * 264 + j})", 1),
        ("T.annotate_layout({S: lambda i, j: j * 4 + i})", 0),
    ],
)
def test_tiles_in_an_order_by_hand(layout: str, copies: int) -> None:
    """Where the neighbours of a row do not lie side by side they are copied one by one."""
    made, a, b = turned(layout=layout)
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert instructions(made) == copies and made.findings == ()


GATHERED = """
@T.prim_func
def k(A: T.Tensor((64, 128), "float16"), rows: T.Tensor((16,), "int32"), B: T.Tensor((16, 128), "float32")):
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((2, 16, 64), "float16")
        for i, j in T.Parallel(16, 8):
            T.ptx_cp_async(T.access_ptr(S[0, i, j * 8], "w", 8), T.access_ptr(A[rows[i], 0], "r", 8, offset=j * 8), 8)
        T.cp_async_commit_group()
        for i, j in T.Parallel(16, 8):
            T.ptx_cp_async(S[1, i, j * 8], A[rows[i], 64 + j * 8], 8, rows[i] > 0)
        T.cp_async_commit_group()
        for part in range(2):
            T.cp_async_wait_group(0)
            for i, j in T.Parallel(16, 64):
                B[i, part * 64 + j] = S[part, i, j] * 2
"""


def test_rows_that_are_looked_up_are_copied_in_a_parallel_loop() -> None:
    made = kernel(GATHERED)
    rng = np.random.default_rng(3)
    a, rows = rng.standard_normal((64, 128)).astype(np.float16), rng.integers(0, 64, 16).astype(np.int32)
    rows[3] = 0
    b = np.zeros((16, 128), np.float32)
    made(a, rows, b)
    expected = a[rows].astype(np.float32) * 2
    expected[rows == 0, 64:] = 0
    np.testing.assert_array_equal(b, expected)
    assert made.findings == () and instructions(made) == 2


RING = """
@T.prim_func
def k(A: T.Tensor((8, 512), "float32"), B: T.Tensor((512,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        S = T.alloc_shared((2, 512), "float32")
        total = T.alloc_fragment((512,), "float32")
        tx = T.get_thread_binding()
        T.clear(total)
        T.ptx_cp_async(S[0, tx * 4], A[0, tx * 4], 4)
        T.ptx_commit_group()
        for row in T.Pipelined(8, num_stages=2):
            if row < 7:
                T.ptx_cp_async(S[(row + 1) % 2, tx * 4], A[row + 1, tx * 4], 4)
            T.ptx_commit_group()
            T.ptx_wait_group({pending})
            for j in T.Parallel(512):
                total[j] += S[row % 2, 511 - j]
        T.copy(total, B)
"""


@pytest.mark.parametrize("pending", [0, 1, 2])
def test_a_ring_by_hand(pending: int) -> None:
    made = kernel(RING.format(pending=pending))
    a = np.random.default_rng(5).integers(-9, 10, (8, 512)).astype(np.float32)
    b = np.zeros(512, np.float32)
    if pending == 2:
        with pytest.warns(SimulatorFindings):
            made(a, b)
        assert {one.code for one in made.findings} == {"TL401"}
        return
    made(a, b)
    np.testing.assert_array_equal(b, a.sum(0)[::-1])
    assert made.findings == ()


ROLES = """
@T.prim_func
def k(A: T.Tensor((6, 1024), "float16"), B: T.Tensor((6, 1024), "float32")):
    with T.Kernel(1, threads=256):
        S = T.alloc_shared((2, 1024), "float16")
        full = T.alloc_barrier([128, 128])
        empty = T.alloc_barrier([128, 128])
        tx = T.get_thread_binding()
        with T.ws(0):
            for r in range(6):
                {wait}
                for j in T.Parallel(1024):
                    B[r, j] = S[r % 2, 1023 - j]
                T.barrier_arrive(empty[r % 2])
        with T.ws(1):
            for r in range(6):
                T.barrier_wait(empty[r % 2], (r // 2 + 1) % 2)
                column = (tx - 128) * 8
                T.ptx_cp_async(T.access_ptr(S[r % 2, column], "w", 8), T.access_ptr(A[r, column], "r", 8), 8)
                T.cp_async_barrier_noinc(full[r % 2])
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_copies_of_one_role_arrive_at_the_barrier_of_another(arch: str) -> None:
    a, b = np.arange(6 * 1024).reshape(6, 1024).astype(np.float16), np.zeros((6, 1024), np.float32)
    made = kernel(ROLES.format(wait="T.barrier_wait(full[r % 2], (r // 2) % 2)"), arch)
    made(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])
    assert made.findings == ()
    mistaken = kernel(ROLES.format(wait="pass"), arch)
    with pytest.warns(SimulatorFindings):
        mistaken(a, b)
    assert {"TL401", "TL405"} <= {one.code for one in mistaken.findings}


def test_operands_of_products_keep_their_swizzle() -> None:
    made = kernel(
        """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        A_s = T.alloc_shared((64, 64), "float16")
        B_s = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        for i, j in T.Parallel(64, 8):
            T.ptx_cp_async(A_s[i, j * 8], A[i, j * 8], 8)
            T.ptx_cp_async(B_s[i, j * 8], B[i, j * 8], 8)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        T.clear(c)
        T.gemm(A_s, B_s, c)
        T.copy(c, C)
"""
    )
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    made(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert made.findings == () and instructions(made) == 2
    assert made.layouts["A_s"].swizzle is not None


BY_NUMBER = """
@T.prim_func
def k(A: T.Tensor((64, 32), "float16"), B: T.Tensor((64, 32), "float16")):
    with T.Kernel(4, threads=64) as bx:
        S = T.alloc_shared((16, 32), "float16")
        tx = T.get_thread_binding()
        T.ptx_cp_async(
            T.tvm_access_ptr(T.type_annotation("float16"), S.data, tx * 8, 8, 2),
            T.tvm_access_ptr(T.type_annotation("float16"), A.data, bx * 512 + tx * 8, 8, 1),
            8,
        )
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        for i, j in T.Parallel(16, 32):
            B[bx * 16 + i, j] = S[15 - i, j]
"""


def test_places_by_their_number() -> None:
    made = kernel(BY_NUMBER)
    a = np.random.default_rng(2).standard_normal((64, 32)).astype(np.float16)
    b = np.zeros_like(a)
    made(a, b)
    np.testing.assert_array_equal(b.reshape(4, 16, 32), a.reshape(4, 16, 32)[:, ::-1])
    assert made.findings == () and instructions(made) == 1


REFUSED = {
    "3 elements": ('T.ptx_cp_async(S[0, 0], A[0, 0], 3)', "TL004", "6 bytes"),
    "64 bytes": ('T.ptx_cp_async(S[0, 0], A[0, 0], 32)', "TL004", "64 bytes"),
    "a count of the device": ("T.ptx_cp_async(S[0, 0], A[0, 0], T.get_thread_binding())", "TL004", "num_elems"),
    "the other way": ("T.ptx_cp_async(A[0, 0], S[0, 0], 8)", "TL004", "global memory"),
    "types": ("T.ptx_cp_async(S[0, 0], X[0], 8)", "TL205", "float32"),
    "a pointer for reading": (
        'T.ptx_cp_async(T.access_ptr(S[0, 0], "r", 8), T.access_ptr(A[0, 0], "r", 8), 8)', "TL004", "is for reading only",
    ),
    "a pointer to less": (
        'T.ptx_cp_async(T.access_ptr(S[0, 0], "w", 4), T.access_ptr(A[0, 0], "r", 8), 8)', "TL004", "is for 4",
    ),
    "an access": ('T.access_ptr(S[0, 0], "x")', "TL004", 'give "r", "w" or "rw"'),
    "a number": ("T.access_ptr(3)", "TL004", "takes an element"),
    "a condition": ("T.ptx_cp_async(S[0, 0], A[0, 0], 8, X[0])", "TL205", "no condition"),
    "an offset": ("T.access_ptr(A[0, 0], offset=X[0])", "TL205", "offset"),
    "arithmetic": ("T.access_ptr(A[0, 0]) + 1", "TL127", "arithmetic on a pointer"),
    "no memory": ('T.tvm_access_ptr(T.type_annotation("float16"), A, 0, 8, 1)', "TL004", "give `A.data`"),
    "another dtype": ('T.tvm_access_ptr("float32", A.data, 0, 8, 1)', "TL205", "which is float16"),
    "no mask": ('T.tvm_access_ptr("float16", A.data, 0, 8, 4)', "TL004", "rw_mask"),
    "no dtype": ('T.type_annotation("float17")', "TL205", "float17"),
    "another operation": ("T.copy(T.access_ptr(A[0, 0]), S[0, 0])", "TL004", "T.copy"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_instruction_copies_is_refused_at_its_line(name: str) -> None:
    statement, code, words = REFUSED[name]
    text = f"""
@T.prim_func
def k(A: T.Tensor((4, 64), "float16"), X: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((4, 64), "float16")
        {statement}
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == (code, 6) and words in cell.to_text(), cell.to_text()
