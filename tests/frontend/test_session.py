"""A cell is ordinary Python apart from its kernels."""

from __future__ import annotations

import builtins
import sys
from types import SimpleNamespace

import pytest
from frontend.cells import HEAD, kernel, run_cell

from tilelang_nb.frontend.session import Session, standalone
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.text import Span, Text

BAD = kernel("out[0] = nope")


def test_other_statements_run_as_ordinary_python(capsys: pytest.CaptureFixture[str]) -> None:
    cell = run_cell(
        "from __future__ import annotations\nimport dataclasses\ntotal = 0\nfor i in range(4):\n    total += i\n"
        "@dataclasses.dataclass\nclass P:\n    x: NoSuchType\ndef f(a: AlsoNone) -> None:\n    return a\n"
        "with open('/dev/null') as g:\n    pass\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    caught = True\nprint(total)\nP(3)"
    )
    assert not cell.diagnostics
    assert capsys.readouterr().out == "6\n"
    assert cell.namespace["caught"]
    assert cell.session.result == cell.namespace["P"](3)


def test_only_a_last_expression_is_the_result() -> None:
    assert run_cell("1 + 1\nx = 3").session.result is None
    assert run_cell("x = 3\nx + 1").session.result == 4
    assert run_cell("").session.result is None


def test_the_cell_does_not_inherit_the_future_flags_of_this_package() -> None:
    cell = run_cell("def f(a: int): ...\nkind = f.__annotations__['a']")
    assert cell.namespace["kind"] is int


def test_t_tilelang_and_jit_are_bound_where_the_names_are_free() -> None:
    cell = run_cell("x = T, tilelang, jit")
    assert not cell.diagnostics
    assert run_cell("pass", namespace={"T": 5}).namespace["T"] == 5


def test_imports_of_tilelang_are_redirected_and_sys_modules_is_left_alone() -> None:
    before = set(sys.modules)
    cell = run_cell(
        "import tilelang\nimport tilelang.language as T2\nfrom tilelang import jit, language\nimport tilelang.language\n"
        "from tilelang.language import Tensor\ndef late():\n    import tilelang.language as T3\n    return T3\nok = late() is T2 is language"
    )
    assert not cell.diagnostics
    assert cell.namespace["ok"]
    assert "tilelang" not in set(sys.modules) - before
    assert cell.namespace["__builtins__"] is builtins
    assert run_cell("import tilelang.nothing").errors == [("TL144", 1)]
    assert run_cell("from tilelang import nothing").errors == [("TL144", 1)]


def test_the_built_ins_of_a_namespace_are_put_back() -> None:
    given = {"__builtins__": builtins}
    run_cell("x = 1", namespace=given)
    assert given["__builtins__"] is builtins


def test_after_an_error_definitions_are_built_and_other_statements_are_not_run() -> None:
    source = (
        BAD
        + "ran = True\nN = 4\nimport math\ndef helper():\n    return 1\n"
        + BAD.replace("def k", "def good").replace("nope", "n")
    )
    cell = run_cell(source)
    assert cell.errors == [("TL002", 6)]
    assert cell.kernels["good"] is not None
    assert "ran" not in cell.namespace
    assert {"math", "helper"} <= set(cell.namespace)


def test_a_later_kernel_gives_no_message_about_names_that_were_not_bound() -> None:
    later = kernel("out[N] = n", 'out: T.Tensor((8,), "int32"), n: T.int32').replace("def k", "def later")
    shaped = HEAD + '@T.prim_func\ndef shaped(out: T.Tensor((N,), "int32")):\n    pass\n'
    cell = run_cell(BAD + "N = 4\n" + later + shaped)
    assert cell.errors == [("TL002", 6)]
    assert cell.kernels["later"] is None


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("x = 1\ny = x / 0", 2, "ZeroDivisionError"),
        ("def f():\n    return {}['a']\nf()", 2, "KeyError"),
        ("raise ValueError('no')", 1, "ValueError: no"),
        ("exit()", 1, "SystemExit"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("class Odd(BaseException): pass\nraise Odd()", 2, "Odd"),
        ("assert 1 == 2", 1, "AssertionError"),
    ],
)
def test_an_exception_of_host_code_is_shown_at_its_line(source: str, line: int, text: str) -> None:
    cell = run_cell(source)
    (found,) = cell.diagnostics
    assert (found.code, found.span.line) == ("TL144", line)
    assert text in found.message
    assert cell.session.exception is not None


def test_a_keyboard_interrupt_that_code_raises_is_an_exception_like_others() -> None:
    for cell in ("raise KeyboardInterrupt", kernel("stop()", before="def stop():\n    raise KeyboardInterrupt\n")):
        assert [found.code for found in run_cell(cell).diagnostics] == ["TL144"]


def test_diagnostics_that_an_exception_carries_are_reported_as_they_are() -> None:
    class Refused(Exception):
        diagnostic = say.TargetUnavailable(problem="no device", remedy="use `sim`").at(None)

    cell = run_cell("x = 1\nlaunch()", namespace={"launch": lambda: (_ for _ in ()).throw(Refused())})
    assert [(d.code, d.span.line) for d in cell.diagnostics] == [("TL302", 2)]
    assert isinstance(cell.session.exception, Refused)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\nif x\n    y = 2", 2),
        ("x = '''abc", 1),
        ("x = (1,\n", 1),
        ("x = 1\n  y = 2", 2),
        ("break", 1),
        ("return 3", 1),
        ("x = 1\nawait x", 2),
        ("def f():\n    nonlocal q", 2),
        ("x = '\0'", 1),
    ],
)
def test_a_text_that_is_not_python_is_shown_at_its_line(source: str, line: int) -> None:
    assert run_cell(source).errors == [("TL005", line)]


def test_t_assert_is_an_operation() -> None:
    cell = run_cell(kernel('s = "T.assert("; T.assert(n > 1, "small")\nx = y = T . assert(n, "m")'))
    assert cell.marked() == [("TL101", 'x = y = T . assert(n, "m")')]


def test_a_factory_called_after_the_cell_finds_its_text() -> None:
    source = HEAD + (
        "def make(rows):\n    def inner():\n        @T.prim_func\n        def k(out: T.Tensor((rows,), 'int32')):\n"
        "            with T.Kernel(1, threads=1):\n                out[0] = rows\n        return k\n    return inner\n"
    )
    cell = run_cell(source)
    program = cell.namespace["make"](6)()
    assert program.parameters[0].shape == (6,)
    again = run_cell(source)  # the same text: its code objects are equal
    del cell, program
    assert again.namespace["make"](7)().parameters[0].shape == (7,)


def test_a_refused_factory_result_carries_its_diagnostics_to_the_caller() -> None:
    source = (
        HEAD + "def make():\n    @T.prim_func\n    def k(out: T.Tensor((8,), 'int32')):\n        nope\n    return k\n"
    )
    cell = run_cell(source)
    cell.namespace["make"]()
    assert [d.code for d in cell.refused["k"]] == ["TL002"]
    assert not cell.diagnostics


def test_text_without_a_source_is_refused_at_the_line_that_made_it() -> None:
    inner = HEAD + "@T.prim_func\ndef k(a: T.int32):\n    pass\n"
    cell = run_cell(HEAD + f"x = 1\nexec({inner!r})")
    assert cell.errors == [("TL001", 3)]


def test_postponed_annotations_may_name_what_no_code_uses() -> None:
    source = (
        "from __future__ import annotations\n" + HEAD + "def make(rows, kind):\n    @T.prim_func\n"
        "    def k(a: T.Tensor((rows,), kind), out: 'T.Tensor((rows,), kind)'):\n        pass\n    return k\nmake(6, 'int32')"
    )
    cell = run_cell(source)
    assert [p.shape for p in cell.session.result.parameters] == [(6,), (6,)]
    wrong = run_cell(source.replace("(rows,), kind)'", "(rowz,), kind)'"))
    assert wrong.errors == [("TL002", 5)]


@pytest.mark.parametrize(
    ("parameters", "codes"),
    [
        ("a", ["TL207"]),
        ("a: 3", ["TL207"]),
        ("a: T.Tensor", ["TL207"]),
        ("a: str", ["TL207"]),
        ("*a", ["TL207"]),
        ("a, b: T.int32, c", ["TL207", "TL207"]),
        ('a: T.FragmentBuffer((4,), "int32")', ["TL207"]),
    ],
)
def test_a_parameter_needs_an_annotation(parameters: str, codes: list[str]) -> None:
    cell = run_cell(HEAD + f"@T.prim_func\ndef k({parameters}):\n    pass\n")
    assert [code for code, _ in cell.errors] == codes


def test_scalars_may_be_annotated_with_python_types() -> None:
    cell = run_cell(HEAD + "@T.prim_func\ndef k(a: int, b: float, c: bool, d: T.float16):\n    pass\n")
    assert [(p.kind, p.dtype) for p in cell.kernels["k"].parameters] == [
        ("scalar", "int32"),
        ("scalar", "float32"),
        ("scalar", "bool"),
        ("scalar", "float16"),
    ]


def test_a_size_that_no_parameter_carries_is_refused() -> None:
    cell = run_cell(kernel("out[0] = size", before='size = T.dynamic("size")\n'))
    assert [code for code, _ in cell.errors] == ["TL004"]


def test_functions_of_modules_are_built_from_their_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list = []

    def factory(name: str, program, diagnostics):
        made.append((name, program, diagnostics))
        return program

    prim_func, macro = standalone(factory)
    path = tmp_path / "kernels_of_a_file.py"
    path.write_text(
        HEAD.replace(
            "import tilelang.language as T", "import tilelang_nb.language as T\nfrom given import prim_func, macro"
        )
        + "@macro\ndef put(o, v):\n    o[0] = v\n\n@prim_func\ndef k(out: T.Tensor((4,), 'int32')):\n"
        "    with T.Kernel(1, threads=1):\n        put(out, 5)\n        out[1] = nope\n"
    )
    monkeypatch.setitem(sys.modules, "given", SimpleNamespace(prim_func=prim_func, macro=macro))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kernels_of_a_file", raising=False)
    __import__("kernels_of_a_file")
    sys.modules.pop("kernels_of_a_file")
    ((name, program, diagnostics),) = made
    assert (name, program) == ("k", None)
    assert [(d.code, d.span) for d in diagnostics] == [("TL002", Span(11, 17, 11, 21))]


def test_a_session_reads_a_text_with_windows_line_ends() -> None:
    source = kernel("x = y = n").replace("\n", "\r\n")
    assert run_cell(source).marked() == [("TL101", "x = y = n")]


def test_host_code_is_compiled_by_the_given_compiler_under_the_given_name() -> None:
    seen = []

    def compiler(tree, name: str, mode: str):
        seen.append((name, mode))
        return compile(tree, name, mode, dont_inherit=True)

    session = Session(Text("x = 1\nx", "In[1]"), kernel_factory=lambda *_: None, modules={})
    session.run({}, compiler, "<file-1>")
    assert seen == [("<file-1>", "exec"), ("<file-1>", "eval")]
    assert session.result == 1


UNBUILT = """import tilelang
import tilelang.language as T
x = 1 / 0  #: TL144
@tilelang.jit
def eager(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    with T.Kernel(1, threads=32):
        A[0] = nope  #: TL002
        A[1] = len(A)  #: TL107
        if N > 3:
            A[2] = nope
def make(n):
    @T.prim_func
    def k(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            A[0, 1] = n + x  #: TL201
            await n  #: TL123
    return k
make(3)
@T.prim_func
def last(A: T.Tensor((4,), x)):
    with T.Kernel(1, threads=32):
        A[0] = nope  #: TL002
"""


def test_kernels_that_a_failed_cell_does_not_build_are_checked_by_their_text() -> None:
    import tilelang_nb

    lines = enumerate(UNBUILT.splitlines(), 1)
    wanted = [(code, number) for number, line in lines for code in line.partition("#: ")[2].split()]
    found = tilelang_nb.compile_cell(UNBUILT, target="sim")
    assert [(d.code, d.span.line) for d in found.diagnostics] == [(code, line) for code, line in wanted]
