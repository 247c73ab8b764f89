"""Control flow of the walk itself, as exceptions."""

from __future__ import annotations

import ast
from typing import Any


class ReturnValue(Exception):
    """`return` under compile-time control flow: unwinds to the call of the macro, or ends the kernel."""

    def __init__(self, value: Any):
        super().__init__()
        self.value = value


class Leave(Exception):
    """`break` or `continue` of a compile-time loop."""

    def __init__(self, statement: ast.stmt):
        super().__init__()
        self.statement = statement
