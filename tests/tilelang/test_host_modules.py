"""Modules of TileLang beside the language: the names that are here, and what is said of the others."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.language import dtype
from tilelang_nb.source.diagnostic import Refusal


def ran(text: str) -> Any:
    compiled = tilelang_nb.compile_cell(text, target="sim")
    assert compiled.ok, compiled.to_text()
    return compiled.result


@pytest.mark.parametrize(
    "lines",
    [
        "from tilelang.carver.arch import driver",
        "import tilelang.carver.arch.driver as driver",
        "import tilelang\ndriver = tilelang.carver.arch.driver",
    ],
)
def test_the_device_has_multiprocessors(lines: str) -> None:
    assert ran(f"{lines}\ndriver.get_num_sms()") > 1


def test_comparisons_and_decorators_of_other_modules_are_here() -> None:
    assert ran("""
import numpy as np
from tilelang.utils.tensor import TensorSupplyType, torch_assert_close
from tilelang.transform import PassConfigKey, simplify_prim_func

@simplify_prim_func
def factory(n):
    @T.prim_func
    def k(a: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=n):
            for i in T.Parallel(n):
                a[i] = i
    return k

a = np.zeros(4, "int32")
factory(4)(a)
torch_assert_close(a, np.arange(4))
a.tolist()
""") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from tilelang.tools import plot_layout", "leave it out: of TileLang there are `tilelang.autotuner`, "),
        ("import tilelang.contrib.nvcc", "leave it out: of TileLang there are "),
        ("from tilelang import tvm", "leave it out: `tilelang` has no such name here"),
        ("from tilelang.carver.arch import CUDA", "leave it out: `tilelang.carver.arch` has no such name here"),
        ("import no_such_module_anywhere", "correct the name, or install the module"),
    ],
)
def test_an_import_of_what_is_not_here_says_so(line: str, said: str) -> None:
    (found,) = tilelang_nb.compile_cell(line).diagnostics
    assert found.code == "TL144" and said in found.help and "tilelang_nb" not in found.message, found


def test_a_scheduler_without_a_number_of_workers_takes_the_blocks_of_the_launch() -> None:
    counts = ran("""
import numpy as np
@T.prim_func
def k(B: T.Tensor((7, 5), "int32"), order: T.Tensor((35,), "int32")):
    with T.Kernel(2, 2, threads=1) as (bx, by):
        sched = T.PersistentTileScheduler(7, 5, swizzle_size=2, name="sched")
        sched.init(by * 2 + bx)
        while sched.valid():
            T.atomic_add(B[sched.m_idx, sched.n_idx], 1)
            order[sched.linear_idx] = by * 2 + bx
            sched.next_tile()

B, order = np.zeros((7, 5), "int32"), np.full(35, -1, "int32")
k(B, order)
B.tolist(), order.tolist()
""")
    assert counts == ([[1] * 5] * 7, [tile % 4 for tile in range(35)])


def test_a_dtype_has_its_type_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    class TorchType:
        pass

    torch = ModuleType("torch")
    torch.__dict__.update(dtype=TorchType, float16=TorchType(), float32=TorchType(), bits=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert dtype("half").as_torch() is torch.float16 and dtype("tfloat32").as_torch() is torch.float32
    with pytest.raises(Refusal, match="torch has no dtype"):
        dtype("uint64").as_torch()
    assert dtype("float16").as_numpy() == np.float16
