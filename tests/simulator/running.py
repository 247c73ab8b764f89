"""Run a thread program with and without checks; both must compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_nb.simulator import Program, Report


def run(func: Any, arguments: dict[str, Any], **options: Any) -> tuple[dict[str, Any], Report]:
    """(arguments after the launch, report of the run with checks)."""
    results = []
    report = None
    for checks in (False, True):
        mine = {name: a.copy() if isinstance(a, np.ndarray) else a for name, a in arguments.items()}
        report = Program(func, checks=checks, **options).run(mine)
        results.append(mine)
    plain, checked = results
    for name, array in checked.items():
        if isinstance(array, np.ndarray):
            assert array.tobytes() == plain[name].tobytes(), f"{name} differs between the two translations"
    assert report is not None
    return checked, report


def clean(func: Any, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    """As `run`, for a program without faults."""
    results, report = run(func, arguments, **options)
    assert report.findings == (), [str(finding) for finding in report.findings]
    return results


def computed(func: Any, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    """As `clean`, for a program that may divide by 0 or shift too far: the simulated device fixes what comes of it."""
    results, report = run(func, arguments, **options)
    assert all(finding.code == "TL406" for finding in report.findings), [str(f) for f in report.findings]
    return results


def found(func: Any, arguments: dict[str, Any], **options: Any) -> list[tuple[str, int | None, tuple[int, ...]]]:
    """(code, line, lines of the notes) of every finding."""
    mine = {name: a.copy() if isinstance(a, np.ndarray) else a for name, a in arguments.items()}
    report = Program(func, **options).run(mine)
    return [
        (d.code, d.span.line if d.span else None, tuple(note.span.line for note in d.notes if note.span))
        for d in report.findings
    ]
