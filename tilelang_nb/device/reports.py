"""What a kernel says while it runs: `T.print` and `T.device_assert`, through a buffer that the host reads afterwards.

The buffer holds 32-bit words: a header, then records in the order in which threads came.  The host allocates it, clears
the first `HEADER` words, writes the number of words to word 1, and gives its address for the parameter `report` of the
launch; after the launch `Report.read` makes text and diagnostics of the words.

    header   [0] words taken by records  [1] words of the buffer  [2, 3] unused
    record   [0] words of the record  [1] site  [2] order in the thread [3] block [4] thread [5, 6] value [7] indices

Records that found no room are counted in word 0 alone.  A thread whose assertion fails ends there; in kernels where
threads wait for a number of arrivals (named barriers, mbarriers) it goes on, since the others would wait for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import tirx as tir
from tvm.ir import PointerType, PrimType

from tilelang_nb.lowering.rewrite import dtype_of, map_children, sequence, statements, walk
from tilelang_nb.lowering.spans import source_span
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Diagnostic, Note
from tilelang_nb.source.text import Span

HEADER = 4
RECORD = 7  # words before the indices
PRINT_LIMIT = 10_000  # lines; as on the simulated device
PARAMETER = "tl_report"
WAITING = ("tirx.ptx.bar_", "tirx.ptx.barrier_", "tirx.ptx.mbarrier_", "tirx.cuda.mbarrier_wait")


@dataclass(frozen=True)
class Site:
    """A place that writes records.  dtype: of the printed value; "" for a text alone."""

    kind: str  # "print" or "assert"
    message: str
    description: str
    dtype: str
    span: Span | None


@dataclass(frozen=True)
class Content:
    """What a report says.  failures: TL404, one per assertion.  lost: records that found no room."""

    printed: tuple[str, ...]
    failures: tuple[Diagnostic, ...]
    lost: int


@dataclass(frozen=True)
class Report:
    """How to read the report of a launch: what its sites say."""

    sites: tuple[Site, ...]

    def read(self, words: np.ndarray, grid: Sequence[int], block: Sequence[int], room: int = PRINT_LIMIT) -> Content:
        """The lines and failed assertions in the words (uint32) that a launch of this size left behind.

        Lines come in the order in which each thread printed, of equals by block and thread.  room: lines at most.
        """
        records, lost = self._records(words)
        printed = [record for record in records if self.sites[record[1]].kind == "print"]
        printed.sort(key=lambda record: (record[2], record[3], record[4]))
        lines = [self._line(record, grid, block) for record in printed[:room]]
        if len(printed) > room or lost:
            lines.append(f"... lines after the first {len(lines)} are left out")
        failed = [record for record in records if self.sites[record[1]].kind == "assert"]
        return Content(tuple(lines), self._failures(failed, grid, block), lost)

    def _records(self, words: np.ndarray) -> tuple[list[tuple[int, ...]], int]:
        taken = min(int(words[0]), len(words) - HEADER)
        records: list[tuple[int, ...]] = []
        at, end = HEADER, HEADER + taken
        while at + RECORD <= end:
            size = int(words[at])
            if size < RECORD or at + size > end:
                break  # the record that found no room
            records.append(tuple(int(word) for word in words[at : at + size]))
            at += size
        return records, int(words[0]) > len(words) - HEADER

    def _line(self, record: tuple[int, ...], grid: Sequence[int], block: Sequence[int]) -> str:
        site = self.sites[record[1]]
        where = f"BLOCK={_coordinates(record[3], grid)}, THREAD={_coordinates(record[4], block)}"
        text = f"{site.message} {where}" if site.message else where
        if not site.dtype:
            return text
        value = _value(record[5] | record[6] << 32, site.dtype)
        indices = [int(np.uint32(word).astype(np.int32)) for word in record[RECORD:]]
        name = site.description.format(*indices) if indices else site.description
        return f"{text}: {name + ' = ' if name else ''}{value}"

    def _failures(
        self, failed: list[tuple[int, ...]], grid: Sequence[int], block: Sequence[int]
    ) -> tuple[Diagnostic, ...]:
        by_site: dict[int, list[tuple[int, ...]]] = {}
        for record in failed:
            by_site.setdefault(record[1], []).append(record)
        found = []
        for number, records in sorted(by_site.items()):
            site = self.sites[number]
            first = min(records, key=lambda record: (record[3], record[4]))
            who = f"thread {_coordinates(first[4], block)} of block {_coordinates(first[3], grid)}"
            problem = f"assertion failed: {site.message or 'no message'} ({who})"
            remedy = "the launch stopped here: check the arguments, or the condition"
            notes = (Note(f"{len(records)} times in this launch"),) if len(records) > 1 else ()
            found.append(say.DeviceAssertFailed(problem=problem, remedy=remedy).at(site.span, notes))
        return tuple(found)


def _coordinates(number: int, extents: Sequence[int]) -> tuple[int, int, int]:
    x, y = extents[0], extents[1]
    return number % x, number // x % y, number // (x * y)


def _value(bits: int, dtype: str) -> Any:
    """The value that travelled as 64 bits: a double for floats, else an integer."""
    if dtype == "bool":
        return bool(bits)
    if "float" in dtype:
        double = np.uint64(bits).view(np.float64)
        kind = getattr(np, dtype, None) or getattr(ml_dtypes, dtype)
        with np.errstate(over="ignore"):
            return kind(double)
    return bits - (1 << 64) if dtype[0] == "i" and bits >> 63 else bits


@dataclass
class ReportWriter:
    """Turns `tl_print` and `tl_device_assert` of one launch into records.

    parameter: the variable of the report's address; it is a parameter of the kernel if `sites` is not empty.
    """

    parameter: Any = field(default_factory=lambda: tir.Var(PARAMETER, PointerType(PrimType("uint32"))))
    sites: list[Site] = field(default_factory=list)
    stops: bool = True

    def rewrite(self, body: Any) -> Any:
        """The body with records."""
        names: list[str] = []

        def visit(call: Any) -> None:
            name = getattr(call.op, "name", "")
            names.append(call.args[0].value if name == "tirx.call_extern" else name)

        walk(body, (tvm.ir.Call, visit))
        if not {"tl_print", "tl_device_assert"}.intersection(names):
            return body
        self.stops = not any(name.startswith(WAITING) for name in names)
        self.order = tir.decl_buffer((1,), "uint32", "printed_lines", scope="local", layout=None)
        body = self._statement(body)
        zero = tir.BufferStore(self.order, tir.const(0, "uint32"), [0])
        return _inside_launch(body, [tir.AllocBuffer(self.order), zero])

    def read(self) -> Report | None:
        """How to read what the launch writes; None if it writes nothing."""
        return Report(tuple(self.sites)) if self.sites else None

    def _statement(self, node: Any) -> Any:
        if isinstance(node, tir.Evaluate) and isinstance(node.value, tvm.ir.Call):
            call = node.value
            if getattr(call.op, "name", "") == "tirx.call_extern":
                if call.args[0].value == "tl_print":
                    return self._print(list(call.args[1:]), node.span)
                if call.args[0].value == "tl_device_assert":
                    return self._assertion(call.args[1], call.args[2].value, node.span)
            return node
        return map_children(node, self._statement)

    def _record(self, site: Site, value: Any, indices: list[Any], span: Any) -> list[Any]:
        self.sites.append(site)
        order = tir.BufferLoad(self.order, [0])
        arguments = [self.parameter, tir.const(len(self.sites) - 1, "int32"), order, value, *indices]
        write = tir.Evaluate(tir.call_extern("void", "tl_report_write", *arguments), span)
        return [write, tir.BufferStore(self.order, order + tir.const(1, "uint32"), [0], span)]

    def _print(self, arguments: list[Any], span: Any) -> Any:
        """message[, value, description, index...]"""
        message = arguments[0].value
        value = arguments[1] if len(arguments) > 1 else tir.const(0, "int32")
        description = arguments[2].value if len(arguments) > 2 else ""
        dtype = dtype_of(value) if len(arguments) > 1 else ""
        site = Site("print", message, description, dtype, source_span(span))
        return sequence(self._record(site, value, [tir.Cast("int32", i) for i in arguments[3:]], span))

    def _assertion(self, condition: Any, message: str, span: Any) -> Any:
        site = Site("assert", message, "", "", source_span(span))
        failing = self._record(site, tir.const(0, "int32"), [], span)
        if self.stops:
            failing.append(tir.Evaluate(tir.call_intrin("void", "tirx.thread_return"), span))
        return tir.IfThenElse(tir.Not(condition), sequence(failing), None, span)


def _inside_launch(body: Any, first: list[Any]) -> Any:
    """Statements at the start of what the threads execute."""
    if isinstance(body, tir.AttrStmt) and body.attr_key == "thread_extent":
        inner = _inside_launch(body.body, first)
        return tir.AttrStmt(body.node, body.attr_key, body.value, inner, body.span)
    return tir.SeqStmt([*first, *statements(body)])
