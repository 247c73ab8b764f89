"""What ends a program: Ctrl-C interrupts the cell; what code of the cell raises of that kind is a mistake at its place."""

from __future__ import annotations

import _thread
import io
import signal
import sys
import threading
from typing import Any

import pytest

import tilelang_nb

KINDS = ["KeyboardInterrupt", "SystemExit", "GeneratorExit", "BaseException", "MemoryError", "RecursionError"]
TRAPS = [
    "iter",
    "getattr",
    "index",
    "repr",
    "len",
    "bool",
    "hash",
    "eq",
    "add",
    "radd",
    "float",
    "call",
    "getitem",
    "enter",
    "contains",
    "str",
    "format",
]
BAD = "class Bad:\n" + "".join(f"    def __{name}__(self, *a): raise KIND\n" for name in TRAPS)
BAD += "bad = Bad()\ndef boom(*a): raise KIND\n"
LINES = [
    "for v in bad: A[1] = v",
    "x1 = bad.name",
    "A[bad] = 1.0",
    "x2 = f'{bad}'",
    "x3 = len(bad)",
    "x4 = 1 if bad else 2",
    "x5 = {bad: 1}",
    "x6 = bad == 1",
    "A[0] = bad + 1",
    "A[0] = A[1] + bad",
    "A[0] = float(bad)",
    "x7 = bad(1)",
    "x8 = bad[0]",
    "x9 = 1 in bad",
    "print(bad)",
    "x10 = [boom() for i in range(2)]",
    "x11 = (lambda: boom())()",
    "x12 = list(map(boom, [1]))",
    "x13 = sorted([3, 1], key=boom)",
    "assert bad",
    "x14, y14 = bad",
    "for i in T.serial(bad): A[i] = 0",
    "T.copy(A, bad)",
    "if bad: A[0] = 1",
]
ENDLESS = {
    "a statement of the cell": "while True: pass",
    "compile-time code": """
def slow():
    while True: pass
@T.prim_func
def k(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        A[0] = slow()
""",
    "an iterable": """
def slow():
    while True:
        pass
    yield 1
@T.prim_func
def k(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for v in slow():
            A[0] = v
""",
    "a repr": """
class Slow:
    def __repr__(self):
        while True: pass
@T.prim_func
def k(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for v in [Slow()]:
            A[0] = 1.0
""",
    "a launch": """
import numpy as np
@T.prim_func
def k(A: T.Tensor((8,), "float32")):
    with T.Kernel(100000, threads=512):
        for i in T.serial(100000):
            A[0] = 1.0
k(np.zeros(8, "f4"))
""",
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_objects_of_the_cell_raise_is_a_mistake_at_its_line(kind: str) -> None:
    head = (
        BAD.replace("KIND", kind)
        + '@T.prim_func\ndef k(A: T.Tensor((8,), "float32")):\n    with T.Kernel(1, threads=8):\n'
    )
    text = head + "".join(f"        {line}\n" for line in LINES) + "        A[0] = later\n"
    c = tilelang_nb.compile_cell(text, target="sim")
    first = head.count("\n") + 1
    found = {d.span.line: d.code for d in c.diagnostics}
    assert sorted(found) == list(range(first, first + len(LINES) + 1)), c.to_text()
    assert "TL900" not in found.values() and found[first + len(LINES)] == "TL002"


@pytest.mark.parametrize(
    "line", ["exit()", "quit()", "raise SystemExit(3)", "raise KeyboardInterrupt", "raise GeneratorExit"]
)
def test_a_cell_does_not_end_the_process(line: str) -> None:
    c = tilelang_nb.compile_cell(f"x = 1\n{line}\ny = 2\n")
    assert [(d.code, d.span.line) for d in c.diagnostics] == [("TL144", 2)] and "y" not in c.namespace


def interrupted(text: str) -> tilelang_nb.Compilation:
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    try:
        return tilelang_nb.compile_cell(text, target="sim")
    finally:
        timer.cancel()


@pytest.mark.parametrize("place", ENDLESS)
def test_ctrl_c_interrupts_whatever_runs(place: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(ENDLESS[place])
    assert tilelang_nb.compile_cell("x = 1").ok


def test_ctrl_c_that_goes_through_a_handler_in_python_interrupts_too() -> None:
    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted("while True: pass")
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_deleted_object_that_raises_ends_nothing() -> None:
    text = "class D:\n    def __del__(self): raise KIND\nd = D()\ndel d\nx = [D()]\nx.clear()\ny = 1\n"
    for kind in KINDS:
        with _silence():
            assert tilelang_nb.compile_cell(text.replace("KIND", kind)).namespace["y"] == 1


class _silence:
    """Without the hook that tells of exceptions nobody can catch."""

    def __enter__(self) -> None:
        self.hook, sys.unraisablehook = sys.unraisablehook, lambda *_: None

    def __exit__(self, *_: Any) -> None:
        sys.unraisablehook = self.hook


def test_a_cell_may_take_the_standard_output_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
import sys
import numpy as np
sys.stdout = None
@T.prim_func
def k(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=1):
        print("built")
        T.print(A[0])
k(np.zeros(8, "f4"))
"""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert tilelang_nb.compile_cell(text, target="sim").ok
