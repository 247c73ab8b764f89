"""Random products for sm_90a, by warp groups and divided into roles where they can be: exactly what NumPy gives, no
finding.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from properties.amounts import SOURCES, TIMEOUT, amount
from properties.products_in_roles import Product

import tilelang_nb
from tilelang_nb.lowering import lower
from tilelang_nb.simulator import Program


def check(product: Product) -> tuple[str, bool]:
    """("roles" or why there are none, whether warp groups multiply); AssertionError on a difference or a finding."""
    cell = tilelang_nb.compile_cell(product.text, {}, target="sim", arch="sm_90a")
    assert cell.ok, f"{cell.to_text()}\n{product.text}"
    result = lower(cell.namespace["k"].program, arch="sm_90a", options=product.options)
    errors = [found for found in result.diagnostics if found.severity == "error"]
    if {found.code for found in errors} == {"TL209"}:
        return "too much shared memory", False
    assert not errors, f"{[str(one) for one in errors]}\n{product.text}"
    arguments = product.arguments()
    wanted = product.expected(arguments)
    report = Program(result.launches[0]).run(arguments)
    assert not report.findings, f"{[str(one) for one in report.findings]}\n{product.options}\n{product.text}"
    message = f"{product.options}\n{product.text}"
    np.testing.assert_array_equal(arguments["C"].astype(np.float64), wanted, err_msg=message)
    found = next((one for one in result.decisions if one.subject == "roles"), None)
    by_groups = any(one.subject == "product" and one.value.startswith("wgmma") for one in result.decisions)
    if found is None:
        return "no copy runs ahead", by_groups
    assert "a fault of tilelang_nb" not in found.reason, message
    return found.reason or "roles", by_groups


@pytest.mark.timeout(TIMEOUT)
def test_products_in_roles_are_exact(record_property: Callable[[str, Any], None]) -> None:
    outcomes: Counter[str] = Counter()
    groups = [0]

    @amount(12, 1500)
    @given(SOURCES)
    def each(source: random.Random) -> None:
        outcome, by_groups = check(Product(source))
        outcomes[outcome] += 1
        groups[0] += by_groups

    each()
    total = sum(outcomes.values())
    record_property("products in roles", f"{total} run ({', '.join(f'{name} {n}' for name, n in outcomes.items())})")
    assert outcomes["roles"] > total * 0.15 and groups[0] > total * 0.5
