"""Shuffles and votes that name or read lanes that do not take part: their result is undefined on a device."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def k(Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads={threads}):
        t = T.get_thread_binding()
{body}
"""


def run(body: str, threads: int, right: bool):
    """(findings, Y)"""
    lines = "\n".join("        " + line for line in body.splitlines())
    cell = tilelang_nb.compile_cell(TEXT.format(threads=threads, body=lines), {}, target="sim")
    assert cell.ok, cell.to_text()
    y = np.full(64, -1, np.int32)
    with nullcontext() if right else pytest.warns():
        cell.namespace["k"](y)
    return cell.namespace["k"].findings, y


HALF = "if t % 32 < 16:\n    Y[t] = {}"
WRONG = {
    "a branch names the whole warp": (HALF.format("T.shfl_xor(t, 4)"), 64, 7, "names lane 16"),
    "a branch reads a lane that is not in it": (HALF.format("T.shfl_xor(t, 16, mask=0xFFFF)"), 64, 7, "of lane 16"),
    "a vote of a branch names the whole warp": (HALF.format("T.any_sync(t == 9)"), 64, 7, "names lane 16"),
    "all in a branch": (HALF.format("T.all_sync(t < 9)"), 64, 7, "names lane 16"),
    "ballot in a branch": ("if t % 3 == 0:\n    Y[t] = T.ballot_sync(t >= 0)", 64, 7, "names lane 1 "),
    "a lane that the mask does not name": ("Y[t] = T.shfl_up(t, 8, mask=0xFF00)", 32, 6, "of lane 0 "),
    "a source that the mask does not name": ("Y[t] = T.shfl_sync(t, 9, mask=0xFF)", 32, 6, "mask of this shuffle"),
    "a voter that the mask does not name": ("Y[t] = T.ballot_sync(t >= 0, mask=0xFF)", 32, 6, "is lane 8"),
    "the block ends inside the warp": ("Y[t] = T.shfl_down(t, 1)", 40, 6, "the block does not have"),
    "a sum over a part of a warp": ("Y[t] = T.warp_reduce_sum(t)", 48, 6, "the block does not have"),
    "a role that ends inside a warp": (
        "if t < 48:\n    T.sync_threads(1, 64)\n    Y[t] = T.shfl_xor(t, 16)\nelse:\n    T.sync_threads(2, 32)",
        64,
        8,
        "of lane 16",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_lane_that_does_not_take_part_is_found_with_the_line(name: str) -> None:
    body, threads, line, text = WRONG[name]
    findings, _ = run(body, threads, False)
    (finding,) = [one for one in findings if one.code == "TL406"]
    assert finding.span.line == line and text in finding.message and finding.help


RIGHT = {
    "a branch with its mask": (HALF.format("T.shfl_xor(t, 4, mask=0xFFFF)"), 64, lambda t: t ^ 4 if t % 32 < 16 else -1),
    "whole warps go another way": ("if t < 32:\n    Y[t] = T.shfl_down(t, 1)", 64, lambda t: min(t + 1, 31) if t < 32 else -1),
    "a mask made of a vote": (
        "m = T.ballot_sync(t % 32 < 20)\nif t % 32 < 20:\n    Y[t] = T.shfl_sync(t, 19, mask=m)",
        64,
        lambda t: t // 32 * 32 + 19 if t % 32 < 20 else -1,
    ),
    "those that are here": ("if t % 2 == 0:\n    Y[t] = T.all_sync(t % 2 == 0, mask=T.activemask())", 32, lambda t: 1 if t % 2 == 0 else -1),
    "segments inside the block": ("Y[t] = T.shfl_down(t, 1, 8)", 40, lambda t: t + 1 if t % 8 < 7 else t),
    "below the first lane": ("Y[t] = T.shfl_up(t, 9)", 40, lambda t: t - 9 if t % 32 >= 9 else t),
    "a whole warp beyond which there is nothing": ("Y[t] = T.ballot_sync(t % 32 < 3)", 40, lambda t: 7),
    "only five bits of a distance": ("Y[t] = T.shfl_down(t, 33)", 32, lambda t: min(t + 1, 31)),
    "another segment before one's own": ("Y[t] = T.shfl_xor(t, 8, 8)", 32, lambda t: t ^ 8 if t & 8 else t),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_defined_has_its_value_and_no_finding(name: str) -> None:
    body, threads, wanted = RIGHT[name]
    findings, y = run(body, threads, True)
    assert findings == ()
    lanes = [y[t] for t in range(threads) if y[t] != -1]
    assert lanes == [value for value in map(wanted, range(threads)) if value != -1]


def test_a_vote_counts_only_the_lanes_of_its_mask() -> None:
    body = "m = T.activemask() & 0xF0F0F0F0\nif (m >> (t % 32)) & 1 == 1:\n    Y[t] = T.any_sync(t < 4, mask=m)"
    findings, y = run(body, 32, True)
    assert findings == () and {int(y[t]) for t in range(32) if t & 4} == {0}
