"""Upstream's host names: what `import tilelang` means in a cell, and how kernels are made, compiled and checked from
Python.

Text written for upstream TileLang finds here `jit`, `compile`, `lower`, `autotune`, `Profiler`, `language` and the
small names around them.  Timing is refused on the simulated device (TL302): its time says nothing about a GPU.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import language
from ..runtime.kernel import Kernel as JITKernel
from ..source.providers import register
from . import autotuner, driver, jit_function, layout, math, pass_config, profiler, testing
from .autotuner import autotune
from .eager import EagerFunction
from .jit_function import JitFunction, compile, get_tir, jit, lower, par_compile
from .math import cdiv, next_power_of_2
from .pass_config import PassConfigKey
from .profiler import Profiler
from .supply import TensorSupplyType

__all__ = [
    "EagerFunction",
    "JITKernel",
    "JitFunction",
    "PassConfigKey",
    "Profiler",
    "TensorSupplyType",
    "autotune",
    "cdiv",
    "compile",
    "disable_cache",
    "enable_cache",
    "get_tir",
    "is_cache_enabled",
    "jit",
    "language",
    "lower",
    "next_power_of_2",
    "par_compile",
    "set_log_level",
]

# Modules of which a few names are here.
transform = pass_config
carver = SimpleNamespace(arch=SimpleNamespace(driver=driver))
utils = SimpleNamespace(
    tensor=SimpleNamespace(TensorSupplyType=TensorSupplyType, torch_assert_close=testing.torch_assert_close)
)


def enable_cache() -> None:
    """Does nothing: what is kept of kernels, in memory and on disk, is found again by all that it depends on."""


def disable_cache() -> None:
    """Does nothing: what is kept of kernels, in memory and on disk, is found again by all that it depends on."""


def is_cache_enabled() -> bool:
    """True: code is kept on disk, until `%tilelang clear-cache`."""
    return True


def set_log_level(level: str | int) -> None:
    """Does nothing: the compiler logs nothing, it returns diagnostics."""


def cell_modules() -> dict[str, Any]:
    """What the import statements of a cell mean: module names of upstream and the objects that stand for them."""
    import sys

    return {
        "tilelang": sys.modules[__name__],
        "tilelang.language": language,
        "tilelang.jit": jit_function,
        "tilelang.layout": layout,
        "tilelang.autotuner": autotuner,
        "tilelang.profiler": profiler,
        "tilelang.math": math,
        "tilelang.transform": pass_config,
        "tilelang.testing": testing,
        "tilelang.carver": carver,
        "tilelang.utils": utils,
    }


register("modules", cell_modules)
register("jit", jit)  # `@T.prim_func(eager_jit=True)`
