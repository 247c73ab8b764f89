"""Lowered operations against NumPy, executed by the second engine with its race check."""

from __future__ import annotations

import numpy as np
import pytest
from lowering import thread_programs as tp
from lowering.thread_machine import numpy_dtype, run
from tvm import tirx as tir

from tilelang_nb.language.tile_program import operation, read
from tilelang_nb.layout.fragment import blocked, uniform
from tilelang_nb.lowering.gemm.simt import accumulator_layout
from tilelang_nb.lowering.ops.reduce import result_layout

REDUCTIONS = {
    "sum": lambda a, axis: a.sum(axis),
    "max": lambda a, axis: a.max(axis),
    "min": lambda a, axis: a.min(axis),
    "abssum": lambda a, axis: np.abs(a).sum(axis),
    "absmax": lambda a, axis: np.abs(a).max(axis),
    "bitand": lambda a, axis: np.bitwise_and.reduce(a, axis),
    "bitor": lambda a, axis: np.bitwise_or.reduce(a, axis),
    "bitxor": lambda a, axis: np.bitwise_xor.reduce(a, axis),
    "any": lambda a, axis: (a != 0).any(axis),
    "all": lambda a, axis: (a != 0).all(axis),
}


def reduced(
    kind, shape, dim, threads, dtype="float32", out="float32", clear=True, keep=False, wanted=None, nan=True, a=None
):
    launch = tp.Launch(threads)
    kept = [n for d, n in enumerate(shape) if d != dim] or [1]
    if keep:
        kept = [1 if d == dim else n for d, n in enumerate(shape)]
    source, target = tp.fragment("f", shape, dtype), tp.fragment("r", kept, out)
    layout = blocked(shape, threads, 2)
    result = wanted(kept, threads) if wanted else result_layout(layout, tuple(kept), dim)
    given, answer = tp.buffer("A", shape, dtype), tp.buffer("R", kept, out)
    body = [launch.hold(source, layout), launch.hold(target, result), launch.move(source, given, True)]
    body += [launch.move(target, answer, True)]
    body += [launch.lower("reduce", kind, tp.whole(source), tp.whole(target), dim, clear, nan)]
    body += [launch.move(target, answer, False)]
    function = launch.with_barriers(launch.function([given, answer], *body))
    rng = np.random.default_rng(3)
    a = tp.random_array(rng, shape, dtype) if a is None else a
    old = tp.random_array(rng, kept, out)
    got = old.copy()
    assert tp.run_twice(function, A=a, R=got) == []
    work = a if a.dtype.kind in "iub" else a.astype(np.float64)
    expected = REDUCTIONS[kind](work, dim).reshape(kept)
    if not clear:
        join = {"sum": np.add, "abssum": np.add, "max": np.maximum, "absmax": np.maximum, "min": np.minimum}[kind]
        expected = join(expected, old.astype(np.float64))
    return got, expected.astype(numpy_dtype(out))


@pytest.mark.parametrize("kind", ["sum", "max", "min", "abssum", "absmax"])
@pytest.mark.parametrize(
    ("shape", "dim", "threads"),
    [
        ((8, 32), 1, 64),
        ((8, 32), 0, 64),
        ((2, 100), 1, 128),
        ((64,), 0, 32),
        ((1, 256), 1, 64),
        ((6, 10), 1, 12),
        ((5, 3, 4), 1, 24),
    ],
)
def test_float_reductions_agree_with_numpy_for_every_distribution(kind, shape, dim, threads):
    got, expected = reduced(kind, shape, dim, threads)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 6, 12, 32, 48, 96, 128])
def test_sum_is_right_for_any_number_of_threads(threads):
    got, expected = reduced("sum", (4, 50), 1, threads)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor", "sum", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "int64"])
def test_integer_reductions_are_exact(kind, dtype):
    out = "bool" if kind in ("any", "all") else dtype
    if kind == "sum":
        out = "int64" if dtype == "int64" else "int32"
    got, expected = reduced(kind, (4, 64), 1, 64, dtype, out)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 11), ("bfloat16", 8), ("float64", 53)])
def test_narrow_sums_round_once(dtype, digits):
    a = (np.random.default_rng(5).random((4, 256)) + 10).astype(numpy_dtype(dtype))
    got, _ = reduced("sum", (4, 256), 1, 64, dtype, dtype, a=a)
    exact = a.astype(np.float64).sum(1)
    assert np.all(
        np.abs(got.astype(np.float64) - exact) <= 1.01 * exact * 2.0**-digits * (16 if dtype == "float64" else 1)
    )


@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax"])
def test_the_old_value_takes_part_once_without_clear(kind):
    got, expected = reduced(kind, (4, 64), 1, 128, clear=False)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_the_reduced_dimension_may_be_kept_with_extent_one():
    got, expected = reduced("max", (4, 64), 1, 32, keep=True)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("wanted", [uniform, lambda shape, threads: blocked(shape, threads, 1)])
@pytest.mark.parametrize("clear", [True, False])
def test_a_result_of_another_layout_goes_through_shared_memory(wanted, clear):
    got, expected = reduced("sum", (12, 16), 1, 64, wanted=wanted, clear=clear)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["max", "min", "absmax", "sum"])
def test_nan_propagates(kind):
    a = np.arange(128, dtype=np.float32).reshape(2, 64)
    a[0, 37] = np.nan
    got, _ = reduced(kind, (2, 64), 1, 64, a=a)
    assert np.isnan(got[0]) and not np.isnan(got[1])


def test_nan_is_ignored_where_that_was_said():
    a = np.arange(128, dtype=np.float32).reshape(2, 64)
    a[0, 37] = np.nan
    got, _ = reduced("max", (2, 64), 1, 64, nan=False, a=a)
    np.testing.assert_array_equal(got, [63, 127])


# ---- gemm ----


def product(
    shape, threads, a_type="float16", c_type="float32", ta=False, tb=False, clear=False, policy="square", layout=None
):
    m, n, k = shape
    launch = tp.Launch(threads, "sm_70")  # CUDA cores
    a_shape, b_shape = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    ga, gb, gc = tp.buffer("A", a_shape, a_type), tp.buffer("B", b_shape, a_type), tp.buffer("C", (m, n), c_type)
    sa, sb = tp.shared("As", a_shape, a_type), tp.shared("Bs", b_shape, a_type)
    c = tp.fragment("c", (m, n), c_type)
    body = [tir.AllocBuffer(sa), tir.AllocBuffer(sb)]
    body += [launch.hold(c, layout or accumulator_layout((m, n), threads, policy)), launch.move(c, gc, True)]
    body += [tp.fill_shared(sa, ga, launch), tp.fill_shared(sb, gb, launch)]
    clear_operand = clear if isinstance(clear, bool) else clear(launch, gc)
    body += [launch.lower("gemm", tp.whole(sa), tp.whole(sb), tp.whole(c), ta, tb, clear_operand, policy)]
    body += [launch.move(c, gc, False)]
    function = launch.with_barriers(launch.function([ga, gb, gc], *body))
    rng = np.random.default_rng(7)
    a, b = tp.random_array(rng, a_shape, a_type), tp.random_array(rng, b_shape, a_type)
    old = tp.random_array(rng, (m, n), c_type)
    got = old.copy()
    assert tp.run_twice(function, A=a, B=b, C=got) == []
    wide = np.int64 if numpy_dtype(c_type).kind == "i" else np.float64
    left, right = a.astype(wide), b.astype(wide)
    value = (left.T if ta else left) @ (right.T if tb else right)
    return got, value, old


@pytest.mark.parametrize("policy", ["square", "full_row", "full_col"])
@pytest.mark.parametrize(
    ("shape", "threads"),
    [((16, 16, 8), 32), ((32, 8, 4), 64), ((13, 7, 5), 32), ((8, 24, 4), 12), ((24, 6, 3), 96), ((1, 32, 4), 32)],
)
def test_gemm_agrees_with_numpy_for_every_distribution(policy, shape, threads):
    got, value, old = product(shape, threads, policy=policy)
    np.testing.assert_allclose(got, value + old, rtol=1e-6)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_gemm_of_transposed_operands(ta, tb):
    got, value, old = product((8, 16, 12), 32, ta=ta, tb=tb)
    np.testing.assert_allclose(got, value + old, rtol=1e-6)


@pytest.mark.parametrize(
    ("a_type", "c_type"),
    [
        ("float16", "float16"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int8", "int32"),
        ("uint8", "int32"),
        ("float8_e4m3fn", "float32"),
        ("float8_e5m2", "float32"),
        ("float8_e4m3fn", "float16"),
    ],
)
def test_gemm_of_every_operand_type(a_type, c_type):
    got, value, old = product((8, 8, 16), 32, a_type, c_type)
    np.testing.assert_allclose(got.astype(np.float64), value + old.astype(np.float64), rtol=1e-3)


def test_gemm_with_clear_accum_forgets_c():
    got, value, _ = product((8, 8, 4), 32, clear=True)
    np.testing.assert_allclose(got, value, rtol=1e-6)


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("c_type", ["float32", "float16"])
def test_gemm_with_a_condition_for_clear_accum(holds, c_type):
    got, value, old = product((8, 8, 4), 32, c_type=c_type, clear=lambda launch, c: launch.tx >= (0 if holds else 99))
    np.testing.assert_allclose(got, value if holds else value + old, rtol=1e-3)


def test_gemm_serves_an_accumulator_of_any_layout():
    got, value, old = product((12, 20, 4), 32, layout=blocked((12, 20), 32, 2))
    np.testing.assert_allclose(got, value + old, rtol=1e-6)


def test_products_of_different_widths_agree_on_their_rows():
    wide, narrow = accumulator_layout((64, 128), 128, "full_row"), accumulator_layout((64, 8), 128, "full_row")
    assert wide.project([0]).digits == narrow.project([0]).digits


# ---- scans, reducers, atomics ----


@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim", "threads"), [((6, 10), 1, 32), ((6, 10), 0, 4), ((40,), 0, 32), ((3, 5, 4), 1, 8)]
)
def test_scans_agree_with_numpy(kind, reverse, shape, dim, threads):
    launch = tp.Launch(threads)
    given, tile = tp.buffer("A", shape, "float32"), tp.shared("s", shape, "float32")
    body = [tir.AllocBuffer(tile), tp.fill_shared(tile, given, launch)]
    body += [launch.lower("cumulate", kind, tp.whole(tile), tp.whole(tile), dim, reverse)]
    body += [tp.spill_shared(tile, given, launch)]
    a = tp.random_array(np.random.default_rng(1), shape, "float32")
    got = a.copy()
    assert tp.run_twice(launch.with_barriers(launch.function([given], *body)), A=got) == []
    scan = np.cumsum if kind == "sum" else np.maximum.accumulate
    turned = np.flip(a, dim) if reverse else a
    expected = scan(turned, dim)
    np.testing.assert_allclose(got, np.flip(expected, dim) if reverse else expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("threads", [8, 12, 32, 64, 96])
@pytest.mark.parametrize("start", [0.0, 5.0])
def test_reducers_combine_every_thread_once(kind, threads, start):
    launch = tp.Launch(threads)
    acc, target = tp.fragment("acc", (3,)), tp.fragment("t", (3,))
    given, answer = tp.buffer("A", (threads, 3), "float32"), tp.buffer("R", (3,), "float32")
    body = [launch.hold(acc, uniform((3,), threads)), launch.hold(target, blocked((3,), threads))]
    body += [launch.lower("reducer", tp.whole(acc), kind, "all")] if kind != "sum" else []
    launch.lower("reducer", tp.whole(acc), kind, "all")
    body += [launch.lower("fill", tp.whole(acc), tir.const(start, "float32"))]
    registers = launch.context.registers[acc]

    def contribute(k):
        value, old = tp.load(given, launch.tx, k), tp.load(registers, k)
        joined = old + value if kind == "sum" else (tir.Max if kind == "max" else tir.Min)(old, value)
        return tp.store(registers, joined, k)

    body += [tp.loop("k", 3, contribute), launch.lower("finalize_reducer", tp.whole(acc), tp.whole(target))]
    body += [launch.move(target, answer, False)]
    a = tp.random_array(np.random.default_rng(2), (threads, 3), "float32")
    got = np.zeros(3, np.float32)
    assert tp.run_twice(launch.with_barriers(launch.function([given, answer], *body)), A=a, R=got) == []
    join = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
    np.testing.assert_allclose(got, join(join.reduce(a, 0), start), rtol=1e-6)


def test_a_reducer_finalised_in_place_is_the_same_in_every_thread():
    launch = tp.Launch(96)
    acc, answer = tp.fragment("acc", (2,), "int32"), tp.buffer("R", (96, 2))
    body = [launch.hold(acc, uniform((2,), 96))]
    launch.lower("reducer", tp.whole(acc), "sum", "all")
    body += [launch.lower("fill", tp.whole(acc), tp.integer(0))]
    registers = launch.context.registers[acc]
    body += [tp.loop("k", 2, lambda k: tp.store(registers, launch.tx + k, k))]
    body += [launch.lower("finalize_reducer", tp.whole(acc), None)]
    body += [tp.loop("k", 2, lambda k: tp.store(answer, tp.load(registers, k), launch.tx, k))]
    got = np.zeros((96, 2), np.int32)
    assert tp.run_twice(launch.with_barriers(launch.function([answer], *body)), R=got) == []
    np.testing.assert_array_equal(got, np.broadcast_to([sum(range(96)), sum(range(96)) + 96], (96, 2)))


@pytest.mark.parametrize(
    ("kind", "expected"), [("add", 2 + 496), ("max", 31), ("min", 0), ("or", 31), ("exchange", None)]
)
def test_atomics_on_shared_memory_are_seen_after_a_barrier(kind, expected):
    launch = tp.Launch(32)
    cell, answer = tp.shared("cell", (1,)), tp.buffer("R", (32,))
    body = [tir.AllocBuffer(cell), tp.store(cell, tp.integer(2), 0)]
    body += [launch.lower("atomic_element", kind, tp.whole(cell), launch.tx)]
    body += [tp.store(answer, tp.load(cell, 0), launch.tx)]
    got = np.zeros(32, np.int32)
    assert run(launch.with_barriers(launch.function([answer], *body)), R=got) == []
    assert len(set(got)) == 1
    assert expected is None or got[0] == expected


def test_the_old_content_of_an_atomic_is_a_value():
    launch = tp.Launch(32)
    cell, answer = tp.buffer("cell", (1,)), tp.buffer("R", (32,))
    old = tir.Var("old", "int32")
    call = read(operation("atomic_element", "add", tp.whole(cell), tp.integer(1), dtype="int32"))
    from tilelang_nb.lowering.ops import atomic_element

    body = [tir.Bind(old, atomic_element.value(call, launch.context)), tp.store(answer, old, launch.tx)]
    got, count = np.zeros(32, np.int32), np.zeros(1, np.int32)
    assert run(launch.with_barriers(launch.function([cell, answer], *body)), R=got, cell=count) == []
    assert sorted(got) == list(range(32)) and count[0] == 32


# ---- output and checks ----


@pytest.mark.parametrize("memory", ["fragment", "shared", "global"])
def test_a_buffer_is_printed_once_in_order(memory):
    launch = tp.Launch(32)
    given = tp.buffer("A", (2, 3))
    body, one = [], given
    if memory == "fragment":
        one = tp.fragment("f", (2, 3), "int32")
        body = [launch.hold(one, blocked((2, 3), 32)), launch.move(one, given, True)]
    elif memory == "shared":
        one = tp.shared("s", (2, 3))
        body = [tir.AllocBuffer(one), tp.fill_shared(one, given, launch)]
    body.append(launch.lower("print", "it:", tp.whole(one)))
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert tp.run_twice(launch.with_barriers(launch.function([given], *body)), A=a) == []
    expected = [("it:", int(a[i, j]), f"{one.name}[{{}}, {{}}]", i, j) for i in range(2) for j in range(3)]
    assert run.printed == expected


def test_a_scalar_is_printed_by_every_thread():
    launch = tp.Launch(4)
    run(launch.function([], launch.lower("print", "x", launch.tx * 2)))
    assert sorted(run.printed) == [("x", 0, ""), ("x", 2, ""), ("x", 4, ""), ("x", 6, "")]


def test_a_failed_device_assert_carries_its_message():
    launch = tp.Launch(4)
    function = launch.function([], launch.lower("device_assert", launch.tx < 3, "too far"))
    with pytest.raises(AssertionError, match="too far"):
        run(function)


def test_an_mbarrier_is_initialised_before_anyone_arrives():
    launch = tp.Launch(32)
    bars = tp.buffer("bars", (1,), "uint64", "shared.barrier")
    body = [tir.AllocBuffer(bars), launch.lower("barrier_init", tp.whole(bars), 32)]
    body += [launch.lower("barrier_arrive", tp.whole(bars)), launch.lower("barrier_wait", tp.whole(bars), 0)]
    text = launch.with_barriers(launch.function([], *body)).script()
    places = [text.index(word) for word in ('"init"', "tvm_storage_sync", '"arrive"', "mbarrier_wait")]
    assert places == sorted(places) and text.count("tvm_storage_sync") == 1
