"""Attention by mma.sync keeps its accumulators in registers, and starts its copies without branches between products."""

from __future__ import annotations

from pathlib import Path

import pytest

FACTORIES = (Path(__file__).parents[1] / "kernels" / "factories.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("BM", "BN", "dim", "threads"), [(128, 128, 128, 256), (128, 64, 128, 128), (64, 64, 128, 128), (128, 128, 64, 256)]
)
def test_nothing_is_spilled(program_of, BM, BN, dim, threads, causal, arch) -> None:
    made = f"kernel = flash_attention(T, 4, 32, 4096, {dim}, {causal}, {BM}, {BN}, threads={threads})"
    program = program_of(f"{FACTORIES}\n{made}\n", arch)
    found = program.resources
    assert (found.spill_stores.value, found.spill_loads.value) == (0, 0), program.log
    cut = (BN, threads) == (64, 128) and BM == 128  # 192 registers of accumulators
    assert ("tl_copy_16_if" in program.kernel_source) != cut
    assert ("stmatrix" in program.kernel_source) == (arch == "sm_90")
    # one shuffle for each row of the largest element and distance, and none of the sum in the loop
    loop = program.kernel_source[program.kernel_source.index("mma_sync") :]
    assert loop[: loop.rindex("mma_sync")].count("__shfl_xor_sync") == 2
