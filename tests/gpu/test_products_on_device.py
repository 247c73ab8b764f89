"""Products of every type that tensor cores take, with all transposes, in pipelines and at ragged edges."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_nb

torch = pytest.importorskip("torch")

TEXT = """
def product(M, N, K, BM, BN, BK, stages, threads, dtype, tile, accum, out, ta, tb):
    @T.prim_func
    def main(A: T.Tensor((K, M) if ta else (M, K), dtype), B: T.Tensor((N, K) if tb else (K, N), dtype),
             C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            A_s = T.alloc_shared((BK, BM) if ta else (BM, BK), tile)
            B_s = T.alloc_shared((BN, BK) if tb else (BK, BN), tile)
            c = T.alloc_fragment((BM, BN), accum)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                if ta:
                    T.copy(A[k * BK, by * BM], A_s)
                else:
                    T.copy(A[by * BM, k * BK], A_s)
                if tb:
                    T.copy(B[bx * BN, k * BK], B_s)
                else:
                    T.copy(B[k * BK, bx * BN], B_s)
                T.gemm(A_s, B_s, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C[by * BM, bx * BN])
    return main
"""
# dtype, of the tiles, of the accumulator, of the result, tolerance of the norm, first architecture
TYPES = [
    ("float16", "float16", "float32", "float16", 1e-3, 80),
    ("float16", "float16", "float32", "float32", 1e-5, 80),
    ("float16", "float16", "float16", "float16", 5e-3, 80),
    ("bfloat16", "bfloat16", "float32", "bfloat16", 5e-3, 80),
    ("float32", "tfloat32", "float32", "float32", 2e-3, 80),
    ("float64", "float64", "float64", "float64", 1e-13, 80),
    ("int8", "int8", "int32", "int32", 0.0, 80),
    ("uint8", "uint8", "int32", "int32", 0.0, 80),
    ("float8_e4m3fn", "float8_e4m3fn", "float32", "float32", 1e-5, 89),
    ("float8_e5m2", "float8_e5m2", "float32", "float32", 1e-5, 89),
]
# Sums of float8 products within an instruction of warp groups: the hardware keeps fewer bits of them than float32 has.
BY_WARP_GROUPS = 1e-3
BLOCKS = {"float64": (64, 64, 16, 2, 128), "float32": (128, 128, 32, 2, 128)}


@pytest.fixture(scope="module")
def product() -> Any:
    c = tilelang_nb.compile_cell(TEXT, target="cuda")
    assert c.ok, c.to_text()
    return c.namespace["product"]


def operand(rows: int, columns: int, dtype: str) -> Any:
    if dtype in ("int8", "uint8"):
        low = 0 if dtype == "uint8" else -128
        return torch.randint(low, low + 256, (rows, columns), device="cuda").to(getattr(torch, dtype))
    wide = torch.float64 if dtype == "float64" else torch.float32
    return torch.randn(rows, columns, device="cuda", dtype=wide).to(getattr(torch, dtype))


def double(x: Any) -> Any:
    return (x.float() if "float8" in str(x.dtype) else x).double()


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("case", TYPES, ids=lambda case: "-".join(case[1:4]))
def test_products_of_all_types(product: Any, case: Any, ta: bool, tb: bool) -> None:
    dtype, tile, accum, out, tolerance, first = case
    major, minor = torch.cuda.get_device_capability()
    if 10 * major + minor < first:
        pytest.skip(f"matrix instructions of {dtype} need sm_{first}")
    m, n, k = 264, 392, 200
    blocks = BLOCKS.get(dtype, (128, 128, 64, 3, 128))
    a, b = operand(*((k, m) if ta else (m, k)), dtype), operand(*((n, k) if tb else (k, n)), dtype)
    kind = getattr(torch, out)
    c = torch.full((m, n), float("nan") if kind.is_floating_point else -1, device="cuda", dtype=kind)
    kernel = product(m, n, k, *blocks, dtype, tile, accum, out, ta, tb)
    kernel(a, b, c)
    if dtype.startswith("float8") and "wgmma" in kernel.cuda_source:
        tolerance = BY_WARP_GROUPS
    left, right = double(a), double(b)
    want = (left.T if ta else left) @ (right.T if tb else right)
    assert float((c.double() - want).norm() / want.norm()) <= tolerance


@pytest.mark.parametrize(
    "blocks", [(128, 128, 32, 3, 128), (128, 256, 32, 4, 256), (256, 128, 64, 3, 256), (64, 64, 32, 2, 64)]
)
def test_large_products_are_the_same_every_time(product: Any, blocks: Any) -> None:
    m, n, k = 1024, 1280, 2048
    a, b = operand(m, k, "float16"), operand(k, n, "float16")
    kernel = product(m, n, k, *blocks, "float16", "float16", "float32", "float16", False, False)
    first = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
    kernel(a, b, first)
    want = double(a) @ double(b)
    assert float((first.double() - want).norm() / want.norm()) < 1e-3
    for _ in range(20):
        again = torch.full_like(first, float("nan"))
        kernel(a, b, again)
        assert torch.equal(first, again)
