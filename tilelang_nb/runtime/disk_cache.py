"""Compiled device code kept on disk, for the next process that compiles the same.

An entry is found by a key that is made of everything that decides the code: the CUDA text (and with it the text of the
cell and every value that it used), the architecture, the options, the versions of compiler and package.  Several
processes may use one folder: an entry is written beside its place and moved there in one step, and an entry that is not
whole counts as missing.

The folder: `TILELANG_NB_CACHE_DIR`, else `tilelang_nb` in `XDG_CACHE_HOME`, else in `~/.cache`.  Set to nothing,
`TILELANG_NB_CACHE_DIR` turns the cache off.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

FOLDER = "TILELANG_NB_CACHE_DIR"
MAGIC = b"tilelang_nb device code 1\n"
SUFFIX = ".code"
LIMIT = 1 << 30  # bytes; the entries used longest ago go first
DIGEST = 32


class DiskCache:
    """Entries in one folder.

    That the folder cannot be written or made is said once, as a warning; entries that are there are still read.
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT):
        self.folder, self.limit = folder, limit
        self._said = False
        self._measured = False

    def get(self, key: str) -> dict[str, bytes] | None:
        """The parts of an entry; None where there is none, or none that is whole."""
        if self.folder is None:
            return None
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        parts = unpacked(content, key)
        if parts is None:
            self._remove(path)
            return None
        try:
            os.utime(path)
        except OSError:
            pass  # a folder that can only be read is good for reading
        return parts

    def put(self, key: str, parts: Mapping[str, bytes]) -> None:
        """Keep an entry.  Never raises."""
        if self.folder is None:
            return
        path = self._path(key)
        temporary = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(packed(parts, key))
            os.replace(temporary, path)
            temporary = None
            self._keep_within_limit()
        except OSError as error:
            self._say(error)
        finally:
            if temporary is not None:
                self._remove(Path(temporary))

    def clear(self) -> int:
        """Remove every entry; how many there were."""
        entries = self._entries()
        for path in entries:
            self._remove(path)
        return len(entries)

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / (key + SUFFIX)

    def _entries(self) -> list[Path]:
        if self.folder is None:
            return []
        try:
            return [path for path in self.folder.glob(f"??/*{SUFFIX}") if path.is_file()]
        except OSError:
            return []

    def _remove(self, path: Path) -> None:
        try:
            path.unlink()
        except OSError:
            pass  # another process was faster, or the folder can only be read

    def _keep_within_limit(self) -> None:
        """Once in a process: a folder grows slowly."""
        if self._measured:
            return
        self._measured = True
        found = []
        for path in self._entries():
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found, key=lambda entry: entry[0]):
            if total <= self.limit:
                break
            self._remove(path)
            total -= size

    def _say(self, error: OSError) -> None:
        if not self._said:
            self._said = True
            reason = error.strerror or type(error).__name__
            warnings.warn(
                f"compiled kernels cannot be kept in {self.folder} ({reason}): they are compiled again in every "
                f"process; set {FOLDER} to a folder that can be written, or to nothing",
                stacklevel=2,
            )


def packed(parts: Mapping[str, bytes], key: str) -> bytes:
    """An entry as it is written: magic, digest of the rest, key and names and lengths, the parts."""
    head = json.dumps({"key": key, "parts": [[name, len(part)] for name, part in parts.items()]}).encode()
    body = len(head).to_bytes(4, "little") + head + b"".join(parts.values())
    return MAGIC + hashlib.sha256(body).digest() + body


def unpacked(content: bytes, key: str) -> dict[str, bytes] | None:
    """The parts of an entry; None if it is damaged, cut short, of another version or of another key."""
    start = len(MAGIC) + DIGEST
    body = content[start:]
    if not content.startswith(MAGIC) or hashlib.sha256(body).digest() != content[len(MAGIC) : start]:
        return None
    length = int.from_bytes(body[:4], "little")
    head = json.loads(body[4 : 4 + length])
    if head["key"] != key:
        return None
    parts, at = {}, 4 + length
    for name, size in head["parts"]:
        parts[name] = body[at : at + size]
        at += size
    return parts


def folder() -> Path | None:
    """Where this process keeps compiled code; None for nowhere."""
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given).expanduser() if given.strip() else None
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        return (Path(base) if base else Path.home() / ".cache") / "tilelang_nb"
    except RuntimeError:  # a user without a home
        return None


@functools.lru_cache(maxsize=8)
def _cache_in(place: Path | None) -> DiskCache:
    return DiskCache(place)


def store() -> DiskCache:
    """The cache of this process."""
    return _cache_in(folder())
