"""Tiles whose place comes from memory: what reaches over the edge of the buffer is guarded like any other tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime.simulated_launches import SimulatorFindings

PLACES = [-3, 0, 2, 5, 9, 30, -40]


def built(body: str, **arrays: np.ndarray) -> Any:
    parameters = ", ".join(f'{name}: T.Tensor({array.shape}, "{array.dtype}")' for name, array in arrays.items())
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    text = f"@T.prim_func\ndef k({parameters}):\n    with T.Kernel(1, threads=32):\n{lines}\n"
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert cell.ok, cell.to_text()
    return cell.namespace["k"]


def expected_rows(source: np.ndarray, start: int, count: int) -> np.ndarray:
    rows = np.zeros((count, *source.shape[1:]), source.dtype)
    for row in range(count):
        if 0 <= start + row < len(source):
            rows[row] = source[start + row]
    return rows


@pytest.mark.parametrize("loop", ["T.serial(2)", "T.Pipelined(2, num_stages=2)"])
@pytest.mark.parametrize("place", PLACES)
def test_loads_beyond_an_edge_give_zero(place: int, loop: str) -> None:
    source = np.arange(1, 161, dtype="float16").reshape(10, 16)
    start, found = np.array([place], "int32"), np.full((8, 16), -1, "float16")
    kernel = built(
        f"""
tile = T.alloc_shared((8, 8), "float16")
at = S[0]
for half in {loop}:
    T.copy(A[at : at + 8, half * 8 : half * 8 + 8], tile)
    T.copy(tile, B[0, half * 8])
""",
        A=source,
        S=start,
        B=found,
    )
    kernel(source, start, found)
    assert kernel.findings == ()
    assert np.array_equal(found, expected_rows(source, place, 8))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("statement", ["T.copy(tile, B[S[0], 0])", "T.atomic_add(B[S[0] : S[0] + 8, 0:16], tile)"])
def test_stores_beyond_an_edge_are_skipped(statement: str, place: int) -> None:
    source = np.arange(1, 129, dtype="float32").reshape(8, 16)
    start, found = np.array([place], "int32"), np.zeros((10, 16), "float32")
    kernel = built(
        f"""
tile = T.alloc_shared((8, 16), "float32")
T.copy(A, tile)
{statement}
""",
        A=source,
        S=start,
        B=found,
    )
    kernel(source, start, found)
    assert kernel.findings == ()
    assert np.array_equal(found, expected_rows(source, -place, 10))


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.Parallel(8):\n    B[i] = A[S[0] + i, 0]",
        "tile = T.alloc_shared((1, 16), 'float16')\nT.copy(A[S[0] : S[0] + 1, :], tile)\nB[0] = tile[0, 0]",
    ],
)
def test_an_index_from_memory_is_not_guarded(body: str) -> None:
    source = np.zeros((10, 16), "float16")
    start, found = np.array([11], "int32"), np.zeros(8, "float16")
    kernel = built(body, A=source, S=start, B=found)
    with pytest.warns(SimulatorFindings, match="outside its shape"):
        kernel(source, start, found)
    assert [finding.code for finding in kernel.findings] == ["TL402"]
