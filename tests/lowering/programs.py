"""Tile programs built by hand, as the front end emits them, for tests of single stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tvm import tirx as tir
from tvm.ir import Range, SourceName, Span

from tilelang_nb.language.tile_program import operation, region
from tilelang_nb.source import text

CELL = SourceName("<cell>")
ZERO = tir.const(0, "int32")


def at(line: int) -> Span:
    return Span(CELL, line, line, 1, 20)


def buffer(name: str, shape: Sequence[Any], dtype: str = "float32", scope: str = "global") -> Any:
    return tir.decl_buffer(shape, dtype, name, scope=scope, layout=None)


def fragment(name: str, shape: Sequence[int], dtype: str = "float32") -> Any:
    return buffer(name, shape, dtype, "local.fragment")


def shared(name: str, shape: Sequence[int], dtype: str = "float32") -> Any:
    return buffer(name, shape, dtype, "shared.dyn")


def load(source: Any, *indices: Any) -> Any:
    return tir.BufferLoad(source, list(indices))


def store(target: Any, value: Any, *indices: Any, line: int = 1) -> Any:
    return tir.BufferStore(target, value, list(indices), at(line))


def parallel(extents: Sequence[Any], body: Callable[..., Any], line: int = 1, kind: Any = tir.ForKind.PARALLEL) -> Any:
    """Nested loops; `body(*variables)` gives one statement or a list of them."""
    loops = [tir.Var("ijkl"[k], "int32") for k in range(len(extents))]
    result = sequence(body(*loops))
    for var, extent in zip(reversed(loops), reversed(extents)):
        result = tir.For(var, 0, extent, kind, result, span=at(line))
    return result


def serial(extent: Any, body: Callable[..., Any], line: int = 1) -> Any:
    return parallel([extent], body, line, tir.ForKind.SERIAL)


def sequence(parts: Any) -> Any:
    if isinstance(parts, tir.Stmt):
        return parts
    parts = list(parts)
    return parts[0] if len(parts) == 1 else tir.SeqStmt(parts)


def box(source: Any, begin: Sequence[Any] | None = None, extent: Sequence[Any] | None = None) -> Any:
    """A region; all of the buffer where nothing else is said."""
    begin = [ZERO] * len(source.shape) if begin is None else list(begin)
    extent = (
        list(source.shape) if extent is None else [tir.const(e, "int32") if isinstance(e, int) else e for e in extent]
    )
    return region(source, begin, extent)


def tile(name: str, *operands: Any, line: int = 1) -> Any:
    return tir.Evaluate(operation(name, *operands), at(line))


def copy(source: Any, target: Any, line: int = 1) -> Any:
    """Operands: buffers (all of them) or regions."""
    parts = [box(part) if isinstance(part.ty, tir.BufferType) else part for part in (source, target)]
    return tile("copy", *parts, line=line)


def program(
    parameters: Sequence[Any],
    body: Callable[..., Any],
    *,
    threads: int = 128,
    grid: Sequence[Any] = (1,),
    local: Sequence[Any] = (),
) -> Any:
    """A TileProgram with one launch.  body: a function of the block variables and the thread variable."""
    thread = tir.IterVar(Range(0, threads), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    blocks = [
        tir.IterVar(Range(0, extent), "b" + "xyz"[k], tir.IterVar.ThreadIndex, "blockIdx." + "xyz"[k])
        for k, extent in enumerate(grid)
    ]
    allocations = [tir.AllocBuffer(one, None, at(1)) for one in local]
    result = sequence([*allocations, sequence(body(*(block.var for block in blocks), thread.var))])
    result = tir.AttrStmt(thread, "thread_extent", threads, result, at(1))
    for block, extent in reversed(list(zip(blocks, grid))):
        result = tir.AttrStmt(block, "thread_extent", extent, result, at(1))
    function = tir.PrimFunc(list(parameters), result, span=at(1)).with_attr("global_symbol", "k")
    return SimpleNamespace(
        name="k", function=function, parameters=(), text=text.Text("\n" * 40), span=text.Span(1, 0, 1, 10), layouts={}
    )
