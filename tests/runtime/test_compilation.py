"""Cells compiled again, faults of the compiler, and what exceptions show."""

from __future__ import annotations

import linecache
import threading

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime import build as build_module
from tilelang_nb.runtime import cache, compilation, internal, kernel

CELL = """
scale = {scale}
table = {table}

@T.macro
def scaled(x):
    return x * scale

@T.prim_func
def k(A: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            A[i] = scaled(A[i]) + table[1]
"""


def built(text: str, **options: object) -> build_module.Build:
    c = tilelang_nb.compile_cell(text, **options)
    assert c.ok, c.to_text()
    return c.kernels["k"].build()


def test_an_unchanged_cell_is_not_lowered_again() -> None:
    text = CELL.format(scale=3, table=[1, 2])
    assert built(text, filename="In[1]") is built(text, filename="In[2]")


def test_a_changed_value_gives_another_build_and_another_result() -> None:
    first, second = CELL.format(scale=3, table=[1, 2]), CELL.format(scale=4, table=[1, 2])
    assert built(first) is not built(second)


def test_values_that_the_text_does_not_show_are_seen_too() -> None:
    body = CELL.split("table =")[1].split("\n", 1)[1]
    results = []
    for scale, number in ((3, 1), (3, 2), (5, 1), (3, 1)):
        names = {"scale": scale, "table": [0, number]}
        a = np.arange(8, dtype=np.int32)
        tilelang_nb.compile_cell(body, names).kernels["k"](a)
        results.append(a.tolist())
    assert results == [[i * s + n for i in range(8)] for s, n in ((3, 1), (3, 2), (5, 1), (3, 1))]


def test_architecture_and_moved_lines_give_another_build() -> None:
    text = CELL.format(scale=3, table=[1, 2])
    assert built(text) is not built(text, arch="sm_80")
    assert built(text) is not built(text, first_line=2)
    assert built(text) is not built("\n" + text)


def test_the_cache_can_be_cleared() -> None:
    text = CELL.format(scale=3, table=[1, 2])
    before = built(text)
    assert cache.clear() >= 1 and cache.clear() == 0
    assert built(text) is not before


def test_the_record_and_the_lines_of_a_found_build_still_meet() -> None:
    text = CELL.format(scale=3, table=[1, 2])
    built(text)
    k = tilelang_nb.compile_cell(text).kernels["k"]
    (macro,) = k.unroll.iterations[0].children
    assert (macro.kind, macro.line, macro.definition_line) == ("macro", 13, 6)
    first, last = macro.iterations[0].first_statement, macro.iterations[0].last_statement
    lines = macro.iterations[0].lines("tile")
    assert all(0 < line <= len(k.stages[1].lines) for line in lines) and bool(lines) == (last >= first)


@pytest.mark.parametrize("broken", ["lower", "front end", "simulator"])
def test_a_fault_of_ours_is_tl900_with_a_short_report(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    text = CELL.format(scale=3, table=[1, 2])

    def fault(*_: object, **__: object) -> None:
        raise KeyError("a\nlost thing")

    if broken == "simulator":
        monkeypatch.setattr(kernel, "simulate", fault)
        with pytest.raises(tilelang_nb.LaunchError) as caught:
            tilelang_nb.compile_cell(text).kernels["k"](np.zeros(8, np.int32))
        diagnostic = caught.value.diagnostic
    else:
        monkeypatch.setattr(*((build_module, "lower") if broken == "lower" else (compilation, "Session")), fault)
        (diagnostic,) = tilelang_nb.compile_cell(text).diagnostics
    assert diagnostic.code == "TL900" and "KeyError" in diagnostic.message
    assert "KeyError: 'a\\nlost thing'" in diagnostic.help and "Traceback" not in str(diagnostic)
    cache.clear()


def test_the_report_names_the_two_innermost_frames_of_the_package() -> None:
    try:
        tilelang_nb.runtime.target.resolve(arch=object())
    except Exception as error:
        text = internal.report_text(error)
    assert text.count("target.py") == 1 and "in resolve" in text and "\n" not in text


def test_findings_are_kept_warned_of_and_recorded() -> None:
    text = "@T.prim_func\ndef k(out: T.Tensor((4,), 'int32')):\n"
    text += "    with T.Kernel(2, threads=1) as bx:\n        out[0] = bx\n"
    k = tilelang_nb.compile_cell(text).kernels["k"]
    kernel.launches.clear()
    with pytest.warns(kernel.SimulatorFindings, match=r"TL401.*line 4"):
        k(np.zeros(4, np.int32))
    assert [d.code for d in k.findings] == ["TL401"]
    assert [(launch.kernel, launch.findings) for launch in kernel.launches] == [(k, k.findings)]


def test_printed_lines_go_to_standard_output_after_the_launch(capsys: pytest.CaptureFixture[str]) -> None:
    text = "@T.prim_func\ndef k(n: T.int32):\n    with T.Kernel(1, threads=1):\n        T.print(n)\n"
    k = tilelang_nb.compile_cell(text).kernels["k"]
    k(7)
    assert "7" in capsys.readouterr().out and len(k.printed) == 1 and "7" in k.printed[0]


ASSERTING = """
@T.prim_func
def k(out: T.Tensor((4,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
        T.device_assert(n > 3, "n is too small")
        out[0] = n
"""


def test_a_failed_device_assert_raises_and_is_among_the_findings() -> None:
    k = tilelang_nb.compile_cell(ASSERTING).kernels["k"]
    out = np.zeros(4, np.int32)
    k(out, 5)
    assert out[0] == 5 and k.findings == ()
    with pytest.raises(tilelang_nb.LaunchError, match="n is too small") as caught:
        k(out, 1)
    assert (caught.value.diagnostic.code, caught.value.diagnostic.span.line) == ("TL404", 5)
    assert k.findings == (caught.value.diagnostic,)
    k(out, 9)
    assert out[0] == 9 and k.findings == ()


def test_a_refused_launch_points_at_the_argument_of_the_call_and_names_the_parameter() -> None:
    k = tilelang_nb.compile_cell(ASSERTING, filename="In[7]", first_line=2).kernels["k"]
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        k(np.zeros(4, np.int64), 5)
    shown = "\n".join(caught.value._render_traceback_())
    assert "argument `np.zeros(4, np.int64)` for `out`" in shown and f"{__file__}:155:11" in shown
    assert "In[7], line 4" in shown and "kernel.py" not in shown


def test_a_mistake_in_a_kernel_of_a_factory_points_at_the_call_of_the_factory() -> None:
    cell = """import tilelang

@tilelang.jit(out_idx=[-1])
def factory(n):
    @T.prim_func
    def main(a: T.Tensor((n,), "float32"), b: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            b[0] = a[j]
    return main
"""
    names: dict = {}
    linecache.cache["In[7]"] = (len(cell), None, cell.splitlines(True), "In[7]")
    tilelang_nb.compile_cell(cell, names, filename="In[7]")
    with pytest.raises(tilelang_nb.CompileError) as caught:
        names["factory"](8)
    assert 'names["factory"](8)' in caught.value._render_traceback_()[-1]


def test_kernels_can_be_launched_from_several_threads() -> None:
    k = tilelang_nb.compile_cell(CELL.format(scale=3, table=[1, 2])).kernels["k"]
    arrays = [np.full(8, n, np.int32) for n in range(8)]
    threads = [threading.Thread(target=k, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [array.tolist() for array in arrays] == [[n * 3 + 2] * 8 for n in range(8)]


def test_a_cell_may_be_handed_over_with_its_magic_line() -> None:
    made = tilelang_nb.compile_cell("%%tilelang --target sim\nx = y\n", {})
    (found,) = made.diagnostics
    assert (found.code, found.span.line) == ("TL144", 2)


def test_device_code_of_a_large_kernel_is_made_when_it_is_asked_for() -> None:
    text = """
@T.prim_func
def k(A: T.Tensor((5000,), "float32")):
    with T.Kernel(1, threads=32):
        for i in list(range({items})):
            A[i] = i
"""
    small, large = (tilelang_nb.compile_cell(text.format(items=items), {}).kernels["k"] for items in (10, 5000))
    assert all(stage.ready for stage in small.stages if stage.name == "cuda")
    names = [stage.name for stage in large.stages]
    assert names[names.index("thread") + 1 :] == ["cuda", "ptx", "sass"]
    assert not any(stage.ready for stage in large.stages[-3:])
    for report in (large.to_text(), large.to_html()):
        assert report
    assert "device" not in vars(large.build())
    assert large.stages[-3].text.count("A_ptr[") == 5000
    assert large.stages[-3].ready and large.cuda_source


def test_stages_are_found_by_name_and_print_a_line_each() -> None:
    cell = tilelang_nb.compile_cell(CELL.format(scale=2, table=[0, 1]), {}, target="sim")
    stages = cell.kernels["k"].stages
    assert stages["tile"] is next(one for one in stages if one.name == "tile")
    lines = repr(stages).split("\n")
    assert [line.split()[0] for line in lines] == [one.name for one in stages]
    assert "changed" in lines[1] and lines[-1].split()[1:3] == ["on", "demand"]
    with pytest.raises(KeyError, match="no stage thrad: there are source, tile"):
        stages["thrad"]
