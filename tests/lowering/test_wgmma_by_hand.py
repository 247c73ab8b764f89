"""`T.wgmma_gemm` is a product of warp groups whoever fills its tiles and whatever part of them it takes: exact sums of
small integers, and no findings; where wgmma does not take the operands, the decision says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import changed, dropped
from lowering.products import numpy_type

import tilelang_nb
from tilelang_nb.lowering import lower
from tilelang_nb.simulator import Program

HEAD = """
@T.prim_func
def k(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        A_s = T.alloc_shared({a}, "float16")
        B_s = T.alloc_shared({b}, "float16")
        c = T.alloc_fragment((128, 128), "float32")
"""
COPIED = """
        T.copy(A, A_s)
        T.copy(B, B_s)"""
OVER = """
        T.wait_wgmma(0)
        T.copy(c, C)
"""
IN_BULK = """
        full = T.alloc_barrier({threads})
        T.tma_copy(A, A_s, barrier=full)
        T.tma_copy(B, B_s, barrier=full)
        T.barrier_arrive(full)
        T.barrier_wait(full, 0)"""
BY_ROWS = """
        rows = T.alloc_fragment((64, 128), "float32")
        for h in T.unroll(2):
            T.wgmma_gemm(A_s[h * 64:(h + 1) * 64, :], B_s, rows, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(rows, C[h * 64, 0])
"""
RING = """
        T.clear(c)
        for k in range(2):
            T.copy(A[:, k * 64:(k + 1) * 64], A_s[{a}])
            T.copy(B[k * 64:(k + 1) * 64, :], B_s[{b}])
            T.wgmma_gemm(A_s[{a}], B_s[{b}], c)
            T.wait_wgmma(0)
        T.copy(c, C)
"""
BULK_RING = """
        full = T.alloc_barrier([128] * 4)
        T.clear(c)
        for k in range(2):
            row, line = k % 4 * 128, k % 4 * 64
            T.tma_copy(A[:, k * 64:(k + 1) * 64], A_s[row:row + 128, :], barrier=full[k % 4])
            T.tma_copy(B[k * 64:(k + 1) * 64, :], B_s[line:line + 64, :], barrier=full[k % 4])
            T.barrier_arrive(full[k % 4])
            T.barrier_wait(full[k % 4], k // 4 % 2)
            T.wgmma_gemm(A_s[row:row + 128, :], B_s[line:line + 64, :], c)
            T.wait_wgmma(0)
        T.copy(c, C)
"""
IN_PARTS = """
        ready = T.alloc_barrier(128)
        with T.ws(1):
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.barrier_arrive(ready)
        with T.ws(0):
            T.barrier_wait(ready, 0)
            T.wgmma_gemm(A_s, B_s, c, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(c, C)
"""
TWO = """
        d = T.alloc_fragment((128, 64), "float32")
        e = T.alloc_fragment((128, 64), "float32")
        T.wgmma_gemm(A_s, B_s[:, 0:64], d, clear_accum=True)
        T.wgmma_gemm(A_s, B_s[:, 64:128], e, clear_accum=True)
        T.wait_wgmma(1)
        d_s = T.alloc_shared((128, 64), "float32")
        T.copy(d, d_s)
        T.copy(d_s, C[:, 0:64])
        T.wait_wgmma(0)
        T.copy(e, C[:, 64:128])
"""
PRODUCT = "\n        T.wgmma_gemm(A_s, B_s, c, clear_accum=True)"
SWIZZLED = """
        T.annotate_layout({A_s: tilelang.layout.make_swizzled_layout(A_s)})"""
WHOLE = ((128, 128), (128, 128))
# name -> (threads, shapes of the tiles, what follows)
TEXTS: dict[str, tuple[int, tuple[Any, Any], str]] = {
    "copies of threads": (128, WHOLE, COPIED + PRODUCT + OVER),
    "two warp groups": (256, WHOLE, COPIED + PRODUCT + OVER),
    "elements that threads store": (
        256,
        WHOLE,
        "\n        for i, j in T.Parallel(128, 128):\n            A_s[i, j] = A[i, j]\n            B_s[i, j] = B[i, j]"
        + PRODUCT
        + OVER,
    ),
    "a tile from a fragment": (
        128,
        WHOLE,
        '\n        a = T.alloc_fragment((128, 128), "float16")\n        T.copy(A, a)\n        T.copy(a, A_s)'
        "\n        T.copy(B, B_s)" + PRODUCT + OVER,
    ),
    "A in registers": (
        128,
        WHOLE,
        '\n        a = T.alloc_fragment((128, 128), "float16")\n        T.copy(A, a)\n        T.copy(B, B_s)'
        "\n        T.wgmma_gemm(a, B_s, c, clear_accum=True)" + OVER,
    ),
    "A in registers, B in bulk": (
        128,
        WHOLE,
        '\n        a = T.alloc_fragment((128, 128), "float16")\n        T.copy(A, a)'
        + IN_BULK
        + "\n        T.wgmma_gemm(a, B_s, c, clear_accum=True)"
        + OVER,
    ),
    "rows of a larger tile": (128, WHOLE, COPIED + BY_ROWS),
    "rows of a larger tile that bulk copies fill": (128, WHOLE, IN_BULK + BY_ROWS),
    "columns along the depth": (
        256,
        WHOLE,
        COPIED + "\n        T.clear(c)\n        for k in T.unroll(8):"
        "\n            T.wgmma_gemm(A_s[:, k * 16:(k + 1) * 16], B_s[k * 16:(k + 1) * 16, :], c)" + OVER,
    ),
    "a ring of versions": (128, ((2, 128, 64), (2, 64, 128)), RING.format(a="k % 2, :, :", b="k % 2, :, :")),
    "a ring of rows": (
        128,
        ((512, 64), (256, 128)),
        RING.format(a="k % 4 * 128:k % 4 * 128 + 128, :", b="k % 4 * 64:k % 4 * 64 + 64, :"),
    ),
    "a ring of rows that bulk copies fill": (128, ((512, 64), (256, 128)), BULK_RING),
    "a tile in bulk that threads change": (
        128,
        WHOLE,
        IN_BULK + "\n        for i, j in T.Parallel(128, 128):\n            A_s[i, j] = -A_s[i, j]"
        "\n        for i, j in T.Parallel(128, 128):\n            A_s[i, j] = -A_s[i, j]" + PRODUCT + OVER,
    ),
    "one tile in bulk and one of threads": (
        128,
        WHOLE,
        IN_BULK.replace("T.tma_copy(B, B_s, barrier=full)", "T.copy(B, B_s)") + PRODUCT + OVER,
    ),
    "a part of T.ws fills": (256, WHOLE, IN_PARTS),
    "two products in flight": (256, WHOLE, COPIED + TWO),
    "a swizzle of the text": (128, WHOLE, SWIZZLED + COPIED + PRODUCT + OVER),
    "a swizzle of the text, in bulk": (128, WHOLE, SWIZZLED + IN_BULK + PRODUCT + OVER),
}


# Waits that stand elsewhere than behind their products, in the scopes of the text.
TEXTS |= {
    "sums of a turn, waited for again behind the loop": (
        128,
        WHOLE,
        COPIED
        + """
        for t in range(2):
            rows = T.alloc_fragment((64, 128), "float32")
            T.wgmma_gemm(A_s[t * 64 : t * 64 + 64, :], B_s, rows, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(rows, C[t * 64, 0])
        T.wait_wgmma(0)
""",
    ),
    "a wait for the product of the turn before": (
        128,
        WHOLE,
        COPIED
        + """
        T.clear(c)
        for t in range(2):
            if t > 0:
                T.wait_wgmma(0)
                for i, j in T.Parallel(128, 128):
                    c[i, j] *= 1
            T.wgmma_gemm(A_s[:, t * 64 : t * 64 + 64], B_s[t * 64 : t * 64 + 64, :], c)"""
        + OVER,
    ),
    "sums of each part": (
        256,
        WHOLE,
        COPIED
        + """
        T.sync_threads()
        with T.ws(0):
            d = T.alloc_fragment((64, 128), "float32")
            T.wgmma_gemm(A_s[0:64, :], B_s, d, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(d, C[0, 0])
        with T.ws(1):
            e = T.alloc_fragment((64, 128), "float32")
            T.wgmma_gemm(A_s[64:128, :], B_s, e, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(e, C[64, 0])
""",
    ),
}


def written(name: str) -> str:
    threads, (a, b), rest = TEXTS[name]
    return HEAD.format(threads=threads, a=a, b=b) + rest.replace("{threads}", str(threads))


def run(text: str, options: dict[str, Any] | None = None) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """(lowered, C, what it must be, findings) of a text for sm_90a."""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch="sm_90a", options=options or {})
    assert not found.diagnostics, found.diagnostics
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (128, 128)).astype(np.float16) for _ in range(2))
    c = np.full((128, 128), np.nan, np.float32)
    report = Program(found.launches[0]).run({"A": a, "B": b, "C": c})
    return found, c, a.astype(np.float32) @ b.astype(np.float32), report.findings


def products(found: Any) -> list[str]:
    return [str(one) for one in found.decisions if one.subject == "product"]


@pytest.mark.parametrize("options", [{}, {"tl.enable_auto_warp_specialization": True}], ids=["as is", "roles"])
@pytest.mark.parametrize("name", TEXTS)
def test_warp_groups_multiply(name: str, options: dict[str, Any]) -> None:
    found, c, expected, findings = run(written(name), options)
    assert all(": wgmma" in one for one in products(found)), products(found)
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]


@pytest.mark.parametrize("name", TEXTS)
def test_the_device_compiler_takes_them_without_a_loss(name: str) -> None:
    cell = tilelang_nb.compile_cell(written(name), {}, target="cuda", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    assert "wgmma.mma_async" in kernel.ptx
    assert kernel.diagnostics == () and kernel.resources.spill_stores.value == 0


@pytest.mark.parametrize(("dtype", "total"), [("float16", "float16"), ("int8", "int32"), ("bfloat16", "float32")])
def test_waits_for_sums_of_every_type_compile(dtype: str, total: str) -> None:
    text = written("copies of threads").replace('"float16"', f'"{dtype}"').replace('"float32"', f'"{total}"')
    text = text.replace("clear_accum=True", "clear_accum=True, transpose_B=True")
    cell = tilelang_nb.compile_cell(text, {}, target="cuda", arch="sm_90a")
    assert cell.ok, cell.to_text()
    assert "wgmma.mma_async" in cell.namespace["k"].ptx


@pytest.mark.parametrize("name", ["copies of threads", "a tile in bulk that threads change", "a part of T.ws fills"])
def test_what_threads_wrote_needs_the_fence(name: str) -> None:
    found, *_ = run(written(name))
    launch = changed(found.launches[0], dropped("fence_proxy"))
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (128, 128)).astype(np.float16) for _ in range(2))
    report = Program(launch).run({"A": a, "B": b, "C": np.zeros((128, 128), np.float32)})
    assert any("fence_proxy_async" in str(one) for one in report.findings), [str(one) for one in report.findings]


def test_bulk_copies_alone_need_no_fence() -> None:
    text = HEAD.format(threads=128, a=WHOLE[0], b=WHOLE[1]) + IN_BULK.replace("{threads}", "128") + PRODUCT + OVER
    found, *_ = run(text)
    assert 'fence("proxy"' not in str(found.launches[0].body)


REASONS = {
    "rows that begin anywhere": (
        "\n        d = T.alloc_fragment((64, 128), 'float32')"
        "\n        T.wgmma_gemm(A_s[4:68, :], B_s, d, clear_accum=True)\n        T.wait_wgmma(0)\n        T.copy(d, C[0, 0])",
        "rows that begin at a multiple of 8: of `A_s` they are not known to",
    ),
    "columns within a box": (
        "\n        d = T.alloc_fragment((128, 64), 'float32')"
        "\n        T.wgmma_gemm(A_s, B_s[:, 32:96], d, clear_accum=True)\n        T.wait_wgmma(0)\n        T.copy(d, C[0, 0])",
        "columns that begin at a multiple of 64: of `B_s` they are not known to",
    ),
    "a part of a box": (
        "\n        d = T.alloc_fragment((128, 32), 'float32')"
        "\n        T.wgmma_gemm(A_s, B_s[:, 64:96], d, clear_accum=True)\n        T.wait_wgmma(0)\n        T.copy(d, C[0, 0])",
        "whole pieces of 64 columns of `B_s`, and these are 32",
    ),
    "sums in shared memory": (
        "\n        d = T.alloc_shared((128, 128), 'float32')\n        T.clear(d)"
        "\n        T.wgmma_gemm(A_s, B_s, d)\n        T.wait_wgmma(0)\n        T.copy(d, C)",
        "wgmma accumulates in registers, and `d` is in shared memory",
    ),
    "a part of the sums": (
        "\n        T.clear(c)\n        T.wgmma_gemm(A_s[0:64, :], B_s, c[0:64, :])\n        T.wait_wgmma(0)"
        "\n        T.copy(c[0:64, :], C[0:64, :])",
        "wgmma accumulates into a whole fragment, and this is a part of `c`",
    ),
    "an order of the text": (
        "\n        T.annotate_layout({A_s: T.Layout((128, 128), lambda i, j: i * 128 + j)})" + PRODUCT + OVER,
        "`A_s` has a layout of the text",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_other_products_say_why(name: str) -> None:
    """They are right all the same."""
    rest, reason = REASONS[name]
    text = HEAD.format(threads=128, a=WHOLE[0], b=WHOLE[1]) + COPIED + rest + "\n"
    found, c, expected, findings = run(text)
    (product,) = products(found)
    assert ": mma.sync" in product and "`T.wgmma_gemm`: " in product and reason in product, product
    rows = slice(4, 68) if "rows" in name else slice(0, 64) if "of the sums" in name else slice(None)
    columns = slice(32, 96) if "within" in name else slice(64, 96) if "of a box" in name else slice(None)
    part = expected[rows, columns]
    np.testing.assert_array_equal(c[: part.shape[0], : part.shape[1]], part)
    assert findings == (), [str(one) for one in findings]


def test_the_option_that_leaves_warp_groups_out_is_the_reason() -> None:
    found, c, expected, _ = run(written("copies of threads"), {"tl.disable_wgmma": True})
    (product,) = products(found)
    assert "mma.sync" in product and "the option `tl.disable_wgmma` says so" in product
    np.testing.assert_array_equal(c, expected)


PIPELINED = """
        T.clear(c)
        for k in T.Pipelined(4, num_stages={stages}):
            T.copy(A[:, k * 32:(k + 1) * 32], A_s)
            T.copy(B[k * 32:(k + 1) * 32, :], B_s)
            T.wgmma_gemm(A_s, B_s, c)
            {wait}
        T.wait_wgmma(0)
        T.copy(c, C)
"""


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("wait", ["pass", "T.wait_wgmma(1)", "T.wait_wgmma(0)"])
def test_copies_of_later_turns_overwrite_no_tile_of_a_running_product(wait: str, stages: int) -> None:
    text = HEAD.format(threads=256, a=(128, 32), b=(32, 128)) + PIPELINED.format(stages=stages, wait=wait)
    found, c, expected, findings = run(text)
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]
    (product,) = products(found)
    assert ": wgmma" in product
    assert ("waited for at once" in product) == (wait != "T.wait_wgmma(0)")


def test_a_product_by_warps_is_none_that_a_wait_counts() -> None:
    """It is over at once: the one before it is what `T.wait_wgmma(1)` is for."""
    text = HEAD.format(threads=128, a=WHOLE[0], b=WHOLE[1]) + COPIED
    text += """
        d = T.alloc_fragment((32, 128), "float32")
        T.wgmma_gemm(A_s, B_s, c, clear_accum=True)
        T.wgmma_gemm(A_s[0:32, :], B_s, d, clear_accum=True)
        T.wait_wgmma(1)
        T.copy(c, C)
        T.wait_wgmma(0)
        T.sync_threads()
        T.copy(d, C[0, 0])
"""
    found, c, expected, findings = run(text)
    assert [one.split(": ")[1][:5] for one in products(found)] == ["wgmma", "mma.s"]
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]


@pytest.mark.parametrize("product", ["gemm", "wgmma_gemm"])
def test_sums_that_the_first_turn_clears_are_not_read_too_early(product: str) -> None:
    text = HEAD.format(threads=128, a=WHOLE[0], b=WHOLE[1]) + COPIED
    text += f"""
        for k in range(2):
            T.{product}(A_s, B_s, c, clear_accum=k == 0)
            T.wait_wgmma(0)
        T.copy(c, C)
"""
    _, c, expected, findings = run(text)
    np.testing.assert_array_equal(c, 2 * expected)
    assert findings == ()


EARLY = {
    "read before the wait": ("for i, j in T.Parallel(128, 128):\n            c[i, j] *= 2", "T.wait_wgmma(0)"),
    "one may still run": ("T.wait_wgmma(1)\n        T.copy(c, C)", "T.wait_wgmma(0)"),
    "nobody waits": ("pass", "pass"),
}


@pytest.mark.parametrize("name", EARLY)
def test_sums_that_are_used_too_early_are_found(name: str) -> None:
    before, wait = EARLY[name]
    text = HEAD.format(threads=256, a=WHOLE[0], b=WHOLE[1]) + COPIED + PRODUCT + f"\n        {before}"
    _, _, _, findings = run(text + f"\n        {wait}\n        T.copy(c, C)\n")
    assert findings and {one.code for one in findings} == {"TL401"}
    assert any("still adding" in one.message and "T.wait_wgmma(0)" in str(one) for one in findings)


SLICES = """
@T.prim_func
def k(A: T.Tensor({a}, "{host}"), B: T.Tensor({b}, "{host}"), C: T.Tensor((128, 128), "{total}")):
    with T.Kernel(1, threads=128) as bx:
        A_s = T.alloc_shared({a}, "{dtype}")
        B_s = T.alloc_shared({b}, "{dtype}")
        c = T.alloc_fragment((128, 128), "{total}")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.clear(c)
        for s in range(2):
            T.wgmma_gemm(A_s[{a_part}], B_s[{b_part}], c, transpose_A={ta}, transpose_B={tb})
        T.wait_wgmma(0)
        T.copy(c, C)
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "tfloat32", "float8_e4m3fn", "int8"])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_parts_of_tiles_of_every_type_and_order(dtype: str, ta: bool, tb: bool) -> None:
    """Each half of the depth, of the middle of the other dimension."""
    half, host = {"tfloat32": 16}.get(dtype, 64), dtype.replace("tfloat32", "float32")
    wide, total = 256 if dtype != "tfloat32" else 192, "int32" if dtype == "int8" else "float32"
    along, across = f"s * {half}:(s + 1) * {half}", "64:192"
    text = SLICES.format(
        a=(2 * half, wide) if ta else (wide, 2 * half), b=(wide, 2 * half) if tb else (2 * half, wide), ta=ta, tb=tb,
        dtype=dtype, host=host, total=total, a_part=f"{along}, {across}" if ta else f"{across}, {along}",
        b_part=f"{across}, {along}" if tb else f"{along}, {across}",
    )  # fmt: skip
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    rng = np.random.default_rng(half)
    kernel = cell.namespace["k"]
    a, b = (
        rng.integers(-3, 4, shape).astype(np.float32).astype(numpy_type(host))
        for shape in ((2 * half, wide) if ta else (wide, 2 * half), (wide, 2 * half) if tb else (2 * half, wide))
    )
    c = np.full((128, 128), 99, numpy_type(total))
    kernel(a, b, c)
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    left, right = (array.astype(np.float64) for array in (a.T if ta else a, b.T if tb else b))
    np.testing.assert_array_equal(c, left[64:192] @ right[:, 64:192])
    (product,) = [one for one in kernel.decisions if one.subject == "product"]
    turned = dtype not in ("float16", "bfloat16") and (ta or not tb)
    assert product.value.startswith("mma.sync" if turned else "wgmma"), product


WIDE = """
@T.prim_func
def k(
    Q: T.Tensor((64, 512), "float16"), K: T.Tensor((128, 512), "float16"), S: T.Tensor((64, 64), "float32"),
    X: T.Tensor((64, 512), "float16"),
):
    with T.Kernel(1, threads=128) as bx:
        Q_s = T.alloc_shared((64, 512), "float16")
        K_s = T.alloc_shared((2, 64, 512), "float16")
        s = T.alloc_fragment((64, 64), "float32")
        full = T.alloc_barrier(128)
        T.clear(s)
        T.tma_copy(Q, Q_s, barrier=full)
        T.tma_copy(K[64, 0], K_s[1, :, :], barrier=full)
        T.barrier_arrive(full)
        T.barrier_wait(full, 0)
        {product}
        T.copy(s, S)
        for i, j in T.Parallel(64, 512):
            Q_s[i, j] = Q_s[i, j] + K_s[1, i, j]
        T.tma_copy(Q_s, X)
        T.tma_store_arrive()
        T.tma_store_wait()
"""


@pytest.mark.parametrize(
    "product",
    [
        "T.wgmma_gemm(Q_s, K_s[1, :, :], s, transpose_B=True); T.wait_wgmma(0)",
        "T.gemm(Q_s, K_s[1, :, :], s, transpose_B=True)",
        "pass",
    ],
)
def test_tiles_that_are_wide_lie_in_swizzled_boxes(product: str) -> None:
    """Row by row they would take 128 bulk copies."""
    cell = tilelang_nb.compile_cell(WIDE.format(product=product), {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    rng = np.random.default_rng(0)
    q, k = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 512), (128, 512)))
    s, x = np.zeros((64, 64), np.float32), np.zeros((64, 512), np.float16)
    kernel = cell.namespace["k"]
    kernel(q, k, s, x)
    assert kernel.findings == (), [str(one) for one in kernel.findings]
    np.testing.assert_array_equal(x, q + k[64:])
    expected = q.astype(np.float32) @ k[64:].astype(np.float32).T
    np.testing.assert_array_equal(s, np.zeros_like(s) if product == "pass" else expected)
    assert all(one.value.startswith("wgmma") for one in kernel.decisions if one.subject == "product")
