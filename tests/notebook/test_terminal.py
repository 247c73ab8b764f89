"""`%%tilelang` in terminal IPython, where there is neither HTML nor a kernel process."""

from __future__ import annotations

import subprocess
import sys

from structure.package_files import ROOT

SCRIPT = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in sys.stdin.read().split("----\\n"):
    shell.run_cell(cell, store_history=True)
"""
CELLS = """%load_ext tilelang_nb
----
import numpy as np
----
%%tilelang
@T.prim_func
def scale(A: T.Tensor((8,), "float32"), n: T.float32):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(8):
            A[i] = A[i] * n

A = np.ones(8, "float32")
scale(A, 3.0)
float(A.sum())
----
%%tilelang
@T.prim_func
def wrong(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        x = y = A[0]
----
scale(A)
"""


def test_cells_give_text_results_and_reports() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], input=CELLS, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert "Out[3]: 24.0" in run.stdout
    assert "lower-tile-operations" in run.stdout
    assert "<details" not in run.stdout
    assert "error[TL101]: chained assignment\n --> In[4]:5:9\n" in run.stdout
    assert "error[TL301]" in run.stdout
    assert "--> In[5]:1:1\n1 | scale(A)" in run.stdout
    assert "Traceback" not in run.stdout
    assert "\x1b[" not in run.stdout
