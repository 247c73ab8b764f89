"""Reductions, scans, reducers, any_of and all_of."""

from __future__ import annotations

import pytest
from tvm import tirx as tir

import tilelang_nb.language as T

KINDS = ["sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor"]


def fragment(kernel, name, shape, dtype="float32", memory="local.fragment"):
    return kernel.buffer(name, shape, dtype, memory)


@pytest.mark.parametrize("kind", KINDS)
def test_every_reduction_reads_back(kernel, kind):
    dtype = "int32" if kind.startswith("bit") else "float32"
    c, r = fragment(kernel, "c", (4, 8), dtype), fragment(kernel, "r", (4,), dtype)
    getattr(T, f"reduce_{kind}")(c, r, dim=1)
    T.reduce(c, r, kind, -1, False)
    first, second = kernel.calls
    assert (first.name, first["operation"], first["source"].buffer.name) == ("reduce", kind, "c")
    assert (first.integer("dim"), first.boolean("clear"), first.boolean("nan_propagate")) == (1, True, True)
    assert (second.integer("dim"), second.boolean("clear")) == (1, False)


@pytest.mark.parametrize(
    ("source", "dim", "target"),
    [
        ((4, 8), 0, (8,)),
        ((4, 8), -2, (1, 8)),
        ((4, 8), -1, (4, 1)),
        ((4, 8, 2), 1, (4, 2)),
        ((8,), 0, (1,)),
        ((4, 8), 1, (4,)),
    ],
)
def test_results_with_and_without_the_reduced_dimension(kernel, source, dim, target):
    T.reduce_sum(fragment(kernel, "c", source), fragment(kernel, "r", target), dim)
    assert kernel.calls[0].integer("dim") == dim % len(source)


@pytest.mark.parametrize(
    ("source", "dim", "target", "texts"),
    [
        ((64, 64), 1, (32,), ["(64, 64)", "gives (64,)", "(32,)"]),
        ((4, 8), 0, (4,), ["gives (8,)", "(4,)"]),
        ((4, 8), 1, (1, 4), ["(1, 4)"]),
        ((4, 8), 1, (4, 8), ["(4, 8)"]),
    ],
)
def test_results_of_another_shape_are_refused(kernel, refused, source, dim, target, texts):
    with refused("TL204", *texts):
        T.reduce_max(fragment(kernel, "c", source), fragment(kernel, "r", target), dim=dim)
    assert kernel.calls == []


def test_memories_dims_and_options(kernel, refused):
    c, r = fragment(kernel, "c", (4, 8), memory="shared.dyn"), fragment(kernel, "r", (4,), memory="shared.dyn")
    T.reduce_max(c, r, dim=1, clear=False, nan_propagate=False, batch=4)
    assert kernel.calls[0].boolean("nan_propagate") is False
    T.reduce_sum(c[0:2, :], r[1:3], dim=1)
    assert [str(n) for n in kernel.calls[1]["source"].extent] == ["2", "8"]
    with refused("TL004", "dim=2", "-2..1"):
        T.reduce_sum(c, r, dim=2)
    with refused("TL004", "global memory", "T.copy"):
        T.reduce_sum(kernel.buffer("g", (4, 8)), r)
    with refused("TL004", "batch"):
        T.reduce_sum(c, r, batch=0)
    with refused("TL004", '"absmax"'):
        T.reduce(c, r, "absmx", 1)
    with refused("TL004", "`nan_propagate`"):
        T.reduce_sum(c, r, nan_propagate=True)


def test_dtypes_of_reductions(kernel, refused):
    with refused("TL205", "bit operations"):
        T.reduce_bitand(fragment(kernel, "c", (4, 8)), fragment(kernel, "r", (4,)))
    with refused("TL205", "float32", "int32"):
        T.reduce_sum(fragment(kernel, "c", (4, 8)), fragment(kernel, "r", (4,), "int32"))
    T.reduce_sum(fragment(kernel, "c", (4, 8), "float16"), fragment(kernel, "r", (4,)))
    T.reduce_bitor(fragment(kernel, "c", (4, 8), "bool"), fragment(kernel, "r", (4,), "bool"))


def test_scans(kernel, refused):
    s = fragment(kernel, "s", (16, 8), memory="shared.dyn")
    T.cumsum(src=s[8:16, 0:8], dim=1)
    T.cummax(s, s, dim=-2, reverse=True)
    first, second = kernel.calls
    assert (first["operation"], first.integer("dim"), first.boolean("reverse")) == ("sum", 1, False)
    assert [str(i) for i in first["target"].begin] == ["8", "0"]
    assert (second["operation"], second.integer("dim"), second.boolean("reverse")) == ("max", 0, True)
    with refused("TL204", "(16, 8)", "(8, 8)"):
        T.cumsum(s, s[0:8, :])
    with refused("TL004", "dim=2"):
        T.cumsum(s, dim=2)
    with refused("TL004", "`axis`", "did you mean `dim`?"):
        T.cumsum(s, axis=1)


def test_any_of_and_all_of_look_at_every_element(kernel, refused):
    s = fragment(kernel, "s", (4, 8), "int32", "shared.dyn")
    found = T.any_of(s[1, :])
    every = T.all_of(s)
    assert (found.dtype, every.dtype) == ("bool", "bool")
    one, every_element = [str(statement) for statement in kernel.statements if isinstance(statement, tir.For)]
    assert "for i, j in T.grid(1, 8)" in one
    assert "s[1 + i, j] != 0" in one
    assert "for i, j in T.grid(4, 8)" in every_element
    assert "not s[i, j] != 0" in every_element
    with refused("TL004", "a fragment", "shared memory"):
        T.any_of(fragment(kernel, "f", (4,)))


def test_reducers(kernel, refused):
    acc = T.alloc_reducer((8,), "float32", op="sum", replication="all")
    T.clear(acc)
    T.finalize_reducer(acc, batch=2)
    names = [call.name for call in kernel.calls]
    assert names == ["reducer", "fill", "finalize_reducer"]
    assert (kernel.calls[0]["operation"], kernel.calls[0]["replication"]) == ("sum", "all")
    assert kernel.calls[2]["target"] is None
    with refused("TL004", "T.reducer_init"):
        T.fill(acc, 1)
    with refused("TL004", "reducer"):
        T.finalize_reducer(kernel.buffer("x", (8,), memory="local.fragment"))
    with refused("TL004", '"bitxor"'):
        T.alloc_reducer((8,), "float32", op="prod")
    with refused("TL205", "bitor"):
        T.alloc_reducer((8,), "float32", op="bitor")
    with refused("TL204", "(8,)", "(4,)"):
        T.finalize_reducer(acc, kernel.buffer("d", (4,), memory="local.fragment"))


def test_a_reducer_with_a_start_combines_it_once_after_finalizing(kernel, device):
    acc, out = T.alloc_reducer((8,), "float32", "max"), kernel.buffer("out", (8,), memory="local.fragment")
    T.reducer_init(acc, device("x"))
    T.reducer_update(acc[3], 2.5)
    T.finalize_reducer(acc, out)
    text = kernel.text
    assert 'T.float32("-inf")' in text
    assert "reducer[3] = T.max(reducer[3], T.float32(2.5))" in text
    assert text.index("tl.finalize_reducer") < text.index("out[") < text.index("T.max(out[")
    assert "start" in text


@pytest.mark.parametrize(
    ("op", "dtype", "identity"),
    [
        ("sum", "float16", "T.float16(0.0)"),
        ("max", "int8", "T.int8(-128)"),
        ("min", "int32", "2147483647"),
        ("bitand", "uint8", "T.uint8(255)"),
        ("bitand", "int32", "-1"),
        ("bitxor", "int32", "0"),
    ],
)
def test_reducers_begin_with_the_identity_of_their_operation(kernel, op, dtype, identity):
    T.reducer_init(T.alloc_reducer((8,), dtype, op))
    assert str(kernel.calls[1]["value"]) == identity
