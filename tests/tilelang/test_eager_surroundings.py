"""An eager kernel is built anew when what it reads from outside has changed, and only then."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

import tilelang_nb

KERNEL = """
@jit
def f(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=8):
        for i in T.Parallel(N):
            B[i] = A[i] * FACTOR
    return B
"""
ONES = np.ones(8, np.float32)

# what is outside, the factor in the kernel, a change of it, and the factor after the change
CHANGES = {
    "an attribute of an instance": ("class Of: pass\nc = Of()\nc.by = 2", "c.by", "c.by = 3"),
    "a slot": ("class Of:\n    __slots__ = ('by',)\nc = Of()\nc.by = 2", "c.by", "c.by = 3"),
    "an attribute of a class": ("class Of:\n    by = 2", "Of.by", "Of.by = 3"),
    "an attribute of the class of an instance": ("class Of:\n    by = 2\nc = Of()", "c.by", "Of.by = 3"),
    "an attribute of a base class": ("class Base:\n    by = 2\nclass Of(Base): pass\nc = Of()", "c.by", "Base.by = 3"),
    "a simple namespace": ("from types import SimpleNamespace\nc = SimpleNamespace(by=2)", "c.by", "c.by = 3"),
    "an object in an object": (
        "class Of: pass\nc = Of()\nc.inner = Of()\nc.inner.by = [2]",
        "c.inner.by[0]",
        "c.inner.by[0] = 3",
    ),
    "an object in a dict": ("class Of: pass\nc = {'k': [Of()]}\nc['k'][0].by = 2", "c['k'][0].by", "c['k'][0].by = 3"),
    "an array": ("import numpy as np\nc = np.array([2, 5])", "int(c[0])", "c[0] = 3"),
    "a deque": ("from collections import deque\nc = deque([2])", "c[0]", "c[0] = 3"),
    "a helper's global": ("by = 2\ndef factor(): return by", "factor()", "by = 3"),
    "an object that a helper names": (
        "class Of: pass\nc = Of()\nc.by = 2\ndef factor(): return c.by",
        "factor()",
        "c.by = 3",
    ),
    "an attribute of a function": ("def factor(): return factor.by\nfactor.by = 2", "factor()", "factor.by = 3"),
    "a closure": (
        "def make():\n    by = 2\n    def get(): return by\n    def set(v):\n        nonlocal by\n        by = v\n    return get, set\nget, set_ = make()",
        "get()",
        "set_(3)",
    ),
    "an object that a macro names": (
        "class Of: pass\nc = Of()\nc.by = 2\n@T.macro\ndef scaled(x):\n    return x * c.by",
        "scaled(1)",
        "c.by = 3",
    ),
}


def run(text: str, names: dict) -> dict:
    made = tilelang_nb.compile_cell(text, names)
    assert made.ok, made.to_text()
    return made.namespace


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_outside_builds_the_kernel_anew(kind: str) -> None:
    before, factor, change = CHANGES[kind]
    names = run(before + KERNEL.replace("FACTOR", factor), {})
    for _ in range(2):
        assert names["f"](ONES).tolist() == [2.0] * 8
    assert len(names["f"].kernels) == 1
    run(change, names)
    for _ in range(2):
        assert names["f"](ONES).tolist() == [3.0] * 8
    assert len(names["f"].kernels) == 2


def test_a_member_of_a_module_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("settings_of_the_user")
    module.by, module.other = 2, 1
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = run("import settings_of_the_user as s" + KERNEL.replace("FACTOR", "s.by"), {})
    assert names["f"](ONES).tolist() == [2.0] * 8
    module.other = 5
    assert names["f"](ONES).tolist() == [2.0] * 8 and len(names["f"].kernels) == 1
    module.by = 3
    assert names["f"](ONES).tolist() == [3.0] * 8


def test_what_has_not_changed_builds_nothing() -> None:
    before = "class Of: pass\nc, other = Of(), Of()\nc.by, c.items, other.by = 2, [1, {2: 3}], 1\nimport numpy as np\n"
    names = run(before + KERNEL.replace("FACTOR", "c.by"), {})
    names["f"](ONES)
    run("other.by = 9\nunrelated = 4\nc.items = [1, {2: 3}]", names)
    names["f"](ONES)
    assert len(names["f"].kernels) == 1


def test_an_argument_that_changes_builds_the_kernel_anew() -> None:
    text = "class Of: pass\nc = Of()\nc.by = 2" + KERNEL.replace("f(A)", "f(A, c)").replace("FACTOR", "c.by")
    names = run(text, {})
    assert names["f"](ONES, names["c"]).tolist() == [2.0] * 8
    names["c"].by = 3
    assert names["f"](ONES, names["c"]).tolist() == [3.0] * 8 and len(names["f"].kernels) == 2
