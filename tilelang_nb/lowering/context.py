"""What the stages and the operations share: the launch being lowered, and what comes out of lowering.

An operation is one module of `lowering/ops` (or `lowering/gemm`) with

    lower(call: TileCall, launch: LaunchContext) -> tir.Stmt
    constrain(call: TileCall, inference: Inference) -> None        (only where it cares for fragment layouts)

`lower` is called inside the lower-tile-operations stage, once per place of the call.  What it may rely on:

- Scalar operands are thread-level expressions: loop variables of parallel loops are replaced, fragment elements are
  register loads.  The begins of region operands likewise.
- Region operands keep their buffers.  A buffer of scope "local.fragment" has `launch.layouts[buffer]` and its
  registers `launch.registers[buffer]`, a one-dimensional "local" buffer of `register_count` elements; all other
  buffers are accessed by plain loads and stores.
- `legalise` has run: gemm has C as one whole fragment and A, B as regions of shared
  tiles, or as whole fragments where tensor cores multiply; reduce has a whole
  fragment as source and as target; cumulate has regions of shared tiles; finalize_reducer has whole fragments.  A
  fragment that no layout serves was demoted, or is read through a tile: it is a shared tile by then, and the call was
  legalised again.
- The result may use shared memory like any user's statement: barriers are inserted later from the accesses.  It may
  hold AllocBuffer of scope "local"; shared memory comes from `launch.scratch`.
- Statements without a span get the span of the call.  Indices are guarded later (global memory only).

A mistake of the user is `launch.report(message, span)`; then any statement may be returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm.sym import Analyzer

from tilelang_nb.language.tile_program import TileCall
from tilelang_nb.layout.fragment import Fragment
from tilelang_nb.source.diagnostic import Diagnostic, Message, Note
from tilelang_nb.source.text import Text

from .spans import source_span

FRAGMENT = "local.fragment"
SHARED = "shared.dyn"


@dataclass(frozen=True)
class ThreadSet:
    """The threads that execute a statement together: `count` neighbouring threads of the block from `base` on.

    group: None for the whole block, else the first warp group of `T.ws`; the set then has named barrier `1 + group`.
    """

    base: int
    count: int
    group: int | None = None

    @property
    def is_block(self) -> bool:
        return self.group is None

    def meets(self, other: ThreadSet) -> bool:
        """Are there threads that are in both?"""
        return self.base < other.base + other.count and other.base < self.base + self.count


@dataclass
class LaunchContext:
    """One launch on its way through the stages.

    text: what the user wrote.
    arch, options: as given to `lower`.
    threads: threads of a block.
    block_thread: linear index of the thread in the block, over the thread axes.
    axes: the variables of `threadIdx.x/y/z` present; blocks: those of `blockIdx.x/y/z`.  cluster: blocks of a cluster
    along x, y and z.
    set: the threads that execute what is being lowered now (changed under `T.ws` by `within`).
    layouts: layout of every fragment; filled by infer-layouts.
    registers: the register buffer of every fragment; filled by lower-tile-operations.
    analyzer: knows the ranges of block and thread variables, and what `T.assume` said.
    annotated: TileProgram.layouts, by key.  orders: of shared tiles, wanted: of fragments, that the text annotates.
    safe_values: what a load over the edge of a global buffer gives (`T.annotate_safe_value`), by buffer.
    """

    text: Text
    arch: str
    options: Mapping[str, Any]
    threads: int
    block_thread: Any
    axes: tuple[Any, ...]
    blocks: tuple[Any, ...]
    analyzer: Analyzer
    set: ThreadSet
    annotated: Mapping[str, Any] = field(default_factory=dict)
    orders: dict[Any, Any] = field(default_factory=dict)  # annotated_layouts.Order
    wanted: dict[Any, Any] = field(default_factory=dict)  # language.layout_tables.FragmentTable
    layouts: dict[Any, Fragment] = field(default_factory=dict)
    registers: dict[Any, Any] = field(default_factory=dict)
    safe_values: dict[Any, Any] = field(default_factory=dict)
    shared: list[Any] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    function: Any = None  # the launch as split-launches made it
    cluster: tuple[int, int, int] = (1, 1, 1)
    _names: dict[str, bool | None] = field(default_factory=dict)

    @property
    def thread(self) -> Any:
        """Linear index of the thread in the current set, from 0 to `thread_count` - 1."""
        return self.block_thread - self.set.base if self.set.base else self.block_thread

    @property
    def thread_count(self) -> int:
        return self.set.count

    @contextmanager
    def within(self, threads: ThreadSet) -> Any:
        """Lower something that only these threads execute."""
        before, self.set = self.set, threads
        try:
            yield
        finally:
            self.set = before

    @property
    def rank(self) -> Any:
        """The number of the block in its cluster, x fastest."""
        rank: Any = None
        stride = 1
        for variable, extent in zip(self.blocks, self.cluster):
            if extent > 1:
                part = tir.floormod(variable, extent)
                rank = part if rank is None else rank + part * stride
                stride *= extent
        return tir.const(0, "int32") if rank is None else rank

    def run(self, buffer: Any, most: int) -> int:
        """How many neighbours of a row stay side by side in memory, `most` at the most."""
        order = self.orders.get(buffer)
        return most if order is None or order.swizzle is not None else min(most, order.run)

    def fresh(self, name: str) -> str:
        """A name for a buffer or variable of the compiler's own that nothing in the launch has."""
        if not self._names:
            note = self._names.setdefault
            tvm_ffi.structural_walk(self.function, (tvm.ir.Var, lambda var: note(var.name)))
        candidate, number = name, 1
        while candidate in self._names:
            candidate, number = f"{name}_{number}", number + 1
        self._names[candidate] = True
        return candidate

    def is_own(self, name: str) -> bool:
        """Whether a name is one of the compiler's own, which no message may show."""
        return self._names.get(name) is True

    def scratch(self, shape: tuple[int, ...], dtype: str, name: str) -> Any:
        """A shared tile for the compiler's own use.  It is allocated at the start of the launch."""
        buffer = tir.decl_buffer(shape, dtype, self.fresh(name), scope=SHARED, layout=None)
        self.shared.append(buffer)
        return buffer

    def local(self, count: int, dtype: str, name: str) -> Any:
        """A register array; the caller emits its AllocBuffer."""
        return tir.decl_buffer((count,), dtype, self.fresh(name), scope="local", layout=None)

    def report(self, message: Message, span: Any = None, notes: tuple[Note, ...] = ()) -> None:
        """A mistake or a warning; said once per place.  span: TVM's, as on statements."""
        diagnostic = message.at(source_span(span), notes)
        if all(diagnostic.key != known.key for known in self.diagnostics):
            self.diagnostics.append(diagnostic)


class Inference(Protocol):
    """What `constrain` of an operation sees.  It is called until nothing changes, so it only adds what it knows."""

    threads: int  # size of the set of threads that executes the call
    launch: LaunchContext

    def layout(self, buffer: Any) -> Fragment | None:
        """The layout settled so far; None for none yet, and for a buffer that is no fragment."""

    def settle(self, buffer: Any, layout: Fragment, span: Any) -> None:
        """The buffer must have this layout here.  Where it already has another, one of the fragments is demoted."""


class OperationLowering(Protocol):
    """A module of `lowering/ops`; `constrain` may be missing."""

    def lower(self, call: TileCall, launch: LaunchContext) -> tir.Stmt: ...


@dataclass(frozen=True)
class Stage:
    """One step of lowering.  why: the reason for its place in the order, shown to the user."""

    name: str
    run: Any  # (tir.PrimFunc, LaunchContext) -> tir.PrimFunc
    why: str


@dataclass(frozen=True)
class Snapshot:
    """The program after a stage."""

    name: str
    reason: str
    module: Any  # tvm.IRModule
    milliseconds: float
    changed: bool


@dataclass(frozen=True)
class Workspace:
    """`T.alloc_global`: an extra trailing buffer parameter of the launches."""

    name: str
    shape: tuple[Any, ...]
    dtype: str


@dataclass(frozen=True)
class SharedBuffer:
    """Where a shared tile lies in the arena."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Lowered:
    """What lowering gives.  With an error among the diagnostics, `launches` is empty.

    failed_in: the stage at which it ended then.
    swizzles: per launch what `T.use_swizzle` asks for, (panel size, order of blocks), or None.
    guards: per launch, which accesses of which statements got conditions at the edges of buffers: (kind, buffer,
    place); the kind is "read", "write", "atomic", or "safe read" of a buffer with a safe value.
    added_threads: per launch, those that are not of the text: they copy for the others.
    """

    snapshots: tuple[Snapshot, ...]
    launches: tuple[Any, ...]
    workspaces: tuple[Workspace, ...]
    diagnostics: tuple[Diagnostic, ...]
    shared_memory: tuple[SharedBuffer, ...] = ()
    layouts: Mapping[str, Fragment] = field(default_factory=dict)
    swizzles: tuple[tuple[int, str] | None, ...] = ()
    decisions: tuple[Any, ...] = ()
    maps: tuple[Any, ...] = ()  # layout.maps.FragmentMap and SharedMap
    pipelines: tuple[Any, ...] = ()  # pipeline_steps.PipelineSteps
    failed_in: str = ""
    guards: tuple[frozenset[tuple[str, str, tuple[int, int, int, int]]], ...] = ()
    added_threads: tuple[int, ...] = ()
