"""Synchronisation: block and warp barriers, mbarriers, groups of asynchronous copies, fences."""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .clusters import block_of_cluster
from .launch import WARP, thread_count
from .operands import BARRIER, described, dtype_mismatch, integer, place, scalar, unavailable
from .promotion import is_integer
from .values import Value, builder
from .warp import device_call, predicate_of


@checked_call
def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> None:
    """Waits until all threads of the block are here; what they wrote before is seen by all after.

    barrier_id, arrive_count: a named barrier (0 to 15) for that many threads, a multiple of 32.
    Barriers between tile operations are
    placed by the compiler; this one is for thread-level code.
    Errors: TL004 (numbers).  Source: CUDA's `__syncthreads`, PTX `bar.sync`.
    """
    called = "T.sync_threads"
    number = None if barrier_id is None else integer(barrier_id, called, "barrier_id", 0, 15)
    count = None if arrive_count is None else integer(arrive_count, called, "arrive_count", 1, 1024)
    if count is not None and count % WARP:
        bad_argument(f"`arrive_count={count}` of `{called}`", "give a multiple of 32: barriers count whole warps")
    if count is not None and number is None:
        bad_argument(f"`{called}` with `arrive_count` and no `barrier_id`", "give both, or none")
    if number is not None and count is None:
        count = -(-thread_count() // WARP) * WARP
    builder().operation("sync_threads", number, count)


@checked_call
def named_barrier_arrive(barrier_id: Any, thread_count: Any) -> None:
    """Arrives at a named barrier and goes on; `T.sync_threads(barrier_id, thread_count)` of others waits for it.

    barrier_id: 0 to 15.  thread_count: of both sides together, a multiple of 32.
    Errors: TL004 (numbers).  Source: upstream `T.named_barrier_arrive`; PTX `bar.arrive`.
    """
    called = "T.named_barrier_arrive"
    number = integer(barrier_id, called, "barrier_id", 0, 15)
    count = integer(thread_count, called, "thread_count", 1, 1024)
    if count % WARP:
        bad_argument(f"`thread_count={count}` of `{called}`", "give a multiple of 32: barriers count whole warps")
    builder().operation("named_arrive", number, count)


@checked_call
def sync_warp(mask: Any = None) -> None:
    """Waits until the threads of the warp (those of `mask`) are here.

    Errors: TL205 (mask), TL004.  Source: CUDA's `__syncwarp`.
    """
    value = None
    if mask is not None:
        value = scalar(mask, "T.sync_warp", "the lane mask")
        if isinstance(value, float) or (isinstance(value, Value) and not is_integer(value.dtype)):
            dtype_mismatch("the lane mask of `T.sync_warp` is no integer", "give 32 bits: `0xFFFFFFFF`")
        if not isinstance(value, Value):
            from .dtypes import cast_to

            value = cast_to(value & 0xFFFFFFFF, "uint32")
    builder().operation("sync_warp", value)


@checked_call
def sync_grid() -> None:
    """Waits until all blocks of the grid are here.

    Errors: TL302, it needs a cooperative launch, which this version does not make.  Source: upstream `T.sync_grid`.
    """
    unavailable(
        "a barrier of the whole grid needs a cooperative launch",
        "end the launch and begin a second `with T.Kernel(...)`",
    )


@checked_call
def syncthreads_count(predicate: Any) -> Value:
    """A block barrier; int32: in how many threads `predicate` is not 0.

    Errors: TL205 (float), TL004.  Source: CUDA's `__syncthreads_count`.
    """
    return device_call("__syncthreads_count", "int32", predicate_of(predicate, "T.syncthreads_count"))


@checked_call
def syncthreads_and(predicate: Any) -> Value:
    """A block barrier; int32: not 0 where `predicate` is not 0 in all threads.

    Errors: TL205 (float), TL004.  Source: CUDA's `__syncthreads_and`.
    """
    return device_call("__syncthreads_and", "int32", predicate_of(predicate, "T.syncthreads_and"))


@checked_call
def syncthreads_or(predicate: Any) -> Value:
    """A block barrier; int32: not 0 where `predicate` is not 0 in any thread.

    Errors: TL205 (float), TL004.  Source: CUDA's `__syncthreads_or`.
    """
    return device_call("__syncthreads_or", "int32", predicate_of(predicate, "T.syncthreads_or"))


def _barrier(mbarrier: Any, called: str) -> Any:
    region = place(mbarrier, called, "its barrier")
    if region.memory != BARRIER:
        bad_argument(
            f"`{called}` takes a barrier, {described(mbarrier)} given", "allocate it with `T.alloc_barrier(count)`"
        )
    return region


def _arrive(called: str, mbarrier: Any, cta_id: Any = None) -> None:
    region = _barrier(mbarrier, called)
    block = None if cta_id is None else block_of_cluster(called, cta_id, "cta_id")
    builder().operation("barrier_arrive", region, block)


@checked_call
def mbarrier_arrive(mbarrier: Any, cta_id: Any = None) -> None:
    """Every executing thread arrives at an mbarrier once: `T.mbarrier_arrive(bar)`, `T.mbarrier_arrive(bars[i])`.

    cta_id: a block of the cluster, at whose barrier of this name it arrives; None is the executing block.
    Errors: TL004 (no barrier, no block of the cluster), TL208 (`cta_id` without clusters), TL205.
    Source: upstream `T.mbarrier_arrive`; PTX `mbarrier.arrive`.
    """
    _arrive("T.mbarrier_arrive", mbarrier, cta_id)


@checked_call
def barrier_arrive(mbarrier: Any) -> None:
    """`T.mbarrier_arrive` by its short name.  Errors: TL004 (no barrier).  Source: upstream `T.barrier_arrive`."""
    _arrive("T.barrier_arrive", mbarrier)


@checked_call
def ptx_arrive_barrier(barrier_id: Any) -> None:
    """`T.mbarrier_arrive` by its PTX name.  Errors: TL004 (no barrier).  Source: upstream `T.ptx_arrive_barrier`."""
    _arrive("T.ptx_arrive_barrier", barrier_id)


@checked_call
def ptx_arrive_cluster_barrier(mbarrier: Any, cta_id: Any) -> None:
    """`T.mbarrier_arrive(mbarrier, cta_id)` by its PTX name.

    Errors: TL004 (no barrier, no block of the cluster), TL208 (no clusters), TL205.  Source: upstream.
    """
    _arrive("T.ptx_arrive_cluster_barrier", mbarrier, cta_id)


def _wait(called: str, mbarrier: Any, parity: Any) -> None:
    region = _barrier(mbarrier, called)
    phase = scalar(parity, called, "the parity")
    if isinstance(phase, Value):
        if phase.dtype == "bool":
            phase = phase.astype("int32")
        elif not is_integer(phase.dtype):
            dtype_mismatch(f"the parity of `{called}` is {phase.dtype}", "give 0 or 1")
        phase = phase.astype("int32") & 1
    else:
        phase = integer(int(phase) if isinstance(phase, bool) else phase, called, "parity") & 1
    builder().operation("barrier_wait", region, phase)


@checked_call
def mbarrier_wait_parity(mbarrier: Any, parity: Any) -> None:
    """Waits until the phase of an mbarrier with this parity is complete; the first phase has parity 0.

    parity: 0 or 1, a number or device value; only its lowest bit counts.
    Errors: TL004 (no barrier), TL205 (parity).  Source: upstream `T.mbarrier_wait_parity`; PTX
    `mbarrier.try_wait.parity`.
    """
    _wait("T.mbarrier_wait_parity", mbarrier, parity)


@checked_call
def barrier_wait(mbarrier: Any, parity: Any) -> None:
    """`T.mbarrier_wait_parity` by its short name.  Errors: TL004 (no barrier), TL205 (parity).  Source: upstream."""
    _wait("T.barrier_wait", mbarrier, parity)


def _bytes(called: str, tx: Any) -> Any:
    value = scalar(tx, called, "the number of bytes")
    if isinstance(value, Value):
        if not is_integer(value.dtype):
            dtype_mismatch(f"the number of bytes of `{called}` is {value.dtype}", "give an integer")
        return value.astype("int32")
    return integer(value, called, "tx", 0)


@checked_call
def mbarrier_expect_tx(mbarrier: Any, tx: Any) -> None:
    """The current phase of an mbarrier also waits for `tx` bytes of asynchronous copies.

    Errors: TL004 (no barrier, bytes), TL205.  Source: upstream `T.mbarrier_expect_tx`; PTX `mbarrier.expect_tx`.
    """
    region = _barrier(mbarrier, "T.mbarrier_expect_tx")
    builder().operation("barrier_expect_tx", region, _bytes("T.mbarrier_expect_tx", tx))


@checked_call
def mbarrier_arrive_expect_tx(mbarrier: Any, tx: Any) -> None:
    """`T.mbarrier_expect_tx` and then `T.mbarrier_arrive`.

    Errors: TL004 (no barrier, bytes), TL205.  Source: upstream; PTX `mbarrier.arrive.expect_tx`.
    """
    called = "T.mbarrier_arrive_expect_tx"
    region = _barrier(mbarrier, called)
    builder().operation("barrier_expect_tx", region, _bytes(called, tx))
    builder().operation("barrier_arrive", region)


@checked_call
def ptx_commit_group() -> None:
    """Closes a group of the asynchronous copies started since the last one.

    Errors: TL004.  Source: PTX `cp.async.commit_group`.
    """
    builder().operation("commit_group")


@checked_call
def ptx_wait_group(num: int) -> None:
    """Waits until at most `num` of the executing thread's groups of asynchronous copies are unfinished.

    A barrier must follow before other threads use what was copied.
    Errors: TL004 (number).  Source: PTX `cp.async.wait_group`.
    """
    builder().operation("wait_group", integer(num, "T.ptx_wait_group", "num", 0))


@checked_call
def cp_async_barrier_noinc(barrier: Any) -> None:
    """Every executing thread arrives at an mbarrier when the asynchronous copies have landed that it started so far.

    The arrivals count as those of `T.barrier_arrive`.
    Errors: TL004 (no barrier).  Source: upstream; PTX `cp.async.mbarrier.arrive.noinc`.
    """
    builder().operation("copies_arrive", _barrier(barrier, "T.cp_async_barrier_noinc"))


@checked_call
def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: int) -> None:
    """Starts an mbarrier anew, for this number of arrivals in each phase.

    One thread does; barriers are started by `T.alloc_barrier` already.
    Errors: TL004 (no barrier, count).  Source: upstream; PTX `mbarrier.init`.
    """
    called = "T.ptx_init_barrier_thread_count"
    count = integer(thread_count, called, "thread_count", 1, (1 << 20) - 1)
    builder().operation("barrier_init", _barrier(barrier_id, called), count)


@checked_call
def ptx_fence_barrier_init() -> None:
    """What started barriers is there for asynchronous copies and for other blocks of the cluster.

    Errors: TL004 outside a kernel.  Source: upstream; PTX `fence.mbarrier_init`.
    """
    builder().operation("fence_barrier_init")


@checked_call
def pdl_sync() -> None:
    """Waits for the kernel before in the stream.  Launches here are in the order of their stream already.

    Errors: TL004 outside a kernel.  Source: upstream; PTX `griddepcontrol.wait`.
    """
    builder()


@checked_call
def pdl_trigger() -> None:
    """Lets the next kernel of the stream begin.  Launches here are in the order of their stream: no effect.

    Errors: TL004 outside a kernel.  Source: upstream; PTX `griddepcontrol.launch_dependents`.
    """
    builder()


cp_async_commit_group, cp_async_wait_group = ptx_commit_group, ptx_wait_group
