"""Choices, floored divisions and absolute values deep in one another pass TVM's passes, and mean what they did."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.device.nested_choices import MOST, _Statements, nested_choices
from tilelang_nb.simulator import Program

KERNEL = """
@T.prim_func
def k(a: T.Tensor((64,), "int32"), f: T.Tensor((64,), "float32"), out: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(1, threads=32):
        t = T.get_thread_binding(0)
{body}
"""
STEPS = {
    "a condition that is a choice": "(({e} if t > {d} else {d}) if {e} > n else 1)",
    "conditions alone": "(1 if {e} else {d})",
    "and": "({e} and n > {d})",
    "or with a read": "({e} or a[{d}] > 2)",
    "a read for some lanes only": "(a[t + {d} * 8] if {e} > 1 and t + {d} * 8 < 64 else {e})",
    "floored division": "(({e} - 40) // 3 + {d})",
    "floored modulo": "(({e} * 5 - 40) % 7)",
    "casts": "T.cast(T.cast({e}, 'int64') + {d}, 'int32')",
    "absolute values": "abs({e} - {d} * 3)",
    "division for some lanes only": "((({e} - 3) // 5 if n > {d} else 7) + t)",
}
USES = {
    "a stored value": "        out[t] = {e}",
    "an index": "        out[({e}) % 64] = 7",
    "a condition": "        if {e}:\n            out[t] = 3",
    "turns of a loop": "        for i in T.serial(({e}) % 5):\n            out[t] = out[t] + i + 1",
    "a value with a name": "        x = {e}\n        out[t] = x + (1 if x else 2)",
    "a vector": "        for i in T.Parallel(64):\n            out[i] = a[i] + ({e})",
}


def nested(step: str, depth: int, inner: str = "t") -> str:
    found = inner
    for level in range(depth):
        found = STEPS[step].format(e=found, d=level)
    return found


def launch(step: str, use: str, depth: int):
    c = tilelang_nb.compile_cell(KERNEL.format(body=USES[use].format(e=nested(step, depth))), target="sim")
    assert c.ok, c.to_text()
    return c.kernels["k"]


def results(function) -> np.ndarray:
    values = np.random.default_rng(0)
    arrays = {
        "a": values.integers(-9, 9, 64, np.int32),
        "f": values.random(64, np.float32),
        "out": np.zeros(64, np.int32),
    }
    report = Program(function).run({**arrays, "n": 3}, {})
    assert not [found for found in report.findings if found.code != "TL401"], report.findings
    return arrays["out"]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("step", STEPS)
def test_what_stands_in_registers_has_the_same_value(step: str, use: str) -> None:
    deep = 3 if STEPS[step].count("{e}") > 1 else 8
    (function,) = launch(step, use, deep).build().lowered.launches
    rewritten = nested_choices(function)
    assert use != "a stored value" or not rewritten.same_as(function)
    assert np.array_equal(results(rewritten), results(function))


@pytest.mark.parametrize(
    "step", ["conditions alone", "and", "or with a read", "floored division", "absolute values", "casts"]
)
def test_thirty_levels_are_printed_in_proportion(step: str) -> None:
    few, many = (launch(step, "a stored value", depth).cuda_source.count("\n") for depth in (15, 30))
    assert many < 3 * few


def test_two_levels_stay_as_they_are() -> None:
    (function,) = launch("conditions alone", "a stored value", 2).build().lowered.launches
    assert nested_choices(function).same_as(function)


def test_what_is_left_is_not_deep() -> None:
    (function,) = launch("conditions alone", "a stored value", 20).build().lowered.launches
    left = _Statements()
    left.statement(nested_choices(function).body)
    assert max(left.growths.values()) <= MOST and not left.kept
