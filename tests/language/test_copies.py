"""T.copy and its like: which boxes they move, and what does not fit."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T
from tilelang_nb.language.values import Value
from tilelang_nb.source.diagnostic import Refusal


def box(operand):
    return [str(i) for i in operand.begin], [str(n) for n in operand.extent]


def test_whole_buffers_of_equal_shapes_are_copied_whole(kernel):
    T.copy(kernel.buffer("a", (8, 4)), kernel.buffer("s", (8, 4), memory="shared.dyn"))
    (call,) = kernel.calls
    assert call.name == "copy"
    assert (call["source"].buffer.name, call["target"].buffer.name) == ("a", "s")
    assert box(call["source"]) == box(call["target"]) == (["0", "0"], ["8", "4"])
    assert (call["coalesced_width"], call.boolean("disable_tma")) == (None, False)


def test_options_of_a_copy(kernel):
    a, s = kernel.buffer("a", (8,)), kernel.buffer("s", (8,), memory="shared.dyn")
    T.copy(a, s, coalesced_width=4, disable_tma=True, eviction_policy="evict_first", prefer_instruction="cp_async")
    T.copy(a, s, annotations={"coalesced_width": 2, "tl.ws_op_id": "x"})
    first, second = kernel.calls
    assert (first.integer("coalesced_width"), first.boolean("disable_tma")) == (4, True)
    assert second.integer("coalesced_width") == 2


def test_an_origin_takes_its_extent_from_the_other_side(kernel, device):
    a, s = kernel.buffer("a", (3, 100, 100)), kernel.buffer("s", (16, 8), memory="shared.dyn")
    i, j = device("i", "int32"), device("j", "int32")
    T.copy(a[2, i, j], s)
    T.copy(s, a[0, 5, j])
    load, store = kernel.calls
    assert box(load["source"]) == (["2", "i", "j"], ["1", "16", "8"])
    assert box(store["target"]) == (["0", "5", "j"], ["1", "16", "8"])
    assert "kept" not in kernel.text  # an origin is a place, not a load


def test_an_origin_of_fewer_dimensions_skips_extents_of_1(kernel, device):
    x, y = kernel.buffer("x", (1, 16), memory="local.fragment"), kernel.buffer("y", (100,))
    T.copy(x, y[device("i", "int32")])
    (call,) = kernel.calls
    assert box(call["target"]) == (["i"], ["16"])


def test_regions_whose_extents_agree_up_to_1(kernel, device):
    q, s = kernel.buffer("q", (2, 256, 4, 64)), kernel.buffer("s", (32, 64), memory="shared.dyn")
    b = device("b", "int32")
    T.copy(q[0, b * 32 : (b + 1) * 32, 3, :], s)
    (call,) = kernel.calls
    assert box(call["source"])[1] == ["1", "32", "1", "64"]


def test_equal_symbolic_extents_agree(kernel):
    n = T.dynamic("n")
    a, c = kernel.buffer("a", (n, 4)), kernel.buffer("c", (n, 4))
    T.copy(a, c)
    T.copy(a[0:n, :], c)
    assert len(kernel.calls) == 2


def test_two_elements_are_one_assignment(kernel):
    a, c = kernel.buffer("a", (8,)), kernel.buffer("c", (8,), "float16")
    T.copy(a[1], c[2])
    assert kernel.calls == []
    assert 'c[2] = T.Cast("float16", a[1])' in kernel.text


def test_a_variable_is_copied_as_an_element(kernel):
    x, c = T.alloc_var("float32"), kernel.buffer("c", (8,))
    T.copy(x, c[2])
    assert "c[2] = variable[0]" in kernel.text


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda a, b, t, i: (a, b), ["`a`, shape (64, 32)", "`b`, shape (64, 64)"]),
        (lambda a, b, t, i: (a[0:32, :], b), ["(32, 32)", "(64, 64)"]),
        (lambda a, b, t, i: (a[0:32, 0], b[0:16, 0]), ["(32, 1)", "(16, 1)"]),
        (lambda a, b, t, i: (a[0, 0], t), ["2 dimension(s)", "(2, 3, 4)"]),
        (lambda a, b, t, i: (a[0:i, :], b[0:64, 0:32]), ["(i, 32)", "(64, 32)"]),
        (lambda a, b, t, i: (a, a[0:1, :]), ["(64, 32)", "(1, 32)"]),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_both(kernel, refused, device, make, texts):
    a, b = kernel.buffer("a", (64, 32)), kernel.buffer("b", (64, 64), memory="shared.dyn")
    t = kernel.buffer("t", (2, 3, 4), memory="shared.dyn")
    with refused("TL204", *texts):
        T.copy(*make(a, b, t, device("i", "int32")))
    assert kernel.calls == []


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda a, s: T.copy(3, s), "`3`"),
        (lambda a, s: T.copy(a, [1]), "a list"),
        (lambda a, s: T.copy(a[0] + 1, s), "a float32 value"),
        (lambda a, s: T.copy(a, s, coalesced_width=0), "1 or more"),
        (lambda a, s: T.copy(a, s, coalesced_width="wide"), "'wide'"),
        (lambda a, s: T.copy(a, s, eviction_policy="evict_frist"), '"evict_first"'),
        (lambda a, s: T.copy(a, s, prefer_instruction="dma"), "tma"),
        (lambda a, s: T.copy(a, s, annotations=[1]), "annotations"),
        (lambda a, s: T.copy(a, T.alloc_barrier([1] * 8)), "barrier"),
        (lambda a, s: T.async_copy(s, a), "from global to shared"),
    ],
)
def test_what_a_copy_does_not_take(kernel, refused, use, text):
    a, s = kernel.buffer("a", (8,)), kernel.buffer("s", (8,), memory="shared.dyn")
    with refused("TL004", text):
        use(a, s)
    assert [call.name for call in kernel.calls if call.name != "barrier_init"] == []


def test_a_copy_from_float_to_integer_warns(kernel):
    T.copy(kernel.buffer("a", (8,)), kernel.buffer("c", (8,), "int32"))
    assert [warning.code for warning in kernel.warnings] == ["TL212"]
    assert kernel.calls[0].name == "copy"


def test_async_copy(kernel):
    T.async_copy(kernel.buffer("a", (8,)), kernel.buffer("s", (8,), memory="shared.dyn"), coalesced_width=2)
    (call,) = kernel.calls
    assert (call.name, call.integer("coalesced_width")) == ("async_copy", 2)


def test_tma_copy_to_global_is_a_group_to_wait_for(kernel, refused):
    a, s = kernel.buffer("a", (8,)), kernel.buffer("s", (8,), memory="shared.dyn")
    T.tma_copy(s, a)
    T.tma_store_arrive()
    T.tma_store_wait(1, read=False)
    copy, arrive, wait = kernel.calls
    assert (copy.name, copy["barrier"], copy["scope"]) == ("tma_copy", None, None)
    assert (arrive.name, wait.name, wait.integer("pending"), wait.boolean("read")) == (
        "store_arrive",
        "store_wait",
        1,
        False,
    )
    with refused("TL004", "T.tma_store_wait"):
        T.tma_copy(s, a, barrier=T.alloc_barrier(1))
    with refused("TL205", "converts"):
        T.tma_copy(s, kernel.buffer("b", (8,), "float16"))
    with refused("TL004", "whole warps"):
        T.tma_copy(s, a, leader_scope_threads=48)
    with refused("TL004", "evict_first"):
        T.tma_copy(s, a, eviction_policy="soon")


def test_tma_copy_into_shared_memory_counts_at_a_barrier(kernel, refused):
    a, s = kernel.buffer("a", (64, 32)), kernel.buffer("s", (2, 8, 32), memory="shared.dyn")
    bars = T.alloc_barrier([128, 128])
    T.tma_copy(a[8:16, :], s[1, :, :], barrier=bars[1])
    T.tma_copy(a[8, 0], s[0, :, :], barrier=bars[0])
    one, other = kernel.calls[2:]
    assert (one.name, one["barrier"].buffer.name, [str(i) for i in one["barrier"].begin]) == (
        "tma_copy",
        "barrier",
        ["1"],
    )
    assert [str(extent) for extent in other["source"].extent] == ["8", "32"]
    with refused("TL004", "T.alloc_barrier"):
        T.tma_copy(a[0, 0], s[0, :, :])
    with refused("TL004", "T.alloc_barrier"):
        T.tma_copy(a[0, 0], s[0, :, :], barrier=a[0, 0])
    with refused("TL205", "converts"):
        T.tma_copy(kernel.buffer("d", (8, 32), "float16"), s[0, :, :], barrier=bars[0])
    with refused("TL204", "extents"):
        T.tma_copy(a[0:4, :], s[0, :, :], barrier=bars[0])
    with refused("TL302", "T.copy"):
        T.tma_copy(a[0:8, :], kernel.buffer("f", (8, 32), memory="local.fragment"), barrier=bars[0])
    with refused("TL208", "T.ClusterKernel"):
        T.tma_copy(a[0, 0], s[0, :, :], barrier=bars[0], cluster_mask=3)


@pytest.mark.parametrize("memory", ["global", "shared.dyn", "local.fragment", "local"])
def test_fill_and_clear_any_memory(kernel, memory):
    s = kernel.buffer("s", (8, 4), "float16", memory)
    T.fill(s, 1.5)
    T.clear(s[2:4, :])
    T.fill(s[3, 1], -7)
    values = [str(call["value"]) for call in kernel.calls]
    assert values == ["T.float16(1.5)", "T.float16(0.0)", "T.float16(-7.0)"]
    assert [box(call["target"])[1] for call in kernel.calls] == [["8", "4"], ["2", "4"], ["1", "1"]]


def test_fill_converts_to_the_type_of_the_tile(kernel, device):
    s, c = kernel.buffer("s", (8,), "int8", "shared.dyn"), kernel.buffer("c", (8,), "int32", "shared.dyn")
    T.fill(s, -7)
    T.fill(c, device("x"))
    T.fill(kernel.buffer("f", (8,), memory="local.fragment"), -T.infinity("float32"))
    assert str(kernel.calls[0]["value"]) == "T.int8(-7)"
    assert str(kernel.calls[1]["value"]) == 'T.Cast("int32", x)'
    assert str(kernel.calls[2]["value"]) == 'T.float32("-inf")'
    assert [warning.code for warning in kernel.warnings] == ["TL212"]


@pytest.mark.parametrize(
    ("dtype", "value", "code", "text"),
    [
        ("int8", 300, "TL135", "300"),
        ("uint8", -1, "TL135", "-1"),
        ("int32", 0.5, "TL135", "0.5"),
        ("int32", float("nan"), "TL135", "nan"),
        ("float32", None, "TL140", "None"),
        ("float32", "one", "TL140", "'one'"),
    ],
)
def test_values_that_a_tile_cannot_hold(kernel, refused, dtype, value, code, text):
    with refused(code, text):
        T.fill(kernel.buffer("s", (8,), dtype, "shared.dyn"), value)


def test_fill_of_a_number_is_refused(kernel, refused):
    with refused("TL004", "`3`"):
        T.fill(3, 0)


def test_transpose(kernel, refused):
    a, b = kernel.buffer("a", (8, 4), memory="shared.dyn"), kernel.buffer("b", (4, 8), memory="shared.dyn")
    T.transpose(a, b)
    assert (kernel.calls[0].name, box(kernel.calls[0]["target"])[1]) == ("transpose", ["4", "8"])
    with refused("TL204", "(8, 4)", "shape (4, 8)"):
        T.transpose(a, a)
    with refused("TL204", "two dimensions"):
        T.transpose(kernel.buffer("v", (8,)), b)


def test_an_element_that_is_an_origin_is_read_nowhere(kernel):
    a = kernel.buffer("a", (64,))
    value = a[8]
    assert isinstance(value, Value)
    T.copy(value, kernel.buffer("s", (8,), memory="shared.dyn"))
    assert len(kernel.statements) == 1


@pytest.mark.parametrize(
    ("source", "target", "advice"),
    [
        ((64, 64), (32, 32), "`x[0, 0]`"),
        ((32, 32), (64, 64), "`y[0, 0]`"),
        ((4, 32), (32,), "`x[0, 0]`"),
        ((32, 16), (16, 32), "make the shapes equal"),
        ((16, 32), (64,), "make the shapes equal"),
    ],
)
def test_an_origin_is_advised_only_in_a_buffer_that_holds_the_other(kernel, source, target, advice):
    with pytest.raises(Refusal) as refused:
        T.copy(kernel.buffer("x", source), kernel.buffer("y", target))
    assert refused.value.message.remedy.endswith(advice)


def test_a_tile_may_hang_over_the_edge_of_a_global_buffer(kernel):
    with pytest.raises(Refusal) as refused:
        T.copy(kernel.buffer("x", (20,)), kernel.buffer("s", (32,), memory="shared.dyn"))
    assert refused.value.message.remedy.endswith("`x[0]`")
