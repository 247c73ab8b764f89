"""Powers of two take one instruction in kernels with matrix products, and keep small results in others."""

from __future__ import annotations

import tilelang_nb

TEXT = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.clear(c)
        {product}
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.exp2(c[i, j])
        T.copy(c, C)
"""


def text_of(product: str) -> str:
    cell = tilelang_nb.compile_cell(TEXT.format(product=product), target="cuda", arch="sm_80")
    assert cell.ok, cell.to_text()
    device = cell.namespace["k"].build().device
    assert not device.diagnostics
    return device.cuda_source


def test_beside_products():
    text = text_of("T.gemm(a, a, c)")
    assert "tl_exp2(" in text and "exp2f(" not in text and text.count("ex2.approx.ftz.f32") == 1


def test_in_other_kernels():
    text = text_of("pass")
    assert "exp2f(" in text and "tl_exp2" not in text


def test_beside_products_of_warp_groups():
    text = """
@T.prim_func
def k(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * 64], a)
            T.copy(B[k * 64, 0], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.exp2(c[i, j])
        T.copy(c, C)
"""
    cell = tilelang_nb.compile_cell(text, target="cuda", arch="sm_90a")
    source = cell.namespace["k"].build().device.cuda_source
    assert "wgmma" in source and "tl_exp2(" in source and "exp2f(" not in source
