"""Upstream's `tilelang.testing`: the comparison that test files use."""

from __future__ import annotations

from typing import Any

import numpy as np

from .profiler import _assert_close


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    **_: Any,
) -> bool:
    """Two arrays agree but for a small part of their elements; AssertionError says where they do not."""
    _assert_close("the tensor", np.asarray(tensor_a), np.asarray(tensor_b), atol, rtol, max_mismatched_ratio)
    return True


def set_random_seed(seed: int = 42) -> None:
    """Seed NumPy's global generator."""
    np.random.seed(seed)
