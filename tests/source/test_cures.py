"""Which codes have an edit, and what an edit does: the mistake is gone, the rest of the text is as it was, and the
kernel computes what its text says in Python.
"""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.frontend.locate import header_span
from tilelang_nb.language import __all__ as OPERATIONS
from tilelang_nb.source.catalogue import CATALOGUE, SyntaxMistake
from tilelang_nb.source.catalogue.page import page
from tilelang_nb.source.cures import CURES, cured
from tilelang_nb.source.cures.expressions import SAME_IN_LANGUAGE
from tilelang_nb.source.diagnostic import Fix, Message
from tilelang_nb.source.edits import apply
from tilelang_nb.source.syntax_tree import places
from tilelang_nb.source.text import Span, Text

WITHOUT = {
    "TL001": "the text is elsewhere",
    "TL102": "a function that reads names of the kernel needs parameters that only its author can choose",
    "TL103": "what the class is for is not in the text",
    "TL104": "the managed object may do anything on entry and exit",
    "TL109": "a Python type stands for several dtypes",
    "TL112": "how many items are meant is not in the text",
    "TL113": "it needs a buffer, whose memory and size the author chooses",
    "TL114": "it needs a buffer, whose memory and size the author chooses",
    "TL115": "where the generator should be consumed is not in the text",
    "TL116": "it needs a buffer, whose memory and size the author chooses",
    "TL118": "when the loop should end is not in the text",
    "TL119": "in a serial loop every thread of the block would run every iteration",
    "TL120": "what can fail, and what should happen then, is not in the text",
    "TL125": "a value that leaves the kernel needs a buffer parameter",
    "TL130": "what the name should hold on the other path is not in the text",
    "TL131": "the value after a loop of no turns is not in the text",
    "TL133": "it needs a buffer, or a condition that is known while building",
    "TL134": "a sum, an atomic or a reducer: the kernel's author chooses",
    "TL137": "a product of tiles needs a tile for its result",
    "TL138": "which element is meant is not in the text",
    "TL140": "which number is meant is not in the text",
    "TL141": "which way the loop should go is not in the text",
    "TL142": "a warning: the items may be any objects, and a device loop has numbers",
    "TL143": "where the recursion should end is not in the text",
    "TL144": "Python code of the user",
    "TL145": "an assertion is right or wrong for its author only",
    "TL202": "which element is meant is not in the text",
    "TL203": "a region leaves nothing out; which loop is meant is not in the text",
    "TL206": "the block size is the author's choice",
    "TL207": "shape and dtype of the parameter are not in the text",
    "TL208": "the launch is the author's choice",
    "TL209": "which tile should shrink is the author's choice",
    "TL210": "which operand should move to shared memory is the author's choice",
    "TL211": "what the buffer should hold is not in the text",
    "TL213": "what may wait, and where, is not in the text",
    "TL214": "which tile should be smaller is not in the text",
    "TL215": "where its data is needed, if at all, is not in the text",
    "TL216": "another way to find the element is the author's choice",
    "TL217": "how many registers a part needs is not in the text",
    "TL301": "the arguments of a launch come from elsewhere",
    "TL302": "the device is not part of the text",
    "TL401": "where a barrier belongs is the author's choice",
    "TL402": "which guard is meant is not in the text",
    "TL403": "what the memory should hold is not in the text",
    "TL404": "the data is wrong, or the assertion",
    "TL405": "which threads should wait is not in the text",
    "TL406": "what should be computed instead is not in the text",
    "TL900": "a fault of the compiler",
}


def compiled(text: str, first_line: int = 1) -> tilelang_nb.Compilation:
    names = {"T": tilelang_nb.language}
    return tilelang_nb.compile_cell(text, names, filename="In[1]", first_line=first_line, target="sim")


def fixes_of(found: tilelang_nb.Compilation) -> list[Fix]:
    return [fix for diagnostic in found.diagnostics for fix in diagnostic.fixes]


def test_every_code_has_an_edit_or_a_reason_why_not() -> None:
    with_edit = {cls.code for cls in CURES} | {SyntaxMistake.code}
    assert with_edit & WITHOUT.keys() == set()
    assert with_edit | WITHOUT.keys() == set(CATALOGUE)


@pytest.mark.parametrize("name", sorted(SAME_IN_LANGUAGE))
def test_functions_of_python_that_are_renamed_exist_in_the_language(name: str) -> None:
    assert name in OPERATIONS


# Codes whose page shows a case without an edit.
OTHER_CASE = {"TL117", "TL123", "TL127", "TL128", "TL205"}


@pytest.mark.parametrize("code", sorted(({cls.code for cls in CURES} | {"TL005"}) - OTHER_CASE))
def test_an_edit_cures_the_bad_text_of_the_page(code: str) -> None:
    found = compiled(page(code).bad)
    (diagnostic,) = found.diagnostics
    assert diagnostic.fixes
    for fix in diagnostic.fixes[:1]:
        after = compiled(apply(found.text, [fix]))
        assert not after.diagnostics, after.to_text()


KERNEL = """import math
import numpy as np
@T.prim_func
def k(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "int32"), n: T.int32):
    with T.Kernel(1, threads=1):
"""


def cell(body: str) -> str:
    return KERNEL + "".join(f"        {line}\n" if line else "\n" for line in body.strip("\n").split("\n"))


def body_of(text: str) -> str:
    return "\n".join(line[8:] for line in text.removeprefix(KERNEL).rstrip("\n").split("\n"))


def python(body: str, a: np.ndarray, b: np.ndarray, n: int) -> None:
    """The body as Python runs it on lists of numbers."""
    exec(compile(body, "<python>", "exec"), {"A": a, "B": b, "n": n, "math": np, "np": np})


# What is written, what the edits make of it, and, where Python's meaning of the body is not the plain one, the body
# that Python should run.
MEANING = {
    "chain": ("x = y = A[1]\nA[0] = x + y", "x = A[1]\ny = x\nA[0] = x + y"),
    "chain of a constant": ("A[0] = B[0] = 3  # both", "A[0] = 3\nB[0] = 3  # both"),
    "chain with an element first": ("A[0] = x = A[1] * 2.0\nA[2] = x", "x = A[1] * 2.0\nA[0] = x\nA[2] = x"),
    "chain of elements": ("A[0] = A[2] = A[1] + 1.0", "value = A[1] + 1.0\nA[0] = value\nA[2] = value"),
    "chain whose target reads the name": (
        "i = 1\nB[i] = i = n\nA[i] = 5.0",
        "i = 1\nB[i] = n\ni = n\nA[i] = 5.0",
    ),
    "chain whose value reads the name": ("x = 2\nx = y = x + n\nB[0] = x * y", "x = 2\nx = x + n\ny = x\nB[0] = x * y"),
    "chain of three over two lines": (
        "x = y = z = (A[0] +\n             A[1])\nA[2] = x + y + z",
        "x = (A[0] +\n             A[1])\ny = x\nz = x\nA[2] = x + y + z",
    ),
    "chain behind a colon": ("if n > 0: x = y = A[3]; A[0] = x + y", "if n > 0: x = A[3]; y = x; A[0] = x + y"),
    "chain after wide characters": ('"变é"; x = y = A[3]; A[0] = x + y', '"变é"; x = A[3]; y = x; A[0] = x + y'),
    "assert": ("assert n > 0\nB[0] = n", 'T.device_assert(n > 0, "n > 0")\nB[0] = n'),
    "assert with quotes": (
        'assert (n > 0 and\n        n != 9), "say \\"n\\""  # why\nB[0] = n',
        'T.device_assert(n > 0 and\n        n != 9, "say \\"n\\"")  # why\nB[0] = n',
    ),
    "len of a region": ("x = A[2:6]\nB[0] = len(x)", "x = A[2:6]\nB[0] = x.shape[0]"),
    "count": ("for i in n:\n    B[i] = i", "for i in range(n):\n    B[i] = i", "for i in range(n):\n    B[i] = i"),
    "number": ("for i in 4:  # all\n    B[i] = 7", "for i in range(4):  # all\n    B[i] = 7", "B[:4] = 7"),
    "elements": (
        "total = 0.0\nfor value in A:  # add up\n    # one by one\n    total += value\nA[0] = total",
        "total = 0.0\nfor i in range(A.shape[0]):  # add up\n    # one by one\n    value = A[i]\n    total += value\nA[0] = total",
    ),
    "elements in one line": (
        "i = 0\nfor v in B: i += v\nB[0] = i",
        "i = 0\nfor i_2 in range(B.shape[0]): v = B[i_2]; i += v\nB[0] = i",
    ),
    "loop else": (
        "for i in range(3):\n    A[i] = 0.0\n# then\nelse:  # last\n    # after\n    A[3] = 9.0\n\n    A[4] = 8.0",
        "for i in range(3):\n    A[i] = 0.0\n# then\n# after\nA[3] = 9.0\n\nA[4] = 8.0",
    ),
    "return": (
        "if n > 1:\n    A[0] = 1.0\n    return\nA[1] = 2.0\n\nA[2] = 3.0",
        "if n > 1:\n    A[0] = 1.0\nelse:\n    A[1] = 2.0\n\n    A[2] = 3.0",
        "if n > 1:\n    A[0] = 1.0\nelse:\n    A[1] = 2.0\n    A[2] = 3.0",
    ),
    "return alone": (
        "if n > 9:\n    return  # nothing to do\nA[1] = 2.0",
        "if n > 9:\n    pass  # nothing to do\nelse:\n    A[1] = 2.0",
        "A[1] = 2.0",
    ),
    "match": (
        "match n:\n    # few\n    case 1 | 2:\n        A[0] = 1.0\n    case 3 if B[0] > 0: A[0] = 3.0\n    case _:  # rest\n        A[0] = 4.0",
        "# few\nif n == 1 or n == 2:\n    A[0] = 1.0\nelif n == 3 and (B[0] > 0): A[0] = 3.0\nelse:  # rest\n    A[0] = 4.0",
    ),
    "function of math": ("A[0] = math.sqrt(A[1])", "A[0] = T.sqrt(A[1])"),
    "function of numpy": ("A[0] = np.exp(A[1])", "A[0] = T.exp(A[1])"),
    "floor division": ("B[0] = (B[1] + 5) / n", "B[0] = (B[1] + 5) // n", "B[0] = (B[1] + 5) // n"),
    "floor division after a comment": (
        "B[0] = (B[1]  # not / here\n        / n)",
        "B[0] = (B[1]  # not / here\n        // n)",
        "B[0] = B[1] // n",
    ),
    "floor division in place": ("B[1] /= n", "B[1] //= n", "B[1] //= n"),
    "is": ("if n is B[1]:\n    A[0] = 7.0", "if n == B[1]:\n    A[0] = 7.0", "if n == B[1]:\n    A[0] = 7.0"),
    "is not": (
        "if n is  not (B[1]):\n    A[0] = 7.0",
        "if n != (B[1]):\n    A[0] = 7.0",
        "if n != B[1]:\n    A[0] = 7.0",
    ),
    "stored float": ("B[0] = A[1] * 2.5", 'B[0] = T.cast(A[1] * 2.5, "int32")'),
    "added float": ("B[0] += A[1] * 2.5", 'B[0] = T.cast(B[0] + (A[1] * 2.5), "int32")'),
    "re-bound": (
        "x = A[0]\nif n > 3:\n    x = B[1]\nA[1] = x",
        'x = A[0]\nif n > 3:\n    x = T.cast(B[1], "float32")\nA[1] = x',
    ),
    "constant": ("B[0] = -2.75", "B[0] = -2"),
    "name": ("total = A[1]\nA[0] = totl + total", "total = A[1]\nA[0] = total + total", "A[0] = A[1] + A[1]"),
    "operation": ("A[0] = T.sqrtt(A[1])", "A[0] = T.sqrt(A[1])", "A[0] = np.sqrt(A[1])"),
    "keyword": (
        "for i in T.serial(4, stepp=1):\n    B[i] = 7",
        "for i in T.serial(4, step=1):\n    B[i] = 7",
        "B[:4] = 7",
    ),
    "dtype": (
        "x = T.alloc_local((4,), 'flot32')\nx[0] = A[1]\nA[0] = x[0]",
        "x = T.alloc_local((4,), 'float32')\nx[0] = A[1]\nA[0] = x[0]",
        "A[0] = A[1]",
    ),
    "colon": ("if n > 1  # many\n    A[0] = 7.0", "if n > 1:  # many\n    A[0] = 7.0", "if n > 1:\n    A[0] = 7.0"),
    "items at even distances": (
        "for i in [5, 3, 1]:\n    if B[i] == 8:\n        break\n    A[i] = 9.0",
        "for i in range(5, -1, -2):\n    if B[i] == 8:\n        break\n    A[i] = 9.0",
    ),
    "region filled": ("B[2:6] = n  # these", "T.fill(B[2:6], n)  # these"),
    "region copied": ("A[4:8] = A[0:4]", "T.copy(A[0:4], A[4:8])"),
    "print": ("print(n)\nB[0] = n", "T.print(n)\nB[0] = n"),
    "raise": (
        "if n > 99:\n    raise ValueError('big')\nB[0] = n",
        "if n > 99:\n    T.device_assert(False, 'big')\nB[0] = n",
    ),
    "method": ("B[0] = n.item() + 1", "B[0] = n + 1", "B[0] = n + 1"),
    "attribute": ("B[0] = A.shpe[0]", "B[0] = A.shape[0]", "B[0] = A.shape[0]"),
    "await": ("A[0] = await A[1]", "A[0] = A[1]", "A[0] = A[1]"),
    "async for": ("async for i in range(3):\n    A[i] = 4.0", "for i in range(3):\n    A[i] = 4.0", "A[:3] = 4.0"),
}


@pytest.mark.parametrize("case", MEANING)
@pytest.mark.parametrize("first_line", [1, 2])
def test_edits_give_the_text_and_the_meaning(case: str, first_line: int) -> None:
    written, wanted, *meant = MEANING[case]
    text = cell(written)
    for _ in range(3):
        found = compiled(text, first_line)
        chosen = [diagnostic.fixes[0] for diagnostic in found.diagnostics if diagnostic.fixes]
        if not chosen:
            break
        text = apply(found.text, chosen)
    assert body_of(text) == wanted
    assert not found.diagnostics, found.to_text()
    for n in (1, 3, 5):
        a, b = np.linspace(0.25, 4.0, 8, dtype=np.float32), np.arange(5, 13, dtype=np.int32)
        expected_a, expected_b = a.copy(), b.copy()
        found.namespace["k"](a, b, n)
        python(meant[0] if meant else written, expected_a, expected_b, n)
        np.testing.assert_allclose(a, expected_a, rtol=1e-6)
        np.testing.assert_array_equal(b, expected_b)


# What runs before and after its edit in a test of its own, or has no meaning in Python.
ELSEWHERE = {
    "TL108": "Python's type of a number is no dtype",
    "TL124": "test_an_import_that_moved_is_there",
    "TL201": "test_an_element_in_two_pairs_of_brackets_and_the_only_one_are_what_they_are_in_numpy",
    "TL204": "test_the_keyword_that_is_added_gives_the_product_that_fits",
}


def test_every_code_with_an_edit_is_executed_before_and_after_it() -> None:
    executed = {
        diagnostic.code
        for written, *_ in MEANING.values()
        for diagnostic in compiled(cell(written)).diagnostics
        if diagnostic.fixes
    }
    assert executed | set(ELSEWHERE) == {cls.code for cls in CURES} | {SyntaxMistake.code}
    assert not executed & set(ELSEWHERE)
    assert all(name in globals() for name in ELSEWHERE.values() if name.startswith("test_"))


def after_edits(text: str) -> tilelang_nb.Compilation:
    found = compiled(text)
    assert fixes_of(found)
    after = compiled(apply(found.text, [d.fixes[0] for d in found.diagnostics if d.fixes]))
    assert not after.diagnostics, after.to_text()
    return after


def test_a_kernel_that_was_a_coroutine_computes_what_it_says() -> None:
    after = after_edits(cell("B[0] = n + 2").replace("def k", "async def k"))
    a, b = np.zeros(8, np.float32), np.zeros(8, np.int32)
    after.namespace["k"](a, b, 5)
    assert b[0] == 7


def test_an_import_that_moved_is_there() -> None:
    after = after_edits(cell("import math as m\nA[0] = m.pi"))
    a, b = np.zeros(8, np.float32), np.zeros(8, np.int32)
    after.namespace["k"](a, b, 5)
    assert a[0] == np.float32(np.pi)


def test_an_element_in_two_pairs_of_brackets_and_the_only_one_are_what_they_are_in_numpy() -> None:
    text = """
@T.prim_func
def rows(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
    with T.Kernel(4, threads=8) as row:
        x = T.alloc_fragment((8,), "float32")
        largest = T.alloc_fragment((1,), "float32")
        T.copy(A[row, :], x)
        T.reduce_max(x, largest, dim=0)
        for j in T.Parallel(8):
            B[row][j] = A[row][7 - j]
        for j in T.Parallel(8):
            B[row, j] = B[row, j] - largest
"""
    kernel = after_edits(text).namespace["rows"]
    a, b = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32), np.zeros((4, 8), np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1] - a.max(1, keepdims=True))


def test_a_tile_in_the_other_order_is_allocated_so_where_no_copy_says_its_shape() -> None:
    text = """
@T.prim_func
def product(A: T.Tensor((32, 16), "float16"), B: T.Tensor((16, 64), "float16"), C: T.Tensor((32, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 16), "float16")
        b = T.alloc_shared((64, 16), "float16")
        c = T.alloc_fragment((32, 64), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B[0, 0], b)
        T.gemm(a, b, c)
        T.copy(c, C)
"""
    kernel = after_edits(text).namespace["product"]
    source = np.random.default_rng(0)
    a, b = source.standard_normal((32, 16)).astype(np.float16), source.standard_normal((16, 64)).astype(np.float16)
    c = np.zeros((32, 64), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)


def test_the_keyword_that_is_added_gives_the_product_that_fits() -> None:
    """The operands fit in one way only, which is the one that the edit says."""
    text = """
@T.prim_func
def product(A: T.Tensor((32, 16), "float16"), B: T.Tensor((64, 16), "float16"), C: T.Tensor((32, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 16), "float16")
        b = T.alloc_shared((64, 16), "float16")
        c = T.alloc_fragment((32, 64), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)
"""
    kernel = after_edits(text).namespace["product"]
    source = np.random.default_rng(0)
    a, b = source.standard_normal((32, 16)).astype(np.float16), source.standard_normal((64, 16)).astype(np.float16)
    c = np.zeros((32, 64), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("print(A[0])", "T.print(A[0])"),
        ('print("x =", A[0])', 'T.print(A[0], msg="x =")'),
        ('print(f"x = {A[0]}, n = {n}")', 'T.print(A[0], msg="x =")\nT.print(n, msg=", n =")'),
        ('print("start", A[0], "end")  # look', 'T.print(A[0], msg="start")\nT.print(msg="end")  # look'),
        ("print(A[0], n)", "T.print(A[0])\nT.print(n)"),
    ],
)
def test_prints_say_the_words_with_the_values(written: str, wanted: str) -> None:
    found = compiled(cell(written))
    (diagnostic,) = found.diagnostics
    text = apply(found.text, diagnostic.fixes)
    assert body_of(text) == wanted
    assert not compiled(text).diagnostics


@pytest.mark.parametrize(
    "written",
    [
        'print(f"{A[0]:.3f}")',  # a format of its own
        "print(A[0], sep=', ')",
        "for i in range(3):\n    if B[i] > 1:\n        break\nelse:\n    A[0] = 1.0",  # the `else` may not run
        "for i in range(3):\n    if B[i] > 1:\n        return\nA[0] = 1.0",  # what ends is not only the loop
        "x = n\nif n > 3:\n    x = A[0]\nB[0] = x",  # a cast to int32 would lose the fraction
        "for a in A[0:4]:\n    B[0] = 1",
        "for i in [1, 2, 4]:\n    if A[i] > 0.0:\n        break",
        "xyzzy()",  # nothing is near
        "assert n",
    ],
)
def test_no_edit_where_the_meaning_would_change(written: str) -> None:
    found = compiled(cell(written))
    assert found.diagnostics
    if written != "assert n":
        assert not fixes_of(found)


def test_a_kernel_that_calls_the_language_otherwise_keeps_its_name() -> None:
    text = (
        "import tilelang.language as L\n\n@L.prim_func\ndef k(n: L.int32):\n    with L.Kernel(1):\n        print(n)\n"
    )
    found = compiled(text)
    assert [fix.replacement for fix in fixes_of(found)] == ["L.print"]


def test_an_import_moves_before_the_decorators_of_an_inner_kernel() -> None:
    text = (
        "def make():\n    # doubles\n    @T.prim_func\n    def k(A: T.Tensor((4,), 'float32')):\n"
        "        with T.Kernel(1, threads=1):\n            import math as m  # for pi\n            A[0] = m.pi\n    return k\n\nk = make()\n"
    )
    found = compiled(text)
    assert not fixes_of(found)  # the comment would be lost
    text = text.replace("  # for pi", "")
    after = compiled(apply(compiled(text).text, fixes_of(compiled(text))))
    assert after.text.source.startswith("def make():\n    # doubles\n    import math as m\n\n    @T.prim_func\n")
    assert not after.diagnostics


def test_a_mistake_in_a_macro_of_another_cell_has_no_edit_here() -> None:
    names = {"T": tilelang_nb.language}
    tilelang_nb.compile_cell("@T.macro\ndef half(x):\n    return x / 2\n", names)
    text = cell("B[0] /= half(B[1])")
    found = tilelang_nb.compile_cell(text, names)
    assert found.diagnostics and not fixes_of(found)


def test_nearest_names_of_every_page_are_words_of_their_text(tmp_path: Path) -> None:
    found = compiled(page("TL002").bad)
    (fix,) = fixes_of(found)
    assert found.text.slice(fix.span) == "facter" and fix.replacement == "factor"


AWKWARD = """é = [1, 3]; x = y = (z
    ) = len ( é )  # ≠
@T.macro
async def m(
    a, *b, c: "int" = 1, **d
) -> None:
    import math; from os import (path,
        sep)
    for i, j in é: print(i, f"{j!r:>{3}} {i}", *b, end="")
    else: pass
    while (True):  # else:
        break
    else:
        \"\"\"text
    over lines\"\"\"
    match c:
        case 1 | 2 if a: pass
        case [1, *_] | {"k": _}:
            return
        case _: return 3
    if a is (c) is not None: return
    async for k in d: a.b.c /= (k
        / 2) / await k
    with a as b, c: raise
    a[1:2, ::2].dtype.x = -1.5; assert (a, "b"), f"c"
    raise ValueError from None
    raise E("t" "u", k=1)
    x: T.float16 = 1.5e3
    k = T.gemm(a, b, *c, transpose_B=False, **d)
    return lambda: (yield type(a))
"""


FIXED_FIELDS = {"near": "near", "operator": "==", "extent": "a", "element": "a"}


def messages() -> list[Message]:
    """Every message with an edit, once with each of some words in its fields."""
    made = []
    for cls in CURES:
        for word in ("a", "c", "is", "is not", "transpose_B=True", "-1.5", "float32"):
            made.append(cls(**{field.name: FIXED_FIELDS.get(field.name, word) for field in fields(cls)}))
    return made


@pytest.mark.parametrize("first_line", [1, 2])
def test_no_place_makes_an_edit_fail_or_leave_something_that_is_no_python(first_line: int) -> None:
    text = Text(AWKWARD, "In[1]", first_line)
    at = places(text)
    assert at is not None
    offered = 0
    for span in {*at.spans.values(), *(header_span(text, node) for node in at.spans if isinstance(node, ast.stmt))}:
        for message in messages():
            for fix in cured(message.at(span), text).fixes:
                offered += 1
                made = apply(text, [fix])
                try:
                    ast.parse(made)
                except SyntaxError as error:
                    pytest.fail(f"{message} at {span}: {fix} makes {error}\n{made}")
    assert offered > 100


@pytest.mark.parametrize("problem", ["expected ':'", "'await' outside async function"])
def test_no_place_makes_an_edit_of_a_syntax_error_fail(problem: str) -> None:
    text = Text(AWKWARD)
    for number, line in enumerate(text.lines, 1):
        for column in range(len(line) + 1):
            for fix in cured(
                SyntaxMistake(problem=problem, remedy="").at(Span(number, column, number, column + 1)), text
            ).fixes:
                apply(text, [fix])
