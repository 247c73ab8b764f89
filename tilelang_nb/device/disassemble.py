"""Machine code as text, through nvdisasm, with the line of the CUDA text that each instruction comes from."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile

from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Refusal

from .nvrtc import FILE, INSTALL, toolkit_roots

_PLACE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')


def nvdisasm() -> str:
    """The path of the tool.  TL302: it is not here."""
    for root in toolkit_roots():
        for name in ("nvdisasm", "nvdisasm.exe"):
            if (root / "bin" / name).is_file():
                return str(root / "bin" / name)
    found = shutil.which("nvdisasm")
    if found is None:
        problem = "machine code cannot be shown: nvdisasm is not installed"
        raise Refusal(say.TargetUnavailable(problem=problem, remedy=INSTALL))
    return found


def disassemble(cubin: bytes) -> tuple[str, tuple[int | None, ...]]:
    """The text, and per line the line (from 1) of the CUDA text; None where it has none.

    TL302 (Refusal): no nvdisasm.  RuntimeError: it refused the cubin.
    """
    path = nvdisasm()
    with tempfile.NamedTemporaryFile(suffix=".cubin", delete=False) as file:
        file.write(cubin)
    try:
        done = subprocess.run([path, "-c", "-gi", file.name], capture_output=True, text=True, timeout=120)
    finally:
        os.unlink(file.name)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"nvdisasm ended with {done.returncode}")
    return _with_lines(done.stdout)


def _with_lines(text: str) -> tuple[str, tuple[int | None, ...]]:
    """Take the notes of places out of the text.

    Of code that was inlined several notes stand in a row, that of the outermost call last.
    """
    kept: list[str] = []
    lines: list[int | None] = []
    current: int | None = None
    noted = False  # the line before was a note
    for line in text.splitlines():
        place = _PLACE.match(line)
        if place:
            mine = int(place[2]) if place[1].endswith(FILE) else None
            current = mine if mine is not None or not noted else current
            noted = True
            continue
        noted = False
        if line.startswith(("\t.section", "//---")):
            current = None
        kept.append(line)
        lines.append(current if line.lstrip().startswith("/*") else None)
    return "\n".join(kept) + "\n", tuple(lines)
