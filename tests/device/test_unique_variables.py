"""Statements that were written several times get variables of their own."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

import tilelang_nb
from tilelang_nb.device.unique_variables import unique_variables


def number(value: int) -> Any:
    return tir.const(value, "int32")


def function(*body: Any) -> tuple[Any, Any]:
    out = tir.decl_buffer((64,), "int32", "out")
    return tir.PrimFunc([out], tir.SeqStmt([make(out) for make in body])), out


def definitions(made: Any) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(
        made.body,
        [(tir.Bind, lambda node: found.append(node.var)), (tir.For, lambda node: found.append(node.loop_var))],
    )
    return found


def test_each_copy_of_a_binding_and_of_a_loop_has_a_variable():
    x, k = tir.Var("x", "int32"), tir.Var("k", "int32")

    def bound(value: int, place: int) -> list[Any]:
        return [
            lambda out: tir.Bind(x, number(value)),
            lambda out: tir.BufferStore(out, x + value, [number(place)]),
        ]

    def looped(place: int) -> Any:
        def make(out: Any) -> Any:
            body = tir.SeqStmt([tir.Bind(x, k + place), tir.BufferStore(out, x * k, [k + place])])
            return tir.For(k, 0, 4, tir.ForKind.SERIAL, body)

        return make

    before, _ = function(*bound(1, 0), *bound(2, 1), *bound(3, 2), looped(8), looped(16), *bound(4, 3))
    after = unique_variables(before)
    names = definitions(after)
    assert len(names) == 8 and len(set(names)) == 8 and {name.name for name in names} == {"x", "k"}
    values: dict[Any, int] = {}
    stored: dict[int, int] = {}
    run(after.body, values, stored)
    assert stored == {0: 2, 1: 4, 2: 6, 3: 8} | {place + k: (k + place) * k for place in (8, 16) for k in range(4)}


def run(node: Any, values: dict[Any, int], stored: dict[int, int]) -> None:
    """Executes bindings, loops and stores."""

    def of(expr: Any) -> int:
        done = tvm_ffi.structural_map(expr, (type(tir.Var("v", "int32")), lambda var: number(values[var])))
        return int(Analyzer().simplify(done))

    if isinstance(node, tir.SeqStmt):
        for one in node.seq:
            run(one, values, stored)
    elif isinstance(node, tir.Bind):
        values[node.var] = of(node.value)
    elif isinstance(node, tir.For):
        for turn in range(int(node.extent)):
            values[node.loop_var] = turn
            run(node.body, values, stored)
    else:
        stored[of(node.indices[0])] = of(node.value)


def test_a_program_without_copies_stays_as_it_is():
    x = tir.Var("x", "int32")
    made, _ = function(lambda out: tir.Bind(x, number(1)), lambda out: tir.BufferStore(out, x, [number(0)]))
    assert unique_variables(made).same_as(made)


def test_attention_in_roles_whose_mask_has_a_name_is_printed():
    """The first turn of the loop stands before it, with the name of the text in both."""
    text = """
@T.prim_func
def attention(Q: T.Tensor((256, 64), "float16"), K: T.Tensor((192, 64), "float16"), V: T.Tensor((192, 64), "float16"), O: T.Tensor((256, 64), "float32")):
    with T.Kernel(4, threads=128) as bx:
        q = T.alloc_shared((64, 64), "float16")
        k = T.alloc_shared((64, 64), "float16")
        v = T.alloc_shared((64, 64), "float16")
        s = T.alloc_fragment((64, 64), "float32")
        p = T.alloc_fragment((64, 64), "float16")
        o = T.alloc_fragment((64, 64), "float32")
        T.copy(Q[bx * 64, 0], q)
        T.clear(o)
        for j in T.Pipelined(3, num_stages=2):
            T.copy(K[j * 64, 0], k)
            for a, b in T.Parallel(64, 64):
                key = j * 64 + b
                s[a, b] = T.if_then_else(key >= 150, -T.infinity("float32"), 0.0)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for a, b in T.Parallel(64, 64):
                s[a, b] = T.exp2(s[a, b])
            T.copy(s, p)
            T.copy(V[j * 64, 0], v)
            T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullRow)
        T.copy(o, O[bx * 64, 0])
"""
    cell = tilelang_nb.compile_cell(text, {}, arch="sm_90a")
    assert cell.ok, cell.to_text()
    assert "wgmma" in cell.namespace["attention"].cuda_source
