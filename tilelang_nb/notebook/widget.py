"""The widget of a cell or a kernel: a loader of about a kilobyte and the compressed report.

The viewer itself is the state of one `Asset` model a kernel process, so that a saved notebook holds it once.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import anywidget
import traitlets
from IPython.display import display
from ipywidgets import Layout

from ..report.cell_run import CellRun
from ..report.json import to_data
from ..source.providers import provided, register
from .bundle import NOT_BUILT, loader, viewer
from .shown import NO_ERROR, Shown, mark_of, new_ident

# A cell waits for it: this level takes a third of the time of the best for a few more bytes.
COMPRESSION = 6


class Asset(anywidget.AnyWidget):
    """Holds the viewer's code; never shown."""

    _esm = "export default { render() {} }"
    code = traitlets.Unicode().tag(sync=True)


class NotMade(Exception):
    """The text of a stage cannot be had here."""


class KernelView(anywidget.AnyWidget):
    """Shows the report of a Compilation or a Kernel.

    more: makes the report with the text of a stage of a kernel that is compiled only then.  trace: the JSON report,
    compressed.  ident: its static copy has the class `tnb-` and this.  static: HTML for pages
    that show no widgets; "" where a static copy stands beside it.
    """

    _esm = loader()
    asset = anywidget.WidgetTrait().tag(sync=True)
    trace = traitlets.Bytes().tag(sync=True)
    ident = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, data: dict[str, Any], static: str = "", more: Callable[[str, str], dict[str, Any]] | None = None
    ):
        self.static, self.more = static, more
        super().__init__(asset=asset(), trace=packed(data), ident=data["ident"], layout=_layout())
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: Any, buffers: Any) -> None:
        """A message of the viewer: `{ask: "stage", kernel, stage}` wants the text of device code."""
        if self.more is None or not isinstance(content, dict) or content.get("ask") != "stage":
            return
        try:
            self.show(self.more(str(content.get("kernel")), str(content.get("stage"))))
        except NotMade as reason:
            self.send({"failed": str(reason)})
        except Exception as error:  # a message has no cell under which a traceback could stand
            self.send({"failed": f"{type(error).__name__}: {error}"})

    def show(self, data: dict[str, Any]) -> None:
        """Show another report instead; of several in a row the last one stays."""
        self.trace = packed(data)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        made = super()._repr_mimebundle_(**options)
        data = made[0] if isinstance(made, tuple) else made
        if data is not None:
            data["text/plain"] = "TileLang inspector: run the cell to see it"
            if self.static:
                data["text/html"] = self.static
        return made


class StandingAlone(KernelView):
    """The view that `k.inspect()` gives.

    It is displayed as two outputs, as that of a cell is: of one with a widget and HTML a front end takes the widget,
    and shows an error where its state was not saved.
    """

    text = ""

    def _ipython_display_(self) -> None:
        display(Shown(self.text, html=NO_ERROR + self.static))
        made = self._repr_mimebundle_()
        bundle = made[0] if isinstance(made, tuple) else made
        display({kind: data for kind, data in bundle.items() if kind != "text/html"}, raw=True)


def packed(data: dict[str, Any]) -> bytes:
    """A report for the trait `trace`: zlib, which browsers undo with `DecompressionStream("deflate")`."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode("utf-8"), COMPRESSION)


_made: dict[str, Any] = {}


def asset() -> Asset:
    """The model that holds the viewer, made again after `Widget.close_all()`."""
    known = _made.get("asset")
    if known is None or known.comm is None:
        known = _made["asset"] = Asset(code=viewer() or NOT_BUILT, layout=_layout())
    return known


def _layout() -> Layout:
    """One for all widgets: each with its own would double what a notebook saves."""
    known = _made.get("layout")
    if known is None or known.comm is None:
        known = _made["layout"] = Layout()
    return known


def inspector(subject: Any) -> KernelView:
    """`k.inspect()`: the view of a kernel, with its static form for pages that show no widgets."""
    run = CellRun(new_ident())
    static = provided("html")(subject, compact=True, mark=f"tilelang-nb-static {mark_of(run.ident)}")
    more = partial(with_stage, subject, run)
    view = StandingAlone(to_data(subject, run), static, more)
    view.text = provided("text")(subject)
    return view


def with_stage(subject: Any, run: CellRun, kernel: str, stage: str, show: tuple[str, ...] = ()) -> dict[str, Any]:
    """The report of a Compilation or Kernel after the text of a stage of one of its kernels was made.

    show: the stages that are shown of it; all if empty.  NotMade: with the reason why there is no such text.
    """
    kernels = subject.kernels if hasattr(subject, "kernels") else {subject.name: subject}
    asked = next((one for one in kernels[kernel].stages if one.name == stage), None) if kernel in kernels else None
    if asked is None:
        raise NotMade(f"there is no stage {stage} of a kernel {kernel}")
    text = asked.text
    if not asked.ready:
        raise NotMade(" ".join(line.removeprefix("//").strip() for line in text.split("\n")))
    return to_data(subject, run, show)


register("widget", inspector)
