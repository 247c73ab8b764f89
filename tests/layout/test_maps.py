"""Maps of tiles as a user asks for them, and their pictures."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from tilelang_nb.layout.fragment import blocked
from tilelang_nb.layout.maps import FragmentMap, Layouts, SharedMap
from tilelang_nb.layout.matrix import Instruction, WarpGrid, accumulator
from tilelang_nb.layout.swizzle import swizzle_for

MMA = Instruction(16, 16, 2, "m16n8k16.row.col.f32.f16.f16.f32")
ACCUMULATOR = FragmentMap("c", "float32", accumulator((32, 16), WarpGrid(2, 1, 64), MMA), 3)
TILE = SharedMap("s", "float16", (16, 64), 2, 512, 4096, 2, swizzle_for(64, 2), line=4)


def test_an_accumulator_lies_as_the_instruction_set_says():
    for row, column in np.ndindex(32, 16):
        lane = row % 8 * 4 + column % 8 // 2
        register = column // 8 * 4 + row % 16 // 8 * 2 + column % 2
        assert ACCUMULATOR.threads(row, column) == (row // 16 * 32 + lane,)
        assert ACCUMULATOR.register(row, column) == register
        assert ACCUMULATOR.held_by(row // 16 * 32 + lane)[register] == (row, column)


def test_copies_of_an_element_are_all_named():
    rows = FragmentMap("m", "float32", ACCUMULATOR.layout.project([0]))
    assert rows.threads(9) == (4, 5, 6, 7)
    assert rows.threads(-1) == (60, 61, 62, 63)
    assert {row for thread in rows.threads(9) for row in rows.held_by(thread)} == {(1,), (9,)}


def test_a_padded_tile_says_only_what_there_is():
    padded = FragmentMap("p", "float32", blocked((5, 6), 32))
    held = [place for thread in range(32) for place in padded.held_by(thread)]
    assert sorted(held) == list(np.ndindex(5, 6))


def test_a_swizzled_tile_lies_in_the_xor_of_row_and_chunk():
    for version, row, column in np.ndindex(2, 16, 64):
        place = row * 64 + (column // 8 ^ row % 8) * 8 + column % 8
        byte = 512 + version * 2048 + place * 2
        assert TILE.address(row, column, version=version) == byte
        assert TILE.bank(row, column, version=version) == byte // 4 % 32
    assert {tuple(sorted(TILE.bank_table[first : first + 8, 0])) for first in (0, 8)} == {(0, 4, 8, 12, 16, 20, 24, 28)}


def test_boxes_of_columns_lie_one_after_the_other():
    boxes = SharedMap("s", "float16", (16, 128), 2, 0, 4096, 1, swizzle_for(64, 2), 64)
    for row, column in np.ndindex(16, 128):
        place = column // 64 * 1024 + row * 64 + (column % 64 // 8 ^ row % 8) * 8 + column % 8
        assert boxes.address(row, column) == place * 2
    plain = SharedMap("s", "float16", (2, 16, 128), 2, 0, 8192, piece=64)
    assert plain.address(1, 3, 70) == (2048 + 1024 + 3 * 64 + 6) * 2
    assert "2 boxes of 64 columns" in boxes.summary


def test_an_order_by_hand_is_looked_up():
    by_hand = SharedMap("s", "float32", (4, 4), 4, 0, 76, places=np.arange(4)[:, None] * 5 + np.arange(4))
    assert [by_hand.address(row, 0) for row in range(4)] == [0, 20, 40, 60]


@pytest.mark.parametrize("index", [(32, 0), (0, 16), (-33, 0), (0,), (0, 0, 0)])
def test_an_index_outside_is_an_index_error(index):
    with pytest.raises(IndexError, match="c"):
        ACCUMULATOR.threads(*index)
    with pytest.raises(IndexError, match="c"):
        ACCUMULATOR.register(*index)
    with pytest.raises(IndexError):
        TILE.address(*(10 * i for i in index))


def test_what_is_not_there_is_an_index_error():
    with pytest.raises(IndexError, match="thread 64 of 64"):
        ACCUMULATOR.held_by(64)
    with pytest.raises(IndexError, match="version 2 of 2"):
        TILE.address(0, 0, version=2)


def test_pictures_in_text(golden):
    rows = FragmentMap("m", "float32", ACCUMULATOR.layout.project([0]), note="a note")
    cube = SharedMap("t", "float32", (2, 20, 6), 4, 0, 960)
    pictures = [ACCUMULATOR, rows, TILE, cube, FragmentMap("x", "int32", blocked((), 32))]
    golden("\n\n".join(map(str, pictures)) + "\n", "layout/pictures.txt")


class Tags(HTMLParser):
    """The open elements and the texts of a piece of HTML."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        assert all(name == "style" for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "td":
            self.cells.append(data)


@pytest.mark.parametrize("one", [ACCUMULATOR, TILE], ids=["fragment", "shared"])
def test_pictures_in_html_show_the_same_with_inline_styles_only(one):
    html = one._repr_html_()
    tags = Tags(html)
    assert tags.open == [] and tags.seen == {"div", "b", "table", "tr", "th", "td"}
    shown = [cell for line in str(one).splitlines()[3:] for cell in line.split()[1:]]
    assert tags.cells == shown


def test_names_in_html_are_escaped():
    assert "<b>x&lt;y" in FragmentMap("x<y", "float32", ACCUMULATOR.layout)._repr_html_()


def test_layouts_are_a_mapping_by_name():
    again = FragmentMap("c", "float32", ACCUMULATOR.layout, 9)
    layouts = Layouts((ACCUMULATOR, TILE, again))
    assert list(layouts) == ["c", "s", "c@9"] and len(layouts) == 3
    assert layouts["c@9"] is again and layouts["c"] is ACCUMULATOR
    assert str(layouts).splitlines() == [ACCUMULATOR.summary, TILE.summary, again.summary]
    with pytest.raises(KeyError, match="no tile d: there are c, s, c@9"):
        layouts["d"]
