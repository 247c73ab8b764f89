"""The widget under a cell: what a front end is sent, what stays of it, and how it ends."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from notebook.conftest import LiveKernel

WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = """%%tilelang{options}
@T.prim_func
def {name}(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = A[i] * {factor}
"""
MISTAKES = """%%tilelang
@T.prim_func
def wrong(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        x = y = A[0]
        A[1] = T.expp(A[2])
"""
RACE = """%%tilelang{options}
@T.prim_func
def race(out: T.Tensor((1,), "float32")):
    with T.Kernel(2, threads=1) as bx:
        out[0] = bx
"""


def cell(name: str = "double", factor: float = 2.0, options: str = "") -> str:
    return KERNEL.format(name=name, factor=factor, options=options)


def views(reply: Any) -> list[dict[str, Any]]:
    """The states of the views that a cell opened, in order."""
    return [state for state in reply.opened.values() if "trace" in state]


def trace(state: dict[str, Any]) -> dict[str, Any]:
    return json.loads(zlib.decompress(state["trace"]))


def shown(reply: Any) -> dict[str, Any]:
    """The report in the only view that a cell opened."""
    (state,) = views(reply)
    return trace(state)


# -- what is sent


def test_a_cell_shows_a_static_copy_and_below_it_the_widget(kernel: Any) -> None:
    reply = kernel.run(cell())
    static, widget = reply.displays
    (ident,) = [state["ident"] for state in views(reply)]
    assert f'class="tilelang-nb-static tnb-{ident}"' in static["text/html"]
    assert reply.ids == [f"{ident}-static", ident]
    assert widget[WIDGET]["model_id"] in reply.opened
    assert "text/html" not in widget


def test_the_widget_holds_the_whole_report_and_the_cell_as_typed(kernel: Any) -> None:
    typed = "# above\n" + cell()
    reply = kernel.run(typed)
    data = shown(reply)
    assert (data["format"], data["version"], data["execution"]) == ("tilelang_nb.trace", 1, reply.number)
    assert data["cell"] == {"text": typed, "first_line": 1}
    (double,) = data["kernels"]
    assert double["name"] == "double" and double["line"] == 4
    assert {"source", "tile", "thread"} <= {stage["name"] for stage in double["stages"]}
    assert data["elapsed"] > 0
    timed = "%%time\n" + cell()
    assert shown(kernel.run(timed))["cell"]["text"] == timed


def test_a_widget_is_two_kilobytes_and_its_trace_and_the_viewer_is_held_once(kernel: Any) -> None:
    kernel.run("import ipywidgets; ipywidgets.Widget.close_all()")
    opened: list[dict[str, Any]] = []
    for number in range(5):
        opened += kernel.run(cell(f"again{number}")).opened.values()
    small = [state for state in opened if "trace" in state]
    assert len(small) == 5
    for state in small:
        rest = {key: value for key, value in state.items() if key != "trace"}
        assert len(json.dumps(rest)) <= 2000
    others = [state for state in opened if "trace" not in state]
    assert sorted(state["_model_name"] for state in others) == ["AnyModel", "LayoutModel"]
    (asset,) = [state for state in others if "code" in state]
    assert {state["asset"] for state in small} == {next(iter(small))["asset"]}
    assert "render" in asset["code"]


def test_after_all_widgets_were_closed_the_next_cell_brings_the_viewer_again(kernel: Any) -> None:
    before = kernel.run(cell())
    kernel.run("ipywidgets.Widget.close_all()") if kernel.run("import ipywidgets").status == "ok" else None
    after = kernel.run(cell())
    assert any("code" in state for state in after.opened.values())
    assert views(after)[0]["asset"] != views(before)[0]["asset"]


def test_options_decide_whether_there_is_a_widget(kernel: Any) -> None:
    for options, outputs in ((" --no-widget", 1), (" --quiet", 0)):
        reply = kernel.run(cell(options=options))
        assert len(reply.displays) == outputs
        assert reply.opened == {}
    for plain in ("%%tilelang\nx = 1", "%%tilelang\n1 / 0", "%%tilelang --help"):
        assert kernel.run(plain).opened == {}


def test_stages_that_are_asked_for_are_those_of_the_widget(kernel: Any) -> None:
    (double,) = shown(kernel.run(cell(options=" --stages thread,infer-layouts")))["kernels"]
    assert [stage["name"] for stage in double["stages"]] == ["source", "infer-layouts", "thread"]
    assert double["default"] == "thread"
    assert all("text" in stage for stage in double["stages"] if "same_as" not in stage)


# -- failures


def test_a_cell_with_mistakes_fails_and_shows_the_stages_that_it_reached(kernel: Any) -> None:
    reply = kernel.run(MISTAKES)
    assert reply.status == "error" and reply.error.startswith("2 errors in this cell\nerror[TL101]")
    data = shown(reply)
    assert [found["code"] for found in data["diagnostics"]] == ["TL101", "TL003"]
    assert data["run"]["told"], "the error says the same: beside the widget its first line is enough"
    assert data["patched"]["text"].startswith("%%tilelang\n") and "T.exp(" in data["patched"]["text"]
    assert [stage["state"] for stage in data["kernels"][0]["stages"]][:3] == ["landmark", "failed", "not_reached"]
    static, _ = reply.displays
    assert "TL101" not in static["text/html"], "the error of the cell says it already"


def test_a_syntax_error_has_a_widget_with_the_place(kernel: Any) -> None:
    data = shown(kernel.run("%%tilelang\n@T.prim_func\ndef f(:\n    pass"))
    assert data["kernels"] == []
    assert data["diagnostics"][0]["span"][0] == 3


def test_a_failed_cell_can_be_patched_into_one_that_runs(kernel: Any) -> None:
    patched = shown(kernel.run(MISTAKES))["patched"]["text"]
    assert kernel.run(patched).status == "ok"


def test_a_fault_of_the_report_is_said_and_the_result_of_the_cell_stands(kernel: Any) -> None:
    spoil = "import tilelang_nb.report.json as j; kept, j.to_data = j.to_data, lambda *_: 1 / 0"
    assert kernel.run(spoil).status == "ok"
    reply = kernel.run(cell() + "'the result'")
    assert kernel.run("j.to_data = kept").status == "ok"
    assert (reply.status, reply.value) == ("ok", "'the result'")
    assert "TL900" in reply.shown and "ZeroDivisionError" in reply.shown


# -- launches


def test_what_a_call_of_the_magic_line_found_is_in_the_widget(kernel: Any) -> None:
    kernel.run("out = np.zeros(1, 'f4')")
    reply = kernel.run(RACE.format(options=" --call race(out)"))
    data = shown(reply)
    assert data["run"] == {
        "call": "race(out)",
        "launches": [{"kernel": "race", "count": 1}],
        "findings": 1,
        "told": False,
    }
    assert [found["code"] for found in data["kernels"][0]["findings"]] == ["TL401"]
    assert "TL401" in data["pages"]
    counters = {fact["name"]: fact for fact in data["kernels"][0]["counters"]}
    assert counters["global writes of out"]["line"] == 5
    static, _, findings = reply.displays
    assert f"tnb-{data['ident']}" in static["text/html"] and f"tnb-{data['ident']}" in findings["text/html"]


def test_the_result_of_the_cell_is_in_the_trace(kernel: Any) -> None:
    reply = kernel.run(cell() + "np.arange(3)")
    assert reply.value == "array([0, 1, 2])" and shown(reply)["run"]["result"] == reply.value
    assert shown(kernel.run(cell(options=" --call 6*7")))["run"]["result"] == "42"
    kernel.run("class Quiet:\n    def __repr__(self):\n        raise ValueError")
    assert shown(kernel.run(cell() + "y = Quiet()\nlist(range(10**5))"))["run"]["result"].startswith("[0, 1,")
    assert shown(kernel.run(cell() + "z = y"))["run"].get("result") is None


def test_a_call_that_fails_shows_the_stages_before_its_error(kernel: Any) -> None:
    reply = kernel.run(cell(options=" --call double(1, 2)"))
    assert reply.error.startswith("error[TL301]")
    assert shown(reply)["kernels"][0]["name"] == "double"


# -- running again


def test_the_next_run_of_a_cell_is_compared_with_the_last(kernel: Any) -> None:
    first = kernel.run(cell(factor=2.0), cell="a")
    assert shown(first)["previous"] is None
    assert shown(kernel.run(cell(factor=9.0), cell="b"))["previous"] is None
    kernel.run(MISTAKES, cell="a")  # nothing to compare with, so the run before it stays
    before = shown(kernel.run(cell(factor=3.0), cell="a"))["previous"]
    assert before["execution"] == first.number
    assert "A[i] * 2.0" in before["cell"]["text"]
    stages = before["kernels"]["double"]["stages"]
    assert "T.float32(2.0)" in stages["tile"]
    same = shown(kernel.run(cell(factor=3.0), cell="a"))["previous"]
    assert set(same["kernels"]["double"]["stages"].values()) == {None}


def test_a_widget_keeps_its_own_run_and_those_long_replaced_are_closed(kernel: Any) -> None:
    runs = [kernel.run(cell(factor=float(number)), cell="again") for number in range(4)]
    opened = [next(name for name, state in run.opened.items() if "trace" in state) for run in runs]
    assert [run.closed for run in runs] == [[], [], [opened[0]], [opened[1]]]
    assert not any(run.changed for run in runs)


def test_of_fifty_quick_reports_the_last_one_stays(kernel: Any) -> None:
    kernel.run(cell())
    kernel.run("from tilelang_nb.report.json import to_data\nview = double.inspect()")
    code = "for number in range(50):\n    view.show({**to_data(double), 'ident': str(number)})\nview.model_id"
    reply = kernel.run(code)
    model, last = reply.changed[-1]
    assert repr(model) == reply.value
    assert trace(last)["ident"] == "49"


def test_a_kernel_of_a_factory_from_another_cell_brings_its_own_text(kernel: Any) -> None:
    factory = """%%tilelang
def make(n):
    @T.prim_func
    def filled(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=n):
            for i in T.Parallel(n):
                A[i] = n
    return filled
"""
    kernel.run(factory)
    data = shown(kernel.run("%%tilelang\nten = make(10)"))
    (filled,) = data["kernels"]
    assert "def make(n):" in filled["source"]["text"] and "def make" not in data["source"]["text"]
    assert filled["line"] == 4


def test_a_viewer_that_asks_for_device_code_gets_the_report_with_it(kernel: Any) -> None:
    kernel.run(cell())
    kernel.run("view = double.inspect()")
    ask = {"ask": "stage", "kernel": "double", "stage": "ptx"}
    reply = kernel.run(f"view._handle_custom_msg({ask}, [])")
    assert reply.status == "ok", reply.error
    if kernel.run("next(s for s in double.stages if s.name == 'ptx').ready").value == "True":
        ((_, change),) = reply.changed
        states = {stage["name"]: stage["state"] for stage in trace(change)["kernels"][0]["stages"]}
        assert states["ptx"] == "landmark" and reply.sent == []
    else:
        assert "no CUDA compiler" in reply.sent[0]["failed"] and reply.changed == []


def test_a_viewer_that_asks_for_what_there_is_not_gets_the_reason(kernel: Any) -> None:
    kernel.run(cell())
    kernel.run("view = double.inspect()")
    for wrong in (
        {"ask": "stage", "kernel": "no", "stage": "ptx"},
        {"ask": "stage", "kernel": "double", "stage": "no"},
    ):
        reply = kernel.run(f"view._handle_custom_msg({wrong}, [])")
        assert [list(message) for message in reply.sent] == [["failed"]]
    for strange in ("None", "'text'", "{'ask': 'other'}"):
        reply = kernel.run(f"view._handle_custom_msg({strange}, [])")
        assert (reply.status, reply.changed, reply.sent) == ("ok", [], [])


# -- inspect and freeze


def test_inspect_shows_a_kernel_again(kernel: Any) -> None:
    kernel.run(cell())
    by_name = kernel.run("%tilelang inspect double")
    assert [WIDGET in bundle for bundle in by_name.displays] == [False, True]
    assert [one["name"] for one in shown(by_name)["kernels"]] == ["double"]
    reply = kernel.run("double.inspect()")
    static, widget = reply.displays
    assert WIDGET in widget and "text/html" not in widget and "run the cell" in widget["text/plain"]
    assert "<details" in static["text/html"] and "double" in static["text/plain"]
    assert [one["name"] for one in shown(reply)["kernels"]] == ["double"]
    assert kernel.run("type(Out[max(Out)]).__name__").value == "'StandingAlone'", "it is the cell's value"


def test_freezing_leaves_static_text_and_no_widget(kernel: Any) -> None:
    kernel.run("%tilelang freeze")
    one, two = kernel.run(cell("one")), kernel.run(cell("two"))
    reply = kernel.run("%tilelang freeze one")
    assert reply.stdout.startswith("1 widget replaced")
    static, widget = one.ids
    assert set(reply.updates) == {static, widget}
    assert reply.updates[widget] == {"text/plain": "", "text/html": ""}
    assert len(reply.updates[static]["text/html"]) > len(one.displays[0]["text/html"])
    assert reply.closed == [next(name for name, state in one.opened.items() if "trace" in state)]
    rest = kernel.run("%tilelang freeze")
    assert set(rest.updates) == set(two.ids)
    assert kernel.run("%tilelang freeze").updates == {}


def test_a_failed_cell_can_be_frozen(kernel: Any) -> None:
    kernel.run("%tilelang freeze")
    failed = kernel.run(MISTAKES)
    reply = kernel.run("%tilelang freeze wrong")
    assert "text/html" in reply.updates[failed.ids[0]]


@pytest.mark.parametrize("line", ["%unload_ext tilelang_nb", "%reload_ext tilelang_nb"])
def test_unloading_closes_the_widgets(bare_kernel: Any, line: str) -> None:
    bare_kernel.run("%load_ext tilelang_nb")
    opened = bare_kernel.run(cell()).opened
    closed = bare_kernel.run(line).closed
    assert closed == [name for name, state in opened.items() if "trace" in state]


# -- without the packages of widgets


def test_without_the_packages_of_widgets_the_static_report_stands_and_says_what_to_install() -> None:
    absent = "import sys\nfor name in ('ipywidgets', 'anywidget'): sys.modules[name] = None"
    with LiveKernel("%load_ext tilelang_nb", absent) as bare:
        reply = bare.run(cell())
        assert reply.status == "ok" and not reply.opened
        assert "tilelang-nb-static" in reply.html and "double" in reply.shown
        assert "the inspector needs `ipywidgets` and `anywidget`, which are not installed" in reply.stdout
        assert "`pip install ipywidgets anywidget`" in reply.stdout
        refused = bare.run(MISTAKES)
        assert refused.error.count("error[TL") == 2 and "TL900" not in refused.error + refused.shown
