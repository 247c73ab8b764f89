"""The names of T: upstream's are all there, each is documented, unknown ones are refused with the nearest real one."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tilelang_nb.language as T
from tilelang_nb.language.dtypes import DTYPES
from tilelang_nb.language.unavailable import REFUSED
from tilelang_nb.source.catalogue import CATALOGUE

HERE = Path(__file__).parent
UPSTREAM = [line.split("\t") for line in (HERE / "upstream_names.txt").read_text().splitlines()]
DUNDERS = {"__all__", "__tilelang_dialect__"}


@pytest.mark.parametrize("rank", ["core", "common", "rare"])
def test_every_name_of_upstreams_surface_resolves(rank):
    missing = [name for found, name in UPSTREAM if found == rank and not hasattr(T, name)]
    assert missing == []


def test_core_names_are_never_refused_wholesale():
    assert [name for rank, name in UPSTREAM if rank == "core" and name in REFUSED] == []


def test_public_names_are_these(golden):
    lines = [f"{name} refused" if T.__dict__[name] is REFUSED.get(name) else name for name in T.__all__]
    golden("\n".join(lines) + "\n", "language/names.txt")


OPERATIONS = [name for name in T.__all__ if name not in DTYPES and not name.startswith("make_") or name == "dtype"]


@pytest.mark.parametrize("name", [n for n in OPERATIONS if callable(getattr(T, n))])
def test_every_operation_documents_its_meaning_its_codes_and_its_source(name):
    text = inspect.getdoc(getattr(T, name)) or ""
    assert "Source:" in text or "source as there" in text or "source:" in text, text
    codes = re.findall(r"TL\d{3}", text)
    assert codes or name == "Ref", text
    assert set(codes) <= set(CATALOGUE)
    assert len(text.splitlines()[0]) <= 160


def test_unknown_names_are_refused_with_the_nearest_real_name(refused):
    with refused("TL003", "T.clera", "did you mean `T.clear`?"):
        T.clera
    with refused("TL003", "T.GemmWarpPolicy.FullRows", "T.GemmWarpPolicy.FullRow`"):
        T.GemmWarpPolicy.FullRows
    with refused("TL003", "T.alloc_Shared", "`T.alloc_shared`"):
        T.alloc_Shared
    with refused("TL003", "dir(T)"):
        T.qqqqqqqqqq


def test_files_of_the_package_are_no_operations(refused):
    from tilelang_nb.language import copies, values

    assert copies.copy is T.copy
    assert values.Value
    with refused("TL003"):
        T.copies


def test_python_may_ask_whether_a_name_is_there():
    assert hasattr(T, "copy")
    assert not hasattr(T, "clera")
    assert getattr(T, "clera", None) is None
    assert not hasattr(T.GemmWarpPolicy, "Diagonal")


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_operations_that_are_not_lowered_say_so_whatever_their_arguments(name, refused):
    with refused("TL302", f"`T.{name}`"):
        getattr(T, name)(1, "x", whatever=None)


def test_misspelt_missing_and_extra_arguments_name_the_real_ones(kernel, refused):
    a, b = kernel.buffer("a", (8,)), kernel.buffer("b", (8,), memory="shared.dyn")
    with refused("TL004", "`coalesed_width`", "did you mean `coalesced_width`?"):
        T.copy(a, b, coalesed_width=2)
    with refused("TL004", "`T.copy` takes 2 positional arguments, 3 given"):
        T.copy(a, b, 4)
    with refused("TL004", "needs `dst`"):
        T.copy(a)
    with refused("TL004", "`dst` twice"):
        T.copy(a, b, dst=b)
    with refused("TL004", "`transpos_B`", "`transpose_B`"):
        T.gemm(a, b, b, transpos_B=True)
    with refused("TL004", "needs `cluster_dims`"):
        T.ClusterKernel(1, threads=32)
    with refused("TL004", "takes no keywords"):
        T.ptx_commit_group(x=1)
    assert kernel.statements == []
