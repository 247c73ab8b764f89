"""Accumulators that are scaled only where a factor is not 1: every bit of the result is that of the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import attention, matmul
from lowering.hopper import run as run_on

OPTION = "tl.skip_unit_scaling"


def ran(one: Any, **arguments: np.ndarray) -> np.ndarray:
    one.arguments |= arguments
    result, report = run_on(one)
    assert not report.findings, [str(finding) for finding in report.findings]
    return result


def printed(one: Any) -> str:
    return str(one.launch)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"seq": 320, "bn": 64}, {"dim": 64, "bn": 64, "seq": 448}])
@pytest.mark.parametrize("barriers", [False, True, "together", "behind"])
def test_attention_is_the_same_to_the_bit(options, barriers):
    plain = attention(**options, options={})
    skipping = attention(**options, options={OPTION: True, "tl.turns_by_mbarriers": barriers})
    assert "any_sync" in printed(skipping) and "any_sync" not in printed(plain)
    one, other = ran(plain), ran(skipping)
    np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))
    np.testing.assert_allclose(other.astype(np.float64), plain.expected, atol=4e-3)


@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
def test_whatever_the_maxima_do(order):
    plain, skipping = attention(seq=512, options={}), attention(seq=512, options={OPTION: True})
    keys = plain.arguments["K"].copy()
    size = {"rising": np.linspace(0.1, 4, 512), "falling": np.linspace(4, 0.1, 512), "equal": np.zeros(512)}[order]
    keys *= size[None, :, None, None].astype(np.float16)
    one, other = ran(plain, K=keys), ran(skipping, K=keys)
    np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_so(odd):
    plain, skipping = attention(seq=384, options={}), attention(seq=384, options={OPTION: True})
    keys = plain.arguments["K"].copy()
    keys[0, 200, 0, 5] = odd
    one, other = ran(plain, K=keys), ran(skipping, K=keys)
    np.testing.assert_array_equal(one, other)


def test_a_turn_of_one_product_is_left_alone():
    assert "any_sync" not in printed(matmul(options={OPTION: True}))
