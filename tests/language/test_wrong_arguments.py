"""Whatever a kernel gives to an operation, the answer is a result or a located refusal, never another exception."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import tilelang_nb.language as T
from tilelang_nb.language.dtypes import DTYPES
from tilelang_nb.language.unavailable import REFUSED
from tilelang_nb.source.diagnostic import Refusal

ENTRY = {"prim_func", "macro", "const", "Ref", "GemmWarpPolicy"}  # decorators, an annotation, an enumeration
OPERATIONS = [
    n for n in T.__all__ if n not in DTYPES and n not in REFUSED and n not in ENTRY and callable(getattr(T, n))
]


def wrong_things(kernel, device):
    tile = kernel.buffer("tile", (8, 4), "float16", "shared.dyn")
    return [
        None,
        True,
        -1,
        0,
        3,
        2**40,
        1.5,
        float("nan"),
        float("inf"),
        "x",
        "",
        b"x",
        1j,
        (),
        [],
        [1, 2],
        (8, 4),
        {},
        {"a": 1},
        {tile: 0},
        object(),
        int,
        len,
        np.float32(2.5),
        np.arange(3),
        np.dtype("int8"),
        T.float16,
        T.GemmWarpPolicy.FullRow,
        T.Tensor((4,)),
        T.serial(4),
        tile,
        tile[0:4, :],
        tile[1, 2],
        kernel.buffer("flags", (8,), "bool"),
        kernel.buffer("matrix", (4, 8), "float32", "local.fragment"),
        kernel.buffer("numbers", (T.dynamic("n"), 4), "int32"),
        kernel.buffer("scalar", (), "float32"),
        T.alloc_var("int32"),
        T.alloc_barrier([1, 2]),
        T.alloc_reducer((4,), "int32"),
        device("x", "float32"),
        device("n", "int64"),
        device("b", "bool"),
        device("q", "float8_e4m3fn"),
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_wrong_arguments_are_refused_by_code(kernel, device, name):
    operation = getattr(T, name)
    things = wrong_things(kernel, device)
    random = np.random.default_rng(sum(name.encode()))
    several = [
        tuple(things[at] for at in random.integers(0, len(things), count)) for count in (2, 2, 3) for _ in range(100)
    ]
    for arguments in [(), *[(thing,) for thing in things], *several]:
        with suppress(Refusal):
            operation(*arguments)


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_a_dtype_called_with_anything_answers(kernel, device, name):
    for thing in wrong_things(kernel, device):
        with suppress(Refusal):
            getattr(T, name)(thing)
        with suppress(Refusal):
            T.dtype(thing)
