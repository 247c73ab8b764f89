"""Parameters, shapes, strides, thread blocks and grids of three dimensions, printing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from simulator.nodes import *
from simulator.running import clean, run

from tilelang_nb.simulator import Program, Unsupported


def test_symbolic_sizes_come_from_the_arrays():
    rows, columns = var("rows"), var("columns")
    x, y = buffer("x", (rows, columns), "float32"), buffer("y", (rows, columns), "float32")
    j = var("j")

    def body(t, b):
        row = b * 32 + t
        return [when(row < rows, loop(j, columns, store(y, load(x, row, j) + f32(1), row, j)))]

    func = launch([x, y], body, threads=32, blocks=tir.floordiv(rows + 31, 32))
    program = Program(func)
    for shape in ((70, 5), (3, 1), (32, 8), (0, 4), (4, 0)):
        array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        result = np.zeros(shape, np.float32)
        report = program.run({"x": array, "y": result})
        assert report.findings == () and (result == array + 1).all()


def test_thread_blocks_and_grids_of_three_dimensions():
    out = buffer("out", (2, 3, 2, 4, 2, 3), "int32")

    def body(t, b):
        value = ((((b[2] * 3 + b[1]) * 2 + b[0]) * 4 + t[2]) * 2 + t[1]) * 3 + t[0]
        return [store(out, value, b[2], b[1], b[0], t[2], t[1], t[0])]

    func = launch([out], body, threads=(3, 2, 4), blocks=(2, 3, 2))
    got = clean(func, {"out": np.zeros((2, 3, 2, 4, 2, 3), np.int32)})["out"]
    assert (got.reshape(-1) == np.arange(got.size)).all()


def test_lanes_of_a_warp_are_counted_along_x_first():
    out = buffer("out", (64,), "int32")

    def body(t, b):
        linear = t[1] * 16 + t[0]
        return [store(out, shuffle("_xor", "int32", linear, i32(16)), linear)]

    func = launch([out], body, threads=(16, 4), blocks=[1])
    assert (clean(func, {"out": np.zeros(64, np.int32)})["out"] == np.arange(64) ^ 16).all()


@pytest.mark.parametrize("lanes", [1, 100, 1 << 16])
def test_the_number_of_blocks_in_flight_does_not_matter(lanes, monkeypatch):
    import tilelang_nb.simulator.program as program

    monkeypatch.setattr(program, "LANES", lanes)
    x, s = buffer("x", (1000,), "int32"), shared("s", 50, "int32")

    def body(t, b):
        g = b * 50 + t
        return [store(s, load(x, g) * 2, t), barrier(), store(x, load(s, 49 - t), g)]

    values = np.arange(1000, dtype=np.int32)
    func = launch([x], body, threads=50, blocks=20, allocate=[s])
    assert (clean(func, {"x": values})["x"].reshape(20, 50) == 2 * values.reshape(20, 50)[:, ::-1]).all()


def test_an_empty_grid_does_nothing():
    n = var("n")
    x = buffer("x", (n,), "int32")
    func = launch([x], lambda t, b: [store(x, i32(1), b)], threads=1, blocks=n)
    clean(func, {"x": np.zeros(0, np.int32)})


def test_sizes_that_stand_only_in_sums_are_passed():
    n = var("n")
    x = buffer("x", (n * 4 + 2,), "int32")
    program = Program(launch([x], lambda t, b: [store(x, n, t)], threads=8))
    array = np.zeros(10, np.int32)
    report = program.run({"x": array}, sizes={n: 2})
    assert report.findings == () and array.tolist() == [2] * 8 + [0, 0]
    with pytest.raises(ValueError, match="`n`"):
        program.run({"x": array})


def test_views_of_global_memory():
    x, flat, raw = buffer("x", (4, 8), "int32"), buffer("flat", (16,), "int32"), buffer("raw", (128,), "uint8")

    def body(t, b):
        return [
            tir.DeclBuffer(flat, data=tir.ptr_byte_offset(tir.buffer_data(x), 64, "int32")),
            tir.DeclBuffer(raw, data=tir.buffer_data(x)),
            store(flat, t + 100, t),
            store(raw, tir.const(7, "uint8"), t * 4),
        ]

    got = clean(launch([x], body, threads=16), {"x": np.zeros((4, 8), np.int32)})["x"].reshape(-1)
    assert got.tolist() == [7] * 16 + list(range(100, 116))


def test_a_view_and_its_array_race_by_address():
    x, flat = buffer("x", (4, 8), "int32"), buffer("flat", (32,), "int32")

    def body(t, b):
        view = tir.DeclBuffer(flat, data=tir.buffer_data(x))
        return [view, store(x, t, i32(0), t, line=3), store(flat, i32(5), 7 - t, line=4)]

    _, report = run(launch([x], body, threads=8), {"x": np.zeros((4, 8), np.int32)})
    assert [(f.code, f.span.line) for f in report.findings] == [("TL401", 4)]


def test_one_array_passed_twice_races_by_address():
    a, b = buffer("a", (64,), "int32"), buffer("b", (64,), "int32")
    func = launch([a, b], lambda t, _: [store(b, load(a, 63 - t) + 1, t, line=4)], threads=64)
    apart = {"a": np.zeros(64, np.int32), "b": np.zeros(64, np.int32)}
    assert Program(func).run(apart).findings == ()
    both = np.zeros(64, np.int32)
    report = Program(func).run({"a": both, "b": both})
    assert [(f.code, f.span.line) for f in report.findings] == [("TL401", 4)]
    in_place = launch([a, b], lambda t, _: [store(b, load(a, t) + 1, t)], threads=64)
    assert Program(in_place).run({"a": both, "b": both}).findings == ()


def test_strided_arrays():
    rows, columns, stride = var("rows"), var("columns"), var("stride")
    x = buffer("x", (rows, columns), "float32", strides=(stride, 1))
    func = launch([x], lambda t, b: [store(x, load(x, b, t) * f32(2), b, t)], threads=4, blocks=rows)
    memory = np.arange(30, dtype=np.float32).reshape(5, 6)
    view = memory[1:4, 1:5]
    wanted = memory.copy()
    wanted[1:4, 1:5] *= 2
    assert Program(func).run({"x": view}).findings == ()
    assert (memory == wanted).all()


def test_arrays_that_are_not_contiguous_are_written_back():
    x = buffer("x", (4, 6), "float32")
    func = launch([x], lambda t, b: [store(x, load(x, b, t) + f32(1), b, t)], threads=6, blocks=4)
    memory = np.zeros((6, 4), np.float32)
    Program(func).run({"x": memory.T})
    assert (memory == 1).all()


def test_scalar_parameters():
    n, factor, flag = var("n"), var("factor", "float32"), var("flag", "bool")
    out = buffer("out", (4,), "float32")

    def body(t, b):
        return [store(out, tir.Select(flag, factor * tir.Cast("float32", n + t), f32(0)), t)]

    func = launch([out, n, factor, flag], body, threads=4)
    arguments = {"out": np.ones(4, np.float32), "n": 3, "factor": 1.1, "flag": True}
    assert (clean(func, arguments)["out"] == np.float32(1.1) * np.arange(3, 7, dtype=np.float32)).all()
    assert (clean(func, arguments | {"flag": False})["out"] == 0).all()


@pytest.mark.parametrize("name", ["S", "P", "np", "for", "p_x", "é", "T", "x.y"])
def test_any_parameter_name_works(name):
    x = buffer(name, (4,), "int32")
    func = launch([x], lambda t, b: [store(x, load(x, t) + t, t)], threads=4)
    assert clean(func, {name: np.zeros(4, np.int32)})[name].tolist() == [0, 1, 2, 3]


def test_buffers_without_dimensions():
    x = buffer("x", (), "float32")
    func = launch([x], lambda t, b: [store(x, load(x) + f32(2))], threads=1)
    assert clean(func, {"x": np.array(1, np.float32)})["x"] == 3


def test_bool_bfloat16_and_float8_arrays():
    a, b, c = buffer("a", (8,), "bool"), buffer("b", (8,), "bfloat16"), buffer("c", (8,), "float8_e4m3fn")

    def body(t, _):
        third = load(b, t) / tir.const(3, "bfloat16")
        return [
            store(a, tir.Not(load(a, t)), t),
            store(c, tir.Cast("float8_e4m3fn", load(b, t)), t),
            store(b, third, t),
        ]

    flags = np.arange(8) % 3 == 0
    numbers = np.arange(8).astype(ml_dtypes.bfloat16)
    arguments = {"a": flags, "b": numbers, "c": np.zeros(8, ml_dtypes.float8_e4m3fn)}
    result = clean(launch([a, b, c], body, threads=8), arguments)
    assert (result["a"] == ~flags).all()
    assert (result["b"] == numbers / ml_dtypes.bfloat16(3)).all()
    assert (result["c"] == numbers.astype(ml_dtypes.float8_e4m3fn)).all()


def test_indices_of_64_bits():
    x, y = buffer("x", (64,), "int32"), buffer("y", (64,), "int32")
    index = lambda t: tir.Cast("int64", t) * tir.const(3, "int64") % tir.const(64, "int64")
    func = launch([x, y], lambda t, b: [store(y, load(x, index(t)), tir.Cast("int64", t))], threads=64)
    values = np.arange(64, dtype=np.int32) * 7
    assert (clean(func, {"x": values, "y": np.zeros(64, np.int32)})["y"] == values[np.arange(64) * 3 % 64]).all()


def test_an_index_through_memory():
    x, at, y = buffer("x", (32,), "float32"), buffer("at_", (32,), "int32"), buffer("y", (32,), "float32")
    func = launch(
        [x, at, y], lambda t, b: [store(y, load(x, load(at, t)), load(at, tir.floormod(t + 1, 32)))], threads=32
    )
    order = np.random.default_rng(0).permutation(32).astype(np.int32)
    values = np.arange(32, dtype=np.float32)
    wanted = np.zeros(32, np.float32)
    wanted[order[(np.arange(32) + 1) % 32]] = values[order]
    assert (clean(func, {"x": values, "at_": order, "y": np.zeros(32, np.float32)})["y"] == wanted).all()


def test_printed_values_come_by_block_and_thread():
    x = buffer("x", (4,), "float32")

    def body(t, b):
        call = extern("void", "tl_print", "value", load(x, b * 2 + t), "x[i]")
        return [when(t < 1, evaluate(call)), when(b > 0, evaluate(extern("void", "tl_print", "hello")))]

    _, report = run(launch([x], body, threads=2, blocks=2), {"x": np.array([1.5, 2, 3, 4], np.float32)})
    assert report.printed == (
        "value BLOCK=(0, 0, 0), THREAD=(0, 0, 0): x[i] = 1.5",
        "value BLOCK=(1, 0, 0), THREAD=(0, 0, 0): x[i] = 3.0",
        "hello BLOCK=(1, 0, 0), THREAD=(0, 0, 0)",
        "hello BLOCK=(1, 0, 0), THREAD=(1, 0, 0)",
    )


def test_printed_elements_name_their_index():
    x = buffer("x", (4,), "float32")
    k = var("k")
    call = tir.call_extern("void", "tl_print", StringImm("m"), load(x, k), StringImm("x[{}, {}]"), k, k + 1)
    func = launch([x], lambda t, b: [loop(k, 2, evaluate(call))], threads=1)
    _, report = run(func, {"x": np.array([1.5, 2, 3, 4], np.float32)})
    place = "BLOCK=(0, 0, 0), THREAD=(0, 0, 0)"
    assert report.printed == (f"m {place}: x[0, 1] = 1.5", f"m {place}: x[1, 2] = 2.0")


def test_printing_a_constant():
    x = buffer("x", (1,), "float32")
    call = extern("void", "tl_print", "n", i32(5))
    _, report = run(launch([x], lambda t, b: [evaluate(call)], threads=1), {"x": np.zeros(1, np.float32)})
    assert report.printed == ("n BLOCK=(0, 0, 0), THREAD=(0, 0, 0): 5",)


@pytest.mark.parametrize(
    "statement",
    [
        lambda x: evaluate(extern("void", "no_such_function")),
        lambda x: evaluate(tir.call_intrin("void", "tirx.thread_return")),
        lambda x: store(x, extern("int32", "other"), 0),
    ],
)
def test_what_is_not_executed_is_refused_by_name(statement):
    x = buffer("x", (4,), "int32")
    with pytest.raises(Unsupported, match=r"no_such_function|thread_return|other"):
        Program(launch([x], lambda t, b: [statement(x)], threads=1))


@pytest.mark.parametrize("lanes", [32, 1 << 16])
def test_a_launch_tells_which_part_of_it_is_done(lanes, monkeypatch):
    import tilelang_nb.simulator.program as program

    monkeypatch.setattr(program, "LANES", lanes)  # one block at a time, or all of them at once
    x, k = buffer("x", (128,), "int32"), var("k")

    def body(t, b):
        place = b * 32 + t
        first = loop(k, 10, store(x, load(x, place) + k, place))
        return [first, loop(var("l"), 10, store(x, load(x, place) + 1, place))]

    told: list[float] = []
    array = np.zeros(128, np.int32)
    Program(launch([x], body, threads=32, blocks=4)).run({"x": array}, progress=told.append)
    assert (array == 55).all()
    assert told == sorted(told) and told[0] == 0 and 0.9 < told[-1] < 1
    assert 0.5 in told  # the second loop begins
