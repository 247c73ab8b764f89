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
TEXT = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def hopper() -> None:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs a device of sm_90a")


@pytest.mark.parametrize("seed", range(80))
def test_random_products_are_exact(seed: int) -> None:
    product = Product(random.Random(seed))
    cell = tilelang_nb.compile_cell(product.text, {}, target="cuda")
    if not cell.ok:
        assert {found.code for found in cell.diagnostics if found.severity == "error"} == {"TL209"}, cell.to_text()
        pytest.skip("too much shared memory")
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
