"""Accumulators that are scaled only where a factor is not 1: every bit of the result is that of the text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lowering.hopper import attention, matmul
from lowering.hopper import run as run_on

import tilelang_nb
from tilelang_nb.lowering import lower, skip_scaling
from tilelang_nb.simulator import Program

DISABLE = "tl.disable_skip_scaling"
BARRIERS = "tl.disable_turn_barriers"
FACTORIES = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where registers are not short."""
    monkeypatch.setattr(skip_scaling, "CROWDED", 0)


def ran(one: Any, **arguments: np.ndarray) -> np.ndarray:
    one.arguments |= arguments
    result, report = run_on(one)
    assert not report.findings, [str(finding) for finding in report.findings]
    return result


def skips(one: Any) -> bool:
    """Is a scaling skipped?"""
    found = "any_sync" in str(one.launch)
    assert found == any(known.subject == "scaling" for known in one.lowered.decisions)
    return found


def both(**options: Any) -> tuple[Any, Any]:
    """An attention with every scaling, and one that skips some."""
    plain, skipping = attention(**options, options={DISABLE: True}), attention(**options, options={})
    assert skips(skipping) and not skips(plain)
    return plain, skipping


def flash(
    dim: int, rows: int, keys: int, threads: int, options: dict[str, Any] | None = None, arch: str = "sm_90",
    causal: bool = False, seq: int = 256,
) -> Any:  # fmt: skip
    made = f"k = flash_attention(T, 1, 1, {seq}, {dim}, {causal}, {rows}, {keys}, threads={threads})"
    cell = tilelang_nb.compile_cell(f"{FACTORIES}\n{made}\n", {}, target="sim", arch=arch)
    assert cell.ok, cell.to_text()
    found = lower(cell.namespace["k"].program, arch=arch, options=options or {})
    rng = np.random.default_rng(dim)
    arguments = {name: rng.standard_normal((1, seq, 1, dim)).astype(np.float16) for name in "QKV"}
    arguments["O"] = np.full((1, seq, 1, dim), np.nan, np.float16)
    return SimpleNamespace(lowered=found, launch=found.launches[0], arguments=arguments)


@pytest.mark.parametrize("options", [{"bn": 64}, {"causal": True, "bn": 64}, {"seq": 320, "bn": 64}])
def test_attention_is_the_same_to_the_bit(everywhere, options):
    plain, skipping = both(**options)
    one, other = ran(plain), ran(skipping)
    np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))
    np.testing.assert_allclose(other.astype(np.float64), plain.expected, atol=4e-3)


@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
def test_whatever_the_maxima_do(everywhere, order):
    plain, skipping = both(seq=512, bn=64)
    keys = plain.arguments["K"].copy()
    size = {"rising": np.linspace(0.1, 4, 512), "falling": np.linspace(4, 0.1, 512), "equal": np.zeros(512)}[order]
    keys *= size[None, :, None, None].astype(np.float16)
    one, other = ran(plain, K=keys), ran(skipping, K=keys)
    np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_so(everywhere, odd):
    plain, skipping = both(seq=384, bn=64)
    keys = plain.arguments["K"].copy()
    keys[0, 200, 0, 5] = odd
    one, other = ran(plain, K=keys), ran(skipping, K=keys)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("causal", [False, True])
def test_where_registers_are_short(causal):
    shape = (128, 128, 64, 128)
    plain, skipping = flash(*shape, {DISABLE: True}, causal=causal), flash(*shape, causal=causal)
    assert skips(skipping) and not skips(plain)
    results = []
    for one in (plain, skipping):
        mine = {name: array.copy() for name, array in one.arguments.items()}
        report = Program(one.launch, checks=True).run(mine)
        assert not report.findings, [str(finding) for finding in report.findings]
        results.append(mine["O"].view(np.uint16))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("dim", "rows", "keys", "threads"),
    [
        (128, 128, 128, 256),
        (128, 128, 64, 256),
        (128, 64, 64, 128),
        (64, 128, 64, 128),
        (64, 128, 128, 256),
        (64, 128, 128, 128),
        (64, 64, 64, 128),
        (256, 64, 64, 128),
        (256, 128, 64, 256),
    ],
)
def test_other_shapes_of_attention_scale_always(dim, rows, keys, threads):
    assert not skips(flash(dim, rows, keys, threads))


def test_where_the_barrier_of_the_block_orders_the_turns_all_is_scaled():
    shape = (128, 128, 64, 128)
    assert not skips(flash(*shape, {BARRIERS: True})) and not skips(flash(*shape, arch="sm_80"))


def test_a_turn_of_one_product_is_left_alone(everywhere):
    assert not skips(matmul(options={}))
