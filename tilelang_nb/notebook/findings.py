"""What the simulated device found, under the cell that launched: a `%%tilelang` cell or a plain one that calls a
kernel.

The runtime keeps a list of its latest launches.  It is emptied when a cell begins and shown when it ends; between the
two the extension shows the findings, so the warning by which the runtime speaks elsewhere is silenced.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from IPython.display import display

from ..source.diagnostic import Diagnostic, Note
from ..source.text import Text
from .shown import diagnostics_view


def runtime() -> Any:
    """The module that holds the launches; None before the compiler is loaded, when there are none."""
    module = sys.modules.get("tilelang_nb.runtime.kernel")
    return module if hasattr(module, "launches") else None  # another thread may be in the middle of importing it


def begin() -> None:
    """A cell begins: launches of earlier cells are no longer its business."""
    kernel = runtime()
    if kernel is not None:
        kernel.launches.clear()
        for calls in device_calls():
            calls.launches = 0
        silence_warning()


def device_calls() -> list[Any]:
    """The calls of every kernel that was launched on a GPU."""
    return list(getattr(sys.modules.get("tilelang_nb.runtime.device_calls"), "EVERY", ()))


def silence_warning() -> None:
    """The runtime warns of findings where nobody shows them; here they are shown."""
    kernel = runtime()
    if kernel is not None and not any(entry[2] is kernel.SimulatorFindings for entry in warnings.filters):
        warnings.filterwarnings("ignore", category=kernel.SimulatorFindings)


def end() -> None:
    """The extension goes: the runtime's own warning speaks again."""
    kernel = runtime()
    if kernel is not None:
        warnings.filters[:] = [entry for entry in warnings.filters if entry[2] is not kernel.SimulatorFindings]


def counts() -> dict[str, int]:
    """How often each kernel was launched since the cell began."""
    kernel = runtime()
    if kernel is None:
        return {}
    found = Counter(launch.kernel.name for launch in kernel.launches)
    for calls in device_calls():
        if calls.launches:
            found[calls.kernel.name] += calls.launches
    return dict(found)


def show(reported: Diagnostic | None = None, marks: Mapping[int, str] | None = None) -> None:
    """Show the findings of the launches since the cell began, and forget the launches.

    reported: a finding that the cell's own error shows already (a failed `T.device_assert`).  marks: for texts, by
    their `id`, the class of what the widget of their cell stands for.
    """
    kernel = runtime()
    if kernel is None or not kernel.launches:
        return
    launches = list(kernel.launches)
    kernel.launches.clear()
    for text, found in by_text(launches, reported):
        display(diagnostics_view(text, found, (marks or {}).get(id(text), "")))


def show_device_faults() -> None:
    """Wait for the launches on a GPU that the cell made, and show what went wrong in them.

    A launch returns before it runs; without this, its fault would come up in another cell, or as the error of a library
    that knows nothing of kernels.
    """
    if runtime() is None:
        return
    from ..runtime.device_wait import faults

    for error in faults():
        display(diagnostics_view(error.text or Text(""), (error.diagnostic,)))


def by_text(launches: list[Any], reported: Diagnostic | None = None) -> Iterator[tuple[Text, tuple[Diagnostic, ...]]]:
    """The findings of some launches, those of one text together.

    A finding of several launches once, with their number.
    """
    seen: Counter[tuple[int, Diagnostic]] = Counter()
    texts: dict[int, Text] = {}
    calls: Counter[int] = Counter()
    for launch in launches:
        text = launch.kernel.text
        texts[id(text)] = text
        calls[id(launch.kernel)] += 1
        for finding in dict.fromkeys(launch.findings):
            if reported is None or finding.key != reported.key:
                seen[id(text), finding] += 1
    for key, text in texts.items():
        found = [counted(finding, number) for (of, finding), number in seen.items() if of == key]
        if found:
            yield text, tuple(sorted(found, key=lambda finding: finding.order))


def counted(finding: Diagnostic, launches: int) -> Diagnostic:
    """The finding, saying in how many launches it was made where that is more than one."""
    if launches == 1:
        return finding
    return dataclasses.replace(finding, notes=(*finding.notes, Note(f"found in {launches} launches of this cell")))
