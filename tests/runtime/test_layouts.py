"""`k.layouts` says where the elements of a tile really are: compared with what runs on the simulated device."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from lowering.products import compiled

import tilelang_nb

ATTENTION = """
@T.prim_func
def k(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((128, 64), "float16"), V: T.Tensor((128, 64), "float16"),
      O: T.Tensor((64, 64), "float32"), W: T.Tensor((64, 64), "int32"), R: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        Q_s = T.alloc_shared((64, 64), "float16")
        K_s = T.alloc_shared((64, 64), "float16")
        V_s = T.alloc_shared((64, 64), "float16")
        s = T.alloc_fragment((64, 64), "float32")
        p = T.alloc_fragment((64, 64), "float16")
        o = T.alloc_fragment((64, 64), "float32")
        m = T.alloc_fragment((64,), "float32")
        T.copy(Q, Q_s)
        T.clear(o)
        for j in T.Pipelined(2, num_stages=2):
            T.copy(K[j * 64, 0], K_s)
            T.copy(V[j * 64, 0], V_s)
            T.clear(s)
            T.gemm(Q_s, K_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.reduce_max(s, m, dim=1)
            T.copy(s, p)
            T.gemm(p, V_s, o, policy=T.GemmWarpPolicy.FullRow)
        tx = T.get_thread_binding()
        for i, j in T.Parallel(64, 64):
            O[i, j] = o[i, j]
            W[i, j] = tx
        for i in T.Parallel(64):
            if m[i] > -100000.0:
                T.atomic_add(R[i], 1)
"""


def ran(arch: str = "sm_80"):
    kernel = compiled(ATTENTION, arch)
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 64), (128, 64), (128, 64)))
    o, w, r = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.int32), np.zeros(64, np.int32)
    kernel(q, k, v, o, w, r)
    assert tuple(kernel.findings) == ()
    s = q.astype(np.float32) @ k.astype(np.float32).T
    np.testing.assert_array_equal(o, s @ v.astype(np.float32))
    return kernel, w, r


def test_the_threads_of_a_fragment_are_those_that_run_its_elements():
    kernel, threads, once = ran()
    np.testing.assert_array_equal(kernel.layouts["o"].thread_table, threads)
    np.testing.assert_array_equal(once, 1)  # of the copies of m, one acts


def test_the_maps_of_an_attention_kernel():
    kernel, _, _ = ran()
    layouts = kernel.layouts
    assert [name for name in layouts if not layouts[name].own] == ["s", "p", "o", "m", "Q_s", "K_s", "V_s"]
    assert [one.line for one in layouts.maps if not one.own] == [9, 10, 11, 12, 6, 7, 8]
    assert [layouts[name].versions for name in ("Q_s", "K_s", "V_s")] == [1, 2, 2]
    assert len(layouts["m"].copies) == 4 and len(layouts["s"].copies) == 1
    np.testing.assert_array_equal(layouts["p"].thread_table, layouts["s"].thread_table)
    places = sorted((layouts[name].offset, layouts[name].bytes) for name in ("Q_s", "K_s", "V_s"))
    assert all(offset + size <= following for (offset, size), (following, _) in pairwise(places))


def test_the_banks_of_a_tile_explain_what_the_simulated_device_counts():
    text = """
    @T.prim_func
    def k(A: T.Tensor((32, width), "float32"), C: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((32, width), "float32")
            T.copy(A, s)
            for i in T.Parallel(32):
                C[i] = s[i, 0]
    """
    for width in (4, 6, 8, 32, 33):
        kernel = compiled(text, width=width)
        kernel(np.zeros((32, width), np.float32), np.zeros(32, np.float32))
        most = int(np.bincount(kernel.layouts["s"].bank_table[:, 0]).max())
        (row,) = [row for row in kernel.counters[0].shared_banks if row.access == "read"]
        assert row.used == most


def test_a_fragment_that_moved_to_shared_memory_says_so():
    text = """
    @T.prim_func
    def k(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64) as bx:
            f = T.alloc_fragment((32, 32), "float32")
            g = T.alloc_fragment((32, 32), "float32")
            T.copy(A, f)
            for i, j in T.Parallel(32, 32):
                g[i, j] = f[j, i] + f[i, j]
            T.copy(g, C)
    """
    layouts = compiled(text).layouts
    f = layouts["f"]
    assert f.memory == "shared" and f.line == 5 and "no layout in registers" in f.note
    assert layouts["g"].memory == "fragment" and not layouts["g"].note


def test_tiles_of_the_compiler_are_marked_and_stand_last():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float32")
            r = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            T.reduce_sum(s, r, dim=1)
            T.copy(r, C)
    """
    layouts = compiled(text).layouts
    assert [(one.name, one.own) for one in layouts.maps[:2]] == [("s", False), ("r", False)]
    assert all(one.own and one.line is None for one in layouts.maps[2:]) and len(layouts.maps) > 2


def test_several_launches_name_theirs():
    text = """
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            T.copy(s, C)
        with T.Kernel(1, threads=64) as bx:
            s = T.alloc_fragment((64,), "float32")
            T.copy(C, s)
            T.copy(s, A)
    """
    layouts = compiled(text).layouts
    assert [(name, one.launch, one.memory) for name, one in layouts.items()] == [
        ("s", "k", "shared"),
        ("s@9", "k_1", "fragment"),
    ]


def test_tiles_of_bulk_copies_lie_in_swizzled_boxes():
    text = """
    @T.prim_func
    def k(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(2, 4, threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((64, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[by * 64, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, c)
            T.copy(c, C[by * 64, bx * 128])
    """
    kernel = compiled(text, "sm_90a").compile(options={"tl.enable_auto_warp_specialization": True})
    (loop,) = kernel.pipelines
    assert (loop.engine, loop.stages) == ("bulk", 3)
    a, b = kernel.layouts["A_s"], kernel.layouts["B_s"]
    assert (a.versions, a.piece, b.versions, b.piece) == (3, None, 3, 64)
    for one in (a, b):
        assert one.offset % 1024 == 0 and one.version_bytes % 1024 == 0
        assert {len(set(one.bank_table[first : first + 8, 0])) for first in range(0, 64, 8)} == {8}
    assert kernel.layouts["c"].layout.threads == 128


def test_decisions_say_what_was_chosen_where_and_why():
    kernel, _, _ = ran()
    products = [one for one in kernel.decisions if one.subject == "product"]
    assert [one.value.split()[0] for one in products] == ["mma.sync", "mma.sync"]
    assert {one.line for one in products} == {
        number for number, line in enumerate(kernel.text.source.split("\n"), 1) if "T.gemm" in line
    }
    assert str(products[0]).startswith(f"product (line {products[0].line}): mma.sync m16n8k16")
    assert not any(one.subject == "roles" for one in kernel.decisions)
    assert any(one.subject == "roles" for one in compiled(kernel.text.source, "sm_90a").decisions)


def test_a_refused_kernel_has_no_layouts():
    cell = tilelang_nb.compile_cell(
        "@T.prim_func\ndef k(A: T.Tensor((8,), 'float32')):\n    class Q: pass", {}, target="sim"
    )
    with pytest.raises(tilelang_nb.CompileError):
        cell.namespace["k"].layouts
    with pytest.raises(tilelang_nb.CompileError):
        cell.namespace["k"].decisions


def test_the_json_holds_the_same_maps():
    """Decoded as the documentation of the format says."""
    kernel, _, _ = ran()
    (data,) = json.loads(tilelang_nb.runtime.views.view("json")(kernel))["kernels"]
    assert [one["name"] for one in data["layouts"]] == list(kernel.layouts)
    for one in data["layouts"]:
        known = kernel.layouts[one["name"]]
        index = np.indices(one["shape"])
        if one["memory"] == "fragment":
            thread, register = np.zeros(one["shape"], int), np.zeros(one["shape"], int)
            for i, digits in zip(index, one["digits"], strict=True):
                weight = 1
                for position, (extent, kind, stride) in reversed(list(enumerate(digits))):
                    part = i // weight if position == 0 else i // weight % extent
                    weight *= extent
                    thread += part * stride * (kind == "t")
                    register += part * stride * (kind == "r")
            np.testing.assert_array_equal(thread, known.thread_table)
            np.testing.assert_array_equal(register, known.register_table)
            assert (one["registers"], one["copies"], one["threads"]) == (known.registers, len(known.copies), 128)
        else:
            row, column = index[-2], index[-1]
            if "swizzle" in one:
                chunk, every, span = (one["swizzle"][key] for key in ("chunk", "every", "span"))
                column = (column // chunk ^ (row // every % span)) * chunk + column % chunk
            byte = one["offset"] + (row * one["shape"][-1] + column) * one["item"]
            np.testing.assert_array_equal(byte // 4 % 32, known.bank_table)
            assert one["versions"] == known.versions
