"""Builds of tile programs, kept in memory: the same program for the same target is lowered and translated once.

A cell that is run again makes its tile programs anew from the text and the values that its names have then; what
costs time, the lowering, is found here by the structure of the program and the places of its statements.  So a
changed global gives another program, and another build.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from ..language.tile_effects import fingerprint, same_structure
from . import disk_cache
from .build import Build

LIMIT = 256
_builds: OrderedDict[Any, Build] = OrderedDict()


def build_of(program: Any, arch: str, options: Mapping[str, Any]) -> Build:
    """The build of a program, from the cache where an equal program was built before."""
    key = _key(program, arch, options)
    if key is None:
        return Build(program, arch, options)
    found = _builds.get(key)
    if found is None or not same_structure(found.program.function, program.function):
        found = _builds[key] = Build(program, arch, options)
    _builds.move_to_end(key)
    while len(_builds) > LIMIT:
        _builds.popitem(last=False)
    return found


def clear() -> int:
    """Forget all builds; how many there were."""
    count = len(_builds)
    _builds.clear()
    return count


def forget() -> int:
    """Forget all builds, and what is kept of them on disk; how many there were in memory."""
    disk_cache.store().clear()
    return clear()


def _key(program: Any, arch: str, options: Mapping[str, Any]) -> Any:
    """What an equal build must agree in; None where something in it cannot be compared."""
    text = program.text
    key = (
        text.source,
        text.first_line,
        program.name,
        tuple((parameter.name, parameter.kind, parameter.dtype) for parameter in program.parameters),
        tuple(program.layouts.items()),
        arch,
        tuple(sorted(options.items())),
        fingerprint(program.function),
    )
    try:
        hash(key)
    except TypeError:
        return None
    return key
