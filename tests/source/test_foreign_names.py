"""Names from CUDA, Triton, NumPy and PyTorch: what is said for them exists, and is said before and after a build alike."""

from __future__ import annotations

import re

import pytest

import tilelang_nb
from tilelang_nb import language
from tilelang_nb.frontend.static import check_text, surface
from tilelang_nb.language.unavailable import REFUSED
from tilelang_nb.source.foreign_names import ALONE, MODULES, OTHERWISE, SAME

HEAD = (
    '@T.prim_func\ndef k(A: T.Tensor((8,), "float32"), n: T.int32):\n    with T.Kernel(1, threads=8) as bx:\n        '
)
NAMED = re.compile(r"`@?T\.(\w+)")


def said(statement: str) -> tuple[str, str, str]:
    (found,) = tilelang_nb.compile_cell(HEAD + statement + "\n", target="sim").diagnostics
    (known,) = check_text(HEAD + statement + "\n")
    assert (known.code, known.message, known.help, known.span) == (found.code, found.message, found.help, found.span)
    return found.code, found.message, found.help


def test_what_is_named_exists_and_what_is_explained_does_not() -> None:
    assert all(hasattr(language, name) for name in SAME.values())
    assert not [name for name in [*SAME, *OTHERWISE] if hasattr(language, name)]
    named = {name for text in [*OTHERWISE.values(), *ALONE.values()] for name in NAMED.findall(text)}
    assert named and all(hasattr(language, name) for name in named)


@pytest.mark.parametrize("name", sorted(SAME))
def test_an_operation_of_another_name_is_the_nearest(name: str) -> None:
    assert said(f"x = T.{name}(n)") == ("TL003", f"`T.{name}` does not exist", f"did you mean `T.{SAME[name]}`?")


@pytest.mark.parametrize("name", sorted(OTHERWISE))
def test_what_is_said_otherwise_is_explained(name: str) -> None:
    assert said(f"x = T.{name}") == ("TL003", f"`T.{name}` does not exist", OTHERWISE[name])


@pytest.mark.parametrize("name", sorted({*MODULES, *ALONE}))
def test_a_module_without_its_import_or_a_name_of_cuda_is_explained(name: str) -> None:
    code, message, help = said(f"x = {name}.x")
    assert (code, message) == ("TL002", f"`{name}` is not defined")
    assert help == ALONE.get(name) or MODULES[name] in help


@pytest.mark.parametrize(
    "name", ["cpoy", "alloc_fragmnet", "Paralel", "gem", "reduce_sums", "flot32", "cieldiv", "clera"]
)
def test_a_misspelt_operation_still_finds_its_own(name: str) -> None:
    assert said(f"x = T.{name}")[2].startswith("did you mean `T.")


@pytest.mark.parametrize("name", ["qqq", "transform", "hello_world", "window"])
def test_a_word_that_is_like_nothing_gets_no_far_guess(name: str) -> None:
    assert said(f"x = T.{name}")[2] == "see `dir(T)` for the names there are"


def test_names_that_are_suggested_can_be_used() -> None:
    assert set(language.__all__) - set(REFUSED) == surface.SUGGESTED


def build(statement: str) -> tuple[str, str]:
    (found,) = tilelang_nb.compile_cell(HEAD + statement + "\n", target="sim").diagnostics
    return found.code, found.help


def test_print_with_the_words_first_is_turned_round() -> None:
    assert build('T.print("n is", n)') == ("TL004", 'write `T.print(value, msg="n is")`: the value comes first')


def test_a_float_as_a_bound_of_range_is_divided_otherwise() -> None:
    code, help = build("for i in range(8 / 2): A[i] = 1.0")
    assert code == "TL004" and "`//`" in help


def test_a_tile_operation_in_every_iteration_shows_no_name_of_the_compiler() -> None:
    text = HEAD + "for i in T.Parallel(8):\n            T.copy(A, A)\n"
    (found,) = tilelang_nb.compile_cell(text, target="sim").diagnostics
    assert found.code == "TL210" and "_moved" not in found.message and "tile of all threads" in found.message


@pytest.mark.parametrize("name", ["alloc_shared", "Parallel", "ceildiv", "float32", "gemm"])
def test_an_operation_without_its_prefix_gets_it(name: str) -> None:
    assert said(f"x = {name}(8)") == ("TL002", f"`{name}` is not defined", f"write `T.{name}`")
    made = tilelang_nb.compile_cell(HEAD + f"x = {name}(8)\n", target="sim")
    assert [fix.replacement for fix in made.diagnostics[0].fixes] == [f"T.{name}"]


@pytest.mark.parametrize(
    ("text", "what"),
    [("@T.prim_func\nclass K:\n    pass\n", "the class `K`"), ("k = T.prim_func(lambda A: 3)\n", "a lambda")],
)
def test_a_kernel_is_a_function(text: str, what: str) -> None:
    (found,) = tilelang_nb.compile_cell(text, target="sim").diagnostics
    assert found.code == "TL001" and found.message == f"{what} as a kernel" and "def k(" in found.help
