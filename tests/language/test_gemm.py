"""T.gemm: shapes, dtypes, memories, options."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T


def tiles(kernel, a=(64, 32), b=(32, 48), c=(64, 48), dtype="float16", accumulator="float32", b_dtype=None):
    return (
        kernel.buffer("a", a, dtype, "shared.dyn"),
        kernel.buffer("b", b, b_dtype or dtype, "shared.dyn"),
        kernel.buffer("c", c, accumulator, "local.fragment"),
    )


def test_operands_and_defaults_read_back(kernel):
    T.gemm(*tiles(kernel))
    (call,) = kernel.calls
    assert [call[role].buffer.name for role in "abc"] == ["a", "b", "c"]
    assert (call.boolean("transpose_a"), call.boolean("transpose_b"), call.boolean("clear_accum")) == (
        False,
        False,
        False,
    )
    assert call["policy"] == "square"


@pytest.mark.parametrize(("policy", "word"), [("FullRow", "full_row"), ("FullCol", "full_col"), ("Square", "square")])
def test_policies(kernel, policy, word):
    chosen = getattr(T.GemmWarpPolicy, policy)
    T.gemm(*tiles(kernel), policy=chosen, k_pack=2, wg_wait=-1)
    T.gemm(*tiles(kernel), policy=int(chosen))
    assert [call["policy"] for call in kernel.calls] == [word, word]


def test_transposed_operands(kernel):
    T.gemm(*tiles(kernel, a=(32, 64)), transpose_A=True)
    T.gemm(*tiles(kernel, b=(48, 32)), transpose_B=True)
    T.gemm(*tiles(kernel, a=(32, 64), b=(48, 32)), True, True)
    assert [(c.boolean("transpose_a"), c.boolean("transpose_b")) for c in kernel.calls] == [
        (True, False),
        (False, True),
        (True, True),
    ]


def test_clear_accum_may_be_a_device_condition(kernel, device):
    k = device("k", "int32")
    T.gemm(*tiles(kernel), clear_accum=k == 0)
    T.gemm(*tiles(kernel), clear_accum=k)
    T.gemm(*tiles(kernel), clear_accum=True)
    assert [str(call["clear_accum"]) for call in kernel.calls] == ["k == 0", "k != 0", "T.bool(True)"]


def test_regions_and_leading_extents_of_1(kernel):
    a, b, c = tiles(kernel, a=(2, 64, 32))
    T.gemm(a[1, :, :], b, c)
    T.gemm(a[1, :, 0:16], b[16:32, :], c)
    assert [str(n) for n in kernel.calls[1]["a"].extent] == ["1", "64", "16"]


@pytest.mark.parametrize(
    ("shapes", "texts"),
    [
        ({"a": (64, 32), "b": (64, 64), "c": (64, 64)}, ["K is 32", "64 in B", "(64, 32)", "(64, 64)"]),
        ({"b": (48, 32)}, ["transpose_B=True"]),
        ({"a": (32, 64)}, ["transpose_A=True"]),
        ({"c": (64, 64)}, ["is (64, 48)", "(64, 64)"]),
        ({"c": (32, 48)}, ["is (64, 48)", "(32, 48)"]),
        ({"a": (64,)}, ["A of `T.gemm`", "(64,)"]),
        ({"a": (2, 64, 32)}, ["(2, 64, 32)"]),
    ],
)
def test_shapes_that_do_not_fit(kernel, refused, shapes, texts):
    with refused("TL204", *texts):
        T.gemm(*tiles(kernel, **shapes))
    assert kernel.calls == []


@pytest.mark.parametrize(
    ("dtypes", "texts"),
    [
        ({"dtype": "float32", "b_dtype": "float16"}, ["is float32", "is float16"]),
        ({"dtype": "float16", "accumulator": "int32"}, ["float32 or float16", "int32"]),
        ({"dtype": "bfloat16", "accumulator": "bfloat16"}, ["accumulates in float32"]),
        ({"dtype": "int8", "accumulator": "float32"}, ["int32"]),
        ({"dtype": "int32", "accumulator": "int32"}, ["int32 operands"]),
        ({"dtype": "float8_e4m3fn", "b_dtype": "float16"}, ["is float8_e4m3fn"]),
    ],
)
def test_dtypes_that_do_not_fit(kernel, refused, dtypes, texts):
    with refused("TL205", *texts):
        T.gemm(*tiles(kernel, **dtypes))


@pytest.mark.parametrize(
    "dtypes",
    [
        {"dtype": "float16", "accumulator": "float16"},
        {"dtype": "bfloat16"},
        {"dtype": "float32"},
        {"dtype": "tfloat32"},
        {"dtype": "float64", "accumulator": "float64"},
        {"dtype": "int8", "accumulator": "int32"},
        {"dtype": "float8_e4m3fn", "b_dtype": "float8_e5m2"},
    ],
)
def test_dtypes_that_fit(kernel, dtypes):
    T.gemm(*tiles(kernel, **dtypes))
    assert len(kernel.calls) == 1


def test_memories(kernel, refused):
    a, b, c = tiles(kernel)
    T.gemm(kernel.buffer("p", (64, 32), "float16", "local.fragment"), b, c)
    T.gemm(a, b, kernel.buffer("d", (64, 48), "float32", "shared.dyn"))
    with refused("TL004", "A from shared memory or a fragment", "`g` is in global memory", "T.copy"):
        T.gemm(kernel.buffer("g", (64, 32), "float16"), b, c)
    with refused("TL004", "C from", "global memory"):
        T.gemm(a, b, kernel.buffer("g", (64, 48)))
    with refused("TL004", "as A"):
        T.gemm(1.0, b, c)


def test_options_that_do_not_fit(kernel, refused, device):
    with refused("TL004", "policy"):
        T.gemm(*tiles(kernel), policy="full_row")
    with refused("TL004", "policy"):
        T.gemm(*tiles(kernel), policy=7)
    with refused("TL302", "mbar"):
        T.gemm(*tiles(kernel), mbar=T.alloc_barrier(1))
    with refused("TL004", "transpose_A", "only when the kernel runs"):
        T.gemm(*tiles(kernel), transpose_A=device("x", "bool"))


def test_wgmma_gemm_is_a_gemm_that_somebody_waits_for(kernel):
    T.warpgroup_arrive()
    T.wgmma_gemm(*tiles(kernel))
    T.gemm(*tiles(kernel))
    T.warpgroup_commit_batch()
    T.wait_wgmma(1)
    T.warpgroup_wait(0)
    one, other, first, second = kernel.calls
    assert (one.name, one["asynchronous"]) == ("gemm", "open")
    assert (other.name, other["asynchronous"]) == ("gemm", None)
    assert [(call.name, call.integer("pending")) for call in (first, second)] == [("wait_wgmma", 1), ("wait_wgmma", 0)]


def test_policy_names_and_questions():
    assert T.GemmWarpPolicy.FullRow.is_full_row()
    assert not T.GemmWarpPolicy.FullRow.is_square()
    assert T.GemmWarpPolicy(2) is T.GemmWarpPolicy.FullCol
    assert T.GemmWarpPolicy.Square == 0
