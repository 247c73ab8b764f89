"""Launches divided into roles on sm_90a: bulk copies, products of warp groups, results through bulk stores."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from properties.products_in_roles import Product

import tilelang_nb

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("hopper")

TEXT = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(80))
def test_random_products_are_exact(seed: int) -> None:
    product = Product(random.Random(seed))
    cell = tilelang_nb.compile_cell(product.text, {}, target="cuda")
    assert cell.ok, cell.to_text()
    kernel = cell.kernels["k"].compile(options=product.options)
    arguments = product.arguments()
    wanted = product.expected(arguments)
    for _ in range(3):  # the later ones on the short way
        again = {name: array.copy() for name, array in arguments.items()}
        kernel(**again)
        np.testing.assert_array_equal(again["C"].astype(np.float64), wanted, err_msg=product.text)


@pytest.fixture(scope="module")
def factories() -> Any:
    cell = tilelang_nb.compile_cell(TEXT, filename="factories.py", target="cuda")
    assert cell.ok, cell.to_text()
    return cell.namespace


def test_arrays_that_change_between_launches(factories: Any) -> None:
    """Tensor maps are those of the arrays of each launch."""
    import tilelang_nb.language as T

    kernel = factories["matmul"](T, 512, 768, 384, 128, 256, 64, 3, 256)
    assert "wgmma" in kernel.cuda_source
    many = [torch.randn(512, 384, device="cuda").half() for _ in range(5)]
    b, results = torch.randn(384, 768, device="cuda").half(), []
    for a in many:
        c = torch.full((512, 768), float("nan"), device="cuda", dtype=torch.float16)
        kernel(a, b, c)
        results.append(c)
    for a, c in zip(many, results):
        want = a.double() @ b.double()
        assert float((c.double() - want).norm() / want.norm()) < 2e-3


def test_an_array_that_does_not_begin_at_16_bytes(factories: Any) -> None:
    import tilelang_nb.language as T

    kernel = factories["matmul"](T, 256, 256, 128, 128, 128, 64, 3, 128)
    memory = torch.randn(256 * 128 + 1, device="cuda").half()
    a, b = memory[1:].view(256, 128), torch.randn(128, 256, device="cuda").half()
    c = torch.zeros(256, 256, device="cuda", dtype=torch.float16)
    kernel(a, b, c)
    want = a.double() @ b.double()
    assert float((c.double() - want).norm() / want.norm()) < 2e-3


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(factories: Any, causal: bool, dim: int) -> None:
    import tilelang_nb.language as T

    q, k, v = (torch.randn(2, 512, 4, dim, device="cuda").half() for _ in range(3))
    out = torch.full_like(q, float("nan"))
    kernel = factories["flash_attention"](T, 2, 4, 512, dim, causal=causal)
    assert "wgmma" in kernel.cuda_source
    kernel(q, k, v, out)
    parts = [x.double().transpose(1, 2) for x in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal).transpose(1, 2)
    assert float((out.double() - want).norm() / want.norm()) < 4e-3


TURNS = """
def product(M, N, K, BN, threads, stages, kind):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, 128), threads=threads) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, BN), "float16")
            W_s = T.alloc_shared((64, BN), "float16")
            W = T.alloc_fragment((64, BN), "float16")
            A_f = T.alloc_fragment((128, 64), "float16")
            C_l = T.alloc_fragment((128, BN), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 128, ko * 64], A_s)
                T.copy(B[ko * 64, bx * BN], B_s)
                if kind == "left":
                    T.copy(A_s, A_f)
                    T.gemm(A_f, B_s, C_l)
                else:
                    T.copy(B_s, W)
                    T.copy(W, W_s)
                    T.gemm(A_s, W_s, C_l)
            T.copy(C_l, C[by * 128, bx * BN])
    return main
"""


@pytest.mark.parametrize("kind", ["left", "right"])
@pytest.mark.parametrize(("columns", "threads"), [(128, 128), (128, 256)])
def test_slots_that_threads_read_are_given_back_after_their_loads(kind: str, columns: int, threads: int) -> None:
    """Copies of later turns overwrite them; many blocks and turns, as one load that is late is enough."""
    cell = tilelang_nb.compile_cell(TURNS, target="cuda")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["product"](4096, 4096, 4096, columns, threads, 2, kind)
    assert "wgmma" in kernel.cuda_source and "CUtensorMap" in kernel.cuda_source
    a, b = (torch.randn(4096, 4096, device="cuda").half() for _ in range(2))
    want, first = a.double() @ b.double(), None
    for _ in range(20):
        c = torch.full((4096, 4096), float("nan"), device="cuda", dtype=torch.float16)
        kernel(a, b, c)
        if first is None:
            first = c
            assert float((c.double() - want).norm() / want.norm()) < 1e-3
        assert torch.equal(first, c)
