"""Text that copies with T.tma_copy, waits for its own mbarriers and divides its warp groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

import tilelang_nb
from tilelang_nb.simulator import Program

M, N, K = 200, 328, 320
ROLES = """
@T.prim_func
def k(A: T.Tensor((200, 320), "float16"), B: T.Tensor((320, 328), "float16"), C: T.Tensor((200, 328), "float32")):
    with T.Kernel(T.ceildiv(328, 256), T.ceildiv(200, 128), threads=384) as (bx, by):
        A_s = T.alloc_shared((3, 128, 64), "float16")
        B_s = T.alloc_shared((3, 64, 256), "float16")
        C_l = T.alloc_fragment((128, 256), "float32")
        full = T.alloc_barrier([128] * 3)
        empty = T.alloc_barrier([256] * 3)
        with T.ws(0, 1):
            T.inc_max_nreg(232)
            T.clear(C_l)
            for ko in range(5):
                T.barrier_wait(full[ko % 3], (ko // 3) % 2)
                {multiply}
                T.barrier_arrive(empty[ko % 3])
            T.copy(C_l, C[by * 128, bx * 256])
        with T.ws(2):
            T.dec_max_nreg(40)
            for ko in range(5):
                T.barrier_wait(empty[ko % 3], ((ko // 3) % 2) ^ 1)
                T.tma_copy(A[by * 128, ko * 64], A_s[ko % 3, :, :], barrier=full[ko % 3])
                T.tma_copy(B[ko * 64, bx * 256], B_s[ko % 3, :, :], barrier=full[ko % 3])
                T.barrier_arrive(full[ko % 3])
"""
IN_STEP = """
@T.prim_func
def k(A: T.Tensor((200, 320), "float16"), B: T.Tensor((320, 328), "float16"), C: T.Tensor((200, 328), "float32")):
    with T.Kernel(T.ceildiv(328, 128), T.ceildiv(200, 128), threads=128) as (bx, by):
        A_s = T.alloc_shared((128, 32), "float16")
        B_s = T.alloc_shared((32, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier(128)
        T.clear(C_l)
        for ko in range(10):
            T.tma_copy(A[by * 128, ko * 32], A_s, barrier=full)
            T.tma_copy(B[ko * 32, bx * 128], B_s, barrier=full)
            T.barrier_arrive(full)
            {wait}
            {multiply}
        T.copy(C_l, C[by * 128, bx * 128])
"""
WAIT = "T.mbarrier_wait_parity(full, ko % 2)"
BY_ELEMENTS = """for i, j in T.Parallel(128, 128):
                for q in range(32):
                    C_l[i, j] += A_s[i, q] * B_s[q, j]"""


def run(text: str) -> tuple[Any, np.ndarray, np.ndarray, tuple[Any, ...]]:
    """(lowered, result, expected, findings)."""
    result = lowered(text, {})
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    c = np.full((M, N), np.nan, np.float32)
    report = Program(result.launches[0]).run({"A": a, "B": b, "C": c})
    return result, c, a.astype(np.float32) @ b.astype(np.float32), report.findings


def line_of(text: str, part: str) -> int:
    return 1 + next(number for number, line in enumerate(text.splitlines()) if part in line)


def products(result: Any) -> list[str]:
    return [one.value for one in result.decisions if one.subject == "product"]


WHOLE = "T.{}(A_s[ko % 3, :, :], B_s[ko % 3, :, :], C_l)"
MULTIPLIED = {
    "a product that is over": WHOLE.format("gemm"),
    "a product that somebody waits for": WHOLE.format("wgmma_gemm") + "; T.wait_wgmma(0)",
}


@pytest.mark.parametrize("name", MULTIPLIED)
def test_roles_by_hand_multiply_with_warp_groups(name: str) -> None:
    result, c, expected, findings = run(ROLES.format(multiply=MULTIPLIED[name]))
    assert all(value.startswith("wgmma m64n256k16") for value in products(result))
    assert not [found for found in result.diagnostics if found.code == "TL211"]
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(finding) for finding in findings]


def test_a_product_that_nobody_waits_for_is_found() -> None:
    _, _, _, findings = run(ROLES.format(multiply=WHOLE.format("wgmma_gemm")))
    assert [(one.code, one.span.line) for one in findings] == [("TL401", line_of(ROLES, "T.copy(C_l"))]
    assert "still adding" in findings[0].message and "T.wait_wgmma" in str(findings[0])


@pytest.mark.parametrize(
    ("multiply", "engine"),
    [("T.gemm(A_s, B_s, C_l)", "wgmma m64n128k16"), (BY_ELEMENTS, None), ("T.gemm(A_s, B_s, C_l); C_l[0, 0] += 0 * A_s[0, 0]", "mma.sync")],
)  # fmt: skip
def test_copies_in_step_with_their_use(multiply: str, engine: str | None) -> None:
    """Products of warp groups read swizzled tiles; where anything else reads them too, tiles lie as they are."""
    result, c, expected, findings = run(IN_STEP.format(wait=WAIT, multiply=multiply))
    assert [value[: len(engine or "")] for value in products(result)] == ([] if engine is None else [engine])
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(finding) for finding in findings]


def test_a_missing_wait_is_found() -> None:
    _, _, _, findings = run(IN_STEP.format(wait="pass", multiply="T.gemm(A_s, B_s, C_l)"))
    assert findings and all(one.code == "TL401" for one in findings)
    assert any("while an asynchronous copy is writing it" in one.message for one in findings)
    assert any("T.mbarrier_wait_parity" in str(one) for one in findings)


def test_a_deadlock_says_what_is_missing_when_nobody_can_go_on() -> None:
    """Not what was missing when the first thread began to wait: the arrivals came after that, the bytes never do."""
    text = ROLES.format(multiply=MULTIPLIED["a product that is over"])
    arrival = "T.barrier_arrive(full[ko % 3])"
    text = text.replace(arrival, "T.mbarrier_expect_tx(full[ko % 3], 1); " + arrival)
    _, _, _, findings = run(text)
    (found,) = [one for one in findings if one.code == "TL405"]
    assert "wait for 128 bytes at the barrier `full` that no copy brings" in found.message


@pytest.mark.parametrize("wait", ["pass", "T.barrier_wait(full[ko % 3], ((ko // 3) % 2) ^ 1)"])
def test_a_role_that_does_not_wait_for_its_tiles_is_told_of_the_copy(wait: str) -> None:
    """It runs first, and reads what nothing has written yet: where the copies run first, it reads while they do."""
    text = ROLES.format(multiply=WHOLE.format("gemm"))
    text = text.replace("T.barrier_wait(full[ko % 3], (ko // 3) % 2)", wait)
    _, _, _, findings = run(text)
    races = [one for one in findings if one.code == "TL401"]
    assert {one.span.line for one in races} == {line_of(text, "T.gemm")}
    assert all("while an asynchronous copy is writing it" in one.message for one in races)
    assert {note.span.line for one in races for note in one.notes if note.span} == {
        line_of(text, "T.tma_copy(A"),
        line_of(text, "T.tma_copy(B"),
    }
    assert all("T.mbarrier_wait_parity" in str(one) for one in races)
    assert not [one for one in findings if one.code == "TL403"]


def test_a_tile_that_nothing_writes_in_any_order_is_still_unwritten() -> None:
    text = ROLES.format(multiply=WHOLE.format("gemm"))
    text = "\n".join(line for line in text.splitlines() if "T.tma_copy(A" not in line)
    _, _, _, findings = run(text)
    assert [one.code for one in findings] == ["TL403"] and "`A_s`" in findings[0].message


def test_registers_of_two_warp_groups() -> None:
    """256 threads have fewer than there are to begin with: the device compiler decides how many."""
    text = (
        ROLES.format(multiply=WHOLE.format("gemm"))
        .replace("threads=384", "threads=256")
        .replace("T.ws(0, 1)", "T.ws(0)")
    )
    text = text.replace("T.ws(2)", "T.ws(1)").replace("[256] * 3", "[128] * 3").replace("(128, 256)", "(128, 128)")
    text = (
        text.replace("(3, 64, 256)", "(3, 64, 128)")
        .replace("bx * 256", "bx * 128")
        .replace("ceildiv(328, 256)", "ceildiv(328, 128)")
    )
    text = text.replace("T.inc_max_nreg(232)", "T.set_max_nreg(240, 1)").replace(
        "T.dec_max_nreg(40)", "T.set_max_nreg(24, 0)"
    )
    _, c, expected, findings = run(text)
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(finding) for finding in findings]


def test_a_wait_of_some_warps_is_none_of_the_others() -> None:
    wait = (
        WHOLE.format("wgmma_gemm")
        + "\n                if T.get_thread_binding() % 128 < 64:\n                    T.wait_wgmma(0)"
    )
    _, _, _, findings = run(ROLES.format(multiply=wait))
    assert {one.code for one in findings} == {"TL401"}
    assert any("still adding" in one.message for one in findings)


def test_registers_that_a_part_of_a_warp_group_asks_for_are_found() -> None:
    text = ROLES.format(multiply=WHOLE.format("gemm"))
    text = text.replace(
        "            T.dec_max_nreg(40)",
        "            if T.get_thread_binding() < 288:\n                T.dec_max_nreg(40)",
    )
    _, _, _, findings = run(text)
    assert [(one.code, one.span.line) for one in findings] == [("TL405", line_of(text, "T.dec_max_nreg"))]
    assert "only a part of a warp group comes to this change of registers" in findings[0].message


COUNTS = {
    "more arrivals than a phase counts": ("full = T.alloc_barrier(64)", WAIT, "TL405", "T.mbarrier_wait_parity", "where 128 arrived at once in a phase that counts 64"),
    "bytes that no copy brings": ("T.mbarrier_expect_tx(full, 64)", WAIT, "TL405", "T.mbarrier_wait_parity", "bytes at the barrier `full` that no copy brings"),
    "arrivals that nobody makes": ("pass", "T.mbarrier_wait_parity(full, (ko + 1) % 2)", "TL405", "T.mbarrier_wait_parity", "128 of 128 arrivals"),
    "too few arrivals": ("full = T.alloc_barrier(256)", WAIT, "TL405", "T.mbarrier_wait_parity", "128 of 256 arrivals at the barrier `full`"),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_a_wrong_count_at_a_barrier_is_found_at_its_wait(name: str) -> None:
    statement, wait, code, line, words = COUNTS[name]
    text = IN_STEP.format(wait=wait, multiply="T.gemm(A_s, B_s, C_l)")
    if "alloc" in statement:
        text = text.replace("full = T.alloc_barrier(128)", statement)
    else:
        text = text.replace(
            "        for ko in range(10):\n", f"        for ko in range(10):\n            {statement}\n"
        )
    _, _, _, findings = run(text)
    found = [one for one in findings if one.code == code]
    assert [one.span.line for one in found] == [line_of(text, line)] and words in found[0].message, findings


REFUSED = {
    "rows of the array": ("(320, 325)", "(32, 128)", "the rows of `B` are not known to be multiples of 16 bytes"),
    "tiles that are too wide": ("(320, 328)", "(32, 520)", "no bulk copy moves a tile of the shape of `B_s`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_bulk_copy_moves_is_refused_at_its_line(name: str) -> None:
    array, tile, reason = REFUSED[name]
    text = IN_STEP.format(wait=WAIT, multiply="pass")
    text = text.replace("B: T.Tensor((320, 328)", f"B: T.Tensor({array}").replace(
        "B_s = T.alloc_shared((32, 128)", f"B_s = T.alloc_shared({tile}"
    )
    text = text.replace("B[ko * 32, bx * 128]", "B[ko * 32, 0]")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == ("TL302", line_of(IN_STEP, "T.tma_copy(B")) and reason in found.message


def test_older_architectures_have_no_bulk_copies() -> None:
    text = IN_STEP.format(wait=WAIT, multiply="T.gemm(A_s, B_s, C_l)")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    found = [one for one in cell.diagnostics if one.severity == "error"]
    assert {(one.code, one.span.line) for one in found} == {
        ("TL302", line_of(IN_STEP, f"T.tma_copy({array}")) for array in "AB"
    }
    assert "needs sm_90" in found[0].message
