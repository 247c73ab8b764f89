"""One kernel of every kind of operation gives on a GPU what it gives on the simulated device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu.operations import KERNELS

import tilelang_nb
from tilelang_nb.runtime.host_arrays import host_dtype

TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "float8_e4m3fn": 0.13}


def made_up(kernel: Any) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    found = []
    for parameter in kernel.parameters:
        dtype = host_dtype(parameter.dtype)
        assert dtype is not None
        if parameter.dtype.startswith("int"):
            found.append(random.integers(-100, 100, parameter.shape).astype(dtype))
        else:
            found.append(random.standard_normal(parameter.shape).astype(dtype))
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_a_device_and_the_simulated_one_agree(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    c = tilelang_nb.compile_cell(KERNELS[name], target="cuda")
    assert c.ok, c.to_text()
    kernel = c.kernels["k"]
    simulated = kernel.compile(target="sim")
    mine, theirs = made_up(kernel), made_up(kernel)
    simulated(*theirs)
    assert simulated.findings == ()
    kernel(*mine)
    for parameter, got, want in zip(kernel.parameters, mine, theirs):
        if parameter.dtype in TOLERANCE:
            close = TOLERANCE[parameter.dtype]
            assert np.allclose(got.astype(np.float64), want.astype(np.float64), close, close, equal_nan=True), (
                parameter.name
            )
        else:
            assert np.array_equal(got, want), parameter.name
    assert kernel.printed == simulated.printed
