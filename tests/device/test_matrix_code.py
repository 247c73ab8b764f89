"""Machine code of products and attention: what is in the loop, and that nothing lies in local memory."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import tilelang_nb

pytest.importorskip("cuda.bindings.nvrtc")
TEXT = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")


def built(make: str, arch: str):
    cell = tilelang_nb.compile_cell(f"{TEXT}\n\nkernel = {make}\n", target="cuda", arch=arch)
    assert cell.ok, cell.to_text()
    return cell.namespace["kernel"].compile(options={"tl.disable_warp_specialized": True}).build().device


def largest_loop(sass: str) -> Counter[str]:
    """How often each instruction occurs in the longest loop that has matrix instructions."""
    names: list[str] = []
    labels: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for line in sass.splitlines():
        label = re.match(r"^\s*(\.L_x_\d+):", line)
        if label:
            labels[label[1]] = len(names)
            continue
        found = re.match(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(\w+)", line)
        if not found:
            continue
        names.append(found[1])
        target = re.search(r"`\((\.L_x_\d+)\)", line)
        if found[1] == "BRA" and target and target[1] in labels:
            loops.append((labels[target[1]], len(names)))
    bodies = [names[begin:end] for begin, end in loops if "HMMA" in names[begin:end]]
    return Counter(max(bodies, key=len))


def code_of(make: str, arch: str) -> tuple[Counter[str], object]:
    device = built(make, arch)
    (used,) = device.resources
    assert used.spill_stores.value == 0 and used.local_bytes.value == 0
    return largest_loop(device.sass), used


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("blocks", "products", "loads", "copies"),
    [
        ("128, 128, 32, 3, 128", 64, 16, 8),
        ("128, 256, 32, 4, 256", 64, 16, 6),
        ("128, 256, 64, 3, 256", 128, 32, 12),
    ],
)
def test_a_turn_of_a_matmul(arch: str, blocks: str, products: int, loads: int, copies: int) -> None:
    loop, used = code_of(f"matmul(T, 4096, 4096, 4096, {blocks})", arch)
    assert (loop["HMMA"], loop["LDSM"], loop["LDGSTS"]) == (products, loads, copies)
    assert loop["BAR"] == 1 and loop["LDG"] == loop["STS"] == loop["STG"] == 0
    # Addresses, counters and what decides about copies take no more instructions than one for each product.
    assert sum(loop.values()) - products - loads - copies < 64 + products // 4
    assert used.threads.value * used.registers.value <= 65536 // (2 if "128, 128" in blocks else 1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_turn_of_attention(arch: str, causal: bool) -> None:
    loop, _ = code_of(f"flash_attention(T, 4, 32, 4096, 128, {causal})", arch)
    assert (loop["HMMA"], loop["LDSM"], loop["LDGSTS"]) == (256, 128, 16)
    assert loop["LDG"] == loop["STS"] == loop["STG"] == 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_products_compile_for_every_architecture(arch: str) -> None:
    assert built("matmul(T, 256, 256, 256)", arch).cubin
