"""What an architecture such as "sm_90a" can do."""

from __future__ import annotations

import re

DEFAULT = 90


def capability(arch: str) -> int:
    """The compute capability as a number: 80 for "sm_80", 90 for "sm_90a"."""
    found = re.search(r"\d+", arch)
    return int(found.group()) if found else DEFAULT
