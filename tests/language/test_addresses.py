"""`T.address_of` names the place of an element, for whatever takes one; it is no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_nb

HEAD = """
@T.prim_func
def k(a: T.Tensor((8,), "int32"), f: T.Tensor((4,), "float32"), o: T.Tensor((64,), "int32"), h: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=64) as bx:
        t = T.get_thread_binding(0)
"""


def compiled(body: str, target: str = "sim") -> Any:
    return tilelang_nb.compile_cell(HEAD + "".join(f"        {line}\n" for line in body.splitlines()), target=target)


def ran(body: str) -> dict[str, np.ndarray]:
    built = compiled(body)
    assert built.ok, built.to_text()
    arrays = {
        "a": np.zeros(8, "int32"),
        "f": np.array([0, 0, 0, 2], "float32"),
        "o": np.full(64, -1, "int32"),
        "h": np.arange(64).astype("float16"),
    }
    built.kernels["k"](**arrays)
    return arrays


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('T.call_extern("handle", "AtomicAdd", T.address_of(a[1]), 2)', 128),
        ('T.evaluate(T.call_extern("handle", "AtomicMax", T.address_of(a[1]), t, 0))', 63),
        ('T.call_extern("int32", "AtomicMin", T.address_of(a[1:3]), -t)', -63),
        ('T.call_extern("int32", "atomicOr", T.address_of(a[1]), 1 << (t // 32))', 3),
        ("T.atomic_add(T.address_of(a[1]), 1)", 64),
        ('T.atomic_min(T.access_ptr(a[1], "rw"), -t)', -63),
        ("T.atomic_store(T.address_of(a[1]), 7)", 7),
        ('T.atomic_add(T.tvm_access_ptr(T.type_annotation("int32"), a.data, 1, 1, 3), 1)', 64),
    ],
)
def test_atomic_operations_take_places(line: str, wanted: int) -> None:
    assert ran(line)["a"].tolist() == [0, wanted, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["atomicAdd", "AtomicAddRet"])
def test_an_atomic_function_gives_the_old_content(name: str) -> None:
    found = ran(f'o[t] = T.call_extern("int32", "{name}", T.address_of(a[2]), 1)')
    assert sorted(found["o"].tolist()) == list(range(64)) and found["a"][2] == 64


def test_two_neighbours_are_added_at_a_place() -> None:
    found = ran("v = T.alloc_local((2,), 'float32')\nv[0] = 1\nv[1] = 0.5\nT.atomic_addx2(T.address_of(f[1]), v[0])")
    assert found["f"].tolist() == [0, 64, 32, 2]


def test_loads_and_copies_take_places() -> None:
    found = ran(
        "S = T.alloc_shared((64,), 'float16')\n"
        "if t < 8:\n    T.ptx_cp_async(T.address_of(S[t * 8]), T.address_of(h[t * 8]), 8)\n"
        "T.ptx_commit_group()\nT.ptx_wait_group(0)\nT.sync_threads()\n"
        "o[t] = T.cast(S[63 - t], 'int32') + T.cast(T.__ldg(T.address_of(f[3])), 'int32')"
    )
    assert found["o"].tolist() == [65 - t for t in range(64)]


def test_the_device_compiler_takes_them() -> None:
    built = compiled('o[t] = T.call_extern("int32", "atomicAdd", T.address_of(a[2]), 1)', "cuda")
    assert built.ok and "atom.global.add.u32" in built.kernels["k"].ptx.replace("relaxed.gpu.", "")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("p = T.address_of(a[0]) + 1", "TL127", "index the buffer"),
        ("T.address_of(3)", "TL004", "index a buffer"),
        ("f[0] = T.address_of(a[0])", "TL140", "store a number"),
        ('T.call_extern("int32", "atomicCAS", T.address_of(a[2]), 1, 2)', "TL302", "`T.atomic_add`, `T.atomic_max`"),
        ('T.call_extern("int32", "mine", T.address_of(a[2]), 1)', "TL302", "as a macro"),
        ('T.call_extern("int32", "atomicAdd", 4, 2)', "TL004", "write `T.address_of(C[i])`"),
        ('T.call_extern("int32", "atomicAdd", T.address_of(a[2]))', "TL004", "the place of an element and a value"),
        ('T.call_extern("int32", "AtomicAdd", T.address_of(a[2]), 1, 9)', "TL004", "the order"),
    ],
)
def test_what_is_no_place_is_refused(line: str, code: str, said: str) -> None:
    built = compiled(line)
    assert [found.code for found in built.diagnostics] == [code] and said in built.to_text()
