"""Loops that load for several turns at once compute what they computed, and others are left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.device.load_ahead import load_ahead
from tilelang_nb.simulator import Program

DOT = """
@T.prim_func
def k(A: T.Tensor(({K},), "{dtype}"), B: T.Tensor((8, {K}), "{dtype}"), C: T.Tensor((8,), "float32")):
    with T.Kernel(2, threads={threads}) as bn:
        a, b = T.alloc_fragment(({step},), "{dtype}"), T.alloc_fragment((4, {step}), "{dtype}")
        acc, out = T.alloc_fragment((4, {step}), "float32"), T.alloc_fragment((4,), "float32")
        T.clear(acc)
        for ko in T.serial({K} // {step}):
            T.copy(A[ko * {step}], a)
            T.copy(B[bn * 4, ko * {step}], b)
            for i, j in T.Parallel(4, {step}):
                acc[i, j] += T.cast(b[i, j], "float32") * T.cast(a[j], "float32")
        T.reduce_sum(acc, out, dim=1)
        T.copy(out, C[bn * 4])
"""


def thread_program(cell: str) -> Any:
    compilation = tilelang_nb.compile_cell(cell, target="sim", arch="sm_80")
    assert compilation.ok, compilation.to_text()
    (launch,) = compilation.kernels["k"].build().lowered.launches
    return launch


@pytest.mark.parametrize("turns", [2, 3, 4, 6, 8, 32])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_sum_is_the_same(dtype: str, turns: int) -> None:
    launch = thread_program(DOT.format(K=256 * turns, step=256, threads=64, dtype=dtype))
    ahead = load_ahead(launch)
    assert ahead.body.same_as(launch.body) == (turns in (2, 3))  # nothing to do together
    random = np.random.default_rng(turns)
    a, b = random.standard_normal(256 * turns).astype(dtype), random.standard_normal((8, 256 * turns)).astype(dtype)
    found = []
    for function in (launch, ahead):
        c = np.zeros(8, np.float32)
        report = Program(function).run({"A": a, "B": b, "C": c})
        assert report.findings == ()
        found.append(c)
    assert np.array_equal(*found)
    assert np.allclose(found[0], b.astype(np.float64) @ a.astype(np.float64), rtol=1e-3, atol=1e-2)


def test_all_loads_of_several_turns_stand_in_front(program_of) -> None:
    program = program_of(DOT.format(K=16384, step=512, threads=128, dtype="float16"), "sm_90a")
    assert "__launch_bounds__(128, 8)" in program.cuda_source
    loop = program.sass[: program.sass.index("SHFL")]
    assert loop.count("LDG.E.128") == 12
    assert program.resources.spill_loads.value == 0 and program.resources.registers.value <= 64


BODY = """
@T.prim_func
def k(A: T.Tensor((64, 128), "float32"), B: T.Tensor((128,), "float32"), n: T.int32):
    with T.Kernel(1, threads=1):
        p, q = T.alloc_local((64,), "float32"), T.alloc_local((64,), "float32")
        s = T.alloc_local((1,), "float32")
        T.clear(s)
        T.clear(p)
        for k in T.serial(64):
{body}
        B[0] = s[0]
"""
LOAD = "for j in T.unroll(16):\n    q[j] = A[k, j]"
USE = "for j in T.unroll(16):\n    s[0] += q[j]"
LEFT_ALONE = {
    "a value carried to the next turn": f"{LOAD}\nfor j in T.unroll(16):\n    s[0] += q[j] + p[j]\n    q[j] = s[0]",
    "a place that changes with the turn": "q[k % 16] = A[k, 0]\nfor j in T.unroll(16):\n    s[0] += q[j]",
    "a load under a condition": f"if k < n:\n    q[0] = A[k, 0]\n{USE}",
    "a store": f"{LOAD}\n{USE}\nB[k] = s[0]",
    "a break": f"{LOAD}\n{USE}\nif s[0] > 100:\n    break",
    "a barrier": f"{LOAD}\n{USE}\nT.sync_threads()",
    "an atomic": f"{LOAD}\n{USE}\nT.atomic_add(B[1], s[0])",
    "an index that the loop computes": "q[0] = A[T.cast(s[0], 'int32'), 0]\ns[0] += q[0]",
    "few bytes": "q[0] = A[k, 0]\ns[0] += q[0]",
}


@pytest.mark.parametrize("what", LEFT_ALONE)
def test_other_loops_are_left_alone(what: str) -> None:
    body = "".join(f"            {line}\n" for line in LEFT_ALONE[what].split("\n"))
    launch = thread_program(BODY.format(body=body.rstrip("\n")))
    assert load_ahead(launch).body.same_as(launch.body)


def test_a_loop_whose_array_is_read_later_is_left_alone() -> None:
    body = "".join(f"            {line}\n" for line in f"{LOAD}\n{USE}".split("\n")).rstrip("\n")
    launch = thread_program(BODY.format(body=body).replace("B[0] = s[0]", "B[0] = s[0] + q[3]"))
    assert load_ahead(launch).body.same_as(launch.body)
