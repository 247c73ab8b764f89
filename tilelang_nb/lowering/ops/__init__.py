"""The tile operations: one module each.  `OPERATIONS` maps the name of an operation to its module.

What a module holds and may rely on: `lowering/context.py`.
"""

from __future__ import annotations

from typing import Any

OPERATIONS: dict[str, Any] = {}
