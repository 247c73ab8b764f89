"""Atomic operations."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T


@pytest.mark.parametrize("kind", ["add", "max", "min", "or"])
def test_an_element_is_updated_by_every_executing_thread(kernel, kind):
    c = kernel.buffer("c", (8,), "int32")
    assert getattr(T, f"atomic_{kind}")(c[3], 2) is None
    (call,) = kernel.calls
    assert (call.name, call["operation"], str(call["value"]), call["memory_order"]) == (
        "atomic_element",
        kind,
        "2",
        None,
    )
    assert [str(i) for i in call["target"].begin] == ["3"]
    assert "kept" not in kernel.text


def test_the_previous_value_and_the_memory_order(kernel):
    c = kernel.buffer("c", (8,), "float32", "shared.dyn")
    old = T.atomic_add(c[3], 1, memory_order="relaxed", return_prev=True)
    assert (old.dtype, kernel.calls[0]["memory_order"]) == ("float32", "relaxed")
    assert str(kernel.calls[0]["value"]) == "T.float32(1.0)"


def test_a_buffer_of_one_element_is_that_element(kernel, device):
    y = kernel.buffer("y", (1,), "int32")
    T.atomic_add(y, device("v", "int32"))
    T.atomic_add(y, kernel.buffer("a", (128,), "int32")[5])
    assert [call.name for call in kernel.calls] == ["atomic_element", "atomic_element"]


def test_tiles_add_element_by_element(kernel, device):
    c = kernel.buffer("c", (100, 100))
    tile = kernel.buffer("t", (16, 8), memory="local.fragment")
    T.atomic_add(c[device("i", "int32"), 0], tile)
    T.atomic_add(c[0:16, 0:8], tile)
    T.atomic_max(c, 1.0)
    first, second, third = kernel.calls
    assert {call.name for call in kernel.calls} == {"atomic_region"}
    assert ([str(n) for n in first["target"].extent], first["value"].buffer.name) == (["16", "8"], "t")
    assert second["operation"] == "add"
    assert str(third["value"]) == "T.float32(1.0)"


@pytest.mark.parametrize(
    ("use", "code", "text"),
    [
        (lambda c, t, f: T.atomic_add(c[0:4], t), "TL204", "(8,)"),
        (lambda c, t, f: T.atomic_add(f, 1.0), "TL004", "a fragment"),
        (lambda c, t, f: T.atomic_add(c, t, return_prev=True), "TL004", "index one element"),
        (lambda c, t, f: T.atomic_add(c[0], 1, memory_order="relaxd"), "TL004", '"relaxed"'),
        (lambda c, t, f: T.atomic_or(c[0], 1), "TL205", "bit operations"),
        (lambda c, t, f: T.atomic_add(3, 1), "TL004", "`3`"),
        (lambda c, t, f: T.atomic_add(c[0], "x"), "TL004", "'x'"),
        (lambda c, t, f: T.atomic_max(c[0], 1, use_tma=True), "TL004", "`use_tma`"),
        (lambda c, t, f: T.atomic_load(c), "TL004", "one element"),
        (lambda c, t, f: T.atomic_load(c[0], "release"), "TL004", "acquire"),
        (lambda c, t, f: T.atomic_addx2(c[7], t[0]), "TL204", "over the end"),
        (lambda c, t, f: T.atomic_addx2(c[0:3], t[0]), "TL204", "2 neighbours"),
        (lambda c, t, f: T.atomic_addx4(c[0], t[0], return_prev=True), "TL302", "vector"),
    ],
)
def test_mistakes(kernel, refused, use, code, text):
    c, t = kernel.buffer("c", (8,)), kernel.buffer("t", (8,), memory="shared.dyn")
    with refused(code, text):
        use(c, t, kernel.buffer("f", (8,), memory="local.fragment"))


def test_dtypes_of_atomics(kernel, refused):
    with refused("TL205", "bool"):
        T.atomic_add(kernel.buffer("b", (1,), "bool"), 1)
    with refused("TL135", "0.5"):
        T.atomic_add(kernel.buffer("n", (1,), "int32"), 0.5)


def test_neighbours_are_added_one_by_one(kernel, device):
    c, v = kernel.buffer("c", (8, 8), "float16"), kernel.buffer("v", (2,), "float16", "local")
    T.atomic_addx2(c[1, device("j", "int32")], v[0])
    T.atomic_addx4(c[0, 4:8], kernel.buffer("w", (4,), "float16", "local"))
    assert len(kernel.calls) == 6
    assert [str(call["target"].begin[1]) for call in kernel.calls] == ["j", "j + 1", "4", "5", "6", "7"]


def test_load_and_store(kernel):
    c = kernel.buffer("c", (8,), "int32")
    value = T.atomic_load(c[1], memory_order="acquire")
    T.atomic_store(c[2], value, "release")
    load, store = kernel.calls
    assert (load.name, load["memory_order"], value.dtype) == ("atomic_load", "acquire", "int32")
    assert (store.name, store["memory_order"], str(store["value"])) == ("atomic_store", "release", "atomic_load")
