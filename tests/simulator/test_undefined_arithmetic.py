"""TL406: integer division by 0 and shifts beyond the type, of the threads that do it and of no other."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.lowering import lower
from tilelang_nb.runtime.kernel import SimulatorFindings
from tilelang_nb.simulator import Program

DIVISORS = np.array([2, 0, 1, 5, 3, -1, 4, 0], np.int32)


def findings(body: str, m: int = 0) -> list[tuple[str, int, str]]:
    """(code, line of the body, message) of what a launch finds; `a` holds DIVISORS."""
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    head = 'def k(a: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32"), n: T.int32, m: T.int32):\n'
    made = tilelang_nb.compile_cell(f"@T.prim_func\n{head}    with T.Kernel(1, threads=8):\n{lines}", target="sim")
    assert made.ok, made.to_text()
    made.kernels["k"](DIVISORS.copy(), np.zeros(8, np.int32), 3, m)
    return [(found.code, found.span.line - 3, found.message) for found in made.kernels["k"].findings]


UNDEFINED = {  # body -> the line that is at fault
    "out[0] = n // m": 1,
    "out[0] = n % a[1]": 1,
    "out[0] = T.truncdiv(n, m) + 1": 1,
    "out[0] = T.truncmod(n, m)": 1,
    "out[0] = T.ceildiv(n, m)": 1,
    "out[0] = 1 << (m - 1)": 1,
    "out[0] = n >> (m + 32)": 1,
    "if m == 0:\n    out[0] = n // m": 2,
    "for i in T.Parallel(8):\n    out[i] = n // a[i]": 2,
    "for i in range(8):\n    out[i] = n % a[i]": 2,
    "while n // m > 0:\n    out[0] = 1": 1,
    "for i in range(n // m):\n    out[i] = 1": 1,
    "T.device_assert(n // m == 0)": 1,
    "out[0] = a[n % m]": 1,
    "s = T.alloc_shared((8,), 'int32')\nT.fill(s, n // m)": 2,
}


@pytest.mark.parametrize("body", UNDEFINED)
@pytest.mark.filterwarnings("ignore")
def test_undefined_arithmetic_is_found_where_it_stands(body: str) -> None:
    found = findings(body)
    assert found and {(code, at) for code, at, _ in found} == {("TL406", UNDEFINED[body])}, found
    assert ("shifts" if ">>" in body or "<<" in body else "divides by 0") in found[0][2]


DEFINED = [
    "out[0] = n // m if m != 0 else 7",
    "if m != 0:\n    out[0] = n // m\nelse:\n    out[0] = n % 2",
    "if m != 0 and n // m > 0:\n    out[0] = 5",
    "if m == 0 or n % m > 0:\n    out[0] = 5",
    "for i in T.Parallel(8):\n    out[i] = n // a[i] if a[i] != 0 else -1",
    "for i in range(8):\n    if a[i] == 0:\n        continue\n    out[i] = n % a[i]",
    "while m != 0 and n // m > 0:\n    out[0] = 1",
    "for i in range(8):\n    if a[i] >= 0:\n        out[i] = n << a[i]",
    "out[0] = n // (m * m + 1) + n % (m - 1)",
    "out[0] = n << 31 >> 31",
]


@pytest.mark.parametrize("body", DEFINED)
def test_what_no_thread_computes_is_not_reported(body: str) -> None:
    assert findings(body) == []


def test_the_first_thread_and_the_count_are_said() -> None:
    with pytest.warns(SimulatorFindings):
        (found,) = findings("t = T.get_thread_binding()\nout[t] = n // a[t]")
    assert found == ("TL406", 2, "thread (1, 0, 0) of block (0, 0, 0) divides by 0")


def test_the_result_is_0_and_the_launch_goes_on() -> None:
    """As on most devices nothing stops; Python would raise."""
    with pytest.warns(SimulatorFindings):
        assert findings("out[0] = n // m\nT.device_assert(out[0] == 0)")[0][0] == "TL406"


def test_without_checks_nothing_is_found() -> None:
    body = "@T.prim_func\ndef k(out: T.Tensor((4,), 'int32'), m: T.int32):\n    with T.Kernel(1, threads=1):\n        out[0] = 3 // m\n"
    made = tilelang_nb.compile_cell(body, target="sim")
    (launch,) = lower(made.kernels["k"].program).launches
    assert Program(launch, checks=False).run({"out": np.zeros(4, np.int32), "m": 0}).findings == ()
