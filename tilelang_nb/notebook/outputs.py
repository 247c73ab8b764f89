"""What stands under a cell: the static report, below it the widget, and the static report alone once it is frozen.

The static copy is what pages show that run no widgets: untrusted, exported, or opened where the widget's state was not
saved.  A widget that came up hides its copy.  Each has a display id of its own, by which `freeze` replaces them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from ..source.providers import provided
from ..source.requirements import without_widgets
from .shown import NO_ERROR, Shown, mark_of

if TYPE_CHECKING:
    from ..report.cell_run import CellRun

# Runs of one cell whose widgets live on: a view of an earlier run may stand elsewhere on the page.
RUNS_OF_A_CELL = 2
# Cells whose outputs are known to `freeze`, and whose last run is kept to compare the next one with.
CELLS = 200


@dataclass(frozen=True)
class Output:
    """A report on the page.

    ident: the display id of its widget; that of its static copy has `-static` after it.  execution: the run of its
    cell.
    """

    ident: str
    execution: int | None
    subject: Any
    view: Any
    diagnostics: bool


class Outputs:
    """The reports with a widget that a notebook shows, by the cell that they stand under."""

    def __init__(self) -> None:
        self.cell = ""  # identifies the cell that is running over its runs, where the front end does that
        self._shown: OrderedDict[str, list[Output]] = OrderedDict()
        self._last: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def show(self, subject: Any, run: CellRun, stages: tuple[str, ...] = (), diagnostics: bool = True) -> bool:
        """Display a report under the cell that is running; True where a widget stands there.

        run: what is known of this run.  stages: those to show; empty for all.  diagnostics: does the static copy repeat
        what was said of the cell, or do they stand there already?
        """
        from ..report.json import to_data

        cell = self.cell or run.ident
        run = replace(run, previous=self._last.get(cell))
        data = to_data(subject, run, stages)
        asked = {"show": stages, "diagnostics": diagnostics, "launches": False}
        mark = f"tilelang-nb-static {mark_of(run.ident)}"
        static = NO_ERROR + provided("html")(subject, compact=True, mark=mark, **asked)
        display(Shown(provided("text")(subject, **asked), html=static), display_id=f"{run.ident}-static")
        lacking = without_widgets()
        if lacking is not None:
            print(f"{lacking}, and restart the kernel")
            return False
        from .widget import KernelView, with_stage

        view = KernelView(data, more=lambda kernel, stage: with_stage(subject, run, kernel, stage, stages))
        display(view, display_id=run.ident)
        self._keep(cell, Output(run.ident, run.execution, subject, view, diagnostics))
        self._remember(cell, data)
        return True

    def _keep(self, cell: str, output: Output) -> None:
        """Know an output; close the widgets of runs of its cell that were replaced long ago."""
        known = [*self._shown.pop(cell, []), output]
        runs = list(dict.fromkeys(one.execution for one in known))[-RUNS_OF_A_CELL:]
        for one in known:
            if one.execution not in runs:
                one.view.close()
        self._shown[cell] = [one for one in known if one.execution in runs]
        while len(self._shown) > CELLS:
            self._shown.popitem(last=False)  # they stay on the page; only `freeze` does not know them any more

    def _remember(self, cell: str, data: dict[str, Any]) -> None:
        from ..report.cell_run import remembered

        now = remembered(data)
        if any("tile" in kernel["stages"] for kernel in now["kernels"].values()):
            self._last[cell] = now
            self._last.move_to_end(cell)
        while len(self._last) > CELLS:
            self._last.popitem(last=False)

    def freeze(self, name: str = "") -> int:
        """Put static reports in the place of the widgets, of one kernel or of all; how many were replaced."""
        count = 0
        for cell, runs in list(self._shown.items()):
            left = []
            for output in runs:
                if name and name not in names_of(output.subject):
                    left.append(output)
                    continue
                _freeze(output)
                count += 1
            if left:
                self._shown[cell] = left
            else:
                del self._shown[cell]
        return count

    def names(self) -> set[str]:
        """The kernels that are shown."""
        return {name for runs in self._shown.values() for output in runs for name in names_of(output.subject)}

    def close(self) -> None:
        """Close every widget: the extension goes."""
        for runs in self._shown.values():
            for output in runs:
                output.view.close()
        self._shown.clear()


def names_of(subject: Any) -> set[str]:
    """The names of the kernels of a Compilation, or of one Kernel."""
    kernels = getattr(subject, "kernels", None)
    return {subject.name} if kernels is None else set(kernels)


class _Nothing:
    """Leaves an output empty."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": "", "text/html": ""}


def _freeze(output: Output) -> None:
    asked = {"diagnostics": output.diagnostics, "launches": False}  # those stand in outputs of their own
    frozen = Shown(provided("text")(output.subject, **asked), html=provided("html")(output.subject, **asked))
    update_display(frozen, display_id=f"{output.ident}-static")
    update_display(_Nothing(), display_id=output.ident)
    output.view.close()
