"""Tile operations under conditions that choose whole warp groups: the help names the `T.ws` that does it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), C: T.Tensor((3, 64, 64), "float32"), n: T.int32):
    with T.Kernel(1, threads=384):
        a = T.alloc_shared((64, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        d = T.alloc_fragment((64, 64), "float32")
        tx = T.get_thread_binding()
        T.copy(A, a)
        {first}
            T.copy(a, c)
            T.copy(c, C[0, 0, 0])
        {second}
            T.clear(d)
            T.copy(d, C[1, 0, 0])
"""


def diagnostics(first: str, second: str = "if True:") -> tuple[Any, ...]:
    cell = tilelang_nb.compile_cell(TEXT.format(first=first, second=second), {}, target="sim", arch="sm_90a")
    return cell.diagnostics


CHOSEN = {
    "if tx < 128:": "0",
    "if tx >= 256:": "2",
    "if tx >= 128 and tx < 256:": "1",
    "if 127 < tx:": "1, 2",
    "if tx // 128 == 1:": "1",
}


@pytest.mark.parametrize("condition", CHOSEN)
def test_the_part_is_named_once_for_all_that_stands_in_it(condition: str) -> None:
    (found,) = diagnostics(condition)
    assert found.code == "TL210" and found.span.line == 11
    assert f"write `with T.ws({CHOSEN[condition]}):` in place of the `if`" in found.help


def test_each_side_of_an_if_is_a_part() -> None:
    found = diagnostics("if tx < 128:", "elif tx < 256:")
    assert [re.search(r"T\.ws\((.*?)\)", one.help)[1] for one in found] == ["0", "1"]
    assert [one.span.line for one in found] == [11, 14]


@pytest.mark.parametrize(
    "condition", ["if tx < 100:", "if tx < n:", "if tx % 2 == 0:", "if tx % 256 < 128:", "if a[tx // 64, tx % 64] > 0:"]
)
def test_other_conditions_belong_inside(condition: str) -> None:
    found = diagnostics(condition)
    assert found and all("put the condition inside" in one.help for one in found)


def test_the_text_that_the_help_names_does_what_was_meant() -> None:
    cell = tilelang_nb.compile_cell(
        TEXT.format(first="with T.ws(0):", second="with T.ws(1):"), {}, target="sim", arch="sm_90a"
    )
    assert cell.ok, cell.to_text()
    a, c = np.arange(4096, dtype=np.float32).reshape(64, 64), np.ones((3, 64, 64), np.float32)
    cell.namespace["k"](a, c, 1)
    assert np.array_equal(c[0], a) and not c[1].any() and c[2].all()
