"""The record of compile-time expansion: what every turn was, and the lines that it made in every stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilelang_nb

HEAD = "import tilelang.language as T\n"


def compiled(body: str, before: str = "", threads: int = 1) -> Any:
    """The kernel of a body over `a`, `out` (int32, 64 elements) and the scalars `n`, `m`."""
    header = (
        '@T.prim_func\ndef k(a: T.Tensor((64,), "int32"), out: T.Tensor((64,), "int32"), n: T.int32, m: T.int32):\n'
        f"    with T.Kernel(1, threads={threads}):\n"
    )
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    made = tilelang_nb.compile_cell(HEAD + before + header + lines)
    assert made.ok, made.to_text()
    return made.kernels["k"]


def nodes(turn: Any) -> Iterator[Any]:
    for child in turn.children:
        yield child
        for inner in child.iterations:
            yield from nodes(inner)


def the(kernel: Any, kind: str, label: str = "") -> Any:
    """The only node of a kind (and label) in the record."""
    (found,) = [node for node in nodes(kernel.unroll.iterations[0]) if node.kind == kind and node.label in (label, "")]
    return found


def stages(kernel: Any) -> list[Any]:
    """The stages whose lines use the names of the kernel."""
    found = [stage for stage in kernel.stages if stage.module is not None]
    assert len(found) > 8
    names = [stage.name for stage in found]
    return found[: names.index("thread") + 1]


def device_stages(kernel: Any) -> list[Any]:
    """Those after them, which have variables and buffers of their own."""
    names = [stage.name for stage in kernel.stages]
    return list(kernel.stages[names.index("thread") + 1 : names.index("ptx")])


def texts(stage: Any, lines: tuple[int, ...]) -> list[str]:
    shown = stage.text.split("\n")
    return [shown[number - 1].strip() for number in lines]


def check_disjoint(kernel: Any, node: Any, source_lines: set[int]) -> None:
    """In every stage the turns have lines of their own, and together all that the source lines of the body made."""
    for stage in [*stages(kernel), *device_stages(kernel)]:
        seen: set[int] = set()
        for turn in node.iterations:
            lines = set(turn.lines(stage.name))
            assert lines, (stage.name, turn.value)
            assert not lines & seen, stage.name
            seen |= lines
        made = {number for number, places in enumerate(stage.lines, 1) if set(places) & source_lines}
        assert seen == made, stage.name


def test_the_stores_of_one_line_are_told_apart_in_every_stage() -> None:
    kernel = compiled("for v in [5, 6, 7, 8]:\n    out[v] = a[v] * v + n")
    loop = the(kernel, "for", "v")
    check_disjoint(kernel, loop, {6})
    for stage in stages(kernel):
        for turn in loop.iterations:
            (line,) = texts(stage, turn.lines(stage.name))
            assert line.startswith(f"out[{turn.value}] =")


def test_nested_loops_have_the_lines_of_their_inner_turns() -> None:
    kernel = compiled("for v in (1, 2, 3):\n    out[v] = v\n    for w in (10, 20):\n        out[v + w] = a[v] * w")
    outer = the(kernel, "for", "v")
    check_disjoint(kernel, outer, {6, 8})
    for turn in outer.iterations:
        (inner,) = turn.children
        for stage in stages(kernel):
            lines = [set(one.lines(stage.name)) for one in inner.iterations]
            assert not lines[0] & lines[1]
            assert lines[0] | lines[1] < set(turn.lines(stage.name))
            for one, w in zip(inner.iterations, (10, 20)):
                (text,) = texts(stage, one.lines(stage.name))
                assert text.startswith(f"out[{int(turn.value) + w}] =")


MACRO = "@T.macro\ndef put(o, at, v):\n    o[at] = v\n    o[at + 32] = v\n"


def test_a_macro_in_a_loop_belongs_to_its_turn() -> None:
    kernel = compiled("for v in (1, 2, 3):\n    put(out, v, a[v])", before=MACRO)
    loop = the(kernel, "for", "v")
    check_disjoint(kernel, loop, {4, 5, 10})
    for turn in loop.iterations:
        (macro,) = turn.children
        (call,) = macro.iterations
        assert (macro.kind, macro.line, macro.definition_line) == ("macro", 10, 3)
        assert call.names == {"o": "out", "at": turn.value, "v": f"a[{turn.value}]"}
        for stage in stages(kernel):
            stores = [line for line in texts(stage, call.lines(stage.name)) if line.startswith("out[")]
            assert [line.partition("]")[0] for line in stores] == [f"out[{turn.value}", f"out[{int(turn.value) + 32}"]


def test_two_calls_of_a_macro_on_lines_of_the_kernel_are_told_apart() -> None:
    kernel = compiled("put(out, 1, n)\nput(out, 2, m)\nout[0] = 3", before=MACRO)
    for stage in stages(kernel):
        first, second = (node.lines(stage.name) for node in kernel.unroll.iterations[0].children)
        assert [line[:6] for line in texts(stage, first)] == ["out[1]", "out[33"]
        assert [line[:6] for line in texts(stage, second)] == ["out[2]", "out[34"]


def test_a_recursive_macro_nests() -> None:
    before = "@T.macro\ndef down(o, d):\n    o[d] = d\n    if d > 0:\n        down(o, d - 1)\n    o[d + 10] = d\n"
    kernel = compiled("down(out, 3)", before=before)
    (node,) = kernel.unroll.iterations[0].children
    for depth in (3, 2, 1, 0):
        (turn,) = node.iterations
        assert turn.names["d"] == str(depth)
        for stage in stages(kernel):
            assert len(turn.lines(stage.name)) == 2 * (depth + 1)
        node = turn.children[0] if turn.children else None
    assert node is None


def test_what_the_elements_of_a_comprehension_emit_belongs_to_its_turns() -> None:
    before = "@T.macro\ndef old(o, at):\n    o[at] = at\n    return o[at + 1]\n"
    kernel = compiled("t = [old(out, v) for v in (3, 5, 7)]\nfor e in t:\n    out[60] += e", before=before)
    node = the(kernel, "comprehension")
    assert [turn.value for turn in node.iterations] == ["3", "5", "7"]
    assert [turn.names for turn in node.iterations] == [{"v": "3"}, {"v": "5"}, {"v": "7"}]
    for turn in node.iterations:
        (macro,) = turn.children
        for stage in stages(kernel):
            own = texts(stage, turn.lines(stage.name))
            assert [line for line in own if line.startswith("out[")] == [f"out[{turn.value}] = {turn.value}"]
            assert set(macro.lines(stage.name)) <= set(turn.lines(stage.name))


def test_operations_in_a_comprehension_stand_on_one_line_and_are_told_apart() -> None:
    kernel = compiled("t = [T.atomic_add(out[v], v, return_prev=True) for v in range(3)]\nout[9] = t[0] + t[2]")
    node = the(kernel, "comprehension")
    for stage in stages(kernel):
        lines = [turn.lines(stage.name) for turn in node.iterations]
        assert len({line for turn in lines for line in turn}) == 3
        for turn, own in zip(node.iterations, lines):
            assert f"out[{turn.value}]" in texts(stage, own)[0]


def test_a_lazy_generator_and_the_loop_that_it_feeds_have_lines_of_their_own() -> None:
    before = "@T.macro\ndef mark(o, at):\n    o[at] = 1\n    return at\n"
    body = "for e in (mark(out, v + w) for v in (0, 10) for w in (1, 2)):\n    out[e + 30] = e"
    kernel = compiled(body, before=before)
    loop = the(kernel, "for", "e")
    (generator,) = (node for node in kernel.unroll.iterations[0].children if node.kind == "comprehension")
    assert [turn.value for turn in generator.iterations] == ["0", "10"]
    for stage in stages(kernel):
        made = []
        for v, turn in zip((0, 10), generator.iterations):
            assert texts(stage, turn.lines(stage.name)) == [f"out[{v + 1}] = 1", f"out[{v + 2}] = 1"]
            (inner,) = turn.children
            for w, one in zip((1, 2), inner.iterations):
                assert texts(stage, one.lines(stage.name)) == [f"out[{v + w}] = 1"]
                assert [child.kind for child in one.children] == ["macro"]
                made += one.lines(stage.name)
        consumed = [line for turn in loop.iterations for line in turn.lines(stage.name)]
        assert [line[:6] for line in texts(stage, tuple(consumed))] == ["out[31", "out[32", "out[41", "out[42"]
        assert not set(made) & set(consumed)


def test_a_comprehension_that_feeds_a_loop_is_recorded_beside_it() -> None:
    kernel = compiled("for at, v in enumerate([w * 2 for w in range(3)]):\n    out[at] = v")
    comprehension, loop = kernel.unroll.iterations[0].children
    assert [turn.names for turn in comprehension.iterations] == [{"w": "0"}, {"w": "1"}, {"w": "2"}]
    assert [turn.names for turn in loop.iterations] == [
        {"at": "0", "v": "0"},
        {"at": "1", "v": "2"},
        {"at": "2", "v": "4"},
    ]
    check_disjoint(kernel, loop, {6})
    assert all(not turn.lines("thread") for turn in comprehension.iterations)


def test_the_turns_of_an_unrolled_loop_share_the_lines_of_the_loop() -> None:
    kernel = compiled("for i in T.unroll(2, 8, 2):\n    out[i] = i\n    out[i + 1] = n")
    loop = the(kernel, "unroll", "i")
    assert [turn.value for turn in loop.iterations] == ["2", "4", "6"]
    assert loop.iterations[2].names == {"i": "6"}
    for stage in stages(kernel):
        lines = {turn.lines(stage.name) for turn in loop.iterations}
        assert len(lines) == 1
        assert len(texts(stage, lines.pop())) >= 2


def test_tile_operations_that_lowering_splits_stay_with_their_turn() -> None:
    body = (
        's = T.alloc_shared((2, 64), "int32")\n'
        "for t in (0, 1):\n"
        "    T.copy(a, s[t, :])\n"
        "    for i in T.Parallel(64):\n"
        "        s[t, i] += t + n\n"
        "    T.copy(s[t, :], out)"
    )
    kernel = compiled(body, threads=32)
    loop = the(kernel, "for", "t")
    check_disjoint(kernel, loop, {7, 8, 9, 10})
    assert len(loop.iterations[0].lines("thread")) > len(loop.iterations[0].lines("tile"))


def test_statements_under_conditions_and_device_loops_keep_their_turn() -> None:
    body = (
        "x = n\n"
        "for v in (3, 4):\n"
        "    for i in range(m):\n"
        "        if a[i] > v:\n"
        "            x += v\n"
        "            continue\n"
        "        else:\n"
        "            out[i] = v\n"
        "        if x > 100:\n"
        "            break\n"
        "out[0] = x"
    )
    kernel = compiled(body)
    loop = the(kernel, "for", "v")
    check_disjoint(kernel, loop, {7, 8, 9, 10, 12, 13, 14})


def test_simplified_statements_leave_other_turns_alone() -> None:
    """The turn of 0 leaves nothing behind: its loop has no iteration."""
    kernel = compiled("for v in (0, 2):\n    for i in range(v):\n        out[i + v] = v")
    first, second = the(kernel, "for", "v").iterations
    assert first.lines("tile")
    assert first.lines("thread") == ()
    assert any(line.startswith("out[") for line in texts(stages(kernel)[-1], second.lines("thread")))


def test_restarts_leave_one_record() -> None:
    kernel = compiled("x = 0\nfor i in range(n):\n    x += 1\nfor v in (1, 2):\n    x += v\n    out[v] = x")
    loop = the(kernel, "for", "v")
    assert len(loop.iterations) == 2
    check_disjoint(kernel, loop, {9, 10})


def test_an_equal_cell_built_again_has_the_same_lines() -> None:
    body = "for v in (1, 2):\n    out[v] = v"
    first, second = compiled(body), compiled(body)
    for stage in stages(second):
        for one, other in zip(the(first, "for", "v").iterations, the(second, "for", "v").iterations):
            assert one.lines(stage.name) == other.lines(stage.name) != ()


def test_starred_and_nested_targets_are_named() -> None:
    kernel = compiled("for (p, *q), r in [((1, 2, 3), 4), ((5,), 6)]:\n    out[p] = r")
    assert [turn.names for turn in the(kernel, "for", "((p, *q), r)").iterations] == [
        {"p": "1", "q": "[2, 3]", "r": "4"},
        {"p": "5", "q": "[]", "r": "6"},
    ]


def test_items_that_are_device_values_are_shown_as_expressions() -> None:
    kernel = compiled("for v in (n, m + 1):\n    out[0] += v")
    assert [turn.value for turn in the(kernel, "for", "v").iterations] == ["n", "m + 1"]


def test_a_stage_that_is_not_there_is_a_key_error() -> None:
    kernel = compiled("out[0] = 1")
    with pytest.raises(KeyError):
        kernel.unroll.iterations[0].lines("no such stage")
    assert kernel.unroll.iterations[0].lines("source") == ()
