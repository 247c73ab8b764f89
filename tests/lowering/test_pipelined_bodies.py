"""Bodies of T.Pipelined loops of every kind, with 1 to 4 stages and any number of turns, against plain Python."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from lowering.pipelined_bodies import CASES, HEAD, ROWS, TABLE, WIDTH, text_of
from lowering.products import compiled, thread_text

import tilelang_nb


def cp_async_of_pipelines(kernel: Any) -> bool:
    return any(one.stages > 1 for one in kernel.pipelines)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_the_loop_gives_what_python_gives(name, stages):
    case = CASES[name]
    kernel = compiled(text_of(case, stages), "sm_80")
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (ROWS, WIDTH)).astype(np.float32)
    for turns in (ROWS, 5, 2, 1, 0):
        c, expected = np.zeros_like(a), np.zeros_like(a)
        kernel(a.copy(), TABLE.copy(), c, turns)
        assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
        case.python(a, TABLE, expected, turns)
        np.testing.assert_array_equal(c, expected)
    if stages == 1 and "STAGES + 1" in case.text:
        return
    assert cp_async_of_pipelines(kernel) == (case.ahead and stages > 1)
    if case.ahead and stages > 1:
        assert "cp.async" in thread_text(kernel)


REASONS = {
    "continue before the copy": "a turn may end before it",
    "nested pipelines over one tile": "the loop also writes `s` elsewhere",
    "a compile-time loop in a pipeline": "it fills a part of `u`",
    "a compile-time loop over one tile": "the loop also writes `s` elsewhere",
    "copies in both branches": "it stands in an `else`",
    "a condition that the loop changes": "the condition that it stands under depends on",
    "a tile that is kept from an earlier turn": "`s` is also used outside of that",
    "a tile that is changed in place": "the loop also writes `s` elsewhere",
    "a source that the turn before writes": "the loop writes `C`",
    "a part of the tile": "it fills a part of `s`",
    "an inner loop with its own copy": "it stands in a loop of its own",
    "a row from the turns before": "its place depends on",
}


@pytest.mark.parametrize("name", REASONS)
def test_a_copy_that_stays_in_its_turn_says_why_at_its_line(name):
    text = text_of(CASES[name], 2)
    kernel = compiled(text, "sm_80")
    lowered = kernel.build().lowered
    said = [copy for loop in lowered.pipelines for copy in loop.staying]
    assert any(REASONS[name] in copy.reason for copy in said), said
    lines = textwrap.dedent(text).splitlines()
    assert all("T.copy(" in lines[copy.line - 1] for copy in said)
    told = [one for one in lowered.decisions if one.subject == "pipeline" and "in its turn" in one.value]
    assert {(one.line, one.reason) for one in told} == {(copy.line, copy.reason) for copy in said}


def test_what_a_ring_of_three_stages_holds_in_every_turn():
    kernel = compiled(text_of(CASES["continue between two groups"], 3), "sm_80")
    (loop,) = kernel.pipelines
    assert (loop.variable, loop.wanted, loop.stages, loop.ahead, loop.turns, loop.engine) == (
        "i",
        3,
        3,
        2,
        None,
        "cp.async",
    )
    assert [[copy.tile for copy in group.copies] for group in loop.groups] == [["s", "t"]]
    assert [(group.waits_at, group.pending) for group in loop.groups] == [(12, 1)]
    assert loop.started(None) == (0, 1) and loop.started(4) == (6,)
    assert [loop.held(turn) for turn in range(3)] == [(0, 1, 2), (3, 1, 2), (3, 4, 2)]


def test_pictures_of_pipelines(golden):
    loops = [
        loop
        for name in ("rows from a table that is copied too", "an inner loop with its own copy", "atomics")
        for loop in compiled(text_of(CASES[name], 3), "sm_80").pipelines
    ]
    golden("\n\n".join(map(str, loops)) + "\n", "lowering/pipelines.txt")


def test_known_turns_start_no_copies_beyond_the_last():
    text = text_of(CASES["rows from a table that is copied too"], 3)
    (loop,) = compiled(text, "sm_80").pipelines
    assert loop.turns == 4
    assert [loop.started(turn) for turn in (None, 0, 1, 2, 3)] == [(0, 1), (2,), (3,), (), ()]
    assert [loop.held(turn) for turn in (2, 3)] == [(3, None, 2), (3, None, None)]


@pytest.mark.parametrize(
    ("arch", "size", "reason"),
    [("sm_75", 16, "asynchronous copies need sm_80"), ("sm_80", 128, "3 stages do not fit into shared memory")],
)
def test_fewer_stages_have_a_reason(arch, size, reason):
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, size, 256), "float32"), C: T.Tensor((8, size, 256), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((size, 256), "float32")
            for i in T.Pipelined(8, num_stages=3):
                T.copy(A[i, :, :], s)
                for r, x in T.Parallel(size, 256):
                    C[i, r, x] = s[size - 1 - r, x]
    """
    kernel = compiled(text, arch, size=size)
    (loop,) = kernel.pipelines
    assert (loop.wanted, loop.stages, loop.reason, loop.groups) == (3, 1, reason, ())
    a = np.random.default_rng(0).integers(-8, 9, (8, size, 256)).astype(np.float32)
    c = np.zeros_like(a)
    kernel(a, c)
    np.testing.assert_array_equal(c, a[:, ::-1])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ('order=["first"]', "`order` of `T.Pipelined` is a list of integers and holds `'first'`"),
        ("stage=[0, None]", "`stage` of `T.Pipelined` is a list of integers and holds `None`"),
        ("stage=3", "`stage` of `T.Pipelined` is a list"),
        ("order=[0, 1], stage=[0]", "2 entries of `order` and 1 of `stage`"),
        ("num_stages=-1", "`num_stages` of `T.Pipelined` is 0 or more"),
        ("num_stages=n", "known only when the kernel runs"),
    ],
)
def test_a_mistaken_schedule_is_refused_at_its_line(options, problem):
    text = (
        HEAD
        + f"        for i in T.Pipelined(n, {options}):\n            T.copy(A[i, :], s)\n            T.copy(s, C[i, :])\n"
    )
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    (found,) = cell.diagnostics
    assert (found.code, found.span.line) == ("TL004", 8) and problem in found.message
