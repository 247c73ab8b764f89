"""Thread programs for the tests, by node constructors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TVM_COMPILE_FORCE_FALLBACK", "1")

import tvm
from tvm import tirx as tir
from tvm.ir import Range, SourceName, Span, StringImm
from tvm.script import tirx as T

SERIAL, VECTORIZED, UNROLLED = tir.ForKind.SERIAL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED
ptx, cuda = T.ptx, T.cuda


def i32(value: int) -> Any:
    return tir.const(value, "int32")


def u32(value: int) -> Any:
    return tir.const(value, "uint32")


def f32(value: float) -> Any:
    return tir.const(value, "float32")


def at(line: int) -> Span:
    """The span of a whole line of the user's text."""
    return Span(SourceName("cell"), line, line, 1, 21)


def var(name: str, dtype: str = "int32") -> Any:
    return tir.Var(name, dtype)


def buffer(name: str, shape: Sequence[Any], dtype: str, scope: str = "global", **options: Any) -> Any:
    return tir.decl_buffer(tuple(shape), dtype, name, scope=scope, layout=None, **options)


def local(name: str, shape: Sequence[Any] | int, dtype: str) -> Any:
    return buffer(name, (shape,) if isinstance(shape, int) else shape, dtype, "local")


def shared(name: str, shape: Sequence[Any] | int, dtype: str) -> Any:
    return buffer(name, (shape,) if isinstance(shape, int) else shape, dtype, "shared.dyn")


def load(source: Any, *indices: Any) -> Any:
    return tir.BufferLoad(source, list(indices))


def store(target: Any, value: Any, *indices: Any, line: int | None = None) -> Any:
    return tir.BufferStore(target, value, list(indices), *([at(line)] if line else []))


def loop(variable: Any, extent: Any, *body: Any, kind: Any = SERIAL, start: Any = 0, line: int | None = None) -> Any:
    return tir.For(variable, start, extent, kind, seq(*body), span=at(line) if line else None)


def unroll(variable: Any, extent: int, *body: Any) -> Any:
    return loop(variable, extent, *body, kind=UNROLLED)


def vector(variable: Any, extent: int, *body: Any) -> Any:
    return loop(variable, extent, *body, kind=VECTORIZED)


def when(condition: Any, then: Any, otherwise: Any = None, line: int | None = None) -> Any:
    return tir.IfThenElse(condition, then, otherwise, *([at(line)] if line else []))


def seq(*statements: Any) -> Any:
    return statements[0] if len(statements) == 1 else tir.SeqStmt(list(statements))


def evaluate(expression: Any, line: int | None = None) -> Any:
    return tir.Evaluate(expression, *([at(line)] if line else []))


def extern(dtype: str, name: str, *arguments: Any) -> Any:
    return tir.call_extern(dtype, name, *[StringImm(a) if isinstance(a, str) else a for a in arguments])


def address(source: Any, *indices: Any) -> Any:
    return tir.address_of(load(source, *indices))


def barrier(line: int | None = None, scope: str = "shared") -> Any:
    return evaluate(tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm(scope)), line)


def shuffle(kind: str, dtype: str, value: Any, lane: Any, *width: Any) -> Any:
    return extern(dtype, f"__shfl{kind}_sync", u32(0xFFFFFFFF), value, lane, *width)


def launch(
    parameters: Sequence[Any],
    body: Callable[..., Sequence[Any]],
    *,
    threads: int | Sequence[int] = 64,
    blocks: Any = 1,
    allocate: Sequence[Any] = (),
) -> Any:
    """A PrimFunc of `body(t, b)`, or `body((tx, ty, tz), (bx, by, bz))` where threads or blocks is a sequence.

    `allocate`: local and shared buffers.
    """
    several = not isinstance(threads, int) or isinstance(blocks, (tuple, list))
    block_extents = list(blocks) if isinstance(blocks, (tuple, list)) else [blocks]
    thread_extents = [threads] if isinstance(threads, int) else list(threads)
    axes: list[tuple[Any, Any]] = []
    variables: list[list[Any]] = []
    for kind, extents in (("blockIdx", block_extents), ("threadIdx", thread_extents)):
        mine = []
        for axis, extent in zip("xyz", extents, strict=False):
            item = tir.IterVar(Range(0, extent), kind[0] + axis, tir.IterVar.ThreadIndex, f"{kind}.{axis}")
            axes.append((item, extent))
            mine.append(item.var)
        variables.append(mine)
    b, t = (variables[0], variables[1]) if several else (variables[0][0], variables[1][0])
    node = seq(*[tir.AllocBuffer(item) for item in allocate], *body(t, b))
    for item, extent in reversed(axes):
        node = tir.AttrStmt(item, "thread_extent", extent, node)
    return tir.PrimFunc(list(parameters), node).with_attr("global_symbol", "k")


__all__ = [name for name in globals() if not name.startswith("_")]
_ = tvm
