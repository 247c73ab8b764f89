"""`%%tilelang` in a real kernel: names, lines, results, output, and how a cell fails."""

from __future__ import annotations

import re
from typing import Any

ADD = """%%tilelang{options}
@T.prim_func
def add(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            C[i] = A[i] + B[i]
"""
ARRAYS = "A, B, C = np.arange(8, dtype='f4'), np.ones(8, 'f4'), np.zeros(8, 'f4')\n"
WIDGET = "application/vnd.jupyter.widget-view+json"
MISTAKES = """%%tilelang
@T.prim_func
def wrong(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        x = y = A[0]
        A[1] = T.expp(A[2])
"""
RACE = """%%tilelang
@T.prim_func
def race(out: T.Tensor((1,), "float32")):
    with T.Kernel(2, threads=1) as bx:
        out[0] = bx
"""


def add(options: str = "", after: str = "") -> str:
    return ADD.format(options=options) + after


# -- names, results


def test_a_kernel_lands_in_the_notebook_and_plain_cells_can_call_it(kernel: Any) -> None:
    assert kernel.run(add()).status == "ok"
    reply = kernel.run(ARRAYS + "add(A, B, C)\nprint(C.tolist() == (A + B).tolist())")
    assert (reply.status, reply.stdout) == ("ok", "True\n")


def test_host_code_of_the_cell_runs_and_its_last_expression_is_the_result(kernel: Any) -> None:
    reply = kernel.run(add(after=ARRAYS + "print('before')\nadd(A, B, C)\nC.sum()"))
    assert (reply.status, reply.stdout) == ("ok", "before\n")
    assert reply.value in ("np.float32(36.0)", "36.0")
    assert kernel.run("float(_)").value == "36.0"


def test_a_semicolon_silences_the_result(kernel: Any) -> None:
    assert kernel.run("%%tilelang\n1 + 1").value == "2"
    assert kernel.run("%%tilelang\n1 + 1;").value is None
    assert kernel.run("%%tilelang\nnothing = None\nnothing").value is None


def test_only_the_last_expression_is_shown(kernel: Any) -> None:
    reply = kernel.run("%%tilelang\n'first'\nsecond = 2")
    assert (reply.status, reply.value, reply.displays) == ("ok", None, [])


def test_call_gives_the_result_of_an_expression(kernel: Any) -> None:
    kernel.run(ARRAYS)
    assert kernel.run(add(" --call add(A, B, C)", after="")).status == "ok"
    assert kernel.run("%%tilelang --call dict(n=len([1, 2]), s='{C}')\npass").value == "{'n': 2, 's': '{C}'}"


def test_imports_of_tilelang_mean_this_package_and_python_is_left_alone(kernel: Any) -> None:
    cell = "%%tilelang\nimport tilelang\nimport tilelang.language as TL\nfrom tilelang import jit\nTL is T"
    assert kernel.run(cell).value == "True"
    assert kernel.run("import sys\n'tilelang' in sys.modules").value == "False"
    assert kernel.run("import builtins\n__builtins__ is builtins").value == "True"
    assert "No module named 'tilelang'" in kernel.run("import tilelang").error


def test_names_of_the_notebook_are_not_overwritten(kernel: Any) -> None:
    kernel.run("jit = 'mine'")
    assert kernel.run("%%tilelang\njit").value == "'mine'"
    assert kernel.run("del jit\n1").status == "ok"


# -- lines


def test_lines_of_functions_and_tracebacks_are_those_of_the_cell(kernel: Any) -> None:
    assert kernel.run("%%tilelang\n\ndef f(x):\n    return 1 / x\n").status == "ok"
    reply = kernel.run("import inspect\nprint(repr(inspect.getsource(f)), f.__code__.co_firstlineno, f.__module__)")
    assert reply.stdout.strip() == "'def f(x):\\n    return 1 / x\\n' 3 __main__"
    reply = kernel.run("import linecache; linecache.checkcache(); len(inspect.getsource(f))")
    assert reply.value == str(len("def f(x):\n    return 1 / x\n"))
    assert re.search(r"Cell In\[\d+\], line 4", kernel.run("f(0)").error)


def test_an_error_of_host_code_is_a_traceback_that_begins_in_the_cell(kernel: Any) -> None:
    reply = kernel.run("%%tilelang\nx = 1\n\nraise ValueError('here')")
    assert (reply.status, reply.error_name) == ("error", "ValueError")
    assert re.search(r"Cell In\[\d+\], line 4", reply.error)
    assert "run_cell_magic" not in reply.error
    assert "tilelang_nb" not in reply.error


def test_an_assertion_on_a_result_fails_with_its_line_and_the_stages_are_shown(kernel: Any) -> None:
    reply = kernel.run(add(after=ARRAYS + "add(A, B, C)\nassert C[0] == 5, 'wrong sum'"))
    assert (reply.status, reply.error_name) == ("error", "AssertionError")
    assert "line 9" in reply.error
    assert "wrong sum" in reply.error
    assert "<details" in reply.html


def test_future_flags_of_this_package_do_not_leak_and_those_of_the_cell_hold(kernel: Any) -> None:
    assert kernel.run("%%tilelang\ndef f(a: int): pass\nf.__annotations__").value == "{'a': int}"
    cell = "%%tilelang\nfrom __future__ import annotations\ndef f(a: int): pass\nf.__annotations__"
    assert kernel.run(cell).value == "{'a': 'int'}"


def test_comments_and_blank_lines_above_the_magic_count_as_lines(kernel: Any) -> None:
    kernel.run("# what this is\n\n%%tilelang\ndef g():\n    pass")
    assert kernel.run("g.__code__.co_firstlineno").value == "4"
    reply = kernel.run("# what this is\n" + MISTAKES)
    assert re.search(r"In\[\d+\]:6:", reply.error)


def test_nested_in_time_and_capture(kernel: Any) -> None:
    timed = kernel.run("%%time\n%%tilelang\ndef h():\n    pass\n40 + 2")
    assert "Wall time" in timed.stdout
    assert kernel.run("h.__code__.co_firstlineno").value == "3"
    captured = kernel.run("%%capture kept\n" + add(after="print('inside')\n'result'"))
    assert (captured.status, captured.stdout, captured.displays) == ("ok", "", [])
    kept = kernel.run("print(kept.stdout.strip(), len(kept.outputs))")
    assert kept.stdout.split()[0] == "inside"
    assert int(kept.stdout.split()[1]) >= 1


def test_a_tab_after_the_magic(kernel: Any) -> None:
    assert kernel.run("%%tilelang\t--quiet\n1 + 2").value == "3"


# -- what is shown


def test_stages_are_shown_as_text_and_as_static_html(kernel: Any) -> None:
    reply = kernel.run(add())
    static, widget = reply.displays
    assert "add" in static["text/plain"]
    assert WIDGET in widget and WIDGET not in static
    assert static["text/html"].count("<details") >= 3
    (alone,) = kernel.run(add(" --no-widget")).displays
    assert len(alone["text/html"]) > len(static["text/html"])
    html = static["text/html"] + alone["text/html"]
    assert "thread" in html
    assert static["text/html"].startswith("<style>.jp-OutputArea-child"), "hides an error that only trusted pages show"
    for forbidden in ("<style", "<script", "<svg", "var("):
        assert html.count(forbidden) == (forbidden == "<style")


def test_stages_can_be_chosen(kernel: Any) -> None:
    few = kernel.run(add(" --stages tile,thread")).shown
    assert "T.Parallel" in few or "T.parallel" in few
    assert len(few) > len(kernel.run(add()).shown)
    unknown = kernel.run(add(" --stages til"))
    assert "there is no stage `til`" in unknown.error + unknown.stderr
    assert "thread" in unknown.error + unknown.stderr


def test_quiet_shows_no_stages(kernel: Any) -> None:
    assert kernel.run(add(" --quiet")).displays == []


def test_cells_without_kernels_show_no_report(kernel: Any) -> None:
    assert kernel.run("%%tilelang\nx = 1").displays == []


def test_printed_values_stand_under_the_cell_that_launched(kernel: Any) -> None:
    cell = """%%tilelang
@T.prim_func
def tell(n: T.int32):
    with T.Kernel(1, threads=1):
        T.print(n)
"""
    assert kernel.run(cell).stdout == ""
    assert "7" in kernel.run("tell(7)").stdout


# -- findings


def test_findings_stand_under_the_cell_that_launched(kernel: Any) -> None:
    assert "TL401" not in kernel.run(RACE).shown
    inside = kernel.run(RACE + "race(np.zeros(1, 'f4'))")
    assert inside.status == "ok"
    assert re.search(r"TL401\].*\n +--> In\[\d+\]:5:9", inside.shown)
    assert "TL401" in inside.html
    later = kernel.run("race(np.zeros(1, 'f4'))")
    assert later.status == "ok"
    assert "TL401" in later.shown
    assert later.stderr == ""
    assert kernel.run("1").displays == []


def test_a_finding_of_many_launches_is_shown_once_with_their_number(kernel: Any) -> None:
    kernel.run(RACE)
    reply = kernel.run("for _ in range(5):\n    race(np.zeros(1, 'f4'))")
    assert reply.shown.count("error[TL401]") == 1
    assert "5 launches" in reply.shown


def test_findings_are_shown_although_the_cell_fails_after_the_launch(kernel: Any) -> None:
    reply = kernel.run(RACE + "race(np.zeros(1, 'f4'))\n1 / 0")
    assert reply.error_name == "ZeroDivisionError"
    assert "TL401" in reply.shown


# -- mistakes


def test_a_cell_with_mistakes_fails_with_a_report_in_place_of_a_traceback(kernel: Any) -> None:
    reply = kernel.run(MISTAKES)
    assert reply.status == "error"
    assert reply.error.startswith("2 errors in this cell\nerror[TL101]"), "the line that is left beside the widget"
    assert f"--> In[{reply.number}]:5:9\n" in reply.error
    assert "error[TL003]" in reply.error
    assert "did you mean" in reply.error
    assert reply.error.rstrip().endswith("2 errors")
    assert "Traceback" not in reply.error
    assert [WIDGET in bundle for bundle in reply.displays] == [False, True]
    alone = kernel.run(MISTAKES.replace("%%tilelang", "%%tilelang --no-widget"))
    assert alone.displays == [] and alone.error.startswith("error[TL101]")


def test_run_all_stops_at_a_cell_with_mistakes(kernel: Any) -> None:
    assert kernel.run_all("1", MISTAKES, "print('must not run')") == ["ok", "error", "aborted"]


def test_a_syntax_error_is_located(kernel: Any) -> None:
    reply = kernel.run("%%tilelang\nx = 1\ndef g(:\n    pass")
    assert reply.error.startswith("1 error in this cell\nerror[TL005]")
    assert re.search(r"In\[\d+\]:3:7", reply.error)


def test_magics_inside_the_body_are_refused_with_what_to_do(kernel: Any) -> None:
    for line in ("%time x", "!ls", "%matplotlib inline"):
        reply = kernel.run(f"%%tilelang\nx = 1\n{line}\n")
        assert "TL005" in reply.error
        assert "a cell of their own" in reply.error


def test_an_argument_that_does_not_fit_is_located_in_the_cell_that_passed_it(kernel: Any) -> None:
    inside = kernel.run(add(after=ARRAYS + "add(A.astype('f8'), B, C)"))
    assert inside.error.startswith("1 error in this cell\nerror[TL301]")
    assert "Traceback" not in inside.error
    assert re.search(r"In\[\d+\]:8", inside.error)
    later = kernel.run("\nx = 1\nadd(A.astype('f8'), B, C)")
    assert later.error.startswith("error[TL301]: argument `A.astype('f8')` for `A`")
    assert re.search(r"In\[\d+\]:2:5\n2 \| add\(A.astype\('f8'\), B, C\)\n  \|     \^{14} ", later.error)


def test_a_kernel_of_another_cell_is_quoted_with_its_own_lines(kernel: Any) -> None:
    kernel.run(add())
    reply = kernel.run("%%tilelang\n" + ARRAYS + "add(A.astype('f8'), B, C)")
    assert re.match(r"(1 error in this cell\n)?error\[TL301\]", reply.error)
    assert re.search(r"In\[\d+\]:3:5\n3 \| add\(A", reply.error)
    assert re.search(r"the parameter of `add` is `A: T.Tensor.*` in In\[\d+\], line 3", reply.error)


def test_using_a_refused_kernel_shows_its_mistakes(kernel: Any) -> None:
    kernel.run(MISTAKES)
    reply = kernel.run("wrong(np.zeros(8, 'f4'))")
    assert reply.error.startswith("error[TL101]")
    assert "called at In[" in reply.error


def test_a_failed_device_assert_is_shown_once(kernel: Any) -> None:
    cell = """%%tilelang
@T.prim_func
def check(n: T.int32):
    with T.Kernel(1, threads=1):
        T.device_assert(n > 3, "n is too small")
"""
    assert kernel.run(cell).status == "ok"
    reply = kernel.run("check(1)")
    assert reply.error.startswith("error[TL404]")
    assert "n is too small" in reply.error
    assert "TL404" not in reply.shown
    assert kernel.run("check(4)").status == "ok"


# -- options


def test_help(kernel: Any) -> None:
    for code in ("%%tilelang --help", "%%tilelang --help\npass", "%tilelang", "%tilelang --help", "%%tilelang?"):
        reply = kernel.run(code)
        assert reply.status == "ok"
        assert "--target" in reply.stdout
        assert "explain" in reply.stdout


def test_bad_options_fail_in_one_line_and_run_nothing(kernel: Any) -> None:
    for options in ("--target tpu", "--zzz", "--arch {NOPE}", "--call add("):
        reply = kernel.run(f"%%tilelang {options}\nran = True")
        said = (reply.error + reply.stderr).strip()
        assert reply.status == "error"
        assert said.startswith("UsageError: %%tilelang")
        assert "Traceback" not in said


def test_notebook_variables_stand_in_options(kernel: Any) -> None:
    kernel.run("MY_ARCH = 'sm_80'")
    assert kernel.run("%%tilelang --arch {MY_ARCH} --target $WHERE\n1").status == "error"
    kernel.run("WHERE = 'sim'")
    assert kernel.run("%%tilelang --arch {MY_ARCH} --target $WHERE\n1").value == "1"


def test_timing_on_the_simulated_device_is_refused_with_the_reason(kernel: Any) -> None:
    reply = kernel.run("%%tilelang --target sim --bench\nran_bench = True")
    assert reply.error.startswith("error[TL302]")
    assert "say nothing about" in reply.error
    assert "NameError" in kernel.run("ran_bench").error


def test_a_launch_on_a_device_that_is_not_there_is_refused(kernel: Any) -> None:
    reply = kernel.run(add(" --target cuda", after=ARRAYS + "add(A, B, C)"))
    device = kernel.run("%tilelang devices").stdout.startswith("cuda")
    assert reply.status == "ok" if device else "\nerror[TL302]" in reply.error


def test_a_module_that_is_not_there_is_said_at_its_import_alone(kernel: Any) -> None:
    reply = kernel.run("%%tilelang\nimport no_such_module")
    assert reply.error_name == "ModuleNotFoundError"
    assert "import no_such_module" in reply.error and "imports.py" not in reply.error


def test_an_empty_cell_is_ipythons_message(kernel: Any) -> None:
    reply = kernel.run("%%tilelang")
    assert "cell body is empty" in reply.error + reply.stderr


def test_a_long_simulated_launch_shows_how_far_it_has_come_in_one_output(kernel: Any) -> None:
    kernel.run("import tilelang_nb.runtime.progress as p\np.PATIENCE = p.PERIOD = 0")
    reply = kernel.run(
        """%%tilelang --quiet
import numpy as np
@T.prim_func
def steps(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for turn in range(8):
            for i in T.Parallel(64):
                A[i] += 1.0
steps(np.zeros(64, np.float32))
"""
    )
    kernel.run("p.PATIENCE, p.PERIOD = 2.0, 0.5")
    (first,) = reply.displays
    (last,) = reply.updates.values()
    assert first["text/plain"].startswith("simulating steps: 0 %") and "text/html" not in first
    assert last["text/plain"].startswith("simulated steps: done after") and reply.stderr == ""


def test_an_operation_in_a_plain_cell_shows_the_diagnostic_and_no_frames(kernel: Any) -> None:
    kernel.run("%%tilelang --quiet\nimport numpy as np")
    reply = kernel.run("a = np.ones(4)\nT.copy(a, a)")
    assert reply.error.startswith("error[TL004]: `T.copy` outside a kernel")
    assert "In[" in reply.error and "tilelang_nb" not in reply.error and "= help:" in reply.error
