"""Where in a PTX text products of warp groups may still run: what no wait on some way to a line has ended."""

from __future__ import annotations

import re
from collections import defaultdict

_ENTRY = re.compile(r"\.entry\s+(\w+)")
_LABEL = re.compile(r"^\s*([$\w]+):")
_JUMP = re.compile(r"^\s*(?P<guard>@!?%?\w+\s+)?bra(?:\.uni)?\s+(?P<label>[$\w]+)\s*;")
_END = re.compile(r"^\s*(?:ret|exit)\s*;")
_STARTED = re.compile(r"wgmma\.commit_group\.sync\.aligned")
_OVER = re.compile(r"wgmma\.wait_group\.sync\.aligned\s+0\b")


def may_run_at(ptx: str, name: str, line: int) -> bool:
    """May a product of a launch run that was started, on some way to a line (from 1) of the text?"""
    first, lines = _launch(ptx, name)
    if not first <= line < first + len(lines):
        return True
    ways = _ways(lines)
    running: set[int] = set()  # lines, from 0, before which a product may run
    waiting = [at for at, text in enumerate(lines) if _STARTED.search(text)]
    while waiting:
        for after in ways[waiting.pop()]:
            if after not in running:
                running.add(after)
                if not _OVER.search(lines[after]):
                    waiting.append(after)
    return line - first in running


def _launch(ptx: str, name: str) -> tuple[int, list[str]]:
    """(number of its first line, lines)."""
    found: list[str] = []
    first = 0
    for number, text in enumerate(ptx.splitlines(), 1):
        entry = _ENTRY.search(text)
        if entry and found:
            break
        if entry and entry[1] == name:
            first = number
        if first:
            found.append(text)
    return first, found


def _ways(lines: list[str]) -> dict[int, list[int]]:
    """By line, those that may follow it.  A label that stands several times, each in braces, means its neighbours."""
    labels: dict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(lines):
        label = _LABEL.search(text)
        if label:
            labels[label[1]].append(at)
    found: dict[int, list[int]] = {}
    for at, text in enumerate(lines):
        jump = _JUMP.search(text)
        stays = not _END.search(text) and not (jump and not jump["guard"]) and at + 1 < len(lines)
        found[at] = [at + 1] if stays else []
        if jump:
            places = labels[jump["label"]]
            found[at] += [max((one for one in places if one <= at), default=-1)]
            found[at] += [min((one for one in places if one > at), default=-1)]
            found[at] = [one for one in found[at] if one >= 0]
    return found
