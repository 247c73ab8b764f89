"""Turns that barriers of the versions order: the results are those of the text, every wait is needed, no barrier of the
block is left in a turn, and warps that drift apart do not disturb each other.
"""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES, changed, dropped, lowered
from lowering.hopper import attention as attention_of
from lowering.hopper import matmul as matmul_of
from lowering.test_random_pipelines import text as random_text
from lowering.test_warp_groups_in_step import LEFT as IN_STEP
from tvm import tirx as tir

import tilelang_nb
from tilelang_nb.lowering import lower
from tilelang_nb.lowering.own_names import with_own_names
from tilelang_nb.lowering.rewrite import sequence, statements
from tilelang_nb.simulator import Program

OPTION = "tl.turns_by_mbarriers"
KINDS = (True, "together", "behind")
STAGES = (2, 3, 4)


def case(text: str, arguments: dict[str, Any], kind: Any = True, arch: str = "sm_90", **names: Any) -> Any:
    cell = tilelang_nb.compile_cell(textwrap.dedent(text), dict(names), target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch=arch, options={OPTION: kind})
    assert not [one for one in found.diagnostics if one.severity == "error"], found.diagnostics
    return SimpleNamespace(lowered=found, launch=found.launches[0], arguments=arguments)


def run(one: Any, launch: Any = None) -> tuple[dict[str, Any], Any]:
    """(arguments after the run, report)"""
    mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in one.arguments.items()}
    return mine, Program(launch or one.launch, checks=True).run(mine)


def clean(one: Any, launch: Any = None) -> dict[str, Any]:
    got, report = run(one, launch)
    assert not report.findings, [str(finding) for finding in report.findings]
    return got


def printed(one: Any) -> str:
    return str(one.launch)


def is_ordered(one: Any) -> bool:
    """Do barriers of the versions order a loop?"""
    return "full[" in printed(one)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def drifting(launch: Any, first: int = 0) -> Any:
    """The launch with its two halves of 128 threads as strands of their own; the first of them runs on until it waits."""

    def visit(node: Any) -> Any:
        if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
            if str(node.node.thread_tag) == "threadIdx.x":
                assert int(node.value) == 256
                parts, low = statements(node.body), node.node.var < 128
                begun = 1 + next(at for at, one in enumerate(parts) if "storage_sync" in str(one))
                rest = sequence(parts[begun:])
                halves = tir.IfThenElse(tir.Not(low) if first else low, rest, with_own_names(rest))
                body = sequence([*parts[:begun], halves])
                return tir.AttrStmt(node.node, node.attr_key, node.value, body, node.span)
            return tir.AttrStmt(node.node, node.attr_key, node.value, visit(node.body), node.span)
        raise AssertionError("a launch begins with its axes")

    return launch.with_body(visit(launch.body))


SUM = """
    @T.prim_func
    def k(A: T.Tensor((rows, 128), "float32"), C: T.Tensor((128,), "float32"), n: T.int32):
        with T.Kernel(1, threads=threads) as bx:
            s = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            T.clear(c)
            for i in T.Pipelined(n, num_stages=stages):
                T.copy(A[i, :], s)
                for j in T.Parallel(128):
                    c[j] += s[127 - j] * (i + 1)
            T.copy(c, C)
"""


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("threads", [32, 128])
def test_any_number_of_turns(threads, stages, turns):
    a = numbers(9, 128)
    arguments = {"A": a, "C": np.zeros(128, np.float32), "n": turns}
    one = case(SUM, arguments, rows=len(a), stages=stages, threads=threads)
    assert is_ordered(one) and "wait_group" not in printed(one)
    assert printed(one).count("storage_sync") + printed(one).count("sync_threads") <= 1  # behind the barriers' start
    expected = (a[:turns, ::-1] * np.arange(1, turns + 1)[:, None]).sum(0)
    np.testing.assert_array_equal(clean(one)["C"], expected)


AGAIN = """
    @T.prim_func
    def k(A: T.Tensor((12, 128), "float32"), C: T.Tensor((128,), "float32"), n: T.int32, times: T.int32):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            t = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            T.clear(c)
            for time in T.serial(times):
                if time % 3 != 1:
                    for i in T.Pipelined(FIRST, n + time, num_stages=stages):
                        T.copy(A[i, :], s)
                        T.copy(A[11 - i, :], t)
                        for j in T.Parallel(128):
                            c[j] += s[127 - j] * (i + time)
                        for j in T.Parallel(128):
                            c[j] -= t[j ^ 1] * i
            T.copy(c, C)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("n", "times"), [(0, 4), (1, 5), (3, 1), (2, 6), (5, 0)])
@pytest.mark.parametrize("first", [0, 1])
def test_a_loop_that_runs_again_goes_on_with_the_phases(first, n, times, stages, kind):
    a = numbers(12, 128)
    arguments = {"A": a, "C": np.zeros(128, np.float32), "n": n, "times": times}
    one = case(AGAIN.replace("FIRST", str(first)), arguments, kind, stages=stages)
    assert is_ordered(one) and "wait_group" not in printed(one)
    expected = np.zeros(128, np.float32)
    for time in range(times):
        for i in range(first, n + time) if time % 3 != 1 else ():
            expected += a[i, ::-1] * (i + time) - a[11 - i].reshape(64, 2)[:, ::-1].reshape(-1) * i
    np.testing.assert_array_equal(clean(one)["C"], expected)


CONDITIONS = """
    @T.prim_func
    def k(A: T.Tensor((9, 128), "float32"), C: T.Tensor((128,), "float32"), n: T.int32):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            t = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            T.clear(c)
            if n > 2:
                for i in T.Pipelined(n, num_stages=stages):
                    T.copy(A[i, :], s)
                    if i % 3 == 1:
                        T.copy(A[8 - i, :], t)
                        for j in T.Parallel(128):
                            c[j] += t[127 - j]
                    for j in T.Parallel(128):
                        c[j] += s[j ^ 1] * i
            T.copy(c, C)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("n", [2, 3, 9])
def test_copies_under_conditions(n, stages, kind):
    a = numbers(9, 128)
    one = case(CONDITIONS, {"A": a, "C": np.zeros(128, np.float32), "n": n}, kind, stages=stages)
    assert is_ordered(one)
    expected = np.zeros(128, np.float32)
    for i in range(n if n > 2 else 0):
        expected += a[i].reshape(64, 2)[:, ::-1].reshape(-1) * i + (a[8 - i, ::-1] if i % 3 == 1 else 0)
    np.testing.assert_array_equal(clean(one)["C"], expected)


STAYING = {
    "a turn stores into another tile": "t[tx] = s[127 - tx]\n                c[0] += t[127 - tx]",
    "a break": "c[0] += s[127 - tx]\n                if i == 3:\n                    break",
    "a barrier of the text": "T.sync_threads()\n                c[0] += s[127 - tx]",
}
STAYS = """
    @T.prim_func
    def k(A: T.Tensor((6, 128), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            t = T.alloc_shared((128,), "float32")
            c = T.alloc_local((1,), "float32")
            tx = T.get_thread_binding()
            c[0] = 0
            for i in T.Pipelined(6, num_stages=2):
                T.copy(A[i, :], s)
                BODY
            C[tx] = c[0]
"""


@pytest.mark.parametrize("name", STAYING)
def test_other_loops_stay_as_they_are(name):
    a = numbers(6, 128)
    one = case(STAYS.replace("BODY", STAYING[name]), {"A": a, "C": np.zeros(128, np.float32)})
    assert not is_ordered(one) and "wait_group" in printed(one)
    used = a[:4] if name == "a break" else a
    expected = used.sum(0) if "another tile" in name else used[:, ::-1].sum(0)
    np.testing.assert_array_equal(clean(one)["C"], expected)


def test_a_tile_of_two_loops_stays():
    text = """
    @T.prim_func
    def k(A: T.Tensor((6, 128), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128,), "float32")
            T.clear(c)
            for i in T.Pipelined(6, num_stages=2):
                T.copy(A[i, :], s)
                for j in T.Parallel(128):
                    c[j] += s[127 - j]
            for i in T.Pipelined(6, num_stages=2):
                T.copy(A[5 - i, :], s)
                for j in T.Parallel(128):
                    c[j] += s[j ^ 1] * i
            T.copy(c, C)
    """
    a = numbers(6, 128)
    one = case(text, {"A": a, "C": np.zeros(128, np.float32)})
    assert not is_ordered(one)
    turned = a.reshape(6, 64, 2)[:, :, ::-1].reshape(6, 128)[::-1]
    np.testing.assert_array_equal(clean(one)["C"], a[:, ::-1].sum(0) + (turned * np.arange(6)[:, None]).sum(0))


def test_a_loop_of_some_threads_stays():
    text = """
    @T.prim_func
    def k(A: T.Tensor((6, 128), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256) as bx:
            s = T.alloc_shared((128,), "float32")
            with T.ws(1):
                for i in T.Pipelined(6, num_stages=2):
                    T.copy(A[i, :], s)
                    for j in T.Parallel(128):
                        C[j] += s[127 - j]
    """
    a = numbers(6, 128)
    one = case(text, {"A": a, "C": np.zeros(128, np.float32)})
    assert not is_ordered(one)
    np.testing.assert_array_equal(clean(one)["C"], a[:, ::-1].sum(0))


def test_shared_memory_of_the_loop_serves_again_after_it():
    text = """
    @T.prim_func
    def k(A: T.Tensor((6, 1024), "float32"), C: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((1024,), "float32")
            r = T.alloc_shared((1024,), "float32")
            c = T.alloc_fragment((1024,), "float32")
            T.clear(c)
            for i in T.Pipelined(6, num_stages=2):
                T.copy(A[i, :], s)
                for j in T.Parallel(1024):
                    c[j] += s[1023 - j]
            T.copy(c, r)
            for j in T.Parallel(1024):
                C[j] = r[1023 - j]
    """
    a = numbers(6, 1024)
    one = case(text, {"A": a, "C": np.zeros(1024, np.float32)})
    assert is_ordered(one)
    places = {tile.name: tile.offset for tile in one.lowered.shared_memory}
    assert places["r"] == places["s"]
    np.testing.assert_array_equal(clean(one)["C"], a.sum(0))


# ---- products ----

PRODUCTS = {
    "a step ahead": {"bm": 64, "bn": 64, "bk": 32, "threads": 128, "k": 256},
    "edges": {"bm": 64, "bn": 64, "bk": 32, "threads": 128, "m": 100, "n": 72, "k": 184},
    "two warp groups": {"bm": 128, "bn": 64, "bk": 32, "threads": 256, "n": 64, "k": 320},
    "turned operands": {"bm": 64, "bn": 64, "bk": 48, "threads": 128, "k": 240, "ta": True, "tb": True},
}


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, stages):
    one = matmul_of(**{"m": 128, "n": 128, **PRODUCTS[name]}, stages=stages, options={OPTION: True})
    assert is_ordered(one)
    loop = printed(one)[printed(one).index("for ko in range(") :] if "for ko in range(" in printed(one) else ""
    assert "wait_group" not in loop and loop.count("sync_threads") <= 1  # one for the result, after the loop
    np.testing.assert_array_equal(clean(one)["C"], one.expected)


@pytest.mark.parametrize("turns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stages", STAGES)
def test_products_of_few_turns(stages, turns):
    one = matmul_of(bm=64, bn=64, bk=32, threads=128, m=64, n=64, k=turns * 32, stages=stages, options={OPTION: True})
    assert is_ordered(one) == (turns > stages)  # without copies in a turn it has nothing to wait for
    np.testing.assert_array_equal(clean(one)["C"], one.expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"seq": 320, "bn": 64}, {"stages": 3, "dim": 64, "bn": 64}])
def test_attention(options, kind):
    one = attention_of(**options, options={OPTION: kind})
    assert is_ordered(one)
    np.testing.assert_allclose(clean(one)["C"].astype(np.float64), one.expected, atol=4e-3)


# ---- each wait is needed, and enough ----

WAITED = {"full": "while an asynchronous copy is writing it", "empty": ""}


@pytest.mark.parametrize("barrier", WAITED)
@pytest.mark.parametrize("product", [False, True])
def test_without_a_wait_the_simulated_device_finds_a_race(product, barrier):
    if product:
        one = matmul_of(bm=64, bn=64, bk=32, threads=128, m=64, n=64, k=256, options={OPTION: True})
    else:
        a = numbers(9, 128)
        arguments = {"A": a, "C": np.zeros(128, np.float32), "n": 9}
        one = case(SUM, arguments, rows=9, stages=2, threads=128)
    clean(one)
    _, report = run(one, changed(one.launch, dropped("mbarrier_wait", barrier + "[")))
    assert "TL401" in [finding.code for finding in report.findings]
    assert any(WAITED[barrier] in str(finding) for finding in report.findings)


@pytest.mark.parametrize(("name", "operand"), [("mbarrier_arrive", "empty["), ("cp_async_mbarrier_arrive", "full[")])
def test_without_an_arrival_threads_wait_for_ever_and_it_is_said(name, operand):
    a = numbers(9, 128)
    one = case(SUM, {"A": a, "C": np.zeros(128, np.float32), "n": 9}, rows=9, stages=2, threads=128)
    _, report = run(one, changed(one.launch, dropped(name, operand)))
    assert [finding.code for finding in report.findings] == ["TL405"]


# ---- warps that drift apart ----


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_halves_of_a_block_drift_apart(kind, stages, first):
    cases = [
        attention_of(seq=384, dim=64, bn=64, stages=stages, options={OPTION: kind}),
        matmul_of(m=128, n=64, k=320, bm=128, bn=64, bk=32, threads=256, stages=stages, options={OPTION: kind}),
    ]
    for one in cases:
        assert is_ordered(one)
        got, report = run(one, drifting(one.launch, first))
        assert not report.findings, [str(finding) for finding in report.findings]
        np.testing.assert_allclose(got["C"].astype(np.float64), one.expected, atol=4e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_drifting_halves_need_each_wait(kind):
    one = attention_of(seq=512, dim=64, bn=64, options={OPTION: kind})
    # Where the steps that read a tile start its next copies, all have done so before any waits for the next version.
    barriers = ("full[", "full_1[") if kind is True else ("full[", "empty[")
    for barrier in barriers:
        launch = changed(drifting(one.launch), dropped("mbarrier_wait", barrier))
        _, report = run(one, launch)
        assert report.findings, barrier


# ---- random loops ----


@pytest.mark.filterwarnings("ignore::tilelang_nb.runtime.kernel.SimulatorFindings")
@pytest.mark.parametrize("seed", range(100, 130))
def test_a_random_loop_gives_what_the_serial_one_gives(seed):
    source = random_text(seed)
    for turns in (6, 2):
        results = []
        for stages in (0, 2, 3, 4):
            rng = np.random.default_rng(0)
            arrays = {name: rng.integers(-4, 5, (6, 32)).astype(np.float32) for name in "AB"}
            arrays |= {"I": rng.integers(0, 6, 6).astype(np.int32), "C": np.zeros((6, 32), np.float32), "n": turns}
            got, report = run(case(source, arrays, stages=stages))
            assert {finding.code for finding in report.findings} <= {"TL403"}, source
            results.append([got[name] for name in "ABC"])
        for result in results[1:]:
            for mine, wanted in zip(result, results[0], strict=True):
                np.testing.assert_array_equal(mine, wanted, err_msg=source)


def test_no_option_no_barriers():
    a = numbers(9, 128)
    one = case(SUM, {"A": a, "C": np.zeros(128, np.float32), "n": 9}, False, rows=9, stages=2, threads=128)
    assert not is_ordered(one) and "wait_group" in printed(one)


@pytest.mark.parametrize("engine", ["roles", "in step"])
def test_products_of_warp_groups_stay_as_they_are(engine):
    def text(more: dict[str, Any]) -> str:
        if engine == "roles":
            return printed(matmul_of(options={**ROLES, **more}))
        names = {"narrow": "int8", "given": "int8", "dtype": "float16", "host": "float16", "total": "float32"}
        source = IN_STEP.format(**names, bk=64, threads=128, loop="Pipelined(4, num_stages=2)")
        return str(lowered(source, {**ROLES, **more}).launches[0])

    assert "wgmma" in text({}) and text({}) == text({OPTION: True})
