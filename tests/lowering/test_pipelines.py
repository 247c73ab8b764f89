"""T.Pipelined gives what the serial loop gives, whatever its body depends on; and copies that may run ahead do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

from tilelang_nb.runtime.kernel import SimulatorFindings

STAGES = [1, 2, 3, 4]


def ran(text: str, arguments: dict[str, Any], **names: Any) -> tuple[Any, dict[str, Any]]:
    """(kernel, arguments after the run); no findings."""
    kernel = compiled(text, **names)
    mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
    kernel(*mine.values())
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    return kernel, mine


def runs_ahead(kernel: Any) -> bool:
    return "wait_group" in thread_text(kernel)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("stages", STAGES)
def test_sum_of_tiles_for_any_number_of_turns(stages, turns):
    text = """
    @T.prim_func
    def k(A: T.Tensor((rows, 128), "float32"), C: T.Tensor((128,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            T.clear(c)
            for i in T.Pipelined(n, num_stages=stages):
                T.copy(A[i, :], s)
                for j in T.Parallel(128):
                    c[j] += s[127 - j] * (i + 1)
            T.copy(c, C)
    """
    a = numbers(max(turns, 1), 128)
    kernel, got = ran(text, {"A": a, "C": np.zeros(128, np.float32), "n": turns}, rows=len(a), stages=stages)
    assert runs_ahead(kernel) == (stages > 1)
    np.testing.assert_array_equal(got["C"], (a[:turns, ::-1] * np.arange(1, turns + 1)[:, None]).sum(0))


@pytest.mark.parametrize("stages", STAGES)
def test_edges_are_filled_with_zeros(stages):
    text = """
    @T.prim_func
    def k(A: T.Tensor((44, 100), "float16"), B: T.Tensor((100, 56), "float16"), C: T.Tensor((44, 56), "float32")):
        with T.Kernel(1, threads=64) as bx:
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(100, 32), num_stages=stages):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, c)
            T.copy(c, C[0, 0])
    """
    a, b = numbers(44, 100).astype(np.float16), numbers(100, 56, seed=1).astype(np.float16)
    _, got = ran(text, {"A": a, "B": b, "C": np.zeros((44, 56), np.float32)}, stages=stages)
    np.testing.assert_array_equal(got["C"], a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("start", "stop"), [(2, 9), (5, 6), (7, 3)])
def test_loops_that_do_not_start_at_zero(stages, start, stop):
    text = """
    @T.prim_func
    def k(A: T.Tensor((9, 64), "float32"), C: T.Tensor((9, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(start, stop, num_stages=stages):
                T.copy(A[i, :], s)
                for j in T.Parallel(64):
                    C[i, j] = s[63 - j]
    """
    a = numbers(9, 64)
    expected = np.zeros_like(a)
    expected[start:stop] = a[start:stop, ::-1]
    _, got = ran(text, {"A": a, "C": np.zeros_like(a)}, start=start, stop=stop, stages=stages)
    np.testing.assert_array_equal(got["C"], expected)


HEAD = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), I: T.Tensor((8,), "int32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            v = T.alloc_var("int32", init=0)
            T.clear(s)
"""


def body_of(case: str, stages: Any) -> str:
    loop = f"for i in T.Pipelined(8, num_stages={stages}):"
    return HEAD + "\n".join("            " + line.replace("LOOP", loop) for line in case.strip("\n").splitlines())


def reversed_rows(a: np.ndarray) -> np.ndarray:
    return a[:, ::-1]


def test_a_tile_that_is_read_before_it_is_overwritten_keeps_the_turn_before():
    case = """
LOOP
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
    T.copy(A[i, :], s)
"""
    a = numbers(8, 64)
    expected = np.concatenate([np.zeros((1, 64), np.float32), a[:-1, ::-1]])
    check(case, a, expected, ahead=False)


def test_two_copies_into_one_tile():
    case = """
LOOP
    T.copy(A[i, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
    T.copy(A[7 - i, :], s)
    for j in T.Parallel(64):
        C[i, j] += s[j]
"""
    a = numbers(8, 64)
    check(case, a, a[:, ::-1] + a[::-1], ahead=False)


def test_a_source_that_the_loop_updates_in_place():
    case = """
LOOP
    T.copy(A[i, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
    if i < 7:
        for j in T.Parallel(64):
            A[i + 1, j] += s[63 - j]
"""
    a = numbers(8, 64)
    rows, expected = a.copy(), np.zeros_like(a)
    for i in range(8):
        expected[i] = rows[i, ::-1]
        if i < 7:
            rows[i + 1] += rows[i, ::-1]
    check(case, a, expected, ahead=False)


def test_a_source_that_the_loop_updates_by_atomics():
    case = """
LOOP
    T.copy(A[i, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
    for j in T.Parallel(64):
        T.atomic_add(A[T.min(i + 1, 7), j], 1.0)
"""
    a = numbers(8, 64)
    expected = a[:, ::-1] + np.array([[0], *[[1]] * 7], np.float32)
    check(case, a, expected, ahead=False)


def test_atomics_stay_in_their_turn():
    case = """
t = T.alloc_shared((64,), "float32")
LOOP
    T.copy(A[i, :], t)
    for j in T.Parallel(64):
        T.atomic_add(C[0, j], t[63 - j])
"""
    a = numbers(8, 64)
    expected = np.zeros_like(a)
    expected[0] = a[:, ::-1].sum(0)
    check(case, a, expected, ahead=True)


def test_a_copy_under_a_condition_leaves_the_tile_as_it_was():
    case = """
LOOP
    if i % 3 == 0:
        T.copy(A[i, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
"""
    a = numbers(8, 64)
    check(case, a, a[[0, 0, 0, 3, 3, 3, 6, 6], ::-1], ahead=False)


def test_a_use_under_a_condition():
    case = """
LOOP
    T.copy(A[i, :], s)
    if i % 3 == 0:
        for j in T.Parallel(64):
            C[i, j] = s[63 - j]
"""
    a = numbers(8, 64)
    expected = np.zeros_like(a)
    expected[::3] = a[::3, ::-1]
    check(case, a, expected, ahead=None)


def test_rows_chosen_by_a_table():
    case = """
LOOP
    T.copy(A[I[i], :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
"""
    a = numbers(8, 64)
    check(case, a, a[TABLE, ::-1], ahead=None)


def test_rows_chosen_by_a_table_that_the_loop_changes():
    case = """
LOOP
    T.copy(A[I[i], :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
    if i < 7:
        I[i + 1] = 7 - i
"""
    a = numbers(8, 64)
    check(case, a, a[[TABLE[0], 7, 6, 5, 4, 3, 2, 1], ::-1], ahead=False)


def test_rows_chosen_by_a_variable_that_the_loop_changes():
    case = """
LOOP
    T.copy(A[v, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
    v = (v + 3) % 8
"""
    a = numbers(8, 64)
    check(case, a, a[[0, 3, 6, 1, 4, 7, 2, 5], ::-1], ahead=False)


def test_a_row_number_that_is_computed_in_the_turn():
    case = """
LOOP
    r = (i * 3) % 8
    T.copy(A[r, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
"""
    a = numbers(8, 64)
    check(case, a, a[[0, 3, 6, 1, 4, 7, 2, 5], ::-1], ahead=None)


def test_a_tile_that_is_used_after_the_loop():
    case = """
LOOP
    T.copy(A[i, :], s)
    for j in T.Parallel(64):
        C[i, j] = s[63 - j]
for j in T.Parallel(64):
    C[0, j] = s[63 - j]
"""
    a = numbers(8, 64)
    expected = a[:, ::-1].copy()
    expected[0] = a[7, ::-1]
    check(case, a, expected, ahead=False)


TABLE = [3, 1, 4, 1, 5, 2, 6, 0]


def check(case: str, a: np.ndarray, expected: np.ndarray, ahead: bool | None) -> None:
    """The same for any number of stages; ahead: whether the copy runs ahead (None: may be either)."""
    for stages in STAGES:
        arguments = {"A": a, "I": np.array(TABLE, np.int32), "C": np.zeros_like(a)}
        kernel, got = ran(body_of(case, stages), arguments)
        np.testing.assert_array_equal(got["C"], expected)
        assert ahead is None or runs_ahead(kernel) == (ahead and stages > 1)


@pytest.mark.parametrize("stages", STAGES)
def test_two_loops_may_share_their_tiles(stages):
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(4, num_stages=stages):
                T.copy(A[i, :], s)
                for j in T.Parallel(64):
                    C[i, j] = s[63 - j]
            for i in T.Pipelined(4, num_stages=2):
                T.copy(A[7 - i, :], s)
                for j in T.Parallel(64):
                    C[7 - i, j] = s[63 - j]
    """
    a = numbers(8, 64)
    kernel, got = ran(text, {"A": a, "C": np.zeros_like(a)}, stages=stages)
    assert runs_ahead(kernel) == (stages > 1)
    np.testing.assert_array_equal(got["C"], a[:, ::-1])


@pytest.mark.parametrize("stages", STAGES)
def test_a_pipeline_inside_a_loop_over_tiles(stages):
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32"), n: T.int32):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            c = T.alloc_fragment((64,), "float32")
            for t in T.serial(n):
                T.clear(c)
                for i in T.Pipelined(t + 1, num_stages=stages):
                    T.copy(A[i, :], s)
                    for j in T.Parallel(64):
                        c[j] += s[63 - j]
                T.copy(c, C[t, :])
    """
    a = numbers(8, 64)
    _, got = ran(text, {"A": a, "C": np.zeros_like(a), "n": 8}, stages=stages)
    np.testing.assert_array_equal(got["C"], a[:, ::-1].cumsum(0))


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("dtype", "rest"), [("float16", ""), ("float32", "T.annotate_safe_value({A: 5.0})")])
def test_copies_that_convert_or_have_a_safe_value(stages, dtype, rest):
    text = f"""
    @T.prim_func
    def k(A: T.Tensor((30, 64), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            {rest or "pass"}
            s = T.alloc_shared((8, 64), "{dtype}")
            c = T.alloc_fragment((64,), "float32")
            T.clear(c)
            for i in T.Pipelined(4, num_stages=stages):
                T.copy(A[i * 8, 0], s)
                for r in T.serial(8):
                    for j in T.Parallel(64):
                        c[j] += s[r, 63 - j]
            T.copy(c, C)
    """
    a = numbers(30, 64)
    _, got = ran(text, {"A": a, "C": np.zeros(64, np.float32)}, stages=stages)
    np.testing.assert_array_equal(got["C"], a[:, ::-1].sum(0) + (10 if rest else 0))


def test_the_copies_of_a_turn_are_waited_for_together():
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            t = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(8, num_stages=3):
                T.copy(A[i, :], s)
                T.copy(B[i, :], t)
                for j in T.Parallel(64):
                    C[i, j] = s[63 - j]
                for j in T.Parallel(64):
                    C[i, j] = C[i, j] * t[63 - j]
    """
    a, b = numbers(8, 64), numbers(8, 64, seed=1)
    kernel, got = ran(text, {"A": a, "B": b, "C": np.zeros_like(a)})
    np.testing.assert_array_equal(got["C"], (a * b)[:, ::-1])
    waits = [line.strip() for line in thread_text(kernel).splitlines() if "wait_group" in line]
    assert waits == ["T.ptx.cp.async_.wait_group(1)"]


def test_a_schedule_by_hand_says_how_many_turns_are_under_way():
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(8, order=[0, 1], stage=[0, 2]):
                T.copy(A[i, :], s)
                for j in T.Parallel(64):
                    C[i, j] = s[63 - j]
    """
    a = numbers(8, 64)
    kernel, got = ran(text, {"A": a, "C": np.zeros_like(a)})
    assert runs_ahead(kernel) and "(3, 64)" in thread_text(kernel)
    np.testing.assert_array_equal(got["C"], a[:, ::-1])


def test_stages_that_shared_memory_cannot_hold_are_left_out():
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 4096), "float32"), C: T.Tensor((8, 4096), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((4096,), "float32")
            t = T.alloc_shared((4096,), "float32")
            for i in T.Pipelined(8, num_stages=4):
                T.copy(A[i, :], s)
                T.copy(A[7 - i, :], t)
                for j in T.Parallel(4096):
                    C[i, j] = s[4095 - j] + t[j]
    """
    a = numbers(8, 4096)
    kernel, got = ran(text, {"A": a, "C": np.zeros_like(a)}, arch="sm_86")
    assert "(3, 4096)" in thread_text(kernel)  # 96 of 99 KiB
    (decision,) = [one for one in kernel.build().lowered.decisions if one.subject == "pipeline"]
    assert (decision.value, decision.line) == ("3 stages of s, t", 7) and "4 stages" in decision.reason
    np.testing.assert_array_equal(got["C"], a[:, ::-1] + a[::-1])


def test_stages_make_room_for_tiles_that_the_compiler_adds():
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 4096), "float32"), C: T.Tensor((8, 4096), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((4096,), "float32")
            f = T.alloc_fragment((4096,), "float32")
            for i in T.Pipelined(8, num_stages=6):
                T.copy(A[i, :], s)
                T.copy(s, f)
                T.cumsum(f)
                T.copy(f, C[i, :])
    """
    a = numbers(8, 4096)
    kernel, got = ran(text, {"A": a, "C": np.zeros_like(a)}, arch="sm_86")
    assert "(4, 4096)" in thread_text(kernel)  # sums over threads go from one shared tile to another
    np.testing.assert_array_equal(got["C"], a.cumsum(1))


def test_without_asynchronous_copies_the_loop_is_serial():
    text = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(8, num_stages=3):
                T.copy(A[i, :], s)
                for j in T.Parallel(64):
                    C[i, j] = s[63 - j]
    """
    a = numbers(8, 64)
    kernel, got = ran(text, {"A": a, "C": np.zeros_like(a)}, arch="sm_75")
    assert not runs_ahead(kernel)
    np.testing.assert_array_equal(got["C"], a[:, ::-1])


BY_HAND = """
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((2, 64), "float32")
            T.async_copy(A[0, :], s[0, :])
            for i in T.serial(8):
                if i < 7:
                    T.async_copy(A[i + 1, :], s[(i + 1) % 2, :])
                    {first}
                else:
                    {last}
                for j in T.Parallel(64):
                    C[i, j] = s[i % 2, 63 - j]
"""


def test_copies_and_waits_by_hand():
    a = numbers(8, 64)
    text = BY_HAND.format(first="T.ptx_wait_group(1)", last="T.ptx_wait_group(0)")
    kernel, got = ran(text, {"A": a, "C": np.zeros_like(a)})
    assert "T.ptx.cp.async_.ca.shared" in thread_text(kernel)
    np.testing.assert_array_equal(got["C"], a[:, ::-1])


def test_a_wait_too_few_by_hand_is_found_with_both_lines():
    a = numbers(8, 64)
    kernel = compiled(BY_HAND.format(first="T.ptx_wait_group(2)", last="T.ptx_wait_group(1)"))
    with pytest.warns(SimulatorFindings):
        kernel(a, np.zeros_like(a))
    places = {(finding.code, finding.span.line, finding.notes[0].span.line) for finding in kernel.findings}
    assert ("TL401", 14, 9) in places
    assert all("asynchronous copy" in finding.message for finding in kernel.findings)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("stages", STAGES)
def test_attention_with_two_products_in_a_turn(stages, causal):
    text = """
    @T.prim_func
    def k(Q: T.Tensor((n, 64), "float16"), K: T.Tensor((n, 64), "float16"), V: T.Tensor((n, 64), "float16"),
          O: T.Tensor((n, 64), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=128) as bx:
            Q_s = T.alloc_shared((64, 64), "float16")
            K_s = T.alloc_shared((32, 64), "float16")
            V_s = T.alloc_shared((32, 64), "float16")
            s = T.alloc_fragment((64, 32), "float32")
            p = T.alloc_fragment((64, 32), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64,), "float32")
            row = T.alloc_fragment((64,), "float32")
            T.copy(Q[bx * 64, 0], Q_s)
            T.clear(o)
            T.clear(total)
            blocks = T.min(T.ceildiv(n, 32), T.ceildiv((bx + 1) * 64, 32)) if causal else T.ceildiv(n, 32)
            for k in T.Pipelined(blocks, num_stages=stages):
                T.copy(K[k * 32, 0], K_s)
                T.clear(s)
                T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(64, 32):
                    hidden = k * 32 + j >= n
                    if causal:
                        hidden = hidden or k * 32 + j > bx * 64 + i
                    s[i, j] = T.if_then_else(hidden, 0.0, T.exp(s[i, j] * 0.125))
                T.reduce_sum(s, row, dim=1)
                for i in T.Parallel(64):
                    total[i] += row[i]
                T.copy(s, p)
                T.copy(V[k * 32, 0], V_s)
                T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(64, 64):
                o[i, j] /= total[i]
            T.copy(o, O[bx * 64, 0])
    """
    n = 152
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((n, 64)).astype(np.float16) for _ in range(3))
    arguments = {"Q": q, "K": k, "V": v, "O": np.zeros((n, 64), np.float32)}
    kernel, got = ran(text, arguments, n=n, causal=causal, stages=stages)
    assert "T.ptx.mma" in thread_text(kernel) and "p = T.alloc_local" in thread_text(kernel)
    weights = np.exp(q.astype(np.float64) @ k.astype(np.float64).T * 0.125)
    if causal:
        weights = np.tril(weights)
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(got["O"], expected, atol=2e-3)


def test_warp_groups_have_pipelines_of_their_own():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 32), "float16"), C: T.Tensor((2, 64, 32), "float32")):
        with T.Kernel(1, threads=256) as bx:
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 32), "float16")
            A_t = T.alloc_shared((64, 32), "float16")
            B_t = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            d = T.alloc_fragment((64, 32), "float32")
            with T.ws(0):
                T.clear(c)
                for k in T.Pipelined(4, num_stages=3):
                    T.copy(A[0, k * 32], A_s)
                    T.copy(B[k * 32, 0], B_s)
                    T.gemm(A_s, B_s, c)
                T.copy(c, C[0, :, :])
            with T.ws(1):
                T.clear(d)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[0, (3 - k) * 32], A_t)
                    T.copy(B[(3 - k) * 32, 0], B_t)
                    T.gemm(A_t, B_t, d)
                T.copy(d, C[1, :, :])
    """
    a, b = numbers(64, 128).astype(np.float16), numbers(128, 32, seed=1).astype(np.float16)
    kernel, got = ran(text, {"A": a, "B": b, "C": np.zeros((2, 64, 32), np.float32)})
    for half in got["C"]:
        np.testing.assert_array_equal(half, a.astype(np.float32) @ b.astype(np.float32))
    assert "T.sync_threads()" not in thread_text(kernel)  # each group waits for its own threads


def test_the_bounds_of_a_pipeline_may_stand_in_memory_of_the_thread():
    """Work is dealt in pieces of uneven length, as a stream-k product deals it."""
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 32), "float16"), C: T.Tensor((3, 64, 32), "float32")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            start = T.alloc_local((1,), "int32")
            end = T.alloc_local((1,), "int32")
            start[0] = 0
            while start[0] < 8:
                end[0] = T.min(start[0] + 3, 8)
                T.clear(c)
                for k in T.Pipelined(end[0] - start[0], num_stages=2):
                    T.copy(A[0, (start[0] + k) * 32], A_s)
                    T.copy(B[(start[0] + k) * 32, 0], B_s)
                    T.gemm(A_s, B_s, c)
                T.copy(c, C[start[0] // 3, :, :])
                start[0] = end[0]
    """
    a, b = numbers(64, 256).astype(np.float16), numbers(256, 32, seed=1).astype(np.float16)
    kernel, got = ran(text, {"A": a, "B": b, "C": np.zeros((3, 64, 32), np.float32)})
    for part in range(3):
        piece = slice(part * 96, min(part * 96 + 96, 256))
        np.testing.assert_array_equal(got["C"][part], a[:, piece].astype(np.float32) @ b[piece].astype(np.float32))
    assert "T.ptx.cp.async_" in thread_text(kernel)
