"""What else a launch with a pipelined product does: roles change no result, and are not made where they would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

from tilelang_nb.simulator import Program

HEAD = """
@T.prim_func
def k(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"),
      C: T.Tensor((128, 128), "float16"), D: T.Tensor((128, 128), "float16"), I: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=256) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        P_s = T.alloc_shared((128, 64), "float16")
        Q_s = T.alloc_shared((64, 128), "float16")
        A_f = T.alloc_fragment((128, 64), "float16")
        row = T.alloc_fragment((128,), "float32")
        C_l = T.alloc_fragment((128, 128), "float32")
        n = T.alloc_var("int32")
        n = 0
        T.clear(C_l)
"""
TURN = """
for ko in T.Pipelined(2, num_stages=2):
    T.copy(A[0, ko * 64], A_s)
    T.copy(B[ko * 64, 0], B_s)
"""
LOOP = TURN + "    T.gemm(A_s, B_s, C_l)\n"
STORE = "T.copy(C_l, C[0, 0])\n"
INSIDE = LOOP.strip().replace("\n", "\n    ")
HALVES = "T.copy(A[0, 0], P_s)\nT.copy(B[0, 0], Q_s)\nT.gemm(P_s, Q_s, C_l)\n"
ROLES, NONE = "1 warp group copies, 2 compute", "all warp groups do the same"
Expected = Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]
# text, roles, C and D (None: untouched)
CASES: dict[str, tuple[str, str, Expected]] = {
    "a product after": (LOOP + HALVES + STORE, ROLES, lambda a, b: (a @ b + a[:, :64] @ b[:64], None)),
    "a product before": (HALVES + LOOP + STORE, ROLES, lambda a, b: (a @ b + a[:, :64] @ b[:64], None)),
    "the source is written before": (
        "T.fill(C_l, 2)\nT.copy(C_l, A)\nT.clear(C_l)\n" + LOOP + STORE,
        NONE,
        lambda a, b: (np.full((128, 128), 2.0) @ b, None),
    ),
    "the source is written between two runs of the loop": (
        f"for o in T.serial(2):\n    T.clear(C_l)\n    {INSIDE}\n    T.copy(C_l, A)\n" + STORE,
        NONE,
        lambda a, b: (a @ b @ b, None),
    ),
    "a tile that is used after the loop": (
        LOOP + "T.copy(A_s, D[0, 0])\n" + STORE,
        NONE,
        lambda a, b: (a @ b, np.concatenate([a[:, 64:], 0 * a[:, 64:]], 1)),
    ),
    "the results are read before": (
        LOOP + "T.copy(B, C)\nfor i, j in T.Parallel(128, 128):\n    C_l[i, j] += C[i, j]\n" + STORE,
        ROLES,
        lambda a, b: (a @ b + b, None),
    ),
    "the results are read after": (
        LOOP + STORE + "for i, j in T.Parallel(128, 128):\n    D[i, j] = C[i, j] + 1\n",
        ROLES,
        lambda a, b: (a @ b, a @ b + 1),
    ),
    "two results": (LOOP + "T.copy(C_l, D)\n" + STORE, ROLES, lambda a, b: (a @ b, a @ b)),
    "atomic": (LOOP + "T.atomic_add(C[0, 0], C_l)\n", ROLES, lambda a, b: (a @ b, None)),
    "sums of rows": (
        LOOP + "T.reduce_sum(C_l, row, dim=1)\nfor i, j in T.Parallel(128, 128):\n    D[i, j] = row[i]\n" + STORE,
        ROLES,
        lambda a, b: (a @ b, np.repeat((a @ b).sum(1)[:, None], 128, 1)),
    ),
    "a variable made of a loaded one": (
        "v = I[0]\nw = v + 1\n" + LOOP + "for i, j in T.Parallel(128, 128):\n    C_l[i, j] += w * v\n" + STORE,
        ROLES,
        lambda a, b: (a @ b + 12, None),
    ),
    "a tile that threads fill beside": (
        LOOP
        + "    for i, j in T.Parallel(128, 64):\n        P_s[i, j] = A[i, ko * 64 + j]\n"
        + "    for i, j in T.Parallel(128, 64):\n        D[i, ko * 64 + j] = P_s[i, 63 - j]\n"
        + STORE,
        ROLES,
        lambda a, b: (a @ b, np.concatenate([a[:, 63::-1], a[:, :63:-1]], 1)),
    ),
    "two products of the same tiles": (
        LOOP + "    T.gemm(A_s, B_s, C_l)\n" + STORE,
        ROLES,
        lambda a, b: (2 * a @ b, None),
    ),
    "the first product clears": (
        TURN + "    T.gemm(A_s, B_s, C_l, clear_accum=(ko == 0))\n" + STORE,
        ROLES,
        lambda a, b: (a @ b, None),
    ),
    "every product clears": (
        TURN + "    T.gemm(A_s, B_s, C_l, clear_accum=True)\n" + STORE,
        ROLES,
        lambda a, b: (a[:, 64:] @ b[64:], None),
    ),
    "the loop is left early": (
        LOOP + "    if I[1] == 1:\n        break\n" + STORE,
        NONE,
        lambda a, b: (a[:, :64] @ b[:64], None),
    ),
    "a loop of run-time length around": (
        f"while n < 2:\n    {INSIDE}\n    n += 1\n" + STORE,
        NONE,
        lambda a, b: (2 * a @ b, None),
    ),
    "an operand that goes through registers": (
        TURN + "    T.copy(A_s, A_f)\n    T.gemm(A_f, B_s, C_l)\n" + STORE,
        ROLES,
        lambda a, b: (a @ b, None),
    ),
    "an operand that is loaded into registers": (
        TURN.replace("A_s", "A_f") + "    T.gemm(A_f, B_s, C_l)\n" + STORE,
        ROLES,
        lambda a, b: (a @ b, None),
    ),
    "a tile by itself": (
        TURN.replace("    T.copy(B[ko * 64, 0], B_s)\n", "") + "    T.gemm(A_s, A_s, C_l, transpose_B=True)\n" + STORE,
        ROLES,
        lambda a, b: (a @ a.T, None),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_roles_change_no_result(name: str) -> None:
    text, roles, expected = CASES[name]
    result = lowered(HEAD + "".join(f"        {line}\n" for line in text.strip().splitlines()))
    assert [one.value for one in result.decisions if one.subject == "roles"] == [roles]
    rng = np.random.default_rng(len(text))
    a, b = (rng.integers(-1, 2, (128, 128)).astype(np.float16) for _ in range(2))
    wanted = expected(a.astype(np.float64), b.astype(np.float64))
    c, d = (np.zeros((128, 128), np.float16) for _ in range(2))
    report = Program(result.launches[0]).run({"A": a, "B": b, "C": c, "D": d, "I": np.array([3, 1, 0, 0], np.int32)})
    assert report.findings == (), [str(finding) for finding in report.findings]
    for array, value in zip((c, d), wanted, strict=True):
        np.testing.assert_array_equal(array.astype(np.float64), 0 if value is None else value)
