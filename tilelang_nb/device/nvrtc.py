"""CUDA C to cubin and PTX with NVRTC.  No device and no driver are needed.

The packages are those of the extra `cuda`: cuda-bindings, nvidia-cuda-nvrtc, nvidia-cuda-runtime (headers).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Refusal

FILE = "kernel.cu"
# 177: a variable is never used; 1046: a constant of a float type is not exact.
OPTIONS = ("-diag-suppress=177,1046", "--ptxas-options=-v", "-lineinfo", "--std=c++17")
# NVRTC puts the working folder in front of the name.
_FILE_LINE = re.compile(rf'(\.file\s+\d+\s+")[^"]*{re.escape(FILE)}')
# Of version 13 on: nothing about textures, which costs time; no cache, which says nothing of registers when it is used.
LATER_OPTIONS = ("--minimal", "--no-cache")
INSTALL = "install the CUDA compiler, in the folder of tilelang-nb: `pip install '.[cuda]'`"


@dataclass(frozen=True)
class Compiled:
    """cubin: for one architecture.  log: what NVRTC and ptxas said."""

    cubin: bytes
    ptx: str
    log: str


class NvrtcError(Exception):
    """NVRTC refused the text.  log: its messages.  line: of the text, from 1, of the first message; None for none."""

    def __init__(self, log: str):
        super().__init__(log)
        self.log = log
        found = re.search(rf"{re.escape(FILE)}\((\d+)\)", log)
        self.line = int(found[1]) if found else None


@lru_cache(maxsize=1)
def _nvrtc() -> Any:
    """The bindings with their library loaded.  TL302: they are not installed."""
    try:
        from cuda.bindings import nvrtc

        if int(nvrtc.nvrtcVersion()[0]) == 0:
            return nvrtc
        problem = "NVRTC does not start"
    except Exception as error:  # no package, or a package without the library
        problem = f"NVRTC cannot be loaded ({type(error).__name__})"
    raise Refusal(say.TargetUnavailable(problem=f"no CUDA compiler here: {problem}", remedy=INSTALL))


@lru_cache(maxsize=1)
def version() -> tuple[int, int]:
    """NVRTC's version.  TL302: there is none."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return int(major), int(minor)


@lru_cache(maxsize=1)
def architectures() -> tuple[int, ...]:
    """The numbers of the architectures that this NVRTC compiles for: 75, 80, ...  TL302: there is no NVRTC."""
    return tuple(int(number) for number in _checked(_nvrtc().nvrtcGetSupportedArchs()))


def require(arch: str) -> None:
    """TL302 for an architecture that this NVRTC does not know, or without NVRTC."""
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    known = architectures()
    if found is None or int(found[1]) not in known:
        name = ".".join(map(str, version()))
        problem = f"NVRTC {name} compiles for sm_{min(known)} to sm_{max(known)}, not for {arch}"
        remedy = f"choose one of {', '.join(f'sm_{number}' for number in known)}"
        if found is not None and int(found[1]) < min(known):
            remedy += ", or install a CUDA 12 NVRTC for older devices; the CUDA C is there in any case"
        raise Refusal(say.TargetUnavailable(problem=problem, remedy=remedy))


@lru_cache(maxsize=1)
def toolkit_roots() -> tuple[pathlib.Path, ...]:
    """Folders that hold `include` and `bin`: of the nvidia packages, then of an installed toolkit."""
    found: list[pathlib.Path] = []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        found += sorted(child for child in pathlib.Path(folder).iterdir() if child.is_dir())
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            found.append(pathlib.Path(os.environ[name]))
    found.append(pathlib.Path("/usr/local/cuda"))
    return tuple(found)


@lru_cache(maxsize=1)
def _include_options() -> tuple[str, ...]:
    folders = [root / "include" for root in toolkit_roots()]
    folders = [folder for folder in folders if (folder / "cuda_fp16.h").is_file()]
    if not folders:
        problem = "no CUDA compiler here: the headers are missing (cuda_fp16.h)"
        raise Refusal(say.TargetUnavailable(problem=problem, remedy=INSTALL))
    return tuple(f"-I{folder}" for folder in folders)


def _checked(result: tuple[Any, ...]) -> Any:
    if int(result[0]) != 0:
        raise NvrtcError(str(result[0]))
    return result[1] if len(result) == 2 else result[1:]


def _room(size: int) -> bytes:
    """Bytes that NVRTC fills.  Never one: CPython shares objects of one byte, and would share what is written there."""
    return bytes(max(size, 2))


@lru_cache(maxsize=1)
def identity() -> str:
    """Which compiler this is, without loading it where its packages say so.  TL302: there is none."""
    from importlib import metadata

    found = []
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name}: NVRTC {version()}")
    return "; ".join(found)


def key_of(source: str, arch: str, options: tuple[str, ...] = ()) -> str:
    """A digest of everything that decides what `compile_cuda` gives.  TL302 as `identity`."""
    parts = (source, arch, *OPTIONS, *options, identity())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def compile_cuda(source: str, arch: str, options: tuple[str, ...] = ()) -> Compiled:
    """The text compiled for a real architecture such as "sm_80" or "sm_90a".

    TL302 (Refusal): no NVRTC, or an architecture it does not know.  NvrtcError: the text is no CUDA C.
    """
    nvrtc = _nvrtc()
    require(arch)
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), FILE.encode(), 0, [], []))
    try:
        arguments = [f"--gpu-architecture={arch}", *OPTIONS, *options]
        arguments += LATER_OPTIONS if version() >= (13, 0) else ()
        if "#include" in source:
            arguments += _include_options()
        encoded = [argument.encode() for argument in arguments]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _room(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
        nvrtc.nvrtcGetProgramLog(program, log)
        said = log.decode("utf-8", "replace").strip("\0 \n")
        if int(status) != 0:
            raise NvrtcError(said or str(status))
        cubin = _room(_checked(nvrtc.nvrtcGetCUBINSize(program)))
        _checked((*nvrtc.nvrtcGetCUBIN(program, cubin), None))
        ptx = _room(_checked(nvrtc.nvrtcGetPTXSize(program)))
        _checked((*nvrtc.nvrtcGetPTX(program, ptx), None))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Compiled(cubin, _FILE_LINE.sub(rf"\1{FILE}", ptx.decode().rstrip("\0")), said)
