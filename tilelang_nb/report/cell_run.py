"""What a notebook knows of a run of a cell beside its compilation, and what of a run the next one is compared with."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from typing import Any

from ..source.interrupts import pass_on_interrupt
from ..source.text import Text


@dataclass(frozen=True)
class CellRun:
    """One run of one cell.

    ident: a name for its output, "" where there is none.  execution: the number of In[n].  cell: the cell as typed,
    with the magic line, "" if unknown.  call: the expression of `--call`.  elapsed: milliseconds from the text to the
    report.  launches: (kernel, how often) of the launches that the cell made.  benchmarks: the kernels that were timed,
    as `Kernel.bench` gives them.  told: its error says nothing that the report does not.  result: `result_text` of
    the value of its last expression or of `call`.  previous: `remembered` of its last run.
    """

    ident: str = ""
    execution: int | None = None
    cell: str = ""
    call: str | None = None
    elapsed: float | None = None
    launches: tuple[tuple[str, int], ...] = ()
    benchmarks: tuple[Any, ...] = ()
    told: bool = False
    result: str | None = None
    previous: dict[str, Any] | None = field(default=None, repr=False)

    def whole(self, text: Text) -> Text | None:
        """The cell as typed as a text whose lines are numbered as those of its body are; None if it is not known.

        The lines below the magic line have to be those of the body; comments above it are part of the body, each a line
        further down.
        """
        whole = Text(self.cell, text.name, 1)
        magic = next((number for number, line in enumerate(whole.lines, 1) if line.startswith("%%tilelang")), None)
        if magic is None:
            return None
        there = [line.rstrip() for line in self.cell.rstrip().split("\n")[magic:]]
        body = [line.rstrip() for line in text.source.rstrip().split("\n")[magic + 1 - text.first_line :]]
        return whole if there == body else None

    def compared_with(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """The last run, where its stages differ from those of `data`, this run's report."""
        if self.previous is None:
            return None
        now = remembered(data)["kernels"]
        kernels = {
            name: {
                "stages": {
                    stage: None if now.get(name, {}).get("stages", {}).get(stage) == text else text
                    for stage, text in kernel["stages"].items()
                },
                "facts": kernel["facts"],
            }
            for name, kernel in self.previous["kernels"].items()
        }
        return {**self.previous, "kernels": kernels}


UNKNOWN_RUN = CellRun()

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxother, _SHORT.maxstring = 4, 2000, 200
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 30


def result_text(value: Any) -> str | None:
    """The value of a cell as text, long ones shortened; None for None, and where its class cannot say."""
    if value is None:
        return None
    try:
        return _SHORT.repr(value)
    except BaseException as error:
        pass_on_interrupt(error)
        return None


def remembered(data: dict[str, Any]) -> dict[str, Any]:
    """What of a report the next run of its cell is compared with: the cell, the text of every stage, the facts."""
    kernels = {}
    for kernel in data["kernels"]:
        texts: dict[str, str] = {}
        for stage in kernel["stages"]:
            text = texts.get(stage.get("same_as"), stage.get("text"))
            if text is not None:
                texts[stage["name"]] = text
        facts = {fact["name"]: fact["value"] for fact in kernel["facts"]}
        kernels[kernel["name"]] = {"stages": texts, "facts": facts}
    return {"execution": data["execution"], "cell": data["cell"] or data["source"], "kernels": kernels}
