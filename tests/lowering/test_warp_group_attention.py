"""Attention on sm_90a with roles: the weights stay in registers between the two products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import attention, run

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
