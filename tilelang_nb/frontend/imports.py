"""`import` as a cell sees it: some names are redirected, `sys.modules` is left alone."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

_ABSENT = object()


class Imports:
    """modules: what `import` gives for these names; names below them are attributes."""

    def __init__(self, modules: Mapping[str, Any]):
        self.modules = modules

    def __call__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """Stands in for `__import__`."""
        top = name.split(".")[0]
        if level or top not in self.modules:
            return builtins.__import__(name, globals, locals, fromlist, level)
        found = self.find(name)
        return found if fromlist else self.modules[top]

    def find(self, name: str) -> Any:
        if name in self.modules:
            return self.modules[name]
        parent, _, last = name.rpartition(".")
        found = getattr(self.find(parent), last, _ABSENT) if parent else _ABSENT
        if found is _ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found
