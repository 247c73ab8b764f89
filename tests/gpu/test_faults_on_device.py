"""Faults on a device: which kernel they are laid to, and what follows; code that is freed.

Each in a process of its own, which loses its context.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from gpu.test_launches_on_device import CELL

LOSE = f"""
import numpy as np, sys
import tilelang_nb
from numba import cuda
CELL = {CELL!r}
c = tilelang_nb.compile_cell(CELL, target="cuda", filename="lost.py")
far, b = cuda.to_device(np.full(4, 1 << 30, np.int32)), cuda.device_array(4, np.float32)
c.kernels["add_one"](np.zeros(256, np.float32))
"""
AFTERWARDS = """
for _ in range(2):
    try:
        c.kernels["add_one"](np.zeros(256, np.float32))
        print("ran")
    except tilelang_nb.LaunchError as error:
        print(error.diagnostic.code, error.diagnostic.message, "|", error.diagnostic.help)
c.kernels["add_one"].compile(target="sim")(np.zeros(256, np.float32))
print("the simulated device works")
"""


def in_a_process(text: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in run.stderr, run.stderr
    return run.stdout.strip().split("\n")


def test_an_illegal_access_names_the_kernel_and_later_launches_say_restart() -> None:
    call = """
try:
    c.kernels["outside"](far, b)
    c.kernels["add_one"](np.zeros(256, np.float32))
    print("nothing noticed")
except tilelang_nb.LaunchError as error:
    print(error.diagnostic.code, error.diagnostic.message, "|", error.diagnostic.help)
"""
    said = in_a_process(LOSE + call + AFTERWARDS)
    assert said[0].startswith("TL302") and "address" in said[0]
    assert "on device 0 in kernel `outside` of lost.py line" in said[0]
    assert 'target="sim"' in said[0] and "restart" in said[0]
    assert all("cannot run: the CUDA context was lost after" in line for line in said[1:3])
    assert said[3] == "the simulated device works"


def test_a_fault_is_found_by_waiting_after_the_cell() -> None:
    call = """
from tilelang_nb.runtime.device_wait import faults
c.kernels["outside"](far, b)
for error in faults():
    print(error.diagnostic.code, error.diagnostic.message)
"""
    said = in_a_process(LOSE + call + AFTERWARDS)
    assert "in kernel `outside` of lost.py line" in said[0]
    assert all("restart the notebook's kernel" in line for line in said[1:3])


BETWEEN = """
import time
from tilelang_nb.runtime.device_wait import faults
one, two = cuda.to_device(np.zeros(1 << 22, np.float32)), cuda.to_device(np.zeros(256, np.float32))
k = c.kernels
k["add_one"](one); k["add_one"](two); k["scaled"](one, one, 1.0); k["outside"](near, b); k["scaled"](one, one, 1.0)
assert faults() == []
ORDER
for error in faults():
    print(error.diagnostic.message, "|", error.diagnostic.help)
"""
ORDERS = {
    "first": """
k["outside"](far, b); k["add_one"](one); k["scaled"](one, one, 1.0)""",
    "between": """
for _ in range(50): k["add_one"](one)
k["outside"](far, b); k["scaled"](one, one, 1.0); k["add_one"](two)""",
    "last": """
for _ in range(20): k["add_one"](one)
for _ in range(20): k["scaled"](one, one, 1.0)
k["outside"](far, b)""",
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_fault_among_launches_of_several_kernels_names_the_one(order: str) -> None:
    near = "near = cuda.to_device(np.zeros(4, np.int32))\n"
    said = in_a_process(LOSE + near + BETWEEN.replace("ORDER", ORDERS[order]))
    assert len(said) == 1 and "on device 0 in kernel `outside` of lost.py line" in said[0], said


FREED = f"""
import gc
import numpy as np
import tilelang_nb
from numba import cuda
from tilelang_nb.runtime import cache
from tilelang_nb.runtime.device_wait import faults
CELL = {CELL!r}
array = cuda.to_device(np.zeros(1 << 20, np.float32))
free = []
for turn in range(12):
    c = tilelang_nb.compile_cell(CELL.replace("] + 1.0", f"] + {{turn}}.5"), target="cuda")
    for _ in range(20):
        c.kernels["add_one"](array)
    c = None
    cache.clear()
    gc.collect()
    assert faults() == []
    gc.collect()
    assert faults() == []
    free.append(cuda.current_context().get_memory_info().free)
print(float(array.copy_to_host()[5]), free[3] - free[-1])
"""


def test_code_of_kernels_that_are_gone_is_freed_while_others_run() -> None:
    total, lost = in_a_process(FREED)[-1].split()
    assert float(total) == 20 * sum(turn + 0.5 for turn in range(12))
    assert int(lost) <= 0


GRAPH = f"""
import gc
import torch
import tilelang_nb
from tilelang_nb.runtime import cache
from tilelang_nb.runtime.device_wait import faults
CELL = {CELL!r}
tensor = torch.zeros(512, device="cuda")
c = tilelang_nb.compile_cell(CELL, target="cuda")
c.kernels["add_one"](tensor)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    c.kernels["add_one"](tensor)
c = None
for turn in range(3):
    cache.clear()
    gc.collect()
    assert faults() == []
    other = tilelang_nb.compile_cell(CELL.replace("] + 1.0", f"] + {{turn}}.5"), target="cuda")
    other.kernels["add_one"](torch.zeros(512, device="cuda"))
    other = None
for _ in range(5):
    graph.replay()
torch.cuda.synchronize()
print(float(tensor[7]))
"""


def test_a_graph_keeps_the_code_of_its_kernels() -> None:
    pytest.importorskip("torch")
    assert in_a_process(GRAPH) == ["6.0"]
