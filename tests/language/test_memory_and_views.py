"""Allocation, views, and conversions of values."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T


@pytest.mark.parametrize(
    ("allocate", "memory"),
    [
        (T.alloc_shared, "shared.dyn"),
        (T.alloc_fragment, "local.fragment"),
        (T.alloc_local, "local"),
        (T.alloc_global, "global"),
    ],
)
def test_a_tile_has_its_shape_dtype_memory_and_the_name_it_is_assigned_to(kernel, allocate, memory):
    kernel.hint = "tile"
    tile = allocate((8, 4), T.half)
    assert (tile.name, tile.shape, tile.dtype, tile.memory) == ("tile", (8, 4), "float16", memory)
    assert allocate(16, "int32").shape == (16,)
    assert allocate([4, T.int32(4)], dtype="int8").shape == (4, 4)


def test_scopes(kernel, refused):
    assert T.alloc_shared((8,), "float32", scope="shared").memory == "shared.dyn"
    assert T.alloc_buffer((8,), "float32", "local.fragment").memory == "local.fragment"
    assert T.alloc_buffer((8,), scope="global").memory == "global"
    with refused("TL004", "'registers'"):
        T.alloc_local((8,), "float32", scope="registers")


def test_a_tile_has_a_constant_shape(kernel, refused, device):
    with refused("TL206", "`n`"):
        T.alloc_shared((device("n", "int32"), 8), "float32")
    with refused("TL206", "`n + 1`"):
        T.alloc_fragment(device("n", "int32") + 1, "float32")
    with refused("TL004", "dimension of 0"):
        T.alloc_shared((0, 4), "float32")
    with refused("TL205", "float33"):
        T.alloc_shared((8,), "float33")


def test_variables(kernel, refused):
    assert T.alloc_var("int32").is_variable
    T.alloc_var("int32", 1)
    T.alloc_var("int32", "local.var", init=2)
    T.alloc_var("float32", 3, "local.var")
    T.alloc_var(T.bool, init=True)
    stores = [str(s) for s in kernel.statements if "[0] =" in str(s)]
    assert [line.split("= ")[-1] for line in stores] == ["1", "2", "T.float32(3.0)", "T.bool(True)"]
    with refused("TL004", "more than one"):
        T.alloc_var("int32", 1, init=2)
    with refused("TL135", "0.5"):
        T.alloc_var("int32", init=0.5)


def test_a_variable_starts_with_the_content_of_another(kernel):
    first = T.alloc_var("int32", 4)
    T.alloc_var("int32", init=first)
    load = kernel.statements[-1].value
    assert load.source.same_as(first.var)


def test_barriers(kernel, refused):
    one, three = T.alloc_barrier(128), T.alloc_barrier([1, 128, 64])
    assert (one.shape, three.shape, three.memory, three.dtype) == ((1,), (3,), "shared.barrier", "uint64")
    counts = [(str(call["barrier"].begin[0]), call.integer("arrive_count")) for call in kernel.calls]
    assert counts == [("0", 128), ("0", 1), ("1", 128), ("2", 64)]
    assert T.alloc_cluster_barrier(2).memory == "shared.barrier"
    for wrong in (0, [], 1.5, [1, -1]):
        with refused("TL004"):
            T.alloc_barrier(wrong)


def test_views_share_memory(kernel):
    tile = kernel.buffer("tile", (32, 8), "float16", "shared.dyn")
    flat, wide = T.reshape(tile, (256,)), T.view(tile, dtype="int32")
    bytes_of = T.view(tile, (64, 8), "int8")
    assert (flat.shape, flat.dtype, flat.memory) == ((256,), "float16", "shared.dyn")
    assert (wide.shape, wide.dtype) == ((32, 4), "int32")
    assert (bytes_of.shape, bytes_of.dtype) == ((64, 8), "int8")
    assert "data" in kernel.text
    assert T.reshape(tile, (32, 8)) is tile
    assert len(kernel.statements) == 3


def test_views_of_symbolic_buffers(kernel, refused):
    n = T.dynamic("n")
    a = kernel.buffer("a", (n, 4))
    assert T.reshape(a, (n * 4,)).shape[0].dtype == "int32"
    with refused("TL204"):
        T.reshape(a, (n, 5))


@pytest.mark.parametrize(
    ("use", "code", "texts"),
    [
        (lambda t: T.reshape(t, (33,)), "TL204", ["(8, 4)", "(33,)", "64 bytes against 66"]),
        (lambda t: T.view(t, (8, 4), "float32"), "TL204", ["float32"]),
        (lambda t: T.view(t, dtype="int4"), "TL205", ["int4"]),
        (lambda t: T.view(t, dtype="bool"), "TL205", ["bool"]),
        (lambda t: T.reshape(t[0:2, :], (8,)), "TL004", ["a region"]),
        (lambda t: T.view(t, strides=(1, 8)), "TL302", ["strides"]),
        (lambda t: T.reshape(t, "ab"), "TL004", ["'ab'"]),
    ],
)
def test_views_that_do_not_fit(kernel, refused, use, code, texts):
    with refused(code, *texts):
        use(kernel.buffer("tile", (8, 4), "float16", "shared.dyn"))


def test_casts(device, refused):
    x = device("x")
    assert str(T.cast(x, "float16")) == 'T.Cast("float16", x)'
    assert str(T.Cast("int32", x)) == 'T.Cast("int32", x)'
    assert T.cast(3, "float16").dtype == "float16"
    assert str(T.cast(x, "bool")) == "x != T.float32(0.0)"
    assert T.cast(x, T.float32).use() is x.use()
    assert "448" in str(T.cast(x, "float8_e4m3fn", sat=True))
    assert "448" not in str(T.cast(x, "float8_e4m3fn"))
    with refused("TL302", "rz"):
        T.cast(x, "float16", round="rz")
    with refused("TL205", "float17"):
        T.cast(x, "float17")
    with refused("TL135", "300"):
        T.cast(300, "int8")


def test_reinterpretation_keeps_the_width(device, refused):
    x = device("x")
    assert (T.reinterpret(x, "int32").dtype, str(T.reinterpret(x, "uint32"))) == (
        "uint32"[1:],
        'T.reinterpret("uint32", x)',
    )
    assert T.reinterpret(1.0, "int32").dtype == "int32"
    assert T.reinterpret(x, "float32") is x
    for wrong in ("float16", "int64", "bool"):
        with refused("TL205", "32 bits"):
            T.reinterpret(x, wrong)
