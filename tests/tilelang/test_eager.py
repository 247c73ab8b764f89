"""Eager kernels: the body of a `@jit` function is the kernel, and a call with arrays gives the tensors it returns."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilelang.test_standalone import load

import tilelang_nb
from tilelang_nb.runtime.compilation import Compilation

ADD = """
@tilelang.jit
def add(A, B, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C
"""


def compiled(text: str, **names: Any) -> Compilation:
    c = tilelang_nb.compile_cell(text, dict(names))
    assert not c.diagnostics, c.to_text()
    return c


def eager(text: str, name: str, **names: Any) -> Any:
    return compiled(text, **names).namespace[name]


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    values = np.random.default_rng(7).standard_normal(shape)
    return (values * 8).astype(dtype) if np.dtype(dtype).kind in "iu" else values.astype(dtype)


# -- real kernels ------------------------------------------------------------------------------------------------------
def test_a_call_allocates_the_result_and_returns_it() -> None:
    add = eager(ADD, "add")
    a, b = numbers(1000), numbers(1000)
    c = add(a, b)
    assert isinstance(c, np.ndarray) and c.dtype == np.float32 and np.array_equal(c, a + b)


def test_gemm_with_bias_and_a_scalar_known_at_the_launch() -> None:
    text = """
@tilelang.jit
def linear(A, W, bias, scale, block_M: int = 32, block_N: int = 32, block_K: int = 32, dtype: T.dtype = T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], dtype]
    W: T.Tensor((K, N), dtype)
    bias: T.Tensor([N], "float32")
    scale: T.float32
    C = T.empty([M, N], dtype="float32")
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_s = T.alloc_shared((block_M, block_K), dtype)
        W_s = T.alloc_shared((block_K, block_N), dtype)
        acc = T.alloc_fragment((block_M, block_N), "float32")
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_s)
            T.copy(W[k * block_K, bx * block_N], W_s)
            T.gemm(A_s, W_s, acc)
        for i, j in T.Parallel(block_M, block_N):
            acc[i, j] = acc[i, j] * scale + bias[bx * block_N + j]
        T.copy(acc, C[by * block_M, bx * block_N])
    return C
"""
    linear = eager(text, "linear")
    a, w, bias = numbers(48, 64, dtype=np.float16), numbers(64, 96, dtype=np.float16), numbers(96)
    expected = a.astype(np.float32) @ w.astype(np.float32)
    for scale in (0.5, 2.0):
        assert np.allclose(linear(a, w, bias, scale), expected * scale + bias, rtol=1e-3, atol=1e-3)
    assert len(linear.kernels) == 1  # the scalar is no constant of the compilation


def test_softmax_of_rows() -> None:
    text = """
@jit
def softmax(X):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=64) as row:
        x = T.alloc_fragment((1, N), "float32")
        top = T.alloc_fragment((1,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X[row, 0], x)
        T.reduce_max(x, top, dim=1)
        for i, j in T.Parallel(1, N):
            x[i, j] = T.exp(x[i, j] - top[i])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(1, N):
            x[i, j] /= total[i]
        T.copy(x, Y[row, 0])
    return Y
"""
    x = numbers(5, 128)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.allclose(eager(text, "softmax")(x), e / e.sum(axis=1, keepdims=True), atol=1e-6)


def test_several_results_make_a_tuple() -> None:
    text = """
@jit
def extremes(X):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float32]
    low, high = T.empty((M,), T.float32), T.empty((M,), T.float32)
    with T.Kernel(1, threads=32):
        x = T.alloc_fragment((M, N), "float32")
        l = T.alloc_fragment((M,), "float32")
        h = T.alloc_fragment((M,), "float32")
        T.copy(X, x)
        T.reduce_min(x, l, dim=1)
        T.reduce_max(x, h, dim=1)
        T.copy(l, low)
        T.copy(h, high)
    return high, low
"""
    extremes = eager(text, "extremes")
    x = numbers(8, 32)
    result = extremes(x)
    assert type(result) is tuple
    assert np.array_equal(result[0], x.max(axis=1)) and np.array_equal(result[1], x.min(axis=1))
    one = eager(text.replace("return high, low", "return (high,)"), "extremes")(x)
    assert type(one) is tuple and len(one) == 1 and np.array_equal(one[0], x.max(axis=1))


def test_tensors_that_are_passed_are_written_in_place() -> None:
    text = """
@jit
def double(A):
    N = T.const("N")
    A: T.Tensor[[N], T.int32]
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            A[i] = A[i] * 2
"""
    a = np.arange(16, dtype=np.int32)
    assert eager(text, "double")(a) is None
    assert np.array_equal(a, 2 * np.arange(16))


def test_an_empty_tensor_that_is_not_returned_is_a_workspace() -> None:
    text = """
@jit
def twice_plus_one(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    W = T.empty((N,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            W[i] = A[i] * 2
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            B[i] = W[i] + 1
    return B
"""
    f = eager(text, "twice_plus_one")
    a = numbers(32)
    assert np.array_equal(f(a), a * 2 + 1)
    assert [p.name for p in f.kernel.parameters] == ["A", "B"]


def test_dynamic_sizes_stay_symbolic_and_share_one_kernel() -> None:
    text = ADD.replace('T.const("N")', 'T.dynamic("N")')
    add = eager(text, "add")
    for n in (100, 300, 5):
        a, b = numbers(n), numbers(n)
        assert np.array_equal(add(a, b), a + b)
    assert len(add.kernels) == 1


def test_annotations_on_the_signature() -> None:
    text = """
n = T.dynamic("n")
@jit
def scaled(A: T.Tensor[[n, 4], T.float32], by: T.float32 = 3.0):
    B = T.empty((n, 4), T.float32)
    with T.Kernel(n, threads=4) as row:
        for j in T.Parallel(4):
            B[row, j] = A[row, j] * by
    return B
"""
    scaled = eager(text, "scaled")
    a = numbers(6, 4)
    assert np.array_equal(scaled(a), a * np.float32(3)) and np.array_equal(scaled(by=2.0, A=a), a * 2)
    assert len(scaled.kernels) == 1


def test_a_bare_tensor_on_the_signature_is_annotated_in_the_body() -> None:
    text = ADD.replace("def add(A, B,", "def add(A: T.Tensor, B: T.Tensor,")
    a = numbers(40)
    assert np.array_equal(eager(text, "add")(a, a), a + a)


def test_bfloat16_and_float8_arrays_in_and_out() -> None:
    text = """
@jit
def cast(A, dtype: T.dtype):
    N = T.const("N")
    A: T.Tensor[[N], T.bfloat16]
    B = T.empty((N,), dtype)
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            B[i] = A[i]
    return B
"""
    cast = eager(text, "cast")
    a = numbers(32, dtype=ml_dtypes.bfloat16)
    for name in ("float8_e4m3fn", "bfloat16"):
        kind = getattr(ml_dtypes, name)
        out = cast(a, name)
        assert out.dtype == kind and np.array_equal(out.astype(np.float32), a.astype(kind).astype(np.float32))


def test_torch_in_gives_torch_out() -> None:
    torch = pytest.importorskip("torch")
    a = torch.arange(64, dtype=torch.float32)
    c = eager(ADD, "add")(a, a)
    assert isinstance(c, torch.Tensor) and torch.equal(c, a * 2)


def test_python_in_the_body_runs_while_building() -> None:
    text = """
def largest(n, limit):
    return max(d for d in range(1, limit + 1) if n % d == 0)

@jit
def total(A, ops, reverse=False):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    width = largest(N, 48)
    assert N % width == 0
    if reverse:
        order = list(range(width - 1, -1, -1))
    else:
        order = [j for j in range(width)]
    B = T.empty((N // width, len(ops)), T.float32)
    with T.Kernel(N // width, threads=1) as bx:
        for k, op in enumerate(ops):
            s = A[bx * width + order[0]]
            for j in order[1:]:
                s = op(s, A[bx * width + j])
            B[bx, k] = s
    return B
"""
    total = eager(text, "total")
    a = np.arange(90, dtype=np.float32)
    ops = [lambda x, y: x + y, max]
    rows = a.reshape(2, 45)
    for reverse in (False, True):
        assert np.array_equal(total(a, ops, reverse), np.stack([rows.sum(1), rows.max(1)], 1))


def test_an_argument_that_may_be_none() -> None:
    text = """
@jit
def shifted(A, bias=None):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    if bias is not None:
        bias: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            B[i] = A[i] + (bias[i] if bias is not None else 1)
    return B
"""
    shifted = eager(text, "shifted")
    a = numbers(16)
    assert np.array_equal(shifted(a), a + 1) and np.array_equal(shifted(a, a), a + a)
    assert len(shifted.kernels) == 2


def test_sizes_inside_sums_products_and_strides() -> None:
    text = """
@jit
def halves(A, S):
    N, s = T.const("N, s")
    A: T.Tensor[[2 * N], T.float32]
    S: T.StridedTensor((N,), (s,), T.float32)
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=N):
        for i in T.Parallel(N):
            B[i] = A[i] + A[N + i] + S[i] + s
    return B
"""
    halves = eager(text, "halves")
    a, s = numbers(32), numbers(48)[::3]
    assert np.allclose(halves(a, s), a[:16] + a[16:] + s + 3)
    with pytest.raises(tilelang_nb.LaunchError, match="N"):
        halves(numbers(31), s)


def test_a_size_that_a_scalar_argument_gives() -> None:
    text = """
@jit
def first(A, K):
    N, K = T.const("N, K")
    A: T.Tensor[[N], T.float32]
    B = T.empty((K,), T.float32)
    with T.Kernel(1, threads=K):
        for i in T.Parallel(K):
            B[i] = A[i]
    return B
"""
    a = numbers(64)
    assert np.array_equal(eager(text, "first")(a, 8), a[:8])


def test_a_whole_launch_in_a_macro() -> None:
    text = """
@T.macro
def fill(C, value, n):
    with T.Kernel(1, threads=n):
        for i in T.Parallel(n):
            C[i] = value

@jit
def full(A, value: int):
    N = T.const("N")
    A: T.Tensor[[N], T.int32]
    C = T.empty((N,), T.int32)
    fill(C, value, N)
    return C
"""
    assert np.array_equal(eager(text, "full")(np.zeros(8, np.int32), 5), np.full(8, 5, np.int32))


def test_names_that_become_scalars_under_runtime_control_flow() -> None:
    text = """
@jit
def running(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(1, threads=1):
        total = 0.0
        for i in range(N):
            if A[i] > 0:
                total += A[i]
            B[i] = total
    return B
"""
    a = numbers(20)
    assert np.allclose(eager(text, "running")(a), np.cumsum(np.maximum(a, 0)), atol=1e-5)


# -- compilations and what is kept -------------------------------------------------------------------------------------
def test_one_compilation_for_each_set_of_constants() -> None:
    add = eager(ADD, "add")
    for n, block in ((64, 64), (64, 64), (96, 64), (64, 32), (96, 64)):
        a = numbers(n)
        assert np.array_equal(add(a, a, block=block), a + a)
    assert [k.parameters[0].shape for k in add.kernels] == [(64,), (96,), (64,)]


def test_constants_of_other_types_are_other_constants() -> None:
    text = ADD.replace("block: int = 128", "block: int = 128, extra=0")
    text = text.replace("+ B[bx * block + i]", "+ B[bx * block + i] + extra")
    add = eager(text, "add")
    a = numbers(128)
    for extra in (1, 1.0, True, 1):
        assert np.array_equal(add(a, a, extra=extra), a + a + 1)
    assert len(add.kernels) == 3


def test_arguments_that_cannot_be_compared_are_compiled_anew() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]
        value = 2

    text = ADD.replace("block: int = 128", "odd, block: int = 128")
    text = text.replace("+ B[bx * block + i]", "+ B[bx * block + i] * odd.value")
    add = eager(text, "add")
    a = numbers(128)
    assert np.array_equal(add(a, a, Odd()), a + a * 2) and np.array_equal(add(a, a, Odd()), a + a * 2)
    assert len(add.kernels) == 2


def test_compile_and_get_tir_give_the_kernel_without_a_launch() -> None:
    add = eager(ADD, "add")
    a = numbers(128)
    k = add.compile(a, a)
    assert isinstance(k, tilelang_nb.Kernel) and k is add.kernel and np.array_equal(k(a, a), a + a)
    assert add.compile(N=128) is k
    tensor = tilelang_nb.language.Tensor((128,), "float32")
    assert add.compile(tensor, tensor) is k
    assert [str(p.name) for p in add.get_tir(a, a).params] == ["A", "B", "C"]
    assert [k.parameters[0].shape for k in add.par_compile([{"N": 7}, {"N": 9, "block": 32}])] == [(7,), (9,)]


def test_the_last_kernel_can_be_inspected() -> None:
    add = eager(ADD, "add")
    assert add.kernel is None and "0 kernels compiled" in repr(add)
    a = numbers(100)
    add(a, a)
    assert [add.kernel.stages[0].name, add.kernel.stages[-1].name] == ["source", "sass"]
    assert add.kernel.unroll.kind == "kernel" and add.kernels == (add.kernel,) and not add.kernel.findings
    assert repr(add) == "<eager jit add(A, B, block: int = 128): 1 kernel compiled>"


def test_findings_are_those_of_the_last_launch() -> None:
    text = """
@jit
def late(A):
    N = T.const("N")
    A: T.Tensor[[N], T.int32]
    B = T.empty((1,), T.int32)
    with T.Kernel(1, threads=N):
        t = T.get_thread_binding()
        B[0] = A[t]
    return B
"""
    late = eager(text, "late")
    with pytest.warns(UserWarning, match="TL401") as caught:
        late(np.arange(32, dtype=np.int32))
    assert Path(caught[0].filename) == Path(__file__)
    assert [f.code for f in late.kernel.findings] == ["TL401"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        late(np.zeros(32, dtype=np.int32))
    assert not late.kernel.findings


def test_options_of_the_decorator() -> None:
    text = ADD.replace(
        "@tilelang.jit", "@tilelang.jit(target='sim', pass_configs={'tl.disable_warp_specialized': True})"
    )
    add = eager(text, "add")
    a = numbers(64)
    assert np.array_equal(add(a, a), a + a)
    assert dict(add.kernel.options) == {"tl.disable_warp_specialized": True}


def test_a_target_that_is_not_here_is_refused_at_the_call() -> None:
    text = ADD.replace("@tilelang.jit", "@tilelang.jit(target='cuda')")
    add = eager(text, "add")
    with pytest.raises(tilelang_nb.LaunchError) as caught:
        add(numbers(8), numbers(8))
    assert caught.value.diagnostic.code == "TL302"


def test_autotune_with_its_arguments_given_launches() -> None:
    text = ADD.replace("@tilelang.jit", "@tilelang.autotune(configs=[{'block': 32}])\n@tilelang.jit")
    a = numbers(64)
    assert np.array_equal(eager(text, "add")(a, a), a + a)


def test_prim_func_with_eager_jit_is_the_same() -> None:
    a = numbers(64)
    assert np.array_equal(eager(ADD.replace("@tilelang.jit", "@T.prim_func(eager_jit=True)"), "add")(a, a), a + a)


# -- where it is defined -----------------------------------------------------------------------------------------------
def test_functions_that_return_a_prim_func_are_factories_still() -> None:
    text = """
@jit(out_idx=-1)
def factory(N):
    block = 32
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + 1
    return main
"""
    kernel = eager(text, "factory")(64)
    a = numbers(64)
    assert isinstance(kernel, tilelang_nb.Kernel) and np.array_equal(kernel(a), a + 1)


def test_the_kernels_of_a_cell_are_those_that_it_compiled() -> None:
    first = compiled(ADD)
    assert not first.kernels
    second = compiled("c = add(a, a)\nd = add(a[:10], a[:10])\nc", add=first.namespace["add"], a=numbers(20))
    assert list(second.kernels) == ["add", "add_2"] and np.array_equal(second.result, numbers(20) * 2)


def test_what_the_kernel_reads_from_outside_is_a_constant_of_the_compilation() -> None:
    text = """
offset, table = 1, [1, 2]
@T.macro
def scaled(x):
    return x * factor()
def factor():
    return table[0]
"""
    text += ADD.replace("+ B[bx * block + i]", "+ scaled(B[bx * block + i]) + offset")
    names = compiled(text).namespace
    a = np.arange(8, dtype=np.float32)

    def check(change: str, expected: np.ndarray, kernels: int) -> None:
        compiled_again = tilelang_nb.compile_cell(change, names)
        assert compiled_again.ok
        assert np.array_equal(names["add"](a, a), expected) and len(names["add"].kernels) == kernels

    check("", a + a + 1, 1)
    check("offset = 5", a + a + 5, 2)
    check("table[0] = 3", a + 3 * a + 5, 3)
    check("def factor(): return 7", a + 7 * a + 5, 4)
    check("@T.macro\ndef scaled(x):\n    return -x", a - a + 5, 5)
    check("unrelated = 1", a - a + 5, 5)


def test_an_argument_that_the_body_changes_is_as_given_in_every_pass() -> None:
    text = ADD.replace("block: int = 128", "seen, block: int = 128")
    text = text.replace("    C = T.empty", "    seen.append(N)\n    C = T.empty")
    add, seen, a = eager(text, "add"), [], numbers(16)
    add(a, a, seen)
    assert seen == [16]


def test_a_list_of_results_is_a_list() -> None:
    text = ADD.replace("    C = T.empty((N,), T.float32)", "    Cs = [T.empty((N,), T.float32) for _ in range(2)]")
    text = text.replace(
        "            C[bx * block + i] =", "            Cs[0][bx * block + i] = 1\n            Cs[1][bx * block + i] ="
    )
    a = numbers(16)
    result = eager(text.replace("return C", "return Cs"), "add")(a, a)
    assert type(result) is list and np.array_equal(result[0], np.ones(16)) and np.array_equal(result[1], a + a)


def test_a_method_takes_its_object_as_a_constant() -> None:
    text = """
class Scale:
    def __init__(self, by):
        self.by = by
    @jit
    def run(self, A):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B = T.empty((N,), T.float32)
        with T.Kernel(1, threads=N):
            for i in T.Parallel(N):
                B[i] = A[i] * self.by
        return B
"""
    Scale = eager(text, "Scale")
    a = numbers(8)
    assert np.array_equal(Scale(2).run(a), a * 2) and np.array_equal(Scale(3).run(a), a * 3)


def test_closures_and_globals_are_read_when_the_kernel_is_compiled() -> None:
    text = """
offset = 1
def make(factor):
    @jit
    def f(A):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B = T.empty((N,), T.float32)
        with T.Kernel(1, threads=N):
            for i in T.Parallel(N):
                B[i] = A[i] * factor + offset
        return B
    return f
f, g = make(2), make(3)
offset = 5
"""
    c = compiled(text)
    a = numbers(8)
    for name, factor in (("f", 2), ("g", 3)):
        assert np.allclose(c.namespace[name](a), a * factor + 5)


MODULE = "from __future__ import annotations\nimport tilelang_nb.language as T\nfrom tilelang_nb import tilelang\n"


def test_an_eager_kernel_of_a_module(tmp_path: Path) -> None:
    module = load(tmp_path, MODULE + ADD)
    a = numbers(50)
    assert np.array_equal(module.add(a, a), a + a) and len(module.add.kernels) == 1


def test_mistakes_of_an_eager_kernel_of_a_module(tmp_path: Path) -> None:
    text = MODULE + ADD.replace("    return C", "        x = y = 1\n    return C")
    with pytest.raises(tilelang_nb.CompileError) as caught:
        load(tmp_path, text)
    assert [(d.code, d.span.line) for d in caught.value.diagnostics] == [("TL101", 14)]
    later = tmp_path / "later"
    later.mkdir()
    module = load(later, MODULE + ADD.replace("A[bx * block + i] +", "AA[bx * block + i] +"))
    with pytest.raises(tilelang_nb.CompileError) as caught:
        module.add(numbers(8), numbers(8))
    assert [(d.code, d.span.line) for d in caught.value.diagnostics] == [("TL002", 13)]


def test_an_iterator_from_outside_gives_its_items_once() -> None:
    text = ADD.replace("    C = T.empty", "    extra = next(numbers)\n    C = T.empty").replace(
        "+ B[bx * block + i]", "+ B[bx * block + i] + extra"
    )
    add = eager("numbers = iter([10, 20, 30])\n" + text, "add")
    assert [float(add(np.zeros(n, np.float32), np.zeros(n, np.float32))[0]) for n in (4, 5, 4)] == [10, 20, 10]


def test_print_in_the_body_shows_once(capsys: pytest.CaptureFixture[str]) -> None:
    add = eager(ADD.replace("    C = T.empty", "    print('N is', N)\n    C = T.empty"), "add")
    add(numbers(12), numbers(12))
    assert capsys.readouterr().out == "N is 12\n"


def test_an_eager_kernel_is_bound_to_a_target_before_its_arguments_are_known() -> None:
    add = eager(ADD, "add")
    a = np.arange(70, dtype=np.float32)
    add(a, a)
    bound = add.compile(target="sim", arch="sm_80")
    assert bound.kernels == ()
    assert bound.findings == ()
    np.testing.assert_array_equal(bound(a, a), 2 * a)
    assert str(bound.kernel.target.arch) == "sm_80"
    assert len(add.kernels) == 1


def test_what_a_kernel_shows_is_shown_of_the_one_compiled_last() -> None:
    add = eager(ADD, "add")
    with pytest.raises(AttributeError, match="stages"):
        _ = add.stages
    a = np.arange(70, dtype=np.float32)
    add(a, a)
    assert [stage.name for stage in add.stages] == [stage.name for stage in add.kernel.stages]
    assert add.findings == ()
    assert add.script() == add.kernel.script()


def test_a_parameter_called_target_stays_a_parameter() -> None:
    scaled = eager(
        """
@jit
def scaled(A, target: int = 2):
    A: T.Tensor((32,), "int32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            A[i] = A[i] * target
""",
        "scaled",
    )
    kernel = scaled.compile(target=5)
    a = np.ones(32, np.int32)
    kernel(a)
    assert a[0] == 5
