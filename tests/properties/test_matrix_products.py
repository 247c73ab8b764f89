"""T.gemm for random types, tiles, transposes, memories, warps, policies and architectures: exactly what NumPy gives.

The operands are small integers, so that every sum is a number of the accumulator's type and the order of the additions
does not matter: the results have to be equal, bit for bit, on tensor cores and on CUDA cores alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, event, given
from hypothesis import strategies as st
from lowering.products import compiled_product, numpy_type, thread_text
from properties.amounts import amount

TYPES = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32",),
    "tfloat32": ("float32",),
    "float32": ("float32",),
    "float64": ("float64",),
    "int8": ("int32",),
    "uint8": ("int32",),
    "float8_e4m3fn": ("float32", "float16"),
    "float8_e5m2": ("float32", "float16"),
}
# first architecture, rows, columns and depth of the smallest instruction
INSTRUCTIONS = {
    "float16": (80, 16, 8, 8),
    "bfloat16": (80, 16, 8, 8),
    "tfloat32": (80, 16, 8, 4),
    "float64": (80, 8, 8, 4),
    "int8": (80, 16, 8, 16),
    "uint8": (80, 16, 8, 16),
    "float8_e4m3fn": (89, 16, 8, 32),
    "float8_e5m2": (89, 16, 8, 32),
}
ARCHITECTURES = {"sm_70": 70, "sm_75": 75, "sm_80": 80, "sm_89": 89, "sm_90a": 90}
MEMORY = st.sampled_from(["shared", "shared", "fragment"])


@st.composite
def products(draw: Any) -> dict[str, Any]:
    dtype = draw(st.sampled_from(list(TYPES)))
    _, rows, columns, depth = INSTRUCTIONS.get(dtype, (0, 1, 1, 1))
    whole = draw(st.integers(0, 4)) > 0  # of instructions
    if not whole:
        rows = columns = depth = 1
    most = 96 if whole else 40
    threads = draw(st.integers(1, 16)) * 32 if draw(st.integers(0, 7)) else draw(st.sampled_from([1, 16, 48, 100]))
    return {
        "m": rows * draw(st.integers(1, most // rows)),
        "n": columns * draw(st.integers(1, most // columns)),
        "k": depth * draw(st.integers(1, 64 // depth)),
        "dtype": dtype,
        "total": draw(st.sampled_from(TYPES[dtype])),
        "threads": threads,
        "ta": draw(st.booleans()),
        "tb": draw(st.booleans()),
        "policy": draw(st.sampled_from(["Square", "FullRow", "FullCol"])),
        "a_memory": draw(MEMORY),
        "b_memory": draw(MEMORY),
        "c_memory": draw(st.sampled_from(["fragment", "fragment", "fragment", "shared"])),
        "options": draw(st.sampled_from(["", "", ", clear_accum=True"])),
        "arch": draw(st.sampled_from(list(ARCHITECTURES))),
    }


def on_tensor_cores(case: dict[str, Any]) -> bool:
    """What the documentation promises: whole instructions, whole warps, an architecture that has them."""
    if case["dtype"] not in INSTRUCTIONS:
        return False
    first, rows, columns, depth = INSTRUCTIONS[case["dtype"]]
    fits = case["m"] % rows == 0 and case["n"] % columns == 0 and case["k"] % depth == 0
    return fits and case["threads"] % 32 == 0 and ARCHITECTURES[case["arch"]] >= first


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(0 if dtype == "uint8" else -3, 4, shape).astype(np.float32).astype(numpy_type(dtype))


@given(products())
@amount(120, 6000)
def test_a_product_of_small_integers_is_exact(case: dict[str, Any]) -> None:
    m, n, k = case.pop("m"), case.pop("n"), case.pop("k")
    kernel, shapes = compiled_product(m, n, k, **case)
    # Operands in registers that CUDA cores multiply go through shared tiles: some do not fit in an older architecture.
    assume(kernel is not None)
    rng = np.random.default_rng(m * n + k)
    host = case["dtype"].replace("tfloat32", "float32")
    a, b, c = (integers(rng, shape, name) for shape, name in zip(shapes, (host, host, case["total"]), strict=True))
    result = c.copy()
    kernel(a, b, result)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    left, right = a.astype(np.float64), b.astype(np.float64)
    expected = (left.T if case["ta"] else left) @ (right.T if case["tb"] else right)
    expected += c.astype(np.float64) * (not case["options"])
    np.testing.assert_array_equal(result.astype(np.float64), expected)
    expects = on_tensor_cores({**case, "m": m, "n": n, "k": k})
    assert ("T.ptx.mma" in thread_text(kernel)) == expects
    event("tensor cores" if expects else "CUDA cores")
