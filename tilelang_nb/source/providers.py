"""How a part reaches something that a later part gives it: by name, through this table, never by an import to the
right.

The package's `__init__`, which stands outside the order of parts, says which module provides what; the module
registers its function when it is imported, which happens when the name is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

_modules: dict[str, str] = {}
_registered: dict[str, Callable[..., Any]] = {}


def announce(modules: Mapping[str, str]) -> None:
    """For each name, the module whose import registers it."""
    _modules.update(modules)


def register(name: str, function: Callable[..., Any]) -> None:
    """Serve `name` with `function` from now on."""
    _registered[name] = function


def provided(name: str) -> Callable[..., Any]:
    """The function registered for `name`.  LookupError: no part serves it."""
    if name not in _registered and name in _modules:
        importlib.import_module(_modules[name])
    if name not in _registered:
        raise LookupError(f"no part of the package provides {name}")
    return _registered[name]
