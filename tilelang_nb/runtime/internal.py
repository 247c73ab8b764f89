"""TL900: a fault of this package becomes a diagnostic with a short text to report, never a traceback."""

from __future__ import annotations

import traceback
from pathlib import Path

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic
from ..source.text import Span
from .errors import PACKAGE


def internal_error(error: BaseException, doing: str, span: Span | None = None) -> Diagnostic:
    """The diagnostic of an exception that is no one's mistake but ours.  doing: what was at work, `lowering k`."""
    return say.InternalError(problem=f"{doing} failed ({type(error).__name__})", report=report_text(error)).at(span)


def report_text(error: BaseException) -> str:
    """The exception and the two innermost frames of the package, in one line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
    places = [f"{Path(frame.filename).relative_to(PACKAGE)}:{frame.lineno} in {frame.name}" for frame in frames[-2:]]
    said = " ".join(str(error).split())
    shown = said if len(said) <= 160 else said[:160] + "..."
    return "; ".join([f"{type(error).__name__}: {shown}".rstrip(": "), *reversed(places)])
