"""Completion requests as a front end sends them."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("%%tilel", "%%tilelang"),
        ("%%tilelang --", "--target"),
        ("%%tilelang --ta", "--target"),
        ("%%tilelang --quiet --st", "--stages"),
        ("%%tilelang --target ", "sim"),
        ("%%tilelang --target s", "sim"),
        ("%%tilelang --arch sm_9", "sm_90a"),
        ("%%tilelang --stages ti", "tile"),
        ("%%tilelang --stages tile,th", "thread"),
        ("# comment\n%%tilelang --ta", "--target"),
        ("%tilelang ex", "explain"),
        ("%tilelang explain TL10", "TL101"),
        ("x = 1\n%tilelang dev", "devices"),
    ],
)
def test_the_magic_line_is_completed(kernel: Any, text: str, wanted: str) -> None:
    kernel.run("%%tilelang\npass")  # the names of the stages are known once the compiler is loaded
    assert wanted in kernel.complete(text)


KERNEL = """%%tilelang --quiet
@T.prim_func
def softmax_rows(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=4):
        A[0] = 1.0
scale = 2
"""


@pytest.mark.parametrize("command", ["inspect", "freeze"])
def test_the_kernels_of_the_notebook_are_offered_by_name(kernel: Any, command: str) -> None:
    kernel.run(KERNEL)
    assert kernel.complete(f"%tilelang {command} ") == ["softmax_rows"]
    assert kernel.complete(f"%tilelang {command} soft") == ["softmax_rows"]


def test_an_option_that_is_there_is_not_offered_again(kernel: Any) -> None:
    assert "--quiet" not in kernel.complete("%%tilelang --quiet --")


def test_options_are_completed_with_a_body_below(kernel: Any) -> None:
    assert kernel.complete("%%tilelang --ta\nx = 1", len("%%tilelang --ta")) == ["--target"]


def test_python_in_the_body_is_completed_as_python(kernel: Any) -> None:
    kernel.run("import inspect")
    assert "inspect.getsourcefile" in kernel.complete("%%tilelang\ninspect.getsourcef") + [
        f"inspect.{name}" for name in kernel.complete("%%tilelang\ninspect.getsourcef")
    ]


@pytest.mark.parametrize("text", ["x --ta", "%%tilelang\nx --ta", "x = 1\n%%tilelang --ta", "%%timeit --ta"])
def test_other_places_are_left_alone(kernel: Any, text: str) -> None:
    assert "--target" not in kernel.complete(text)
