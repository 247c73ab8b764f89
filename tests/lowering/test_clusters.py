"""Launches in clusters: rank and barrier, copies between blocks, loads for several blocks, on the simulated device and
as device code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

import tilelang_nb
from tilelang_nb.device import generate
from tilelang_nb.simulator import Program
from tilelang_nb.source.diagnostic import Refusal

RANKS = """
@T.prim_func
def k(A: T.Tensor(({blocks},), "int32")):
    with T.ClusterKernel({grid}, threads=64, cluster_dims={dims}) as {names}:
        T.cluster_arrive()
        T.cluster_wait()
        if T.get_thread_binding() == 0:
            A[{linear}] = T.block_rank_in_cluster()
        T.cluster_sync()
"""
EXCHANGE = """
@T.prim_func
def k(A: T.Tensor((8, 12, 64), "{dtype}"), B: T.Tensor((8, 12, 64), "{dtype}")):
    with T.ClusterKernel(8, threads={threads}, cluster_dims=4) as bx:
        rank = T.block_rank_in_cluster()
        mine = T.alloc_shared((12, 64), "{dtype}")
        theirs = T.alloc_shared((12, 64), "{dtype}")
        here = T.alloc_cluster_barrier([1])
        T.copy(A[bx, 0, 0], mine)
        T.clear(theirs)
        {before}
        T.copy_cluster(mine{part}, theirs{part}, dst_block=(rank + 1) % 4{barrier})
        {after}
        T.copy(theirs, B[bx, 0, 0])
"""
WAIT, BARRIER, SYNC = "T.mbarrier_wait_parity(here[0], 0)", ", remote_barrier=here[0]", "T.cluster_sync()"
SUM = """
@T.prim_func
def k(A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.ClusterKernel(4, 1, threads=128, cluster_dims=(4, 1, 1)) as (bx, by):
        rank = T.block_rank_in_cluster()
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        parts = T.alloc_shared((3, 32, 128), "float32")
        mine = T.alloc_shared((128, 128), "float32")
        here = T.alloc_cluster_barrier([3])
        T.clear(C_l)
        T.copy(A[0, rank * 64], A_s)
        T.copy(B[rank * 64, 0], B_s)
        T.gemm(A_s, B_s, C_l)
        T.copy(C_l, mine)
        for other in range(1, 4):
            to = (rank + other) % 4
            T.copy_cluster(mine[to * 32 : to * 32 + 32, :], parts[other - 1, :, :], dst_block=to, remote_barrier=here[0])
        T.mbarrier_wait_parity(here[0], 0)
        for i, j in T.Parallel(32, 128):
            C[rank * 32 + i, j] = mine[rank * 32 + i, j] + parts[0, i, j] + parts[1, i, j] + parts[2, i, j]
"""
BROADCAST = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((128, 512), "float16")):
    with T.ClusterKernel(8, 2, threads=128, cluster_dims=(4, 1, 1)) as (bx, by):
        s = T.alloc_shared((64, 64), "float16")
        for n in range({turns}):
            T.copy_cluster(A[by * 64, (bx + 3 * n) % 8 * 64], s, cluster_mask={mask})
            for i, j in T.Parallel(64, 64):
                B[by * 64 + i, bx * 64 + j] = s[i, j] + n
"""
PRODUCT = """
@T.prim_func
def k(A: T.Tensor((256, 320), "float16"), B: T.Tensor((320, 488), "float16"), C: T.Tensor((256, 488), "float32")):
    with T.ClusterKernel(4, 2, threads={threads}, cluster_dims=(2, 1, 1)) as (bx, by):
        rank = T.block_rank_in_cluster()
        A_s = T.alloc_shared((2, 128, 64), "float16")
        B_s = T.alloc_shared((2, 64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier([1] * 2)
        empty = T.alloc_cluster_barrier([2] * 2)
        {body}
"""
ROLES = """with T.ws(0):
            T.clear(C_l)
            for ko in range(5):
                T.barrier_wait(full[ko % 2], ko // 2 % 2)
                T.gemm(A_s[ko % 2, :, :], B_s[ko % 2, :, :], C_l)
                if T.get_thread_binding() == 0:
                    for block in T.unroll(2):
                        T.mbarrier_arrive(empty[ko % 2], block)
            T.copy(C_l, C[by * 128, bx * 128])
        with T.ws(1):
            for ko in range(5):
                T.barrier_wait(empty[ko % 2], (ko // 2 % 2) ^ 1)
                T.tma_copy(A[by * 128, ko * 64], A_s[ko % 2, :, :], barrier=full[ko % 2], cluster_mask=0b11)
                T.tma_copy(B[ko * 64, bx * 128], B_s[ko % 2, :, :], barrier=full[ko % 2])
                if T.get_thread_binding() == 128:
                    T.barrier_arrive(full[ko % 2])"""
SHARED_TURNS = """
@T.prim_func
def k(A: T.Tensor((256, 320), "float16"), B: T.Tensor((320, 488), "float16"), C: T.Tensor((256, 488), "float32")):
    with T.ClusterKernel(4, 2, threads=128, cluster_dims=(2, 1, 1)) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        full = T.alloc_barrier(128)
        T.clear(C_l)
        for ko in T.Pipelined(5, num_stages=3):
            T.cluster_sync()
            T.tma_copy(A[by * 128, ko * 64], A_s, barrier=full, cluster_mask=0b11)
            T.tma_copy(B[ko * 64, bx * 128], B_s, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, ko % 2)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])
"""
ORDINARY = """
@T.prim_func
def k(A: T.Tensor((256, 320), "float16"), B: T.Tensor((320, 512), "float16"), C: T.Tensor((256, 512), "float16")):
    with T.ClusterKernel(4, 2, threads=256, cluster_dims=(2, 1, 1)) as (bx, by):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.use_swizzle(2)
        T.clear(C_l)
        for ko in T.Pipelined(5, num_stages=3):
            T.copy(A[by * 128, ko * 64], A_s)
            T.copy(B[ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])
"""


def run(text: str, options: dict[str, Any] | None = None, **arrays: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
    """(lowered, findings) of a run that writes the arrays."""
    result = lowered(text, options or {})
    return result, Program(result.launches[0]).run(arrays).findings


def numbers(shape: tuple[int, ...], dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


def line_of(text: str, part: str) -> int:
    return 1 + next(number for number, line in enumerate(text.splitlines()) if part in line)


def places(findings: tuple[Any, ...]) -> set[tuple[str, int]]:
    return {(one.code, one.span.line) for one in findings}


GRIDS = {
    "a line": ((8,), (2,), "bx"),
    "a square": ((4, 6), (2, 2), "(bx, by)"),
    "along y": ((3, 4), (1, 4), "(bx, by)"),
    "three axes": ((2, 3, 4), (2, 1, 2), "(bx, by, bz)"),
    "eight blocks": ((16,), (8, 1, 1), "bx"),
}


@pytest.mark.parametrize("name", GRIDS)
def test_ranks(name: str) -> None:
    grid, dims, names = GRIDS[name]
    x, y, _ = (*grid, 1, 1)[:3]
    linear = " + ".join(["bx", f"by * {x}", f"bz * {x * y}"][: len(grid)])
    blocks = int(np.prod(grid))
    text = RANKS.format(blocks=blocks, grid=", ".join(map(str, grid)), dims=dims, names=names, linear=linear)
    ranks = np.full(blocks, -1, np.int32)
    _, findings = run(text, A=ranks)
    wide, high, deep = (*dims, 1, 1)[:3]
    at = np.arange(blocks)
    expected = at % x % wide + at // x % y % high * wide + at // (x * y) % deep * wide * high
    np.testing.assert_array_equal(ranks, expected)
    assert findings == ()


COPIES = {
    "in bulk": ({"barrier": BARRIER, "after": WAIT}, "tl_copy_to_block"),
    "rows in bulk": ({"barrier": BARRIER, "after": WAIT, "part": "[0:12, 0:32]"}, "tl_copy_to_block"),
    "one by one": ({"after": SYNC, "before": SYNC}, "tl_store_at_block"),
    "parts one by one, with a barrier": ({"barrier": BARRIER, "after": WAIT, "before": SYNC, "part": "[0:12, 1:30]"}, "tl_arrive_at_block"),
    "some threads too many": ({"after": SYNC, "before": SYNC, "threads": 96, "part": "[0:5, 3:10]"}, "tl_store_at_block"),
}  # fmt: skip


def exchange(**parts: Any) -> str:
    known = {"dtype": "float32", "threads": 128, "before": SYNC, "part": "", "barrier": "", "after": "pass"}
    return EXCHANGE.format(**{**known, **parts})


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
@pytest.mark.parametrize("name", COPIES)
def test_blocks_pass_their_tiles_on(name: str, dtype: str) -> None:
    parts, call = COPIES[name]
    a, b = numbers((8, 12, 64), dtype), np.full((8, 12, 64), 77).astype(dtype)
    text = exchange(dtype=dtype, **parts)
    result, findings = run(text, A=a, B=b)
    region = eval(f"np.s_{parts['part']}") if "part" in parts else np.s_[:, :]
    expected = np.zeros_like(a)
    for block in range(8):
        expected[(block // 4 * 4 + (block % 4 + 1) % 4, *region)] = a[(block, *region)]
    np.testing.assert_array_equal(b, expected)
    assert findings == (), [str(one) for one in findings]
    assert call in str(result.launches[0])


def test_barriers_that_start_late_are_there_for_other_blocks() -> None:
    text = exchange(barrier=BARRIER, after=WAIT, before="pass")
    line = "        here = T.alloc_cluster_barrier([1])\n"
    text = text.replace(line, "").replace("        T.clear(theirs)\n", "        T.clear(theirs)\n" + line)
    a, b = numbers((8, 12, 64), "float32"), numbers((8, 12, 64), "float32")
    _, findings = run(text, A=a, B=b)
    np.testing.assert_array_equal(b[[1, 2, 3, 0]], a[:4])
    assert findings == (), [str(one) for one in findings]


FAULTS = {
    "nobody waits for the stores": ({"after": "pass"}, "T.copy(theirs", "TL401", "T.cluster_sync"),
    "nobody waits for the copy": ({"barrier": BARRIER}, "T.copy(theirs", "TL401", "T.mbarrier_wait_parity"),
    "the target may still be in use": ({"before": "pass", "after": SYNC}, "T.clear", "TL401", "T.cluster_sync"),
    "a block that is none of the cluster": ({"after": SYNC}, "dst_block", "TL402", "give 0 to 3"),
    "a wait for the second phase": ({"barrier": BARRIER, "after": WAIT + "; T.mbarrier_wait_parity(here[0], 1)"}, "here[0], 1)", "TL405", "1 of 1 arrivals at the barrier `here`"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_between_blocks_is_found_at_its_line(name: str) -> None:
    parts, line, code, words = FAULTS[name]
    text = exchange(**parts)
    if code == "TL402":
        text = text.replace("(rank + 1) % 4", "rank + 1")
    _, findings = run(text, A=numbers((8, 12, 64), "float32"), B=numbers((8, 12, 64), "float32"))
    assert (code, line_of(text, line)) in places(findings), [str(one) for one in findings]
    assert any(words in str(one) for one in findings if one.code == code), [str(one) for one in findings]


def test_blocks_that_do_not_come_to_the_barrier_of_their_cluster_are_found() -> None:
    text = RANKS.format(blocks=4, grid=4, dims=2, names="bx", linear="bx")
    text = text.replace(
        "        T.cluster_sync()\n", "        if T.block_rank_in_cluster() == 0:\n            T.cluster_sync()\n"
    )
    _, findings = run(text, A=numbers((4,), np.int32))
    assert places(findings) == {("TL405", line_of(text, "T.cluster_sync"))}
    assert "block (0, 0, 0): all wait for the barrier of the cluster: 64 of 128 threads" in findings[0].message


@pytest.mark.parametrize(
    ("statements", "line", "words"),
    [
        ("T.cluster_wait()", "T.cluster_wait()", "without an arrival at it before"),
        (
            "T.cluster_arrive(); T.cluster_arrive(); T.cluster_wait()",
            "T.cluster_arrive()",
            "did not wait for it between",
        ),
        ("T.cluster_sync(); T.cluster_wait()", "T.cluster_sync()", "without an arrival at it before"),
        ("T.cluster_sync(); T.cluster_sync(); T.cluster_arrive(); T.cluster_wait()", "", ""),
    ],
)
def test_arrivals_and_waits_take_turns(statements: str, line: str, words: str) -> None:
    text = RANKS.format(blocks=4, grid=4, dims=2, names="bx", linear="bx")
    text = text.replace("        T.cluster_arrive()\n        T.cluster_wait()\n", f"        {statements}\n")
    _, findings = run(text, A=numbers((4,), np.int32))
    assert places(findings) == ({("TL405", line_of(text, line))} if words else set()), [str(one) for one in findings]
    assert all(words in one.message for one in findings)


def test_a_product_is_summed_over_a_cluster() -> None:
    a, b, c = numbers((128, 256)), numbers((256, 128)), np.full((128, 128), np.nan, np.float32)
    _, findings = run(SUM, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert findings == (), [str(one) for one in findings]


@pytest.mark.parametrize(("mask", "turns"), [("0b0011", 1), ("0b1111", 2), ("0b1010", 3), ("0b1000", 1)])
def test_one_load_fills_the_tiles_of_several_blocks(mask: str, turns: int) -> None:
    a, b = numbers((128, 512)), np.full((128, 512), np.nan, np.float16)
    result, findings = run(BROADCAST.format(mask=mask, turns=turns), A=a, B=b)
    named = int(mask, 2)
    first = (named & -named).bit_length() - 1
    expected = np.empty_like(a)
    for block in range(8):
        rank = block % 4
        source = block - rank + (first if named >> rank & 1 else rank)
        column = (source + 3 * (turns - 1)) % 8 * 64
        expected[:, block * 64 : block * 64 + 64] = a[:, column : column + 64] + (turns - 1)
    np.testing.assert_array_equal(b, expected)
    assert findings == (), [str(one) for one in findings]
    assert "multicast::cluster" in str(result.launches[0])


def product(text: str) -> tuple[Any, np.ndarray, np.ndarray, tuple[Any, ...]]:
    a, b, c = numbers((256, 320)), numbers((320, 488)), np.full((256, 488), np.nan, np.float32)
    result, findings = run(text, A=a, B=b, C=c)
    return result, c, a.astype(np.float32) @ b.astype(np.float32), findings


def test_roles_by_hand_share_their_loads() -> None:
    result, c, expected, findings = product(PRODUCT.format(threads=256, body=ROLES))
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]
    assert "wgmma" in next(one.value for one in result.decisions if one.subject == "product")


def test_loads_for_several_blocks_run_ahead() -> None:
    text = SHARED_TURNS
    result, c, expected, findings = product(text)
    np.testing.assert_array_equal(c, expected)
    assert findings == (), [str(one) for one in findings]
    assert "A_s = T.decl_buffer((3, 128, 64)" in str(result.launches[0])


def test_turns_that_nothing_orders_between_blocks_are_found() -> None:
    text = SHARED_TURNS.replace("            T.cluster_sync()\n", "")
    _, _, _, findings = product(text)
    assert ("TL401", line_of(text, "T.tma_copy(A")) in places(findings), [str(one) for one in findings]


def test_a_tile_that_the_other_block_still_reads_is_found() -> None:
    """Only the own block says that the tile is free."""
    text = PRODUCT.format(threads=256, body=ROLES).replace("T.mbarrier_arrive(empty[ko % 2], block)", "T.mbarrier_arrive(empty[ko % 2], T.block_rank_in_cluster())")  # fmt: skip
    _, _, _, findings = product(text)
    assert ("TL401", line_of(text, "T.tma_copy(A")) in places(findings), [str(one) for one in findings]


def test_fewer_bytes_announced_than_come_are_found() -> None:
    """One block loads for both, and the other one does not announce the bytes."""
    text = PRODUCT.format(threads=256, body=ROLES).replace("                T.tma_copy(A", "                if rank == 0:\n                    T.tma_copy(A")  # fmt: skip
    _, _, _, findings = product(text)
    stuck = [one.message for one in findings if one.code == "TL405"]
    assert len(stuck) == 1 and "bytes more have reached than were announced" in stuck[0]


def test_an_ordinary_product_runs_in_clusters() -> None:
    a, b, c = numbers((256, 320)), numbers((320, 512)), np.full((256, 512), np.nan, np.float16)
    result, findings = run(ORDINARY, {"tl.enable_auto_warp_specialization": True}, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))
    assert findings == (), [str(one) for one in findings]
    source = generate(result, arch="sm_90a", options={}).kernel_source
    assert "__cluster_dims__(2, 1, 1)" in source and "panel" not in source


TEXTS = {
    "ranks": RANKS.format(blocks=24, grid="4, 6", dims=(2, 2), names="(bx, by)", linear="by * 4 + bx"),
    **{name: exchange(**parts) for name, (parts, _) in COPIES.items()},
    "one by one in float16": exchange(dtype="float16", after=SYNC),
    "one by one in int8": exchange(dtype="int8", after=SYNC),
    "sum": SUM,
    "broadcast": BROADCAST.format(mask="0b0110", turns=2),
    "roles": PRODUCT.format(threads=256, body=ROLES),
    "loads ahead": SHARED_TURNS,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_device_compiler_takes_them(name: str) -> None:
    program = generate(lowered(TEXTS[name], {}), arch="sm_90a", options={})
    assert not program.diagnostics, program.diagnostics
    assert program.cubin and "__cluster_dims__(" in program.kernel_source
    assert program.launches[0].cluster != (1, 1, 1)


@pytest.mark.parametrize("dims", ["3", "16", "0", "(1, 2, 1)", "2.5", "(1, 1, 1, 1)"])
def test_mistaken_clusters_are_said_once(dims: str) -> None:
    text = exchange(barrier=BARRIER, after=WAIT).replace("cluster_dims=4", f"cluster_dims={dims}")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert found.code in ("TL208", "TL004") and found.span.line == line_of(text, "T.ClusterKernel")
    assert "T.Kernel" not in str(found)


def test_older_architectures_have_no_clusters() -> None:
    text = RANKS.format(blocks=4, grid=4, dims=2, names="bx", linear="bx")
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_80")
    (found,) = [one for one in cell.diagnostics if one.severity == "error"]
    assert (found.code, found.span.line) == ("TL302", line_of(text, "T.ClusterKernel"))
    assert "need sm_90" in found.message


def test_a_grid_of_the_arguments_is_made_of_whole_clusters() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor(("n",), "float32")):
    with T.ClusterKernel(T.ceildiv(n, 64), threads=64, cluster_dims=2) as bx:
        for i in T.Parallel(64):
            if bx * 64 + i < n:
                A[bx * 64 + i] = 1
"""
    text = text.replace('("n",)', "(n,)").replace("@T.prim_func", 'n = T.dynamic("n")\n@T.prim_func')
    cell = tilelang_nb.compile_cell(text, {}, target="sim", arch="sm_90a")
    assert cell.ok, cell.to_text()
    kernel, array = cell.namespace["k"], np.zeros(200, np.float32)
    kernel(array)
    assert array.all()
    with pytest.raises(Exception, match="3 blocks along x, which are no whole clusters of 2") as refused:
        kernel(np.zeros(150, np.float32))
    assert "TL208" in str(refused.value)
    assert not isinstance(refused.value, Refusal)
