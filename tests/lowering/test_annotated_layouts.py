"""T.annotate_layout: a tile lies where its layout says, in shared memory and in registers; results stay the same."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from lowering.products import compiled, thread_text

import tilelang_nb

TRANSPOSE = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        T.annotate_layout({{s: {layout}}})
        T.copy(A, s)
        for i, j in T.Parallel(64, 64):
            C[i, j] = s[j, i]
"""


def ran(text: str, *arrays: np.ndarray, **names: Any) -> Any:
    """The kernel after a run without findings."""
    kernel = compiled(text, **names)
    kernel(*arrays)
    assert tuple(kernel.findings) == (), [str(finding) for finding in kernel.findings]
    return kernel


def conflicts(kernel: Any, access: str) -> dict[str, int]:
    """buffer -> how many times the least possible number of wavefronts its accesses took."""
    (counters,) = kernel.counters
    return {row.buffer: row.used // row.ideal for row in counters.shared_banks if row.access == access}


def halves(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float16)


@pytest.mark.parametrize(
    ("layout", "writes", "reads"),
    [
        ("T.make_linear_layout(s)", 1, 32),
        ("T.make_swizzled_layout(s)", 1, 4),
        ("T.make_full_bank_swizzled_layout(s)", 1, 4),
        ("T.make_half_bank_swizzled_layout(s)", 1, 8),
        ("T.make_quarter_bank_swizzled_layout(s)", 1, 16),
        ("T.Layout((64, 64), lambda i, j: i * 66 + j)", 1, 1),
        ("T.Layout((64, 64), lambda i, j: (i, (j + 2 * i) % 64))", 1, 1),
        ("T.Layout((64, 64), lambda i, j: [j, i])", 32, 1),
        ("lambda i, j: (i, j ^ ((i // 2 % 8) * 8))", 1, 4),
        ("T.Layout((64, 64), lambda i, j: T.if_then_else(i < 32, i * 64 + j, i * 64 + (j + 2) % 64))", None, None),
    ],
)
def test_a_shared_tile_lies_as_its_layout_says(layout, writes, reads):
    a, c = halves(64, 64), np.zeros((64, 64), np.float16)
    kernel = ran(TRANSPOSE.format(layout=layout), a, c)
    np.testing.assert_array_equal(c, a.T)
    if writes is not None:
        assert (conflicts(kernel, "write"), conflicts(kernel, "read")) == ({"s": writes}, {"s": reads})


def test_gaps_take_shared_memory():
    plain = compiled(TRANSPOSE.format(layout="T.make_linear_layout(s)"))
    padded = compiled(TRANSPOSE.format(layout="lambda i, j: i * 72 + j"))
    sizes = [kernel.build().lowered.shared_memory[0].bytes for kernel in (plain, padded)]
    assert sizes == [64 * 64 * 2, (63 * 72 + 64) * 2]


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("T.Layout((64, 64), lambda i, j: i + j)", "puts elements (0, 1) and (1, 0) in one place"),
        ("T.Layout((64, 64), lambda i, j: i - j)", "puts element (0, 1) at -1"),
        ("T.Layout((64, 64), lambda i, j: A[i, j])", "gives an element of `A`"),
        ("T.Layout((64, 64), lambda i, j: i * 64 + j + bx)", "depends on `bx`"),
        ("T.Layout((64, 64), lambda i, j: i * 1.5)", "gives a float32 value"),
        ("T.Layout((64, 64), lambda i, j: i * 100000 + j)", "needs room for 6,300,064 elements"),
        ("T.Fragment((64, 64), lambda i, j: (i, j))", "its layout a `T.Fragment`"),
        ("3", "is `3`"),
    ],
)
def test_a_mistaken_layout_is_refused_at_its_line(layout, problem):
    cell = tilelang_nb.compile_cell(textwrap.dedent(TRANSPOSE.format(layout=layout)), {}, target="sim")
    (found,) = cell.diagnostics
    assert (found.code, found.span.line) == ("TL004", 6)
    assert problem in found.message and found.help


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize(
    ("layout", "engine"),
    [
        ("T.make_swizzled_layout(A_s)", "ldmatrix"),
        ("T.make_linear_layout(A_s)", "ldmatrix"),
        ("lambda i, j: i * 40 + j", "ldmatrix"),
        ("lambda i, j: i * 36 + j", ""),  # rows at multiples of 8 bytes
    ],
)
def test_a_product_in_a_pipeline_reads_tiles_in_any_order(layout, engine, stages):
    text = f"""
    @T.prim_func
    def k(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({{A_s: {layout}}})
            T.clear(C_l)
            for k in T.Pipelined(4, num_stages=stages):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)
    """
    a, b, c = halves(64, 128), halves(128, 64), np.zeros((64, 64), np.float32)
    kernel = ran(text, a, b, c, stages=stages)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    program = thread_text(kernel)
    assert ("cp.async" in program or "cp_async" in program) == (stages > 1)
    lines = [line for line in program.splitlines() if "A_s" in line]
    assert any("ldmatrix" in line for line in lines) == bool(engine)
    if layout.endswith("40 + j") or "swizzled" in layout:
        assert conflicts(kernel, "read")["A_s"] == 1


def test_a_tile_that_is_also_seen_through_a_view_keeps_its_order():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((4096,), "float16")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            v = T.reshape(s, (4096,))
            T.annotate_layout({s: lambda i, j: i * 72 + j})
            T.copy(A, s)
            T.copy(v, C)
    """
    a, c = halves(64, 64), np.zeros(4096, np.float16)
    kernel = ran(text, a, c)
    np.testing.assert_array_equal(c, a.reshape(-1))
    (decision,) = [one for one in kernel.build().lowered.decisions if one.subject == "layout"]
    assert (decision.line, "view" in decision.reason) == (7, True)


FRAGMENT = """
@T.prim_func
def k(A: T.Tensor((16, 32), "float32"), C: T.Tensor((16, 32), "float32")):
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((16, 32), "float32")
        T.annotate_layout({{f: {layout}}})
        T.copy(A, f)
        for i, j in T.Parallel(16, 32):
            f[i, j] = f[i, j] + 1.0
        T.copy(f, C)
"""


@pytest.mark.parametrize(
    ("layout", "thread", "register"),
    [
        (
            "T.Fragment((16, 32), lambda i, j: (i * 4 + j // 8, j % 8))",
            lambda i, j: i * 4 + j // 8,
            lambda i, j: j % 8,
        ),
        (
            "T.Fragment((16, 32), forward_thread_fn=lambda i, j: j % 32 + i % 2 * 32)",
            lambda i, j: j + i % 2 * 32,
            lambda i, j: i // 2,
        ),
        (
            "T.Fragment((16, 32), forward_thread_fn=lambda i, j, r: j + r * 32, forward_index_fn=lambda i, j: 15 - 15 + i, replicate=2)",
            lambda i, j: j + 0 * i,
            lambda i, j: i + 0 * j,
        ),
    ],
)
def test_a_fragment_is_held_as_its_layout_says(layout, thread, register):
    a, c = halves(16, 32).astype(np.float32), np.zeros((16, 32), np.float32)
    kernel = ran(FRAGMENT.format(layout=layout), a, c)
    np.testing.assert_array_equal(c, a + 1)
    settled = kernel.build().lowered.layouts["f"]
    i, j = np.indices((16, 32))
    np.testing.assert_array_equal(settled.owners(), thread(i, j))
    np.testing.assert_array_equal(settled.registers(), register(i, j))


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("T.Fragment((16, 32), lambda i, j: (i * 8 + j // 8, j % 8))", "to thread 123; the launch has 64"),
        ("T.Fragment((16, 32), lambda i, j: (i, j % 8))", "puts elements (0, 0) and (0, 8) in one register"),
        ("T.Fragment((16, 32), lambda i, j: (j - i, i))", "to thread -15; the launch has 64"),
        ("T.Layout((16, 32), lambda i, j: (i, j))", "its layout a `T.Layout`"),
    ],
)
def test_a_mistaken_fragment_is_refused_at_its_line(layout, problem):
    cell = tilelang_nb.compile_cell(textwrap.dedent(FRAGMENT.format(layout=layout)), {}, target="sim")
    (found,) = cell.diagnostics
    assert (found.code, found.span.line) == ("TL004", 6)
    assert problem in found.message


def test_a_fragment_without_digits_is_dealt_out_as_any_other():
    a, c = halves(16, 32).astype(np.float32), np.zeros((16, 32), np.float32)
    kernel = ran(
        FRAGMENT.format(layout="T.Fragment((16, 32), lambda i, j: ((i * 2 + j // 16) ^ (j % 2), j % 16))"), a, c
    )
    np.testing.assert_array_equal(c, a + 1)
    (decision,) = [one for one in kernel.build().lowered.decisions if one.subject == "layout"]
    assert "digits" in decision.reason and decision.line == 6


def test_an_accumulator_in_the_layout_of_its_instruction_is_as_annotated():
    """Built up from the 8 by 8 tile that the instruction set documents."""
    text = """
    base = T.Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))
    warp = base.repeat([2, 1]).repeat([1, 4]).repeat([2, 1])
    block = warp.repeat([2, 1], repeat_on_thread=True).repeat([1, 2], repeat_on_thread=True)

    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({c: block})
            T.copy(A, s)
            T.clear(c)
            T.gemm(s, s, c)
            T.copy(c, C)
    """
    a, c = halves(64, 64), np.zeros((64, 64), np.float32)
    kernel = ran(text, a, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32))
    (decision,) = [one for one in kernel.build().lowered.decisions if one.subject == "layout"]
    assert decision.value == "c as annotated" and not decision.reason
    assert "T.ptx.mma" in thread_text(kernel)


def test_an_accumulator_keeps_the_layout_of_its_instruction():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64) as bx:
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({c: T.Fragment((64, 64), lambda i, j: (j, i))})
            T.copy(A, s)
            T.clear(c)
            T.gemm(s, s, c)
            T.copy(c, C)
    """
    a, c = halves(64, 64), np.zeros((64, 64), np.float32)
    kernel = ran(text, a, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32))
    (decision,) = [one for one in kernel.build().lowered.decisions if one.subject == "layout"]
    assert "another" in decision.reason and decision.line == 7
    assert "T.ptx.mma" in thread_text(kernel)


def test_layouts_made_of_layouts_are_carried_out() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 16, 64), "float16")):
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((64, 64), "float16")
        three = T.alloc_shared((4, 16, 64), "float16")
        turned = T.Layout((64, 64), lambda i, j: [j, i])
        swizzled = T.make_swizzled_layout(S)
        T.annotate_layout({S: turned.inverse(), three: swizzled.reshape((4, 16, 64))})
        T.copy(A, S)
        for i, j in T.Parallel(64, 64):
            x, y = swizzled(i, j)
            p, q = swizzled.inverse()(x, y)
            B[i, j] = S[p, q]
            three[i // 16, i % 16, j] = A[i, j]
        T.copy(three, C)
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    a = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float16)
    b, c = np.zeros_like(a), np.zeros((4, 16, 64), np.float16)
    kernel(a, b, c)
    np.testing.assert_array_equal(b, a)
    np.testing.assert_array_equal(c, a.reshape(4, 16, 64))
    assert kernel.findings == ()
    assert kernel.layouts["S"].address(3, 5) - kernel.layouts["S"].offset == 2 * (5 * 64 + 3)
    assert kernel.layouts["three"].swizzle is not None
