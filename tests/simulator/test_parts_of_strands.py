"""A strand is made of parts in files of their own: a name of one must not hide that of another."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter

from tilelang_nb.simulator.machine.strand import Strand


def stored(part: type) -> set[str]:
    """Names of a strand that a part stores to."""
    return {
        node.attr
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(part))))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def test_no_part_hides_a_name_of_another() -> None:
    parts = (*Strand.__bases__, Strand)
    defined = Counter(name for part in parts for name in vars(part) if not name.startswith("__"))
    assert [name for name, count in defined.items() if count > 1] == []
    methods = {name for part in parts for name, one in vars(part).items() if callable(one)}
    assert sorted(methods & {name for part in parts for name in stored(part)}) == []
