"""Stages as text: readable, every line with its place, and never a failure."""

from __future__ import annotations

import ast
import sys

import pytest
import tvm
from tvm import tirx as tir

from tilelang_nb.language.tile_program import SIGNATURES, operation, region
from tilelang_nb.report.readable import readable
from tilelang_nb.report.stage_text import stage_statements, stage_text


def numbered(module: tvm.IRModule) -> str:
    lines, spans = stage_text(module)
    return "".join(f"{span.line if span else '':>3} | {line}\n" for line, span in zip(lines, spans))


def test_a_tile_program_reads_like_the_language(tile_module, golden):
    golden(numbered(tile_module), "report/tile.txt")


def test_a_thread_program_is_readable(thread_module, golden):
    golden(numbered(thread_module), "report/thread.txt")


def test_what_is_shown_is_python(tile_module, thread_module):
    for module in (tile_module, thread_module):
        ast.parse("\n".join(line for line in stage_text(module)[0] if "templated" not in line))


def test_every_line_that_a_user_wrote_is_reached(tile_module):
    _, spans = stage_text(tile_module)
    assert {span.line for span in spans if span} == {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16}


def test_lines_of_one_source_line_are_told_apart_by_statement():
    target = tir.decl_buffer((4,), "float32", "A", layout=None)
    spans = [tvm.ir.Span(tvm.ir.SourceName("c"), 1, 1, 1, 2) for _ in range(3)]
    stores = [tir.BufferStore(target, tir.const(float(n), "float32"), [n], spans[n]) for n in (0, 2, 1)]
    module = tvm.IRModule.from_expr(tir.PrimFunc([target], tir.SeqStmt(stores)).with_attr("global_symbol", "k"))
    lines, _ = stage_text(module)
    numbers = stage_statements(module, spans)
    assert {line.strip(): number for line, number in zip(lines, numbers) if number is not None} == {
        "A[0] = T.float32(0.0)": 0,
        "A[2] = T.float32(2.0)": 2,
        "A[1] = T.float32(1.0)": 1,
    }


def test_several_functions_stand_one_after_the_other(tile_module, thread_module):
    functions = {"a": tile_module["scale"], "b": thread_module["scale"]}
    lines, spans = stage_text(tvm.IRModule(functions))
    assert len(lines) == len(spans)
    assert [line for line in lines if line.startswith("def ")] == [
        line for module in (tile_module, thread_module) for line in stage_text(module)[0] if line.startswith("def ")
    ]


def test_without_places_the_text_is_still_shown(tile_module, monkeypatch):
    def broken(function):
        raise RuntimeError

    # its function of the same name stands before the module in the package
    monkeypatch.setattr(sys.modules["tilelang_nb.report.stage_text"], "printed_lines", broken)
    lines, spans = stage_text(tile_module)
    assert any("T.copy(A[bx * 32:bx * 32 + 32" in line for line in lines)
    assert set(spans) == {None}


class Unprintable:
    def __str__(self):
        raise RuntimeError


def test_a_function_that_cannot_be_printed_says_so(tile_module):
    (name,) = tile_module.functions.keys()

    class Module:
        functions = {name: Unprintable()}

    lines, spans = stage_text(Module())
    assert lines == ["# this function cannot be printed: RuntimeError"]
    assert spans == [None]


def shown(call, *buffers) -> str:
    """A call as a stage shows it."""
    body = tir.Evaluate(call)
    module = tvm.IRModule.from_expr(tir.PrimFunc(list(buffers), body).with_attr("global_symbol", "k"))
    return stage_text(module)[0][-1].strip()


A = tir.decl_buffer((64, 32), "float32", "A", layout=None)
i = tir.Var("i", "int32")
REGIONS = {
    "whole": ((0, 0), (64, 32), "A"),
    "part": ((0, 0), (64, 16), "A[0:64, 0:16]"),
    "constant": ((8, 16), (8, 16), "A[8:16, 16:32]"),
    "element": ((i, 3), (1, 1), "A[i, 3]"),
    "row": ((i, 0), (1, 32), "A[i, 0:32]"),
    "product": ((i * 8, 0), (8, 32), "A[i * 8:i * 8 + 8, 0:32]"),
    "bits": ((tir.bitwise_and(i, 3), 0), (8, 32), "A[i & 3:(i & 3) + 8, 0:32]"),
    "runtime extent": ((0, 0), (i, 32), "A[0:i, 0:32]"),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions_are_slices(name):
    begin, extent, expected = REGIONS[name]
    assert (
        shown(operation("fill", region(A, begin, extent), tir.const(0.0, "float32")), A, i)
        == f"T.fill({expected}, 0.0)"
    )


ABSENT = object()
CALLS = {
    "reduce": (
        "T.reduce_max(A, A[0:64, 0], dim=1, clear=True, nan_propagate=False)",
        ["max", None, None, 1, True, False],
    ),
    "cumulate": ("T.cumsum(A, A, dim=0, reverse=False)", ["sum", None, None, 0, False]),
    "atomic_region": ("T.atomic_max(A, A)", ["max", None, None]),
    "gemm": (
        'T.gemm(A, A, A, transpose_a=False, transpose_b=True, clear_accum=False, policy="square")',
        [None, None, None, False, True, tir.const(False, "bool"), "square"],
    ),
    "copy": ("T.copy(A, A, disable_tma=True)", [None, None, ABSENT, True]),
    "print": ('T.print("a b", 1)', ["a b", 1]),
    "sync_threads": ("T.sync_threads()", []),
    "use_swizzle": ('T.use_swizzle(panel_size=10, order="row", enable=True)', [10, "row", True]),
}


@pytest.mark.parametrize("name", CALLS)
def test_operations_are_calls_of_the_language(name):
    expected, operands = CALLS[name]
    whole, column = region(A, (0, 0), (64, 32)), region(A, (0, 0), (64, 1))
    filled = [
        (column if name == "reduce" and number == 2 else whole) if operand is None else operand
        for number, operand in enumerate(operands)
    ]
    assert shown(operation(name, *[None if operand is ABSENT else operand for operand in filled]), A) == expected


OPERATORS = {
    "x = T.Add(i, 0)": "x = i + 0",
    "x = T.Add(i, 0) - 2": "x = (i + 0) - 2",
    "x = 2 * T.Add(i, 0)": "x = 2 * (i + 0)",
    "x = T.Mul(T.float32(1.0), A[T.Add(i, 0) - 2])": "x = T.float32(1.0) * A[(i + 0) - 2]",
    "x = T.Mul(T.Add(i, 1), j + 1)": "x = (i + 1) * (j + 1)",
    "if T.And(T.LT(i, 3), j > 2):": "if (i < 3) and (j > 2):",
    "x = T.max(T.Sub(i, 0), -T.Add(i, 0))": "x = T.max(i - 0, -(i + 0))",
    "x = T.Cast(T.Add, 1)": "x = T.Cast(T.Add, 1)",
}


@pytest.mark.parametrize("line", OPERATORS)
def test_operators_are_written_as_operators(line):
    assert readable([line]) == [OPERATORS[line]]


@pytest.mark.parametrize("name", SIGNATURES)
def test_no_operation_is_shown_as_an_extern_call(name):
    operands = [region(A, (0, 0), (64, 32)) for _ in SIGNATURES[name]]
    if SIGNATURES[name][:1] == ("operation",):
        operands[0] = "sum"
    text = shown(operation(name, *operands), A)
    assert text.startswith("T.") and "call_extern" not in text and "tl." not in text
    ast.parse(text)


ODD_STRINGS = ['say "x"', "it's", "two\nlines", "back\\slash", "变", "", "# @@1", "@@string0@@", "{x}", "\x1b[31m"]


@pytest.mark.parametrize("message", ODD_STRINGS, ids=ascii)
def test_any_message_is_shown_as_it_is(message):
    text = shown(operation("print", message, 1), A)
    shown_arguments = ast.parse(text).body[0].value.args
    assert [argument.value for argument in shown_arguments] == ([message] if message else []) + [1]


@pytest.mark.parametrize(
    "line",
    [
        "x = T.call_extern(",
        'T.call_extern("void", "tl.copy", A)',
        'T.call_extern("void", "tl.new_operation", A)',
        'T.call_extern("void", "tl.copy", T.call_extern(T.handle().ty, "tl.region", A, 1), B)',
        'T.call_extern("void", name)',
        "    for i in T.serial(8, annotations={x: 1}):",
        "T.decl_buffer((4,), scope=1)",
        "else:",
        "",
    ],
)
def test_a_line_that_is_not_understood_stays_as_it_is(line):
    assert readable([line]) == [line]


PTX_LINES = {
    'T.ptx.cp("async", "commit_group", "")': "T.ptx.cp.async_.commit_group()",
    'T.ptx.cp(1, "async", "wait_group", "")': "T.ptx.cp.async_.wait_group(1)",
    "T.ptx.ldmatrix(r[i * 4], r[i * 4 + 1], T.cuda.cvta_generic_to_shared(T.address_of(s[i, tx * 8])), "
    '"sync", "aligned", "m8n8", "x2", "", "shared", "b16", "")': (
        "T.ptx.ldmatrix.sync.aligned.m8n8.x2.shared.b16(r[i * 4:i * 4 + 2], s[i, tx * 8])"
    ),
    'T.ptx.mma(d[0], d[1], a[4], a[5], b[1], "sync", "")': "T.ptx.mma.sync(d[0:2], a[4:6], b[1])",
    'T.ptx.fence("proxy", "async", "shared::cta", "")': 'T.ptx["fence.proxy.async.shared::cta"]()',
    "T.ptx.other(x)": "T.ptx.other(x)",
}


@pytest.mark.parametrize("line", PTX_LINES)
def test_ptx_calls_are_instructions_over_ranges_of_registers(line):
    (shown,) = readable([f"    {line}"])
    assert shown == f"    {PTX_LINES[line]}"
    ast.parse(shown.strip())
