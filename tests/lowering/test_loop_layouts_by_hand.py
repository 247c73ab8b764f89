"""`loop_layout` of T.Parallel: who runs which iteration, seen by the numbers of the threads, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor({shape}, "float32"), B: T.Tensor({shape}, "float32"), who: T.Tensor({shape}, "int32")):
    with T.Kernel(1, threads={threads}):
        dealt = {layout}
        for {names} in T.Parallel({extents}, loop_layout=dealt):
            B[{names}] = A[{names}] * 2
            who[{names}] = T.get_thread_binding()
"""


def kernel(text: str) -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


def said(made: Any) -> list[tuple[str, str]]:
    return [(one.value, one.reason) for one in made.decisions if one.subject == "layout"]


def dealt(layout: str, shape: tuple[int, ...], threads: int = 128) -> tuple[Any, np.ndarray]:
    """(kernel, the thread of each iteration), after a run whose results are right."""
    names = ", ".join("ijk"[: len(shape)])
    extents = ", ".join(map(str, shape))
    made = kernel(TEXT.format(shape=shape, layout=layout, names=names, extents=extents, threads=threads))
    a = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    b, who = np.full(shape, np.nan, np.float32), np.full(shape, -1, np.int32)
    made(a, b, who)
    np.testing.assert_array_equal(b, a * 2)
    assert made.findings == ()
    return made, who


LAYOUTS: dict[str, tuple[str, tuple[int, ...], Any]] = {
    "a column for each thread": ("T.Fragment((8, 128), lambda i, j: (j, i))", (8, 128), lambda i, j: j),
    "a row for each eight": (
        "T.Fragment((16, 64), lambda i, j: (i * 8 + j // 8, j % 8))", (16, 64), lambda i, j: i * 8 + j // 8,
    ),
    "neighbours apart": (
        "T.Fragment((256,), forward_thread_fn=lambda i: i % 128)", (256,), lambda i: i % 128,
    ),
    "neighbours together": (
        "T.Fragment((1024,), forward_thread_fn=lambda i: i // 8)", (1024,), lambda i: i // 8,
    ),
    "turned": ("T.Fragment((4, 32), lambda i, j: (j * 4 + i, 0))", (4, 32), lambda i, j: j * 4 + i),
    "registers of no order": (
        "T.Fragment((512,), lambda i: (i // 4, 3 - i % 4))", (512,), lambda i: i // 4,
    ),
    "the first half of the threads": ("T.Fragment((256,), lambda i: (i % 64, i // 64))", (256,), lambda i: i % 64),
    "a mapping of three dimensions": (
        "T.Fragment((2, 4, 64), lambda i, j, k: (j * 32 + k % 32, i * 2 + k // 32))", (2, 4, 64),
        lambda i, j, k: j * 32 + k % 32,
    ),
    "repeated": (
        "T.Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2)).repeat([2, 2], repeat_on_thread=True)", (16, 16),
        lambda i, j: (i % 8) * 4 + j % 8 // 2 + 32 * (j // 8 + 2 * (i // 8)),
    ),
    "copies": (
        "T.Fragment((64,), forward_thread_fn=lambda i, r: i + 64 * r, replicate=2)", (64,), lambda i: i,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_iterations_run_where_the_text_says(name: str) -> None:
    layout, shape, expected = LAYOUTS[name]
    made, who = dealt(layout, shape)
    np.testing.assert_array_equal(who, np.fromfunction(expected, shape, dtype=np.int64))
    names = ", ".join(f"`{one}`" for one in "ijk"[: len(shape)])
    assert said(made) == [(f"the loop over {names} is as its `loop_layout` says", "")]


@pytest.mark.parametrize(("thread", "taken"), [("i // 2", True), ("i % 128", True), ("i // 2 + 128", False)])
def test_threads_of_a_part_are_counted_from_its_first(thread: str, taken: bool) -> None:
    made = kernel(
        f"""
@T.prim_func
def k(A: T.Tensor((256,), "float32"), who: T.Tensor((256,), "int32")):
    with T.Kernel(1, threads=256):
        with T.ws(1):
            for i in T.Parallel(256, loop_layout=T.Fragment((256,), forward_thread_fn=lambda i: {thread})):
                A[i] = i
                who[i] = T.get_thread_binding()
"""
    )
    a, who = np.zeros(256, np.float32), np.zeros(256, np.int32)
    made(a, who)
    np.testing.assert_array_equal(a, np.arange(256))
    assert set(who) == set(range(128, 256))
    if taken:
        np.testing.assert_array_equal(who, eval(thread, {"i": np.arange(256)}) + 128)
    ((_, reason),) = said(made)
    assert ("among the 128 that run the loop" in reason) != taken


def test_a_layout_without_digits_is_not_taken_and_the_reason_is_said() -> None:
    made, _ = dealt("T.Fragment((8, 16), lambda i, j: ((i ^ (j % 8)) + 8 * j, 0))", (8, 16))
    ((value, reason),) = said(made)
    assert value == "the loop over `i`, `j` is not as its `loop_layout` says" and "digits" in reason


CARRIED = """
@T.prim_func
def k(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_fragment((16, 64), "float32")
        T.copy(A, tile)
        for i, j in T.Parallel(16, 64, loop_layout=T.Fragment((16, 64), lambda i, j: (i % 2 * 64 + j, i // 2))):
            tile[i, j] = tile[i, j] * 2 + j
        T.copy(tile, B)
"""


def test_the_fragments_of_the_loop_follow_it() -> None:
    made = kernel(CARRIED)
    a = np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32)
    b = np.zeros_like(a)
    made(a, b)
    np.testing.assert_array_equal(b, a * 2 + np.arange(64, dtype=np.float32))
    expected = np.fromfunction(lambda i, j: i % 2 * 64 + j, (16, 64), dtype=np.int64)
    np.testing.assert_array_equal(made.layouts["tile"].thread_table, expected)
    assert [reason for _, reason in said(made)] == [""]


PRODUCT = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        A_s = T.alloc_shared((64, 64), "float16")
        B_s = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.clear(c)
        T.gemm(A_s, B_s, c)
        for i, j in T.Parallel(64, 64, loop_layout=T.Fragment((64, 64), lambda i, j: (i * 2 + j // 32, j % 32))):
            c[i, j] += i
        T.copy(c, C)
"""


def test_products_come_before_loops() -> None:
    made = kernel(PRODUCT)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    made(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b + np.arange(64, dtype=np.float32)[:, None])
    ((value, reason),) = said(made)
    assert "not as its" in value and reason == "a fragment in it needs another one"
    assert made.layouts["c"].memory == "fragment"


def test_an_array_of_each_thread_keeps_all_of_its_turns() -> None:
    made = kernel(
        """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        own = T.alloc_local((64,), "float32")
        for i in T.Parallel(64, loop_layout=T.Fragment((64,), lambda i: (63 - i, 0))):
            own[i] = A[i] + 1
        tx = T.get_thread_binding()
        B[tx] = own[63 - tx]
"""
    )
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    made(a, b)
    np.testing.assert_array_equal(b, a[::-1] + 1)
    ((_, reason),) = said(made)
    assert reason


REFUSED = {
    "another shape": ("(8, 64)", "lambda i, j: (j, i)", "8, 128", "TL204", "(8, 64) for a `T.Parallel` over (8, 128)"),
    "another rank": ("(128,)", "lambda i: (i, 0)", "8, 128", "TL204", "(128,) for a `T.Parallel` over (8, 128)"),
    "a thread that there is not": ("(8, 256)", "lambda i, j: (j, i)", "8, 256", "TL004", "to thread 255"),
    "extents of the device": ("(8, 128)", "lambda i, j: (j, i)", "8, n", "TL004", "known only when the kernel runs"),
    "no integer": ("(8, 128)", "lambda i, j: (j / 2.0, i)", "8, 128", "TL004", "float32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_loop_can_have_is_refused_at_its_line(name: str) -> None:
    shape, function, extents, code, words = REFUSED[name]
    text = f"""
@T.prim_func
def k(A: T.Tensor((8, 256), "float32"), n: T.int32):
    with T.Kernel(1, threads=128):
        for i, j in T.Parallel({extents}, loop_layout=T.Fragment({shape}, {function})):
            A[i, j] = 0
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == (code, 5) and words in found.message, cell.to_text()
    assert text.split("\n")[4][found.span.column :].startswith("T.Parallel("), "the loop itself"


def test_what_is_no_layout_is_refused() -> None:
    text = TEXT.format(shape="(8,)", layout="lambda i: i", names="i", extents="8", threads=32)
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert [one.code for one in cell.diagnostics] == ["TL004"] and "T.Fragment" in cell.to_text()


def test_two_layouts_make_two_kernels() -> None:
    """Equal texts with different layouts are no build of each other."""
    _, first = dealt(LAYOUTS["neighbours apart"][0], (256,))
    _, second = dealt("T.Fragment((256,), forward_thread_fn=lambda i: i // 2)", (256,))
    assert (first != second).any()


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_the_bits_of_the_indices_is_taken(seed: int) -> None:
    """Each bit of the row and of the column is one of the thread, or of the turns of a thread."""
    rng = np.random.default_rng(seed)
    bits = [f"({name} >> {bit} & 1)" for name, many in (("i", 3), ("j", 6)) for bit in range(many)]
    order = rng.permutation(9)
    thread = " + ".join(f"{bits[at]} * {1 << place}" for place, at in enumerate(order[:7]))
    made, who = dealt(f"T.Fragment((8, 64), forward_thread_fn=lambda i, j: {thread})", (8, 64))
    i, j = np.indices((8, 64))
    np.testing.assert_array_equal(who, eval(thread, {"i": i, "j": j}))
    assert [reason for _, reason in said(made)] == [""]
