"""A bare `return` is the last statement of a kernel, or it is refused; what follows it is still looked at."""

from __future__ import annotations

import pytest
from frontend.cells import run_cell

HEAD = """import tilelang.language as T
@T.prim_func
def k(a: T.Tensor((8,), "int32"), n: T.int32):
"""
LAUNCH = "    with T.Kernel(1, threads=1):\n        a[0] = n\n"

REFUSED = {
    "in the middle of a launch": "        return\n        a[1] = 2\n",
    "before another launch": "        return\n    with T.Kernel(1, threads=1):\n        a[1] = 2\n",
    "between launches": "    return\n    with T.Kernel(1, threads=1):\n        a[1] = 2\n",
}
RIGHT = {
    "at the end of the launch": "        return\n",
    "at the end of the kernel": "    return\n",
    "under a condition of the build": "        if len(a.shape) > 1:\n            return\n        a[1] = 2\n",
}


@pytest.mark.parametrize("title", REFUSED)
def test_a_return_with_statements_behind_it_is_refused(title: str) -> None:
    line = next(at for at, row in enumerate((HEAD + LAUNCH + REFUSED[title]).split("\n"), 1) if "return" in row)
    assert run_cell(HEAD + LAUNCH + REFUSED[title]).errors == [("TL121", line)]


@pytest.mark.parametrize("title", RIGHT)
def test_a_return_at_the_end_is_none(title: str) -> None:
    assert run_cell(HEAD + LAUNCH + RIGHT[title]).errors == []


def test_mistakes_behind_a_return_are_said_too() -> None:
    found = run_cell(HEAD + LAUNCH + "        return\n        a[1] = missing\n").errors
    assert found == [("TL121", 6), ("TL002", 7)]
