"""Operations in whole cells: what a kernel computes on the simulated device is what NumPy computes."""

from __future__ import annotations

import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_nb

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((32, 16)).astype(np.float32)
N = RANDOM.integers(-50, 50, (32, 16)).astype(np.int32)
A = RANDOM.integers(-3, 4, (64, 32)).astype(np.float16)
B = RANDOM.integers(-3, 4, (32, 64)).astype(np.float16)
PRODUCT = A.astype(np.float32) @ B.astype(np.float32)


def launch(body: str, grid: int = 1, threads: int = 64, **arrays: Any) -> dict[str, Any]:
    """Builds a kernel with these statements and runs it on these arrays, which it may write."""
    parameters = ", ".join(f'{name}: T.Tensor({array.shape}, "{array.dtype}")' for name, array in arrays.items())
    text = f"@T.prim_func\ndef k({parameters}):\n    with T.Kernel({grid}, threads={threads}) as bx:\n"
    text += textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"
    compiled = tilelang_nb.compile_cell(text, {}, target="sim")
    assert [str(d) for d in compiled.diagnostics if d.severity == "error"] == []
    compiled.namespace["k"](*arrays.values())
    return arrays


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


REDUCTIONS = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "abssum": lambda x, axis: np.abs(x).sum(axis),
    "absmax": lambda x, axis: np.abs(x).max(axis),
}
BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize(("dim", "size"), [(0, 16), (-1, 32)])
def test_reductions(kind, dim, size):
    body = f"""
    f = T.alloc_fragment((32, 16), "float32")
    r = T.alloc_fragment(({size},), "float32")
    T.copy(x, f)
    T.reduce_{kind}(f, r, dim={dim})
    T.copy(r, o)
    """
    found = launch(body, x=X.copy(), o=zeros(size))
    np.testing.assert_allclose(found["o"], REDUCTIONS[kind](X, axis=dim), atol=1e-4)


@pytest.mark.parametrize("kind", BITS)
def test_bit_reductions(kind):
    body = f"""
    f = T.alloc_fragment((32, 16), "int32")
    r = T.alloc_fragment((32,), "int32")
    T.copy(n, f)
    T.reduce_{kind}(f, r)
    T.copy(r, o)
    """
    found = launch(body, n=N.copy(), o=zeros(32, dtype=np.int32))
    np.testing.assert_array_equal(found["o"], BITS[kind].reduce(N, axis=1))


def test_scans_transposes_and_views():
    body = """
    s = T.alloc_shared((32, 16), "float32")
    t = T.alloc_shared((16, 32), "float32")
    T.copy(x, s)
    T.transpose(s, t)
    T.copy(t, turned)
    T.copy(T.view(s, dtype="int32"), bits)
    T.copy(T.reshape(s, (512,)), flat)
    T.cumsum(s, dim=1, reverse=True)
    T.copy(s, summed)
    """
    arrays = {
        "turned": zeros(16, 32),
        "bits": zeros(32, 16, dtype=np.int32),
        "flat": zeros(512),
        "summed": zeros(32, 16),
    }
    found = launch(body, x=X.copy(), **arrays)
    np.testing.assert_array_equal(found["turned"], X.T)
    np.testing.assert_array_equal(found["bits"], X.view(np.int32))
    np.testing.assert_array_equal(found["flat"], X.ravel())
    np.testing.assert_allclose(found["summed"], np.cumsum(X[:, ::-1], 1)[:, ::-1], atol=1e-4)


@pytest.mark.parametrize(
    ("op", "start", "expected"), [("max", 0.25, np.maximum(X.max(0), 0.25)), ("sum", 1.0, X.sum(0) + 1)]
)
def test_a_reducer_counts_its_start_once(op, start, expected):
    body = f"""
    acc = T.alloc_reducer((16,), "float32", "{op}")
    T.reducer_init(acc, {start})
    for i, j in T.Parallel(32, 16):
        T.reducer_update(acc[j], x[i, j])
    d = T.alloc_fragment((16,), "float32")
    T.finalize_reducer(acc, d)
    T.copy(d, o)
    """
    np.testing.assert_allclose(launch(body, x=X.copy(), o=zeros(16))["o"], expected, atol=1e-4)


def test_atomics_on_elements():
    body = """
    t = T.get_thread_binding()
    old = T.atomic_add(o[0], 1, return_prev=True)
    seen[old] = 1
    T.atomic_max(o[1], t)
    T.atomic_min(o[2], -t)
    T.atomic_or(o[3], T.shift_left(1, t % 31))
    """
    found = launch(body, o=zeros(4, dtype=np.int32), seen=zeros(64, dtype=np.int32))
    assert list(found["o"]) == [64, 63, -63, 2**31 - 1]
    assert found["seen"].all()


def test_atomics_on_tiles():
    body = """
    f = T.alloc_fragment((32, 16), "float32")
    T.copy(x, f)
    T.atomic_add(o[4, 0], f)
    T.atomic_max(p, f)
    T.atomic_add(q, 2.0)
    """
    found = launch(body, grid=2, x=X.copy(), o=zeros(40, 20), p=zeros(32, 16), q=zeros(4))
    np.testing.assert_allclose(found["o"][4:36, :16], 2 * X, rtol=1e-6)
    np.testing.assert_array_equal(found["p"], np.maximum(X, 0))
    assert list(found["q"]) == [4.0] * 4


def test_exchanges_between_lanes():
    body = """
    t = T.get_thread_binding()
    lane = T.get_lane_idx()
    o[0, t] = T.shfl_xor(t, 1)
    o[1, t] = T.shfl_sync(t, 3, width=8)
    o[2, t] = T.warp_reduce_sum(t)
    o[3, t] = T.cast(T.ballot(lane < 4), "int32")
    o[4, t] = T.syncthreads_count(t < 10)
    o[5, t] = T.cast(T.shfl_up(T.cast(t, "float16"), 2), "int32")
    """
    found = launch(body, o=zeros(6, 64, dtype=np.int32))["o"]
    t = np.arange(64)
    np.testing.assert_array_equal(found[0], t ^ 1)
    np.testing.assert_array_equal(found[1], t // 8 * 8 + 3)
    np.testing.assert_array_equal(found[2], np.repeat([t[:32].sum(), t[32:].sum()], 32))
    np.testing.assert_array_equal(found[3], 15)
    np.testing.assert_array_equal(found[4], 10)
    np.testing.assert_array_equal(found[5], np.where(t % 32 < 2, t, t - 2))


def test_barriers_order_what_threads_write():
    body = """
    s = T.alloc_shared((64,), "int32")
    bar = T.alloc_barrier(64)
    t = T.get_thread_binding()
    s[t] = t
    T.barrier_arrive(bar)
    T.barrier_wait(bar, 0)
    o[0, t] = s[63 - t]
    T.sync_threads()
    s[t] = 2 * t
    T.sync_threads(1, 64)
    o[1, t] = s[63 - t]
    """
    found = launch(body, o=zeros(2, 64, dtype=np.int32))["o"]
    np.testing.assert_array_equal(found, (63 - np.arange(64)) * np.array([[1], [2]]))


@pytest.mark.parametrize(
    ("a", "b", "options", "factor"),
    [
        (A, B, "", 2),
        (A.T.copy(), B, ", transpose_A=True", 2),
        (A, B.T.copy(), ", transpose_B=True", 2),
        (A, B, ", clear_accum=q == 1", 1),
        (A, B, ", policy=T.GemmWarpPolicy.FullRow", 2),
    ],
)
def test_matrix_products(a, b, options, factor):
    body = f"""
    p = T.alloc_shared({a.shape}, "float16")
    r = T.alloc_shared({b.shape}, "float16")
    c = T.alloc_fragment((64, 64), "float32")
    T.copy(a, p)
    T.copy(b, r)
    T.clear(c)
    for q in T.serial(2):
        T.gemm(p, r, c{options})
    T.copy(c, o)
    """
    found = launch(body, threads=128, a=a.copy(), b=b.copy(), o=zeros(64, 64))
    np.testing.assert_array_equal(found["o"], factor * PRODUCT)


ELEMENTARY = {
    "exp": np.exp,
    "exp10": lambda x: 10.0**x,
    "log2": np.log2,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tan": np.tan,
    "asin": np.arcsin,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "nearbyint": np.rint,
    "__exp": np.exp,
    "ieee_frcp": np.reciprocal,
}
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 4e-6, "float64": 1e-12}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_elementary_functions(dtype):
    x = np.linspace(0.02, 0.98, 64).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    rows = "\n".join(f"        o[{at}, i] = T.{name}(x[i])" for at, name in enumerate(ELEMENTARY))
    found = launch(f"    for i in T.Parallel(64):\n{rows}", x=x, o=zeros(len(ELEMENTARY), 64, dtype=x.dtype))
    exact = x.astype(np.float64)
    for row, (name, function) in zip(found["o"], ELEMENTARY.items()):
        np.testing.assert_allclose(row.astype(np.float64), function(exact), rtol=TOLERANCE[dtype], err_msg=name)


def test_integer_functions():
    body = """
    for i in T.Parallel(64):
        v = i - 32
        o[0, i] = T.truncdiv(v, 5)
        o[1, i] = T.truncmod(v, 5)
        o[2, i] = T.clamp(v, -3, 9)
        o[3, i] = T.reinterpret(T.reinterpret(v, "float32"), "int32")
        o[4, i] = T.popcount(i)
        o[5, i] = T.__ffs(i)
        o[6, i] = T.call_extern("int32", "__popc", i)
    """
    found = launch(body, o=zeros(7, 64, dtype=np.int32))["o"]
    i = np.arange(64)
    ones = [bin(n).count("1") for n in i]
    expected = [np.trunc((i - 32) / 5), np.fmod(i - 32, 5), np.clip(i - 32, -3, 9), i - 32, ones]
    expected += [[(n & -n).bit_length() for n in i.tolist()], ones]
    np.testing.assert_array_equal(found, np.array(expected))


@pytest.mark.parametrize("kind", ["loop", "scheduler"])
def test_persistent_blocks_share_the_tiles(kind):
    loop = """
    for i, j in T.Persistent([3, 5], 4, bx, 2):
        if T.get_thread_binding() == 0:
            T.atomic_add(o[i, j], 1)
    """
    scheduler = """
    tiles = T.PersistentTileScheduler(3, 5, 4, swizzle_size=2)
    tiles.init(bx)
    while tiles.valid():
        if T.get_thread_binding() == 0:
            T.atomic_add(o[tiles.m_idx, tiles.n_idx], 1)
        tiles.next_tile()
    """
    found = launch(loop if kind == "loop" else scheduler, grid=4, o=zeros(3, 5, dtype=np.int32))
    assert (found["o"] == 1).all()


def test_saturating_casts_stay_finite():
    x = np.array([1.0, 448.0, 1e6, -1e6], np.float32)
    body = """
    for i in T.Parallel(4):
        o[i] = T.cast(x[i], "float8_e4m3fn", sat=True)
    """
    found = launch(body, threads=4, x=x, o=zeros(4, dtype=ml_dtypes.float8_e4m3fn))
    assert found["o"].astype(np.float32).tolist() == [1.0, 448.0, 448.0, -448.0]


def test_every_mistake_of_a_kernel_is_reported_at_its_call():
    cell = textwrap.dedent("""
    @T.prim_func
    def k(A: T.Tensor((64, 32), "float16"), n: T.int32):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a, coalesed_width=4)
            T.gemm(a, a, c)
            T.fill(a, None)
            T.reduce_sum(c, c)
            for i in T.Pipelined(4, num_stage=2):
                T.clera(c)
            T.tcgen05_gemm(a, a, c)
            s = T.alloc_shared((n,), "float32")
            T.copy(s, a)
    """).lstrip("\n")
    compiled = tilelang_nb.compile_cell(cell, {}, target="sim")
    found = [(d.code, d.span.line) for d in compiled.diagnostics if d.severity == "error"]
    expected = [("TL004", 6), ("TL204", 7), ("TL140", 8), ("TL204", 9), ("TL004", 10), ("TL302", 12), ("TL206", 13)]
    assert found in (expected, sorted([*expected, ("TL003", 11)], key=lambda item: item[1]))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16])
def test_tiles_of_every_small_float_in_vector_loops(dtype):
    name = np.dtype(dtype).name
    body = f"""
    a = T.alloc_fragment((48, 64), "{name}")
    b = T.alloc_shared((32, 48), "{name}")
    c = T.alloc_fragment((64, 32), "float32")
    T.copy(x, a)
    T.copy(y, b)
    T.gemm(a, b, c, transpose_A=True, transpose_B=True, clear_accum=True)
    T.copy(c, o)
    """
    x, y = RANDOM.integers(-3, 4, (48, 64)).astype(dtype), RANDOM.integers(-3, 4, (32, 48)).astype(dtype)
    found = launch(body, threads=96, x=x, y=y, o=zeros(64, 32))
    np.testing.assert_array_equal(found["o"], x.astype(np.float32).T @ y.astype(np.float32).T)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, ml_dtypes.bfloat16, np.float32])
def test_strided_tensors_of_every_small_float(dtype):
    name = np.dtype(dtype).name
    text = f"""@T.prim_func
def k(x: T.StridedTensor((8, 4), (9, 1), "{name}"), o: T.StridedTensor((8, 4), (9, 1), "{name}")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(8, 4):
            o[i, j] = x[i, j] + 1
"""
    x, o = np.ones((8, 9), dtype), np.zeros((8, 9), dtype)
    tilelang_nb.compile_cell(text, {}, target="sim").namespace["k"](x[:, :4], o[:, :4])
    assert (o[:, :4] == dtype(2)).all()
    assert (o[:, 4:] == dtype(0)).all()


@pytest.mark.parametrize("shape", ["(8, 32)", "(256,)", "(2, 4, 32)"])
def test_a_tensor_over_the_data_of_a_buffer_is_a_view(shape: str) -> None:
    index = {"(8, 32)": "i // 32, i % 32", "(256,)": "i", "(2, 4, 32)": "i // 128, i // 32 % 4, i % 32"}[shape]
    x, y = np.arange(256, dtype=np.float32).reshape(16, 16), zeros(256)
    launch(
        f"""
        flat = T.Tensor({shape}, "float32", X.data)
        for i in T.Parallel(256):
            Y[i] = flat[{index}]
        """,
        X=x,
        Y=y,
    )
    assert np.array_equal(y, x.reshape(-1))


def test_a_tensor_over_the_data_of_a_buffer_has_as_many_bytes() -> None:
    text = """
@T.prim_func
def k(X: T.Tensor((16, 16), "float32")):
    with T.Kernel(1, threads=64):
        flat = T.Tensor((300,), "float32", X.data)
        other = T.Tensor((300,), "float32", 5)
        wrong = X.data + 1
"""
    found = tilelang_nb.compile_cell(text, {}, target="sim")
    assert [d.code for d in found.diagnostics] == ["TL204", "TL302", "TL127"], found.to_text()
