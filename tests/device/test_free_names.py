"""Names of a cell that are words of CUDA C, or functions that the text calls, do not disturb it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((8, 64), "float16"), B: T.Tensor((8, 64), "float32"), {scalar}: T.int32):
    with T.Kernel(1, threads=32):
        {tile} = T.alloc_shared((64,), "float16")
        for {loop} in range({scalar}):
            T.copy(A[{loop}, :], {tile})
            for i in T.Parallel(64):
                B[{loop}, i] = T.max(T.min(T.exp(T.cast({tile}[i], "float32")), 3.0), 1.0) + T.sqrt(B[{loop}, i])
"""
NAMES = (
    *("half", "half2", "float4", "uint", "int32_t", "new", "this", "auto", "const", "static", "template", "signed"),
    *("max", "min", "expf", "sqrtf", "threadIdx", "nullptr", "true", "bool", "NULL", "asm", "typename", "register"),
)
ROLES = ("scalar", "tile", "loop")


def kernel(role: str, name: str, target: str) -> tilelang_nb.Kernel:
    names = {"scalar": "m", "tile": "S", "loop": "r", role: name}
    cell = tilelang_nb.compile_cell(TEXT.format(**names), {}, target=target, arch="sm_80")
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", NAMES)
def test_the_compiler_takes_the_text(role: str, name: str) -> None:
    """Nothing calls `min`, so that name may stay."""
    made = kernel(role, name, "cuda")
    assert made.ptx
    assert name == "min" or name not in re.findall(r"(?:int|half\*) (\w+)(?= [=;]|[,)])", made.cuda_source)


def test_arguments_keep_the_names_of_the_cell() -> None:
    made = kernel("scalar", "new", "sim")
    a = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float16)
    b = np.ones((8, 64), np.float32)
    made(a, b, new=8)
    np.testing.assert_allclose(b, np.clip(np.exp(a.astype(np.float32)), 1, 3) + 1, rtol=1e-5)
    (launch,) = kernel("scalar", "new", "cuda").build().device.launches
    assert "new" in [parameter.name for parameter in launch.parameters]


def test_other_names_stay_as_they_are() -> None:
    text = kernel("loop", "row", "cuda").cuda_source
    assert "int row = 0" in text
    assert not re.search(r"\brow_\b", text)


def test_a_name_that_is_taken_is_not_given_twice() -> None:
    made = tilelang_nb.compile_cell(
        """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), new: T.int32, new_: T.int32):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            A[i] = new * 10 + new_
""",
        {},
        target="cuda",
        arch="sm_80",
    ).namespace["k"]
    (signature,) = (line for line in made.cuda_source.split("\n") if "__global__" in line)
    assert re.findall(r"int (\w+)", signature) == ["new__", "new_"] and made.ptx
