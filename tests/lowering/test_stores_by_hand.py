"""Tiles that T.tma_copy stores: in groups that T.tma_store_wait waits for, and what is found where it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES as ROLES_ON
from lowering.hopper import changed, dropped, lowered
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.device import generate
from tilelang_nb.lowering.hopper.tensor_maps import check_outline
from tilelang_nb.lowering.hopper.tensor_tiles import boxes_of, plain_tile
from tilelang_nb.simulator import Program
from tilelang_nb.source.diagnostic import Refusal

SHAPE = 200, 320
TWICE = """
@T.prim_func
def k(A: T.Tensor((200, 320), "{dtype}"), B: T.Tensor((200, 320), "{dtype}")):
    with T.Kernel(T.ceildiv(320, {columns}), T.ceildiv(200, {rows}), threads=128) as (bx, by):
        s = T.alloc_shared(({rows}, {columns}), "{dtype}")
        for i, j in T.Parallel({rows}, {columns}):
            s[i, j] = T.if_then_else(by * {rows} + i < 200 and bx * {columns} + j < 320, A[by * {rows} + i, bx * {columns} + j], 7) * 2
        T.tma_copy(s, B[by * {rows}, bx * {columns}])
        T.tma_store_wait({wait})
"""
RING = """
@T.prim_func
def k(A: T.Tensor((512, 64), "float32"), B: T.Tensor((512, 64), "float32")):
    with T.Kernel(2, threads=128) as bx:
        s = T.alloc_shared((2, 32, 64), "float32")
        for n in range(8):
            {before}
            for i, j in T.Parallel(32, 64):
                s[n % 2, i, j] = A[bx * 256 + n * 32 + i, j] + 1
            T.tma_copy(s[n % 2, :, :], B[bx * 256 + n * 32, 0])
        {after}
"""
ROLES = """
@T.prim_func
def k(A: T.Tensor((256, 64), "float32"), B: T.Tensor((256, 64), "float32")):
    with T.Kernel(2, threads=256) as bx:
        s = T.alloc_shared((128, 64), "float32")
        full = T.alloc_barrier(128)
        with T.ws(0):
            for i, j in T.Parallel(128, 64):
                s[i, j] = A[bx * 128 + i, j] * 3
            {fence}
            T.barrier_arrive(full)
        with T.ws(1):
            T.barrier_wait(full, 0)
            T.tma_copy(s, B[bx * 128, 0])
            T.tma_store_wait()
"""
PRODUCT = """
@T.prim_func
def k(A: T.Tensor((192, 128), "float16"), B: T.Tensor((128, 192), "float16"), C: T.Tensor((192, 192), "float16")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        A_s = T.alloc_shared((128, 32), "float16")
        B_s = T.alloc_shared((32, 128), "float16")
        C_s = T.alloc_shared((128, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        here = T.alloc_barrier(128)
        T.clear(C_l)
        for ko in range(4):
            T.tma_copy(A[by * 128, ko * 32], A_s, barrier=here)
            T.tma_copy(B[ko * 32, bx * 128], B_s, barrier=here)
            T.barrier_arrive(here)
            T.barrier_wait(here, ko % 2)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C_s)
        T.tma_copy(C_s, C[by * 128, bx * 128])
        T.tma_store_wait(read=False)
"""
MOVED = """
@T.prim_func
def k(A: T.Tensor((200, 320), "float16"), B: T.Tensor((200, 320), "float16")):
    with T.Kernel(5, 4, threads=128) as (bx, by):
        s = T.alloc_shared((64, 64), "float16")
        here = T.alloc_barrier(128)
        T.tma_copy(A[by * 64, bx * 64], s, barrier=here)
        T.barrier_arrive(here)
        T.barrier_wait(here, 0)
        T.tma_copy(s, B[by * 64, bx * 64])
        T.tma_store_wait()
"""
BY_WARP = """
@T.prim_func
def k(A: T.Tensor((40, 1024), "float32"), B: T.Tensor((40, 1024), "float32")):
    with T.Kernel(5, threads=256) as bx:
        warp = T.get_thread_binding() // 32
        s = T.alloc_shared((8, 1024), "float32")
        here = T.alloc_barrier([32] * 8)
        T.tma_copy(A[bx * 8 + warp, 0:1024], s[warp, 0:1024], barrier=here[warp], leader_scope_threads=32)
        T.mbarrier_arrive(here[warp])
        T.mbarrier_wait_parity(here[warp], 0)
        T.tma_copy(s[warp, 0:1024], B[bx * 8 + warp, 0:1024], leader_scope_threads=32)
        T.tma_store_wait()
"""
LINE = """
@T.prim_func
def k(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        s = T.alloc_shared((512,), "float32")
        T.copy(A[bx * 512 : bx * 512 + 512], s)
        T.tma_copy(s, B[bx * 512 : bx * 512 + 512])
        T.tma_store_wait()
"""


PIPELINED = """
@T.prim_func
def k(A: T.Tensor((250, 320), "float16"), B: T.Tensor((320, 504), "float16"), C: T.Tensor((250, 504), "float16")):
    with T.Kernel(4, 2, threads={threads}) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_s = T.alloc_shared((128, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.Pipelined(5, num_stages=3):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C_s)
        T.tma_copy(C_s, C[by * 128, bx * 128])
        T.tma_store_wait()
"""


def run(text: str, **arrays: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
    """(lowered, findings) of a run that writes the arrays."""
    result = lowered(text, {})
    report = Program(result.launches[0]).run(arrays)
    return result, report.findings


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-8, 9, shape).astype(dtype)


def nothing(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.full(shape, 77).astype(dtype)


def line_of(text: str, part: str) -> int:
    return 1 + next(number for number, line in enumerate(text.splitlines()) if part in line)


def said(findings: tuple[Any, ...]) -> list[tuple[str, int, str]]:
    return [(one.code, one.span.line, one.message) for one in findings]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int32", "float64", "uint16"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (48, 32), (16, 256), (2, 512)])
def test_a_stored_tile_is_in_the_array_and_nothing_beyond_its_edges(dtype: str, rows: int, columns: int) -> None:
    a, b = numbers(SHAPE, dtype), nothing(SHAPE, dtype)
    _, findings = run(TWICE.format(dtype=dtype, rows=rows, columns=columns, wait=""), A=a, B=b)
    np.testing.assert_array_equal(b, a * 2)
    assert findings == (), [str(one) for one in findings]


def test_groups_are_waited_for_by_number() -> None:
    text = RING.format(before="T.tma_store_wait(1)", after="T.tma_store_wait(0)")
    a, b = numbers((512, 64), np.float32), nothing((512, 64), np.float32)
    _, findings = run(text, A=a, B=b)
    np.testing.assert_array_equal(b, a + 1)
    assert findings == (), [str(one) for one in findings]


WAITS = {
    "nobody waits at the end": ("T.tma_store_wait(1)", "pass", "T.tma_copy", "the launch ends while a tensor store is reading `s`"),
    "one group too many may be under way": ("T.tma_store_wait(2)", "T.tma_store_wait()", "s[n % 2, i, j] =", "writes an element of `s` while a tensor store is reading it"),
    "nobody waits in the loop": ("pass", "T.tma_store_wait()", "s[n % 2, i, j] =", "writes an element of `s` while a tensor store is reading it"),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITS)
def test_a_tile_that_is_still_being_read_is_found(name: str) -> None:
    before, after, line, words = WAITS[name]
    text = RING.format(before=before, after=after)
    _, findings = run(text, A=numbers((512, 64), np.float32), B=nothing((512, 64), np.float32))
    assert [(code, at) for code, at, _ in said(findings)] == [("TL401", line_of(text, line))]
    assert words in findings[0].message and "T.tma_store_wait" in str(findings[0])


@pytest.mark.parametrize("fence", ["pass", "T.fence_proxy_async()"])
def test_another_role_stores_what_it_has_waited_for(fence: str) -> None:
    a, b = numbers((256, 64), np.float32), nothing((256, 64), np.float32)
    _, findings = run(ROLES.format(fence=fence), A=a, B=b)
    np.testing.assert_array_equal(b, a * 3)
    assert findings == (), [str(one) for one in findings]


def test_without_the_fence_before_a_store_it_is_found() -> None:
    text = ROLES.format(fence="pass")
    launch = changed(lowered(text, {}).launches[0], dropped("fence", "proxy"))
    arrays = {"A": numbers((256, 64), np.float32), "B": nothing((256, 64), np.float32)}
    findings = Program(launch).run(arrays).findings
    assert [(code, at) for code, at, _ in said(findings)] == [("TL401", line_of(text, "T.tma_copy"))]
    assert "no fence makes ordinary stores visible" in findings[0].message and "T.fence_proxy_async" in str(findings[0])


def test_a_missing_wait_for_the_other_role_is_found() -> None:
    text = ROLES.format(fence="pass").replace("            T.barrier_wait(full, 0)\n", "")
    text = text.replace(
        "            T.tma_store_wait()", "            T.barrier_wait(full, 0)\n            T.tma_store_wait()"
    )
    _, findings = run(text, A=numbers((256, 64), np.float32), B=nothing((256, 64), np.float32))
    assert ("TL401", line_of(text, "T.tma_copy")) in [(code, at) for code, at, _ in said(findings)]


def test_a_product_is_stored_through_a_tile() -> None:
    a, b, c = numbers((192, 128), np.float16), numbers((128, 192), np.float16), nothing((192, 192), np.float16)
    result, findings = run(PRODUCT, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert findings == (), [str(one) for one in findings]
    assert any(str(one.value).startswith("wgmma") for one in result.decisions if one.subject == "product")


def test_a_tile_is_loaded_and_stored() -> None:
    a, b = numbers(SHAPE, np.float16), nothing(SHAPE, np.float16)
    result, findings = run(MOVED, A=a, B=b)
    np.testing.assert_array_equal(b, a)
    assert findings == (), [str(one) for one in findings]
    text = str(result.launches[0])
    assert "shared::cluster" in text and "bulk_group" in text


@pytest.mark.parametrize(("text", "shape"), [(BY_WARP, (40, 1024)), (LINE, (1000,))])
def test_rows_are_moved(text: str, shape: tuple[int, ...]) -> None:
    a, b = numbers(shape, np.float32), nothing(shape, np.float32)
    _, findings = run(text, A=a, B=b)
    np.testing.assert_array_equal(b, a)
    assert findings == (), [str(one) for one in findings]


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("blocks", [0, 3])
def test_computing_warp_groups_store_their_results(threads: int, blocks: int) -> None:
    options = {**ROLES_ON, "tl.persistent_blocks": blocks}
    result = lowered(PIPELINED.format(threads=threads), options)
    a, b, c = numbers((250, 320), np.float16), numbers((320, 504), np.float16), nothing((250, 504), np.float16)
    findings = Program(result.launches[0]).run({"A": a, "B": b, "C": c}).findings
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))
    assert findings == (), [str(one) for one in findings]
    (roles,) = [str(one.value) for one in result.decisions if one.subject == "roles"]
    assert roles.startswith("1 warp group copies")


SOME = """
@T.prim_func
def k(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
    with T.Kernel(1, threads=256):
        thread = T.get_thread_binding()
        s = T.alloc_shared((8, 64), "float32")
        T.copy(A, s)
        if {condition}:
            T.tma_copy({source}, {target}{scope})
        T.tma_store_wait()
"""
ROW = {"source": "s[thread // 32, 0:64]", "target": "B[thread // 32, 0:64]", "scope": ", leader_scope_threads=32"}


def test_some_warps_copy_their_rows() -> None:
    a, b = numbers((8, 64), np.float32), nothing((8, 64), np.float32)
    _, findings = run(SOME.format(condition="thread // 32 % 3 == 1", **ROW), A=a, B=b)
    stored = np.arange(8) % 3 == 1
    np.testing.assert_array_equal(b[stored], a[stored])
    assert (b[~stored] == 77).all() and findings == (), [str(one) for one in findings]


@pytest.mark.parametrize("condition", ["A[thread % 8, 0] > 0", "thread < 128 or A[thread % 8, 0] > 0"])
def test_a_copy_that_is_started_once_does_not_stand_where_more_than_the_thread_decides(condition: str) -> None:
    text = SOME.format(condition=condition, source="s", target="B", scope="")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == ("TL210", line_of(text, "T.tma_copy"))
    assert "leave the condition out" in str(found)


TEXTS = {
    "some warps": SOME.format(condition="thread // 32 % 3 == 1", **ROW),
    "pipelined": PIPELINED.format(threads=256),
    "twice": TWICE.format(dtype="float16", rows=64, columns=64, wait="0, read=False"),
    "ring": RING.format(before="T.tma_store_wait(1)", after="T.tma_store_wait(0)"),
    "roles": ROLES.format(fence="T.fence_proxy_async()"),
    "product": PRODUCT,
    "moved": MOVED,
    "by warp": BY_WARP,
    "line": LINE,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_device_compiler_takes_them(name: str) -> None:
    program = generate(lowered(TEXTS[name], {}), arch="sm_90a", options={})
    assert not program.diagnostics and program.cubin
    assert "cp.async.bulk.wait_group" in program.cuda_source


SYMBOLIC = """
n, m = T.dynamic("n"), T.dynamic("m")

@T.prim_func
def k(A: T.Tensor((m, n), "float16"), B: T.StridedTensor((m, n), (1024, 1), "float16")):
    with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 32), threads=128) as (bx, by):
        {assume}
        s = T.alloc_shared((32, 64), "float16")
        here = T.alloc_barrier(128)
        T.tma_copy(A[by * 32, bx * 64], s, barrier=here)
        T.barrier_arrive(here)
        T.barrier_wait(here, 0)
        T.tma_copy(s, B[by * 32, bx * 64])
        T.tma_store_wait()
"""


def test_lengths_that_are_said_to_fit_and_strides() -> None:
    cell = tilelang_nb.compile_cell(SYMBOLIC.format(assume="T.assume(n % 8 == 0)"), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    for m, n in ((40, 200), (1, 8), (64, 1000)):
        a, wide = numbers((m, n), np.float16), nothing((m, 1024), np.float16)
        cell.namespace["k"](a, wide[:, :n])
        np.testing.assert_array_equal(wide[:, :n], a)
        assert (wide[:, n:] == 77).all()


def test_lengths_that_do_not_fit_are_refused_at_the_launch() -> None:
    cell = tilelang_nb.compile_cell(SYMBOLIC.format(assume="T.assume(n % 8 == 0)"), {}, target="sim", arch="sm_90a")
    with pytest.raises(Exception, match="rows of `A` begin 200 bytes apart") as refused:
        cell.namespace["k"](numbers((40, 100), np.float16), nothing((40, 1024), np.float16)[:, :100])
    assert "TL302" in str(refused.value) and "multiples of 16" in str(refused.value)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_boxes_are_within_the_limits_of_tensor_maps(itemsize: int) -> None:
    """Extents up to 256, rows of 16-byte chunks, every box at a multiple of 128 bytes; together they are the tile."""
    checked = 0
    for rows in (1, 2, 3, 7, 8, 32, 100, 256, 257, 300, 320, 512):
        for columns in (8, 16, 24, 48, 64, 100, 128, 250, 256, 264, 320, 384, 512, 520, 1024, 4096):
            buffer = tir.decl_buffer((rows, columns), f"int{8 * itemsize}", "tile", layout=None)
            tile = plain_tile(buffer)
            boxes = [] if tile is None else boxes_of(tile, SimpleNamespace(extent=buffer.shape))
            covered = np.zeros((rows, columns), np.int64)
            for box in boxes:
                assert 1 <= box.rows <= 256 and 1 <= box.columns <= 256
                assert box.columns * itemsize % 16 == 0
                assert (box.row * columns + box.column) * itemsize % 128 == 0
                assert box.columns == columns or box.rows == 1
                covered[box.row : box.row + box.rows, box.column : box.column + box.columns] += 1
            assert not boxes or (covered == 1).all(), (rows, columns)
            checked += bool(boxes)
    assert checked > 50


def test_arrays_that_no_tensor_map_shows() -> None:
    check_outline("A", (1 << 20, 1 << 20), (1 << 39,))
    check_outline("A", (1000,), ())
    check_outline("A", (0, 5), (7,))
    for dims, strides, words in (
        ((1 << 32, 2), (16,), "fewer than"),
        ((4, 2), (1 << 40,), "up to"),
        ((4, 2), (0,), "0 bytes apart"),
        ((4, 2), (24,), "multiples of 16"),
    ):
        with pytest.raises(Refusal) as refused:
            check_outline("A", dims, strides)
        assert refused.value.code == "TL302" and words in str(refused.value)


def test_lengths_that_are_not_known_say_what_to_write() -> None:
    cell = tilelang_nb.compile_cell(SYMBOLIC.format(assume="pass"), {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == ("TL302", line_of(SYMBOLIC, "T.tma_copy(A"))
    assert "`T.assume(n % 8 == 0)`" in str(found)


REFUSED = {
    "a part of a row": ("T.tma_copy(s[:, 0:32], B[by * 64, bx * 64])", "it moves whole rows"),
    "a dimension that is known at run time": ("T.tma_copy(s, D[by * 64, bx * 64])", "are not known to be multiples of 16 bytes"),
    "a row that begins between": ("T.tma_copy(s8[1:5, :], B[by * 4 : by * 4 + 4, bx * 16 : bx * 16 + 16])", "row 1 of `s8` begins at no multiple of 128 bytes"),
    "columns of the array": ("T.tma_copy(s[0, :], B[by * 64 : by * 64 + 64, bx])", "no box of the shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_bulk_copy_stores_is_refused(name: str) -> None:
    statement, words = REFUSED[name]
    text = MOVED.replace("T.tma_copy(s, B[by * 64, bx * 64])", statement)
    text = text.replace('B: T.Tensor((200, 320), "float16")', 'B: T.Tensor((200, 320), "float16"), D: T.Tensor((200, T.dynamic("n")), "float16")')  # fmt: skip
    text = text.replace("        here = ", '        s8 = T.alloc_shared((8, 16), "float16")\n        here = ')
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == ("TL302", line_of(text, statement)) and words in found.message
