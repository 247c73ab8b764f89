"""What bulk copies and products of warp groups make of tiles is told: boxes, tensor maps, descriptors, as the program
has them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from lowering.hopper import ROLES, attention, matmul

import tilelang_nb
from tilelang_nb.lowering.hopper.tensor_maps import tensor_maps_of


def uses(case: Any, name: str) -> dict[str, list[Any]]:
    (known,) = [one for one in case.lowered.maps if one.name == name]
    found: dict[str, list[Any]] = {}
    for one in known.uses:
        found.setdefault(one.subject, []).append(one)
    return found


def test_boxes_maps_and_descriptors_of_a_product() -> None:
    case = matmul(256, 512, 512, stages=3, out="float16")
    left, right = uses(case, "A_s"), uses(case, "B_s")
    assert left["boxes"][0].value == "1 box of 128 rows of 128 bytes"
    assert right["boxes"][0].value == "4 boxes, one after the other, each of 64 rows of 128 bytes"
    (filled,) = right["tensor map"]
    assert filled.value == "4 bulk copies of 8,192 bytes from B" and filled.line == 11
    assert "512 × 512, 1,024 bytes apart, box 64 × 64, swizzle 128 bytes; 0 beyond the edge" in filled.reason
    (seen,) = left["descriptor"]
    assert seen.value == "A of wgmma m64n256k16.f32.f16.f16" and seen.line == 12
    assert seen.reason.startswith("rows along M, no leading offset, stride 1,024 bytes, layout 1")
    (seen,) = right["descriptor"]
    assert seen.reason.startswith("rows along K, leading offset 8,192 bytes, stride 1,024 bytes, layout 1")
    assert seen.reason.endswith("16 of K are 2,048 bytes")


def test_steps_along_k_that_come_to_the_next_box_are_told() -> None:
    case = matmul(256, 256, 256, bm=128, bn=128, bk=128, stages=2, tb=True)
    for name in ("A_s", "B_s"):
        (seen,) = uses(case, name)["descriptor"]
        assert seen.reason.endswith("16 of K are 32 bytes; after 64 of K the next box, 16,384 bytes on")


@pytest.mark.parametrize("options", [{"ta": True}, {"tb": True}, {"bk": 32}, {"dtype": "float8_e4m3fn", "tb": True}])
def test_what_is_told_is_what_the_program_has(options: dict[str, Any]) -> None:
    case = matmul(256, 512, 512, stages=2, out="float16", **options)
    text = str(case.launch.script())
    descriptors = set(re.findall(r"tl_wgmma_descriptor\", .*?, (\d+), (\d+), (\d+)\)", text))
    told = set()
    for name in ("A_s", "B_s"):
        for one in uses(case, name)["descriptor"]:
            leading = re.search(r"leading offset ([\d,]+) bytes", one.reason)
            stride, layout = re.search(r"stride ([\d,]+) bytes, layout (\d)", one.reason).groups()
            first = int(leading[1].replace(",", "")) // 16 if leading else 1
            told.add((str(first), str(int(stride.replace(",", "")) // 16), layout))
    assert told == descriptors
    maps = tensor_maps_of(case.launch)
    said = [one for name in ("A_s", "B_s", "staging") for one in uses(case, name).get("tensor map", ())]
    assert len(maps) == len(said) == 3
    for tensor in maps:
        (one,) = [one for one in said if re.search(rf" (from|to) {tensor.buffer.name}$", one.value)]
        assert f"box {' × '.join(map(str, tensor.box))}, " in one.reason
        assert f"{tensor.box_bytes:,} bytes" in one.value


def test_decisions_tell_them_at_the_lines_of_the_text() -> None:
    case = attention(seq=256)
    found = {(one.subject, one.value.partition(":")[0], one.line) for one in case.lowered.decisions}
    assert {("tensor map", "K_s", 25), ("tensor map", "V_s", 43), ("tensor map", "Q_s", 19)} <= found
    assert {("descriptor", "K_s", 29), ("descriptor", "Q_s", 29), ("descriptor", "V_s", 44)} <= found
    assert {("swizzle", name, None) for name in ("K_s", "V_s", "Q_s")} <= found


def test_what_a_divided_launch_does_beside_is_told() -> None:
    found = {one.subject: one for one in attention(seq=256).lowered.decisions}
    assert found["overlap"].value == "s += Q_s·K_sᵀ of a turn is started before o += p·V_s of the turn before"
    assert found["overlap"].line == 44 and found["results"].line == 47 and "blocks" not in found
    assert found["results"].value == "C is stored by bulk copies"
    found = {
        one.subject: one
        for one in matmul(256, 512, 512, options={**ROLES, "tl.persistent_blocks": 2}).lowered.decisions
    }
    assert found["blocks"].value == "2 stay" and "the work of 4 of the text" in found["blocks"].reason
    in_turn = attention(seq=256, options={**ROLES, "tl.products_in_turn": True}).lowered.decisions
    assert "overlap" not in {one.subject for one in in_turn}


def test_a_tile_that_is_no_operand_is_row_by_row() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "float32")
        full = T.alloc_barrier(128)
        T.tma_copy(A, tile, barrier=full)
        T.barrier_arrive(full)
        T.barrier_wait(full, 0)
        T.copy(tile, C)
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    tile = cell.namespace["k"].layouts["tile"]
    assert [(one.subject, one.value, one.line) for one in tile.uses] == [
        ("boxes", "row by row", None),
        ("tensor map", "1 bulk copy of 16,384 bytes from A", 7),
    ]
    assert "tensor map (line 7): 1 bulk copy" in repr(tile) and "no swizzle" in tile._repr_html_()
