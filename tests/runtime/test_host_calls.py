"""Operations of the language in plain host code: a located diagnostic that says where they belong, whatever calls them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilelang_nb
import tilelang_nb.language as T
from tilelang_nb.source.diagnostic import Refusal

HERE = Path(__file__).name


def refused(call: object) -> tilelang_nb.CompileError:
    with pytest.raises(tilelang_nb.CompileError) as caught:
        call()  # type: ignore[operator]
    assert isinstance(caught.value, Refusal)  # where the front end evaluates host code, it is located like any other
    return caught.value


CALLS = {
    "an allocation": (lambda: T.alloc_shared((4,), "float32"), "TL004", "`T.alloc_shared` outside a kernel"),
    "a barrier": (lambda: T.sync_threads(), "TL004", "`T.sync_threads` outside a kernel"),
    "a copy of arrays": (lambda: T.copy(np.ones(4), np.ones(4)), "TL004", "`T.copy` outside a kernel"),
    "a product of arrays": (lambda: T.gemm(np.ones(4), 1, 2), "TL004", "`T.gemm` outside a kernel"),
    "a dtype": (lambda: T.Tensor((4,), "flaot32"), "TL205", "there is no dtype `flaot32`"),
    "an argument": (lambda: T.ceildiv(4), "TL004", "`T.ceildiv` needs"),
    "a launch": (lambda: T.Kernel(1).__enter__(), "TL208", "in a function that is no kernel"),
    "a loop": (lambda: iter(T.Parallel(4)), "TL111", "`T.Parallel` in a function that is no kernel"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_is_a_diagnostic_at_the_line_of_the_caller(name: str) -> None:
    call, code, words = CALLS[name]
    error = refused(call)
    (found,) = error.diagnostics
    assert found.code == code and words in found.message and found.help
    assert found.span is not None and name in error.text.line(found.span.line)
    shown = str(error)
    assert f"error[{code}]" in shown and f"{HERE}:{found.span.line}:" in shown and "= help:" in shown
    if found.label == "works only in a kernel or macro":
        assert "`@T.prim_func` or `@T.macro`" in found.help


def test_what_works_on_the_host_goes_on_working() -> None:
    assert T.ceildiv(5, 2) == 3 and T.max(1, 2) == 2 and T.Tensor((4,), "float32").shape == (4,)


def test_only_the_header_of_a_loop_is_marked() -> None:
    def plain() -> None:
        for i in T.Parallel(4):
            print(i)

    error = refused(plain)
    span = error.diagnostics[0].span
    assert error.text.slice(span) == "for i in T.Parallel(4):"


def test_a_script_ends_with_the_diagnostic(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("import tilelang_nb.language as T\n\ntile = T.alloc_shared((4,), 'float32')\n")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.rstrip().endswith(
        "error[TL004]: `T.alloc_shared` outside a kernel\n"
        f" --> {script}:3:8\n"
        "3 | tile = T.alloc_shared((4,), 'float32')\n"
        "  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ works only in a kernel or macro\n"
        "  = help: call it in a function with `@T.prim_func` or `@T.macro`"
    )
    assert run.stderr.count("tilelang_nb") <= 3  # the module of the exception, and one frame


def test_host_code_of_a_cell_has_the_same_words_and_edits() -> None:
    text = "def make(kind):\n    return T.Tensor((4,), kind)\nmake('flaot32')\nx = 1\n"
    (found,) = tilelang_nb.compile_cell(text, filename="In[1]").diagnostics
    assert (found.code, found.span.line) == ("TL205", 2) and "float32" in found.help
    (found,) = tilelang_nb.compile_cell("T.clear(3)\n", filename="In[1]").diagnostics
    assert found.code == "TL004" and found.span.line == 1
    (found,) = tilelang_nb.compile_cell("import numpy as np\nT.copy(np.ones(3), np.ones(3))\n").diagnostics
    assert found.message == "`T.copy` outside a kernel"
