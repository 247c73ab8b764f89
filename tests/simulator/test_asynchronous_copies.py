"""cp.async: data that lands at the wait, and what a missing wait, commit or barrier looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulator.nodes import (
    address,
    barrier,
    buffer,
    evaluate,
    i32,
    launch,
    load,
    loop,
    ptx,
    shared,
    store,
    tir,
    u32,
    var,
    when,
)
from simulator.running import clean, found, run


def copy(target: Any, source: Any, size: int, *count: Any, line: int | None = None, **options: Any) -> Any:
    cache = "cg" if size == 16 else "ca"
    return evaluate(ptx[f"cp.async.{cache}.shared.global"](target, source, size, *count, **options), line)


def commit() -> Any:
    return evaluate(ptx.cp.async_.commit_group())


def wait(allowed: int, line: int | None = None) -> Any:
    return evaluate(ptx.cp.async_.wait_group(allowed), line)


THREADS = 32


def shifted(statements: Any, elements: int = 4, dtype: str = "float32") -> Any:
    """O[t, :] = s[(t + 1) % threads, :] after `statements(a, s, t)`."""
    a, o = buffer("A", (THREADS, elements), dtype), buffer("O", (THREADS, elements), dtype)
    s = shared("s", (THREADS, elements), dtype)

    def body(t: Any, _: Any) -> list[Any]:
        i = var("i")
        return [*statements(a, s, t), loop(i, elements, store(o, load(s, (t + 1) % THREADS, i), t, i, line=9), line=9)]

    return launch([a, o], body, threads=THREADS, allocate=[s])


def arrays(elements: int = 4, dtype: Any = np.float32) -> dict[str, np.ndarray]:
    a = np.arange(1, THREADS * elements + 1).reshape(THREADS, elements).astype(dtype)
    return {"A": a, "O": np.zeros_like(a)}


@pytest.mark.parametrize(("size", "elements"), [(4, 1), (8, 2), (16, 4)])
def test_a_copy_has_landed_after_its_wait(size, elements):
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        return [copy(address(s, t, i32(0)), address(a, t, i32(0)), size), commit(), wait(0), barrier()]

    given = arrays(elements)
    np.testing.assert_array_equal(clean(shifted(statements, elements), given)["O"], np.roll(given["A"], -1, 0))


def test_without_a_wait_the_old_data_are_read_and_both_lines_are_told():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        fill = [store(s, tir.const(-1.0, "float32"), t, i32(i)) for i in range(4)]
        return [*fill, barrier(), copy(address(s, t, i32(0)), address(a, t, i32(0)), 16, line=3), commit(), barrier()]

    result, report = run(shifted(statements), arrays())
    assert (result["O"] == -1).all()
    (finding,) = report.findings
    assert (finding.code, finding.span.line, finding.notes[0].span.line) == ("TL401", 9, 3)
    assert "asynchronous copy" in finding.message and "T.ptx_wait_group" in finding.help


def test_a_wait_does_not_see_copies_that_no_group_holds():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        return [copy(address(s, t, i32(0)), address(a, t, i32(0)), 16, line=3), wait(0), barrier()]

    assert found(shifted(statements), arrays()) == [("TL401", 9, (3,))]


def test_waiting_without_a_barrier_shows_the_data_to_the_own_thread_only():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        return [copy(address(s, t, i32(0)), address(a, t, i32(0)), 16, line=3), commit(), wait(0)]

    assert found(shifted(statements), arrays()) == [("TL401", 9, (3,))]


@pytest.mark.parametrize(("allowed", "landed"), [(0, 2), (1, 1), (2, 0)])
def test_as_many_groups_as_allowed_stay_under_way(allowed, landed):
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        result = []
        for group in range(2):
            result += [copy(address(s, t, i32(group)), address(a, t, i32(group)), 4), commit()]
        return [*result, wait(allowed), barrier()]

    given = arrays(2)
    result, report = run(shifted(statements, 2), given)
    expected = np.roll(given["A"], -1, 0)
    expected[:, landed:] = 0
    np.testing.assert_array_equal(result["O"], expected)
    assert bool(report.findings) == (landed < 2)


def test_bytes_beyond_the_count_are_zero_and_are_not_read():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        row = tir.Select(t < 8, t, t + 1000)
        count = tir.Select(t < 8, u32(8), u32(0))
        return [copy(address(s, t, i32(0)), address(a, row, i32(0)), 16, count), commit(), wait(0), barrier()]

    given = arrays()
    expected = given["A"].copy()
    expected[:, 2:], expected[8:] = 0, 0
    np.testing.assert_array_equal(clean(shifted(statements), given)["O"], np.roll(expected, -1, 0))


def test_a_copy_under_a_predicate_is_made_by_the_threads_that_have_it():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        fill = [store(s, tir.const(-1.0, "float32"), t, i32(i)) for i in range(4)]
        moved = copy(address(s, t, i32(0)), address(a, t, i32(0)), 16, pred=t < 8)
        again = when(t >= 24, copy(address(s, t, i32(0)), address(a, t, i32(0)), 16))
        return [*fill, barrier(), moved, again, commit(), wait(0), barrier()]

    given = arrays()
    expected = given["A"].copy()
    expected[8:24] = -1
    np.testing.assert_array_equal(clean(shifted(statements), given)["O"], np.roll(expected, -1, 0))


def test_a_copy_may_be_made_by_some_of_the_blocks():
    a, o = buffer("A", (2, THREADS, 4), "float32"), buffer("O", (2, THREADS, 4), "float32")
    s = shared("s", (THREADS, 4), "float32")

    def body(t: Any, b: Any) -> list[Any]:
        i = var("i")
        fill = [store(s, tir.const(0.0, "float32"), t, i32(column)) for column in range(4)]
        moved = when(b < 1, copy(address(s, t, i32(0)), address(a, b, t, i32(0)), 16))
        back = loop(i, 4, store(o, load(s, (t + 1) % THREADS, i), b, t, i))
        return [*fill, barrier(), moved, commit(), wait(0), barrier(), back]

    kernel = launch([a, o], body, threads=THREADS, blocks=2, allocate=[s])
    given = np.stack([arrays()["A"], arrays()["A"]])
    expected = np.roll(given, -1, 1)
    expected[1] = 0
    np.testing.assert_array_equal(clean(kernel, {"A": given, "O": np.zeros_like(given)})["O"], expected)


def test_a_copy_beyond_the_end_of_its_source_is_found():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        return [copy(address(s, t, i32(0)), address(a, t + 1, i32(0)), 16, line=3), commit(), wait(0), barrier()]

    assert ("TL402", 3, ()) in found(shifted(statements), arrays())


def test_an_address_that_is_no_multiple_of_the_size_is_found():
    def statements(a: Any, s: Any, t: Any) -> list[Any]:
        return [copy(address(s, t, i32(0)), address(a, t, i32(1)), 8, line=3), commit(), wait(0), barrier()]

    assert ("TL402", 3, ()) in found(shifted(statements, 2), arrays(2))


def test_a_copy_over_what_others_still_read_is_a_race():
    a, o = buffer("A", (32, 4), "float32"), buffer("O", (32,), "float32")
    s = shared("s", (32, 4), "float32")

    def body(t: Any, _: Any) -> list[Any]:
        first = [store(s, tir.const(1.0, "float32"), t, i32(i)) for i in range(4)]
        return [
            *first,
            barrier(),
            store(o, load(s, (t + 1) % 32, i32(0)), t, line=5),
            copy(address(s, t, i32(0)), address(a, t, i32(0)), 16, line=6),
            commit(),
            wait(0),
        ]

    kernel = launch([a, o], body, threads=32, allocate=[s])
    arguments = {"A": np.zeros((32, 4), np.float32), "O": np.zeros(32, np.float32)}
    assert found(kernel, arguments) == [("TL401", 6, (5,))]


def test_a_ring_of_stages_is_clean():
    """Three stages, one group for each: the loop waits for its own stage and refills the one before."""
    stages, turns = 3, 8
    a, o = buffer("A", (turns, 128), "float32"), buffer("O", (turns, 128), "float32")
    s = shared("s", (stages, 128), "float32")

    def fetch(k: Any, slot: Any, t: Any) -> Any:
        return copy(address(s, slot, t * 4), address(a, k, t * 4), 16)

    def body(t: Any, _: Any) -> list[Any]:
        k, i = var("k"), var("i")
        start = [part for first in range(stages - 1) for part in (fetch(i32(first), i32(first), t), commit())]
        following = k + (stages - 1)
        turn = [
            wait(stages - 2),
            barrier(),
            when(following < turns, fetch(following, following % stages, t)),
            commit(),
            loop(i, 4, store(o, load(s, k % stages, (t * 4 + i + 7) % 128), k, t * 4 + i)),
        ]
        return [*start, loop(k, turns, *turn)]

    kernel = launch([a, o], body, threads=32, allocate=[s])
    given = np.arange(turns * 128, dtype=np.float32).reshape(turns, 128)
    result = clean(kernel, {"A": given, "O": np.zeros_like(given)})["O"]
    np.testing.assert_array_equal(result, np.roll(given, -7, 1))
