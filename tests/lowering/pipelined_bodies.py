"""Bodies of T.Pipelined loops of every kind.

Each case is the text of a loop over rows and a Python function that does the same; `ahead` says whether some copy runs
ahead from two stages on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROWS, WIDTH = 16, 64
TABLE = np.array([3, 1, 4, 1, 5, 2, 6, 0, 7, 7, 3, 2, 1, 0, 5, 6], np.int32)
HEAD = """
@T.prim_func
def k(A: T.Tensor((16, 64), "float32"), I: T.Tensor((16,), "int32"), C: T.Tensor((16, 64), "float32"), n: T.int32):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((64,), "float32")
        t = T.alloc_shared((64,), "float32")
        u = T.alloc_shared((2, 64), "float32")
"""


@dataclass(frozen=True)
class Case:
    text: str
    python: Callable[[np.ndarray, np.ndarray, np.ndarray, int], None]
    ahead: bool


def turned(a: np.ndarray) -> np.ndarray:
    return a[..., ::-1]


def _continue(a, i, c, n):
    for k in range(n):
        if k % 3 != 1:
            c[k] = turned(a[k])


def _continue_between_groups(a, i, c, n):
    for k in range(n):
        c[k] = turned(a[k])
        if i[k] % 2 == 0:
            c[k] += turned(a[15 - k])


def _continue_in_inner_loops(a, i, c, n):
    for k in range(n):
        if i[k] % 2 == 1:
            if i[k] % 3 == 1:
                continue
            c[k] += 1
        c[k] += 2 * turned(a[k])


def _break(a, i, c, n):
    for k in range(n):
        if i[k] == 2:
            break
        c[k] = turned(a[k])
    c[15] = 3


def _break_then_another(a, i, c, n):
    for k in range(n):
        c[k] = turned(a[k])
        if i[k] == 2:
            break
    for k in range(n):
        c[k] += a[15 - k]


def _break_between_copies(a, i, c, n):
    for k in range(n):
        if i[k] == 2:
            break
        c[k] = turned(a[k]) + a[15 - k]


def _nested(a, i, c, n):
    for k in range(4):
        for j in range(n):
            c[k] += turned(a[j]) * a[k]


def _nested_with_one_tile(a, i, c, n):
    for k in range(4):
        c[k] += turned(a[k])
        for j in range(n):
            c[k] += turned(a[j])


def _in_a_compile_time_loop(a, i, c, n):
    for factor in (1, 2, 3):
        for k in range(n):
            c[k] += turned(a[k]) * factor


def _around_a_compile_time_loop(a, i, c, n):
    for k in range(n // 2):
        c[k] += turned(a[2 * k]) + 2 * turned(a[2 * k + 1])


def _rows_from_a_table(a, i, c, n):
    for k in range(n):
        c[k] += turned(a[i[i[k]]])


def _rows_from_a_copied_table(a, i, c, n):
    for k in range(4):
        c[k] += turned(a[i[4 * k + 1]])


def _copies_in_both_branches(a, i, c, n):
    for k in range(n):
        c[k] += turned(a[k if k % 2 == 0 else 15 - k])


def _rows_of_a_mask(a, i, c, n):
    for k in range(n):
        if i[k] % 2 == 1:
            c[k] += turned(a[i[k]]) + a[15 - k]
        c[k] += 1


def _two_conditions(a, i, c, n):
    for k in range(n):
        c[k] += turned(a[k])
        if k % 2 == 0:
            c[k] += turned(a[15 - k])
        else:
            c[k] += 2


def _condition_of_the_loop(a, i, c, n):
    total = 0
    for k in range(n):
        if total % 3 == 0:
            c[k] += turned(a[k])
        total += i[k]


def _tile_kept_from_an_earlier_turn(a, i, c, n):
    last = np.zeros(WIDTH, np.float32)
    for k in range(n):
        if k % 3 == 0:
            last = a[k]
        c[k] += turned(last)


def _copy_by_elements(a, i, c, n):
    for k in range(n):
        c[k] += turned(a[k])


def _three_loops(a, i, c, n):
    for k in range(n):
        c[k] += turned(a[k]) * a[15 - k]
    for k in range(3):
        c[k] += turned(a[k])
    for k in range(n):
        c[k] += turned(a[k])


def _under_a_condition(a, i, c, n):
    if n > 3:
        _copy_by_elements(a, i, c, n)


def _tile_changed_in_place(a, i, c, n):
    for k in range(n):
        c[k] += 2 * turned(a[k])


def _reduction(a, i, c, n):
    for k in range(n):
        c[k] = a[k] + a[k].sum()


def _recurrence(a, i, c, n):
    for k in range(n - 1):
        c[k + 1] = turned(a[k]) + c[k]


def _part_of_a_tile(a, i, c, n):
    for k in range(n):
        c[k, 32:] = turned(a[k, :32])


def _inner_loop(a, i, c, n):
    for k in range(n):
        for q in range(2):
            c[k] += turned(a[(k + q) % 16])


def _inner_while(a, i, c, n):
    for k in range(n):
        c[k] += 3 * turned(a[k])


def _accumulated_scalar(a, i, c, n):
    total = 0
    for k in range(n):
        total += i[k]
        c[k] += turned(a[k]) * total


def _row_from_the_turns_before(a, i, c, n):
    total = 0
    for k in range(n):
        c[k] += turned(a[total % 16])
        total += i[k]


def _over_the_edge(a, i, c, n):
    for k in range(min(n, 9)):
        rows = np.zeros((2, WIDTH), np.float32)
        for r in range(2):
            if 0 <= 2 * k - 1 + r < ROWS:
                rows[r, : WIDTH - 4] = a[2 * k - 1 + r, 4:]
        c[k] += 2 * turned(rows[0]) + rows[1]


def _schedule_by_hand(a, i, c, n):
    for k in range(n):
        c[k] += turned(a[k]) * a[15 - k]


def _atomics(a, i, c, n):
    for k in range(n):
        c[i[k]] += turned(a[k])


USE = "for x in T.Parallel(64):\n        C[i, x] += s[63 - x]"
CASES = {
    "continue": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            if i % 3 == 1:
                continue
            for x in T.Parallel(64):
                C[i, x] = s[63 - x]
        """, _continue, True,
    ),
    "continue before the copy": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            if i % 3 == 1:
                continue
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                C[i, x] = s[63 - x]
        """, _continue, False,
    ),
    "continue between two groups": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            T.copy(A[15 - i, :], t)
            for x in T.Parallel(64):
                C[i, x] = s[63 - x]
            if I[i] % 2 == 1:
                continue
            for x in T.Parallel(64):
                C[i, x] += t[63 - x]
        """, _continue_between_groups, True,
    ),
    "continue in conditions and inner loops": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            if I[i] % 2 == 1:
                if I[i] % 3 == 1:
                    continue
                for x in T.Parallel(64):
                    C[i, x] += 1.0
            for q in range(3):
                if q == 1:
                    continue
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x]
        """, _continue_in_inner_loops, True,
    ),
    "break": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            if I[i] == 2:
                break
            for x in T.Parallel(64):
                C[i, x] = s[63 - x]
        for x in T.Parallel(64):
            t[x] = 3.0
        for x in T.Parallel(64):
            C[15, x] = t[63 - x]
        """, _break, True,
    ),
    "break before another loop over the tile": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                C[i, x] = s[63 - x]
            if I[i] == 2:
                break
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[15 - i, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[x]
        """, _break_then_another, True,
    ),
    "break between two copies": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            if I[i] == 2:
                break
            T.copy(A[15 - i, :], t)
            for x in T.Parallel(64):
                C[i, x] = s[63 - x] + t[x]
        """, _break_between_copies, True,
    ),
    "nested pipelines": Case(
        """
        for i in T.Pipelined(4, num_stages=STAGES):
            T.copy(A[i, :], t)
            for j in T.Pipelined(n, num_stages=STAGES):
                T.copy(A[j, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x] * t[x]
        """, _nested, True,
    ),
    "nested pipelines over one tile": Case(
        """
        for i in T.Pipelined(4, num_stages=STAGES):
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
            for j in T.Pipelined(n, num_stages=STAGES):
                T.copy(A[j, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x]
        """, _nested_with_one_tile, False,
    ),
    "a pipeline in a compile-time loop": Case(
        """
        for factor in [1, 2, 3]:
            for i in T.Pipelined(n, num_stages=STAGES):
                T.copy(A[i, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x] * factor
        """, _in_a_compile_time_loop, True,
    ),
    "a compile-time loop in a pipeline": Case(
        """
        for i in T.Pipelined(n // 2, num_stages=STAGES):
            for row in [0, 1]:
                T.copy(A[2 * i + row, :], u[row, :])
            for row in [0, 1]:
                for x in T.Parallel(64):
                    C[i, x] += u[row, 63 - x] * (row + 1)
        """, _around_a_compile_time_loop, False,
    ),
    "a compile-time loop over one tile": Case(
        """
        for i in T.Pipelined(n // 2, num_stages=STAGES):
            for row in [0, 1]:
                T.copy(A[2 * i + row, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x] * (row + 1)
        """, _around_a_compile_time_loop, False,
    ),
    "rows from a table": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            r = I[I[i]]
            T.copy(A[r, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _rows_from_a_table, True,
    ),
    "rows from a table that is copied too": Case(
        """
        rows = T.alloc_shared((4,), "int32")
        for i in T.Pipelined(4, num_stages=STAGES):
            T.copy(I[4 * i:4 * i + 4], rows)
            T.copy(A[rows[1], :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _rows_from_a_copied_table, True,
    ),
    "copies in both branches": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            if i % 2 == 0:
                T.copy(A[i, :], s)
            else:
                T.copy(A[15 - i, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _copies_in_both_branches, False,
    ),
    "copies under a condition from a table": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            if I[i] % 2 == 1:
                T.copy(A[I[i], :], s)
                row = 15 - i
                T.copy(A[row, :], t)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x] + t[x]
            for x in T.Parallel(64):
                C[i, x] += 1.0
        """, _rows_of_a_mask, True,
    ),
    "one copy under a condition, one under none": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
            if i % 2 == 0:
                T.copy(A[15 - i, :], t)
                for x in T.Parallel(64):
                    C[i, x] += t[63 - x]
            else:
                for x in T.Parallel(64):
                    C[i, x] += 2.0
        """, _two_conditions, True,
    ),
    "a condition that the loop changes": Case(
        """
        total = 0
        for i in T.Pipelined(n, num_stages=STAGES):
            if total % 3 == 0:
                T.copy(A[i, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x]
            total = total + I[i]
        """, _condition_of_the_loop, False,
    ),
    "a tile that is kept from an earlier turn": Case(
        """
        T.clear(s)
        for i in T.Pipelined(n, num_stages=STAGES):
            if i % 3 == 0:
                T.copy(A[i, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _tile_kept_from_an_earlier_turn, False,
    ),
    "a copy by elements": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            for x in T.Parallel(64):
                s[x] = A[i, x]
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _copy_by_elements, False,
    ),
    "three loops over two tiles": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            T.copy(A[15 - i, :], t)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x] * t[x]
        for i in T.Pipelined(3, num_stages=STAGES + 1):
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], t)
            for x in T.Parallel(64):
                C[i, x] += t[63 - x]
        """, _three_loops, True,
    ),
    "a pipeline under a condition": Case(
        """
        if n > 3:
            for i in T.Pipelined(n, num_stages=STAGES):
                T.copy(A[i, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x]
        """, _under_a_condition, True,
    ),
    "a tile that is changed in place": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                s[x] = s[x] * 2
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _tile_changed_in_place, False,
    ),
    "a reduction of the tile": Case(
        """
        f = T.alloc_fragment((64,), "float32")
        r = T.alloc_fragment((1,), "float32")
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            T.copy(s, f)
            T.reduce_sum(f, r, dim=0)
            for x in T.Parallel(64):
                C[i, x] = f[x] + r[0]
        """, _reduction, True,
    ),
    "a source that the turn before writes": Case(
        """
        for i in T.Pipelined(n - 1, num_stages=STAGES):
            T.copy(A[i, :], s)
            T.copy(C[i, :], t)
            for x in T.Parallel(64):
                C[i + 1, x] = s[63 - x] + t[x]
        """, _recurrence, True,
    ),
    "a part of the tile": Case(
        """
        T.clear(s)
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, 0:32], s[0:32])
            for x in T.Parallel(64):
                C[i, x] = s[63 - x]
        """, _part_of_a_tile, False,
    ),
    "an inner loop with its own copy": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            for q in T.serial(2):
                T.copy(A[(i + q) % 16, :], s)
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x]
        """, _inner_loop, False,
    ),
    "an inner while": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            q = 0
            while q < 3:
                for x in T.Parallel(64):
                    C[i, x] += s[63 - x]
                q = q + 1
        """, _inner_while, True,
    ),
    "a scalar that goes through the turns": Case(
        """
        total = 0
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            total = total + I[i]
            for x in T.Parallel(64):
                C[i, x] += s[63 - x] * total
        """, _accumulated_scalar, True,
    ),
    "a row from the turns before": Case(
        """
        total = 0
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[total % 16, :], s)
            total = total + I[i]
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _row_from_the_turns_before, False,
    ),
    "tiles over every edge": Case(
        """
        for i in T.Pipelined(T.min(n, 9), num_stages=STAGES):
            T.copy(A[2 * i - 1, 4], u)
            for x in T.Parallel(64):
                C[i, x] += u[0, 63 - x] * 2 + u[1, x]
        """, _over_the_edge, True,
    ),
    "a schedule by hand": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES, order=[-1, 0, 1], stage=[-1, 0, 1]):
            T.copy(A[i, :], s)
            T.copy(A[15 - i, :], t)
            for x in T.Parallel(64):
                C[i, x] += s[63 - x] * t[x]
        """, _schedule_by_hand, True,
    ),
    "atomics": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.copy(A[i, :], s)
            for x in T.Parallel(64):
                T.atomic_add(C[I[i], x], s[63 - x])
        """, _atomics, True,
    ),
    "copies by hand": Case(
        """
        for i in T.Pipelined(n, num_stages=STAGES):
            T.async_copy(A[i, :], s)
            T.ptx_wait_group(0)
            T.sync_threads()
            for x in T.Parallel(64):
                C[i, x] += s[63 - x]
        """, _copy_by_elements, False,
    ),
}  # fmt: skip


def text_of(case: Case, stages: int) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(case.text).replace("STAGES", str(stages)), " " * 8)
