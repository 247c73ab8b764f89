"""Attention in roles on sm_90a: blocks of the text, and blocks that stay for works of different lengths."""

from __future__ import annotations

from typing import Any

import pytest
from lowering.hopper import ATTENTION, DIRECTLY, THROUGH_A_TILE
from lowering.test_warp_group_attention import SWIZZLED

import tilelang_nb

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("hopper")

STAY = "tl.persistent_blocks"
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
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape, device="cuda").half() for _ in range(3))
    swapped = [one.float().transpose(1, 2) for one in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(*swapped, is_causal=case["causal"]).transpose(1, 2)
    first = None
    for _ in range(20):
        o = torch.full(shape, float("nan"), device="cuda", dtype=torch.float16)
        kernel(q, k, v, o)
        first = o if first is None else first
        assert torch.equal(o, first)
    assert float((first.float() - want).norm() / want.norm()) < 2e-3
