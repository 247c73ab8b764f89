"""Attention on sm_90a with roles: the weights stay in registers between the two products."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from lowering.hopper import ATTENTION, DIRECTLY, ROLES, THROUGH_A_TILE, attention, lowered, run
from tvm import tirx as tir

from tilelang_nb.lowering.hopper.persistent import count_of
from tilelang_nb.lowering.rewrite import variables
from tilelang_nb.simulator import Program

CASES: dict[str, dict[str, Any]] = {
    "heads of 128": {},
    "causal": {"causal": True, "seq": 384},
    "heads of 64": {"dim": 64, "heads": 2},
    "a sequence that is no multiple of the tile": {"seq": 200},
    "ragged and causal": {"seq": 200, "causal": True},
    "narrow blocks of keys": {"bn": 64, "batch": 2},
    "three stages": {"dim": 64, "stages": 3, "seq": 512},
    "float32 result": {"out": "float32"},
    "heads of 256": {"dim": 256, "bn": 64, "seq": 192},
    "results through a tile": {"result": THROUGH_A_TILE, "batch": 2, "heads": 2},
    "ragged results through a tile": {"result": THROUGH_A_TILE, "dim": 64, "seq": 200},
}


@pytest.mark.parametrize("name", CASES)
def test_attention_equals_numpy(name: str) -> None:
    case = attention(**CASES[name])
    products = [one.value for one in case.lowered.decisions if one.subject == "product"]
    assert len(products) == 2 and all(value.startswith("wgmma") for value in products)
    for checks in (False, True):
        result, report = run(case, checks=checks)
        np.testing.assert_allclose(result.astype(np.float64), case.expected, atol=2e-3)
        assert report.findings == (), [str(finding) for finding in report.findings]


SWIZZLED = """O_s = T.alloc_shared((128, {dim}), "{out}")
        T.annotate_layout({{one: T.make_swizzled_layout(one) for one in (Q_s, K_s, V_s, O_s)}})
        T.copy(o, O_s)
        T.copy(O_s, C[bz, bx * 128 : (bx + 1) * 128, by, :])"""


def test_tiles_that_the_text_swizzles_are_those_of_bulk_copies() -> None:
    case = attention(result=SWIZZLED)
    told = {one.value: one.reason for one in case.lowered.decisions if one.subject == "layout"}
    assert set(told) == {f"{tile}_s not as annotated" for tile in "QKVO"}, told
    result, report = run(case)
    np.testing.assert_allclose(result.astype(np.float64), case.expected, atol=2e-3)
    assert calls(case, "wgmma") and report.findings == ()


def calls(case: Any, names: str) -> list[Any]:
    """The calls of instructions whose names begin so, in the order of the program."""
    found: list[Any] = []

    def visit(call: Any) -> None:
        if getattr(call.op, "name", "").startswith(f"tirx.ptx.{names}"):
            found.append(call)

    tvm_ffi.structural_walk(case.launch.body, (tvm.ir.Call, visit))
    return found


def test_a_product_runs_beside_the_softmax_of_the_next_turn() -> None:
    """How many groups of products may run on at each wait."""
    assert [int(call.args[0]) for call in calls(attention(), "wgmma_wait_group")] == [0, 1, 0, 0]


@pytest.mark.parametrize("result", [THROUGH_A_TILE, DIRECTLY])
def test_results_are_stored_by_bulk_copies(result: str) -> None:
    case = attention(result=result)
    assert calls(case, "stmatrix") and "O_s" not in str(case.launch)


@pytest.mark.parametrize(
    "result",
    [
        THROUGH_A_TILE.replace("T.copy(o, O_s)", "T.copy(o, O_s); T.copy(O_s, o)"),  # the tile has another use
        THROUGH_A_TILE.replace("T.copy(o, O_s)", "T.clear(O_s); T.copy(o[0:64, 0:128], O_s[0:64, 0:128])")
        + "\n        T.copy(o, C[bz, bx * 128 : (bx + 1) * 128, by, :])",
    ],
)
def test_a_tile_with_another_use_stays(result: str) -> None:
    case = attention(result=result)
    assert "O_s" in str(case.launch)
    values, report = run(case)
    np.testing.assert_allclose(values.astype(np.float64), case.expected, atol=2e-3)
    assert report.findings == ()


ACCUMULATED = {
    "T.clear(c)": 0,
    "T.fill(c, 1)": 1,
    "T.clear(c[0:64, 0:64])": None,
    "for i, j in T.Parallel(128, 64):\n                c[i, j] = T.if_then_else(bx * 128 + i >= k * 64 + j, 0, 5)": None,
    "if k > 1:\n                T.clear(c)": None,
}
REPEATED = """
@T.prim_func
def k(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 64), "float16"), D: T.Tensor((4, 256, 64), "float32")):
    with T.Kernel(2, threads=256) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((128, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[bx * 128, k * 64], A_s)
            T.copy(B[k * 64, 0], B_s)
            {start}
            T.gemm(A_s, B_s, c)
            T.copy(c, D[k, bx * 128, 0])
"""


def kept(case: Any, held: int) -> set[str]:
    """Variables of the condition under which the first product adds to what its `held` registers hold."""
    return {var.name for var in variables(calls(case, "wgmma_f16_ss")[0].args[held + 2])}


def test_a_product_clears_what_the_text_clears_before_it() -> None:
    """Scores too, where a mask covers none of them; their zeros are written in other turns only."""
    launch = lowered(REPEATED.format(start="T.clear(c)")).launches[0]
    assert kept(SimpleNamespace(launch=launch), 32) == {"k"}  # none but the first instruction of each turn
    assert {"bx", "k"} <= kept(attention(causal=True, seq=384), 64)


@pytest.mark.parametrize("start", ACCUMULATED)
def test_what_stands_before_a_product_is_what_it_adds_to(start: str) -> None:
    result = lowered(REPEATED.format(start=start))
    assert any(one.subject == "roles" and one.value.startswith("1 warp group") for one in result.decisions)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (256, 256)).astype(np.float16), rng.integers(-3, 4, (256, 64)).astype(np.float16)
    d = np.full((4, 256, 64), np.nan, np.float32)
    report = Program(result.launches[0]).run({"A": a, "B": b, "D": d})
    assert report.findings == (), [str(finding) for finding in report.findings]
    expected, c = [], np.zeros((256, 64))
    for k in range(4):
        if start.startswith("if"):
            c = np.zeros_like(c) if k > 1 else c
        elif "0:64" in start:
            c = np.where(np.arange(256)[:, None] % 128 < 64, 0.0, c)
        elif "Parallel" in start:
            c = np.where(np.arange(256)[:, None] >= k * 64 + np.arange(64), 0.0, 5.0)
        else:
            c = np.full_like(c, ACCUMULATED[start])
        c = c + a[:, k * 64 : k * 64 + 64].astype(float) @ b[k * 64 : k * 64 + 64].astype(float)
        expected.append(c)
    np.testing.assert_array_equal(d, np.stack(expected))


UNEVEN: dict[str, dict[str, Any]] = {
    "one block does all": {"blocks": 1, "heads": 3, "batch": 2},
    "more works than blocks, some with one more": {"blocks": 4, "heads": 9, "dim": 64},
    "a sequence that is no multiple of the tile": {"blocks": 3, "heads": 2, "seq": 300},
    "results without a tile of the text": {"blocks": 2, "heads": 3, "result": DIRECTLY},
}


def uneven(blocks: int | None, **kwargs: Any) -> Any:
    options = ROLES if blocks is None else {**ROLES, "tl.persistent_blocks": blocks}
    return attention(**{"causal": True, "result": THROUGH_A_TILE, **kwargs}, options=options)


def grid(case: Any) -> list[int]:
    found: list[int] = []

    def visit(node: Any) -> None:
        if node.attr_key == "thread_extent" and str(node.node.thread_tag).startswith("blockIdx"):
            found.append(int(node.value))

    tvm_ffi.structural_walk(case.launch.body, (tir.AttrStmt, visit))
    return found


@pytest.mark.parametrize("name", UNEVEN)
def test_blocks_of_different_lengths_stay(name: str) -> None:
    case = uneven(**UNEVEN[name])
    assert grid(case) == [UNEVEN[name]["blocks"]]
    for checks in (False, True):
        result, report = run(case, checks=checks)
        np.testing.assert_allclose(result.astype(np.float64), case.expected, atol=2e-3)
        assert report.findings == (), [str(finding) for finding in report.findings]


def test_other_blocks_do_not_stay() -> None:
    assert grid(uneven(0, heads=3)) == [1, 3, 2]  # not wanted
    assert grid(uneven(None, heads=3)) == [1, 3, 2]  # few
    assert grid(uneven(2, heads=3, causal=False)) == [1, 3, 2]  # of one length
    assert grid(uneven(2, heads=3, out="float32", dim=256, bn=64)) == [1, 3, 2]  # no room for two tiles of queries


@pytest.mark.parametrize(("batch", "stay"), [(4, True), (1, False)])
def test_blocks_stay_where_all_get_about_as_much_to_do(batch: int, stay: bool) -> None:
    shape, values = (batch, 4096, 32, 64), {"batch": batch, "seq": 4096, "heads": 32, "dim": 64, "bn": 128, "stages": 2}
    text = ATTENTION.format(
        shape=shape, causal=True, out="float16", scale=0.125, between="pass", result=DIRECTLY, **values
    )
    launch = lowered(text).launches[0]
    assert (count_of(launch) is not None, "unused" in str(launch)) == (stay, stay)


@pytest.mark.parametrize(("which", "code"), [("barrier_arrive", "TL405"), ("barrier_wait", "TL401")])
def test_a_tile_that_stays_is_not_overwritten_too_early(which: str, code: str) -> None:
    """Without the arrival the copying role waits for ever; without its wait it copies over what is still needed."""
    case = uneven(1, heads=3)

    def drop(node: Any) -> Any:
        name = getattr(getattr(node.value, "op", None), "name", "")
        at = {"barrier_arrive": "mbarrier_arrive", "barrier_wait": "mbarrier_wait"}[which]
        here = at in name and "unused" in {var.name for var in variables(node.value)}
        return tir.Evaluate(tir.const(0, "int32"), node.span) if here else node

    _, report = run(case, case.launch.with_body(tvm_ffi.structural_map(case.launch.body, (tir.Evaluate, drop))))
    assert code in {one.code for one in report.findings}, report.findings


IN_TURN: dict[str, dict[str, Any]] = {
    "by option": {"options": {**ROLES, "tl.products_in_turn": True}},
    "what lies between reads the result of the second product": {"between": "T.reduce_max(o, part, dim=1)"},
    "the accumulator of the first product depends on the second": {
        "between": "T.copy(o[0:128, 0:128], s)",
    },
}


@pytest.mark.parametrize("name", IN_TURN)
def test_products_that_depend_on_each_other_are_in_turn(name: str) -> None:
    case = attention(**IN_TURN[name])
    result, report = run(case)
    np.testing.assert_allclose(result.astype(np.float64), case.expected, atol=2e-3)
    assert report.findings == ()


@pytest.mark.parametrize("pending", [0, 1])
def test_a_missing_wait_between_the_products_is_found(pending: int) -> None:
    case = attention(seq=384)

    def drop(node: Any) -> Any:
        name = getattr(getattr(node.value, "op", None), "name", "")
        here = name == "tirx.ptx.wgmma_wait_group" and int(node.value.args[0]) == pending
        return tir.Evaluate(tir.const(0, "int32"), node.span) if here else node

    body = tvm_ffi.structural_map(case.launch.body, (tir.Evaluate, drop))
    _, report = run(case, case.launch.with_body(body))
    assert any(one.code == "TL401" and "still adding" in one.message for one in report.findings), report.findings


def test_the_same_without_roles() -> None:
    case = attention(options={})
    assert all(not one.value.startswith("wgmma") for one in case.lowered.decisions)
    result, _ = run(case)
    np.testing.assert_allclose(result.astype(np.float64), case.expected, atol=2e-3)


def test_wide_blocks_of_wide_heads_take_more_registers_than_there_are() -> None:
    case = attention(dim=256, seq=128)
    told = [one for one in case.lowered.decisions if one.subject == "roles"]
    assert [one.value for one in told] == ["all warp groups do the same"] and "registers of a thread" in told[0].reason
    result, report = run(case)
    np.testing.assert_allclose(result.astype(np.float64), case.expected, atol=2e-3)
    assert report.findings == ()


TURNS = """
@T.prim_func
def k(
    A: T.Tensor((128, 64), "float16"), B: T.Tensor((512, 64), "float16"), C: T.Tensor((512, 64), "float16"),
    D: T.Tensor((128, 64), "float32"), n: T.int32,
):
    with T.Kernel(1, threads=256) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((128, 64), "float16")
        C_s = T.alloc_shared((128, 64), "float16")
        s = T.alloc_fragment((128, 128), "float32")
        p = T.alloc_fragment((128, 128), "float16")
        o = T.alloc_fragment((128, 64), "float32")
        T.copy(A, A_s)
        T.clear(o)
        for k in T.Pipelined(n, num_stages=2):
            T.copy(B[k * 128, 0], B_s)
            T.copy(C[k * 128, 0], C_s)
            T.gemm(A_s, B_s, s, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(128, 128):
                s[i, j] = s[i, j] * 0.5
            T.copy(s, p)
            T.gemm(p, C_s, o)
        T.copy(o, D)
"""


@pytest.mark.parametrize("turns", range(5))
def test_any_number_of_turns(turns: int) -> None:
    result = lowered(TURNS)
    assert any(one.subject == "roles" and one.value.startswith("1 warp group") for one in result.decisions)
    rng = np.random.default_rng(turns)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((128, 64), (512, 64), (512, 64)))
    d = np.full((128, 64), np.nan, np.float32)
    report = Program(result.launches[0]).run({"A": a, "B": b, "C": c, "D": d, "n": turns})
    wide = [array.astype(np.float64) for array in (a, b[: turns * 128], c[: turns * 128])]
    np.testing.assert_array_equal(d, wide[0] @ wide[1].T / 2 @ wide[2])
    assert report.findings == (), [str(finding) for finding in report.findings]
