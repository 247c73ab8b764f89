"""Every line of CUDA C, PTX and SASS leads to the lines of the cell that it comes from."""

from __future__ import annotations

import re

import pytest

from tilelang_nb.device import nvrtc

CELL = """
@T.macro
def halved(x):
    return x * 0.5

@T.prim_func
def k(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(4, threads=64) as bx:
        s = T.alloc_shared((256,), "float32")
        T.copy(A[bx * 256], s)
        for i in T.Parallel(256):
            if s[255 - i] > 0:
                B[bx * 256 + i] = T.exp(s[255 - i])
            else:
                B[bx * 256 + i] = halved(s[i])
"""


def lines_with(pattern: str, text: str, places: tuple[tuple[int, ...], ...]) -> set[int]:
    """The lines of the cell of the lines of a text that match."""
    numbered = list(zip(text.split("\n"), places))
    assert any(re.search(pattern, line) for line, _ in numbered), pattern
    return {number for line, numbers in numbered if re.search(pattern, line) for number in numbers}


def test_cuda_lines_lead_to_their_statements(program_of) -> None:
    program = program_of(CELL)
    source, places = program.cuda_source, program.cuda_lines
    assert len(places) == len(source.split("\n")) - 1
    assert lines_with("expf", source, places) == {13}
    assert lines_with(r"\* 0\.5f", source, places) == {4} or lines_with(r"\* 0\.5f", source, places) == {15}
    assert lines_with("__global__", source, places) == {8}
    assert lines_with("__syncthreads", source, places) <= {10, 11, 12, 13}
    kernel = source.split("\n")[program.kernel_line :]
    body = [(line, numbers) for line, numbers in zip(kernel, places[program.kernel_line :]) if line.strip(" {}")]
    without = [line for line, numbers in body if not numbers]
    assert all("else" in line or "arena" in line or "s_ptr" in line or "* s =" in line for line in without), without


def test_the_prelude_comes_from_no_line(program_of) -> None:
    program = program_of(CELL.replace('"float32")):', '"float16")):'))
    assert program.kernel_line > 0
    assert set(program.cuda_lines[: program.kernel_line]) == {()}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_ptx_lines_lead_to_their_statements(program_of, arch: str) -> None:
    program = program_of(CELL, arch)
    assert len(program.ptx_lines) == len(program.ptx.rstrip("\n").split("\n"))
    assert lines_with(r"ex2\.approx", program.ptx, program.ptx_lines) == {13}
    assert lines_with(r"^\s+st\.global", program.ptx, program.ptx_lines) <= {13, 15}
    assert lines_with(r"^\s+ld\.global", program.ptx, program.ptx_lines) == {10}
    instructions = [
        numbers
        for line, numbers in zip(program.ptx.split("\n"), program.ptx_lines)
        if re.match(r"\s+(@%p\d+ )?[a-z]+\.", line) and "param" not in line and "cvta" not in line
    ]
    merged = program.ptx.count("\t.loc\t1 0 ")  # the compiler gives line 0 to what it made of several places
    assert instructions and sum(not numbers for numbers in instructions) <= merged


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_machine_code_leads_to_its_statements(program_of, arch: str) -> None:
    program = program_of(CELL, arch)
    assert len(program.sass_lines) == len(program.sass.rstrip("\n").split("\n"))
    assert lines_with(r"MUFU\.EX2", program.sass, program.sass_lines) == {13}
    assert lines_with(r"LDG", program.sass, program.sass_lines) == {10}
    assert lines_with(r"STG", program.sass, program.sass_lines) <= {13, 15}
    assert "//##" not in program.sass


def test_what_is_inlined_from_the_prelude_belongs_to_its_call(program_of) -> None:
    program = program_of("""
@T.prim_func
def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int8")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = T.cast(A[i] // 3.0, "int8")
""")
    assert lines_with(r"F2I", program.sass, program.sass_lines) == {6}
    assert lines_with(r"cvt\.rzi", program.ptx, program.ptx_lines) == {6}


def test_a_text_that_nvrtc_refuses_is_an_internal_error_at_the_line_of_the_cell(program_of) -> None:
    from tilelang_nb.device import DeviceError

    program = program_of(CELL)
    program.cuda_source = program.cuda_source.replace("expf(", "no_such_function(")
    with pytest.raises(DeviceError) as caught:
        _ = program.cubin
    found = caught.value.diagnostic
    assert (found.code, found.span.line) == ("TL900", 13)
    assert "no_such_function" in found.help


def test_a_while_loop_is_written_with_its_condition(program_of) -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        i = T.alloc_var("int32", init=0)
        while True:
            i += 1
            if A[i] > 3:
                break
        while (i < 5) & (A[i] > 1):
            i += 1
        B[t] = i
"""
    program = program_of(text)
    lines = [line.strip() for line in program.cuda_source.splitlines()]
    assert "while (true) {" in lines and not any("{ break; }" in line for line in lines)
    (test,) = (line for line in lines if line.startswith("while (") and "true" not in line)
    assert "< 5" in test and test.count("(") == test.count(")")
    assert nvrtc.compile_cuda(program.cuda_source, "sm_80").cubin
