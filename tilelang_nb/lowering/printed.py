"""A PrimFunc as TVM prints it, with the place in the user's text that each printed line comes from.

Every statement is printed with a mark in a comment, and the mark is taken out again.  TVM does not mark `break`,
`continue` and `else`, and a mark would turn `T.launch_thread` lines into nested `with` blocks: those lines are found by
their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import tvm_ffi
from tvm import tirx as tir
from tvm.ir import StringImm

from tilelang_nb.source.text import Span

from .spans import source_span

MARK = "# @@"
PLACEHOLDER = re.compile(r'"@@string(\d+)@@"')
# The printer moves other strings into metadata that it does not show.
PLAIN_STRING = re.compile(r"[ !#-\[\]-~]*")


class PrintedLine(NamedTuple):
    """span: the place in the user's text.  origin: TVM's span of the statement, the object itself, which the record of
    compile-time expansion knows; None for lines that are no statement.
    """

    text: str
    span: Span | None
    origin: Any = None


def printed_lines(func: tir.PrimFunc) -> list[PrintedLine]:
    """The lines of `func.script()` without its import comments, and the place each comes from."""
    whole = source_span(func.span)
    nodes, literals = _parts(func.body)
    func, strings = _without_odd_strings(func, literals)
    if strings:
        nodes, _ = _parts(func.body)
    marked: list[Any] = []
    unmarked: dict[type, list[Any]] = {tir.AttrStmt: [], tir.Break: [], tir.Continue: []}
    for node in nodes:
        if type(node) is not tir.SeqStmt:
            unmarked.get(type(node), marked).append(node)
    text = func.script(obj_to_annotate={node: f"@@{number}" for number, node in enumerate(marked)})
    if strings:
        text = PLACEHOLDER.sub(lambda found: repr(strings[int(found[1])]), text)
    ordered = {kind: iter(nodes) for kind, nodes in unmarked.items()}
    return list(_with_spans(text, whole, marked, ordered))


def _parts(body: Any) -> tuple[list[Any], list[StringImm]]:
    """The statements, outer ones first, and the strings in them."""
    nodes: list[Any] = []
    literals: list[StringImm] = []
    tvm_ffi.structural_walk(body, [(tir.Stmt, nodes.append), (StringImm, literals.append)], order="pre")
    return nodes, literals


def _with_spans(
    text: str, whole: Span | None, marked: list[Any], ordered: dict[type, Iterator[Any]]
) -> Iterator[PrintedLine]:
    above: Any = None  # the mark of a compound statement stands alone on the line above it
    branches: dict[int, Any] = {}  # indentation of an `if` -> its node, for its `else`
    places: dict[Any, Span | None] = {}
    before_body = True
    for line in _shown(text):
        before_mark, mark, number = line.rpartition(MARK)
        node = None
        if mark and number.isdecimal():
            node, line = marked[int(number)], before_mark.rstrip()
        words = line.strip()
        if node is not None and not words:
            above = node
            continue
        node, above = above or node, None
        indent = len(line) - len(line.lstrip())
        if node is None and ("T.launch_thread(" in words or words.startswith(("T.attr(", "with T.attr("))):
            node = next(ordered[tir.AttrStmt], None)
        elif node is None and words in ("break", "continue"):
            node = next(ordered[tir.Break if words == "break" else tir.Continue], None)
        if node is None and words == "else:":
            node = branches.get(indent)
        if words.startswith("if "):
            branches[indent] = node
        if node is not None:
            before_body = False
            origin = node.span
            if origin not in places:
                places[origin] = source_span(origin)
            yield PrintedLine(line, places[origin], origin)
        else:
            yield PrintedLine(line, whole if before_body and words else None)


def _shown(text: str) -> list[str]:
    """Without comments about imports and metadata, and without empty lines at both ends."""
    lines = [line for line in text.splitlines() if not line.startswith(("# from ", "# Metadata omitted"))]
    return "\n".join(lines).strip("\n").split("\n")


def _without_odd_strings(func: tir.PrimFunc, literals: list[StringImm]) -> tuple[tir.PrimFunc, list[str]]:
    """Quotes, line ends and other characters replaced by numbered placeholders, and the strings they stand for."""
    strings: list[str] = []
    if all(PLAIN_STRING.fullmatch(text) for text in {literal.value for literal in literals}):
        return func, strings

    def replace(literal: StringImm) -> StringImm:
        if PLAIN_STRING.fullmatch(literal.value):
            return literal
        strings.append(literal.value)
        return StringImm(f"@@string{len(strings) - 1}@@")

    body = tvm_ffi.structural_map(func.body, (StringImm, replace))
    return func.with_body(body), strings
