"""Random layouts by T.annotate_layout, of shared tiles and of fragments: they are taken, and no result depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st
from lowering.products import compiled
from properties.amounts import amount

ROWS, COLUMNS = 16, 32
ROW_BITS, COLUMN_BITS = 4, 5

TEXT = """
@T.prim_func
def k(A: T.Tensor((16, 32), "float32"), B: T.Tensor((16, 32), "float32"), C: T.Tensor((16, 32), "float32"),
      R: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=threads) as bx:
        s = T.alloc_shared((16, 32), "float32")
        f = T.alloc_fragment((16, 32), "float32")
        g = T.alloc_fragment((16, 32), "float32")
        m = T.alloc_fragment((16,), "float32")
        T.annotate_layout({f: first(T), g: second(T), s: order(T)})
        T.copy(A, f)
        T.copy(B, s)
        for i, j in T.Parallel(16, 32):
            g[i, j] = f[i, j] * 2.0 + s[i, 31 - j]
        T.reduce_max(g, m, dim=1)
        for i, j in T.Parallel(16, 32):
            g[i, j] = g[i, j] - m[i]
        T.copy(g, s)
        for i, j in T.Parallel(16, 32):
            C[i, j] = s[15 - i, j]
        T.copy(m, R)
"""


def bit(value: Any, number: int) -> Any:
    return value // 2**number % 2


def fragment(places: list[tuple[str, int]]) -> Any:
    """A `T.Fragment` by where each bit of the index goes: (thread or register, number of the bit there).

    The bits of the column come first, the least significant one at the front.
    """

    def part(kind: str, i: Any, j: Any) -> Any:
        bits = [bit(j, n) for n in range(COLUMN_BITS)] + [bit(i, n) for n in range(ROW_BITS)]
        return sum(value * 2**at for value, (where, at) in zip(bits, places, strict=True) if where == kind)

    return lambda T: T.Fragment(
        (ROWS, COLUMNS), lambda i, j: (part("thread", i, j) + 0 * i, part("register", i, j) + 0 * i)
    )


@st.composite
def places(draw: Any, thread_bits: int) -> list[tuple[str, int]]:
    total = ROW_BITS + COLUMN_BITS
    used = draw(st.integers(2, min(thread_bits, total)))
    chosen = draw(st.permutations(range(total)))[:used]
    slots = draw(st.permutations(range(thread_bits)))
    registers = draw(st.permutations(range(total - used)))
    on_thread, rest = dict(zip(chosen, slots)), iter(registers)
    return [("thread", on_thread[n]) if n in on_thread else ("register", next(rest)) for n in range(total)]


@st.composite
def orders(draw: Any) -> Any:
    """A `T.Layout`: rows with gaps, columns turned or exchanged by the row."""
    pitch = draw(st.integers(COLUMNS, COLUMNS + 9))
    factor, every = draw(st.integers(0, 31)), draw(st.sampled_from([1, 2, 4]))
    kind = draw(st.sampled_from(["turned", "exchanged", "transposed", "swizzled"]))
    if kind == "turned":
        return lambda T: T.Layout((ROWS, COLUMNS), lambda i, j: i * pitch + (j + factor * (i // every)) % COLUMNS)
    if kind == "exchanged":
        return lambda T: T.Layout((ROWS, COLUMNS), lambda i, j: [i, j ^ (factor * (i // every % 2))])
    if kind == "transposed":
        return lambda T: T.Layout((ROWS, COLUMNS), lambda i, j: [j // every, i, j % every])
    chunk = draw(st.sampled_from([2, 4, 8]))
    return lambda T: T.Layout(
        (ROWS, COLUMNS), lambda i, j: (i, (j // chunk ^ i // every % (COLUMNS // chunk)) * chunk + j % chunk)
    )


@given(st.data(), st.sampled_from([32, 64, 128]), orders())
@amount(60, 3000)
def test_results_do_not_depend_on_layouts(data: Any, threads: int, order: Any) -> None:
    bits = threads.bit_length() - 1
    first, second = data.draw(places(bits)), data.draw(places(bits))
    kernel = compiled(TEXT, "sm_80", threads=threads, first=fragment(first), second=fragment(second), order=order)
    rng = np.random.default_rng(threads)
    a, b = (rng.integers(-9, 10, (ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    c, r = np.zeros_like(a), np.zeros(ROWS, np.float32)
    kernel(a, b, c, r)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    g = a * 2 + b[:, ::-1]
    np.testing.assert_array_equal(r, g.max(1))
    np.testing.assert_array_equal(c, (g - g.max(1, keepdims=True))[::-1])
    taken = [one for one in kernel.build().lowered.decisions if one.subject == "layout" and not one.reason]
    event(f"{len(taken)} of 3 layouts taken")
    assert any(one.value.startswith("s ") for one in taken)
    for name, wanted in (("f", first), ("g", second)):
        if any(one.value.startswith(f"{name} ") for one in taken) and kernel.layouts[name].memory == "fragment":
            row, column = 5, 21
            thread = sum(
                (column >> n & 1 if n < COLUMN_BITS else row >> n - COLUMN_BITS & 1) << at
                for n, (where, at) in enumerate(wanted)
                if where == "thread"
            )
            assert thread in kernel.layouts[name].threads(row, column)
