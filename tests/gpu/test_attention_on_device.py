"""Attention on sm_90a: in roles, with blocks of the text and blocks that stay for works of different lengths; and by
mma.sync, with turns that barriers of their tiles order.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from lowering.hopper import ATTENTION, DIRECTLY, THROUGH_A_TILE
from lowering.test_warp_group_attention import SWIZZLED

import tilelang_nb

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("hopper")

STAY = "tl.persistent_blocks"
IN_STEP = {"tl.disable_wgmma": True}
FACTORIES = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")
CASES: dict[str, dict[str, Any]] = {
    "all keys": {},
    "results without a tile of the text": {"result": DIRECTLY},
    "tiles that the text swizzles": {"result": SWIZZLED},
    "a sequence that is no multiple of the tile": {"seq": 1000},
    "causal": {"causal": True},
    "causal, as many blocks as multiprocessors": {"causal": True, "batch": 8, "seq": 2048, "heads": 32, "stay": True},
    "causal, seven blocks": {"causal": True, "options": {STAY: 7}, "stay": True},
    "causal, one block": {"causal": True, "heads": 3, "options": {STAY: 1}, "stay": True},
    "causal, blocks of the text": {"causal": True, "options": {STAY: 0}},
    "causal and ragged, five blocks": {"causal": True, "seq": 1000, "options": {STAY: 5}, "stay": True},
    "heads of 64": {"dim": 64, "causal": True, "options": {STAY: 11}, "stay": True},
    "narrow blocks of keys": {"bn": 64, "causal": True, "options": {STAY: 3}, "stay": True},
    "heads of 256": {"dim": 256, "bn": 64},
}


@pytest.mark.parametrize("name", CASES)
def test_attention(name: str) -> None:
    case = {"batch": 2, "seq": 1024, "heads": 5, "dim": 128, "bn": 128, "stages": 2, "causal": False, **CASES[name]}
    stay, options = case.pop("stay", False), case.pop("options", None)
    shape = tuple(case[key] for key in ("batch", "seq", "heads", "dim"))
    result = case.pop("result", THROUGH_A_TILE).format(dim=case["dim"], out="float16")
    scale = 1.44269504 / case["dim"] ** 0.5
    text = ATTENTION.format(shape=shape, out="float16", scale=scale, between="pass", result=result, **case)
    cell = tilelang_nb.compile_cell(text, {}, target="cuda")
    assert cell.ok, cell.to_text()
    kernel = cell.kernels["k"] if options is None else cell.kernels["k"].compile(options=options)
    assert any(one.subject == "blocks" for one in kernel.decisions) == stay and "wgmma" in kernel.cuda_source
    check(kernel, shape, case["causal"])


def check(kernel: Any, shape: tuple[int, ...], causal: bool) -> None:
    """Twenty launches give the same bits, and those of torch nearly."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape, device="cuda").half() for _ in range(3))
    swapped = [one.float().transpose(1, 2) for one in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(*swapped, is_causal=causal).transpose(1, 2)
    first = None
    for _ in range(20):
        o = torch.full(shape, float("nan"), device="cuda", dtype=torch.float16)
        kernel(q, k, v, o)
        first = o if first is None else first
        assert torch.equal(o, first)
    assert float((first.float() - want).norm() / want.norm()) < 2e-3


SHAPES = {  # width of a head, tiles of queries and keys, threads
    "128x64, scaling skipped": (128, 128, 64, 128),
    "128x128": (128, 128, 128, 256),
    "128x64": (128, 128, 64, 256),
    "64x64": (128, 64, 64, 128),
    "64 wide": (64, 128, 128, 256),
    "64 wide, few threads": (64, 128, 128, 128),
    "256 wide": (256, 64, 64, 128),
    "256 wide, many threads": (256, 128, 64, 256),
}


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_attention_whose_turns_barriers_of_tiles_order(name: str, causal: bool, stages: int) -> None:
    dim, rows, keys, threads = SHAPES[name]
    seq = 1000 if causal else 1024
    made = f"k = flash_attention(T, 2, 5, {seq}, {dim}, {causal}, {rows}, {keys}, {stages}, {threads})"
    cell = tilelang_nb.compile_cell(f"{FACTORIES}\n{made}\n", {}, target="cuda")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"].compile(options=IN_STEP)
    assert is_ordered(kernel)
    assert ("any_sync" in kernel.cuda_source) == ("skipped" in name)
    check(kernel, (2, seq, 5, dim), causal)


def is_ordered(kernel: Any) -> bool:
    assert "wgmma" not in kernel.cuda_source
    return "mbarrier_wait(" in kernel.cuda_source


def laps(case: dict[str, Any]) -> str:
    """The attention, with a block for each head that goes over the tiles of queries."""
    text = ATTENTION.format(scale=1.44269504 / case["dim"] ** 0.5, between="pass", out="float16", **case)
    head, body = text.split("        T.copy(Q[", 1)
    grid = f"T.Kernel(T.ceildiv({case['seq']}, 128), {case['heads']}, {case['batch']}, threads=256) as (bx, by, bz)"
    assert grid in head
    head = head.replace(grid, f"T.Kernel({case['heads']}, {case['batch']}, threads=256) as (by, bz)")
    loop = f"        for bx in T.serial(T.ceildiv({case['seq']}, 128)):\n"
    return head + loop + indent("        T.copy(Q[" + body, "    ")


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("through", [False, True])
def test_attention_whose_loop_runs_again(through: bool, causal: bool, stages: int) -> None:
    case = {"batch": 2, "seq": 1000, "heads": 5, "dim": 64, "bn": 128, "stages": stages, "causal": causal}
    result = (THROUGH_A_TILE if through else DIRECTLY).format(dim=64, out="float16")
    shape = tuple(case[key] for key in ("batch", "seq", "heads", "dim"))
    cell = tilelang_nb.compile_cell(laps({**case, "shape": shape, "result": result}), {}, target="cuda")
    assert cell.ok, cell.to_text()
    kernel = cell.kernels["k"].compile(options=IN_STEP)
    assert is_ordered(kernel)
    check(kernel, shape, causal)
