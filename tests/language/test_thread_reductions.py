"""T.comm_reducer, T.attr and T.tvm_thread_allreduce: totals over thread axes, and their mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb

OPERATIONS = {
    "sum": ("x + y", 0, np.add),
    "max": ("T.max(x, y)", -1000, np.maximum),
    "min": ("T.min(x, y)", 1000, np.minimum),
    "bitand": ("x & y", -1, np.bitwise_and),
    "bitor": ("x | y", 0, np.bitwise_or),
    "bitxor": ("x ^ y", 0, np.bitwise_xor),
}
TEXT = """
@T.prim_func
def totals(A: T.Tensor(({z}, {y}, {x}), "{dtype}"), B: T.Tensor(({z}, {y}, {x}), "{dtype}")):
    with T.Kernel(1, threads=({x}, {y}, {z})):
        t = T.get_thread_bindings()
        value = T.alloc_local((1,), "{dtype}")
        total = T.alloc_local((1,), "{dtype}")
        value[0] = A[t[2], t[1], t[0]]
        with T.attr(
            T.comm_reducer(lambda x, y: {combiner}, [T.cast({identity}, "{dtype}")]),
            "reduce_scope",
            T.reinterpret(T.uint64(0), dtype="handle"),
        ):
            T.evaluate(T.tvm_thread_allreduce(T.uint32(1), value[0], {condition}, total[0], {axes}, dtype="handle"))
        B[t[2], t[1], t[0]] = total[0]
"""


def run(shape: tuple[int, int, int], axes: str, operation: str, dtype: str, condition: str = "True") -> tuple:
    combiner, identity, function = OPERATIONS[operation]
    x, y, z = shape
    text = TEXT.format(x=x, y=y, z=z, axes=axes, combiner=combiner, identity=identity, dtype=dtype, condition=condition)
    cell = tilelang_nb.compile_cell(text)
    assert cell.ok, cell.to_text()
    given = np.random.default_rng(3).integers(-50, 50, (z, y, x)).astype(dtype)
    found = np.zeros_like(given)
    kernel = cell.namespace["totals"]
    kernel(given, found)
    assert not kernel.findings
    return given, found, function


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("shape", "axes", "dims"),
    [
        ((32, 4, 1), "t[0]", (2,)),
        ((32, 4, 1), "t[1]", (1,)),
        ((8, 16, 1), "t[0]", (2,)),
        ((8, 16, 1), "t[1]", (1,)),
        ((4, 8, 6), "t[0], t[2]", (0, 2)),
        ((128, 1, 1), "t[0]", (2,)),
        ((6, 5, 3), "t[0]", (2,)),
        ((6, 5, 3), "t[1]", (1,)),
        ((6, 5, 3), "t[0], t[1], t[2]", (0, 1, 2)),
        ((64, 3, 2), "t[2]", (0,)),
        ((64, 1, 1), "t[1]", (1,)),
    ],
)
def test_each_thread_gets_the_total_of_its_row(
    shape: tuple[int, int, int], axes: str, dims: tuple[int, ...], operation: str
) -> None:
    given, found, function = run(shape, axes, operation, "int32")
    wanted = given
    for dim in dims:
        wanted = function.reduce(wanted, axis=dim, keepdims=True)
    assert np.array_equal(found, np.broadcast_to(wanted, given.shape))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_every_type(dtype: str) -> None:
    given, found, _ = run((16, 4, 1), "t[0]", "sum", dtype)
    wanted = given.astype("int64").sum(axis=2, keepdims=True).astype(dtype)
    assert np.array_equal(found, np.broadcast_to(wanted, given.shape))


def test_threads_whose_condition_is_false_give_the_identity() -> None:
    given, found, _ = run((16, 4, 1), "t[0]", "sum", "int32", "t[0] < 5")
    assert np.array_equal(found, np.broadcast_to(given[:, :, :5].sum(axis=2, keepdims=True), given.shape))


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("T.tvm_thread_allreduce(1, v[0], True, v[0], t)", "TL208", "without the way to combine"),
        ('with T.attr(0, "pragma", 0): pass', "TL302", "`T.attr` other than a reducer"),
        ("T.comm_reducer(lambda x, y: x * y, [T.float32(1)])", "TL302", "this combiner"),
        ("T.comm_reducer(lambda x: x, [T.float32(1)])", "TL302", "other than two values"),
        ("T.comm_reducer(lambda x, y: x + y, 0)", "TL004", "as a list of one number"),
        ('x = T.reinterpret(T.uint64(4), dtype="handle")', "TL302", "a pointer made of a number"),
        ("with {plus}: T.tvm_thread_allreduce(2, v[0], True, v[0], t)", "TL302", "of several values"),
        ("with {plus}: T.tvm_thread_allreduce(1, v[0], True, v[0], t + 1)", "TL004", "indices of threads"),
        ("with {plus}: T.tvm_thread_allreduce(1, v[0], True, A[0], t)", "TL004", "takes its result from"),
        ("with {plus}: T.tvm_thread_allreduce(1, T.int32(1), True, v[0], t)", "TL205", "with a reducer of float32"),
        ("with {plus}: T.tvm_thread_allreduce(1, v[0], True, h[0], t)", "TL205", "allocate `h` as float32"),
        (
            "with T.ws(0):\n            with {plus}: T.tvm_thread_allreduce(1, v[0], True, v[0], t)",
            "TL208",
            "warp groups",
        ),
    ],
)
def test_mistakes(statement: str, code: str, said: str) -> None:
    plus = 'T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0)'
    text = f"""
@T.prim_func
def wrong(A: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256):
        t = T.get_thread_binding(0)
        v = T.alloc_local((1,), "float32")
        h = T.alloc_local((1,), "float16")
        v[0] = A[t]
        {statement.format(plus=plus)}
        A[t] = v[0]
"""
    cell = tilelang_nb.compile_cell(text)
    assert [found.code for found in cell.diagnostics if found.severity == "error"] == [code], cell.to_text()
    assert said in cell.to_text()


def test_the_body_of_an_asynchronous_scope_is_as_it_is_without() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((64,), "float32")
        factor = 1
        with T.attr("default", "async_scope", 1):
            T.async_copy(A, s)
            factor = 3
        T.ptx_wait_group(0)
        for i in T.Parallel(64):
            C[i] = s[63 - i] * factor
"""
    cell = tilelang_nb.compile_cell(text, {}, target="sim")
    assert cell.ok, cell.to_text()
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    cell.namespace["k"](a, c)
    np.testing.assert_array_equal(c, a[::-1] * 3)
    assert cell.namespace["k"].findings == ()
