"""Products of warp groups in launches whose threads all do the same: tiles that threads write, A in registers, and
products beside them that no warp group takes.  Small integers, so results are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import changed, dropped, lowered
from lowering.products import numpy_type

from tilelang_nb.simulator import Program

PLAIN = """
@T.prim_func
def k(A: T.Tensor((256, 192), "{dtype}"), B: T.Tensor({b}, "{dtype}"), C: T.Tensor((256, 256), "{total}")):
    with T.Kernel(1, 2, threads=256) as (bx, by):
        A_s = T.alloc_shared((128, {bk}), "{tile}")
        B_s = T.alloc_shared({b_tile}, "{tile}")
        C_l = T.alloc_fragment((128, 256), "{total}")
        T.clear(C_l)
        for ko in T.{loop}:
            T.copy(A[by * 128, ko * {bk}], A_s)
            T.copy(B[{b_from}], B_s)
            {extra}
            T.gemm(A_s, B_s, C_l, transpose_B={tb})
        T.copy(C_l, C[by * 128, bx * 256])
"""
# A turn that changes a tile between the copy and the product.
DOUBLED = """for i, j in T.Parallel(128, {bk}):
                A_s[i, j] = A_s[i, j] * 2"""


def plain(
    bk: int = 64, loop: str = "", extra: str = "pass", dtype: str = "float16", total: str = "float32", tb: bool = False
) -> tuple[str, dict[str, np.ndarray], np.ndarray]:
    """(text, arguments, product)."""
    text = PLAIN.format(
        dtype=dtype.replace("tfloat32", "float32"), tile=dtype, total=total, bk=bk, tb=tb,
        loop=loop or f"serial({192 // bk})", extra=extra.replace("{bk}", str(bk)), b=(256, 192) if tb else (192, 256),
        b_tile=(256, bk) if tb else (bk, 256), b_from=f"bx * 256, ko * {bk}" if tb else f"ko * {bk}, bx * 256",
    )  # fmt: skip
    rng = np.random.default_rng(bk)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32).astype(numpy_type(dtype.replace("tfloat32", "float32")))
            for shape in ((256, 192), (256, 192) if tb else (192, 256)))  # fmt: skip
    c = np.full((256, 256), 99, numpy_type(total))
    wide = b.astype(np.float64)
    return text, {"A": a, "B": b, "C": c}, a.astype(np.float64) @ (wide.T if tb else wide)


def run(launch: Any, arguments: dict[str, np.ndarray], checks: bool = True) -> tuple[dict[str, np.ndarray], Any]:
    copies = {name: array.copy() for name, array in arguments.items()}
    return copies, Program(launch, checks=checks).run(copies)


def products(result: Any) -> list[str]:
    return [str(one) for one in result.decisions if one.subject == "product"]


def agrees(text: str, arguments: dict[str, np.ndarray], **expected: np.ndarray) -> Any:
    """The lowered text, whose results are these, without findings."""
    result = lowered(text)
    for checks in (False, True):
        found, report = run(result.launches[0], arguments, checks)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name].astype(np.float64), array)
        assert report.findings == (), [str(one) for one in report.findings]
    return result


LOOPS: dict[str, dict[str, Any]] = {
    "a serial loop": {},
    "one product": {"bk": 192},
    "rows of 64 bytes": {"bk": 32},
    "B stored by columns": {"tb": True},
    "bfloat16": {"dtype": "bfloat16"},
    "tfloat32": {"dtype": "tfloat32", "tb": True, "bk": 32},
    "float8": {"dtype": "float8_e4m3fn", "tb": True},
    "int8": {"dtype": "int8", "total": "int32", "tb": True},
    "float16 accumulators": {"total": "float16"},
    "a pipelined loop whose tile the threads change": {"loop": "Pipelined(3, num_stages=2)", "extra": DOUBLED},
    "a tile that the threads change": {"extra": DOUBLED},
    "a tile of several boxes that the threads change": {"extra": DOUBLED, "bk": 192},
    "a tile of narrow rows that the threads change": {"extra": DOUBLED, "bk": 32},
}


@pytest.mark.parametrize("name", LOOPS)
def test_tiles_that_threads_fill_are_multiplied_by_warp_groups(name: str) -> None:
    text, arguments, expected = plain(**LOOPS[name])
    expected = expected * 2 if LOOPS[name].get("extra") else expected
    result = agrees(text, arguments, C=expected)
    assert all("wgmma" in one for one in products(result)), products(result)


def test_a_product_without_the_fence_reads_what_is_not_there() -> None:
    text, arguments, _ = plain()
    launch = changed(lowered(text).launches[0], dropped("fence_proxy"))
    _, report = run(launch, arguments)
    assert any("fence_proxy_async" in str(one) for one in report.findings), [str(one) for one in report.findings]


def test_the_barrier_stands_between_the_fences() -> None:
    """What a thread wrote it makes visible before it says that it is done; registers are ordered after that."""
    text, _, _ = plain()
    body = str(lowered(text).launches[0].body)
    written = body.index('T.ptx.fence("proxy"')
    barrier = body.index("storage_sync", written)
    ordered = body.index('T.ptx.wgmma("fence"', written)
    assert written < barrier < ordered


WEIGHTS = """
@T.prim_func
def k(A: T.Tensor((256, 192), "float16"), B: T.Tensor((256, 192), "int8"), C: T.Tensor((256, 256), "float32")):
    with T.Kernel(2, 2, threads={threads}) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        q_s = T.alloc_shared((128, 64), "int8")
        q = T.alloc_fragment((128, 64), "int8")
        w = T.alloc_fragment((128, 64), "float16")
        B_s = T.alloc_shared((128, 64), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.{loop}:
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[bx * 128, ko * 64], q_s)
            T.copy(q_s, q)
            for i, j in T.Parallel(128, 64):
                w[i, j] = T.cast(q[i, j], "float16") * 0.5
            T.copy(w, B_s)
            T.gemm(A_s, B_s, C_l, transpose_B=True)
        T.copy(C_l, C[by * 128, bx * 128])
"""


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("loop", ["serial(3)", "Pipelined(3, num_stages=2)"])
def test_weights_that_threads_widen_into_the_tile_of_B(threads: int, loop: str) -> None:
    rng = np.random.default_rng(threads)
    a, b = rng.integers(-4, 5, (256, 192)).astype(np.float16), rng.integers(-4, 5, (256, 192)).astype(np.int8)
    arguments = {"A": a, "B": b, "C": np.full((256, 256), np.nan, np.float32)}
    text = WEIGHTS.format(threads=threads, loop=loop)
    result = agrees(text, arguments, C=a.astype(np.float64) @ b.astype(np.float64).T * 0.5)
    assert all("wgmma" in one for one in products(result)), products(result)


LEFT = """
@T.prim_func
def k(A: T.Tensor((256, 256), "{given}"), B: T.Tensor((256, 256), "{host}"), C: T.Tensor((256, 256), "{total}")):
    with T.Kernel(2, 2, threads={threads}) as (bx, by):
        q_s = T.alloc_shared((128, {bk}), "{narrow}")
        q = T.alloc_fragment((128, {bk}), "{narrow}")
        left = T.alloc_fragment((128, {bk}), "{dtype}")
        B_s = T.alloc_shared((128, {bk}), "{dtype}")
        C_l = T.alloc_fragment((128, 128), "{total}")
        T.clear(C_l)
        for ko in T.{loop}:
            T.copy(A[by * 128, ko * {bk}], q_s)
            T.copy(B[bx * 128, ko * {bk}], B_s)
            T.copy(q_s, q)
            for i, j in T.Parallel(128, {bk}):
                left[i, j] = T.cast(q[i, j], "{dtype}")
            T.gemm(left, B_s, C_l, transpose_B=True)
        T.copy(C_l, C[by * 128, bx * 128])
"""


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("loop", ["serial", "Pipelined"])
@pytest.mark.parametrize(
    ("narrow", "dtype", "bk"),
    [
        *(("int8", "float16", 64), ("float16", "float16", 128), ("int8", "bfloat16", 64), ("int8", "int8", 64)),
        *(("float8_e4m3fn", "float8_e4m3fn", 64), ("tfloat32", "tfloat32", 32)),
    ],
)
def test_left_operands_in_registers(narrow: str, dtype: str, bk: int, loop: str, threads: int) -> None:
    turns = 256 // bk
    written = f"Pipelined({turns}, num_stages=2)" if loop == "Pipelined" else f"serial({turns})"
    given, host = (name.replace("tfloat32", "float32") for name in (narrow, dtype))
    total = "int32" if dtype == "int8" else "float32"
    rng = np.random.default_rng(bk)
    a, b = (rng.integers(-4, 5, (256, 256)).astype(np.float32).astype(numpy_type(name)) for name in (given, host))
    arguments = {"A": a, "B": b, "C": np.full((256, 256), 99, numpy_type(total))}
    text = LEFT.format(
        narrow=narrow, dtype=dtype, bk=bk, loop=written, threads=threads, given=given, host=host, total=total
    )
    result = agrees(text, arguments, C=a.astype(np.float64) @ b.astype(np.float64).T)
    assert all("wgmma" in one for one in products(result)), products(result)


MIXED = """
@T.prim_func
def k(
    A: T.Tensor((256, 192), "float16"), B: T.Tensor((192, 128), "float16"), C: T.Tensor((256, 128), "float32"),
    D: T.Tensor((32, 128), "float32"), s: T.Tensor((192,), "float32"),
):
    with T.Kernel(1, 2, threads=128) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        D_l = T.alloc_fragment((32, 128), "float32")
        sums = T.alloc_fragment((128,), "float32")
        wide = T.alloc_fragment((128, 64), "float32")
        T.clear(C_l)
        T.clear(D_l)
        for ko in T.{loop}:
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
            T.gemm(A_s[32:64, :], B_s, D_l)
            if by == 0:
                for j in T.Parallel(64):
                    s[ko * 64 + j] = T.cast(A_s[5, j], "float32") + T.cast(B_s[j, 77], "float32")
        T.copy(C_l, C[by * 128, bx * 128])
        if by == 0:
            T.copy(D_l, D[0, 0])
"""


@pytest.mark.parametrize("loop", ["serial(3)", "Pipelined(3, num_stages=2)"])
def test_a_tile_that_warp_groups_and_warps_and_threads_read(loop: str) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((256, 192), (192, 128)))
    arguments = {
        "A": a, "B": b, "C": np.full((256, 128), np.nan, np.float32), "D": np.full((32, 128), np.nan, np.float32),
        "s": np.full(192, np.nan, np.float32),
    }  # fmt: skip
    wide = a.astype(np.float64), b.astype(np.float64)
    result = agrees(
        MIXED.format(loop=loop),
        arguments,
        C=wide[0] @ wide[1],
        D=wide[0][32:64] @ wide[1],
        s=wide[0][5] + wide[1][:, 77],
    )
    first, second = products(result)
    assert "wgmma" in first
    assert "mma.sync" in second and "1 warp group does not divide C of 32 by 128" in second


REASONS = {
    "a view": ("V = T.reshape(A_s, (64, 128)); V[0, 0] = V[0, 0]", "`A_s` is a view, or is seen through one"),
    "a layout": ("T.annotate_layout({A_s: T.Layout((128, 64), lambda i, j: i * 64 + j)})", "a layout of the text"),
    "rows that no warp group has": ("", "warp groups do not divide C of 48 by 256"),
    "short tiles": ("", "of multiples of 32 bytes: those of `A_s`, 8 of float16, have 16; 16 columns would do"),
}


@pytest.mark.parametrize("name", REASONS)
def test_other_products_tell_why(name: str) -> None:
    extra, reason = REASONS[name]
    text, arguments, expected = plain(extra=extra or "pass")
    if name == "short tiles":
        text = text.replace("64", "8").replace("serial(3)", "serial(24)")
    elif not extra:
        text = text.replace("(256, 192)", "(96, 192)").replace("(256, 256)", "(96, 256)").replace("128", "48")
        arguments, expected = {**arguments, "A": arguments["A"][:96], "C": arguments["C"][:96]}, expected[:96]
    told = products(agrees(text, arguments, C=expected))[0]
    assert "mma.sync" in told and reason in told, told


LOOKED_UP = """
@T.prim_func
def k(
    A: T.Tensor((256, 192), "float16"), B: T.Tensor((192, 128), "float16"), used: T.Tensor((3,), "int32"),
    C: T.Tensor((256, 128), "float32"),
):
    with T.Kernel(1, 2, threads=128) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.serial(3):
            if used[ko] != 0:
                T.copy(A[by * 128, ko * 64], A_s)
                T.copy(B[ko * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])
"""


def test_a_condition_that_all_threads_agree_on() -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((256, 192), (192, 128)))
    used = np.array([1, 0, 1], np.int32)
    arguments = {"A": a, "B": b, "used": used, "C": np.full((256, 128), np.nan, np.float32)}
    mask = np.repeat(used, 64)
    result = agrees(LOOKED_UP, arguments, C=(a.astype(np.float64) * mask) @ b.astype(np.float64))
    assert "wgmma" in products(result)[0]


UNFOLDED = """
@T.prim_func
def k(X: T.Tensor((2, 16, 16, 64), "float16"), W: T.Tensor((576, 128), "float16"), C: T.Tensor((512, 128), "float32")):
    with T.Kernel(1, 4, threads=256) as (bx, by):
        X_s = T.alloc_shared((128, 64), "float16")
        W_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for k in T.{loop}:
            T.c2d_im2col(X, X_s, by, k, 3, 1, 1, 1)
            T.copy(W[k * 64, bx * 128], W_s)
            T.gemm(X_s, W_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])
"""


@pytest.mark.parametrize("loop", ["serial(9)", "Pipelined(9, num_stages=3)"])
def test_a_convolution(loop: str) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((2, 16, 16, 64), (576, 128)))
    around = np.zeros((2, 18, 18, 64))
    around[:, 1:-1, 1:-1] = x
    taps = np.concatenate([around[:, i : i + 16, j : j + 16] for i in range(3) for j in range(3)], -1).reshape(512, 576)
    arguments = {"X": x, "W": w, "C": np.full((512, 128), np.nan, np.float32)}
    result = agrees(UNFOLDED.format(loop=loop), arguments, C=taps @ w.astype(np.float64))
    assert all("wgmma" in one for one in products(result)), products(result)
