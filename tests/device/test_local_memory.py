"""Arrays of a thread that lie in memory (TL216), and what to change where registers are spilled (TL214)."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang_nb
from tilelang_nb.device.compiler_warnings import compiler_warnings
from tilelang_nb.device.private_arrays import RUN_TIME, UNROLLED, private_arrays

HEAD = """
@T.prim_func
def k(A: T.Tensor((512,), "int32"), B: T.Tensor((65536,), "float32"), n: T.int32):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        x = T.alloc_local((16,), "float32")
        large = T.alloc_local((1024,), "float32")
"""
FILLED = "for i in range(16):\n            x[i] = B[tx + i]"
BODIES = {
    "an index from memory": (
        f"{FILLED}\n        for i in range(n):\n            x[A[i] % 16] += 1.0\n        B[tx] = x[3]",
        ("x[A[i] % 16] += 1.0", "`x` lies in memory, 64 bytes", "run time"),
    ),
    "a loop of unknown turns": (
        f"{FILLED}\n        for i in range(n):\n            x[i % 16] += x[(i * 7) % 16]\n        B[tx] = x[3]",
        ("x[i % 16] += x[(i * 7) % 16]", "`x` lies in memory, 64 bytes", "run time"),
    ),
    "too many turns to unroll": (
        "for i in range(1024):\n            large[i] = B[tx + i * 7]\n"
        "        for i in range(1024):\n            B[tx * 4 + i] = large[1023 - i]",
        ("large[i] = B[tx + i * 7]", "`large` lies in memory, 4,096 bytes", "is not unrolled"),
    ),
    "loops that are unrolled": (f"{FILLED}\n        for i in range(16):\n            B[tx * 16 + i] = x[15 - i]", None),
    "a function that needs memory of its own": (
        f"{FILLED}\n        for i in range(16):\n            B[tx * 16 + i] = T.sin(x[15 - i])",
        None,
    ),
    "output": (f"{FILLED}\n        T.print(x[3])\n        B[tx] = x[2]", None),
}


def program_of(text: str, arch: str = "sm_90a") -> Any:
    cell = tilelang_nb.compile_cell(text, {}, target="cuda", arch=arch)
    assert cell.ok, cell.to_text()
    kernel = cell.namespace["k"]
    assert kernel.ptx
    return kernel.build().device


@pytest.mark.parametrize("name", BODIES)
def test_arrays_in_memory_are_told_at_the_line_of_their_index(name: str) -> None:
    body, expected = BODIES[name]
    text = HEAD + f"        {body}\n"
    program = program_of(text)
    found = compiler_warnings(program)
    if expected is None:
        assert found == ()
        return
    line, message, cause = expected
    assert program.resources.local_bytes.value > 0
    assert [one.code for one in found] == ["TL216"]
    assert text.splitlines()[found[0].span.line - 1].strip() == line
    assert message in found[0].message and cause in found[0].message and "T.unroll" in found[0].help


def test_what_is_known_of_an_index() -> None:
    body = (
        "for i in range(4):\n            j = i * 2\n            x[j] = 1.0\n        x[tx % 16] = 2.0\n"
        "        x[3] = x[4] + large[A[3]]\n        B[0] = x[1] + large[0]"
    )
    program = program_of(HEAD + f"        {body}\n")
    (function,) = program.module.functions.values()
    arrays = {one.name: one for one in private_arrays(function)}
    assert [known for _, known in arrays["x"].uses] == [UNROLLED, RUN_TIME]
    assert [known for _, known in arrays["large"].uses] == [RUN_TIME]
    assert arrays["x"].registers == 16


TWO_ACCUMULATORS = """
@T.prim_func
def k(A: T.Tensor((512, 512), "float8_e4m3"), B: T.Tensor((512, 512), "float8_e4m3"), C: T.Tensor((512, 512), "float16")):
    with T.Kernel(4, 4, threads={threads}) as (bx, by):
        A_s = T.alloc_shared((128, 128), "float8_e4m3")
        B_s = T.alloc_shared((128, 128), "float8_e4m3")
        part = T.alloc_fragment((128, 128), "float32")
        whole = T.alloc_fragment((128, 128), "float32")
        T.clear(whole)
        for ko in T.Pipelined(4, num_stages=3):
            T.copy(A[by * 128, ko * 128], A_s)
            T.copy(B[bx * 128, ko * 128], B_s)
            T.clear(part)
            T.gemm(A_s, B_s, part, transpose_B=True)
            for i, j in T.Parallel(128, 128):
                whole[i, j] += part[i, j]
        T.copy(whole, C[by * 128, bx * 128])
"""


def test_spills_in_roles_say_which_tiles_and_which_launch_would_do() -> None:
    (found,) = compiler_warnings(program_of(TWO_ACCUMULATORS.format(threads=128)))
    assert found.code == "TL214"
    assert "`threads=256`" in found.help and "`part`" in found.help and "`whole`" in found.help


def test_the_launch_that_the_advice_names_spills_nothing() -> None:
    program = program_of(TWO_ACCUMULATORS.format(threads=256))
    assert compiler_warnings(program) == () and program.resources.spill_stores.value == 0


UNEVEN = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((512, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads={threads}):
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((64, 128), "float16")
        x = T.alloc_fragment((128, 128), "float32")
        T.clear(x)
        for ko in range(8):
            T.copy(A[0, ko * 64], a)
            T.copy(B[ko * 64, 0], b)
            T.gemm(a, b, x)
        T.copy(x, C)
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("warps", [3, 7, 11])
def test_warps_that_divide_no_tile_are_told_with_how_many_would(warps: int, arch: str) -> None:
    """One of 7 or 11 warps has the whole tile; where the assembler gives up, it uses few registers."""
    program = program_of(UNEVEN.format(threads=32 * warps), arch)
    (found,) = compiler_warnings(program)
    assert found.code == "TL214" and f"as {warps} warps do not divide `x` evenly" in found.help
    given_up = program.resources.registers.value < 128
    limit = 168 if warps == 11 else 255
    expected = (
        f"keeps more values at once than it has registers, which are {limit}" if given_up else "too few registers"
    )
    assert expected in found.message
    advised = re.search(r"`threads=(\d+)`", found.help)
    assert advised is not None
    better = program_of(UNEVEN.format(threads=advised[1]), arch)
    assert compiler_warnings(better) == () and better.resources.spill_stores.value == 0


def test_no_more_threads_are_advised_where_no_block_has_them() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((1024, 1024), "float32"), B: T.Tensor((1024, 1024), "float32")):
    with T.Kernel(1, threads=512):
        x = T.alloc_fragment((256, 1024), "float32")
        T.copy(A[:256, :], x)
        T.sync_threads()
        for i, j in T.Parallel(256, 1024):
            x[i, j] = T.exp(x[i, j])
        T.sync_threads()
        T.copy(x, B[:256, :])
"""
    (found,) = compiler_warnings(program_of(text))
    assert found.code == "TL214" and "`x`" in found.help and "threads=" not in found.help


def test_parts_of_the_text_are_not_told_to_have_other_threads() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((64, 1024), "float32"), B: T.Tensor((64, 1024), "float32")):
    with T.Kernel(1, threads=256):
        x = T.alloc_fragment((64, 1024), "float32")
        with T.ws(1):
            T.copy(A, x)
            for i, j in T.Parallel(64, 1024):
                x[i, j] = T.exp(x[i, j])
            T.sync_warp()
            T.copy(x, B)
"""
    (found,) = compiler_warnings(program_of(text))
    assert found.code == "TL214" and "`x`" in found.help and "threads=" not in found.help
    assert "T.set_max_nreg" in found.help


SHARES = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((512, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((2, 128, 64), "float16")
        b = T.alloc_shared((2, 64, 128), "float16")
        x = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([128] * 2)
        with T.ws(1):
            T.set_max_nreg(24, 0)
            for ko in range(8):
                T.barrier_wait(empty[ko % 2], ko // 2 % 2 ^ 1)
                T.copy(A[0, ko * 64], a[ko % 2, :, :])
                T.copy(B[ko * 64, 0], b[ko % 2, :, :])
                T.barrier_arrive(full[ko % 2])
        with T.ws(0):
            T.set_max_nreg(240, 1)
            T.clear(x)
            for ko in range(8):
                T.barrier_wait(full[ko % 2], ko // 2 % 2)
                T.gemm(a[ko % 2, :, :], b[ko % 2, :, :], x)
                T.barrier_arrive(empty[ko % 2])
            T.copy(x, C)
"""
BESIDE = """
@T.prim_func
def k(A: T.Tensor((512, 256), "float16"), B: T.Tensor((256, 512), "float16"), C: T.Tensor((512, 512), "float32")):
    with T.Kernel(6, threads=256) as bid:
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((64, 128), "float16")
        x = T.alloc_fragment((128, 128), "float32")
        for bx, by in T.Persistent([4, 4], 6, bid):
            T.clear(x)
            for ko in T.Pipelined(4, num_stages=3):
                T.copy(A[bx * 128, ko * 64], a)
                T.copy(B[ko * 64, by * 128], b)
                T.gemm(a, b, x)
            T.copy(x, C[bx * 128, by * 128])
"""


def test_a_part_that_has_not_all_registers_is_not_told_that_it_has() -> None:
    (found,) = compiler_warnings(program_of(SHARES))
    assert found.code == "TL214" and "a thread has too few registers" in found.message


def test_registers_that_the_assembler_leaves_to_other_blocks_are_told_as_that() -> None:
    program = program_of(BESIDE, "sm_90")
    (found,) = compiler_warnings(program)
    used = program.resources.registers.value
    assert used <= 128
    assert f"keeps a thread to {used} registers, so that more blocks run at once" in found.message
