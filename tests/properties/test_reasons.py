"""The flow analysis that judges refusals finds the reasons that are there, and none where there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from frontend.random_kernels import HEAD
from properties.reasons import reason_is_found

BODIES = {
    # code, name, line of the body and text of the place: with a reason, and without one
    "carried": ("TL134", "x", "x = 0\nfor i in T.Parallel(3):\n    x = x + a[i]", 3, "x = x", True),
    "read after the loop": ("TL134", "x", "x = 0\nfor i in T.Parallel(3):\n    x = a[i]\nout[0] = x", 3, "x = a", True),
    "own to an iteration": ("TL134", "x", "for i in T.Parallel(3):\n    x = a[i]\n    out[i] = x", 2, "x = a", False),
    "bound anew after it": (
        "TL134",
        "x",
        "x = 0\nfor i in T.Parallel(3):\n    x = a[i]\n    out[i] = x\nx = 1\nout[0] = x",
        3,
        "x = a",
        False,
    ),
    "bound in one branch, read": (
        "TL134",
        "x",
        "x = 0\nfor i in T.Parallel(3):\n    if a[i] > 1:\n        x = 5\n    out[i] = x",
        4,
        "x = 5",
        True,
    ),
    "a serial loop": ("TL134", "x", "x = 0\nfor i in range(3):\n    x = x + a[i]", 3, "x = x", False),
    "left by a break": (
        "TL134",
        "x",
        "x = 0\nfor j in range(2):\n    for i in T.Parallel(3):\n        x = a[i]\n    if n > j:\n        break\n    x = 1\nout[0] = x",
        4,
        "x = a",
        True,
    ),
    "beside a comprehension's own": (
        "TL134",
        "x",
        "x = 0\nfor i in T.Parallel(3):\n    y = [x for x in (n, 2)][1]\n    x = y\nout[0] = x",
        4,
        "x = y",
        True,
    ),
    "runtime break": ("TL110", "break", "for v in (1, 2):\n    if n > v:\n        break", 3, "break", True),
    "compile-time break": ("TL110", "break", "for v in (1, 2):\n    if v > 1:\n        break", 3, "break", False),
    "break of a device loop": (
        "TL110",
        "break",
        "for v in (1, 2):\n    for i in range(3):\n        if n > i:\n            break",
        4,
        "break",
        False,
    ),
    "condition made at run time": (
        "TL110",
        "continue",
        "x = 0\nif n > 2:\n    x = 1\nfor v in (1, 2):\n    if x > v:\n        continue",
        6,
        "continue",
        True,
    ),
    "unbound on a path": ("TL130", "y", "if n > 2:\n    y = 1\nout[0] = y", 3, "y", True),
    "bound on both": ("TL130", "y", "if n > 2:\n    y = 1\nelse:\n    y = 2\nout[0] = y", 5, "y", False),
    "bound in a loop that may not run": ("TL130", "y", "for i in range(n):\n    y = 1\nout[0] = y", 3, "y", True),
    "never bound": ("TL002", "y", "out[0] = y", 1, "y", True),
    "bound before": ("TL002", "y", "y = 1\nout[0] = y", 2, "y", False),
    "bound by a walrus": ("TL002", "y", "out[0] = (y := 1)\nout[1] = y", 2, "y", False),
    "a variable of a comprehension": ("TL002", "v", "out[0] = sum(v for v in (1, 2))", 1, "out", False),
    "the variable of a loop after it": ("TL131", "i", "for i in range(n):\n    out[i] = 1\nout[0] = i", 3, "i", True),
    "a code without a reason": ("TL205", "x", "x = n\nout[0] = x", 2, "x", False),
}


@pytest.mark.parametrize("title", BODIES)
def test_a_reason_is_found_where_there_is_one(title: str) -> None:
    code, name, body, line, place, wanted = BODIES[title]
    text = "".join(f"        {row}\n" for row in body.split("\n"))
    row = body.split("\n")[line - 1]
    before = HEAD.count("\n")
    span = SimpleNamespace(line=before + line, column=8 + row.rindex(place))
    found: Any = SimpleNamespace(code=code, message=f"`{name}` is at fault", span=span)
    assert reason_is_found(found, HEAD + text) is wanted
