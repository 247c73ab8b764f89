"""Products and attention read and write shared memory without bank conflicts: the simulated device counts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_nb

TEXT = (Path(__file__).parent / "factories.py").read_text(encoding="utf-8")


def kernel(make: str) -> Any:
    cell = tilelang_nb.compile_cell(f"{TEXT}\n\nkernel = {make}\n", target="sim")
    assert cell.ok, cell.to_text()
    return cell.namespace["kernel"].compile()


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


def without_conflicts(made: Any) -> set[tuple[str, str]]:
    """Asserts it of a kernel that has run; (buffer, access) of all that it counted."""
    (counters,) = made.counters
    bad = [row for row in counters.shared_banks if row.used != row.ideal]
    assert not bad and tuple(made.findings) == ()
    return {(row.buffer, row.access) for row in counters.shared_banks}


@pytest.mark.parametrize("blocks", ["128, 128, 32, 3, 128", "128, 256, 32, 4, 256", "128, 256, 64, 3, 256"])
def test_matmul(blocks: str) -> None:
    made = kernel(f"matmul(T, 128, 256, 192, {blocks})")
    a, b = normal(128, 192), normal(192, 256)
    c = np.zeros((128, 256), np.float16)
    made(a, b, c)
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - want).max() < 2e-2 * np.abs(want).max()
    touched = without_conflicts(made)
    assert {("A_s", "read"), ("B_s", "read"), ("C_l_tile", "read"), ("C_l_tile", "write")} <= touched


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("blocks", ["128, 128, 2, 256", "128, 64, 2, 128"])
def test_attention(blocks: str, causal: bool) -> None:
    made = kernel(f"flash_attention(T, 1, 1, 256, 128, {causal}, {blocks})")
    q, k, v = (normal(1, 256, 1, 128) * np.float16(1 + n / 7) for n in range(3))
    out = np.zeros_like(q)
    made(q, k, v, out)
    wide = [x[0, :, 0].astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].T / np.sqrt(128)
    if causal:
        scores[np.triu_indices(256, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    want = weights / weights.sum(1, keepdims=True) @ wide[2]
    assert np.abs(out[0, :, 0] - want).max() < 5e-3
    assert {("Q_s", "read"), ("K_s", "read"), ("V_s", "read"), ("O_s", "write")} <= without_conflicts(made)
