"""Accesses that a guard keeps inside a buffer are silent, so they are counted, by line and buffer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilelang_nb


def kept_out(
    body: str, parameters: str, *arrays: Any, launch: str = "1, threads=128", name: str = "bx"
) -> dict[Any, int]:
    """(line of the body, buffer, kind) -> how many, of one launch."""
    head = f'n, m = T.dynamic("n, m")\n@T.prim_func\ndef k({parameters}):\n    with T.Kernel({launch}) as {name}:\n'
    text = head + "".join(f"        {line}\n" for line in body.split("\n"))
    c = tilelang_nb.compile_cell(text, target="sim")
    assert c.ok, c.to_text()
    c.kernels["k"](*arrays)
    (counters,) = c.kernels["k"].counters
    assert not c.kernels["k"].findings
    return {(kept.line - 4, kept.buffer, kept.access): kept.count for kept in counters.kept_out}


def zeros(*shape: int, dtype: str = "f4") -> np.ndarray:
    return np.zeros(shape, dtype)


ONE = 'X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")'


@pytest.mark.parametrize("n", [128, 150, 256, 257, 300, 1])
@pytest.mark.parametrize("tile", ["shared", "fragment"])
def test_a_copy_at_the_ragged_end(n: int, tile: str) -> None:
    body = f't = T.alloc_{tile}((256,), "float32")\nT.copy(X[bx * 256], t)\nT.copy(t, Y[bx * 256])'
    blocks = -(-n // 256)
    found = kept_out(body, ONE, zeros(n), zeros(n), launch="T.ceildiv(n, 256), threads=64")
    beyond = blocks * 256 - n
    assert found == ({(2, "X", "read"): beyond, (3, "Y", "write"): beyond} if beyond else {})


def test_both_sides_of_one_statement() -> None:
    body = "for i in T.Parallel(256):\n    Y[bx * 256 + i] = X[bx * 256 + i + 2]"
    assert kept_out(body, ONE, zeros(300), zeros(300), launch="2, threads=64") == {
        (2, "X", "read"): 2,  # a load of a value that is not stored is not made either
        (2, "Y", "write"): 212,
    }


@pytest.mark.parametrize(("rows", "columns"), [(30, 60), (33, 65), (32, 64), (7, 100)])
def test_tiles_of_a_matrix(rows: int, columns: int) -> None:
    parameters = 'X: T.Tensor((n, m), "float16"), Y: T.Tensor((n, m), "float32")'
    body = 't = T.alloc_shared((32, 64), "float16")\nT.copy(X[by * 32, bx * 64], t)\nT.copy(t, Y[by * 32, bx * 64])'
    launch = "T.ceildiv(m, 64), T.ceildiv(n, 32), threads=128"
    arrays = zeros(rows, columns, dtype="f2"), zeros(rows, columns)
    beyond = -(-rows // 32) * 32 * (-(-columns // 64)) * 64 - rows * columns
    found = kept_out(body, parameters, *arrays, launch=launch, name="(bx, by)")
    assert found == ({(2, "X", "read"): beyond, (3, "Y", "write"): beyond} if beyond else {})


def test_copies_that_run_ahead() -> None:
    body = (
        'a = T.alloc_shared((64, 32), "float16")\nb = T.alloc_shared((32, 64), "float16")\n'
        'c = T.alloc_fragment((64, 64), "float32")\nT.clear(c)\n'
        "for k in T.Pipelined(T.ceildiv(m, 32), num_stages=2):\n    T.copy(X[0, k * 32], a)\n    T.copy(Y[k * 32, 0], b)\n"
        "    T.gemm(a, b, c)\nT.copy(c, Z)"
    )
    parameters = 'X: T.Tensor((60, m), "float16"), Y: T.Tensor((m, 64), "float16"), Z: T.Tensor((64, 64), "float32")'
    found = kept_out(body, parameters, zeros(60, 72, dtype="f2"), zeros(72, 64, dtype="f2"), zeros(64, 64))
    assert found == {(6, "X", "read"): 64 * 96 - 60 * 72, (7, "Y", "read"): 64 * (96 - 72)}


def test_conditions_of_the_author_are_not_counted() -> None:
    body = (
        "for i in T.Parallel(256):\n    if i < n:\n        Y[i] = X[i] if i < n - 5 else 0.0\n"
        "for i in T.Parallel(256):\n    if i < 200:\n        Y[i] = X[i + 1] if i > 3 else 1.0"
    )
    assert kept_out(body, ONE, zeros(100), zeros(100)) == {(6, "Y", "write"): 100, (6, "X", "read"): 1}


def test_what_does_not_run_is_not_counted() -> None:
    body = "if bx > 0:\n    for i in T.Parallel(128):\n        Y[bx * 128 + i] = 1.0\nfor k in T.serial(n - 150):\n    Y[n + k + bx] = X[0]"
    assert kept_out(body, ONE, zeros(150), zeros(150), launch="2, threads=128") == {(3, "Y", "write"): 106}


def test_atomic_updates_and_values_they_give() -> None:
    parameters = 'X: T.Tensor((n,), "int32")'
    body = "for i in T.Parallel(128):\n    T.atomic_add(X[i * 2], 1)"
    assert kept_out(body, parameters, zeros(100, dtype="i4")) == {(2, "X", "atomic"): 78}


def test_safe_values() -> None:
    body = 'T.annotate_safe_value({X: 1.0})\nt = T.alloc_shared((256,), "float32")\nT.copy(X[0], t)\nT.copy(t, Y)'
    parameters = 'X: T.Tensor((n,), "float32"), Y: T.Tensor((256,), "float32")'
    assert kept_out(body, parameters, zeros(200), zeros(256)) == {(3, "X", "safe read"): 56}


def test_the_counts_are_told() -> None:
    text = f"""n = T.dynamic("n")
@T.prim_func
def k({ONE}):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(128):
            Y[i] = X[i + 1]
"""
    c = tilelang_nb.compile_cell(text + "import numpy as np\nx = np.zeros(104, 'f4')\nk(x, x.copy())\n", target="sim")
    assert "edge of Y: 24 stores beyond its edge were skipped (line 6)" in c.to_text()
    assert "edge of X: 1 load beyond its edge gave 0 (line 6)" in c.to_text()
    (kernel,) = json.loads(c.to_json())["kernels"]
    (fact,) = [fact for fact in kernel["facts"] if fact["name"] == "edge of Y"]
    assert (fact["origin"], fact["line"], fact["value"][:9]) == ("simulator", 6, "24 stores")
    assert any("24 stores of `Y`" in line for line in c.kernels["k"].counters[0].lines())
