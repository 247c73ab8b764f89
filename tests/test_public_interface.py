"""The names that users and tools rely on, and that importing the package loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tilelang_nb

HEAVY = ("tvm", "numpy", "ml_dtypes", "numba", "IPython", "ipywidgets", "anywidget", "threadpoolctl")


def loaded_after(statement: str) -> set[str]:
    """Top-level modules in a fresh process after a statement."""
    code = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("statement", ["import tilelang_nb", "import tilelang_nb.cli"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert not loaded_after(statement).intersection(HEAVY)


def test_numba_and_ipython_stay_out_of_compiling() -> None:
    loaded = loaded_after("import tilelang_nb; tilelang_nb.compile_cell('x = 1')")
    assert "tvm" in loaded and not loaded & {"numba", "IPython", "ipywidgets", "anywidget"}


@pytest.mark.parametrize("name", sorted(tilelang_nb.__all__))
def test_public_names_are_there(name: str) -> None:
    assert getattr(tilelang_nb, name) is not None and name in dir(tilelang_nb)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tilelang_nb.no_such_name


CELL = """
@T.prim_func
def add(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=32) as bx:
        for i in T.Parallel(32):
            C[bx * 32 + i] = A[bx * 32 + i] + B[bx * 32 + i]

answer = 6 * 7
answer
"""


def test_a_cell_becomes_a_compilation_with_kernels() -> None:
    c = tilelang_nb.compile_cell(CELL)
    assert c.ok and c.diagnostics == () and list(c.kernels) == ["add"]
    assert c.namespace["add"] is c.kernels["add"] and c.namespace["answer"] == c.result == 42
    assert "add" in c.to_text() and "add" in c.to_html() and "add" in c.to_json()
    with pytest.raises(AttributeError):
        c.target = None


def test_a_kernel_runs_and_shows_itself() -> None:
    k = tilelang_nb.compile_cell(CELL).namespace["add"]
    a, b, c = np.arange(64, dtype=np.float32), np.ones(64, np.float32), np.zeros(64, np.float32)
    assert k(a, b, C=c) is None
    assert np.array_equal(c, a + b)
    assert repr(k).startswith("<Kernel add(A: float32 (64,), B: float32 (64,), C: float32 (64,)) for sim")
    assert [p.name for p in k.parameters] == ["A", "B", "C"]
    names = [stage.name for stage in k.stages]
    assert names[:2] == ["source", "tile"] and "thread" in names and names[-3:] == ["cuda", "ptx", "sass"]
    assert k.findings == () and k.printed == () and len(k.counters) == 1
    for stage in k.stages:
        assert len(stage.lines) == len(stage.text.split("\n"))
    tile = k.stages[1]
    stored = [lines for lines, text in zip(tile.lines, tile.text.split("\n")) if "C[" in text]
    assert stored == [(6,)]
    assert k.unroll.kind == "kernel" and "add" in k.script()


def test_a_target_gives_another_kernel_and_the_same_target_the_same() -> None:
    k = tilelang_nb.compile_cell(CELL).namespace["add"]
    assert k.compile() is k and k.compile("sim") is k
    other = k.compile("sim", "sm_80")
    assert other is not k and other.target.arch == "sm_80" and k.target.arch == "sm_90a"


@pytest.mark.parametrize(
    "use",
    [
        lambda k: k.compile("cuda")(*[np.zeros(64, np.float32)] * 3),
        lambda k: k.compile("abacus"),
        lambda k: k.compile(arch="sm_12"),
        lambda k: k.compile("sim", "sm_70").ptx,
        lambda k: k.compile("sim", "sm_70").sass,
        lambda k: k.compile("sim", "sm_70").resources,
        lambda k: k.get_profiler().do_bench(),
    ],
)
def test_what_is_not_available_here_is_refused_with_the_reason(use: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    k = tilelang_nb.compile_cell(CELL).namespace["add"]
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        use(k)
    assert caught.value.diagnostic.code == "TL302" and caught.value.diagnostic.help


def test_device_code_is_there_without_a_device() -> None:
    k = tilelang_nb.compile_cell(CELL).namespace["add"].compile("sim", "sm_80")
    assert k.get_kernel_source() in k.cuda_source and "add_kernel(" in k.cuda_source
    assert ".target sm_80" in k.ptx and "STG" in k.sass
    assert k.resources.threads.value == 32 and 0 < k.resources.occupancy.value <= 1
    assert {figure.origin for _, figure in k.resources[0]} == {"ptxas", "compiler", "computed"}
    assert "add_kernel(" in k.compile("sim", "sm_70").cuda_source


def test_a_cell_for_cuda_compiles_anywhere_and_its_launch_is_refused_at_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    c = tilelang_nb.compile_cell(CELL, target="cuda")
    assert c.ok and c.diagnostics == ()
    with pytest.raises(tilelang_nb.LaunchError, match="TL302") as caught:
        c.namespace["add"](*[np.zeros(64, np.float32)] * 3)
    assert caught.value.text.slice(caught.value.diagnostic.span).startswith('c.namespace["add"](')
    assert "NUMBA_ENABLE_CUDASIM" in caught.value.diagnostic.message


def test_an_unknown_target_is_a_diagnostic_and_nothing_runs() -> None:
    c = tilelang_nb.compile_cell("ran = True", target="abacus")
    assert [d.code for d in c.diagnostics] == ["TL302"] and "ran" not in c.namespace


def test_a_refused_kernel_is_a_kernel_that_raises_its_diagnostics() -> None:
    c = tilelang_nb.compile_cell(
        "@T.prim_func\ndef k(A: T.Tensor((4,), 'int32')):\n    with T.Kernel(1):\n        a = b = A[0]\n"
    )
    k = c.kernels["k"]
    assert not c.ok and repr(k) == "<Kernel k: refused, 1 error>" and k.stages == ()
    for use in (k, k.compile, k.script, lambda: k.unroll):
        with pytest.raises(tilelang_nb.CompileError) as caught:
            use()
        assert [d.code for d in caught.value.diagnostics] == ["TL101"]
        assert "error[TL101]" in str(caught.value)


FACTORY = """
def make(n, bad=False):
    @T.prim_func
    def scale(A: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=n):
            for i in T.Parallel(n):
                A[i] = A[i] * (len(A) if bad else n)
    return scale
"""


def test_a_factory_of_the_cell_works_after_the_cell_has_run() -> None:
    c = tilelang_nb.compile_cell(FACTORY)
    assert c.ok and c.kernels == {}
    a = np.arange(4, dtype=np.int32)
    c.namespace["make"](4)(a)
    assert np.array_equal(a, [0, 4, 8, 12])
    with pytest.raises(tilelang_nb.CompileError) as caught:
        c.namespace["make"](4, bad=True)
    assert [(d.code, d.span.line) for d in caught.value.diagnostics] == [("TL107", 7)]


def test_kernels_of_one_name_are_all_kept() -> None:
    c = tilelang_nb.compile_cell(FACTORY + "a, b = make(2), make(3)\n")
    assert [(name, k.parameters[0].shape[0]) for name, k in c.kernels.items()] == [("scale", 2), ("scale_2", 3)]


def test_the_names_of_earlier_cells_are_seen() -> None:
    names: dict[str, object] = {}
    tilelang_nb.compile_cell("size = 4", names)
    tilelang_nb.compile_cell(FACTORY, names)
    c = tilelang_nb.compile_cell("k = make(size)", names)
    assert c.ok and c.kernels["scale"].parameters[0].shape == (4,)


def test_mistakes_outside_kernels_are_diagnostics() -> None:
    c = tilelang_nb.compile_cell("x = 1\ny = x / 0\n")
    assert [(d.code, d.span.line) for d in c.diagnostics] == [("TL144", 2)]
    assert isinstance(c.exception, ZeroDivisionError)


def test_first_line_and_file_name_are_those_of_the_messages() -> None:
    c = tilelang_nb.compile_cell("x = (", filename="In[3]", first_line=5)
    assert [(d.code, d.span.line) for d in c.diagnostics] == [("TL005", 5)] and "In[3]:5:" in c.to_text()


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# only a comment", "\ufeffx = 1", "x = 1\r\ny = 2\r\n", "x = 'a\x00b'", "\tx = 1"]
)
def test_odd_texts_give_a_compilation(text: str) -> None:
    c = tilelang_nb.compile_cell(text)
    assert all(d.code in ("TL005",) for d in c.diagnostics)
