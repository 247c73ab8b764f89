"""What the CUDA compiler says of machine code that is slower than its text, as warnings at the lines of the cell.

The assembler names lines of the PTX text, or a launch alone; then the first product of warp groups in that launch is
meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tilelang_nb.lowering.spans import source_span
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Diagnostic, Message, Note

from .local_memory import local_memory, spills
from .products_in_flight import may_run_at

_SERIALISED = re.compile(
    r"\(C75\d\d\).*wgmma\.mma_async instructions are serialized due to (?P<why>.*?) +(?:in|for) the function"
    r" '(?P<name>[^']*)'(?: in line (?P<line>\d+))?"
)
_WAITED = re.compile(
    r"\(C7517\) wgmma\.wait_group is injected in around line (?P<line>\d+).*in function '(?P<name>[^']*)'"
)
_ENTRY = re.compile(r"\.entry\s+(\w+)")
_NOT_DIVIDED = re.compile(r"\(C75\d\d\).*'setmaxnreg' ignored *(?P<why>.*)")
_PRODUCT, _SHARE = "wgmma.mma_async", "setmaxnreg"
ENDED, USED = "waited for here", "used here"
# Words of the assembler -> what they mean for the text, and what to do.
_CAUSES = (
    (
        "insufficient register",
        "a thread has too few registers for their accumulators and operands",
        "make the tile of the result smaller, or divide it among more warp groups with more `threads`",
    ),
    (
        "defining input registers",
        "an operand in registers is written while they run",
        "write it after `T.wait_wgmma(0)`",
    ),
    (
        "defining accumulator registers",
        "an accumulator is written while they run",
        "write it after `T.wait_wgmma(0)`, and clear it with `clear_accum=True` of the product",
    ),
    (
        "reading accumulator registers",
        "an accumulator is read while they run",
        "read it after `T.wait_wgmma(0)`",
    ),
    (
        "function",
        "a function is called while they run",
        "call it after `T.wait_wgmma(0)`",
    ),
    (
        "extern",
        "a function is called while they run",
        "call it after `T.wait_wgmma(0)`",
    ),
    (
        "",
        "they are started and waited for on different ways through the text",
        "let every thread of a warp group start them and wait for them, in one block of statements",
    ),
)


def compiler_warnings(program: Any) -> tuple[Diagnostic, ...]:
    """The warnings TL213, TL214, TL216 and TL217 of a DeviceProgram that is compiled, by line; of one place once."""
    found: dict[Any, Diagnostic] = {}

    def tell(message: Message, place: Any, notes: tuple[Note, ...] = ()) -> None:
        one = message.at(place, notes)
        found.setdefault((one.code, one.message, place and place.line), one)

    for message, name, line, note in _messages(program.log, program.ptx):
        place = source_span(_product(program, name, line)) or program.span
        here = source_span(program.ptx_spans[line - 1]) if line and line <= len(program.ptx_spans) else None
        tell(message, place, (Note(note, here),) if here is not None and here != place else ())
    for message in _not_divided(program.log):
        place = next((one for one, text in zip(program.ptx_spans, program.ptx.splitlines()) if _SHARE in text), None)
        tell(message, source_span(place) or program.span)
    for message, name in spills(program):
        tell(message, source_span(_product(program, name, None)) or program.span)
    for message, span in local_memory(program):
        tell(message, source_span(span) or program.span)
    return tuple(sorted(found.values(), key=lambda one: one.order))


def _messages(log: str, ptx: str) -> Iterator[tuple[Message, str, int | None, str]]:
    """(message, launch, line of the PTX text, what is there)."""
    for line in log.splitlines():
        stopped = _SERIALISED.search(line)
        if stopped:
            words = stopped["why"].lower()
            _, cause, remedy = next(known for known in _CAUSES if known[0] in words)
            number = int(stopped["line"]) if stopped["line"] else None
            yield say.SerialisedProducts(cause, remedy), stopped["name"], number, ENDED
        waited = _WAITED.search(line)
        if waited and may_run_at(ptx, waited["name"], int(waited["line"])):  # else it is one that was moved
            cause, remedy = "an accumulator is used before they are waited for", "use it after `T.wait_wgmma(0)`"
            yield say.SerialisedProducts(cause, remedy), waited["name"], int(waited["line"]), USED


def _not_divided(log: str) -> Iterator[Message]:
    for line in log.splitlines():
        ignored = _NOT_DIVIDED.search(line)
        if ignored:
            few = "minimum register" in ignored["why"]
            cause = "one of them needs more than it asks for" if few else ignored["why"].strip(" ;.") or "it cannot"
            yield say.RegistersNotDivided(cause)


def _product(program: Any, name: str, line: int | None) -> Any:
    """TVM's span of the last product of warp groups of a launch in front of a line (from 1) of the PTX text, or of its
    first one; None for a launch without.
    """
    inside, last = False, None
    for number, (text, span) in enumerate(zip(program.ptx.splitlines(), program.ptx_spans), 1):
        entry = _ENTRY.search(text)
        inside = entry[1] == name if entry else inside
        if inside and span is not None and _PRODUCT in text:
            if last is not None and (line is None or number > line):
                break
            last = span
    return last
