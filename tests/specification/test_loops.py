"""Loops: `range` and its relatives, compile-time iterables, `while`, and what leaves a loop."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from frontend.cells import kernel as kernel_text
from frontend.cells import run_cell
from specification.cells import cell, compiled, computes, emits, kernel, launched, like_python, refuses, said

import tilelang_nb
from tilelang_nb.frontend.limits import Limits


def test_range_with_one_argument_is_a_serial_loop() -> None:
    """P1, P9, 2.1: `range(n)` is `T.serial(n)`, with a bound known at the launch too."""
    emits("for i in range(5):\n    out[i] = i", 1)
    like_python("for i in range(n):\n    out[i] = i + 1")


def test_range_with_two_or_three_arguments_has_pythons_meaning() -> None:
    """P2, 2.1: `range(a, b, s)`: steps of either sign, empty ranges."""
    like_python("""
for i in range(2, 7):
    out[i] += 1
for i in range(1, 8, 3):
    out[i] += 10
for i in range(7, 0, -2):
    out[i] += 100
for i in range(5, 2):
    out[i] += 1000
for i in range(2, 5, -1):
    out[i] += 1000
for i in range(-2):
    out[i] += 1000
for i in range(-3, -1):
    out[-i] += 7
""")


def test_bounds_and_steps_of_range_may_be_device_values() -> None:
    """2.2: Bounds and step may be known only at the launch."""
    body = "for i in range(a[0], n + 4, m):\n    out[i] = i\nfor i in range(m, n):\n    res[i] = 1.0"
    like_python(body, numbers=((3, 5), (1, 1), (4, 2)))


def test_a_range_step_of_unknown_sign_is_right_for_both_signs() -> None:
    """2.3: The sign of the step is looked at in the kernel."""
    body = "for i in range(n, 4, m):\n    out[i] += 1\nfor i in range(4, n, -m):\n    out[i] += 10"
    like_python(body, numbers=((7, -2), (0, 3), (7, 1), (0, -1), (4, 1)))


def test_a_constant_range_step_of_zero_is_refused() -> None:
    """2.4: Step 0, also one that Python computes."""
    refuses("for i in range(0, n, 3 - 3):  #!\n    out[i] = 1", ("TL141", "range(0, n, 3 - 3)", "step"))


def test_the_variable_of_range_takes_the_wider_type_of_the_bounds() -> None:
    """2.5: An int64 bound gives an int64 variable, wherever it stands."""
    text = cell(
        "for i in range(big[0] - 1, big[0] + n):\n    big[1] = i * 2\nfor i in range(n, big[0] - big[0]):\n    big[2] = i",
        parameters='big: T.Tensor((3,), "int64"), n: T.int32',
    )
    k = compiled(text).kernels["k"]
    big = np.array([2**40, 0, 5], np.int64)
    k(big, 3)
    assert big.tolist() == [2**40, (2**40 + 2) * 2, 5]


@pytest.mark.parametrize("loop", ["builtins.range(3)", "steps(3)", "STORED", "[range][0](0, 3)"])
def test_an_alias_of_range_and_a_stored_range_object_are_the_same_device_loop(loop: str) -> None:
    """P10, P13, 2.6: What counts is the object, not its spelling."""
    before = "import builtins\nsteps = range\nSTORED = range(3)"
    emits(f"for i in {loop}:\n    out[i] = i", 1, before=before)
    like_python(f"for i in {loop}:\n    out[i] = i + 1", before)


def test_a_range_object_made_in_the_kernel_is_a_device_loop() -> None:
    """P13, 2.6: Also where it was stored by the kernel's own text."""
    like_python("r = range(1, n)\nfor i in r:\n    out[i] = i\nfor i in range(8)[2:4]:\n    out[i] += 10")
    emits("r = range(6)[2:5]\nfor i in r:\n    out[i] = 1", 1)


def test_a_user_function_named_range_is_not_replaced() -> None:
    """P11, 2.7: It gives a compile-time iterable."""
    before = "def range(k):\n    return [k, 2 * k]"
    emits("for i in range(3):\n    out[i] = i", 2, before=before)
    like_python("for i in range(3):\n    out[i] = i", before)
    assert range is builtins.range


LOOPS = {
    "T.serial(6)": range(6),
    "T.serial(1, 8, 3)": range(1, 8, 3),
    "T.serial(7, -1, -2)": range(7, -1, -2),
    "T.unroll(2, 6)": range(2, 6),
    "T.unroll(7, 0, -3)": range(7, 0, -3),
    "T.Parallel(5)": range(5),
    "T.Pipelined(6, num_stages=2)": range(6),
    "T.Pipelined(2, 7, num_stages=3)": range(2, 7),
    "T.vectorized(4)": range(4),
    "T.vectorized(4, 8)": range(4, 8),
    "T.Persistent([8], 1, 0)": range(8),
    "T.thread_binding(1, thread='threadIdx.x')": range(1),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_loop_constructors_keep_their_own_behaviour(loop: str) -> None:
    """P12, 2.8: One statement for all turns, and start, stop and step as written."""
    emits(f"for i in {loop}:\n    out[i] = i + 1", 1)
    wanted = np.zeros(8, np.int32)
    wanted[list(LOOPS[loop])] = [i + 1 for i in LOOPS[loop]]
    computes(f"for i in {loop}:\n    out[i] = i + 1", out=wanted)


def test_grid_has_one_variable_per_extent() -> None:
    """P12, 2.8: `T.grid` nests serial loops in the order given."""
    computes(
        "x = 0\nfor i, j in T.grid(2, 3):\n    x = x * 3 + 1\n    out[i * 3 + j] = x", out=[1, 4, 13, 40, 121, 364]
    )


@pytest.mark.parametrize("kind", ["serial", "unroll"])
def test_serial_loops_take_device_values_as_bounds(kind: str) -> None:
    """2.8: As `range` does."""
    computes(f"for i in T.{kind}(n, m + 1):\n    out[i] = i", n=2, m=4, out=[0, 0, 2, 3, 4])


ITERABLES = [
    "[1, 3]",
    "(2, 5)",
    "{3: 'x', 4: 'y'}",
    "{3: 'x'}.keys()",
    "{'x': 3}.values()",
    "{6, 7}",
    "map(int, '13')",
    "filter(None, [0, 2, 0, 4])",
    "reversed([1, 2, 6])",
    "itertools.chain([1], (2,))",
    "itertools.islice(itertools.count(3), 2)",
    "(i * 2 for i in (1, 2))",
    "made(3)",
    "np.array([1, 4])",
    "np.arange(6).reshape(2, 3)[1]",
    "sorted({5, 1})",
    "b'\\x01\\x04'",
    "Own()",
]


@pytest.mark.parametrize("iterable", ITERABLES)
def test_other_iterables_expand_the_body_once_per_item(iterable: str) -> None:
    """P3, P14, 2.9: Lists, tuples, sets, views, iterators, arrays and a user's own iterables are consumed while building."""
    before = "import itertools\nimport numpy as np\ndef made(k):\n    yield k\n    yield k + 1\n"
    before += "class Own:\n    def __iter__(self):\n        return iter((2, 4))"
    like_python(f"for i in {iterable}:\n    out[i] += i + 1", before)
    names: dict = {}
    exec(before, names)
    emits(f"for i in {iterable}:\n    out[i] = 1", len(list(eval(iterable, names))), before=before)


def test_strings_items_and_shapes_are_compile_time_iterables() -> None:
    """2.9: Characters, items of a dict, the extents of a buffer."""
    like_python("for c in 'ab':\n    out[ord(c) - 97] = 4\nfor at, v in {2: 5, 3: n}.items():\n    out[at] = v")
    computes("for extent in out.shape:\n    out[0] = extent", out=[8])


def test_enumerate_and_zip_iterate_at_compile_time() -> None:
    """P8, 2.9: With nested targets and starts, over device values too."""
    emits("for at, v in enumerate([n, m], start=2):\n    out[at] = v", 2)
    like_python("for at, (v, w) in enumerate(zip([n, m], (m, n)), start=2):\n    out[at] = v * 10 + w")


def test_a_compile_time_loop_opens_no_scope() -> None:
    """2.10: What its body binds is there afterwards, its target too."""
    like_python("for i in [1, 4]:\n    x = n + i\nout[0] = x\nout[1] = i")


def test_what_cannot_be_iterated_is_refused_at_the_iterable() -> None:
    """2.11: A device value, a buffer, a region, an integer; the help says `range(...)`."""
    refuses(
        """
for i in n + 1:  #!
    out[0] = 1
for i in out:  #!
    out[0] = 1
for i in f[2:4]:  #!
    out[0] = 1
for i in 8:  #!
    out[0] = 1
for i in a[0]:  #!
    out[0] = 1
""",
        ("TL111", "n + 1", "range(n + 1)"),
        ("TL111", "out", "range"),
        ("TL111", "f[2:4]", "range"),
        ("TL111", "8", "range(8)"),
        ("TL111", "a[0]", "range"),
    )


def test_an_endless_iterable_is_refused_after_65536_items() -> None:
    """P15, 2.12: Never a hang, and the number is in the message."""
    text = refuses(
        "for i in itertools.count():  #!\n    pass",
        ("TL112", "for i in itertools.count():", "islice"),
        before="import itertools",
    )
    assert "65,536" in " ".join(said(text))


def test_as_many_items_as_the_limit_are_not_endless() -> None:
    """2.12: The limit is a setting of the session, and the item after it is the first one refused."""
    body = "for i in items:\n    out[0] = i"
    for count, errors in ((4, []), (5, [("TL112", 7)])):
        made = run_cell(kernel_text(body, before=f"items = [1] * {count}\n"), limits=Limits(items=4))
        assert made.errors == errors


def test_else_on_a_loop_is_refused() -> None:
    """2.14: On `for` of both kinds and on `while`, at what stands under it."""
    refuses(
        """
for i in range(n):
    out[i] = 1
else:
    out[0] = 2  #!
for i in [1]:
    out[i] = 1
else:
    out[0] = 3  #!
while n > 9:
    out[0] = 1
else:
    out[0] = 4  #!
""",
        *(("TL117", f"out[0] = {i}", "after the loop") for i in (2, 3, 4)),
    )


def test_while_evaluates_its_condition_on_every_turn() -> None:
    """P4, 2.15: Also a condition with loads, with `and`, and one that is false at once."""
    like_python("""
i = 0
while i < n:
    i += 1
out[0] = i
while out[1] < m and a[out[1]] != 5:
    out[1] += 1
while n > 100:
    out[2] = 9
""")


@pytest.mark.parametrize("true", ["True", "1", "not False", "FLAG"])
def test_an_endless_while_is_refused(true: str) -> None:
    """2.16: A constant-true `while` that nothing leaves; a `break` of an inner loop does not leave it."""
    refuses(
        f"while {true}:  #!\n    out[0] += 1\n    for i in range(n):\n        break",
        ("TL118", f"while {true}:", "break"),
        before="FLAG = True",
    )


def test_a_while_true_that_a_break_can_leave_is_allowed() -> None:
    """2.16: The `break` may stand in conditions and in compile-time loops' bodies' branches."""
    like_python(
        "i = 0\nwhile True:\n    out[0] += 2\n    i = i + 1\n    if i > n:\n        if n < 100:\n            break"
    )


def test_a_while_true_whose_only_break_is_never_built_is_refused() -> None:
    """2.16: A `break` under a false compile-time condition leaves nothing."""
    body = "while True:  #!\n    out[0] += 1\n    if DEBUG:\n        break"
    refuses(body, ("TL118", "while True:", "break"), before="DEBUG = False")


def test_while_false_emits_nothing() -> None:
    """2.17: Its body is not even built."""
    emits("out[0] = 1\nwhile False:\n    out[1] = unknown_name", 1)


def test_break_and_continue_act_on_the_nearest_loop_of_the_text() -> None:
    """P7, 2.18: Whatever its kind, in every nesting."""
    like_python("""
for i in range(4):
    for j in [0, 1, 2]:
        if j == 1:
            continue
        out[i] += 1 + j
    if i == n:
        break
    out[i] += 100
for j in [4, 5, 6]:
    for i in range(5):
        if i == n:
            break
        if a[i] == 1:
            continue
        out[j] += 1
    if j == 5:
        break
""")


def test_compile_time_loops_break_and_continue_under_compile_time_conditions() -> None:
    """P17, 2.19: Nothing is emitted for the turns left out."""
    emits("for j in [0, 1, 2, 3]:\n    if j == 1:\n        continue\n    if j == 3:\n        break\n    out[j] = 1", 2)


def test_a_runtime_break_of_a_compile_time_loop_is_refused_with_the_line_of_the_loop() -> None:
    """P18, 2.20: At the statement; the help says a serial loop."""
    body = """
for j in [0, 1, 2]:
    if a[j] > 2:
        break  #!
    out[j] = 1
for j in (0, 1):
    if n > j:
        out[j] = 2
    elif n == 7:
        continue  #!
"""
    made = refuses(body, ("TL110", "break", "serial"), ("TL110", "continue", "serial"))
    assert [[note.span.line for note in d.notes if note.span] for d in made.diagnostics] == [[4], [8]]


def test_a_runtime_if_outside_a_compile_time_loop_does_not_restrict_it() -> None:
    """P20, 2.21: What counts is whether the condition stands inside the loop that is left."""
    like_python("""
if n > 2:
    for j in [0, 1, 2]:
        if j == 2:
            break
        out[j] = 1
for i in range(n):
    for j in (3, 4, 5):
        if j == 4:
            continue
        out[j] += 1
""")


@pytest.mark.parametrize("loop", ["range(8)", "T.serial(8)", "T.unroll(8)"])
def test_device_loops_break_and_continue_under_any_condition(loop: str) -> None:
    """P19, 2.22: Also inside a compile-time loop, also under a compile-time condition."""
    body = f"""
for r in [0, 1]:
    for i in {loop}:
        if a[i] == 5 + r * 2:
            break
        if a[i] % 2 == 0:
            continue
        if r == 7:
            break
        out[r] += a[i]
"""
    wanted = [sum(v for v in values if v % 2) for values in ((2, 0, 1), (2, 0, 1, 5, 3, -1, 4))]
    computes(body, out=wanted)


def test_while_breaks_and_continues_under_any_condition() -> None:
    """P7, 2.22: The condition is evaluated after `continue`."""
    like_python("""
for r in [0, 1]:
    i = 0
    while i < 8:
        i += 1
        if i == n:
            continue
        if i > m + r:
            break
        out[r] += i
""")


def test_continue_in_parallel_skips_its_iteration() -> None:
    """2.23: And no other one."""
    computes("for i in T.Parallel(8):\n    if a[i] < 3:\n        continue\n    out[i] = a[i]", threads=8,
             out=[0, 0, 0, 5, 3, 0, 4, 7])  # fmt: skip


def test_break_in_parallel_is_refused() -> None:
    """2.23: Its iterations have no order."""
    body = "for i in T.Parallel(8):\n    if a[i] < 3:\n        break  #!\n    out[i] = a[i]"
    refuses(body, ("TL119", "break", "serial"), threads=8)


def test_break_and_continue_in_vectorized_are_never_dropped() -> None:
    """2.24: They work, or are refused by TL119."""
    for statement, wanted in (("break", [2, 0, 1]), ("continue", [2, 0, 1, 0, 3, -1, 4])):
        text = cell(f"for i in T.vectorized(8):\n    if a[i] >= 5:\n        {statement}\n    out[i] = a[i]")
        made = tilelang_nb.compile_cell(text, target="sim")
        if made.ok:
            computes(
                f"for i in T.vectorized(8):\n    if a[i] >= 5:\n        {statement}\n    out[i] = a[i]", out=wanted
            )
        else:
            assert [d.code for d in made.diagnostics] == ["TL119"]


def test_break_and_continue_in_pipelined_work() -> None:
    """2.25: As in a serial loop."""
    for statement, wanted in (("break", [2, 0, 1]), ("continue", [2, 0, 1, 0, 3, -1, 4])):
        body = f"for i in T.Pipelined(8, num_stages=2):\n    if a[i] >= 5:\n        {statement}\n    out[i] = a[i]"
        computes(body, out=wanted)


def test_statements_after_an_unconditional_break_are_not_emitted() -> None:
    """2.26: In loops of every kind, and below conditions."""
    emits("for i in range(n):\n    out[i] = 1\n    break\n    out[i] = 2", 1)
    emits("for i in range(n):\n    if i > 2:\n        continue\n        out[i] = 2\n    out[i] = 3", 1)
    emits("while n > m:\n    break\n    out[0] = 2\nfor i in [1, 2]:\n    break\n    out[i] = 2", 0)


@pytest.mark.parametrize("loop", ["range(4)", "T.serial(4)", "T.unroll(4)", "T.Parallel(4)", "T.Pipelined(4)"])
def test_the_variable_of_a_device_loop_is_gone_after_it(loop: str) -> None:
    """2.27: TL131 at the use; that of a compile-time loop is there, as in Python."""
    refuses(f"for i in {loop}:\n    out[i] = 1\nout[0] = i + 1  #!", ("TL131", "i", "name of your own"))


def test_the_variable_of_a_compile_time_loop_keeps_its_last_value() -> None:
    """2.28: Also after a `break`."""
    like_python(
        "for i in [1, 3, 5]:\n    if i == 3:\n        break\nout[0] = i\nfor j in (n, m):\n    pass\nout[1] = j"
    )


def test_loops_of_both_kinds_nest_in_both_directions() -> None:
    """P16: And the compile-time loop inside a device loop is expanded once."""
    body = "for i in range(n):\n    for j in [0, 1]:\n        for p in range(2):\n            out[i] += j * p + 1"
    emits(body, 2)
    like_python(body)


def test_a_device_value_is_known_only_when_the_kernel_runs() -> None:
    """0.4: A device value is known only when the kernel runs: one build serves every value."""
    k = kernel("for i in range(n):\n    out[i] = m")
    for n in (0, 2, 8):
        assert launched(k, n, 9)["out"].tolist() == [9] * n + [0] * (8 - n)
