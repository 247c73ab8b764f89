"""Operations as a user writes them: operands in every memory, regions, chains, loops; checked against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from lowering.cells import build
from lowering.thread_machine import numpy_dtype

from tilelang_nb.simulator import Program


def simulate(body: str, parameters: str, threads: int = 128, **arguments: np.ndarray) -> None:
    """Run a kernel of one block; no error and no finding is allowed."""
    lines = ["@T.prim_func", f"def k({parameters}):", f"    with T.Kernel(1, threads={threads}) as bx:"]
    text = "import tilelang.language as T\n" + "\n".join(
        [*lines, *("        " + one for one in body.strip().split("\n"))]
    )
    kernel = build(text)
    assert not kernel.errors, "\n".join(map(str, kernel.found))
    for launch in kernel.lowered.launches:
        report = Program(launch).run(arguments)
        assert not report.findings, "\n".join(map(str, report.findings)) + launch.script()


def tensor(name: str, array: np.ndarray, dtype: str | None = None) -> str:
    return f"{name}: T.Tensor({array.shape}, '{dtype or array.dtype.name}')"


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    kind = numpy_dtype(dtype)
    values = np.random.default_rng(seed).integers(-4, 5, shape)
    return np.abs(values).astype(kind) if kind.kind == "u" else values.astype(np.float32).astype(kind)


# ---- gemm ----


@pytest.mark.parametrize("a_in", ["shared", "fragment"])
@pytest.mark.parametrize("b_in", ["shared", "fragment"])
@pytest.mark.parametrize("c_in", ["shared", "fragment"])
def test_gemm_operands_in_every_memory(a_in, b_in, c_in):
    a, b, c = numbers((32, 16), "float16"), numbers((16, 24), "float16", 1), numbers((32, 24), seed=2)
    expected = c + a.astype(np.float32) @ b.astype(np.float32)
    body = f"""
a = T.alloc_{a_in}((32, 16), "float16")
b = T.alloc_{b_in}((16, 24), "float16")
c = T.alloc_{c_in}((32, 24), "float32")
T.copy(A, a)
T.copy(B, b)
T.copy(C, c)
T.gemm(a, b, c)
T.copy(c, C)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("B", b), tensor("C", c)]), A=a, B=b, C=c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("policy", "threads"), [("Square", 96), ("FullRow", 128), ("FullCol", 64), ("Square", 32)])
def test_gemm_with_every_policy_and_odd_thread_counts(policy, threads):
    a, b, c = numbers((24, 8)), numbers((20, 8), seed=1), np.zeros((24, 20), np.float32)
    body = f"""
a = T.alloc_shared((24, 8), "float32")
b = T.alloc_shared((20, 8), "float32")
c = T.alloc_fragment((24, 20), "float32")
T.copy(A, a)
T.copy(B, b)
T.gemm(a, b, c, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.{policy})
T.copy(c, C)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("B", b), tensor("C", c)]), threads, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, a @ b.T)


def test_gemm_of_regions_of_a_ring_of_tiles():
    a, b, c = numbers((3, 16, 8), "float16"), numbers((3, 8, 16), "float16", 1), np.zeros((16, 16), np.float32)
    body = """
a = T.alloc_shared((3, 16, 8), "float16")
b = T.alloc_shared((3, 8, 16), "float16")
c = T.alloc_fragment((16, 16), "float32")
T.copy(A, a)
T.copy(B, b)
for i in T.serial(3):
    T.gemm(a[i, :, :], b[i, :, :], c, clear_accum=(i == 0))
T.copy(c, C)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("B", b), tensor("C", c)]), 64, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, np.einsum("tik,tkj->ij", a.astype(np.float32), b.astype(np.float32)))


def test_two_products_into_one_accumulator_with_different_policies():
    a, c = numbers((16, 16)), np.zeros((16, 16), np.float32)
    body = """
a = T.alloc_shared((16, 16), "float32")
c = T.alloc_fragment((16, 16), "float32")
T.copy(A, a)
T.clear(c)
T.gemm(a, a, c, policy=T.GemmWarpPolicy.FullRow)
T.gemm(a, a, c, transpose_A=True, policy=T.GemmWarpPolicy.FullCol)
T.copy(c, C)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("C", c)]), 64, A=a, C=c)
    np.testing.assert_array_equal(c, a @ a + a.T @ a)


@pytest.mark.parametrize(
    ("dtype", "accum"),
    [("int8", "int32"), ("uint8", "int32"), ("bfloat16", "float32"), ("float16", "float16"), ("float64", "float64")]
    + [("float8_e4m3fn", "float32"), ("float8_e5m2", "float16")],
)
def test_gemm_of_every_type_through_a_kernel(dtype, accum):
    a, b = numbers((16, 32), dtype), numbers((32, 16), dtype, 1)
    c = np.zeros((16, 16), accum)
    body = f"""
a = T.alloc_shared((16, 32), "{dtype}")
b = T.alloc_shared((32, 16), "{dtype}")
c = T.alloc_fragment((16, 16), "{accum}")
T.copy(A, a)
T.copy(B, b)
T.clear(c)
T.gemm(a, b, c)
T.copy(c, C)
"""
    simulate(body, ", ".join([tensor("A", a, dtype), tensor("B", b, dtype), tensor("C", c)]), 64, A=a, B=b, C=c)
    np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_a_row_statistic_of_one_product_scales_the_next():
    """The pattern of attention: products of different widths, row maxima and sums between them."""
    q, v, out = numbers((32, 16)), numbers((32, 8), seed=1), np.zeros((32, 8), np.float32)
    body = """
q = T.alloc_shared((32, 16), "float32")
v = T.alloc_shared((32, 8), "float32")
s = T.alloc_fragment((32, 32), "float32")
o = T.alloc_fragment((32, 8), "float32")
m = T.alloc_fragment((32,), "float32")
l = T.alloc_fragment((32,), "float32")
T.copy(Q, q)
T.copy(V, v)
T.clear(s)
T.clear(o)
T.gemm(q, q, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
T.reduce_max(s, m, dim=1)
for i, j in T.Parallel(32, 32):
    s[i, j] = T.exp(s[i, j] - m[i])
T.reduce_sum(s, l, dim=1)
T.gemm(s, v, o, policy=T.GemmWarpPolicy.FullRow)
for i, j in T.Parallel(32, 8):
    o[i, j] /= l[i]
T.copy(o, O)
"""
    simulate(body, ", ".join([tensor("Q", q), tensor("V", v), tensor("O", out)]), 64, Q=q, V=v, O=out)
    s = (q @ q.T).astype(np.float64)
    e = np.exp(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True) @ v, rtol=2e-5, atol=1e-6)


# ---- reductions ----


@pytest.mark.parametrize("memory", ["shared", "fragment", "local"])
@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize(("shape", "dim"), [((8, 12), 1), ((8, 12), 0), ((3, 4, 5), 1), ((40,), 0)])
def test_reductions_in_every_memory(memory, clear, shape, dim):
    kept = tuple(n for d, n in enumerate(shape) if d != dim) or (1,)
    a, r = numbers(shape), numbers(kept, seed=3)
    expected = a.sum(dim).reshape(kept) + (0 if clear else r)
    body = f"""
a = T.alloc_{memory}({shape}, "float32")
r = T.alloc_{memory}({kept}, "float32")
T.copy(A, a)
T.copy(R, r)
T.reduce_sum(a, r, dim={dim}, clear={clear})
T.copy(r, R)
"""
    threads = 1 if memory == "local" else 96
    simulate(body, ", ".join([tensor("A", a), tensor("R", r)]), threads, A=a, R=r)
    np.testing.assert_array_equal(r, expected)


def test_a_result_that_is_used_in_two_layouts():
    a, r, t = numbers((16, 16)), np.zeros((16, 16), np.float32), np.zeros(16, np.float32)
    body = """
a = T.alloc_fragment((16, 16), "float32")
rows = T.alloc_fragment((16,), "float32")
columns = T.alloc_fragment((16,), "float32")
T.copy(A, a)
T.reduce_sum(a, rows, dim=1)
T.reduce_max(a, columns, dim=0)
for i, j in T.Parallel(16, 16):
    R[i, j] = rows[i] + columns[j]
for i in T.Parallel(16):
    S[i] = rows[i] - columns[i]
"""
    simulate(body, ", ".join([tensor("A", a), tensor("R", r), tensor("S", t)]), 64, A=a, R=r, S=t)
    np.testing.assert_array_equal(r, a.sum(1)[:, None] + a.max(0)[None, :])
    np.testing.assert_array_equal(t, a.sum(1) - a.max(0))


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_bit_reductions(kind):
    a, r = np.random.default_rng(0).integers(0, 256, (4, 32)).astype(np.uint8), np.zeros(4, np.uint8)
    body = f"""
a = T.alloc_fragment((4, 32), "uint8")
r = T.alloc_fragment((4,), "uint8")
T.copy(A, a)
T.reduce_{kind}(a, r, dim=1)
T.copy(r, R)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("R", r)]), 64, A=a, R=r)
    operation = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[kind]
    np.testing.assert_array_equal(r, operation.reduce(a, 1))


# ---- scans, reducers, atomics ----


@pytest.mark.parametrize("memory", ["shared", "fragment"])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize(("call", "scan"), [("cumsum", np.cumsum), ("cummax", np.maximum.accumulate)])
def test_scans_in_every_memory(memory, reverse, call, scan):
    a, r = numbers((12, 10)), np.zeros((12, 10), np.float32)
    body = f"""
a = T.alloc_{memory}((12, 10), "float32")
r = T.alloc_{memory}((12, 10), "float32")
T.copy(A, a)
T.{call}(a, r, dim=1, reverse={reverse})
T.copy(r, R)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("R", r)]), 48, A=a, R=r)
    expected = np.flip(scan(np.flip(a, 1), 1), 1) if reverse else scan(a, 1)
    np.testing.assert_array_equal(r, expected)


@pytest.mark.parametrize("threads", [32, 96, 128])
@pytest.mark.parametrize(("op", "join"), [("sum", np.add), ("max", np.maximum), ("min", np.minimum)])
def test_reducers_over_a_loop(threads, op, join):
    a, r = numbers((50, 6)), np.zeros(6, np.float32)
    start = {"sum": "0", "max": '-T.infinity("float32")', "min": 'T.infinity("float32")'}[op]
    step = {"sum": "acc[j] + A[i, j]", "max": "T.max(acc[j], A[i, j])", "min": "T.min(acc[j], A[i, j])"}[op]
    body = f"""
acc = T.alloc_reducer((6,), "float32", op="{op}")
T.fill(acc, {start})
for i, j in T.Parallel(50, 6):
    acc[j] = {step}
T.finalize_reducer(acc)
T.copy(acc, R)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("R", r)]), threads, A=a, R=r)
    np.testing.assert_array_equal(r, join.reduce(a, 0))


def test_a_histogram_in_shared_memory():
    a, h = np.random.default_rng(0).integers(0, 16, 1000).astype(np.int32), np.zeros(16, np.int32)
    body = """
h = T.alloc_shared((16,), "int32")
T.clear(h)
for i in T.Parallel(1000):
    T.atomic_add(h[A[i]], 1)
T.copy(h, H)
"""
    simulate(body, ", ".join([tensor("A", a), tensor("H", h)]), 96, A=a, H=h)
    np.testing.assert_array_equal(h, np.bincount(a, minlength=16))


def test_a_flag_set_by_any_thread_stops_all():
    """A `while` over shared memory: condition, update and reset are ordered for all threads."""
    a, n = numbers((64,), "int32"), np.zeros(64, np.int32)
    body = """
left = T.alloc_shared((1,), "int32")
tx = T.get_thread_binding(0)
x = A[tx] + 8
turns = 0
if tx == 0:
    left[0] = 1
while left[0] > 0:
    if tx == 0:
        left[0] = 0
    if x > 0:
        x = x - 3
        T.atomic_add(left[0], 1)
    turns = turns + 1
N[tx] = turns
"""
    simulate(body, ", ".join([tensor("A", a), tensor("N", n)]), 64, A=a, N=n)
    most = int(np.ceil((a.max() + 8) / 3))
    np.testing.assert_array_equal(n, most + 1)


# ---- warp groups ----


def test_a_producer_and_a_consumer_group_with_mbarriers():
    a, r = numbers((6, 128)), np.zeros((6, 128), np.float32)
    body = """
s = T.alloc_shared((2, 128), "float32")
full = T.alloc_barrier([128] * 2)
empty = T.alloc_barrier([128] * 2)
with T.ws(0):
    for i in T.serial(6):
        T.barrier_wait(empty[i % 2], (i // 2 + 1) % 2)
        T.copy(A[i, :], s[i % 2, :])
        T.barrier_arrive(full[i % 2])
with T.ws(1):
    for i in T.serial(6):
        T.barrier_wait(full[i % 2], i // 2 % 2)
        for j in T.Parallel(128):
            R[i, j] = s[i % 2, 127 - j] * 2.0
        T.barrier_arrive(empty[i % 2])
"""
    simulate(body, ", ".join([tensor("A", a), tensor("R", r)]), 256, A=a, R=r)
    np.testing.assert_array_equal(r, 2 * a[:, ::-1])


def test_groups_exchange_among_themselves():
    r = np.zeros(256, np.int32)
    body = """
s = T.alloc_shared((2, 128), "int32")
tx = T.get_thread_binding(0)
with T.ws(0):
    s[0, tx] = tx
    R[tx] = s[0, 127 - tx]
with T.ws(1):
    s[1, tx - 128] = tx
    R[tx] = s[1, 255 - tx]
"""
    simulate(body, tensor("R", r), 256, R=r)
    np.testing.assert_array_equal(r, np.concatenate([np.arange(128)[::-1], np.arange(128, 256)[::-1]]))
