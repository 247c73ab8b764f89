"""What the assembler says of slow code is a warning at the line of the product: real logs of NVRTC, and its sentences."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from lowering.hopper import MATMUL

import tilelang_nb
from tilelang_nb.device.compiler_warnings import compiler_warnings
from tilelang_nb.device.products_in_flight import may_run_at
from tilelang_nb.source.catalogue.page import page

TWO = """
@T.prim_func
def k(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((2, 64, 256), "float32"), n: T.int32):
    with T.Kernel(1, threads=128):
        A_s = T.alloc_shared((64, 64), "float16")
        B_s = T.alloc_shared((64, 256), "float16")
        c = T.alloc_fragment((64, 256), "float32")
        d = T.alloc_fragment((64, 256), "float32")
        full = T.alloc_barrier(128)
        T.clear(c)
        T.clear(d)
        T.tma_copy(A, A_s, barrier=full)
        T.tma_copy(B, B_s, barrier=full)
        T.barrier_arrive(full)
        T.barrier_wait(full, 0)
        for i in range(n):
            T.wgmma_gemm(A_s, B_s, c)
            T.wgmma_gemm(A_s, B_s, d)
            T.wait_wgmma(0)
        T.copy(c, C[0, 0, 0])
        T.copy(d, C[1, 0, 0])
"""
# What the assembler may say of the function `k_kernel` -> words of the warning and of its help.
SERIALISED = "ptxas info    : (C7500) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
SENTENCES = {
    "the presence of Extern calls in the function 'k_kernel' in line 7": ("a function is called", "call it after"),
    "wgmma pipeline crossing function boundary at a function call in the function 'k_kernel' in line 7": (
        "a function is called",
        "call it after",
    ),
    "insufficient register resources for the wgmma pipeline in the function 'k_kernel' in line 7": (
        "too few registers",
        "smaller",
    ),
    "insufficient register resources for the function 'k_kernel'": ("too few registers", "smaller"),
    "non wgmma instructions defining input registers of a wgmma between start and end of the pipeline stage in the"
    " function 'k_kernel' in line 7": ("an operand in registers is written", "write it after"),
    "non wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline stage in the"
    " function 'k_kernel' in line 7": ("an accumulator is read", "read it after"),
    "non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in the"
    " function 'k_kernel' in line 7": ("an accumulator is written", "write it after"),
    "ill formed pipeline stage in the function 'k_kernel'": ("on different ways", "in one block"),
    "program dependence on compiler-inserted WG.DP in divergent path in the function 'k_kernel' in line 7": (
        "on different ways",
        "in one block",
    ),
}


def compiled(text: str, name: str = "k", target: str = "cuda") -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target=target, arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel = cell.namespace[name]
    assert kernel.diagnostics == () and kernel.ptx
    return cell, kernel


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_sentence_of_the_assembler_is_told_with_a_cure(sentence: str) -> None:
    cause, remedy = SENTENCES[sentence]
    program = SimpleNamespace(log=SERIALISED + sentence, ptx="", ptx_spans=(), span=None)
    (found,) = compiler_warnings(program)
    assert (found.code, found.severity) == ("TL213", "warning")
    assert cause in found.message and remedy in found.help


def test_accumulators_that_do_not_fit_are_told_at_the_products() -> None:
    cell, kernel = compiled(TWO)
    found = {one.code: one for one in kernel.diagnostics}
    assert found.keys() == {"TL213", "TL214"} and kernel.ok
    serialised, spilled = found["TL213"], found["TL214"]
    assert "too few registers for their accumulators" in serialised.message
    assert serialised.span.line == 18 and [note.span.line for note in serialised.notes] == [19]
    assert spilled.span.line == 17, "the first product"
    resources = kernel.resources
    for figure in (resources.spill_stores, resources.spill_loads):
        assert f"{figure.value:,} bytes" in spilled.message
    for report in (cell.to_text(), cell.to_html()):
        assert "do not run on" in report
    data = json.loads(cell.to_json())
    assert {one["code"] for one in data["diagnostics"]} == data["pages"].keys() == found.keys()


def test_an_accumulator_that_is_used_too_early_is_told_once() -> None:
    _, kernel = compiled(page("TL213").bad, "product")
    (found,) = kernel.diagnostics
    assert kernel.build().device.log.count("(C7517)") >= 1
    assert found.span.line == 12 and "used before they are waited for" in found.message


WAYS = """.entry other(
  wgmma.commit_group.sync.aligned;
  ret;
.entry k(
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  {before}
$L__BB0_1:
  mul.f32 head;
  {inside}
{{
LAB_WAIT:
@P1 bra.uni DONE;
bra.uni LAB_WAIT;
DONE:
}}
  @%p1 bra $L__BB0_1;
  mul.f32 behind;
  ret;
"""
STARTED = "wgmma.commit_group.sync.aligned;"
# (before the loop, in it) -> may a product run at the head of the loop, and behind it?
IN_FLIGHT = {
    ("nop", "nop"): (False, False),
    ("nop", STARTED): (True, True),
    (STARTED, "wgmma.wait_group.sync.aligned 0;"): (True, False),
    (STARTED, "wgmma.wait_group.sync.aligned 1;"): (True, True),
    ("nop", f"{STARTED} ; \n  wgmma.wait_group.sync.aligned 0;"): (False, False),
    ("bra.uni $L__BB0_2;", f"{STARTED}\n$L__BB0_2:"): (True, True),
}


@pytest.mark.parametrize("ways", IN_FLIGHT)
def test_a_product_runs_on_along_the_ways_of_the_program(ways: tuple[str, str]) -> None:
    """Not along the lines: a wait in front of a loop ends none that the turn before has left running."""
    before, inside = ways
    text = WAYS.format(before=before, inside=inside)
    lines = text.splitlines()
    places = [1 + next(at for at, line in enumerate(lines) if mark in line) for mark in ("head", "behind")]
    assert tuple(may_run_at(text, "k", line) for line in places) == IN_FLIGHT[ways]


@pytest.mark.parametrize("ways", IN_FLIGHT)
def test_a_wait_that_the_assembler_puts_in_is_told_where_one_may_run(ways: tuple[str, str]) -> None:
    before, inside = ways
    text = WAYS.format(before=before, inside=inside)
    line = 1 + next(at for at, one in enumerate(text.splitlines()) if "head" in one)
    log = (
        f"ptxas info    : (C7517) wgmma.wait_group is injected in around line {line} by compiler to allow use of"
        " registers defined by GMMA in function 'k'"
    )
    program = SimpleNamespace(log=log, ptx=text, ptx_spans=(), span=None)
    assert [one.code for one in compiler_warnings(program)] == ["TL213"] * IN_FLIGHT[ways][0]


def test_registers_that_are_not_divided_are_told_at_the_first_part_that_asks() -> None:
    _, kernel = compiled(page("TL217").bad, "product")
    assert "(C7507)" in kernel.build().device.log
    (found,) = kernel.diagnostics
    assert (found.code, found.severity, found.span.line) == ("TL217", "warning", 9)
    assert compiled(page("TL217").good, "product")[1].diagnostics == ()


@pytest.mark.parametrize("number", range(7500, 7520))
def test_no_loss_of_performance_is_left_out(number: int) -> None:
    """Whatever number the assembler gives to its sentence."""
    for sentence, code in ((next(iter(SENTENCES)), "TL213"), ("'setmaxnreg' ignored to allow debugging.", "TL217")):
        start = SERIALISED if code == "TL213" else SERIALISED[: SERIALISED.index("wgmma")]
        log = start.replace("7500", str(number)) + sentence
        program = SimpleNamespace(log=log, ptx="", ptx_spans=(), span=None)
        assert [one.code for one in compiler_warnings(program)] == [code]


CLEARED = """
@T.prim_func
def k(A: T.Tensor((128, 192), "float16"), B: T.Tensor((192, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((128, 192), "float16")
        b = T.alloc_shared((192, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier(128)
        with T.ws(1):
            T.tma_copy(A, a, barrier=full)
            T.tma_copy(B, b, barrier=full)
            T.barrier_arrive(full)
        with T.ws(0):
            T.barrier_wait(full, 0)
            {clear}
            for q in range(3):
                T.{product}(a[:, q * 64 : q * 64 + 64], b[q * 64 : q * 64 + 64, :], c)
                T.wait_wgmma({pending})
            T.wait_wgmma(0)
            T.copy(c, C)
"""
CLEARS = ("T.clear(c)", "T.fill(c, 1.5)", "for i, j in T.Parallel(128, 128):\n                c[i, j] = 0.0")


@pytest.mark.parametrize("clear", CLEARS)
@pytest.mark.parametrize(("product", "pending"), [("gemm", 0), ("wgmma_gemm", 0), ("wgmma_gemm", 1)])
def test_zeros_of_a_product_of_several_instructions_are_written_before_it_starts(
    clear: str, product: str, pending: int
) -> None:
    """Else the assembler waits for the first instruction, to write those of the second one, or lets nothing run on."""
    _, kernel = compiled(CLEARED.format(clear=clear, product=product, pending=pending))
    assert "(C75" not in kernel.build().device.log and "wgmma.mma_async" in kernel.ptx


def test_products_in_roles_run_on_and_keep_their_registers() -> None:
    text = MATMUL.format(
        a=(256, 256), b=(256, 256), m=256, n=256, k=256, bm=128, bn=128, bk=64, dtype="float16", other="float16",
        tile="float16", other_tile="float16", out="float16", total="float32", threads=256, stages=3, ta=False,
        tb=False, policy="Square", a_tile=(128, 64), b_tile=(64, 128), a_from="by * 128, ko * 64",
        b_from="ko * 64, bx * 128",
    )  # fmt: skip
    _, kernel = compiled(text)
    assert kernel.diagnostics == ()


def test_instructions_in_braces_keep_their_lines() -> None:
    """Products have predicates of their own, in braces."""
    _, kernel = compiled(page("TL213").good, "product")
    (stage,) = [one for one in kernel.stages if one.name == "ptx"]
    lines = [numbers for text, numbers in zip(stage.text.splitlines(), stage.lines) if "wgmma.mma_async" in text]
    assert len(lines) == 4 and set(lines) == {(12,)}
