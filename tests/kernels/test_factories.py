"""Kernels as upstream's users write them give NumPy's results on the simulated device, without findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_nb

TEXT = (Path(__file__).parent / "factories.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def factories() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(TEXT, filename="factories.py")
    assert c.ok, c.to_text()
    return c.namespace


def normal(*shape: int, dtype: str = "float16") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def run(kernel: Any, *inputs: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The output, which is the last argument; a fault that the simulator finds is an error here."""
    out = np.zeros_like(like)
    before = [array.copy() for array in inputs]
    kernel(*inputs, out)
    assert kernel.findings == ()
    assert all(np.array_equal(array, kept) for array, kept in zip(inputs, before))
    return out.astype(np.float64)


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    return bool(np.allclose(got, want.astype(np.float64), rtol=tolerance, atol=tolerance))


def test_vector_add(factories: dict[str, Any]) -> None:
    a, b = normal(4096, dtype="float32"), normal(4096, dtype="float32")[::-1].copy()
    assert np.array_equal(run(factories["vector_add"](tilelang_nb.language, 4096), a, b, like=a), a + b)


def test_softmax(factories: dict[str, Any]) -> None:
    x = normal(6, 1024)
    shifted = np.exp(x.astype(np.float32) - x.max(1, keepdims=True))
    got = run(factories["softmax"](tilelang_nb.language, 6, 1024), x, like=x)
    assert close(got, shifted / shifted.sum(1, keepdims=True), 1e-3)


def test_rms_norm(factories: dict[str, Any]) -> None:
    x = normal(6, 1024)
    wide = x.astype(np.float32)
    got = run(factories["rms_norm"](tilelang_nb.language, 6, 1024), x, like=x)
    assert close(got, wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6), 2e-3)


@pytest.mark.parametrize("blocks", [(), (128, 256, 64, 3, 256), (64, 64, 64, 2, 128)])
def test_matmul(factories: dict[str, Any], blocks: tuple[int, ...]) -> None:
    a, b = normal(256, 256), normal(256, 256)[::-1].copy()
    got = run(factories["matmul"](tilelang_nb.language, 256, 256, 256, *blocks), a, b, like=a)
    assert close(got, a.astype(np.float32) @ b.astype(np.float32), 5e-3 * 16)


def test_matmul_with_ragged_sizes(factories: dict[str, Any]) -> None:
    a, b = normal(100, 72), normal(72, 136)
    got = run(
        factories["matmul"](tilelang_nb.language, 100, 136, 72, 64, 64, 32), a, b, like=np.zeros((100, 136), "float16")
    )
    assert close(got, a.astype(np.float32) @ b.astype(np.float32), 2e-2)


def test_gemv(factories: dict[str, Any]) -> None:
    x, w = normal(1024), normal(64, 1024)
    got = run(factories["gemv"](tilelang_nb.language, 64, 1024), x, w, like=np.zeros(64, "float16"))
    assert close(got, w.astype(np.float32) @ x.astype(np.float32), 5e-2)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(factories: dict[str, Any], causal: bool) -> None:
    q, k, v = (normal(1, 256, 2, 64)[:, ::step].copy() for step in (1, -1, 1))
    scores = np.einsum("bqhd,bkhd->bhqk", q.astype(np.float32), k.astype(np.float32)) / 8
    if causal:
        scores = np.where(np.tril(np.ones((256, 256), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    wanted = np.einsum("bhqk,bkhd->bqhd", weights, v.astype(np.float32))
    kernel = factories["flash_attention"](tilelang_nb.language, 1, 2, 256, 64, causal=causal, BM=64, BN=64, threads=128)
    assert close(run(kernel, q, k, v, like=q), wanted, 1e-2)
