"""T.print, assertions, assumptions, layouts, safe values, swizzles."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_nb.language as T


def test_print(kernel, device, refused):
    x = device("x")
    T.print(x)
    T.print(x, msg="x is")
    T.print(kernel.buffer("a", (8,)))
    T.print(kernel.buffer("a", (8, 8))[0, 2:4], "part")
    T.print("here")
    T.print(msg="there")
    T.print(3)
    said = [(call["message"], call["value"] is not None) for call in kernel.calls]
    assert said == [
        ("x", True),
        ("x is", True),
        ("a", True),
        ("part", True),
        ("here", False),
        ("there", False),
        ("3", True),
    ]
    for wrong in (
        lambda: T.print(),
        lambda: T.print([1]),
        lambda: T.print(x, msg=3),
        lambda: T.print(T.alloc_barrier(1)),
    ):
        with refused("TL004"):
            wrong()


def test_assertions(kernel, device, refused):
    n = device("n", "int32")
    T.device_assert(n > 3, "n is too small")
    T.device_assert(n)
    T.Assert(True, "never")
    conditions = [(str(call["condition"]), call["message"]) for call in kernel.calls]
    assert conditions == [("n > 3", "n is too small"), ("n != 0", None), ("T.bool(True)", "never")]
    with refused("TL004", "text"):
        T.device_assert(n > 3, 7)
    with refused("TL004", "`a`"):
        T.device_assert(kernel.buffer("a", (8,)))
    with refused("TL004", "needs `condition`"):
        T.device_assert()


def test_assume(kernel, device):
    T.assume(device("n", "int32") % 8 == 0)
    T.assume()
    assert [call.name for call in kernel.calls] == ["assume"]


def test_evaluate_accepts_what_has_been_done(kernel):
    T.evaluate(T.atomic_add(kernel.buffer("a", (8,))[0], 1.0))
    assert [call.name for call in kernel.calls] == ["atomic_element"]


def test_safe_values(kernel, refused):
    a = kernel.buffer("a", (50,), "float16")
    T.annotate_safe_value({a: -3.5})
    assert (kernel.calls[0].name, str(kernel.calls[0]["value"])) == ("annotate_safe_value", "T.float16(-3.5)")
    with refused("TL004", "global memory"):
        T.annotate_safe_value({kernel.buffer("s", (8,), memory="shared.dyn"): 0})
    with refused("TL004", "dict"):
        T.annotate_safe_value(a)
    with refused("TL004", "keys"):
        T.annotate_safe_value({"a": 0})
    with refused("TL140"):
        T.annotate_safe_value({a: None})


def test_swizzle_of_blocks(kernel, refused):
    T.use_swizzle(panel_size=10)
    T.use_swizzle(4, "column", False)
    first, second = kernel.calls
    assert (first.integer("panel_size"), first["order"], first.boolean("enable")) == (10, "row", True)
    assert (second["order"], second.boolean("enable")) == ("column", False)
    with refused("TL004", '"row"'):
        T.use_swizzle(10, order="rows")


def test_layouts_are_kept_by_key(kernel, refused):
    tile = kernel.buffer("tile", (8, 64), "float16", "shared.dyn")
    T.annotate_layout({tile: T.make_swizzled_layout(tile)})
    T.annotate_layout({tile: lambda i, j: [j, i]})
    assert [call["layout"] for call in kernel.calls] == ["layout0", "layout1"]
    assert kernel.layouts["layout1"].table[2, 3] == 3 * 8 + 2
    with refused("TL204", "(4, 64)", "(8, 64)"):
        T.annotate_layout({tile: T.Layout((4, 64), lambda i, j: i)})
    with refused("TL004", "T.Fragment"):
        T.annotate_layout({kernel.buffer("f", (8, 64), memory="local.fragment"): lambda i, j: i})
    with refused("TL004", "no tile"):
        T.annotate_layout({kernel.buffer("g", (8, 64)): lambda i, j: i})
    with refused("TL004", "layout of"):
        T.annotate_layout({tile: 3})


@pytest.mark.parametrize("make", ["full_bank", "half_bank", "quarter_bank"])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((16, 64), "float16"), ((32, 32), "float32"), ((16, 256), "int8"), ((8, 128), "float16")]
)
def test_swizzles_are_one_to_one_within_each_row(kernel, make, shape, dtype):
    tile = kernel.buffer("tile", shape, dtype, "shared.dyn")
    layout = getattr(T, f"make_{make}_swizzled_layout")(tile)
    places = np.array([[layout.forward(i, j) for j in range(shape[1])] for i in range(shape[0])])
    assert (places[..., 0] == np.arange(shape[0])[:, None]).all()
    assert (np.sort(places[..., 1], axis=1) == np.arange(shape[1])).all()
    assert (places[0, :, 1] == np.arange(shape[1])).all()


def test_a_128_byte_swizzle_spreads_a_column_over_the_banks(kernel):
    layout = T.make_swizzled_layout(kernel.buffer("tile", (8, 64), "float16", "shared.dyn"))
    chunks = [layout.forward(row, 0)[1] // 8 for row in range(8)]
    assert chunks == list(range(8))


def test_layouts_work_on_device_values(device):
    layout = T.Layout((8, 8), lambda i, j: i * 8 + j)
    assert str(layout.forward(device("i", "int32"), 2)[0]) == "i * 8 + 2"
    assert layout.get_input_shape() == [8, 8]


def test_layouts_know_their_box_and_their_equals(refused):
    padded = T.Layout((4, 8), lambda i, j: i * 10 + j)
    assert (padded.get_input_shape(), padded.get_output_shape()) == ([4, 8], [38])
    turned = T.Layout((4, 8), lambda i, j: [j, i])
    assert turned.get_output_shape() == [8, 4]
    assert padded.is_equal(T.Layout((4, 8), lambda i, j: j + 5 * i + i * 5))
    assert not padded.is_equal(turned) and not padded.is_equal(T.Layout((4, 4), lambda i, j: i * 10 + j))
    with refused("TL004", "gives a float32 value"):
        T.Layout((4,), lambda i: i / 2.0).get_output_shape()


def places(layout):
    """What a layout gives for every element, by calling it with numbers."""
    return np.stack([np.array([layout(*index) for index in np.ndindex(*layout.shape)])]).reshape(*layout.shape, -1)


SWIZZLED = T.Layout((8, 64), lambda i, j: [i, ((j // 8) ^ i) * 8 + j % 8])
LAYOUTS = {
    "turned": T.Layout((4, 6), lambda i, j: [j, i]),
    "in blocks": T.Layout((6, 8), lambda i, j: [i // 3, j // 4, i % 3, j % 4]),
    "one number": T.Layout((3, 5), lambda i, j: j * 3 + i),
    "backwards": T.Layout((7,), lambda i: 6 - i),
    "swizzled": SWIZZLED,
    "bits": T.Layout((16,), lambda i: (i & 1) * 8 + (i >> 1 & 1) * 4 + (i >> 2 & 1) * 2 + (i >> 3)),
    "one element": T.Layout((1, 1), lambda i, j: [j, i]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_inverse_of_a_layout_finds_each_element_at_its_place(name, device):
    layout = LAYOUTS[name]
    inverse = layout.inverse()
    assert inverse.get_input_shape() == layout.get_output_shape()
    assert inverse.get_output_shape() == layout.get_input_shape()
    for index in np.ndindex(*layout.shape):
        assert inverse(*layout(*index)) == index
    assert inverse.inverse().is_equal(layout)
    for expression in inverse(*[device(f"p{axis}", "int32") for axis in range(len(inverse.shape))]):
        assert isinstance(expression, int) or expression.dtype == "int32"


def test_inverses_that_are_none_are_refused(refused):
    with refused("TL004", "places that no element has"):
        T.Layout((4, 8), lambda i, j: i * 10 + j).inverse()
    with refused("TL004", "places that no element has"):
        T.Layout((4,), lambda i: i - 1).inverse()
    with refused("TL004", "two elements in one place"):
        T.Layout((4, 2), lambda i, j: (i + j) % 5).inverse()
    with refused("TL004", "two elements in one place"):
        T.Layout((4,), lambda i: i * i % 4 * 3).inverse()
    with refused("TL004", "no digits or bits"):
        T.Layout((7,), lambda i: i * 3 % 7).inverse()
    with refused("TL004", "at most"):
        T.Layout((4096, 4096), lambda i, j: i * 4096 + j).inverse()


def test_layouts_of_several_tiles_keep_their_leading_indices(refused):
    both = SWIZZLED.expand([2, 3])
    assert both.shape == (2, 3, 8, 64) and both(1, 2, 3, 9) == (1, 2, *SWIZZLED(3, 9))
    assert SWIZZLED.expand(4)(3, 1, 8) == (3, *SWIZZLED(1, 8)) and SWIZZLED.expand([]) is SWIZZLED
    with refused("TL004", "shape"):
        SWIZZLED.expand([0])
    with refused("TL302", "who holds the new elements"):
        T.Fragment((8,), lambda i: (i, 0)).expand([2])


def test_a_layout_is_repeated_along_a_dimension(refused):
    wide = SWIZZLED.repeat(-1, 2)
    assert wide.shape == (8, 128) and wide(3, 70) == (1, *SWIZZLED(3, 6)) and wide(3, 6) == (0, *SWIZZLED(3, 6))
    assert SWIZZLED.repeat(0, 3).get_output_shape() == [3, 8, 64] and SWIZZLED.repeat(0, 1) is SWIZZLED
    for dim, factor in ((2, 2), (-3, 2), (0, 0)):
        with refused("TL004", "Layout.repeat"):
            SWIZZLED.repeat(dim, factor)


def test_a_layout_in_another_shape_has_the_same_elements_in_the_same_places(refused):
    flat = SWIZZLED.reshape([512])
    np.testing.assert_array_equal(places(flat), places(SWIZZLED).reshape(512, 2))
    np.testing.assert_array_equal(places(SWIZZLED.reshape((2, 4, 64))), places(SWIZZLED).reshape(2, 4, 64, 2))
    held = T.Fragment((8, 4), lambda i, j: (i * 2 + j // 2, j % 2)).replicate(2).reshape([4, 8])
    assert held.place(1, 3, copy=1) == (5 + 16, (1,)) and held.get_thread_size() == 32
    with refused("TL204", "(8, 64) to (8, 32)"):
        SWIZZLED.reshape([8, 32])
    with refused("TL302", "another width"):
        SWIZZLED.reshape([8, 32], 16, 32)


def test_the_inverse_of_a_fragment_finds_the_element_and_its_copy(refused):
    held = T.Fragment((16, 4), lambda i, j: (i * 2 + j // 2, j % 2)).replicate(2)
    inverse = held.inverse()
    assert inverse.shape == (2, 64)
    for i, j, copy in np.ndindex(16, 4, 2):
        thread, registers = held.place(i, j, copy=copy)
        assert inverse(*registers, thread) == (i, j, copy)
    with refused("TL004", "says no registers"):
        T.Fragment((8,), forward_thread_fn=lambda i: i).inverse()


def test_copies_that_the_same_threads_hold_are_one(refused):
    pairs = T.Fragment((4,), lambda i, r: (i + 4 * (r // 2), 0), replicate=8)
    once = pairs.condense_rep_var()
    assert once.copies == 4 and [once.place(3, copy=copy)[0] for copy in range(4)] == [3, 7, 11, 15]
    same = T.Fragment((4,), lambda i, r: (i, 0), replicate=4).condense_rep_var()
    assert same.copies == 1 and same.place(2) == (2, (0,))
    different = T.Fragment((4,), lambda i: (i, 0)).replicate(2)
    assert different.condense_rep_var() is different
    assert not different.is_equal(same) and same.is_equal(T.Fragment((4,), lambda i: (i, 0)))
    assert not same.is_equal(T.Fragment((4,), forward_thread_fn=lambda i, r: i * (1 - r), replicate=2))


def test_fragments_say_their_registers_as_upstream_does(refused):
    held = T.Fragment((8, 4), lambda i, j: (i, j))
    assert held.map_forward_index([3, 2]) == held(3, 2) == (2,) and held.get_output_shape() == [4]
    with refused("TL004", "says no registers"):
        T.Fragment((8,), forward_thread_fn=lambda i: i).map_forward_index([1])


@pytest.mark.parametrize("name", ["get_forward_vars", "get_forward_index", "get_linearized_forward_index"])
def test_expressions_of_the_compiler_are_refused(name, refused):
    with refused("TL302", "call the layout with indices"):
        getattr(SWIZZLED, name)()


def test_the_other_expressions_of_the_compiler_are_refused(refused):
    held = T.Fragment((8,), lambda i: (i, 0))
    for ask in (lambda: SWIZZLED.index, lambda: SWIZZLED.map_region_bounds([]), lambda: held.thread):
        with refused("TL302", "call"):
            ask()


def test_fragments_are_repeated_over_registers_and_threads(refused):
    base = T.Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))
    assert base.get_thread_size() == 32
    tile = base.repeat([2, 1]).repeat([1, 4]).repeat([2, 1], repeat_on_thread=True)
    assert tile.shape == (32, 32) and tile.get_thread_size() == 64
    assert tile.place(0, 1) == (0, (1,)) and tile.place(9, 1) == (4, (3,))
    assert tile.place(9, 17) == (4, (11,)) and tile.place(25, 17) == (36, (11,))
    last_first, first_first = base.repeat([2, 2]), base.repeat([2, 2], lower_dim_first=False)
    assert (last_first.place(8, 0), last_first.place(0, 8)) == ((0, (4,)), (0, (2,)))
    assert (first_first.place(8, 0), first_first.place(0, 8)) == ((0, (2,)), (0, (4,)))
    with refused("TL004", "2 dimension(s) with 1 repetition(s)"):
        base.repeat([2])


def test_fragments_are_held_in_copies():
    row = T.Fragment((16,), forward_thread_fn=lambda i: i // 2, forward_index_fn=lambda i: i % 2).replicate(4)
    assert [row.place(5, copy=copy) for copy in range(4)] == [(2 + 8 * copy, (1,)) for copy in range(4)]
    assert row.map_forward_thread([5]) == 2 and row.get_thread_size() == 32
    again = row.replicate(2)
    assert again.place(5, copy=7) == (2 + 8 * 3 + 32, (1,)) and again.copies == 8
    backwards = T.Fragment((4,), lambda i, r: (i + 4 * (1 - r), 0), replicate=2).replicate(2)
    assert backwards.get_thread_size() == 1 + max(backwards.place(3, copy=copy)[0] for copy in range(4)) == 16


def test_fragments_say_thread_and_register(refused):
    pair = T.Fragment((8, 4), forward_fn=lambda i, j: (i * 4 + j, 0))
    assert pair.place(2, 3) == (11, (0,))
    split = T.Fragment((8,), forward_thread_fn=lambda i: i // 2, forward_index_fn=lambda i: i % 2)
    assert split.place(5) == (2, (1,))
    copies = T.Fragment([8], forward_thread_fn=lambda i, r: i + 8 * r, replicate=4)
    assert copies.place(3, copy=2) == (19, ())
    with refused("TL004", "forward_thread_fn"):
        T.Fragment((8,))
    with refused("TL004", "one index per dimension"):
        T.Layout((8, 8), lambda i: i)
    with refused("TL004", "a function"):
        T.Layout((8,), 3)
