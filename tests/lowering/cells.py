"""Kernels from text: through the front end and lowering, run on threads."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import numpy as np
from lowering import thread_machine

import tilelang_nb.language as language
from tilelang_nb.frontend.session import Session
from tilelang_nb.lowering.pipeline import lower
from tilelang_nb.source.text import Text


def build(text: str) -> Any:
    """The lowered kernel `k` of a cell; `.errors` and `.warnings` are (code, line) pairs of everything said."""
    built: dict[str, Any] = {}

    def kernel(name: str, program: Any, diagnostics: Any) -> Any:
        built[name] = (program, tuple(diagnostics))
        return name

    modules = {"tilelang": SimpleNamespace(language=language), "tilelang.language": language}
    session = Session(Text(textwrap.dedent(text).strip("\n")), kernel_factory=kernel, modules=modules)
    found = list(session.run({}))
    program, diagnostics = built.get("k", (None, ()))
    lowered = None
    if program is not None:
        lowered = lower(program)
        found += [*diagnostics, *lowered.diagnostics]
    found = list(dict.fromkeys(found))

    def places(severity: str) -> list[tuple[str, int | None]]:
        return sorted((d.code, d.span and d.span.line) for d in found if d.severity == severity)

    return SimpleNamespace(
        program=program, lowered=lowered, found=found, errors=places("error"), warnings=places("warning")
    )


def run(text: str, **arguments: Any) -> Any:
    """Build and run; the arrays are written in place.  No error and no race is allowed."""
    kernel = build(text)
    assert not kernel.errors, "\n".join(map(str, kernel.found))
    for workspace in kernel.lowered.workspaces:
        shape = [int(extent) for extent in workspace.shape]
        arguments[workspace.name] = np.zeros(shape, thread_machine.numpy_dtype(workspace.dtype))
    for launch in kernel.lowered.launches:
        races = thread_machine.run(launch, **arguments)
        assert not races, races
    return kernel


def script(kernel: Any) -> str:
    return str(kernel.lowered.snapshots[-1].module.script())
