"""Turns that barriers of their tiles order: the results are those of the text, every wait is needed, no barrier of the
block is left in a turn, and warps that drift apart do not disturb each other.  Other loops stay as they are.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise, takewhile
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES, changed, dropped
from lowering.hopper import attention as attention_of
from lowering.hopper import matmul as matmul_of
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.lowering import lower, turn_barriers
from tilelang_nb.lowering.own_names import with_own_names
from tilelang_nb.lowering.rewrite import sequence, statements
from tilelang_nb.simulator import Program

DISABLE = "tl.disable_turn_barriers"
STAGES = (2, 3, 4)
BN, DIM = 32, 32


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that copy little are ordered by barriers, too: less to simulate."""
    monkeypatch.setattr(turn_barriers, "LEAST", 0)


TEXT = """
@T.prim_func
def k(Q: T.Tensor((BM, DIM), "float16"), K: T.Tensor((keys, DIM), "float16"), V: T.Tensor((keys, DIM), "float16"),
      O: T.Tensor((BM, DIM), "float32"), R: T.Tensor((256,), "int32"), n: T.int32, times: T.int32):
    with T.Kernel(1, threads=threads) as bx:
        Q_s = T.alloc_shared((BM, DIM), "float16")
        K_s = T.alloc_shared((BN, DIM), "float16")
        V_s = T.alloc_shared((BN, DIM), "float16")
        M_s = T.alloc_shared((BN, DIM), "float16")
        W_s = T.alloc_shared((BN, DIM), "float16")
        s = T.alloc_fragment((BM, BN), "float32")
        p = T.alloc_fragment((BM, BN), "float16")
        o = T.alloc_fragment((BM, DIM), "float32")
        T.copy(Q, Q_s)
        T.clear(o)
LOOP
        T.copy(o, O)
"""
TURN = """
for i in T.Pipelined(n, num_stages=stages):
    T.copy(K[i * BN, 0], K_s)
    T.copy(V[i * BN, 0], V_s)
    T.clear(s)
    T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
    T.copy(s, p)
    T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
"""
OTHER = TURN.replace("K_s", "M_s").replace("V_s", "W_s").replace("i * BN", "(turns - 1 - i) * BN")


def indented(text: str, by: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * by)


def case(
    loop: str = TURN, *, n: int = 5, times: int = 1, threads: int = 64, stages: int = 2, turns: int = 9,
    arch: str = "sm_90", options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Sums of products of small integers.  turns: for which there are keys; n, times: arguments."""
    rows = threads // 32 * 16
    names = {"BM": rows, "BN": BN, "DIM": DIM, "keys": turns * BN, "threads": threads, "stages": stages, "turns": turns}
    cell = tilelang_nb.compile_cell(TEXT.replace("LOOP", indented(loop, 8)), names, target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch=arch, options=options or {})
    assert not [one for one in found.diagnostics if one.severity == "error"], found.diagnostics
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-2, 3, (many, DIM)).astype(np.float16) for many in (rows, turns * BN, turns * BN))
    out, more = np.full((rows, DIM), np.nan, np.float32), np.zeros(256, np.int32)
    arguments = {"Q": q, "K": k, "V": v, "O": out, "R": more, "n": n, "times": times}
    wide = [one.astype(np.float32) for one in (q, k.reshape(turns, BN, DIM), v.reshape(turns, BN, DIM))]
    each = [wide[0] @ wide[1][turn].T @ wide[2][turn] for turn in range(turns)]
    return SimpleNamespace(lowered=found, launch=found.launches[0], arguments=arguments, each=each)


def run(one: Any, launch: Any = None) -> tuple[dict[str, Any], Any]:
    """(arguments after the run, report)"""
    mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in one.arguments.items()}
    return mine, Program(launch or one.launch, checks=True).run(mine)


def clean(one: Any, launch: Any = None) -> dict[str, Any]:
    got, report = run(one, launch)
    assert not report.findings, [str(finding) for finding in report.findings]
    return got


def sum_of(one: Any, turns: Any) -> np.ndarray:
    return sum((one.each[turn] for turn in turns), np.zeros_like(one.arguments["O"]))


def printed(one: Any) -> str:
    return str(one.launch)


def order(one: Any) -> list[str]:
    return [str(found) for found in one.lowered.decisions if found.subject == "order of turns"]


def is_ordered(one: Any) -> bool:
    """Do barriers of the tiles order all loops?"""
    ordered = "mbarrier_wait" in printed(one)
    assert ordered == any("by barriers" in found for found in order(one))
    return ordered and not any("of the block" in found for found in order(one))


def turns_of(one: Any) -> str:
    """The text of the loop."""
    lines = printed(one).splitlines()
    start = next(at for at, line in enumerate(lines) if "for i in range(" in line)
    depth = len(lines[start]) - len(lines[start].lstrip())
    return "\n".join(takewhile(lambda line: line.startswith(" " * (depth + 1)), lines[start + 1 :]))


# ---- any number of turns


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("stages", STAGES)
def test_any_number_of_turns(small, stages, turns):
    one = case(n=turns, stages=stages)
    assert is_ordered(one)
    assert "storage_sync" not in turns_of(one) and "wait_group" not in turns_of(one)
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, range(turns)))


@pytest.mark.parametrize("turns", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("stages", [1, *STAGES])
def test_a_number_of_turns_that_the_text_says(small, stages, turns):
    one = case(TURN.replace("(n,", f"({turns},"), stages=stages)
    assert is_ordered(one) == (1 < stages <= turns)
    assert stages == 1 or is_ordered(one) or against(one) == "all of its copies start in front of it"
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, range(turns)))


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("threads", [32, 64, 96, 128, 256])
def test_any_number_of_warps(small, threads, arch):
    options = {**ROLES, "tl.disable_wgmma": True} if arch == "sm_90a" else {}
    one = case(threads=threads, arch=arch, options=options, stages=3)
    assert is_ordered(one) or against(one) == "the block is one warp" and threads == 32
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, range(5)))


# ---- where the loop stands

AGAIN = """
for time in T.serial(times):
    if time % 3 != 1:
        LOOP
"""


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("n", "times"), [(0, 4), (1, 5), (3, 1), (2, 6), (5, 0)])
@pytest.mark.parametrize("first", [0, 1])
def test_a_loop_that_runs_again_goes_on_with_the_phases(small, first, n, times, stages):
    turn = TURN.replace("(n,", f"({first}, n + time,")
    one = case(AGAIN.replace("LOOP", indented(turn, 8).strip()), n=n, times=times, stages=stages)
    assert is_ordered(one)
    every = [turn for time in range(times) if time % 3 != 1 for turn in range(first, n + time)]
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, every))


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("n", [0, 2, 3, 9])
def test_a_loop_under_a_condition(small, n, stages):
    one = case("if n > 2:\n" + indented(TURN, 4), n=n, stages=stages)
    assert is_ordered(one)
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, range(n if n > 2 else 0)))


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("n", [0, 1, 4, 9])
@pytest.mark.parametrize("again", [False, True])
def test_two_loops(small, n, stages, again):
    both = TURN + OTHER.replace("num_stages=stages", "num_stages=2")
    loop = "for time in T.serial(times):\n" + indented(both, 4) if again else both
    one = case(loop, n=n, times=3, stages=stages)
    assert is_ordered(one) and len(order(one)) == 2
    got = clean(one)["O"]
    expected = sum_of(one, range(n)) + sum_of(one, range(9 - n, 9))
    np.testing.assert_array_equal(got, expected * 3 if again else expected)


def test_copies_under_conditions(small):
    keys, values = (f"T.gemm(p, {name}, o, policy=T.GemmWarpPolicy.FullRow)" for name in ("K_s", "V_s"))
    copy = "T.copy(V[i * BN, 0], V_s)"
    some = f"{keys}\n    if i % 3 == 1:\n        {copy}\n        {values}\n    {keys}"
    one = case(TURN.replace(f"    {copy}\n", "").replace(values, some), n=7, stages=3)
    assert is_ordered(one)
    q, k, v = (one.arguments[name].astype(np.float32).reshape(-1, BN, DIM) for name in "QKV")
    s = [q.reshape(-1, DIM) @ k[turn].T for turn in range(7)]
    expected = sum(s[turn] @ (2 * k[turn] + (v[turn] if turn % 3 == 1 else 0)) for turn in range(7))
    np.testing.assert_array_equal(clean(one)["O"], expected)


def test_a_tile_that_is_written_before_the_loop_is_there(small):
    bias = """
    B_s = T.alloc_shared((DIM,), "float32")
    for j in T.Parallel(DIM):
        B_s[j] = j
    LOOP
        for r, j in T.Parallel(BM, DIM):
            o[r, j] += B_s[DIM - 1 - j]
    """
    one = case(textwrap.dedent(bias).replace("LOOP", TURN.strip()), n=4)
    assert is_ordered(one)
    expected = sum_of(one, range(4)) + 4 * np.arange(DIM)[::-1]
    np.testing.assert_array_equal(clean(one)["O"], expected)


def test_shared_memory_of_the_loop_serves_again_after_it(small):
    after = """
    LOOP
    r = T.alloc_shared((BM, DIM), "float32")
    T.copy(o, r)
    for a, b in T.Parallel(BM, DIM):
        o[a, b] = r[a, DIM - 1 - b] * 2
    """
    one = case(textwrap.dedent(after).replace("LOOP", TURN.strip()))
    assert is_ordered(one)
    places = {tile.name: (tile.offset, tile.offset + tile.bytes) for tile in one.lowered.shared_memory}
    assert places["r"][0] < max(places["K_s"][1], places["V_s"][1])
    np.testing.assert_array_equal(clean(one)["O"], 2 * sum_of(one, range(5))[:, ::-1])


# ---- attention


@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"seq": 320, "bn": 64}, {"stages": 3, "dim": 64, "bn": 128, "seq": 512}, {"heads": 3}],
)
def test_attention(options):
    one = attention_of(**options, options={})
    assert is_ordered(one)
    np.testing.assert_allclose(clean(one)["C"].astype(np.float64), one.expected, atol=4e-3)


RAGGED = """
@T.prim_func
def k(Q: T.Tensor((heads, total, dim), "float16"), K: T.Tensor((heads // group, total, dim), "float16"),
      V: T.Tensor((heads // group, total, dim), "float16"), C: T.Tensor((heads, total, dim), "float16"),
      begins: T.Tensor((works + 1,), "int32")):
    with T.Kernel(T.ceildiv(total, BM), heads, works, threads=128) as (bx, by, bz):
        Q_s = T.alloc_shared((BM, dim), "float16")
        K_s = T.alloc_shared((BN, dim), "float16")
        V_s = T.alloc_shared((BN, dim), "float16")
        s = T.alloc_fragment((BM, BN), "float32")
        p = T.alloc_fragment((BM, BN), "float16")
        o = T.alloc_fragment((BM, dim), "float32")
        top = T.alloc_fragment((BM,), "float32")
        before = T.alloc_fragment((BM,), "float32")
        shrink = T.alloc_fragment((BM,), "float32")
        row = T.alloc_fragment((BM,), "float32")
        part = T.alloc_fragment((BM,), "float32")
        begin = begins[bz]
        length = begins[bz + 1] - begin
        if bx * BM < length:
            for i, j in T.Parallel(BM, dim):
                Q_s[i, j] = T.if_then_else(bx * BM + i < length, Q[by, begin + bx * BM + i, j], 0)
            T.clear(o)
            T.clear(row)
            T.fill(top, -1e30)
            for t in T.Pipelined(T.ceildiv(length, BN), num_stages=stages):
                T.copy(K[by // group, begin + t * BN : begin + (t + 1) * BN, :], K_s)
                for i, j in T.Parallel(BM, BN):
                    s[i, j] = T.if_then_else(t * BN + j < length, 0, -1e30)
                T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i in T.Parallel(BM):
                    shrink[i] = T.exp2((before[i] - top[i]) * 0.25)
                for i, j in T.Parallel(BM, BN):
                    s[i, j] = T.exp2((s[i, j] - top[i]) * 0.25)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(BM):
                    row[i] = row[i] * shrink[i] + part[i]
                T.copy(s, p)
                for i, j in T.Parallel(BM, dim):
                    o[i, j] *= shrink[i]
                T.copy(V[by // group, begin + t * BN : begin + (t + 1) * BN, :], V_s)
                T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(BM, dim):
                if bx * BM + i < length:
                    C[by, begin + bx * BM + i, j] = o[i, j] / row[i]
"""


@pytest.mark.parametrize("stages", STAGES)
def test_ragged_sequences_and_heads_that_share_keys(small, stages):
    lengths, heads, group, dim = (70, 3, 64, 130), 4, 2, 32
    names = {"heads": heads, "group": group, "total": sum(lengths), "dim": dim, "works": 4, "BM": 64, "BN": 32}
    cell = tilelang_nb.compile_cell(RAGGED, {**names, "stages": stages}, target="sim", arch="sm_90")
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch="sm_90")
    begins = np.cumsum([0, *lengths]).astype(np.int32)
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((many, sum(lengths), dim)).astype(np.float16) for many in (heads, 2, 2))
    arguments = {"Q": q, "K": k, "V": v, "C": np.full_like(q, np.nan), "begins": begins}
    one = SimpleNamespace(lowered=found, launch=found.launches[0], arguments=arguments)
    assert is_ordered(one)
    got = clean(one)["C"].astype(np.float64)
    for begin, end in pairwise(begins):
        for head in range(heads):
            mine = slice(begin, end)
            keys, values = (array[head // group, mine].astype(np.float64) for array in (k, v))
            scores = q[head, mine].astype(np.float64) @ keys.T * 0.25
            weights = np.exp2(scores - scores.max(-1, keepdims=True))
            expected = weights @ values / weights.sum(-1, keepdims=True)
            np.testing.assert_allclose(got[head, mine], expected, atol=4e-3)


def test_the_chart_and_the_report_have_the_barriers(small):
    one = case(TURN.replace("(n,", "(6,"), stages=3)
    (steps,) = one.lowered.pipelines
    lanes = {lane.name: lane for lane in steps.chart.lanes}
    assert "wait_group" not in lanes and steps.engine == "cp.async"
    assert [cell.text for cell in lanes["full"].cells] == ["[0]", "[1]", "[2]", "[0]", "[1]", "[2]"]
    assert lanes["full"].cells[4].said == "waits at full[1], parity 1, until 4,096 bytes have arrived"
    assert lanes["empty"].cells[0].said == "2 warps arrive at empty[0]: version 0 may be filled again"
    copies = lanes["K_s, V_s"].cells
    assert copies[1].said == "copies K_s, V_s of turn 2, 4,096 bytes"
    assert copies[2].said.endswith(", when the warps have arrived at empty[0]")
    (decision,) = order(one)
    assert decision.startswith("order of turns (line 16): by barriers of each version of K_s, V_s; ")


# ---- loops that stay as they are


STAYING = {
    "a turn writes to shared memory": TURN
    + """
    for j in T.Parallel(DIM):
        M_s[0, j] = j
    for r, j in T.Parallel(BM, DIM):
        o[r, j] += M_s[0, DIM - 1 - j]
""",
    "a turn has a barrier of the text": TURN.replace("T.copy(s, p)", "T.copy(s, p)\n    T.sync_threads()"),
    "a `break` may end the loop": TURN + "    if i == 3:\n        break\n",
    "a thread whose assertion fails ends, and the others would wait for it": TURN + "    T.device_assert(n > 0)\n",
    "its products do not all run by mma.sync": """
x = T.alloc_shared((16, 16), "float32")
y = T.alloc_fragment((16, 16), "float32")
T.clear(x)
T.clear(y)
"""
    + TURN
    + "    T.gemm(x, x, y)\n",
}


def against(one: Any) -> str:
    """Why the block's barrier stays."""
    (found,) = {text.split("; ", 1)[1] for text in order(one)}
    return found


def expected_of(one: Any, name: str) -> np.ndarray:
    more = 5 * np.arange(DIM)[::-1] if "writes" in name else 0
    return sum_of(one, range(4 if "break" in name else 5)) + more


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("name", STAYING)
def test_other_loops_stay_as_they_are_and_it_is_said_why(small, name, stages):
    one, off = case(STAYING[name], stages=stages), case(STAYING[name], stages=stages, options={DISABLE: True})
    assert not is_ordered(one) and against(one) == name
    assert printed(one) == printed(off)
    np.testing.assert_array_equal(clean(one)["O"], expected_of(one, name))


def test_a_tile_of_two_loops_stays(small):
    one = case(TURN + TURN.replace("i * BN", "(8 - i) * BN"))
    assert not is_ordered(one) and len(order(one)) == 2
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, [*range(5), *range(8, 3, -1)]))


def test_a_loop_of_one_product_stays_and_nothing_is_said(small):
    one = matmul_of(bm=64, bn=64, bk=32, threads=128, m=64, n=64, k=256, options={})
    assert "mbarrier" not in printed(one) and not order(one)


def test_a_turn_that_copies_little_stays():
    one = case()
    assert not is_ordered(one) and against(one) == "a turn copies 4,096 bytes; barriers of tiles pay from 24,576 on"
    assert not is_ordered(attention_of(dim=64, bn=64, options={}))
    assert is_ordered(attention_of(dim=64, bn=128, options={})) and is_ordered(attention_of(bn=64, options={}))


def test_older_architectures_and_the_option_keep_the_barrier_of_the_block(small):
    for arch in ("sm_80", "sm_89"):
        one = case(arch=arch)
        assert not is_ordered(one) and against(one) == "waiting at barriers of tiles needs sm_90"
    one = case(options={DISABLE: True})
    assert not is_ordered(one) and against(one) == f"the option `{DISABLE}` says so"


def test_where_no_shared_memory_is_left_the_barrier_of_the_block_stays(small, monkeypatch):
    without = case(options={DISABLE: True})
    needed = max(tile.offset + tile.bytes for tile in without.lowered.shared_memory)
    monkeypatch.setattr(turn_barriers, "shared_memory_limit", lambda arch: needed)
    one = case()
    assert not is_ordered(one) and against(one) == "no shared memory is left for barriers of the tiles"
    np.testing.assert_array_equal(clean(one)["O"], sum_of(one, range(5)))


def test_products_of_roles_are_not_spoken_of():
    one = attention_of(options=ROLES)
    assert "wgmma" in printed(one) and not order(one)


# ---- each wait is needed, and enough


@pytest.mark.parametrize(("barrier", "said"), [("full", "while an asynchronous copy is writing it"), ("empty", "")])
def test_without_a_wait_the_simulated_device_finds_a_race(small, barrier, said):
    one = case(n=9)
    clean(one)
    _, report = run(one, changed(one.launch, dropped("mbarrier_wait", barrier + "[")))
    assert "TL401" in [finding.code for finding in report.findings]
    assert any(said in str(finding) for finding in report.findings)


@pytest.mark.parametrize(("name", "operand"), [("mbarrier_arrive", "empty["), ("cp_async_mbarrier_arrive", "full[")])
def test_without_an_arrival_threads_wait_for_ever_and_it_is_said(small, name, operand):
    one = case(n=9)
    _, report = run(one, changed(one.launch, dropped(name, operand)))
    assert [finding.code for finding in report.findings] == ["TL405"]


@pytest.mark.parametrize("line", ["R[i % 2] = T.get_thread_binding()", "R[0] = R[1] + T.get_thread_binding()"])
def test_a_race_of_the_text_in_such_a_loop_is_found(small, line):
    one = case(TURN + f"    {line}\n")
    assert is_ordered(one)
    _, report = run(one)
    (finding,) = report.findings
    assert finding.code == "TL401" and "elements of `R`" in finding.message.replace("element of", "elements of")
    assert any(note.span is not None and note.span.line == finding.span.line for note in finding.notes)


def test_elements_never_written_are_found_in_such_a_loop(small):
    one = case("M_s[0, 0] = 1\n" + TURN + "    o[0, 0] += M_s[1, 1]\n".replace("o[0, 0]", "R[0]"))
    assert is_ordered(one)
    _, report = run(one)
    assert "TL403" in [finding.code for finding in report.findings]


# ---- warps that drift apart


def drifting(launch: Any, first: int = 0) -> Any:
    """The launch with its two halves of 128 threads as strands of their own; the first of them runs on until it waits."""

    def visit(node: Any) -> Any:
        if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
            if str(node.node.thread_tag) == "threadIdx.x":
                assert int(node.value) == 256
                parts, low = statements(node.body), node.node.var < 128
                waits = next(at for at, one in enumerate(parts) if "mbarrier_wait" in str(one))
                begun = 1 + max(at for at, one in enumerate(parts[:waits]) if "storage_sync" in str(one))
                rest = sequence(parts[begun:])
                halves = tir.IfThenElse(tir.Not(low) if first else low, rest, with_own_names(rest))
                body = sequence([*parts[:begun], halves])
                return tir.AttrStmt(node.node, node.attr_key, node.value, body, node.span)
            return tir.AttrStmt(node.node, node.attr_key, node.value, visit(node.body), node.span)
        raise AssertionError("a launch begins with its axes")

    return launch.with_body(visit(launch.body))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("stages", STAGES)
def test_halves_of_a_block_drift_apart(small, stages, first):
    one = attention_of(seq=384, dim=64, bn=64, stages=stages, options={})
    assert is_ordered(one)
    got, report = run(one, drifting(one.launch, first))
    assert not report.findings, [str(finding) for finding in report.findings]
    np.testing.assert_allclose(got["C"].astype(np.float64), one.expected, atol=4e-3)


@pytest.mark.parametrize("barrier", ["full", "empty"])
def test_drifting_halves_need_each_wait(small, barrier):
    one = attention_of(seq=512, dim=64, bn=64, options={})
    launch = changed(drifting(one.launch), dropped("mbarrier_wait", barrier + "["))
    _, report = run(one, launch)
    assert report.findings
