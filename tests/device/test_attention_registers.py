"""Attention by mma.sync keeps its accumulators in registers.

On sm_80 copies start without branches between products; from sm_90 on, where a turn copies enough, behind the first
product, and barriers of their tiles order the turns.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FACTORIES = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")
SHAPES = [
    (128, 128, 128, 256),
    (128, 64, 128, 128),
    (64, 64, 128, 128),
    (128, 128, 64, 256),
]
MORE = [
    (128, 64, 128, 256),
    (128, 128, 64, 128),
    (128, 64, 64, 128),
    (64, 64, 256, 128),
    (128, 64, 256, 256),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("BM", "BN", "dim", "threads", "arch"),
    [(*shape, arch) for arch, shapes in {"sm_80": SHAPES, "sm_90": SHAPES + MORE}.items() for shape in shapes],
)
def test_nothing_is_spilled(program_of, BM, BN, dim, threads, causal, arch) -> None:
    made = f"kernel = flash_attention(T, 4, 32, 4096, {dim}, {causal}, {BM}, {BN}, threads={threads})"
    program = program_of(f"{FACTORIES}\n{made}\n", arch)
    found, source = program.resources, program.kernel_source
    assert (found.spill_stores.value, found.spill_loads.value) == (0, 0), program.log
    crowded = (BM, BN, dim, threads) == (128, 64, 128, 128)  # 192 registers of accumulators
    ordered = arch == "sm_90" and BN * dim > 64 * 64
    assert ("mbarrier_wait(" in source) == ordered and ("any_sync" in source) == (ordered and crowded)
    assert ("tl_copy_16_if" in source) == (not ordered and not crowded)
    assert ("stmatrix" in source) == (arch == "sm_90")
    # one shuffle for each row of the largest element and distance, and none of the sum in the loop
    loop = source[source.index("mma_sync") :]
    assert loop[: loop.rindex("mma_sync")].count("__shfl_xor_sync") == 2
