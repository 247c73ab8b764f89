"""Orders of atomic operations: fences in the CUDA text, and copies that do not run ahead of them."""

from __future__ import annotations

import re

import pytest
from lowering.products import compiled, thread_text

import tilelang_nb

TEXT = """
@T.prim_func
def k(F: T.Tensor((4,), "int32"), Y: T.Tensor((4,), "int32")):
    with T.Kernel(4, threads=32) as b:
        if T.get_thread_binding() == 0:
            {}
"""
RELEASE, ACQUIRE, STRONG = "fence.acq_rel.gpu", "fence.acq_rel.gpu", "fence.sc.gpu"
OPERATIONS = {
    "add": ('Y[b] = T.atomic_add(F[0], 1, memory_order="{}", return_prev=True)', "atom"),
    "max": ('Y[b] = T.atomic_max(F[0], 1, memory_order="{}", return_prev=True)', "atom"),
    "or": ('T.atomic_or(F[0], 1, memory_order="{}")', "red|atom"),
    "load": ('Y[b] = T.atomic_load(F[0], memory_order="{}")', "ld"),
    "store": ('T.atomic_store(F[0], b, memory_order="{}")', "st"),
    "a tile": ('T.atomic_add(F[0:4], Y[0:4], memory_order="{}")', "red|atom"),
}
ORDERS = {
    "relaxed": ("", ""),
    "acquire": ("", ACQUIRE),
    "consume": ("", ACQUIRE),
    "release": (RELEASE, ""),
    "acq_rel": (RELEASE, ACQUIRE),
    "seq_cst": (STRONG, ACQUIRE),
}
REFUSED = {"load": ("release", "acq_rel"), "store": ("acquire", "acq_rel", "consume")}


def instructions(ptx: str) -> list[str]:
    """Fences and accesses of global memory, in order."""
    return re.findall(
        r"^\s+(?:@%p\d+ )?((?:membar|fence|atom|red|ld|st)[.\w]*)", re.sub(r"ld[.]param[.\w]*", "", ptx), re.M
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "a tile"])
def test_the_device_gets_a_fence_before_and_after(name: str, order: str) -> None:
    if order in REFUSED.get(name, ()):
        return
    text, instruction = OPERATIONS[name]
    cell = tilelang_nb.compile_cell(TEXT.format(text.format(order)), {}, target="cuda", arch="sm_80")
    kernel = cell.namespace["k"]
    found = [one.replace("membar.gl", STRONG) for one in instructions(kernel.ptx)]
    at = next(i for i, one in enumerate(found) if re.match(rf"({instruction})\.", one))
    before, after = ORDERS[order]
    assert [one for one in found[:at] if "fence" in one] == [before] * bool(before), found
    assert [one for one in found[at:] if "fence" in one] == [after] * bool(after), found


def test_every_element_of_a_tile_has_the_order() -> None:
    kernel = compiled(TEXT.format("pass") + "        " + OPERATIONS["a tile"][0].format("acq_rel"), "sm_80")
    assert "tl_order_acq_rel" in thread_text(kernel)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("__threadfence", "gl"), ("__threadfence_block", "cta"), ("__threadfence_system", "sys")],
)
def test_fences_stand_where_the_text_has_them(name: str, instruction: str) -> None:
    text = f'F[0] = 1\n            T.call_extern("void", "{name}")\n            F[1] = 2'
    cell = tilelang_nb.compile_cell(TEXT.format(text), {}, target="cuda", arch="sm_80")
    found = instructions(cell.namespace["k"].ptx)
    assert found == ["st.global.u32", f"membar.{instruction}", "st.global.u32"] or found[1].startswith("fence"), found


PRODUCT = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((512, 256), "float16"), F: T.Tensor((8,), "int32"),
      C: T.Tensor((128, 256), "float16")):
    with T.Kernel(1, threads=256) as b:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 256), "float16")
        c = T.alloc_fragment((128, 256), "float32")
        T.clear(c)
        {before}
        for k in T.Pipelined(8, num_stages=2):
            {inside}
            T.copy(A[0, k * 64], A_s)
            T.copy(B[k * 64, 0], B_s)
            T.gemm(A_s, B_s, c)
        T.copy(c, C)
"""
WAIT = "while T.atomic_load(F[0]) == 0: T.evaluate(0)"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "inside", ['T.call_extern("void", "__threadfence")', WAIT, 'T.atomic_add(F[0], 1, memory_order="release")']
)
def test_copies_do_not_run_ahead_of_what_orders_blocks(inside: str, arch: str) -> None:
    (loop,) = compiled(PRODUCT.format(before="pass", inside=inside), arch).pipelines
    assert not loop.ahead and [one.tile for one in loop.staying] == ["A_s", "B_s"]
    assert {one.reason for one in loop.staying} == {
        "the turn waits for other blocks, or they for it, by an atomic operation or a fence"
    }
    (loop,) = compiled(PRODUCT.format(before="pass", inside="T.atomic_add(F[0], 1)"), arch).pipelines
    assert loop.ahead and not loop.staying


def test_a_role_does_not_copy_before_another_waits_for_a_block() -> None:
    kernel = compiled(PRODUCT.format(before=WAIT, inside="pass"), "sm_90a")
    (roles,) = [str(one) for one in kernel.build().lowered.decisions if one.subject == "roles"]
    assert "blocks wait for each other by an atomic operation" in roles
    (loop,) = kernel.pipelines
    assert loop.ahead
