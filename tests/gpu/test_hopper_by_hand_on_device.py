"""Texts that copy, signal and form clusters by themselves: a device of sm_90a computes what the simulated device does."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowering import test_bulk_copies_ahead as ahead
from lowering import test_chosen_groups as chosen
from lowering import test_clusters as clusters
from lowering import test_copies_of_some_threads as some
from lowering import test_hopper_by_hand as by_hand
from lowering import test_proxy_fences as fences
from lowering import test_signals_by_hand as signals
from lowering import test_stores_by_hand as stores
from lowering import test_wgmma_by_hand as products

import tilelang_nb

pytestmark = pytest.mark.usefixtures("hopper")

TEXTS: dict[str, str] = {
    **{f"stores: {name}": text for name, text in stores.TEXTS.items()},
    **{
        f"stores: {dtype} {rows} x {columns}": stores.TWICE.format(dtype=dtype, rows=rows, columns=columns, wait="")
        for dtype in ("float32", "int8", "float64")
        for rows, columns in ((64, 64), (16, 256), (2, 512))
    },
    **{f"ahead: {name}": ahead.text_of(**parts) for name, (parts, _, _) in ahead.TURNS.items()},
    **{f"clusters: {name}": text for name, text in clusters.TEXTS.items()},
    **{
        f"clusters: {name}, {dtype}": clusters.exchange(dtype=dtype, **parts)
        for name, (parts, _) in clusters.COPIES.items()
        for dtype in ("float16", "float64")
    },
    **{f"clusters: load for {mask}": clusters.BROADCAST.format(mask=mask, turns=3) for mask in ("0b11", "0b1111", "0b1010")},
    "clusters: ordinary": clusters.ORDINARY,
    **{f"given back: {name}": fences.text_of(name) for name in fences.CASES},
    "given back: to another block": fences.BLOCKS,
    "signals: named barriers": signals.NAMED.format(arrive=signals.ARRIVE, free=signals.FREE),
    "signals: landed copies": signals.LANDED.format(wait=signals.WAIT),
    "signals: a barrier anew": signals.RESTARTED,
    **{f"roles: {name}": by_hand.ROLES.format(multiply=text) for name, text in by_hand.MULTIPLIED.items()},
    **{f"products: {name}": products.written(name) for name in products.TEXTS},
    **{
        f"products in flight: {wait}, {stages} stages": products.HEAD.format(threads=256, a=(128, 32), b=(32, 128))
        + products.PIPELINED.format(stages=stages, wait=wait)
        for wait in ("pass", "T.wait_wgmma(1)", "T.wait_wgmma(0)")
        for stages in (2, 3, 4)
    },
    **{f"copies by {name}": some.text_of(name) for name in some.CONDITIONS},
    "copies in a part by one": some.PARTS.format(condition="tx == 128"),
    "stores by one": some.STORE,
    **{f"chosen groups: {product[:7]}": chosen.IN_TURNS.format(product=product) for product in chosen.PRODUCTS},
    "in step": by_hand.IN_STEP.format(wait=by_hand.WAIT, multiply="T.gemm(A_s, B_s, C_l)"),
}  # fmt: skip


def arguments(kernel: Any) -> dict[str, Any]:
    """Small integers, so that every order of sums gives the same."""
    rng = np.random.default_rng(11)
    made: dict[str, Any] = {}
    for parameter in kernel.parameters:
        if parameter.kind == "scalar":
            made[parameter.name] = 7
        else:
            dtype = np.dtype(getattr(ml_dtypes, parameter.dtype, None) or parameter.dtype)
            made[parameter.name] = rng.integers(-4, 5, tuple(int(extent) for extent in parameter.shape)).astype(dtype)
    return made


@pytest.mark.parametrize("name", TEXTS)
def test_the_device_computes_what_the_simulated_device_does(name: str) -> None:
    cells = {
        target: tilelang_nb.compile_cell(TEXTS[name], {}, target=target, arch="sm_90a") for target in ("sim", "cuda")
    }
    for cell in cells.values():
        assert cell.ok, cell.to_text()
    given = arguments(cells["sim"].namespace["k"])
    wanted = deepcopy(given)
    cells["sim"].namespace["k"](**wanted)
    kernel = cells["cuda"].namespace["k"]
    for turn in range(20):  # faults of order do not show every time
        found = deepcopy(given)
        kernel(**found)
        for parameter, array in wanted.items():
            np.testing.assert_array_equal(found[parameter], array, err_msg=f"{name}, launch {turn}: {parameter}")
