"""Kernels as upstream's users write them give on a GPU what NumPy gives, at sizes that fill it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_nb

torch = pytest.importorskip("torch")
TEXT = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def factories() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(TEXT, filename="factories.py", target="cuda")
    assert c.ok, c.to_text()
    return c.namespace


@pytest.fixture(scope="module")
def T() -> Any:
    import tilelang_nb.language

    return tilelang_nb.language


def normal(*shape: int, dtype: Any = None) -> Any:
    generator = torch.Generator("cuda").manual_seed(sum(shape))
    return torch.randn(shape, device="cuda", generator=generator).to(dtype or torch.float16)


def error(got: Any, want: Any) -> float:
    """The norm of the difference over the norm of what is wanted; NaN never passes a comparison."""
    got, want = got.double(), want.double()
    return float((got - want).norm() / want.norm())


def nothing(like: Any) -> Any:
    return torch.full_like(like, float("nan"))


def test_vector_add(factories: dict[str, Any], T: Any) -> None:
    count = 1 << 22
    a, b = normal(count, dtype=torch.float32), normal(count, dtype=torch.float32) * 2
    c = nothing(a)
    factories["vector_add"](T, count)(a, b, c)
    assert torch.equal(c, a + b)


@pytest.mark.parametrize("shape", [(512, 8192), (64, 256), (7, 2048)])
def test_softmax_and_rms_norm(factories: dict[str, Any], T: Any, shape: tuple[int, int]) -> None:
    x = normal(*shape)
    y = nothing(x)
    factories["softmax"](T, *shape)(x, y)
    assert error(y, torch.softmax(x.double(), 1)) < 2e-3
    y = nothing(x)
    factories["rms_norm"](T, *shape)(x, y)
    wide = x.double()
    assert error(y, wide * torch.rsqrt((wide * wide).mean(1, keepdim=True) + 1e-6)) < 2e-3


def test_gemv(factories: dict[str, Any], T: Any) -> None:
    x, w = normal(4096), normal(2048, 4096)
    y = nothing(normal(2048))
    factories["gemv"](T, 2048, 4096)(x, w, y)
    assert error(y, w.double() @ x.double()) < 2e-3


@pytest.mark.parametrize("blocks", [(), (128, 256, 64, 3, 256), (64, 64, 64, 2, 128)])
def test_matmul(factories: dict[str, Any], T: Any, blocks: tuple[int, ...]) -> None:
    a, b = normal(512, 384), normal(384, 768)
    c = nothing(normal(512, 768))
    factories["matmul"](T, 512, 768, 384, *blocks)(a, b, c)
    assert error(c, a.double() @ b.double()) < 2e-3


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(factories: dict[str, Any], T: Any, causal: bool) -> None:
    q, k, v = (normal(2, 512, 4, 64) + 0.01 * n for n in range(3))
    out = nothing(q)
    factories["flash_attention"](T, 2, 4, 512, 64, causal=causal)(q, k, v, out)
    parts = [x.double().transpose(1, 2) for x in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=causal).transpose(1, 2)
    assert error(out, want) < 4e-3


def reference_sum(a: Any, b: Any, c: Any) -> None:
    c.copy_(a + b)


def test_the_profiler_times_and_compares(factories: dict[str, Any], T: Any) -> None:
    profiler = factories["vector_add"](T, 1 << 20).get_profiler()
    profiler.assert_allclose(reference_sum)
    assert 0 < profiler.do_bench() < 10
    low, high = profiler.do_bench(quantiles=[0.1, 0.9])
    assert 0 < low <= high
    result = factories["vector_add"](T, 1 << 20).bench(baseline=lambda: torch.zeros(1 << 20, device="cuda"))
    assert result.bytes == 12 << 20 and 0 < result.gigabytes_per_second < 20_000 and result.ratio > 0
    assert np.isfinite(result.teraflops) and "roofline" in str(result)


def test_autotune_takes_the_fastest(T: Any) -> None:
    text = """
@tilelang.autotune(configs=[{"threads": 32}, {"threads": 256}, {"threads": 4096}])
@tilelang.jit
def copies(n, threads=128):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 4096), threads=threads) as b:
            for i in T.Parallel(4096):
                B[b * 4096 + i] = A[b * 4096 + i]
    return main

kernel = copies(1 << 22)
"""
    c = tilelang_nb.compile_cell(text, target="cuda")
    assert c.ok, c.to_text()
    kernel = c.namespace["kernel"]
    assert kernel.config["threads"] in (32, 256) and kernel.latency > 0
    assert c.namespace["copies"](1 << 22) is kernel
