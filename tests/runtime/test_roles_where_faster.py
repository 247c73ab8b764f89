"""Which products a target for sm_90a divides into roles by itself, and that the option divides them all."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_nb

TEXT = """
@T.prim_func
def product(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 512), "float16")):
    with T.Kernel(4, 4, threads={threads}) as (bx, by):
        a = T.alloc_shared((128, {depth}), "float16")
        b = T.alloc_shared({tile}, "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.clear(c)
        for k in T.Pipelined(512 // {depth}, num_stages=3):
            T.copy(A[by * 128, k * {depth}], a)
            T.copy(B[{place}], b)
            T.gemm(a, b, c, transpose_B={turned})
        T.copy(c, C[by * 128, bx * 128])
"""


def built(threads: int, depth: int, turned: bool = False, **how: Any) -> Any:
    tile, place = ((128, depth), f"bx * 128, k * {depth}") if turned else ((depth, 128), f"k * {depth}, bx * 128")
    text = TEXT.format(threads=threads, depth=depth, tile=tile, place=place, turned=turned)
    cell = tilelang_nb.compile_cell(text, {}, **how)
    assert cell.ok, cell.to_text()
    return cell.namespace["product"]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("threads", "depth", "roles"), [(128, 32, False), (128, 64, True), (256, 32, True)])
def test_one_warp_group_with_shallow_tiles_multiplies_in_step(
    threads: int, depth: int, roles: bool, turned: bool
) -> None:
    assert ("wgmma" in built(threads, depth, turned, arch="sm_90a").cuda_source) == roles


def test_the_option_divides_it_all_the_same() -> None:
    kernel = built(128, 32, arch="sm_90a").compile(options={"tl.enable_auto_warp_specialization": True})
    assert "wgmma" in kernel.cuda_source


def test_the_simulated_device_shows_the_simpler_program_unless_its_architecture_is_said() -> None:
    assert "wgmma" not in built(256, 64, target="sim").cuda_source
    assert "wgmma" in built(256, 64, target="sim", arch="sm_90a").cuda_source
