"""`import` as a cell sees it: some names are redirected, `sys.modules` is left alone.

A cell has built-ins of its own: what it stores into `builtins` counts in the cell and does not reach the process.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

_ABSENT = object()


class CellBuiltins(ModuleType):
    """What `import builtins` gives in a cell: the built-ins of the cell."""

    def __init__(self, names: dict[str, Any]):
        super().__init__("builtins", builtins.__doc__)
        object.__setattr__(self, "_names", names)

    def __getattribute__(self, name: str) -> Any:
        names = object.__getattribute__(self, "_names")
        if name == "__dict__":
            return names
        return names[name] if name in names else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"module 'builtins' has no attribute {name!r}")
        del self.__dict__[name]

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__)


@contextlib.contextmanager
def kept_builtins(names: dict[str, Any]) -> Iterator[None]:
    """What code of a cell replaces among the built-ins of the process moves to those of the cell, `names`."""
    found = vars(builtins)
    before = dict(found)
    try:
        yield
    finally:
        for name, value in before.items():
            now = found.get(name, _ABSENT)
            if now is value or name == "_":  # the interactive prompt keeps its last result there
                continue
            found[name] = value
            if now is _ABSENT:
                names.pop(name, None)
            else:
                names[name] = now


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
        for wanted in fromlist or ():
            if wanted != "*" and not hasattr(found, wanted):
                raise ImportError(f"cannot import name {wanted!r} from {name!r}", name=name)
        return found if fromlist else self.modules[top]

    def find(self, name: str) -> Any:
        if name in self.modules:
            return self.modules[name]
        parent, _, last = name.rpartition(".")
        found = getattr(self.find(parent), last, _ABSENT) if parent else _ABSENT
        if found is _ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found
