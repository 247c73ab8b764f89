"""What of a thread lies in memory instead of in registers, as warnings: values that the assembler spilled (TL214), and
arrays that are indexed by what is known only at run time (TL216).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.lowering.nests import is_part
from tilelang_nb.lowering.rewrite import each_statement, element_bytes
from tilelang_nb.lowering.spans import line_of
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Message

from .private_arrays import RUN_TIME, PrivateArray, private_arrays
from .resources import read_log

MOST_THREADS, MOST_IN_ROLES = 1024, 256  # of a block; of the text, where other threads copy
REGISTER_FILE, OF_A_THREAD, OF_ROLES = 65536, 255, 240  # registers: of a block, of a thread, and with its share
ALLOCATED, GRANULE = 128, 8  # threads that get registers together, and registers that a thread gets together
WARP, WARP_GROUP = 32, 128  # threads
REGISTER = 4  # bytes
OTHERS = 48  # of a thread, for addresses and what is computed
LARGE = 32  # registers of an array that is worth making smaller
_TOGETHER = re.compile(r"\.minnctapersm\s+(\d+)")
SHARES = "setmaxnreg"
_ENTRY = re.compile(r"\.entry\s+(\w+)")
_ACCESS = re.compile(r"\b(?:ld|st)\.local\b")
# Functions that need memory of their own: reductions of large angles, formatted output.
_OWN_MEMORY = re.compile(r"\b(?:sin|cos|tan|sincos|lgamma|tgamma|j[01n]|y[01n])f?\(|printf\(|tl_report")


def spills(program: Any) -> Iterator[tuple[Message, str]]:
    """(TL214, launch) of a DeviceProgram that is compiled."""
    for name, figures in read_log(program.log).items():
        stores, loads = figures.get("spill_stores", 0), figures.get("spill_loads", 0)
        if stores or loads:
            cause = _cause(program, name, figures.get("registers", 0))
            yield say.SpilledRegisters(cause, f"{stores:,}", f"{loads:,}", _fewer_registers(program, name)), name


def _cause(program: Any, name: str, used: int) -> str:
    """Where the assembler finds no place for what is alive at once, it may do with few registers, and memory."""
    threads = _launch(program, name)[1].threads
    text = _text(program.ptx, name)
    if threads is None or SHARES in text:  # parts have shares of their own
        return "a thread has too few registers"
    together = _TOGETHER.search(text)
    beside = int(together[1]) if together else 1  # blocks on a multiprocessor at once
    limit = min(OF_A_THREAD, REGISTER_FILE // beside // -(-threads // ALLOCATED) // ALLOCATED)
    limit -= limit % GRANULE if limit < OF_A_THREAD else 0
    if used >= limit - GRANULE:
        return "a thread has too few registers"
    if sum(one.registers for one in _arrays(program, name)) < limit:
        return f"the assembler keeps a thread to {used} registers, so that more blocks run at once"
    return f"a thread keeps more values at once than it has registers, which are {limit}"


def _text(ptx: str, name: str) -> str:
    """The PTX of a launch."""
    parts = re.split(r"(?=\.entry\s)", ptx)
    return next((part for part in parts if (entry := _ENTRY.match(part)) and entry[1] == name), "")


def _fewer_registers(program: Any, name: str) -> str:
    """What the user can change: the largest arrays of the text, and the threads that share them."""
    arrays = [one for one in _arrays(program, name) if one.name in _names(program) and one.registers >= LARGE]
    if not arrays:
        return "make the tiles in registers smaller, or divide them among more `threads`"
    arrays = sorted(arrays, key=lambda one: -one.registers)[:2]
    names = " and ".join(f"`{one.name}`" for one in arrays)
    smaller = f"make the tiles of {names} smaller, such as with half of their columns"
    if _has_parts(program):  # which threads do what is in the text
        return f"{smaller}, or give their part of `T.ws` more registers with `T.set_max_nreg`"
    threads, uneven = _threads(program, name, arrays)
    if threads is None:
        return smaller
    why = f", as {uneven} warps do not divide {names} evenly" if uneven else ""
    return f"launch it with `threads={threads}`{why}, or {smaller}"


def _has_parts(program: Any) -> bool:
    """Does the text divide its warp groups by `T.ws`?"""
    statements = (one for function in program.tile.functions.values() for one in each_statement(function.body))
    return any(map(is_part, statements))


def _threads(program: Any, name: str, arrays: list[PrivateArray]) -> tuple[int | None, int]:
    """(threads of the text among which arrays fit, its warps if these do not divide them evenly); None where no launch
    has so many.
    """
    at, launch = _launch(program, name)
    if launch.threads is None:
        return None, 0
    added = program.added_threads[at] if program.added_threads else 0
    now, most_threads = launch.threads - added, MOST_IN_ROLES if added else MOST_THREADS
    needed = sum(one.registers for one in arrays) * now
    candidates, uneven = [now * 2**power for power in range(1, 10)], 0
    elements = sum(_names(program)[one.name] for one in arrays)
    if now % WARP_GROUP and needed > elements:  # some threads have more of the tiles than their share
        needed = elements
        sizes = [WARP_GROUP * 2**power for power in range(4)]
        candidates = [*(one for one in sizes if one > now), *reversed([one for one in sizes if one < now])]
        uneven = now // WARP
    for threads in candidates:
        most = OF_ROLES if added else min(OF_A_THREAD, REGISTER_FILE // threads)
        if threads <= most_threads and needed <= (most - OTHERS) * threads:
            return threads, uneven
    return None, 0


def _launch(program: Any, name: str) -> tuple[int, Any]:
    """A launch and its place among those of the kernel."""
    return next((at, one) for at, one in enumerate(program.launches) if one.name == name)


def local_memory(program: Any) -> Iterator[tuple[Message, Any]]:
    """(TL216, TVM's span of the statement) for each array of a launch without spills that lies in memory."""
    for name, figures in read_log(program.log).items():
        if not figures.get("stack") or figures.get("spill_stores") or figures.get("spill_loads"):
            continue
        touched = _touched(program, name)
        arrays = _arrays(program, name)
        certain = [(one, _first(one, RUN_TIME, touched, program)) for one in arrays]
        found = [(one, span) for one, span in certain if span is not None]
        cause = "which element is meant is known only at run time"
        remedy = "index it by constants and by loops of `T.unroll`, or put it into shared memory"
        if not found:
            quiet = {line for line, text in touched.items() if not _OWN_MEMORY.search(text)}
            some = [(one, _first(one, 0, quiet, program)) for one in arrays]
            found = [(one, span) for one, span in some if span is not None]
            cause = "a loop over its elements is not unrolled"
            remedy = "write the loop with `T.unroll`, with fewer turns, or put the array into shared memory"
        for array, span in found:
            words = f"`{array.name}`" if array.name in _names(program) else "an array of the compiler"
            yield say.ArrayInMemory(words, f"{array.bytes:,}", cause, remedy), span


def _first(array: PrivateArray, known: int, lines: Any, program: Any) -> Any:
    """The span of the first statement on one of the lines that indexes the array by what is known so late."""
    if array.bytes > _stack(program):
        return None
    return next((span for span, when in array.uses if when >= known and when and line_of(span) in lines), None)


def _stack(program: Any) -> int:
    return max((figures.get("stack", 0) for figures in read_log(program.log).values()), default=0)


def _touched(program: Any, name: str) -> dict[int, str]:
    """The lines of the cell whose PTX accesses local memory, and the CUDA text of each."""
    lines: set[int] = set()
    inside = False
    for text, span in zip(program.ptx.splitlines(), program.ptx_spans):
        entry = _ENTRY.search(text)
        inside = entry[1] == name if entry else inside
        if inside and span is not None and _ACCESS.search(text):
            lines.add(int(span.line))
    found = dict.fromkeys(lines, "")
    for text, span in zip(program.cuda_source.split("\n"), program.cuda_spans):
        if span is not None and int(span.line) in lines:
            found[int(span.line)] += text + "\n"
    return found


def _arrays(program: Any, name: str) -> tuple[PrivateArray, ...]:
    for function in program.module.functions.values():
        if str(function.attrs["global_symbol"]) == name:
            return private_arrays(function)
    return ()


def _names(program: Any) -> dict[str, int]:
    """The names of all arrays of the text, each with the registers that hold one copy of it."""
    found: dict[str, int] = {}

    def note(node: Any) -> None:
        elements = math.prod(int(extent) for extent in node.buffer.shape)
        found[node.buffer.name] = -(-elements * element_bytes(node.buffer) // REGISTER)

    for function in program.tile.functions.values():
        tvm_ffi.structural_walk(function.body, (tir.AllocBuffer, note))
    return found
