"""What pipelined loops do over time: charts of cp.async rings and of roles, and that no version is lost in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from lowering.hopper import ROLES, attention, matmul

import tilelang_nb

STAYING = {**ROLES, "tl.persistent_blocks": 2}
CASES = {
    "matmul": lambda: matmul(256, 512, 512, stages=3),
    "two stages": lambda: matmul(256, 512, 768, stages=2),
    "stays": lambda: matmul(256, 512, 512, stages=3, out="float16", options=STAYING),
    "long": lambda: matmul(256, 512, 1536, stages=4, out="float16", options=STAYING),
    "attention": lambda: attention(seq=1024),
    "causal": lambda: attention(seq=1024, causal=True),
    "in turn": lambda: attention(seq=768, options={**ROLES, "tl.products_in_turn": True}),
}


case_of = cache(lambda name: CASES[name]())


def loop_of(name: str) -> Any:
    (loop,) = case_of(name).lowered.pipelines
    return loop


def lane(loop: Any, name: str) -> dict[int, tuple[str, str]]:
    """(what, text) of each column in which something happens."""
    (found,) = [one for one in loop.chart.lanes if one.name == name]
    return {
        column: (cell.what, cell.text) for cell in found.cells for column in range(cell.first, cell.first + cell.count)
    }


def versions(loop: Any) -> Iterator[tuple[str, int, dict[int, tuple[str, str]]]]:
    for one in loop.chart.lanes:
        if one.name.endswith("]"):
            tiles, version = one.name[:-1].rsplit(" [", 1)
            yield tiles, int(version), lane(loop, one.name)


@pytest.mark.parametrize("name", CASES)
def test_a_version_is_filled_then_used_and_turns_go_round(name: str) -> None:
    loop = loop_of(name)
    gaps = {at for at, label in enumerate(columns(loop)) if label == "…"}
    seen = 0
    for _, version, cells in versions(loop):
        known = ""
        for column, (what, text) in sorted(cells.items()):
            if "′" not in text:
                assert int(text) % loop.stages == version
            if column - 1 in gaps:
                known = text
            if text != known:
                assert what == "copy", "what is new was copied"
            if what == "copy":
                assert cells.get(column - 1, ("", ""))[1] != text
            known = text
            seen += 1
    assert seen > 3 * loop.stages


@pytest.mark.parametrize("name", CASES)
def test_a_version_is_in_use_from_its_wait_until_it_is_given_back(name: str) -> None:
    loop = loop_of(name)
    for tiles, version, cells in versions(loop):
        waits, given = (
            [
                cell.first
                for one in loop.chart.lanes
                if one.part == tiles and one.name.startswith(barrier)
                for cell in one.cells
                if cell.text == f"[{version}]"
            ]
            for barrier in ("full", "empty")
        )
        assert len(waits) == len(given) > 1
        used = {column for column, (what, _) in cells.items() if what == "use"}
        assert used == {at for wait, back in zip(waits, given) for at in range(wait, back + 1)}


@pytest.mark.parametrize("name", CASES)
def test_the_barriers_are_those_of_the_program(name: str) -> None:
    case = case_of(name)
    text = str(case.launch.script())
    (loop,) = case.lowered.pipelines
    names = {one.name for one in loop.chart.lanes if any(cell.what == "barrier" for cell in one.cells)}
    assert names and all(f"{name} = T.alloc_buffer" in text or f"{name}[" in text for name in names)


def columns(loop: Any) -> list[str]:
    return [name for name, count in loop.chart.columns for _ in range(count)]


def test_copies_start_in_order_as_soon_as_a_version_is_free() -> None:
    loop = loop_of("matmul")
    assert [text for _, text in lane(loop, "A_s, B_s").values()] == ["0–2", "3", "4", "5", "6", "7"]
    assert columns(loop) == ["before", *(f"ko = {turn}" for turn in range(8)), "after"]
    assert [text for _, text in lane(loop, "C_l += A_s·B_s").values()] == list("01234567")
    assert loop.started(None) == (0, 1, 2) and loop.started(0) == () and loop.started(1) == (3,)
    assert loop.held(-1) == (0, 1, 2) and loop.held(1) == (3, 1, 2)


def test_blocks_that_stay_copy_for_their_next_work_while_they_store() -> None:
    loop = loop_of("stays")
    names = columns(loop)
    assert names[-3:] == ["after", "ko = 0′", "ko = 1′"]
    stores, copies = lane(loop, "C = C_l, by bulk copies"), lane(loop, "A_s, B_s")
    (storing,) = stores
    assert copies[storing - 2][1] == "0′" and copies[storing - 1][1] == "1′" and copies[storing][1] == "2′"


def test_the_scores_of_the_next_turn_run_beside_the_values_of_this_one() -> None:
    loop = loop_of("attention")
    scores, values, other = (lane(loop, name) for name in ("s += Q_s·K_sᵀ", "o += p·V_s", "other statements"))
    both = [at for at in scores if at in values]
    assert len(both) > 3 and all(int(scores[at][1]) == int(values[at][1]) + 1 for at in both)
    assert any(at in values and int(other[at][1]) == int(values[at][1]) + 1 for at in other)
    (tile,) = [one for one in loop.chart.lanes if one.part == one.name == "Q_s"]
    assert [cell.text for cell in tile.cells] == ["once", "kept", "kept"]
    keys, values = (next(one for one in loop.chart.lanes if one.name == name) for name in ("K_s", "V_s"))
    assert [cell.text for cell in keys.cells][:3] == ["0, 1", "2", "3"]
    assert [cell.text for cell in values.cells][:3] == ["0", "1", "2"], "a turn behind those of the first product"
    in_turn = loop_of("in turn")
    scores, values = (lane(in_turn, name) for name in ("s += Q_s·K_sᵀ", "o += p·V_s"))
    assert not scores.keys() & values.keys()


def test_cells_name_the_lines_of_the_text() -> None:
    loop = loop_of("matmul")
    (copies,) = [one for one in loop.chart.lanes if "copies" in one.part]
    product, _ = (one for one in loop.chart.lanes if "compute" in one.part)
    assert {cell.lines for cell in copies.cells} == {(10, 11)} and {cell.lines for cell in product.cells} == {(12,)}


def test_a_chart_of_asynchronous_copies_agrees_with_what_versions_hold() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((256, 64), "float32"), B: T.Tensor((256, 64), "float32")):
    with T.Kernel(1, threads=128):
        rows = T.alloc_shared((32, 64), "float32")
        for i in T.Pipelined(8, num_stages=3):
            T.copy(A[i * 32, 0], rows)
            T.copy(rows, B[i * 32, 0])
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    (loop,) = cell.namespace["k"].pipelines
    found = [lane(loop, f"rows [{version}]") for version in range(3)]
    for turn in range(-1, 8):
        held = [None if turn + 1 not in one else int(one[turn + 1][1]) for one in found]
        assert tuple(held) == loop.held(turn)
    assert [text for _, text in lane(loop, "rows").values()] == ["0, 1", *"234567"]


def test_bulk_copies_of_the_text_that_start_ahead_have_their_chart() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((64, 512), "float32"), B: T.Tensor((64, 512), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "float32")
        full = T.alloc_barrier(128)
        for i in T.Pipelined(8, num_stages=3):
            T.tma_copy(A[0, i * 64], tile, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, i % 2)
            T.copy(tile, B[0, i * 64])
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (loop,) = cell.namespace["k"].pipelines
    assert (loop.engine, loop.stages, loop.line, loop.groups[0].waits_at) == ("T.tma_copy", 3, 7, 10)
    assert [text for _, text in lane(loop, "tile").values()] == ["0, 1", *"234567"]
    assert [text for _, text in lane(loop, "full").values()] == [f"[{turn % 3}]" for turn in range(8)]
    found = [lane(loop, f"tile [{version}]") for version in range(3)]
    for turn in range(-1, 8):
        held = [None if turn + 1 not in one else int(one[turn + 1][1]) for one in found]
        assert tuple(held) == loop.held(turn)
    (parity,) = [cell.said for one in loop.chart.lanes if one.name == "full" for cell in one.cells if cell.first == 5]
    assert parity.startswith("waits at full[1], parity 1, until 16,384 bytes")


def test_the_text_has_a_row_for_each_step() -> None:
    lines = str(loop_of("matmul")).split("\n")
    assert "  full  empty  C_l += A_s·B_s  " in lines[1]
    assert lines[4].split()[3:9] == ["+3", "*1", ">2", "[1]", "[1]", "1"]
