"""`order`, `stage` and `group` of T.Pipelined are for the statements of its loop: TL004 at the list that is for others."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

TEXT = """
@T.macro
def both(A, s, t, i):
    T.copy(A[i, 0], s)
    T.copy(A[15 - i, 0], t)

@T.prim_func
def k(A: T.Tensor((16, 64), "float32"), C: T.Tensor((16, 64), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        t = T.alloc_shared((64,), "float32")
        for i in T.Pipelined(8, {options}):
            {copies}
            for x in T.Parallel(64):
                C[i, x] = s[63 - x] * t[x]
"""
COPIES = "T.copy(A[i, 0], s); T.copy(A[15 - i, 0], t)"
MACRO = "both(A, s, t, i)"
BOUND = "j = i + 0 * i; T.copy(A[j, 0], s); T.copy(A[15 - j, 0], t)"
NESTED = "if True:\n                T.copy(A[i, 0], s)\n            T.copy(A[15 - i, 0], t)"
ACCEPTED = {
    "one each": ("order=[0, 1, 2], stage=[0, 0, 1]", COPIES),
    "copies of another engine": ("order=[-1, -1, 0], stage=[-1, -1, 0]", COPIES),
    "a tuple": ("num_stages=2, stage=(0, 0, 1)", COPIES),
    "statements of a macro": ("order=[0, 1, 2], stage=[0, 0, 1]", MACRO),
    "a compile-time if": ("order=[0, 1, 2], stage=[0, 0, 1]", NESTED),
    "a name does not count": ("order=[0, 1, 2], stage=[0, 0, 1]", BOUND),
    "a name counts": ("order=[0, 1, 2, 3], stage=[0, 0, 0, 1]", BOUND),
    "groups": ("order=[-1, 0], stage=[-1, 0], group=[[0, 1], [2]]", COPIES),
    "empty lists": ("order=[], stage=[], num_stages=2", COPIES),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_schedules_for_the_statements_of_the_loop(name: str) -> None:
    options, copies = ACCEPTED[name]
    cell = tilelang_nb.compile_cell(TEXT.format(options=options, copies=copies), {}, target="sim")
    assert cell.ok, cell.to_text()
    a, c = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((16, 64), np.float32)
    cell.namespace["k"](a, c)
    np.testing.assert_array_equal(c[:8], a[:8, ::-1] * a[:7:-1])


REFUSED = {
    "too few": ("order=[0, 1], stage=[0, 1]", COPIES, "`order` of `T.Pipelined` has 2 entries, and its loop 3 statements", "[0, 1]"),
    "too many": ("order=[0, 1, 2, 3]", COPIES, "`order` of `T.Pipelined` has 4 entries, and its loop 3 statements", "[0, 1, 2, 3]"),
    "stage alone": ("num_stages=2, stage=[0]", COPIES, "`stage` of `T.Pipelined` has 1 entry, and its loop 3 statements", "[0]"),
    "one for a macro": ("order=[0, 1]", MACRO, "has 2 entries, and its loop 3 statements", "[0, 1]"),
    "a statement that there is not": ("order=[0, 1], group=[[0, 1], [3]]", COPIES, "names statement 3, and its loop has 3", "[[0, 1], [3]]"),
    "a statement twice": ("order=[0, 1], group=[[0, 1], [1, 2]]", COPIES, "names statement 1 twice", "[[0, 1], [1, 2]]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_schedules_for_other_statements_are_refused_at_the_list(name: str) -> None:
    options, copies, problem, under = REFUSED[name]
    text = TEXT.format(options=options, copies=copies)
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    (found,) = cell.diagnostics
    assert found.code == "TL004" and problem in found.message
    line = text.splitlines()[found.span.line - 1]
    assert line[found.span.column : found.span.end_column] == under
    assert "leave" in found.help or "one of its lists" in found.help


def test_a_loop_with_a_mistake_is_not_counted() -> None:
    text = TEXT.format(options="order=[0, 1, 2]", copies=COPIES.replace("T.copy(A[15", "T.copi(A[15"))
    assert [one.code for one in tilelang_nb.compile_cell(text, {}, target="sim").diagnostics] == ["TL003"]
