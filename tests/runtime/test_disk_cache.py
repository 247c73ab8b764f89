"""Compiled code on disk: found again by everything that decides it, whole or not at all, never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import tilelang_nb
from tilelang_nb.device import nvrtc
from tilelang_nb.runtime import cache, disk_cache
from tilelang_nb.runtime.disk_cache import DiskCache, folder, packed, unpacked

KEY = "ab" + "0" * 62
PARTS = {"cubin": b"\x00machine code\xff", "log": b"", "ptx": b"text"}


def entry(place: Path) -> Path:
    (found,) = place.glob("??/*.code")
    return found


def test_an_entry_is_found_again_in_full(tmp_path: Path) -> None:
    DiskCache(tmp_path).put(KEY, PARTS)
    assert DiskCache(tmp_path).get(KEY) == PARTS
    assert DiskCache(tmp_path).get("cd" + KEY[2:]) is None
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".part"] == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:20],
        lambda content: b"",
        lambda content: content + b"x",
        lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
        lambda content: b"\xff" * len(content),
        lambda content: content.replace(b"code 1\n", b"code 0\n"),
        lambda content: packed(PARTS, "ef" + KEY[2:]),
    ],
)
def test_a_damaged_entry_is_a_miss_and_is_replaced(tmp_path: Path, damage: Any) -> None:
    kept = DiskCache(tmp_path)
    kept.put(KEY, PARTS)
    path = entry(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert kept.get(KEY) is None and not path.exists()
    kept.put(KEY, PARTS)
    assert kept.get(KEY) == PARTS


def test_a_cut_entry_never_looks_whole() -> None:
    whole = packed(PARTS, KEY)
    assert unpacked(whole, KEY) == PARTS
    assert all(unpacked(whole[:size], KEY) is None for size in range(len(whole)))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the folder is read-only for ordinary users only")
def test_a_read_only_folder_warns_once_and_is_read(tmp_path: Path) -> None:
    DiskCache(tmp_path).put(KEY, PARTS)
    os.chmod(tmp_path, 0o555)
    try:
        check_unwritable(tmp_path)
    finally:
        os.chmod(tmp_path, 0o755)


def test_a_folder_that_cannot_be_made_warns_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    check_unwritable(tmp_path / "file" / "folder")


def check_unwritable(place: Path) -> None:
    kept = DiskCache(place)
    with pytest.warns(UserWarning, match="cannot be kept in") as said:
        kept.put("cd" + KEY[2:], PARTS)
    assert len(said) == 1 and "TILELANG_NB_CACHE_DIR" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.put("ef" + KEY[2:], PARTS)
        assert kept.get("ef" + KEY[2:]) is None and kept.clear() == 0


def test_the_oldest_entries_go_where_there_are_too_many(tmp_path: Path) -> None:
    keys = [f"{number:02x}" + "1" * 62 for number in range(6)]
    for number, key in enumerate(keys):
        DiskCache(tmp_path).put(key, {"cubin": bytes(1000)})
        os.utime(next(tmp_path.glob(f"{key[:2]}/*")), (number, number))
    size = next(tmp_path.glob("00/*")).stat().st_size
    DiskCache(tmp_path, limit=3 * size).put("ff" + "1" * 62, {"cubin": bytes(1000)})
    left = {path.parent.name for path in tmp_path.glob("??/*.code")}
    assert left == {"04", "05", "ff"}


def test_clear_removes_every_entry(tmp_path: Path) -> None:
    kept = DiskCache(tmp_path)
    for number in range(4):
        kept.put(f"{number:02x}" + KEY[2:], PARTS)
    assert kept.clear() == 4 and kept.get("00" + KEY[2:]) is None


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"TILELANG_NB_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/x"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/x"}, Path("/x/tilelang_nb")),
        ({"HOME": "/h"}, Path("/h/.cache/tilelang_nb")),
        ({"TILELANG_NB_CACHE_DIR": ""}, None),
    ],
)
def test_the_folder_follows_the_environment(
    variables: dict[str, str], place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TILELANG_NB_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert folder() == place
    assert DiskCache(None).get(KEY) is None and DiskCache(None).clear() == 0


WRITER = """
import sys
from pathlib import Path
from tilelang_nb.runtime.disk_cache import DiskCache
kept, number = DiskCache(Path(sys.argv[1])), int(sys.argv[2])
for turn in range(200):
    key = f"{turn % 5:02x}" + "2" * 62
    found = kept.get(key)
    assert found is None or len(set(found["cubin"])) == 1 and len(found["cubin"]) == 50000, "half an entry"
    kept.put(key, {"cubin": bytes([number]) * 50000})
    if turn % 50 == 49:
        kept.clear()
print("done")
"""


def test_several_processes_write_read_and_clear_one_folder(tmp_path: Path) -> None:
    run = [sys.executable, "-c", WRITER, str(tmp_path)]
    workers = [subprocess.Popen([*run, str(number)], stdout=subprocess.PIPE, text=True) for number in (1, 2)]
    assert [worker.communicate()[0].strip() for worker in workers] == ["done", "done"]


TEXT = """
factor = 2.0

@T.prim_func
def k(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i] * factor
"""


def test_code_is_compiled_once_for_a_text_its_values_its_options_and_its_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change of what decides the code compiles anew; the same again, after the memory is forgotten, does not."""
    compiled: list[str] = []

    def compile_cuda(source: str, arch: str, options: tuple[str, ...] = ()) -> Any:
        compiled.append(arch)
        return nvrtc.Compiled(f"{arch}{options}{source}".encode(), "ptx", "log")

    monkeypatch.setattr("tilelang_nb.device.program.compile_cuda", compile_cuda)
    monkeypatch.setattr("tilelang_nb.device.nvrtc.identity", lambda: "a compiler")
    monkeypatch.setenv("TILELANG_NB_CACHE_DIR", str(tmp_path))

    def cubin(text: str = TEXT, arch: str = "sm_80", **options: Any) -> bytes:
        cache.clear()
        kernel = tilelang_nb.compile_cell(text, target="cuda", arch=arch).kernels["k"]
        return kernel.compile(options=options).build().device.cubin

    variants = [
        {},
        {"text": TEXT.replace("2.0", "3.0")},
        {"text": TEXT.replace("A[i] * factor", "A[i] + factor")},
        {"arch": "sm_90a"},
        {"tl.enable_fast_math": True},
    ]
    first = [cubin(**variant) for variant in variants]
    assert len(compiled) == len(variants) == len(set(first))
    assert [cubin(**variant) for variant in variants] == first and len(compiled) == len(variants)
    entry_of_first = next(path for path in tmp_path.glob("??/*.code") if first[0] in path.read_bytes())
    entry_of_first.write_bytes(b"damaged")
    assert cubin() == first[0] and len(compiled) == len(variants) + 1
    assert disk_cache.store().folder == tmp_path
    cache.forget()
    assert not list(tmp_path.glob("??/*.code"))
