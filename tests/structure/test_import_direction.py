"""Parts of the package know only the parts to the left of them, and third-party worlds stay behind their doors."""

from __future__ import annotations

import ast
import sys

import pytest
from structure.package_files import imports, imports_of, modules

# Parts in one group do not know each other.
ORDER = [
    {"source"},
    {"language", "layout"},
    {"frontend"},
    {"lowering"},
    {"device", "simulator"},
    {"runtime"},
    {"report"},
    {"tilelang"},
    {"notebook", "cli"},
    {"__main__"},
]
RANK = {part: rank for rank, group in enumerate(ORDER) for part in group}

MAY_IMPORT = {
    "tvm": {"language", "frontend", "layout", "lowering", "device", "simulator"},
    "tvm_ffi": {"language", "frontend", "layout", "lowering", "device", "simulator"},
    "numba": {"runtime.numba_device"},
    "IPython": {"notebook"},
    "ipywidgets": {"notebook"},
    "anywidget": {"notebook"},
    "traitlets": {"notebook"},
}


def part(module: str) -> str:
    """The part of the package that a dotted name lies in; "" for the package itself."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else ""


def inside() -> list[str]:
    """Modules that have a place in the order: not the package itself, whose `__init__` hands out everything lazily."""
    return [module for module in modules() if part(module)]


def test_every_part_has_a_place_in_the_order() -> None:
    assert {part(module) for module in inside()} <= set(RANK)


@pytest.mark.parametrize("module", inside())
def test_imports_point_to_the_left(module: str) -> None:
    wrong = []
    for name, line in imports(module):
        if name.split(".")[0] != "tilelang_nb" or name == "tilelang_nb.__version__":
            continue
        target = part(name)
        if target not in RANK:
            wrong.append(f"line {line}: {name} asks the package's front door; import the part itself")
        elif target != part(module) and RANK[target] >= RANK[part(module)]:
            wrong.append(f"line {line}: {part(module)} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", inside())
def test_third_party_worlds_stay_behind_their_doors(module: str) -> None:
    own = module.removeprefix("tilelang_nb.")
    wrong = [
        f"line {line}: {name}"
        for name, line in imports(module)
        if (doors := MAY_IMPORT.get(name.split(".")[0])) is not None
        and not any(own == door or own.startswith(door + ".") for door in doors)
    ]
    assert not wrong, "\n".join(wrong)


def test_source_needs_only_the_standard_library() -> None:
    wrong = [
        f"{module} line {line}: {name}"
        for module in inside()
        if part(module) == "source"
        for name, line in imports(module)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tilelang_nb"}
    ]
    assert not wrong, "\n".join(wrong)


def test_the_scan_sees_every_form_of_import_at_any_depth() -> None:
    text = """
from __future__ import annotations
from .. import runtime
def late():
    import numba.cuda
    from ..report import views
    if True:
        from .kernel import Kernel
    importlib.import_module("..notebook.magic", __package__)
"""
    assert {name for name, _ in imports_of(ast.parse(text), "tilelang_nb.simulator")} == {
        "__future__.annotations",
        "tilelang_nb.runtime",
        "numba.cuda",
        "tilelang_nb.report.views",
        "tilelang_nb.simulator.kernel.Kernel",
        "tilelang_nb.notebook.magic",
    }
