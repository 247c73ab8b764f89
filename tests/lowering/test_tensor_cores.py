"""T.gemm on tensor cores: types, transposes, memories, warps, policies; against NumPy on the simulated device."""

from __future__ import annotations

import numpy as np
import pytest
from lowering.products import compiled, product, thread_text, values

TYPES = [
    ("float16", "float32", 2e-6),
    ("bfloat16", "float32", 2e-6),
    ("tfloat32", "float32", 4e-3),
    ("float64", "float64", 1e-14),
    ("int8", "int32", 0),
    ("uint8", "int32", 0),
    ("float8_e4m3fn", "float32", 2e-6),
    ("float8_e5m2", "float32", 2e-6),
    ("float16", "float16", 6e-3),
    ("float8_e4m3fn", "float16", 2e-3),
]


def check(result: np.ndarray, expected: np.ndarray, limit: float) -> None:
    scale = float(np.abs(expected).max())
    assert float(np.abs(result.astype(np.float64) - expected).max()) <= limit * scale


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(("dtype", "total", "limit"), TYPES)
def test_every_type_in_every_order_of_its_operands(dtype, total, limit, ta, tb):
    kernel, result, expected = product(64, 48, 64, dtype=dtype, total=total, ta=ta, tb=tb)
    assert "T.ptx.mma" in thread_text(kernel)
    check(result, expected, limit)


def test_two_float8_types_may_mix():
    kernel, result, expected = product(32, 32, 32, dtype="float8_e5m2", other="float8_e4m3fn")
    assert "T.ptx.mma" in thread_text(kernel)
    check(result, expected, 2e-6)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "int8", "tfloat32", "float64"])
@pytest.mark.parametrize(("a_memory", "b_memory"), [("fragment", "shared"), ("shared", "fragment"), ("fragment",) * 2])
def test_operands_in_registers(a_memory, b_memory, dtype, ta, tb):
    total = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    kernel, result, expected = product(
        32, 64, 32, dtype=dtype, total=total, ta=ta, tb=tb, a_memory=a_memory, b_memory=b_memory
    )
    assert "T.ptx.mma" in thread_text(kernel)
    check(result, expected, {"int8": 0, "tfloat32": 4e-3}.get(dtype, 2e-6))


def test_an_operand_of_one_register():
    kernel, result, expected = product(16, 8, 4, dtype="tfloat32", b_memory="fragment", threads=32)
    assert "T.ptx.mma" in thread_text(kernel)
    check(result, expected, 4e-3)


@pytest.mark.parametrize("policy", ["Square", "FullRow", "FullCol"])
@pytest.mark.parametrize("warps", range(1, 17))
def test_any_number_of_warps_under_any_policy(warps, policy):
    kernel, result, expected = product(48, 40, 32, threads=32 * warps, policy=policy)
    assert "T.ptx.mma" in thread_text(kernel)
    check(result, expected, 2e-6)


@pytest.mark.parametrize("shape", [(16, 8, 16), (16, 8, 8), (80, 24, 48), (16, 136, 16), (112, 8, 80), (64, 64, 24)])
def test_tiles_of_any_multiple_of_the_instruction(shape):
    for ta, tb in ((False, False), (True, True)):
        kernel, result, expected = product(*shape, threads=64, ta=ta, tb=tb)
        assert "T.ptx.mma" in thread_text(kernel)
        check(result, expected, 2e-6)


def test_accumulating_in_a_shared_tile():
    kernel, result, expected = product(32, 32, 32, c_memory="shared")
    assert "T.ptx.mma" in thread_text(kernel)
    check(result, expected, 2e-6)


@pytest.mark.parametrize("total", ["float32", "float16"])
def test_clear_accum_starts_from_zero(total):
    _, result, expected = product(32, 32, 32, total=total, options=", clear_accum=True")
    check(result, expected, 2e-6 if total == "float32" else 6e-3)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"dtype": "float32"}, "tfloat32"),
        ({"arch": "sm_75"}, "sm_80"),
        ({"dtype": "float8_e4m3fn", "arch": "sm_86"}, "sm_89"),
        ({"threads": 48}, "whole warps"),
        ({"shape": (20, 32, 32)}, "multiple"),
        ({"shape": (32, 20, 32)}, "multiple"),
        ({"shape": (32, 32, 20)}, "depth"),
    ],
)
def test_what_tensor_cores_do_not_take_is_multiplied_on_cuda_cores(given, reason):
    shape = given.pop("shape", (32, 32, 32))
    kernel, result, expected = product(*shape, **given)
    assert "T.ptx.mma" not in thread_text(kernel)
    (decision,) = [one for one in kernel.build().lowered.decisions if one.subject == "product"]
    assert decision.value == "CUDA cores" and reason in decision.reason and decision.line == 11
    check(result, expected, 2e-6)


def test_a_part_of_a_shared_tile_is_an_operand():
    text = """
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64) as bx:
            A_s = T.alloc_shared((32, 64), "float16")
            B_s = T.alloc_shared((2, 64, 32), "float16")
            C_l = T.alloc_fragment((32, 32), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s[1, :, :])
            T.clear(C_l)
            for k in T.serial(4):
                T.gemm(A_s[:, k * 16:k * 16 + 16], B_s[1, k * 16:k * 16 + 16, :], C_l)
            T.copy(C_l, C)
    """
    kernel = compiled(text)
    assert "T.ptx.ldmatrix" in thread_text(kernel)
    rng = np.random.default_rng(1)
    a, b, c = values(rng, (32, 64), "float16"), values(rng, (64, 32), "float16"), np.zeros((32, 32), np.float32)
    kernel(a, b, c)
    assert not tuple(kernel.findings)
    check(c, a.astype(np.float64) @ b.astype(np.float64), 2e-6)


def test_a_tile_that_is_also_seen_through_a_view_keeps_its_order():
    text = """
    @T.prim_func
    def k(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64) as bx:
            A_s = T.alloc_shared((2048,), "float16")
            A_v = T.reshape(A_s, (32, 64))
            B_s = T.alloc_shared((64, 32), "float16")
            C_l = T.alloc_fragment((32, 32), "float32")
            for i in T.Parallel(2048):
                A_s[i] = A[i // 64, i % 64]
            T.copy(B, B_s)
            T.clear(C_l)
            T.gemm(A_v, B_s, C_l)
            T.copy(C_l, C)
    """
    kernel = compiled(text)
    rng = np.random.default_rng(1)
    a, b, c = values(rng, (32, 64), "float16"), values(rng, (64, 32), "float16"), np.zeros((32, 32), np.float32)
    kernel(a, b, c)
    assert not tuple(kernel.findings)
    check(c, a.astype(np.float64) @ b.astype(np.float64), 2e-6)


def test_products_are_counted_for_the_blocks_that_make_them():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 64, 64), "float32")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, s)
            T.clear(c)
            for _ in range(bx + 1):
                T.gemm(s, s, c)
            T.copy(c, C[bx, :, :])
    """
    kernel = compiled(text)
    a, c = np.ones((64, 64), np.float16), np.zeros((4, 64, 64), np.float32)
    kernel(a, c)
    np.testing.assert_array_equal(c[:, 0, 0], [64, 128, 192, 256])
    (counters,) = kernel.counters
    assert counters.operations["mma m16n8k16"] == (64 // 16) * (64 // 8) * (64 // 16) * (1 + 2 + 3 + 4)


MATMUL = """
@T.prim_func
def k(A: T.Tensor({a}, "{dtype}"), B: T.Tensor({b}, "{dtype}"), C: T.Tensor((256, 256), "{total}")):
    with T.Kernel(256 // {n}, 256 // {m}, threads={threads}) as (bx, by):
        A_s = T.alloc_shared({a_tile}, "{dtype}")
        B_s = T.alloc_shared({b_tile}, "{dtype}")
        C_l = T.alloc_fragment(({m}, {n}), "{total}")
        T.clear(C_l)
        for k in T.Pipelined(256 // {depth}, num_stages=3):
            T.copy(A[{a_place}], A_s)
            T.copy(B[{b_place}], B_s)
            T.gemm(A_s, B_s, C_l, transpose_A={ta}, transpose_B={tb})
        T.copy(C_l, C[by * {m}, bx * {n}])
"""


def shared_traffic(kernel: object, access: str) -> dict[str, tuple[int, int]]:
    """buffer -> (wavefronts, least possible) over the run."""
    (counters,) = kernel.counters
    rows = [row for row in counters.shared_banks if row.access == access]
    return {row.buffer: (row.used, row.ideal) for row in rows}


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(
    ("tile", "threads"), [((128, 128, 32), 128), ((128, 256, 64), 256), ((64, 64, 64), 128), ((128, 128, 16), 128)]
)
def test_shared_tiles_of_a_matmul_have_no_bank_conflict(tile, threads, ta, tb):
    m, n, depth = tile
    place_a, place_b = (f"by * {m}", f"k * {depth}"), (f"k * {depth}", f"bx * {n}")
    text = MATMUL.format(
        m=m, n=n, depth=depth, threads=threads, ta=ta, tb=tb, a=(256, 256), b=(256, 256), dtype="float16",
        total="float32", a_tile=(depth, m) if ta else (m, depth), b_tile=(n, depth) if tb else (depth, n),
        a_place=", ".join(reversed(place_a) if ta else place_a), b_place=", ".join(reversed(place_b) if tb else place_b),
    )  # fmt: skip
    kernel = compiled(text)
    rng = np.random.default_rng(1)
    a, b, c = values(rng, (256, 256), "float16"), values(rng, (256, 256), "float16"), np.zeros((256, 256), np.float32)
    kernel(a, b, c)
    left, right = a.astype(np.float64), b.astype(np.float64)
    check(c, (left.T if ta else left) @ (right.T if tb else right), 2e-6)
    for access in ("read", "write"):
        traffic = shared_traffic(kernel, access)
        assert set(traffic) == {"A_s", "B_s"} and all(used == ideal for used, ideal in traffic.values()), traffic


def test_an_accumulator_goes_to_a_shared_tile_without_bank_conflicts():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            C_s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_s)
            T.clear(c)
            T.gemm(A_s, A_s, c)
            T.copy(c, C_s)
            T.copy(C_s, C)
    """
    kernel = compiled(text)
    a, c = values(np.random.default_rng(1), (64, 64), "float16"), np.zeros((64, 64), np.float16)
    kernel(a, c)
    check(c, a.astype(np.float64) @ a.astype(np.float64), 1e-3)
    for access in ("read", "write"):
        traffic = shared_traffic(kernel, access)
        assert all(used == ideal for used, ideal in traffic.values()), traffic
