"""Kernels as a user writes them: what they compute on threads, and what is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest
from lowering.cells import build, run, script


def cell(
    body: str, parameters: str = 'A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")', threads: int = 64
) -> str:
    lines = ["@T.prim_func", f"def k({parameters}):", f"    with T.Kernel(1, threads={threads}) as bx:"]
    return "\n".join([*lines, *("        " + line for line in body.strip("\n").split("\n"))])


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 6, 32, 48, 128])
def test_atomics_of_a_replicated_loop_count_once(threads):
    a, out = floats(8), np.zeros(2, np.float32)
    text = cell(
        """
f = T.alloc_fragment((8,), "float32")
T.copy(A, f)
for i in T.Parallel(8):
    T.atomic_add(B[0], f[i])
for i in T.Parallel(8):
    B[1] = 3.0
""",
        'A: T.Tensor((8,), "float32"), B: T.Tensor((2,), "float32")',
        threads,
    )
    run(text, A=a, B=out)
    assert out.tolist() == [a.sum(), 3.0]


def test_old_values_of_atomics_reach_the_fragment_once():
    out, order = np.zeros(1, np.int32), np.full(8, -1, np.int32)
    text = cell(
        """
f = T.alloc_fragment((8,), "int32")
for i in T.Parallel(8):
    f[i] = T.atomic_add(A[0], 1, return_prev=True)
T.copy(f, B)
""",
        'A: T.Tensor((1,), "int32"), B: T.Tensor((8,), "int32")',
        32,
    )
    run(text, A=out, B=order)
    assert out[0] == 8 and sorted(order.tolist()) == list(range(8))


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("f = T.alloc_fragment((64,), 'float32')\nT.clear(f)\nif T.get_thread_binding(0) < 32:\n    T.copy(f, B)", 7),
        ("if T.get_thread_binding(0) < 32:\n    for i in T.Parallel(64):\n        B[i] = A[i]", 5),
        (
            "m = T.alloc_fragment((8,), 'float32')\nT.clear(m)\nfor i, j in T.Parallel(8, 8):\n    m[i] += A[i + j]",
            7,
        ),
        ("m = T.alloc_fragment((8,), 'float32')\nfor i, j in T.Parallel(8, 8):\n    m[i] = A[i * 8 + j]", 6),
        ("f = T.alloc_fragment((4,), 'float32')\nf[0] = A[T.get_thread_binding(0)]", 5),
        ("f = T.alloc_fragment((4,), 'float32')\nif T.get_thread_binding(0) == 0:\n    f[0] = 1.0", 6),
        ("for i in T.Parallel(T.get_thread_binding(0)):\n    B[i] = A[i]", 4),
        ("s = T.alloc_shared((4,), 'float32')\nT.copy(A[T.get_thread_binding(0)], s)\nT.copy(s, B[0:4])", 5),
        ("for i in T.Parallel(64):\n    f = T.alloc_fragment((4,), 'float32')\n    f[0] = A[i]\n    B[i] = f[0]", 5),
    ],
)
def test_what_no_layout_serves_is_refused_where_it_stands(body, line):
    assert build(cell(body)).errors == [("TL210", line)]


def test_a_loop_that_leaves_its_fragment_is_refused():
    text = "f = T.alloc_fragment((32,), 'float32')\nT.clear(f)\nfor i in T.Parallel(64):\n    B[i] = f[i]"
    assert build(cell(text)).errors == [("TL202", 7)]
    guarded = text.replace("f[i]", "T.if_then_else(i < 32, f[i], 1.0)")
    b = np.zeros(64, np.float32)
    run(cell(guarded), A=floats(64), B=b)
    assert (b == np.repeat([0, 1], 32)).all()


def test_a_fragment_read_backwards_goes_through_shared_memory():
    a, b = floats(64), np.zeros(64, np.float32)
    text = "f = T.alloc_fragment((64,), 'float32')\nT.copy(A, f)\nfor i in T.Parallel(64):\n    B[i] = f[63 - i] + f[i]"
    kernel = run(cell(text), A=a, B=b)
    assert (b == a[::-1] + a).all()
    assert kernel.lowered.layouts == {} and "f" in {one.name for one in kernel.lowered.shared_memory}


def test_a_small_fragment_read_at_any_place_stays_in_registers():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
t = T.alloc_fragment((4,), "float32")
for k in T.serial(4):
    t[k] = A[k]
for i in T.Parallel(64):
    B[i] = t[(i * 7) % 4]
"""
    kernel = run(cell(text), A=a, B=b)
    assert (b == a[np.arange(64) * 7 % 4]).all()
    assert kernel.lowered.layouts["t"].is_uniform


def test_a_copy_inside_one_tile_reads_all_before_it_writes():
    a, b = floats(64), np.zeros(64, np.float32)
    run(cell("s = T.alloc_shared((64,), 'float32')\nT.copy(A, s)\nT.copy(s[0:63], s[1:64])\nT.copy(s, B)"), A=a, B=b)
    assert (b == np.concatenate([a[:1], a[:63]])).all()


def test_per_thread_arrays_are_filled_by_their_thread():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
t = T.get_thread_binding(0)
x = T.alloc_local((4,), "float32")
T.clear(x)
T.copy(A[t * 4], x)
for k in T.serial(4):
    B[t * 4 + k] = x[k] * 2.0
y = T.alloc_local((2, 2), "float32")
for i, j in T.Parallel(2, 2):
    y[i, j] = T.cast(i * 2 + j, "float32")
B[t * 4] = B[t * 4] + y[1, 1]
"""
    run(cell(text, threads=16), A=a, B=b)
    expected = a * 2
    expected[::4] += 3
    assert (b == expected).all()


def test_vectorized_loops_keep_their_order():
    a = floats(64)
    expected = a.copy()
    for i in range(7):
        expected[i + 1] = expected[i] + 1
    run(cell("for i in T.vectorized(7):\n    A[i + 1] = A[i] + 1.0", threads=1), A=a, B=np.zeros(64, np.float32))
    assert (a == expected).all()


@pytest.mark.parametrize("n", [0, 1, 50, 64])
def test_parallel_over_a_length_known_at_run_time(n):
    a, b = floats(64), np.zeros(64, np.float32)
    parameters = 'A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), n: T.int32'
    run(cell("for i, j in T.Parallel(n, 1):\n    B[i] = A[i + j] + 1.0", parameters, 32), A=a, B=b, n=n)
    assert (b[:n] == a[:n] + 1).all() and (b[n:] == 0).all()


def test_loops_inside_parallel_loops():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
for i in T.Parallel(8):
    x = 0.0
    for k in T.serial(8):
        if A[i * 8 + k] > 5.0:
            continue
        x = x + A[i * 8 + k]
    n = 0
    while n * n < i:
        n += 1
    B[i] = x
    for j in T.Parallel(2):
        B[8 + i * 2 + j] = T.cast(n, "float32")
"""
    run(cell(text, threads=32), A=a, B=b)
    m = a.reshape(8, 8)
    assert (b[:8] == np.where(m > 5, 0, m).sum(1)).all()
    assert (b[8:24] == np.repeat(np.ceil(np.sqrt(np.arange(8))), 2)).all()


def test_continue_in_a_parallel_loop_skips_what_follows_it():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
for i in T.Parallel(64):
    if A[i] > 0.0:
        if A[i] > 4.0:
            continue
        B[i] = 1.0
    else:
        if A[i] < -4.0:
            continue
    B[i] = B[i] + 2.0
    if i > 50:
        continue
    B[i] = B[i] + 4.0
"""
    run(cell(text), A=a, B=b)
    expected = np.zeros(64, np.float32)
    for i, value in enumerate(a):
        if value > 4 or value < -4:
            continue
        expected[i] = (1 if value > 0 else 0) + 2 + (4 if i <= 50 else 0)
    assert (b == expected).all()


def test_reshaped_fragments_and_tiles():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
f = T.alloc_fragment((64,), "float32")
s = T.alloc_shared((64,), "float32")
T.copy(A, f)
g = T.reshape(f, (8, 8))
for i, j in T.Parallel(8, 8):
    g[i, j] = g[i, j] + 1.0
T.copy(f, s)
u = T.reshape(s, (4, 16))
for i, j in T.Parallel(4, 16):
    B[i * 16 + j] = u[i, j] * 2.0
"""
    run(cell(text), A=a, B=b)
    assert (b == (a + 1) * 2).all()


def test_a_fragment_seen_as_another_type():
    a, b = floats(64), np.zeros(64, np.int32)
    text = "f = T.alloc_fragment((64,), 'float32')\nT.copy(A, f)\ng = T.view(f, (64,), 'int32')\nT.copy(g, B)"
    run(cell(text, 'A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int32")'), A=a, B=b)
    assert (b == a.view(np.int32)).all()


def test_warp_groups_work_on_their_own_tiles():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
f = T.alloc_fragment((32,), "float32")
g = T.alloc_fragment((32,), "float32")
with T.ws(0):
    T.copy(A[0:32], f)
    for i in T.Parallel(32):
        f[i] = f[i] + 1.0
    T.copy(f, B[0:32])
with T.ws(1):
    for i in T.Parallel(32):
        g[i] = A[32 + i] * 2.0
    T.copy(g, B[32:64])
"""
    kernel = run(cell(text, threads=256), A=a, B=b)
    assert (b == np.concatenate([a[:32] + 1, a[32:] * 2])).all()
    assert kernel.lowered.layouts["f"].threads == 128


def test_two_launches_with_a_workspace():
    a, b = floats(64), np.zeros(64, np.float32)
    text = """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    w = T.alloc_global((64,), "float32")
    with T.Kernel(2, threads=32) as bx:
        for i in T.Parallel(32):
            w[bx * 32 + i] = A[bx * 32 + i] + 1.0
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(64):
            B[i] = w[63 - i]
"""
    kernel = run(text, A=a, B=b)
    assert (b == a[::-1] + 1).all() and len(kernel.lowered.launches) == 2


@pytest.mark.parametrize("turns", [1, 2])
def test_a_loop_of_one_turn_is_guarded_at_an_edge_that_the_launch_decides(turns):
    a, b = floats(2), np.full(4, 7, np.float32)
    text = f"""
n = T.dynamic("n")
@T.prim_func
def k(A: T.Tensor((n,), "float32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel({turns}):
            B[i] = A[i + 3]
            B[i + 2] = A[i + 1]
"""
    run(text, A=a, B=b)
    assert b[0] == 0 and b[2] == a[1]


def test_guards_fall_away_where_they_are_proven_needless():
    text = cell("for i in T.Parallel(64):\n    B[i] = A[i]")
    assert "if " not in script(build(text)).split("launch_thread")[-1]


def test_a_guard_of_the_text_makes_ours_needless():
    text = """
n = T.dynamic("n")
@T.prim_func
def k(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        for i in T.Parallel(64):
            if bx * 64 + i < n:
                B[bx * 64 + i] = A[bx * 64 + i]
"""
    after = script(build(text)).split("launch_thread")[-1]
    assert after.count("if ") == 1 and "if_then_else" not in after


def test_reads_before_writes_are_warned_of_once():
    text = """
s = T.alloc_shared((64,), "float32")
f = T.alloc_fragment((64,), "float32")
for i in T.Parallel(64):
    B[i] = s[i]
    f[i] += A[i]
for i in T.Parallel(64):
    B[i] = f[i] + s[i]
"""
    assert build(cell(text)).warnings == [("TL211", 7), ("TL211", 8)]


def test_every_statement_of_the_thread_program_has_a_place():
    import tvm_ffi
    from tvm import tirx as tir

    text = """
s = T.alloc_shared((64,), "float32")
T.copy(A, s)
f = T.alloc_fragment((64,), "float32")
for i in T.Parallel(64):
    f[i] = s[63 - i]
    if f[i] > 0.0:
        B[i] = f[i]
"""
    kernel = build(cell(text))
    lines = []
    tvm_ffi.structural_walk(
        kernel.lowered.launches[0].body, (tir.BufferStore, lambda store: lines.append(store.span and store.span.line))
    )
    assert sorted(set(lines)) == [5, 8, 10]


def test_one_thread_gets_everywhere():
    """What it computes in an iteration of a parallel loop is known to all threads of its block."""
    a, b = floats(8), np.zeros(8, np.float32)
    text = """
own = T.alloc_local((1,), "float32")
for i in T.Parallel(8):
    own[0] = A[i]
if own[0] > -100.0:
    for i in T.Parallel(8):
        B[i] = A[i] + 1.0
"""
    run(cell(text, threads=1), A=a, B=b)
    assert (b == a + 1).all()
