"""Products in roles whose blocks do several works, or parts of one: loops around pipelined loops, split depth, arrays of
many dimensions.  Small integers, so results are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowering.hopper import lowered

from tilelang_nb.simulator import Program

ROLES, NONE = "1 warp group copies, 2 compute", "all warp groups do the same"


def agrees(text: str, arguments: dict[str, np.ndarray], expected: np.ndarray, roles: str = ROLES) -> Any:
    """The lowered text, whose C is this, without findings; roles: what was decided of them."""
    result = lowered(text)
    assert [one.value for one in result.decisions if one.subject == "roles"] == [roles]
    for checks in (False, True):
        copies = {name: array.copy() for name, array in arguments.items()}
        report = Program(result.launches[0], checks=checks).run(copies)
        np.testing.assert_array_equal(copies["C"].astype(np.float64), expected)
        assert report.findings == (), [str(one) for one in report.findings]
    return result


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b


WORKS = """
@T.prim_func
def k(A: T.Tensor((384, 512), "float16"), B: T.Tensor((512, 256), "float16"), C: T.Tensor((384, 256), "{out}")):
    with T.Kernel(4, threads=256) as b:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        for {loop}:
            {choose}
            if {inside}:
                T.clear(C_l)
                for ko in T.Pipelined({turns}, num_stages=3):
                    T.copy(A[by * 128, ko * 64], A_s)
                    T.copy(B[ko * 64, bx * 128], B_s)
                    T.gemm(A_s, B_s, C_l)
                T.copy(C_l, C[by * 128, bx * 128])
"""
LOOPS = {
    "T.Persistent": {"loop": "by, bx in T.Persistent([3, 2], 4, b)", "choose": "pass", "inside": "True"},
    "a loop of the text": {
        "loop": "w in T.serial(2)",
        "choose": "tile = w * 4 + b; by = tile // 2; bx = tile % 2",
        "inside": "tile < 6",
    },
}


@pytest.mark.parametrize("out", ["float16", "float32"])
@pytest.mark.parametrize("name", LOOPS)
def test_blocks_of_several_works(name: str, out: str) -> None:
    """Not all blocks do as many: the last ones leave one out."""
    a, b = operands(384, 256, 512)
    text = WORKS.format(out=out, turns=8, **LOOPS[name])
    arguments = {"A": a, "B": b, "C": np.full((384, 256), np.nan, out)}
    result = agrees(text, arguments, a.astype(np.float64) @ b.astype(np.float64))
    assert "C_map" in [parameter.name for parameter in result.launches[0].params]  # results go through boxes


def test_works_of_different_lengths() -> None:
    a, b = operands(384, 256, 512)
    text = WORKS.format(out="float32", turns="by * 3", **LOOPS["a loop of the text"])
    expected = np.concatenate([
        a[128 * by : 128 * by + 128, : 192 * by].astype(np.float64) @ b[: 192 * by].astype(np.float64) for by in range(3)
    ])  # fmt: skip
    agrees(text, {"A": a, "B": b, "C": np.full((384, 256), np.nan, np.float32)}, expected)


TRIANGLE = """
@T.prim_func
def k(A: T.Tensor((128, 512), "float16"), B: T.Tensor((512, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(1, threads=256) as b:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for o in T.serial(5):
            last = 2 * o - 3
            for ko in T.Pipelined(last, num_stages=2):
                T.copy(A[0, ko * 64], A_s)
                T.copy(B[ko * 64, 0], B_s)
                T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C)
"""


def test_a_loop_around_that_changes_the_turns_also_to_none() -> None:
    a, b = operands(128, 128, 512)
    turns = [max(2 * o - 3, 0) for o in range(5)]
    expected = sum(a[:, : 64 * n].astype(np.float64) @ b[: 64 * n].astype(np.float64) for n in turns)
    agrees(TRIANGLE, {"A": a, "B": b, "C": np.full((128, 128), np.nan, np.float32)}, expected)


SPLIT = """
@T.prim_func
def k(A: T.Tensor((256, 512), "float16"), B: T.Tensor((512, 256), "float16"), C: T.Tensor((256, 256), "float32")):
    with T.Kernel(2, 2, 4, threads=256) as (bx, by, bz):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_s = T.alloc_shared((128, 128), "float32")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.use_swizzle(2)
        T.clear(C_l)
        for ko in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 128, bz * 128 + ko * 64], A_s)
            T.copy(B[bz * 128 + ko * 64, bx * 128], B_s)
            T.gemm(A_s, B_s, C_l)
        {end}
"""
ENDS = {
    "a region": "T.atomic_add(C[by * 128, bx * 128], C_l)",
    "elements": """for i, j in T.Parallel(128, 128):
            T.atomic_add(C[by * 128 + i, bx * 128 + j], C_l[i, j])""",
    "a tile": "T.copy(C_l, C_s); T.atomic_add(C[by * 128, bx * 128], C_s)",
    "pairs of a tile": """T.copy(C_l, C_s)
        for i, j in T.Parallel(128, 64):
            T.atomic_addx2(C[by * 128 + i, bx * 128 + j * 2], C_s[i, j * 2])""",
}


@pytest.mark.parametrize("name", ENDS)
def test_blocks_add_parts_of_the_depth(name: str) -> None:
    a, b = operands(256, 256, 512)
    arguments = {"A": a, "B": b, "C": np.zeros((256, 256), np.float32)}
    agrees(SPLIT.format(end=ENDS[name]), arguments, a.astype(np.float64) @ b.astype(np.float64))


STREAM = """
@T.prim_func
def k(A: T.Tensor((384, 512), "float16"), B: T.Tensor((512, 256), "float16"), C: T.Tensor((384, 256), "float32")):
    with T.Kernel(5, threads=256) as b:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        last = (b + 1) * 48 // 5
        at = T.alloc_var("int32")
        at = b * 48 // 5
        while at < last:
            tile = at // 8
            stop = T.min(last, (tile + 1) * 8)
            T.clear(C_l)
            for ko in T.Pipelined(stop - at, num_stages=3):
                T.copy(A[tile // 2 * 128, (at + ko) % 8 * 64], A_s)
                T.copy(B[(at + ko) % 8 * 64, tile % 2 * 128], B_s)
                T.gemm(A_s, B_s, C_l)
            for i, j in T.Parallel(128, 128):
                T.atomic_add(C[tile // 2 * 128 + i, tile % 2 * 128 + j], C_l[i, j])
            at = stop
"""


def test_blocks_share_works_evenly() -> None:
    """The copying threads do not follow variables that change; warp groups multiply all the same."""
    a, b = operands(384, 256, 512)
    arguments = {"A": a, "B": b, "C": np.zeros((384, 256), np.float32)}
    result = agrees(STREAM, arguments, a.astype(np.float64) @ b.astype(np.float64), NONE)
    assert any(one.value.startswith("wgmma") for one in result.decisions)


MANY = """
@T.prim_func
def k(
    A: T.Tensor((2, 3, 256, 2, 128), "float16"), B: T.Tensor((2, 2, 128, 3, 128), "float16"),
    S: T.Tensor((256,), "float16"), C: T.Tensor((2, 3, 256, 2, 128), "float16"),
):
    with T.Kernel(2, 3, 4, threads=256) as (by, h, z):
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        S_s = T.alloc_shared((128,), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.Pipelined(2, num_stages=2):
            T.copy(A[z // 2, h, by * 128 : by * 128 + 128, z % 2, ko * 64 : ko * 64 + 64], A_s)
            T.copy(B[z // 2, 1, ko * 64 : ko * 64 + 64, h, :], B_s)
            T.copy(S[by * 128], S_s)
            T.gemm(A_s, B_s, C_l)
            for i, j in T.Parallel(128, 128):
                C_l[i, j] += S_s[i]
        T.copy(C_l, C[z // 2, h, by * 128 : by * 128 + 128, z % 2, :])
"""


def test_arrays_of_one_and_of_five_dimensions() -> None:
    """Boxes are slices of them; a vector is read by the threads."""
    rng = np.random.default_rng(5)
    a = rng.integers(-2, 3, (2, 3, 256, 2, 128)).astype(np.float16)
    b = rng.integers(-2, 3, (2, 2, 128, 3, 128)).astype(np.float16)
    s = rng.integers(-2, 3, 256).astype(np.float16)
    expected = np.einsum("bhrzk,bkhn->bhrzn", a.astype(np.float64), b[:, 1].astype(np.float64))
    expected = expected + 2 * s.astype(np.float64)[None, None, :, None, None]
    agrees(MANY, {"A": a, "B": b, "S": s, "C": np.full(a.shape, np.nan, np.float16)}, expected)


GROUPS = """
@T.prim_func
def k(
    A: T.Tensor((512, 128), "float16"), W: T.Tensor((3, 128, 128), "float16"), expert: T.Tensor((4,), "int32"),
    row: T.Tensor((4,), "int32"), n: T.Tensor((4,), "int32"), C: T.Tensor((512, 128), "float32"),
):
    with T.Kernel(4, threads=256) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        {first}
        g = expert[bx]
        m0 = row[bx] * 128
        T.clear(C_l)
        for ko in T.Pipelined({turns}, num_stages=2):
            T.copy(A[m0, {at} * 64], A_s)
            T.copy(W[g, {at} * 64, 0], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[m0, 0])
"""
PLACES = {
    "experts and rows": ("2", "ko", [2, 2, 2, 2]),
    "numbers of turns": ("n[bx]", "ko", [2, 1, 0, 2]),
    "a table of pages": ("2", "n[ko]", [1, 0, 0, 0]),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_and_turns_that_are_read_from_memory(name: str) -> None:
    """As in products of several experts: every role reads them."""
    turns, at, counts = PLACES[name]
    rng = np.random.default_rng(9)
    a, w = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((512, 128), (3, 128, 128)))
    expert, row, n = (np.array(given, np.int32) for given in ([2, 0, 1, 0], [3, 1, 0, 2], counts))
    expected = np.zeros((512, 128))
    for b in range(4):
        rows = slice(row[b] * 128, row[b] * 128 + 128)
        for turn in range(int(n[b]) if turns == "n[bx]" else 2):
            k = 64 * (int(n[turn]) if at != "ko" else turn)
            expected[rows] += a[rows, k : k + 64].astype(np.float64) @ w[expert[b], k : k + 64].astype(np.float64)
    arguments = {"A": a, "W": w, "expert": expert, "row": row, "n": n, "C": np.full((512, 128), np.nan, np.float32)}
    agrees(GROUPS.format(first="pass", turns=turns, at=at), arguments, expected)


def test_what_the_launch_changes_is_followed_by_no_other_role() -> None:
    text = GROUPS.format(first="expert[bx] = expert[bx]", turns="2", at="ko")
    (told,) = (one.reason for one in lowered(text).decisions if one.subject == "roles")
    assert told == "the place of the copy into `B_s` is read from memory that the launch changes"


EVERY_TURN = """
@T.prim_func
def k(A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"), C: T.Tensor(({m}, 128), "float32")):
    with T.Kernel(1, threads=256) as bx:
        A_s = T.alloc_shared((128, 64), "float16")
        B_s = T.alloc_shared((64, 128), "float16")
        C_l = T.alloc_fragment((128, 128), "float32")
        T.clear(C_l)
        for ko in T.Pipelined(4, num_stages=3):
            T.copy(A[0, ko * 64], A_s)
            T.copy(B[ko * 64, 0], B_s)
            T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[{at}, 0])
"""


@pytest.mark.parametrize(("step", "boxes"), [(0, True), (64, False), (128, True)])
def test_results_of_every_turn(step: int, boxes: bool) -> None:
    """Into one place, which the turns wait for; into places that have a part in common; into tiles of their own."""
    a, b = operands(128, 128, 256)
    expected = np.full((128 + 3 * step, 128), 7.0)
    for turn in range(4):
        k = 64 * turn + 64
        expected[step * turn : step * turn + 128] = a[:, :k].astype(np.float64) @ b[:k].astype(np.float64)
    arguments = {"A": a, "B": b, "C": np.full(expected.shape, 7, np.float32)}
    result = agrees(EVERY_TURN.format(m=len(expected), at=f"ko * {step}"), arguments, expected)
    assert ("C_map" in [parameter.name for parameter in result.launches[0].params]) == boxes
