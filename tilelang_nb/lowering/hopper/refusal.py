"""Why a launch is not divided into roles."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """The reason, as a decision tells it.  span: of the statement that it speaks of, None for the pipelined loop."""

    def __init__(self, reason: str, span: Any = None):
        super().__init__(reason)
        self.span = span
