"""On sm_90a too, texts whose accumulators or operands serve no layout in registers give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_nb

PRODUCT = """
@T.prim_func
def k(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, {width}), "float32")):
    with T.Kernel(2, 2, threads={threads}) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for ko in T.Pipelined(4, num_stages={stages}):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, c)
            {inside}
        {after}
"""


def pairs(r: np.ndarray) -> np.ndarray:
    return r[:, ::2] * r[:, 1::2]


def rotated(r: np.ndarray) -> np.ndarray:
    return np.stack([r[:, ::2] * 2 - r[:, 1::2], r[:, 1::2] * 2 + r[:, ::2]], -1).reshape(r.shape)


def blocks(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of tiles of 128 by 128, for each of them."""
    return lambda r: np.block([[function(r[i : i + 128, j : j + 128]) for j in (0, 128)] for i in (0, 128)])


def below(r: np.ndarray) -> np.ndarray:
    return np.concatenate([r[1:] - r[:-1], r[-1:]])


# statements after the loop, columns of C, what C is
AFTER: dict[str, tuple[str, int, Callable[[np.ndarray], np.ndarray]]] = {
    "pairs": (
        "for i, j in T.Parallel(128, 64): C[by * 128 + i, bx * 64 + j] = c[i, j * 2] * c[i, j * 2 + 1]", 128, pairs,
    ),
    "row after row": (
        "for r in T.serial(128):\n            for j in T.Parallel(128): C[by * 128 + r, bx * 128 + j] = c[r, j]",
        256, lambda r: r,
    ),
    "the diagonal": (
        "for i, j in T.Parallel(128, 128): C[by * 128 + i, bx * 128 + j] = c[i, i] + c[i, j]", 256,
        blocks(lambda r: r + np.diag(r)[:, None]),
    ),
    "the transpose": (
        "for i, j in T.Parallel(128, 128): C[by * 128 + i, bx * 128 + j] = c[i, j] + 2 * c[j, i]", 256,
        blocks(lambda r: r + 2 * r.T),
    ),
    "differences": (
        "for i, j in T.Parallel(128, 128): C[by * 128 + i, bx * 128 + j] = "
        "T.if_then_else(i < 127, c[T.min(i + 1, 127), j] - c[i, j], c[i, j])", 256, blocks(below),
    ),
    "rotated pairs": (
        "for i, j in T.Parallel(128, 64):\n"
        "            C[by * 128 + i, bx * 128 + j * 2] = c[i, j * 2] * 2 - c[i, j * 2 + 1]\n"
        "            C[by * 128 + i, bx * 128 + j * 2 + 1] = c[i, j * 2 + 1] * 2 + c[i, j * 2]", 256, rotated,
    ),
    "atomic pairs": (
        "for i, j in T.Parallel(128, 64): T.atomic_addx2(C[by * 128 + i, bx * 128 + j * 2], c[i, j * 2])", 256,
        lambda r: r,
    ),
}  # fmt: skip


def run(text: str, *arrays: np.ndarray) -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    kernel(*arrays)
    assert kernel.findings == ()
    assert not any("fault of tilelang_nb" in one.reason for one in kernel.decisions), kernel.decisions
    return kernel


def operands() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (256, 256)).astype(np.float16) for _ in range(2))
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize(("threads", "stages"), [(256, 3), (128, 2), (256, 1)])
@pytest.mark.parametrize("name", AFTER)
def test_statements_after_a_product(name: str, threads: int, stages: int) -> None:
    after, width, expected = AFTER[name]
    a, b, product = operands()
    c = np.zeros((256, width), np.float32)
    text = PRODUCT.format(width=width, threads=threads, stages=stages, inside="pass", after=after)
    kernel = run(text, a, b, c)
    np.testing.assert_array_equal(c, expected(product))
    (product_of,) = (one for one in kernel.decisions if one.subject == "product")
    roles = [one.value for one in kernel.decisions if one.subject == "roles"]
    if stages > 1:  # the product does not suffer from what comes after it
        assert product_of.value.startswith("wgmma") and roles[0].startswith("1 warp group copies")
    line = 1 + next(number for number, line in enumerate(text.split("\n")) if after.split("\n")[0] in line)
    said = {one.value: one.line for one in kernel.decisions if one.subject == "layout"}
    assert said == {"c is read in a shared tile from here on": line}
    assert kernel.layouts["c"].shape == (128, 128)


def test_a_tile_is_read_only_after_the_last_change() -> None:
    """What fits stays in registers; a statement that changes the sums in a layout of its own drives them out."""
    scaled = "for i, j in T.Parallel(128, 128): c[i, j] = c[i, j] * 2\n        "
    after, width, expected = AFTER["pairs"]
    a, b, product = operands()
    c = np.zeros((256, width), np.float32)
    kernel = run(PRODUCT.format(width=width, threads=256, stages=3, inside="pass", after=scaled + after), a, b, c)
    np.testing.assert_array_equal(c, expected(product * 2))
    assert "c is read in a shared tile from here on" in {one.value for one in kernel.decisions}
    rows = "for r in T.serial(128):\n            for j in T.Parallel(128): c[r, j] = c[r, j] * 2\n        "
    kernel = run(PRODUCT.format(width=width, threads=256, stages=3, inside="pass", after=rows + after), a, b, c)
    np.testing.assert_array_equal(c, expected(product * 2))
    assert "c is read in a shared tile from here on" not in {one.value for one in kernel.decisions}


def test_rows_that_change_between_products() -> None:
    a, b, product = operands()
    c = np.zeros((256, 256), np.float32)
    inside = "for r in T.serial(2):\n                for j in T.Parallel(128): c[r, j] += 1"
    copy = "T.copy(c, C[by * 128, bx * 128])"
    run(PRODUCT.format(width=256, threads=256, stages=3, inside=inside, after=copy), a, b, c)
    expected = product.copy()
    expected[[0, 1, 128, 129]] += 4
    np.testing.assert_array_equal(c, expected)


HELD = """
@T.prim_func
def k(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float32")):
    with T.Kernel(2, 2, threads=256) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        A_f = T.alloc_fragment((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for ko in T.Pipelined(4, num_stages=2):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            {fill}
            T.gemm(A_f, B_s, c)
        T.copy(c, C[by * 128, bx * 128])
"""
FILLED = {
    "neighbours": (
        "T.copy(A_s, A_f)\n            for i, j in T.Parallel(128, 32): A_f[i, 2 * j] = A_f[i, 2 * j] + A_f[i, 2 * j + 1]",
        lambda a: np.stack([a[:, ::2] + a[:, 1::2], a[:, 1::2]], -1).reshape(a.shape),
    ),
    "row after row": (
        "for r in T.serial(128):\n                for j in T.Parallel(64): A_f[r, j] = A_s[r, j] * 2", lambda a: a * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLED)
def test_operands_in_registers(name: str) -> None:
    fill, changed = FILLED[name]
    a, b, _ = operands()
    c = np.zeros((256, 256), np.float32)
    run(HELD.format(fill=fill), a, b, c)
    np.testing.assert_array_equal(c, changed(a).astype(np.float32) @ b.astype(np.float32))


BY_HAND = """
@T.prim_func
def k(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=128):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        D = T.alloc_shared((128, 128), "float32")
        c = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier(128)
        T.clear(c)
        T.tma_copy(A, A_s, barrier=full)
        T.tma_copy(B, B_s, barrier=full)
        T.barrier_arrive(full)
        T.barrier_wait(full, 0)
        {multiply}
        {first}
        for r in T.serial(128):
            for j in T.Parallel(128):
                C[r, j] = {used}[r, j]
"""
AWAITED = "T.wgmma_gemm(A_s, B_s, c); T.wait_wgmma(0)"


@pytest.mark.parametrize(
    ("multiply", "first", "used"),
    [
        ("T.gemm(A_s, B_s, c)", "pass", "c"),
        ("T.gemm(A_s, B_s, c)", "T.copy(c, D)", "D"),
        (AWAITED, "T.copy(c, D)", "D"),
        (AWAITED, "pass", "c"),  # they are copied after the wait
    ],
)
def test_rows_of_a_product_by_hand(multiply: str, first: str, used: str) -> None:
    a, b, _ = operands()
    c = np.zeros((128, 128), np.float32)
    a, b = np.ascontiguousarray(a[:128, :64]), np.ascontiguousarray(b[:64, :128])
    run(BY_HAND.format(multiply=multiply, first=first, used=used), a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_sums_of_products_that_run_on_cannot_leave_the_registers() -> None:
    """A statement that changes them in a layout of its own needs them elsewhere."""
    doubled = "for r in T.serial(128):\n            for j in T.Parallel(128): {0}[r, j] = {0}[r, j] * 2"
    text = BY_HAND.format(multiply=AWAITED, first=doubled.format("c"), used="c")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert found.code == "TL210" and "`T.wgmma_gemm` in `c`" in found.message
    assert text.split("\n")[found.span.line - 1].strip() == AWAITED
    assert "T.copy(c, tile)" in found.help
    a, b, _ = operands()
    c = np.zeros((128, 128), np.float32)
    a, b = np.ascontiguousarray(a[:128, :64]), np.ascontiguousarray(b[:64, :128])
    cured = f"T.copy(c, D)\n        {doubled.format('D')}"
    run(BY_HAND.format(multiply=AWAITED, first=cured, used="D"), a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) * 2)


def test_a_swizzle_of_the_text_that_bulk_copies_have_is_as_annotated() -> None:
    annotated = "T.annotate_layout({A_s: T.make_swizzled_layout(A_s), B_s: T.make_swizzled_layout(B_s)})"
    text = PRODUCT.format(width=256, threads=256, stages=3, inside="pass", after="T.copy(c, C[by * 128, bx * 128])")
    a, b, product = operands()
    c = np.zeros((256, 256), np.float32)
    kernel = run(text.replace("T.clear(c)", f"{annotated}\n        T.clear(c)"), a, b, c)
    np.testing.assert_array_equal(c, product)
    said = {one.value: one.reason for one in kernel.decisions if one.subject == "layout"}
    assert said["A_s as annotated"] == "" and "in boxes" in said["B_s not as annotated"]


def test_a_fragment_that_shared_memory_has_no_room_for_is_told_as_one() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((256, 256), "float32"), C: T.Tensor((256, 128), "float32")):
    with T.Kernel(1, threads=256):
        c = T.alloc_fragment((256, 256), "float32")
        T.copy(A, c)
        for i, j in T.Parallel(256, 128):
            c[i, j] = c[i, 255 - j] + c[255 - i, j]
        T.copy(c[:, 0:128], C)
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert found.code == "TL209"
    assert "`c`, a fragment whose uses no layout in registers serves, 262,144 bytes" in str(found)


TWO_SUMS = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), D: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        d = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.clear(d)
        T.gemm(a, b, {first}, policy=T.GemmWarpPolicy.FullRow)
        T.gemm(b, a, {second}, policy=T.GemmWarpPolicy.FullCol)
        for i, j in T.Parallel(64, 64):
            {changed}[i, j] = c[i, j] + d[i, j]
        T.copy({changed}, D)
"""


@pytest.mark.parametrize("first", "cd")
@pytest.mark.parametrize("changed", "cd")
def test_of_two_sums_in_one_loop_the_one_that_does_not_change_there_leaves(first: str, changed: str) -> None:
    """On sm_80 their products have different layouts, and the sum that the loop changes has to stay."""
    cell = tilelang_nb.compile_cell(
        TWO_SUMS.format(first=first, second="dc"["cd".index(first)], changed=changed), {}, target="sim", arch="sm_80"
    )
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    d = np.zeros((64, 64), np.float32)
    kernel(a, b, d)
    wide = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(d, wide[0] @ wide[1] + wide[1] @ wide[0])
    assert kernel.findings == ()
    (left,) = [one for one in kernel.decisions if one.subject == "layout"]
    other = "dc"["cd".index(changed)]
    assert f"{other} is read in a shared tile" in str(left)
    assert {name: kernel.layouts[name].memory for name in "cd"} == {"c": "fragment", "d": "fragment"}
