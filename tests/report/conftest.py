"""A compiled cell made by hand: the reports are tested on what they read, without the compiler behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import tvm
from tvm import tirx as tir
from tvm.ir import Range, SourceName, StringImm

from tilelang_nb.language.tile_program import operation, region
from tilelang_nb.report.stage_text import stage_text
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Diagnostic, Note
from tilelang_nb.source.text import Span, Text

SOURCE = """@T.prim_func
def scale(A: T.Tensor((n, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(T.ceildiv(n, 32), threads=128) as bx:
        tile = T.alloc_shared((32, 64), "float16")
        acc = T.alloc_fragment((32, 64), "float32")
        for k in T.Pipelined(8, num_stages=3):
            T.copy(A[bx * 32, 0], tile)
        for i in T.Parallel(32):
            acc[i, 0] = T.max(acc[i, 0], 0.0)
        if bx > 0:
            old = T.atomic_add(C[0, 0], 1.0, return_prev=True)
        else:
            T.print(old, "he said \\"变\\"")
        while n > 3:
            break
        T.copy(acc, C[bx * 32, 0])"""
TEXT = Text(SOURCE, "In[3]")
CELL = SourceName("In[3]")


def at(line: int) -> tvm.ir.Span:
    return tvm.ir.Span(CELL, line, line, 5, 20)


def buffer(name: str, shape: tuple[Any, ...], dtype: str = "float32", scope: str = "global") -> Any:
    return tir.decl_buffer(shape, dtype, name, scope=scope, layout=None)


def axis(name: str, extent: Any, tag: str) -> tir.IterVar:
    return tir.IterVar(Range(0, extent), name, tir.IterVar.ThreadIndex, tag)


def tile_function() -> tir.PrimFunc:
    n, k, i, old = (tir.Var(name, "int32") for name in ("n", "k", "i", "old"))
    old = tir.Var("old", "float32")
    A, C = buffer("A", (n, 64), "float16"), buffer("C", (64, 64))
    tile, acc = buffer("tile", (32, 64), "float16", "shared.dyn"), buffer("acc", (32, 64), "float32", "local.fragment")
    bx, tx = axis("bx", tir.floordiv(n + 31, 32), "blockIdx.x"), axis("tx", 128, "threadIdx.x")
    zero, one = tir.const(0.0, "float32"), tir.const(1.0, "float32")
    add = operation("atomic_element", "add", region(C, (0, 0), (1, 1)), one, dtype="float32")
    copy = operation("copy", region(A, (bx.var * 32, 0), (32, 64)), region(tile, (0, 0), (32, 64)), 4)
    body = tir.SeqStmt(
        [
            tir.AllocBuffer(tile, None, at(4)),
            tir.AllocBuffer(acc, None, at(5)),
            tir.For(
                k, 0, 8, tir.ForKind.SERIAL, tir.Evaluate(copy, at(7)), annotations={"tl.num_stages": 3}, span=at(6)
            ),
            tir.For(
                i,
                0,
                32,
                tir.ForKind.PARALLEL,
                tir.BufferStore(acc, tir.max(tir.BufferLoad(acc, [i, 0]), zero), [i, 0], at(9)),
                span=at(8),
            ),
            tir.IfThenElse(
                bx.var > 0,
                tir.Bind(old, add, at(11)),
                tir.Evaluate(operation("print", 'he said "变"', one), at(13)),
                at(10),
            ),
            tir.While(n > 3, tir.Break(), at(14)),
            tir.Evaluate(
                operation("copy", region(acc, (0, 0), (32, 64)), region(C, (bx.var * 32, 0), (32, 64))), at(16)
            ),
        ]
    )
    for thread_axis, extent in ((tx, 128), (bx, tir.floordiv(n + 31, 32))):
        body = tir.AttrStmt(thread_axis, "thread_extent", extent, body, at(3))
    return tir.PrimFunc([A, C], body, span=at(2)).with_attr("global_symbol", "scale")


def thread_function() -> tir.PrimFunc:
    tx, v, x = axis("tx", 128, "threadIdx.x"), tir.Var("v", "int32"), tir.Var("x", "float32")
    C, arena = buffer("C", (64, 64)), tir.decl_buffer((8192,), "uint8", "arena", scope="shared.dyn", layout=None)
    tile, registers = buffer("tile", (32, 64), "float16", "shared.dyn"), buffer("registers", (4,), "float32", "local")
    pointer = tir.ptr_byte_offset(tir.buffer_data(arena), 1024, "float16")
    first = tir.address_of(tir.BufferLoad(C, [0, 0]))
    calls = [
        (tir.call_extern("void", "tl_print", StringImm("x"), x), 13),
        (tir.call_extern("void", "tl_device_assert", x > tir.const(0.0, "float32"), StringImm("positive")), 13),
        (tir.call_extern("float32", "tl_atomic_add", first, x), 11),
        (tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared")), 15),
        (tir.call_extern("float32", "__shfl_xor_sync", tir.const(0xFFFFFFFF, "uint32"), x, 1), 16),
        (tir.call_extern("void", "tl::templated<4>", x), 16),
    ]
    store = tir.BufferStore(registers, tir.Cast("float32", tir.BufferLoad(tile, [0, v])), [v], at(7))
    body = tir.SeqStmt(
        [
            tir.AllocBuffer(arena),
            tir.DeclBuffer(tile, data=pointer),
            tir.AllocBuffer(registers, None, at(5)),
            tir.For(v, 0, 4, tir.ForKind.VECTORIZED, store, span=at(7)),
            tir.Bind(x, tir.BufferLoad(registers, [0]), at(9)),
            *[tir.Evaluate(call, at(line)) for call, line in calls],
        ]
    )
    body = tir.AttrStmt(tx, "thread_extent", 128, body, at(3))
    return tir.PrimFunc([C], body, span=at(2)).with_attr("global_symbol", "scale")


@dataclass
class Stage:
    name: str
    reason: str
    milliseconds: float
    changed: bool
    module: Any = None

    def _printed(self):
        if self.module is not None:
            return stage_text(self.module)
        return list(TEXT.lines), [Span(number, 0, number, 1) for number in range(1, TEXT.last_line + 1)]

    @property
    def text(self):
        return "\n".join(self._printed()[0])

    @property
    def spans(self):
        return tuple(self._printed()[1])

    @property
    def lines(self):
        return tuple(tuple(range(span.line, span.end_line + 1)) if span else () for span in self.spans)


def node(kind: str, line: int, label: str, *turns: Any, definition_line: int = 0) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, line=line, label=label, definition_line=definition_line, iterations=list(turns))


def turn(value: str, *children: Any, first: int = 0, last: int = -1) -> SimpleNamespace:
    names = {"k": value} if value else {}
    return SimpleNamespace(
        value=value,
        names=names,
        children=list(children),
        first_statement=first,
        last_statement=last,
        intervals=((first, last),),
        returned=0,
        used=(),
    )


@dataclass(eq=False)
class Build:
    """What the reports read of a build."""

    lowered: Any
    warnings: tuple[Diagnostic, ...] = ()


@dataclass
class Kernel:
    """What the reports read of a runtime kernel."""

    name: str = "scale"
    diagnostics: tuple[Diagnostic, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    printed: tuple[str, ...] = ()
    counters: tuple[Any, ...] = ()
    refused: bool = False
    text: Text = TEXT
    target: Any = field(default_factory=lambda: SimpleNamespace(kind="sim", arch="sm_90a"))
    unroll: Any = field(default_factory=lambda: node("kernel", 2, "scale", turn("")))

    def __post_init__(self):
        tile, thread = (tvm.IRModule.from_expr(make()) for make in (tile_function, thread_function))
        self.program = None if self.refused else SimpleNamespace(statement_spans=())
        shapes = [("A", "float16", (tir.Var("n", "int32"), 64)), ("C", "float32", (64, 64))]
        self.parameters = (
            ()
            if self.refused
            else (
                *(SimpleNamespace(name=n, kind="tensor", dtype=d, shape=s, strides=None) for n, d, s in shapes),
                SimpleNamespace(name="m", kind="scalar", dtype="int32", shape=(), strides=None),
            )
        )
        self.stages = (
            ()
            if self.refused
            else (
                Stage("source", "what the cell says", 0.0, True),
                Stage("tile", "what the front end built", 3.25, True, tile),
                Stage("infer-layouts", "copies pick their vector width from the layout", 8.0, False, tile),
                Stage("lower-tile-operations", "tile operations become loops over `threads`", 21.5, True, thread),
                Stage("thread", "the program of one thread", 0.5, False, thread),
            )
        )
        space = SimpleNamespace(name="A_s", offset=0, bytes=4096), SimpleNamespace(name="B_s", offset=4096, bytes=512)
        lowered = SimpleNamespace(
            launches=(tile_function(),),
            shared_memory=space,
            workspaces=(SimpleNamespace(name="W", dtype="float32", shape=(4,)),),
        )
        build = None if self.refused else Build(lowered)
        self.build = lambda: build

    @property
    def ok(self):
        return not self.refused

    @property
    def span(self):
        return None if self.refused else Span(2, 0, 2, 9)


@dataclass
class Cell:
    """What the reports read of a Compilation."""

    kernels: dict[str, Kernel]
    diagnostics: tuple[Diagnostic, ...] = ()
    text: Text = TEXT
    target: Any = field(default_factory=lambda: SimpleNamespace(kind="sim", arch="sm_90a"))

    @property
    def ok(self):
        return all(found.severity != "error" for found in self.diagnostics)


WARNING = say.UninitialisedRead(buffer="acc").at(Span(9, 30, 9, 39))
ERROR = say.BadArgument("`T.print` takes no <b>", "write `T.print(x)` & nothing else").at(
    Span(13, 25, 13, 38), notes=(Note("`old` is bound here", Span(11, 12, 11, 15)),)
)
RACE = say.SimulatedRace("blocks 0 and 1 both write `C[0, 0]`", "give every block its own element").at(
    Span(11, 18, 11, 40)
)


@pytest.fixture
def make_kernel():
    return Kernel


@pytest.fixture
def make_cell():
    return Cell


@pytest.fixture
def expansion():
    """A loop of 40 turns with a macro in each, and a comprehension."""
    turns = [turn(str(n), node("macro", 7, "load", turn("", first=n, last=n), definition_line=1)) for n in range(40)]
    return node("kernel", 2, "scale", turn("", node("for", 6, "k", *turns), node("comprehension", 9, "", turn("a<b"))))


@pytest.fixture
def cell(expansion):
    """One kernel with a warning, a race and printed lines."""
    counters = (SimpleNamespace(operations={"add": 4096, "load": 100}), SimpleNamespace(operations={"add": 4}))
    kernel = Kernel(
        diagnostics=(WARNING,),
        findings=(RACE,),
        printed=("x = <1.0>\n", "x = 2.0"),
        counters=counters,
        unroll=expansion,
    )
    return Cell({"scale": kernel}, (WARNING,))


@pytest.fixture
def refused_cell():
    """Two kernels, one of them refused."""
    return Cell({"scale": Kernel(), "broken": Kernel("broken", (ERROR, ERROR), refused=True)}, (WARNING, ERROR, ERROR))


@pytest.fixture
def tile_module():
    return tvm.IRModule.from_expr(tile_function())


@pytest.fixture
def thread_module():
    return tvm.IRModule.from_expr(thread_function())
