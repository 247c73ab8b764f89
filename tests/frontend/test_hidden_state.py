"""State that code outside the walk changes: refused under device control flow, as Python's elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.cells import kernel, run_cell

BEFORE = """
import array, collections, functools, heapq, itertools, logging, random, threading, types
import numpy as np
count = 0
def bump():
    global count
    count += 1
    return count
def indirect():
    return bump()
def counter():
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    return step
step = counter()
class Box:
    total = 0
    def __init__(self): self.n = 0
    def next(self):
        self.n += 1
        return self.n
    @classmethod
    def more(cls):
        cls.total += 1
        return cls.total
    def __iadd__(self, other):
        self.n += other
        return self
    @property
    def fresh(self):
        self.n += 1
        return self.n
    @functools.cached_property
    def kept(self): return self.n + 5
class Slotted:
    __slots__ = ("n",)
    def __init__(self): self.n = 0
    def next(self):
        self.n += 1
        return self.n
box, slotted, record = Box(), Slotted(), types.SimpleNamespace(n=0)
def of_record():
    record.n += 1
    return record.n
def through(obj):
    obj.n += 1
    return obj.n
def by_name(obj):
    setattr(obj, "n", obj.n + 1)
    return obj.n
nested = {"a": [[1]]}
def deep():
    nested["a"][0].append(1)
    return len(nested["a"][0])
table = np.zeros(4, "int32")
def tabled():
    table[0] += 1
    return int(table[0])
def tabled_of(x):
    np.add.at(x, 0, 1)
    return int(x[0])
def drawn(): return random.randint(0, 7)
def drawn_np(): return int(np.random.randint(8))
rng = np.random.default_rng(1)
def drawn_rng(): return int(rng.integers(8))
def by_attribute():
    by_attribute.n = getattr(by_attribute, "n", 0) + 1
    return by_attribute.n
def in_globals():
    globals()["count"] += 1
    return count
def items():
    global count
    count += 1
    yield count
memory = {}
def remembered(x):
    memory[x] = memory.get(x, 0) + 1
    return memory[x]
partial = functools.partial(through, box)

class Counting(type):
    n = 0
    def more(cls):
        cls.n += 1
        return cls.n
class Counted(metaclass=Counting): pass
class Inheriting(Box): pass
local = threading.local()
local.n = 0
numbers = array.array("i", [0])
def of_array():
    numbers[0] += 1
    return numbers[0]
def by_generator(made=(i for i in range(100))): return next(made)
turns = itertools.cycle([1, 2, 3])
def of_cycle(): return next(turns)
heap = [3]
def pushed():
    heapq.heappush(heap, 1)
    return heap[0]

@functools.cache
def cached(x): return x * 2
@functools.lru_cache
def fib(x): return x if x < 2 else fib(x - 1) + fib(x - 2)
log = logging.getLogger("kernel")
def logged(x):
    log.warning("built %d", x) if x > 100 else log.debug("built %d", x)
    return x
def made(n):
    found = []
    for i in range(n): found.append(i)
    b = Box()
    b.next(); b.n += 1
    return sum(found) + b.n
def filled(items):
    items.append(1)
    return len(items)
def fresh_rng(): return random.Random(3).randint(0, 7)
"""
LASTING = ["bump()", "indirect()", "step()", "box.next()", "Box.more()", "slotted.next()", "of_record()",
           "through(box)", "through(record)", "by_name(box)", "deep()", "tabled()", "tabled_of(table)",
           "random.random()", "random.randint(0, 7)", "np.random.rand()", "rng.integers(8)", "drawn()", "drawn_np()",
           "drawn_rng()", "by_attribute()", "in_globals()", "remembered(1)", "partial()", "next(iter(items()))",
           "sum(items())", "list(map(lambda _: bump(), [1]))[0]", "sum(bump() for _ in (1, 2))",
           "max((1, 2), key=lambda v: bump())", "filled(nested['a'])", "(lambda: bump())()", "Counted.more()", "Inheriting.more()",
           "through(local)", "of_array()", "by_generator()", "of_cycle()", "pushed()"]  # fmt: skip
AROUND = [("for i in range(4):", call) for call in LASTING]
AROUND += [(around, "bump()") for around in ("if n > 3:", "while n > 3:", "for i in T.Parallel(4):")]
HARMLESS = ["cached(3)", "fib(9)", "logged(4)", "made(3)", "filled([])", "fresh_rng()", "box.kept", "Box().next()",
            "counter()()", "collections.Counter('aab')['a']", "sorted([2, 1], key=lambda v: -v)[0]", "len(nested)",
            "functools.reduce(lambda a, b: a + b, [1, 2])"]  # fmt: skip
LINES = len(kernel("pass", before=BEFORE).split("\n")) - 1


@pytest.mark.parametrize(("around", "call"), AROUND)
def test_what_a_call_changes_for_good_is_refused_at_the_call(around: str, call: str) -> None:
    cell = run_cell(kernel(f"{around}\n    out[0] = {call}", before=BEFORE))
    assert [code for code, _ in cell.errors] == ["TL133"], [str(d) for d in cell.diagnostics]
    assert cell.errors[0][1] == LINES + 1
    assert cell.marked()[0][1] in call


@pytest.mark.parametrize("call", [text for text in LASTING if "key=" not in text])
def test_what_an_operand_under_a_condition_changes_for_good_is_refused(call: str) -> None:
    cell = run_cell(kernel(f"out[0] = {call} if n > 3 else 0", before=BEFORE))
    assert [code for code, _ in cell.errors] == ["TL133"], [str(d) for d in cell.diagnostics]


@pytest.mark.parametrize("statement", ["box += 1", "out[0] = box.fresh", "for v in items(): out[0] = v"])
def test_what_runs_without_a_call_and_changes_something_for_good_is_refused(statement: str) -> None:
    body = f"mine = box\nfor i in range(4):\n    {statement.replace('box', 'mine')}"
    cell = run_cell(kernel(body, before=BEFORE))
    assert {code for code, _ in cell.errors} == {"TL133"}, [str(d) for d in cell.diagnostics]


@pytest.mark.parametrize("call", HARMLESS)
def test_what_leaves_nothing_behind_is_accepted_under_device_control_flow(call: str) -> None:
    cell = run_cell(kernel(f"for i in range(4):\n    out[i] = {call}", before=BEFORE))
    wanted = eval(call, cell.namespace)
    out = np.zeros(8, "int32")
    cell.run(out.copy(), out, np.zeros(8, "float32"), 1, 2)
    assert list(out[:4]) == [wanted] * 4


@pytest.mark.parametrize("call", ["bump()", "step()", "box.next()", "of_record()", "tabled()", "deep()", "drawn_rng()"])
def test_outside_device_control_flow_a_call_counts_once_however_often_the_build_restarts(call: str) -> None:
    body = f"x = 0\nout[0] = {call}\nfor i in range(4):\n    x += 1\nif n > 3:\n    x = 7\nout[1] = x\nout[2] = {call}"
    cell = run_cell(kernel(body, before=BEFORE))
    python = run_cell(kernel("pass", before=BEFORE)).namespace
    wanted = eval(call, python), eval(call, python)
    out = np.zeros(8, "int32")
    cell.run(out.copy(), out, np.zeros(8, "float32"), 1, 2)
    assert (out[0], out[1], out[2]) == (wanted[0], 4, wanted[1])
    assert eval(call, cell.namespace) == eval(call, python)


@pytest.mark.parametrize(
    "body",
    [
        "xs = [1]\nfor i in range(4):\n    ys = xs\n    ys.append(1)",
        "xs = [1]\nfor i in range(4):\n    grow(xs)",
        "w = np.zeros(3)\nfor i in range(4):\n    w += 1\nout[0] = int(w[0])",
        "for i in range(4):\n    xs = []\n    if n > 3:\n        xs.append(1)",
    ],
)
def test_another_name_for_an_object_from_outside_does_not_make_it_one_s_own(body: str) -> None:
    macro = "\n@T.macro\ndef grow(v):\n    v.append(1)\n"
    cell = run_cell(kernel(body, before="import numpy as np" + macro))
    assert [code for code, _ in cell.errors] == ["TL133"], [str(d) for d in cell.diagnostics]


def test_a_macro_may_change_what_the_block_around_its_call_made() -> None:
    macro = "\n@T.macro\ndef grow(v):\n    v.append(5)\n"
    cell = run_cell(kernel("for i in range(4):\n    xs = []\n    grow(xs)\n    out[i] = xs[0]", before=macro))
    out = np.zeros(8, "int32")
    cell.run(out.copy(), out, np.zeros(8, "float32"), 1, 2)
    assert list(out[:4]) == [5] * 4
