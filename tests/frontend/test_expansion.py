"""The record of compile-time expansion, spans of statements, restarts and what is printed."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from frontend.cells import kernel, run_cell
from tvm import tirx as tir

from tilelang_nb.frontend.limits import Limits
from tilelang_nb.frontend.unroll import Node, outline

STATEMENTS = (
    tir.BufferStore,
    tir.Bind,
    tir.For,
    tir.While,
    tir.IfThenElse,
    tir.Evaluate,
    tir.AllocBuffer,
    tir.AttrStmt,
    tir.Break,
    tir.Continue,
)


def nodes(node: Node) -> list[Node]:
    found = [node]
    for turn in node.iterations:
        for child in turn.children:
            found += nodes(child)
    return found


def described(body: str, **options: str) -> list[tuple]:
    cell = run_cell(kernel(body, **options))
    assert not cell.errors, [str(d) for d in cell.diagnostics]
    found = nodes(cell.kernels["k"].expansion)[1:]
    return [(node.kind, node.line, node.label, [turn.value for turn in node.iterations]) for node in found]


def test_loops_comprehensions_and_macros_are_recorded_where_they_stand() -> None:
    before = "@T.macro\ndef put(o, v):\n    for w in (1, 2):\n        o[w] = v\n"
    body = "t = [j * 2 for j in range(3)]\nfor at, v in enumerate(t):\n    put(out, v)\nfor i in T.unroll(2):\n    out[i] = 1"
    inner = [("macro", 12, "put", [""]), ("for", 4, "w", ["1", "2"])]
    assert described(body, before=before) == [
        ("comprehension", 10, "", ["0", "1", "2"]),
        ("for", 11, "(at, v)", ["(0, 0)", "(1, 2)", "(2, 4)"]),
        *inner,
        *inner,
        *inner,
        ("unroll", 13, "i", ["0", "1"]),
    ]


def test_the_turn_in_which_a_break_happens_counts() -> None:
    assert described("for v in [0, 1, 2, 3]:\n    if v == 2:\n        break\n    out[v] = 1")[0][3] == ["0", "1", "2"]


def test_a_macro_node_knows_the_line_of_its_definition() -> None:
    cell = run_cell(kernel("put(out)", before="@T.macro\ndef put(o):\n    o[0] = 1\n"))
    (node,) = cell.kernels["k"].expansion.iterations[0].children
    assert (node.line, node.definition_line) == (9, 3)


def test_a_macro_turn_knows_the_statements_that_hold_what_it_returned() -> None:
    before = (
        "@T.macro\ndef twice(v):\n    return v + v\n\n"
        "@T.macro\ndef fourfold(v):\n    w = twice(v)\n    return twice(w)\n\n"
        "@T.macro\ndef put(o, v):\n    o[0] = v\n\n"
        "@T.macro\ndef extent():\n    return 3\n"
    )
    program = run_cell(
        kernel("out[1] = fourfold(out[2])\nput(out, twice(out[3]))\nout[extent()] = 1", before=before)
    ).kernels["k"]
    lines = {node.line: node for node in nodes(program.expansion) if node.label != "twice"}
    spans = program.statement_spans

    def used(node: Node) -> list[int]:
        return [spans[number].line for number in node.iterations[0].used]

    def returned(node: Node) -> int:
        return node.iterations[0].returned

    store = max(span.line for span in spans) - 2
    whole, putting, constant = (lines[store + at] for at in range(3))
    inner, outer = [node for node in nodes(whole) if node.label == "twice"]
    assert (returned(whole), set(used(whole))) == (9, {store})
    assert (returned(inner), set(used(inner))) == (4, {8}), "into the macro that called it"
    assert (returned(outer), set(used(outer))) == (4, {store}), "on through what that one returned"
    (given,) = [n for n in nodes(program.expansion) if n.label == "twice" and n not in (inner, outer)]
    assert 13 in used(given), "an argument goes into the body of what is called"
    assert (returned(constant), used(constant), returned(putting)) == (0, [], 0)


def test_turns_know_the_numbers_of_their_statements() -> None:
    program = run_cell(kernel("out[0] = 1\nfor v in [1, 2]:\n    out[v] = v\n    out[v + 1] = v\nout[7] = 1")).kernels[
        "k"
    ]
    (loop,) = program.expansion.iterations[0].children
    assert [(turn.first_statement, turn.last_statement) for turn in loop.iterations] == [(1, 2), (3, 4)]
    assert [span.line for span in program.statement_spans] == [6, 8, 9, 8, 9, 10, 5]


def test_a_turn_that_emits_nothing_has_no_statements() -> None:
    program = run_cell(kernel("for v in [1, 2]:\n    pass")).kernels["k"]
    (loop,) = program.expansion.iterations[0].children
    assert all(turn.last_statement < turn.first_statement for turn in loop.iterations)


def test_the_turns_of_a_loop_have_spans_of_their_own() -> None:
    program = run_cell(kernel("for v in [1, 2]:\n    out[v] = v")).kernels["k"]
    stores: list = []
    tvm_ffi.structural_walk(program.function.body, (tir.BufferStore, stores.append))
    first, second = (store.span for store in stores)
    assert (first.line, first.column) == (second.line, second.column)
    assert not first.same_as(second)
    (loop,) = program.expansion.iterations[0].children
    for turn, store in zip(loop.iterations, stores):
        assert program.statement_spans[turn.first_statement].same_as(store.span)


def test_values_of_the_user_are_shown_shortly_whatever_their_class_does() -> None:
    before = (
        "class Bad:\n    def __repr__(self): raise ValueError\nclass Wide:\n    def __repr__(self): return 'w' * 500\n"
    )
    (record,) = described("for v in [Bad(), Wide(), list(range(100)), 'x' * 500]:\n    pass", before=before)
    assert all(len(value) <= 60 for value in record[3])
    assert "Bad" in record[3][0]


def test_a_record_has_an_outline() -> None:
    program = run_cell(kernel("for v in [1, 2]:\n    out[v] = v")).kernels["k"]
    assert outline(program.expansion)[0] == "kernel line 4 k: 1 turn(s)"


LARGE = {
    "for v in list(range(300)):\n    out[v % 8] = v\n    out[0] = v": (
        6,
        "600 statements: 300 iterations × 2",
        "range(300)",
    ),
    "for v in list(range(300, 0, -1)):\n    out[v % 8] = v": (
        6,
        "300 statements: 300 iterations × 1",
        "range(300, 0, -1)",
    ),
    "for u in [1] * 30:\n    for v in [2] * 10:\n        out[u] = v": (
        6,
        "300 statements: 30 iterations × 10",
        "range(n)",
    ),
    "for u in [1] * 3:\n    for v in [2] * 300:\n        out[u] = v": (
        7,
        "300 statements: 300 iterations × 1",
        "range(n)",
    ),
    "t = [T.atomic_add(out[0], v, return_prev=True) for v in range(300)]": (6, "300 iterations × 1", "range(n)"),
    "for u in (T.atomic_add(out[0], v, return_prev=True) for v in range(300)):\n    pass": (
        6,
        "300 iterations",
        "range(n)",
    ),
}


@pytest.mark.parametrize("body", LARGE)
def test_an_expansion_that_makes_very_much_is_warned_about_once(body: str) -> None:
    cell = run_cell(kernel(body), limits=Limits(statements=256))
    (found,) = cell.diagnostics
    line, said, remedy = LARGE[body]
    assert (found.code, found.severity, found.span.line) == ("TL142", "warning", line)
    assert said in found.message
    assert remedy in found.help
    assert cell.kernels["k"] is not None


def test_expansions_within_the_limit_and_long_device_loops_are_not_warned_about() -> None:
    body = "for v in [1] * 256:\n    out[0] = v\nfor i in range(100000):\n    out[1] = i\nt = [v for v in range(1000)]"
    assert not run_cell(kernel(body), limits=Limits(statements=256)).diagnostics
    assert not run_cell(kernel("for v in list(range(1000)):\n    out[v % 8] = v\n    out[1] = v")).diagnostics


KERNEL = """
x = 0
s = T.alloc_shared((8,), "int32")
v = T.alloc_var("int32", init=3)
T.copy(a, s)
for i in range(n):
    if a[i] > 2:
        x += s[i]
        continue
    else:
        x = v
    while x > 3:
        x -= 1
        if x == 2:
            break
for i, j in T.Parallel(2, 4):
    y = a[i * 4 + j]
    out[i * 4 + j] = y if y > 2 else x
put(out)
for t in [1, 2]:
    out[t] += 1
for i, j in T.grid(2, 2):
    out[i] = j
for i in range(0, 8, m):
    out[i] = 1
old = T.atomic_add(out[0], 3, return_prev=True)
with T.ws(0):
    out[3] = old
"""


def test_every_statement_carries_the_place_it_comes_from() -> None:
    cell = run_cell(kernel(KERNEL, before="@T.macro\ndef put(o):\n    o[0] = 1\n", threads=128))
    found: list = []
    function = cell.kernels["k"].function
    tvm_ffi.structural_walk(function.body, [(kind, found.append) for kind in STATEMENTS])
    assert len(found) > 30
    text = cell.session.text
    for statement in found:
        assert statement.span is not None, str(statement)
        assert text.first_line <= statement.span.line <= text.last_line
        assert str(statement.span.source_name.name) == text.name
    assert function.span.line == 7


def test_a_build_with_restarts_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    before = "def helper():\n    print('from a helper')\n    return 3\n"
    body = "x = 0\nprint('building', out.shape[0])\nfor i in range(n):\n    x += helper()\nout[0] = x"
    cell = run_cell(kernel(body, before=before))
    assert capsys.readouterr().out == "building 8\nfrom a helper\n"
    assert cell.kernels["k"].printed == "building 8\nfrom a helper\n"


def test_a_refused_build_prints_once_too(capsys: pytest.CaptureFixture[str]) -> None:
    run_cell(kernel("print('x')\nx = 0\nfor i in range(n):\n    x += 1\nout[0] = x + nope"))
    assert capsys.readouterr().out == "x\n"


def test_every_pass_sees_the_items_of_an_outside_iterator_and_the_contents_of_outside_containers() -> None:
    before = "items = iter([3, 4, 5])\nlog = []\ncounts = {}\ndef note(v):\n    log.append(v)\n    counts[v] = len(log)\n    return v\n"
    body = "x = 0\nfor i in range(n):\n    x += 1\nfor v in items:\n    out[v] = note(v)\nout[0] = x\nout[1] = len(log) + next(iter(counts))"
    cell = run_cell(kernel(body, before=before))
    out = np.zeros(8, np.int32)
    cell.run(np.zeros(8, np.int32), out, np.zeros(8, np.float32), 2, 0)
    assert out.tolist() == [2, 6, 0, 3, 4, 5, 0, 0]
    assert cell.namespace["log"] == [3, 4, 5]


def test_next_of_an_outside_iterator_is_replayed() -> None:
    body = "x = 0\nfor i in range(n):\n    x += 1\nout[next(items)] = x\nout[next(items)] = 9"
    cell = run_cell(kernel(body, before="items = iter([3, 4, 5])\n"))
    out = np.zeros(8, np.int32)
    cell.run(np.zeros(8, np.int32), out, np.zeros(8, np.float32), 2, 0)
    assert out.tolist() == [0, 0, 0, 2, 9, 0, 0, 0]


def test_the_namespace_of_expressions_sees_later_bindings_and_names_that_need_thought() -> None:
    """Globals that are a subclass of dict make CPython ask `__missing__`: the front end rests on it."""

    class Names(dict):
        def __missing__(self, name: str) -> str:
            return f"<{name}>"

    names = Names(x=1, __builtins__={})
    code = compile("(lambda: (x, y, [z for _ in (1,)], (lambda: w)()))()", "<test>", "eval")
    assert eval(code, names) == (1, "<y>", ["<z>"], "<w>")
