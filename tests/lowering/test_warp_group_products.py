"""Pipelined products on sm_90a with roles: bulk copies, mbarriers, wgmma.  Small integers, so results are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import ROLES, engine, lowered, matmul, run

from tilelang_nb.device import generate
from tilelang_nb.simulator import Program

CASES: dict[str, dict[str, Any]] = {
    "tile of the benchmark": {"m": 256, "n": 512},
    "B stored by columns": {"tb": True},
    "A stored by columns": {"ta": True},
    "both stored by columns": {"ta": True, "tb": True},
    "ragged in every direction": {"m": 200, "n": 328, "k": 152},
    "ragged, B stored by columns": {"m": 200, "n": 328, "k": 152, "tb": True},
    "smaller than a tile": {"m": 1, "n": 8, "k": 8},
    "one warp group": {"n": 128, "bn": 128, "threads": 128},
    "four slabs of rows": {"m": 256, "n": 64, "bm": 256, "bn": 64, "threads": 128},
    "groups beside each other": {"m": 64, "n": 256, "bm": 64, "bn": 256},
    "groups across by policy": {"m": 128, "n": 256, "policy": "FullCol"},
    "rows of 64 bytes": {"bk": 32, "k": 160},
    "rows of 32 bytes, B by columns": {"bk": 16, "k": 80, "tb": True},
    "rows of 256 bytes": {"bk": 128, "k": 384, "stages": 2, "tb": True},
    "two stages": {"stages": 2},
    "more stages than turns": {"stages": 4, "k": 128, "n": 128, "bn": 128},
    "bfloat16": {"dtype": "bfloat16"},
    "tfloat32": {"dtype": "tfloat32", "bk": 32, "tb": True},
    "float8": {"dtype": "float8_e4m3fn", "bk": 128, "k": 256, "tb": True},
    "two types of float8": {"dtype": "float8_e4m3fn", "other": "float8_e5m2", "bk": 64, "tb": True},
    "float8 of the wider range with the other": {
        "dtype": "float8_e5m2",
        "other": "float8_e4m3fn",
        "bk": 128,
        "k": 256,
        "tb": True,
    },
    "float8 into float16": {"dtype": "float8_e4m3fn", "bk": 64, "tb": True, "total": "float16", "out": "float16"},
    "float16 accumulators": {"m": 200, "n": 328, "total": "float16", "out": "float16"},
    "float16 accumulators, widened": {"n": 64, "bn": 64, "total": "float16", "out": "float32"},
    "int8": {"dtype": "int8", "total": "int32", "out": "int32", "bk": 128, "k": 384, "tb": True},
    "uint8, ragged": {
        "m": 200,
        "n": 328,
        "k": 112,
        "dtype": "uint8",
        "total": "int32",
        "out": "int32",
        "tb": True,
        "bk": 32,
    },
    "three boxes of 32 columns": {"n": 192, "bn": 96},
    "a box of 32 columns": {"n": 64, "bn": 32},
    "a box of 16 columns": {"n": 48, "bn": 16},
    "five boxes of 16 columns": {"n": 160, "bn": 80},
    "three boxes along the depth": {"n": 128, "bn": 128, "bk": 96, "k": 192, "tb": True},
    "boxes along the depth, A by columns": {"n": 96, "bn": 96, "bk": 48, "k": 192, "tb": True, "ta": True},
    "int8 with 24 columns": {
        "dtype": "int8",
        "total": "int32",
        "out": "int32",
        "n": 48,
        "bn": 24,
        "bk": 64,
        "k": 320,
        "tb": True,
    },
    "rows of 32 bytes, 40 columns": {"bk": 16, "k": 80, "tb": True, "n": 80, "bn": 40, "stages": 3},
    "int8 with 80 columns": {
        "dtype": "int8",
        "total": "int32",
        "out": "float32",
        "bn": 80,
        "bk": 64,
        "tb": True,
        "bm": 64,
        "threads": 128,
    },
    "wide C": {"m": 64, "n": 320, "bm": 64, "bn": 320, "threads": 128, "stages": 2},
    "through shared memory": {"m": 200, "n": 328, "out": "float16", "k": 64},
    "float32 through shared memory": {"m": 200, "n": 328, "k": 64},
    "int32 through shared memory": {
        "m": 200,
        "n": 332,
        "k": 64,
        "bk": 64,
        "dtype": "int8",
        "total": "int32",
        "out": "int32",
        "tb": True,
    },
    "int32 as float32 through shared memory": {
        "m": 200,
        "n": 332,
        "k": 64,
        "bk": 64,
        "dtype": "int8",
        "total": "int32",
        "out": "float32",
        "tb": True,
    },
    "sums of float16 through shared memory": {"m": 200, "n": 328, "k": 64, "total": "float16", "out": "float16"},
    "through shared memory as bfloat16": {"m": 300, "n": 304, "dtype": "bfloat16", "out": "bfloat16", "k": 64},
    "fewer boxes than there are": {"m": 256, "n": 256, "out": "float16", "k": 64, "stages": 4},
    "groups beside each other, through shared memory": {"m": 64, "bm": 64, "out": "float16", "k": 64},
    "three warp groups, through shared memory": {
        "m": 192,
        "bm": 192,
        "bn": 128,
        "threads": 384,
        "out": "float16",
        "k": 64,
    },
    "three warp groups": {"m": 192, "bm": 192, "bn": 128, "threads": 384},
}


@pytest.mark.parametrize("name", CASES)
def test_product_equals_numpy(name: str) -> None:
    case = matmul(**CASES[name])
    assert engine(case).startswith("wgmma")
    for checks in (False, True):
        result, report = run(case, checks=checks)
        np.testing.assert_array_equal(result.astype(np.float64), case.expected)
        assert report.findings == (), [str(finding) for finding in report.findings]


def test_nothing_changes_without_the_option() -> None:
    case = matmul(options={})
    assert engine(case).startswith("mma.sync")
    assert len(case.launch.params) == 3


@pytest.mark.parametrize("name", ["tl.disable_warp_specialized", "tl.disable_tma_lower", "tl.disable_wgmma"])
def test_options_of_upstream_switch_it_off(name: str) -> None:
    assert engine(matmul(options={**ROLES, name: True})).startswith("mma.sync")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "rows are no multiples of 16 bytes": ({"n": 250, "k": 64}, "the rows of `B` are not known to be multiples"),
    "tfloat32 with its depth across": ({"dtype": "tfloat32", "bk": 32}, "only with its depth along the rows"),
    "rows of C": ({"m": 32, "bm": 32, "threads": 128}, "divide C of 32 by 256"),
    "too many accumulators": ({"threads": 128}, "accumulators and operands take 256 registers of a thread"),
    "too many accumulators for three warp groups": (
        {"m": 192, "bm": 192, "threads": 384},
        "one instruction takes 128 registers, and 96 are free for it",
    ),
    "four warp groups": ({"m": 256, "bm": 256, "threads": 512}, "512 threads are not 1, 2 or 3 warp groups"),
    "float64": ({"dtype": "float64", "total": "float64", "out": "float64", "bm": 32, "bn": 32, "bk": 16}, "float64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_wgmma_or_bulk_copies_do_not_take_is_told_and_computed_otherwise(name: str) -> None:
    options, reason = REFUSED[name]
    case = matmul(**options)
    # Threads fill tiles that no bulk copy fills, and have more registers where no others copy.
    in_step = ("rows are no multiples of 16 bytes", "too many accumulators for three warp groups")
    assert engine(case).startswith("wgmma") == (name in in_step)
    told = [one for one in case.lowered.decisions if one.subject == "roles"]
    assert len(told) == 1 and reason in told[0].reason
    result, report = run(case)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected)
    assert report.findings == ()


def test_a_loop_without_turns_needs_no_roles() -> None:
    result = lowered(ROWS.replace("Pipelined(3", "Pipelined(1, 1"))
    assert [one.reason for one in result.decisions if one.subject == "roles"] == ["the loop makes no turn"]
    c = np.full((200, 256), np.nan, np.float16)
    arguments = {"A": np.ones((200, 192), np.float16), "B": np.ones((192, 256), np.float16), "C": c}
    report = Program(result.launches[0]).run(arguments)
    assert not c.any() and report.findings == ()


def test_stages_that_do_not_fit_are_fewer() -> None:
    case = matmul(stages=8)
    result, report = run(case)
    assert any(one.value.startswith("4 stages") for one in case.lowered.decisions)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected)
    assert report.findings == ()


STAYING: dict[str, dict[str, Any]] = {
    "two dimensions": {"m": 500, "n": 760, "k": 152},
    "fewer boxes than there are": {"m": 500, "n": 760, "k": 152, "stages": 4},
    "one row": {"m": 128, "n": 1280, "k": 64},
    "float32 result": {"m": 300, "n": 760, "k": 152, "out": "float32"},
    "as many boxes as do not divide them": {"m": 256, "n": 512, "k": 64, "out": "float32", "bk": 32, "stages": 6},
    "int32 result": {
        "m": 300,
        "n": 380,
        "k": 128,
        "bn": 128,
        "bk": 128,
        "tb": True,
        "dtype": "int8",
        "total": "int32",
        "out": "int32",
    },
    "sums of float16": {"m": 300, "n": 760, "k": 152, "total": "float16", "out": "float16"},
}


@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("name", STAYING)
def test_blocks_that_stay_do_all_the_work(name: str, blocks: int) -> None:
    case = matmul(**{"out": "float16", **STAYING[name]}, options={**ROLES, "tl.persistent_blocks": blocks})
    extents = [int(node.value) for node in axes_of(case.launch)]
    assert extents == [blocks, 384]
    result, report = run(case)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected)
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_as_many_blocks_stay_as_the_device_has_multiprocessors() -> None:
    """144 works on the 132 of the simulated device; the host says how many there are."""
    case = matmul(m=128 * 12, n=64 * 12, k=64, bn=64, out="float16")
    (axis, _) = axes_of(case.launch)
    assert str(axis.value) == "T.min(multiprocessors, 144)"
    result, report = run(case, checks=False)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected)
    assert report.findings == ()
    program = generate(case.lowered, arch="sm_90a")
    (launch,) = program.launches
    assert launch.configuration({}) == ((132, 1, 1), (384, 1, 1), launch.shared_bytes)
    assert [launch.configuration({"multiprocessors": count})[0][0] for count in (1, 78, 144, 200)] == [1, 78, 144, 144]


ROWS = """
m = T.dynamic("m")

@T.prim_func
def k(A: T.Tensor((m, 192), "float16"), B: T.Tensor((192, 256), "float16"), C: T.Tensor((m, 256), "float16")):
    with T.Kernel(2, T.ceildiv(m, 128), threads=256) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.Pipelined(3, num_stages=2):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])
"""


@pytest.mark.parametrize("rows", [1, 128, 300, 128 * 70 + 3])
def test_blocks_stay_where_the_number_of_rows_is_known_at_the_launch_only(rows: int) -> None:
    launch = lowered(ROWS).launches[0]
    rng = np.random.default_rng(rows)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((rows, 192), (192, 256)))
    c = np.full((rows, 256), np.nan, np.float16)
    report = Program(launch, checks=rows < 1000).run({"A": a, "B": b, "C": c})
    np.testing.assert_array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32))
    assert report.findings == () and "multiprocessors" in [parameter.name for parameter in launch.params]


ONE_ROW = """
@T.prim_func
def k(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 640), "float16"), C: T.Tensor((128, 640), "float32")):
    with T.Kernel(5, 1, threads=256) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        v = C[0, 0] + by
        T.clear(C_l)
        for ko in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
        for i, j in T.Parallel(128, 128):
            C_l[i, j] += v - v
        T.copy(C_l, C[by * 128, bx * 128])
"""


def test_an_axis_of_one_block_keeps_its_index() -> None:
    launch = lowered(ONE_ROW, {**ROLES, "tl.persistent_blocks": 2}).launches[0]
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((128, 128), (128, 640)))
    c = np.zeros((128, 640), np.float32)
    Program(launch, checks=False).run({"A": a, "B": b, "C": c})
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("known", [True, False])
def test_rows_of_a_length_that_is_assumed_to_fit(known: bool) -> None:
    """Bulk copies want rows of multiples of 16 bytes."""
    text = ROWS.replace("m = T.dynamic", 'n = T.dynamic("n")\nm = T.dynamic').replace("(m, 192)", "(m, n)")
    text = text.replace("(192, 256)", "(n, 256)").replace("Pipelined(3", "Pipelined(T.ceildiv(n, 64)")
    if known:
        text = text.replace("        A_s =", "        T.assume(n % 8 == 0)\n        A_s =")
    result = lowered(text)
    (told,) = (one for one in result.decisions if one.subject == "roles")
    assert told.reason == ("" if known else "the rows of `A` are not known to be multiples of 16 bytes")
    rng = np.random.default_rng(6)
    for depth in (64, 152):
        a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((200, depth), (depth, 256)))
        c = np.full((200, 256), np.nan, np.float16)
        report = Program(result.launches[0]).run({"A": a, "B": b, "C": c})
        np.testing.assert_array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32))
        assert report.findings == ()


@pytest.mark.parametrize("option", [0, 132])
def test_a_grid_that_fits_stays_as_it_is(option: int) -> None:
    case = matmul(m=256, n=512, options={**ROLES, "tl.persistent_blocks": option})
    assert [int(node.value) for node in axes_of(case.launch)] == [2, 2, 384]


def axes_of(launch: Any) -> list[Any]:
    found, node = [], launch.body
    while getattr(node, "attr_key", "") == "thread_extent":
        found.append(node)
        node = node.body
    return found


LOOPED = """
@T.prim_func
def k(A: T.Tensor((256, 192), "float16"), B: T.Tensor((192, 128), "float16"), C: T.Tensor((256, 128), "float32")):
    with T.Kernel(1, threads=128) as bx:
        A_s = T.alloc_shared((64, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((64, 128), "float32")
        for row in T.serial(4):
            T.clear(C_l)
            for ko in T.Pipelined(3, num_stages=2):
                T.copy(A[row * 64, ko * 64], A_s)
                T.copy(B[ko * 64, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[row * 64, 0])
"""


def test_versions_go_on_where_a_loop_runs_again() -> None:
    result = lowered(LOOPED)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((256, 192), (192, 128)))
    c = np.full((256, 128), np.nan, np.float32)
    report = Program(result.launches[0]).run({"A": a, "B": b, "C": c})
    assert any(one.value.startswith("wgmma") for one in result.decisions)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_a_fault_of_the_division_is_none_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("planted")

    monkeypatch.setattr("tilelang_nb.lowering.hopper.plan.specialised", fail)
    case = matmul()
    assert engine(case).startswith("mma.sync") and case.lowered.diagnostics == ()
    result, _ = run(case)
    np.testing.assert_array_equal(result.astype(np.float64), case.expected)


def test_loops_without_products_say_nothing_of_roles() -> None:
    result = lowered("""
@T.prim_func
def k(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((128,), "float32")
        for i in T.Pipelined(8, num_stages=2):
            T.copy(A[i * 128], s)
            T.copy(s, B[i * 128])
""")
    assert [one.subject for one in result.decisions] == ["pipeline"]


@pytest.mark.parametrize("option", [0, 2])
def test_what_bulk_copies_and_warp_groups_do_is_counted(option: int) -> None:
    from tilelang_nb.device.counting import count

    case = matmul(m=256, n=512, out="float16", options={**ROLES, "tl.persistent_blocks": option})
    found = count(case.lowered.launches, {})
    assert (found.read, found.written) == ({"A", "B"}, {"C"})
    assert found.matrix_operations == 2 * 256 * 512 * 192
