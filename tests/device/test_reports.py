"""What kernels print and assert, from the words that a launch leaves behind."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_nb.device.reports import HEADER

CELL = """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), n: T.int32):
    with T.Kernel(2, threads=32) as bx:
        T.device_assert(n > 3, "n is small")
        for i in T.Parallel(32):
            T.print(A[bx * 32 + i], msg="element")
        T.print(n)
        T.print(msg="here")
"""


def words(*records: tuple[int, int, int, int, int, list[int]], room: int = 1 << 12) -> np.ndarray:
    """A report with records (site, order, block, thread, value bits, indices)."""
    found = np.zeros(room, np.uint32)
    at = HEADER
    for site, order, block, thread, bits, indices in records:
        size = 7 + len(indices)
        record = [size, site, order, block, thread, bits & 0xFFFFFFFF, bits >> 32, *indices]
        found[at : at + size] = record[: len(found) - at]
        at += size
    found[0], found[1] = at - HEADER, room
    return found


def double(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


def test_only_kernels_that_print_have_a_report(program_of) -> None:
    program = program_of(CELL)
    (launch,) = program.launches
    assert launch.report == "tl_report"
    assert ("tl_report", "pointer", "uint32") in [(p.name, p.kind, p.dtype) for p in launch.parameters]
    assert program.cubin
    silent = program_of("""
@T.prim_func
def k(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            A[i] = 1
""")
    assert silent.launches[0].report == "" and silent.reports == (None,)


def test_lines_are_those_of_the_simulated_device(program_of) -> None:
    (report,) = program_of(CELL).reports
    value, scalar, text = (site for site in range(1, 4))
    content = report.read(
        words(
            (text, 2, 0, 5, 0, []),
            (scalar, 1, 1, 0, (1 << 64) - 7, []),
            (value, 0, 1, 2, double(0.25), []),
            (value, 0, 0, 31, double(2.0), []),
        ),
        (2, 1, 1),
        (32, 1, 1),
    )
    assert content.printed == (
        "element BLOCK=(0, 0, 0), THREAD=(31, 0, 0): 2.0",
        "element BLOCK=(1, 0, 0), THREAD=(2, 0, 0): 0.25",
        "n BLOCK=(1, 0, 0), THREAD=(0, 0, 0): -7",
        "here BLOCK=(0, 0, 0), THREAD=(5, 0, 0)",
    )
    assert content.failures == () and not content.lost


def test_elements_of_a_buffer_are_named_by_their_indices(program_of) -> None:
    program = program_of("""
@T.prim_func
def k(A: T.Tensor((2, 4), "float16")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((2, 4), "float16")
        T.copy(A, s)
        T.print(s, msg="s")
""")
    assert program.cubin
    (report,) = program.reports
    content = report.read(words((0, 0, 0, 0, double(1.5), [1, 3])), (1, 1, 1), (32, 1, 1))
    assert content.printed == ("s BLOCK=(0, 0, 0), THREAD=(0, 0, 0): s[1, 3] = 1.5",)


def test_a_failed_assertion_is_said_once_at_its_place(program_of) -> None:
    (report,) = program_of(CELL).reports
    content = report.read(words((0, 0, 1, 3, 0, []), (0, 0, 0, 9, 0, [])), (2, 1, 1), (8, 4, 1))
    (found,) = content.failures
    assert (found.code, found.span.line) == ("TL404", 5)
    assert "n is small" in found.message and "thread (1, 1, 0) of block (0, 0, 0)" in found.message
    assert [note.message for note in found.notes] == ["2 times in this launch"]


def test_records_without_room_are_counted(program_of) -> None:
    (report,) = program_of(CELL).reports
    found = words((1, 0, 0, 0, double(1.0), []), room=HEADER + 7 + 3)
    found[0] += 70
    content = report.read(found, (2, 1, 1), (32, 1, 1))
    assert len(content.printed) == 2 and "left out" in content.printed[-1] and content.lost


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "float8_e5m2"]
)
def test_values_of_every_type_can_be_printed(program_of, dtype: str) -> None:
    assert program_of(f"""
@T.prim_func
def k(A: T.Tensor((64,), "{dtype}")):
    with T.Kernel(1, threads=32):
        T.print(A[0])
        T.print(A)
""").cubin


def test_a_thread_whose_assertion_fails_ends_unless_others_count_on_it(program_of) -> None:
    assert "return;" in program_of(CELL).kernel_source
    counted = program_of("""
@T.prim_func
def k(A: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=32):
        bar = T.alloc_barrier(32)
        T.device_assert(A[0] > 0)
        T.barrier_arrive(bar)
        T.barrier_wait(bar, 0)
""")
    assert "return;" not in counted.kernel_source and counted.cubin


def test_a_parameter_named_like_the_report_keeps_its_name(program_of) -> None:
    (launch,) = program_of("""
@T.prim_func
def k(tl_report: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=32):
        T.print(tl_report[0])
""").launches
    assert launch.report == "tl_report_1"
    assert [parameter.name for parameter in launch.parameters] == ["tl_report", "tl_report_1"]
