"""Upstream's host names: factories, compiling, returned tensors, the profiler and autotune without a device to time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_nb
from tilelang_nb.runtime.kernel import Kernel

MATMUL = """
import tilelang
import tilelang.language as T
from tilelang import jit
from tilelang.autotuner import autotune

runs = []

@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True, "tl.own": [1]})
def add(n, block=8, dtype="float32"):
    runs.append(n)
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return main

@autotune(configs=[{"block": 4}, {"block": 8}])
@jit(out_idx=2)
def tuned(n, block=8):
    return add.func(n, block)

@jit
def wrong(n):
    return n
"""


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    c = tilelang_nb.compile_cell(MATMUL)
    assert c.ok, c.to_text()
    return c.namespace


def test_a_factory_compiles_once_per_set_of_arguments(names: dict[str, Any]) -> None:
    k = names["add"](16)
    assert names["add"](16) is k and names["add"](n=16, block=8) is k
    assert names["add"](16, 4) is not k and names["add"](16.0 and 24) is not k
    assert names["runs"].count(16) == 2


def test_out_idx_returns_the_tensor(names: dict[str, Any]) -> None:
    a = np.arange(16, dtype=np.float32)
    c = names["add"](16)(a, a)
    assert np.array_equal(c, 2 * a) and c.dtype == np.float32
    with pytest.raises(tilelang_nb.LaunchError, match="C is returned"):
        names["add"](16)(a, a, c)


def test_a_function_that_returns_no_kernel_is_told_so(names: dict[str, Any]) -> None:
    with pytest.raises(tilelang_nb.CompileError) as raised:
        names["wrong"](3)
    (found,) = raised.value.diagnostics
    assert (found.code, found.help) == ("TL004", "define a `@T.prim_func` in it and return that")
    assert "returns an int" in found.message


def test_a_factory_that_forgot_its_return_is_shown_it() -> None:
    text = "@jit\ndef make(n):\n    @T.prim_func\n    def k(A: T.Tensor((4,), 'int8')):\n        with T.Kernel(1):\n            A[0] = n\n\nmake(3)"
    (found,) = tilelang_nb.compile_cell(text, {}).diagnostics
    assert (found.code, found.span.line, found.help) == ("TL004", 2, "end it with `return k`")


def test_par_compile_keeps_the_order(names: dict[str, Any]) -> None:
    kernels = names["add"].par_compile([{"n": 8}, (16,), {"n": "x"}], ignore_error=True)
    assert [k and k.parameters[0].shape for k in kernels] == [(8,), (16,), None]


def test_get_tir_gives_the_tile_program(names: dict[str, Any]) -> None:
    assert names["add"].get_tir(8).attrs["global_symbol"] == "main"


def test_compile_and_lower_take_a_kernel(names: dict[str, Any]) -> None:
    k = names["add"].func(8)
    a = np.arange(8, dtype=np.float32)
    both = tilelang_nb.compile(k, out_idx=[2], target="sim")
    assert np.array_equal(both(a, a), 2 * a)
    assert "thread" in [stage.name for stage in tilelang_nb.lower(k).stages]
    with pytest.raises(TypeError, match=r"T\.prim_func"):
        tilelang_nb.compile(lambda: None)
    with pytest.raises(IndexError, match="3 parameters"):
        tilelang_nb.compile(k, out_idx=3)
    with pytest.raises(tilelang_nb.LaunchError, match="TL302"):
        tilelang_nb.compile(k, target="abacus")
    assert tilelang_nb.compile(k, target="cuda").target.kind == "cuda"


def test_the_profiler_compares_and_refuses_to_time(names: dict[str, Any]) -> None:
    profiler = names["add"](16).get_profiler(names["tilelang"].TensorSupplyType.Normal)
    profiler.assert_allclose(lambda a, b: a + b, rtol=1e-6, atol=1e-6)
    with pytest.raises(AssertionError, match="result 0: 16 of 16 elements differ"):
        profiler.assert_allclose(lambda a, b: a + b + 1)
    with pytest.raises(tilelang_nb.LaunchError, match="no clock"):
        profiler.do_bench()


def test_autotune_refuses_to_choose_but_takes_a_choice(names: dict[str, Any]) -> None:
    a = np.arange(16, dtype=np.float32)
    assert np.array_equal(names["tuned"](16, block=4)(a, a), 2 * a)
    with pytest.raises(tilelang_nb.LaunchError, match="one of 2 configurations of `tuned`") as caught:
        names["tuned"](16)
    assert "give the arguments yourself, `block=4`" in caught.value.diagnostic.help
    assert names["tuned"].compile(16, block=4) is names["tuned"](16, block=4)
    assert len(names["tuned"].par_compile(16)) == 2


TUNED_EAGER = """
import numpy as np

@tilelang.autotune(configs=[{"block": 4}, {"block": 8}])
@tilelang.jit%s
def added(A, B, block: int = 16):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C

a = np.arange(16, dtype="float32")
"""


def test_a_tuned_eager_kernel_is_launched_and_compiled() -> None:
    c = tilelang_nb.compile_cell(TUNED_EAGER % "", target="sim")
    added, a = c.namespace["added"], c.namespace["a"]
    assert np.array_equal(added(a, a, block=8), 2 * a)
    kernel = added.compile(N=32, block=4)
    assert kernel.parameters[0].shape == (32,) and added.kernel is kernel and len(added.kernels) == 2
    for call in (lambda: added(a, a), lambda: added.compile(N=32)):
        with pytest.raises(tilelang_nb.LaunchError, match="one of 2 configurations of `added`"):
            call()


def test_the_choice_for_an_eager_kernel_is_that_of_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    c = tilelang_nb.compile_cell(TUNED_EAGER % '(target="cuda")', target="cuda")
    timed: list[int] = []

    def bench(kernel: Any) -> Any:
        timed.append(1)
        return SimpleNamespace(milliseconds=3.0 - len(timed))

    monkeypatch.setattr(Kernel, "bench", bench)
    monkeypatch.setattr(Kernel, "__call__", lambda self, *args: None)
    added, a = c.namespace["added"], c.namespace["a"]
    assert added.compile(a, a).config == {"block": 8} and len(timed) == 2
    assert added.compile(a + 1, a).config == {"block": 8} and len(timed) == 2
    added.compile(a[:8], a[:8])
    assert len(timed) == 4
    assert added.compile(N=64) is added.compile(N=64) and len(timed) == 6


def test_kernels_are_compared_with_the_inputs_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    c = tilelang_nb.compile_cell(TUNED_EAGER % '(target="cuda")', target="cuda")
    timed: list[tuple[Any, ...]] = []

    def bench(kernel: Any, *args: Any) -> Any:
        timed.append(args)
        return SimpleNamespace(milliseconds=1.0)

    monkeypatch.setattr(Kernel, "bench", bench)
    added, a = c.namespace["added"], c.namespace["a"]
    with tilelang_nb.tilelang.autotuner.set_autotune_inputs(a, a):
        added.compile(a, a)
    with tilelang_nb.tilelang.autotuner.set_autotune_inputs([a, a]):
        added.compile(N=32)
    added.compile(N=64)
    assert [len(args) for args in timed] == [2, 2, 2, 2, 0, 0] and timed[0][0] is a


def test_the_source_of_an_eager_kernel_is_that_for_its_arguments() -> None:
    added = tilelang_nb.compile_cell(TUNED_EAGER % "", target="sim").namespace["added"].factory
    first = added.get_kernel_source(N=32, block=8)
    assert "__global__" in first and first == added.get_kernel_source() and len(added.kernels) == 1
    assert added.get_kernel_source(N=32, block=16) != first and len(added.kernels) == 2


def test_the_source_of_a_factory_is_that_for_its_arguments(names: dict[str, Any]) -> None:
    assert names["add"].get_kernel_source(16) == names["add"](16).get_kernel_source()


def test_a_profiler_has_the_kernel_as_its_func(names: dict[str, Any]) -> None:
    kernel = names["add"](16)
    assert kernel.get_profiler().func is kernel


def test_one_configuration_needs_no_choice(names: dict[str, Any]) -> None:
    single = tilelang_nb.autotune(configs=lambda n: [{"block": n // 2}])(names["tuned"].factory)
    assert single(16).parameters[0].shape == (16,)


def test_sizes() -> None:
    from tilelang_nb import tilelang

    assert [tilelang.cdiv(a, 4) for a in (0, 1, 4, 5, -1)] == [0, 1, 1, 2, 0]
    assert [tilelang.next_power_of_2(n) for n in (0, 1, 2, 3, 17)] == [1, 1, 2, 4, 32]
    assert tilelang.is_cache_enabled() is True


def test_a_refused_kernel_of_a_factory_fails_the_cell_at_its_line() -> None:
    c = tilelang_nb.compile_cell(MATMUL.replace("= A[bx", "= x = A[bx") + "\nadd(8)\n")
    assert [(d.code, d.span.line) for d in c.diagnostics if d.severity == "error"] == [("TL101", 16)]


def test_autotune_times_what_compiles_and_says_nothing_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
@tilelang.autotune(configs=[{"threads": 32}, {"threads": 64}, {"threads": 4096}])
@tilelang.jit(target="cuda")
def copies(n, threads=128):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 4096), threads=threads) as b:
            for i in T.Parallel(4096):
                A[b * 4096 + i] = 1.0
    return main

kernel = copies(8192)
again = copies(8192)
"""
    timed: list[int] = []

    def bench(kernel: Any) -> Any:
        timed.append(1)
        return SimpleNamespace(milliseconds=3.0 - len(timed))

    monkeypatch.setattr(Kernel, "bench", bench)
    c = tilelang_nb.compile_cell(text, target="cuda")
    assert c.ok, c.to_text()
    kernel = c.namespace["kernel"]
    assert kernel.config == {"threads": 64} and kernel.latency == 1.0 and len(timed) == 2
    assert c.namespace["again"] is kernel and list(c.kernels.values()) == [kernel]


def test_the_profiler_checks_by_hand_and_for_the_same_bits(names: dict[str, Any]) -> None:
    profiler = names["add"](16).get_profiler()
    seen: list[Any] = []
    profiler.manual_assert_close(lambda a, b: a + b, manual_check_prog=lambda got, want: seen.append((got, want)))
    (((got,), (want,)),) = seen
    assert np.array_equal(got, want)
    profiler.assert_consistent(repeat=2)
    turns = iter(range(10))
    real = profiler.kernel

    class Changing:
        parameters, outputs, target = real.parameters, real.outputs, real.target

        def __call__(self, *arrays: Any) -> Any:
            return real(*arrays) + next(turns)

    profiler.kernel = Changing()
    with pytest.raises(AssertionError, match="launch 2 gives other bits"):
        profiler.assert_consistent()
