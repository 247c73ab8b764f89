"""A package that is missing, or another version, is told with what to install, not by a fault of this package."""

from __future__ import annotations

import subprocess
import sys

import pytest

KERNEL = """
@T.prim_func
def add(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "bfloat16")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            B[i] = A[i] + 1
"""


def without(names: str, program: str) -> str:
    """What a Python that lacks these packages says of a program, its last line."""
    absent = f"import sys\nfor name in {names.split()!r}: sys.modules[name] = None\n"
    ran = subprocess.run([sys.executable, "-c", absent + program], capture_output=True, text=True, timeout=120)
    return (ran.stdout + ran.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize(("name", "install"), [("ml_dtypes", "ml_dtypes"), ("tvm", "'apache-tvm==0.27.*'")])
def test_a_missing_package_is_named_with_what_to_install(name: str, install: str) -> None:
    said = without(name, "import tilelang_nb")
    assert said == f"ImportError: tilelang-nb needs `{name}`, which is not installed for {sys.executable}: " + (
        f"`pip install {install}`"
    )


def test_all_missing_packages_are_named_at_once() -> None:
    said = without("tvm ml_dtypes", "import tilelang_nb")
    assert "needs `ml_dtypes` and `tvm`, which are not installed" in said
    assert "`pip install ml_dtypes 'apache-tvm==0.27.*'`" in said


def test_a_package_of_another_version_is_told_with_the_one_to_install() -> None:
    other = (
        "import types; sys.modules['tvm'] = types.ModuleType('tvm')\nimport tilelang_nb; tilelang_nb.compile_cell('')"
    )
    said = without("tvm.tirx", other)
    assert said.startswith("ImportError: tilelang-nb cannot use the package `tvm`: ")
    assert "made for apache-tvm==0.27.*: `pip install 'apache-tvm==0.27.*'`, then start Python anew" in said


@pytest.mark.parametrize("name", ["torch", "numba", "cuda", "cupy", "IPython", "ipywidgets anywidget"])
def test_kernels_are_compiled_and_run_without_an_optional_package(name: str) -> None:
    program = f"""
import numpy as np, ml_dtypes, tilelang_nb
compiled = tilelang_nb.compile_cell({KERNEL!r}, target="sim")
assert compiled.ok, compiled.to_text()
B = np.zeros(8, ml_dtypes.bfloat16)
compiled.kernels["add"](np.arange(8, dtype="float32"), B)
print(B.astype("float32").tolist())
"""
    assert without(name, program) == "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]"


@pytest.mark.parametrize(
    ("name", "install"), [("numba", "pip install numba numba-cuda"), ("cuda.bindings", "pip install '.[cuda]'")]
)
def test_a_launch_on_a_device_names_the_package_that_it_needs(name: str, install: str) -> None:
    program = """
import ctypes
load = ctypes.CDLL
ctypes.CDLL = lambda name, *more, **options: None if name == "libcuda.so.1" else load(name, *more, **options)
from tilelang_nb.runtime import numba_device
print(numba_device.missing())
"""
    assert without(name, program).endswith(install)
