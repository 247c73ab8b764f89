"""The tile program: which calls stand for tile operations, how they are written into the IR and how they are read back.

A tile program is a `tirx.PrimFunc` made of ordinary statements (loops, ifs, stores, allocations) and tile operations.
A tile
operation is `Evaluate(call_extern("void", "tl.<name>", operand, ...))` with its operands in the order of `SIGNATURES`;
an
operation with a result is the value of a `Bind`.  A region operand is `call_extern("handle", "tl.region",
buffer[begin...],
extent...)`.  `read` turns a call back into a `TileCall` with named operands.

Memory scopes of a tile program: "global", "shared.dyn" (`alloc_shared`), "local.fragment" (one logical tile over all
threads of
the block), "local" (per-thread array), "local.var" (per-thread scalar, shape (1,)), "shared.barrier" (mbarriers).

Loops: `ForKind.PARALLEL` is `T.Parallel` (several dimensions are directly nested loops), SERIAL, UNROLLED, VECTORIZED;
the options
of a loop are annotations `tl.<option>` (`tl.num_stages` marks `T.Pipelined`).
`AttrStmt(IterVar, "thread_extent", extent)` binds
`blockIdx.*` and `threadIdx.*` around the body of a launch; `AttrStmt(0, "tl.warp_groups", "0,1")` is `T.ws(0, 1)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx as tir
from tvm.ir import StringImm

# name -> operands in order.  A trailing "?" marks an operand that may be absent (written as the string "").
SIGNATURES: dict[str, tuple[str, ...]] = {
    # data movement
    "copy": ("source", "target", "coalesced_width?", "disable_tma?"),
    # group: "open" for a copy that a later commit_group takes in; else it is a group of its own
    "async_copy": ("source", "target", "coalesced_width?", "group?"),
    # neighbours of one row, by each executing thread; a later commit_group takes the copy in
    "cp_async": ("target", "source", "predicate?"),
    "fill": ("target", "value"),
    "transpose": ("source", "target"),
    # target[i, j]: tap c_step * BK + j of output pixel nhw_step * BM + i of an image (N, H, W, C)
    "im2col": ("source", "target", "nhw_step", "c_step", "kernel", "stride", "dilation", "pad"),
    # matrix multiply-accumulate: C (+)= op(A) @ op(B); clear_accum is a boolean expression,
    # policy "square" | "full_row" | "full_col"; precision "tf32" for tiles of tfloat32, which hold float32
    # asynchronous "open" where wait_wgmma waits for it
    "gemm": ("a", "b", "c", "transpose_a", "transpose_b", "clear_accum", "policy", "precision?", "asynchronous?"),
    # operation: sum max min abssum absmax bitand bitor bitxor any all
    "reduce": ("operation", "source", "target", "dim", "clear", "nan_propagate"),
    # operation: sum max
    "cumulate": ("operation", "source", "target", "dim", "reverse"),
    # `value` of the threads that differ in `digits` only ("32:1,4:32": extents and strides in the thread index),
    # combined into each thread's `target`, one element of local memory
    "thread_reduce": ("operation", "value", "target", "digits?"),
    # per-thread partial results over all threads, combined by finalize_reducer; operation: sum max min
    "reducer": ("buffer", "operation", "replication"),
    "finalize_reducer": ("buffer", "target?"),
    # operation: add max min and or xor exchange.  On whole regions; value is a region or a scalar expression
    "atomic_region": ("operation", "target", "value", "memory_order?"),
    # one element; `target` is a region of extent 1 everywhere.  Its value is the old content: written as
    # Bind(old, call) always
    "atomic_element": ("operation", "target", "value", "memory_order?"),
    "atomic_load": ("target", "memory_order?"),
    "atomic_store": ("target", "value", "memory_order?"),
    # checks and output
    "print": ("message", "value?"),
    "device_assert": ("condition", "message"),
    "assume": ("condition",),
    # hints
    "annotate_layout": ("buffer", "layout"),  # layout: key into TileProgram.layouts
    "annotate_safe_value": ("buffer", "value"),
    "use_swizzle": ("panel_size", "order", "enable"),
    # synchronisation
    "sync_threads": ("barrier_id?", "arrive_count?"),
    "sync_warp": ("mask?",),
    "sync_grid": (),
    "thread_fence": ("function",),  # of CUDA: accesses before it come before those after it, for who asks
    "named_arrive": ("barrier_id", "arrive_count"),  # does not wait
    # all threads of a cluster: they arrive, and wait for those that arrived
    "cluster_arrive": (),
    "cluster_wait": (),
    # shared tiles of the own block into the same place of another block of the cluster; barrier: the other block's
    # counts the bytes, and one arrival
    "copy_to_block": ("source", "target", "block", "barrier?"),
    # into shared tiles of the blocks that `mask` names; complete when it returns
    "copy_to_blocks": ("source", "target", "mask"),
    "barrier_init": ("barrier", "arrive_count"),
    "barrier_arrive": ("barrier", "block?"),  # block: of the cluster, at whose barrier of this place it arrives
    "barrier_wait": ("barrier", "parity"),
    "copies_arrive": ("barrier",),  # when the copies have landed that the executing thread started
    "barrier_expect_tx": ("barrier", "bytes"),
    "fence_barrier_init": (),  # initialised barriers are there for asynchronous copies
    # a bulk copy that the threads around start once, or each `scope` of them: into shared memory with the bytes
    # announced at its barrier, for which they wait; into global memory as a group, for which store_wait waits
    # mask: bits of the blocks of the cluster that one copy fills, started by the first of them
    # first: the number in the block of the thread that starts it, where only some of the threads around get there
    "tma_copy": ("source", "target", "barrier?", "scope?", "mask?", "first?"),
    "store_arrive": (),
    "store_wait": ("pending", "read"),  # read: until the tiles have been read, else until the copies are over
    # bulk copies of a box by one thread; the barrier counts the bytes of a load
    "tensor_load": ("source", "target", "barrier"),
    "tensor_store": ("source", "target"),
    # an accumulator of `down` by `across` warp groups through boxes of shared memory, which were used before or not;
    # wait_boxes waits until they have been read
    "accumulator_store": ("source", "target", "staging", "down", "across", "reused"),
    "wait_boxes": (),
    "set_max_nreg": ("count", "increase"),
    "wait_wgmma": ("pending", "accumulator?"),  # accumulator: the one whose product is over then
    "written_accumulator": ("accumulator",),  # what was stored into it is in registers before a product starts
    "pack_operand": ("source", "packed"),  # a fragment into registers of two elements, as products take them
    "fence_proxy_async": (),
    "commit_group": (),
    "wait_group": ("pending",),
}
PREFIX = "tl."
CLUSTER = "tl.cluster_dims"  # attribute around the body of a launch in clusters: their extents, "2,1,1"
# Operations whose name in `T` is another; {} is their first operand.
_WRITTEN = {
    "reduce": "reduce_{}",
    "cumulate": "cum{}",
    "atomic_region": "atomic_{}",
    "atomic_element": "atomic_{}",
    "thread_reduce": "tvm_thread_allreduce",
    "reducer": "alloc_reducer",
    "barrier_init": "alloc_barrier",
    "barrier_expect_tx": "mbarrier_expect_tx",
    "cp_async": "ptx_cp_async",
    "commit_group": "ptx_commit_group",
    "wait_group": "ptx_wait_group",
    "store_arrive": "tma_store_arrive",
    "copies_arrive": "cp_async_barrier_noinc",
    "named_arrive": "named_barrier_arrive",
    "copy_to_block": "copy_cluster",
    "copy_to_blocks": "copy_cluster",
    "store_wait": "tma_store_wait",
}


@dataclass(frozen=True)
class RegionOperand:
    """A box of a buffer: `begin` and `extent` per dimension, as TIR expressions."""

    buffer: Any  # the buffer's Var
    begin: tuple[Any, ...]
    extent: tuple[Any, ...]


@dataclass(frozen=True)
class TileCall:
    """A tile operation read back: `call.operands["source"]` or `call["source"]`.

    An operand is a RegionOperand, a TIR expression, a Python str, or None where an optional one is absent.  Integer and
    boolean immediates are given as Python int and bool only by `integer` and `boolean`.
    """

    name: str
    operands: dict[str, Any]
    span: Any

    def __getitem__(self, name: str) -> Any:
        return self.operands[name]

    def integer(self, name: str) -> int:
        return int(self.operands[name])

    def boolean(self, name: str) -> bool:
        return bool(int(self.operands[name]))


def region(buffer: Any, begin: Any, extent: Any) -> tir.Call:
    """The region operand of a tile operation.  `begin` and `extent`: TIR expressions, one per dimension."""
    return tir.call_extern("handle", PREFIX + "region", tir.BufferLoad(buffer, list(begin)), *extent)


def operation(name: str, *operands: Any, dtype: str = "void") -> tir.Call:
    """A tile operation: operands are regions, TIR expressions, str, bool, int, or None for an absent optional one."""
    signature = SIGNATURES[name]
    if len(operands) > len(signature) or any(
        operand is None and not field.endswith("?") for field, operand in zip(signature, operands)
    ):
        raise TypeError(f"tl.{name} takes {signature}")
    padded = list(operands) + [None] * (len(signature) - len(operands))
    return tir.call_extern(dtype, PREFIX + name, *[_encode(operand) for operand in padded])


def written(name: str, *operands: Any) -> str:
    """The operation as a user writes it: `T.reduce_max`."""
    return "T." + _WRITTEN.get(name, name).format(*operands[:1])


def _encode(operand: Any) -> Any:
    if operand is None:
        return StringImm("")
    if isinstance(operand, bool):
        return tir.const(operand, "bool")
    if isinstance(operand, int):
        return tir.const(operand, "int32")
    return StringImm(operand) if isinstance(operand, str) else operand


def operation_name(expr: Any) -> str | None:
    """The name of a tile operation without its prefix; None for any other expression."""
    if type(expr) is tvm.ir.Call and getattr(expr.op, "name", "") == "tirx.call_extern":
        name = expr.args[0].value
        if name.startswith(PREFIX):
            return name[len(PREFIX) :]
    return None


def statement_name(node: Any) -> str | None:
    """The name of the tile operation that a statement is; None for any other statement."""
    return operation_name(node.value) if type(node) is tir.Evaluate else None


def read(expr: Any, span: Any = None) -> TileCall:
    """The tile operation that a call stands for."""
    name = operation_name(expr)
    if name is None or name not in SIGNATURES:
        raise ValueError(f"no tile operation: {expr}")
    names = [field.rstrip("?") for field in SIGNATURES[name]]
    return TileCall(name, dict(zip(names, [_decode(argument) for argument in expr.args[1:]])), span)


def _decode(argument: Any) -> Any:
    if isinstance(argument, StringImm):
        return argument.value or None
    if operation_name(argument) == "region":
        load = argument.args[1]
        return RegionOperand(load.source, tuple(load.indices), tuple(argument.args[2:]))
    return argument
