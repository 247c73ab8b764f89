"""Records of the last reads of each cell of a memory, by who reads: strands, or what they do asynchronously.

The first few readers have a table of all cells each.  Where blocks wait for each other each is a strand of its own, and
there are thousands: theirs are rows of pages, which only those have who read there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

FEW = 8  # readers with tables of their own
PAGE_BITS = 8
PAGE = 1 << PAGE_BITS
Array = Any


class Page:
    """rows: (readers, cells of the page), of which the first ones are in use."""

    def __init__(self) -> None:
        self.readers: dict[int, int] = {}
        self.rows = np.zeros((2, PAGE), np.int64)

    def row(self, reader: int) -> int:
        row = self.readers.setdefault(reader, len(self.readers))
        if row >= len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        return row


class ReadRecords:
    """Readers have numbers; those of asynchronous reads are negative."""

    def __init__(self, cells: int):
        self._cells = cells
        self._tables: dict[int, Array] = {}
        self._pages: dict[int, Page] = {}

    def of(self, reader: int, cells: Array) -> Array:
        """The records of one reader."""
        table = self._table(reader)
        if table is not None:
            return table[cells]
        found = np.zeros(len(cells), np.int64)
        for page, at in self._split(cells):
            if page in self._pages and reader in self._pages[page].readers:
                found[at] = self._pages[page].rows[self._pages[page].row(reader), cells[at] & PAGE - 1]
        return found

    def put(self, reader: int, cells: Array, records: Array) -> None:
        table = self._table(reader)
        if table is not None:
            table[cells] = records
            return
        for page, at in self._split(cells):
            held = self._pages.setdefault(page, Page())
            row = held.row(reader)
            held.rows[row, cells[at] & PAGE - 1] = records[at]

    def _table(self, reader: int) -> Array | None:
        if reader not in self._tables and len(self._tables) < FEW:
            self._tables[reader] = np.zeros(self._cells, np.int64)
        return self._tables.get(reader)

    @staticmethod
    def _split(cells: Array) -> Iterator[tuple[int, Array]]:
        """(page, positions of the cells that lie in it)"""
        pages = cells >> PAGE_BITS
        if len(pages) and (pages == pages[0]).all():
            yield int(pages[0]), slice(None)
            return
        for page in np.unique(pages).tolist():
            yield page, np.flatnonzero(pages == page)

    def earlier(self, cells: Array, ordinary: bool = False) -> Iterator[tuple[Array, Array | slice]]:
        """(records, positions of their cells), of all readers.  ordinary: without asynchronous ones."""
        for reader, table in self._tables.items():
            if reader > 0 or not ordinary:
                yield table[cells], slice(None)
        if not self._pages:
            return
        for page, at in self._split(cells):
            held = self._pages.get(page)
            if held is None:
                continue
            rows = [row for reader, row in held.readers.items() if reader > 0 or not ordinary]
            if len(rows) == len(held.readers):
                records = held.rows[: len(rows), cells[at] & PAGE - 1]
            else:
                records = held.rows[np.array(rows, np.int64)[:, None], cells[at] & PAGE - 1]
            reader_of, column = np.nonzero(records)
            if len(column):
                yield records[reader_of, column], np.arange(len(cells))[at][column]

    def forget(self, cells: Array) -> None:
        """A write has been compared with the reads of some cells: whoever comes after it comes after them.

        Only of pages, whose many records would be compared again and again.
        """
        if self._pages:
            for page, at in self._split(cells):
                if page in self._pages:
                    self._pages[page].rows[:, cells[at] & PAGE - 1] = 0

    def arrays(self) -> Iterator[Array]:
        """All of them."""
        yield from self._tables.values()
        for page in self._pages.values():
            yield page.rows
