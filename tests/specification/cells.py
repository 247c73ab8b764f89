"""Cells for the tests of the specification: what a kernel computes, and what is said where a cell is refused.

The kernel `k` of a body has four arrays of 8 elements, `a` and `out` (int32), `f` and `res` (float32), and two integers,
`n` and `m`.  Where Python can run the body itself, its result is what the kernel has to give.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import tilelang_nb

PARAMETERS = ", ".join(f'{name}: T.Tensor((8,), "{dtype}")' for name, dtype in
                       (("a", "int32"), ("f", "float32"), ("out", "int32"), ("res", "float32")))  # fmt: skip
PARAMETERS += ", n: T.int32, m: T.int32"
NUMBERS = ((3, 5), (0, 1), (4, 2))
MARK = "  #!"  # at the end of each line that a mistake stands on
INTERNALS = re.compile(r"Traceback \(most recent call last\)|__tb|<locals>|site-packages|tilelang_nb/")


def arrays() -> dict[str, np.ndarray]:
    """What the tensors of `k` hold at the launch."""
    return {
        "a": np.array([2, 0, 1, 5, 3, -1, 4, 7], np.int32),
        "f": np.array([-2.5, 3.75, 0.5, -0.25, 1.5, 2.5, 0.0, 9.0], np.float32),
        "out": np.zeros(8, np.int32),
        "res": np.zeros(8, np.float32),
    }


def cell(body: str, before: str = "", parameters: str = PARAMETERS, threads: int = 1) -> str:
    """The text of a cell with the kernel `k`: one block that executes the body."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    head = f"{before.strip()}\n" if before else ""
    return f"{head}@T.prim_func\ndef k({parameters}):\n    with T.Kernel(1, threads={threads}):\n{lines}"


def compiled(text: str, *warnings: str, **options: Any) -> tilelang_nb.Compilation:
    """A cell that has to compile, with exactly these warnings."""
    made = tilelang_nb.compile_cell(text, target="sim", **options)
    assert made.ok, made.to_text()
    assert [d.code for d in made.diagnostics] == list(warnings), made.to_text()
    return made


def kernel(body: str, *warnings: str, **parts: Any) -> Any:
    """The kernel `k` of a body."""
    return compiled(cell(body, **parts), *warnings).kernels["k"]


def launched(k: Any, n: int = 3, m: int = 5, **given: Any) -> dict[str, np.ndarray]:
    """The arrays after a launch that has to end without findings."""
    held = {**arrays(), **given}
    k(*held.values(), n, m)
    assert k.findings == ()
    return held


def computes(body: str, *, n: int = 3, m: int = 5, before: str = "", threads: int = 1, **wanted: Any) -> None:
    """After a launch each array named begins with the values given, and every other element is as it was."""
    check(launched(kernel(body, before=before, threads=threads), n, m), wanted)


def check(held: dict[str, np.ndarray], wanted: dict[str, Any]) -> None:
    expected = arrays()
    for name, values in wanted.items():
        expected[name][: len(values)] = values
    compare(held, expected)


def compare(held: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name, values in expected.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(held[name], values, rtol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(held[name], values, err_msg=name)


def like_python(body: str, before: str = "", numbers: tuple[tuple[int, int], ...] = NUMBERS) -> None:
    """The kernel leaves in every array what Python leaves there when it runs the same text."""
    k = kernel(body, before=before)
    for n, m in numbers:
        expected = arrays()
        names: dict[str, Any] = {}
        exec(before, names)
        exec(body.strip("\n"), {**names, **expected, "n": n, "m": m})
        compare(launched(k, n, m), expected)


def emits(body: str, count: int, operation: str = "] = ", **parts: Any) -> None:
    """So many statements of the tile program hold this text: by default, stores."""
    script = kernel(body, **parts).stages[1].text
    assert sum(operation in line for line in script.split("\n")) == count, script


Mistake = tuple[str, str, str]


def refuses(body: str, *mistakes: Mistake, before: str = "", threads: int = 1) -> tilelang_nb.Compilation:
    """The errors are exactly these: code, first line of the text covered, a word of the help.  They stand on the lines
    that end in `#!`.
    """
    return refuses_cell(cell(body, before, threads=threads), *mistakes)


def refuses_cell(text: str, *mistakes: Mistake, **options: Any) -> tilelang_nb.Compilation:
    """`refuses` for the text of a whole cell."""
    lines = text.split("\n")
    marked = [number for number, line in enumerate(lines, options.get("first_line", 1)) if line.endswith(MARK)]
    assert len(marked) == len(mistakes), "mark each line that is refused"
    plain = "\n".join(line.removesuffix(MARK) for line in lines)
    made = tilelang_nb.compile_cell(plain, target="sim", **options)
    errors = [d for d in made.diagnostics if d.severity == "error"]
    found = [(d.code, d.span.line, made.text.slice(d.span).split("\n")[0].strip()) for d in errors]
    assert found == [(code, line, at) for line, (code, at, _) in zip(marked, mistakes)], made.to_text()
    for error, (code, _, word) in zip(errors, mistakes):
        assert word and word in error.help, f"the help of {code} is {error.help!r}"
        assert len(error.label) <= 60
    assert not INTERNALS.search(made.to_text()), made.to_text()
    return made


def said(made: tilelang_nb.Compilation) -> list[str]:
    """Message and label of every diagnostic, with its notes."""
    return [" ".join([d.message, d.label, *map(str, d.notes)]) for d in made.diagnostics]
