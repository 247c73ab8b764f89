"""Hints, and fences and waits for what runs beside the threads.

Arguments are checked also where there is no effect.
"""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .operands import FRAGMENT, GLOBAL, LOCAL, box, described, flag, integer, require_memory
from .values import Buffer, Value, builder, number


def _registers(called: str, count: Any) -> int:
    builder()
    found = integer(count, called, "reg_count", 0, 256)
    if found % 8:
        bad_argument(f"`reg_count={found}` of `{called}`", "give a multiple of 8")
    return found


def _ask(called: str, count: Any, increase: bool) -> None:
    found = _registers(called, count)
    if found >= 24:  # what the device takes
        builder().operation("set_max_nreg", found, increase)


@checked_call
def set_max_nreg(reg_count: int, is_inc: int) -> None:
    """Asks for more or fewer registers per thread of the warp group: on sm_90a, in `T.ws`; no effect elsewhere.

    Errors: TL004 (count).  Source: PTX `setmaxnreg`.
    """
    increase = integer(int(is_inc) if isinstance(is_inc, bool) else is_inc, "T.set_max_nreg", "is_inc", 0, 1)
    _ask("T.set_max_nreg", reg_count, bool(increase))


@checked_call
def inc_max_nreg(reg_count: int) -> None:
    """`T.set_max_nreg(reg_count, 1)`.  Errors: TL004 (count).  Source: PTX `setmaxnreg.inc`."""
    _ask("T.inc_max_nreg", reg_count, True)


@checked_call
def dec_max_nreg(reg_count: int) -> None:
    """`T.set_max_nreg(reg_count, 0)`.  Errors: TL004 (count).  Source: PTX `setmaxnreg.dec`."""
    _ask("T.dec_max_nreg", reg_count, False)


@checked_call
def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """Registers that a producer warp group keeps; no effect here.  Errors: TL004 (count).  Source: upstream."""
    _registers("T.annotate_producer_reg_dealloc", reg_count)


@checked_call
def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """Registers that a consumer warp group gets; no effect here.  Errors: TL004 (count).  Source: upstream."""
    _registers("T.annotate_consumer_reg_alloc", reg_count)


@checked_call
def no_set_max_nreg() -> None:
    """Leaves the registers of warp groups alone; no effect here.  Errors: TL004 outside a kernel.  Source: upstream."""
    builder()


@checked_call
def disable_warp_group_reg_alloc() -> None:
    """`T.no_set_max_nreg` by its other name.  Errors: TL004 outside a kernel.  Source: upstream."""
    builder()


@checked_call
def fence_proxy_async() -> None:
    """Orders ordinary shared stores before asynchronous reads of them; no effect before sm_90.

    Errors: TL004 outside a kernel.  Source: PTX `fence.proxy.async`.
    """
    builder().operation("fence_proxy_async")


@checked_call
def tma_store_arrive() -> None:
    """Closes a group of stores; each `T.tma_copy` into global memory is a group of its own already.

    Errors: TL004 outside a kernel.  Source: upstream; PTX `cp.async.bulk.commit_group`.
    """
    builder().operation("store_arrive")


@checked_call
def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Waits until at most `count` of the latest `T.tma_copy` into global memory have not read their tiles yet.

    The thread that copies waits, so a barrier must stand before others write the tile again; the compiler puts one.
    read: with False it waits until the copies are over, and the array holds the elements.
    Errors: TL004 (count).  Source: upstream; PTX `cp.async.bulk.wait_group`.
    """
    pending = integer(count, "T.tma_store_wait", "count", 0)
    builder().operation("store_wait", pending, flag(read, "T.tma_store_wait", "read"))


@checked_call
def wait_wgmma(id: int) -> None:
    """Waits until at most `id` calls of `T.wgmma_gemm` are still running.

    Errors: TL004 (number).  Source: upstream; PTX `wgmma.wait_group`.
    """
    builder().operation("wait_wgmma", integer(id, "T.wait_wgmma", "id", 0, 7))


@checked_call
def warpgroup_arrive() -> None:
    """Begins a batch of `T.wgmma_gemm`; no effect here.  Errors: TL004 outside a kernel.  Source: PTX `wgmma.fence`."""
    builder()


@checked_call
def warpgroup_commit_batch() -> None:
    """Closes a batch of `T.wgmma_gemm`; no effect here.

    Errors: TL004 outside a kernel.  Source: PTX `wgmma.commit_group`.
    """
    builder()


@checked_call
def warpgroup_wait(num_mma: int) -> None:
    """`T.wait_wgmma` by its PTX name: every `T.wgmma_gemm` is a batch.

    Errors: TL004 (number).  Source: PTX `wgmma.wait_group`.
    """
    builder().operation("wait_wgmma", integer(num_mma, "T.warpgroup_wait", "num_mma", 0, 7))


@checked_call
def warpgroup_fence_operand(buffer_or_ptr: Any, offset: Any = 0, num_regs: Any = None, dtype: Any = None) -> None:
    """Keeps the device compiler from moving uses of an accumulator; no effect here.

    Errors: TL004 (no fragment).  Source: upstream.
    """
    builder()
    region = box(buffer_or_ptr, "T.warpgroup_fence_operand", "its operand")
    require_memory(region, (FRAGMENT, LOCAL), "T.warpgroup_fence_operand", "its operand", "give the accumulator")


def _global_buffers(called: str, buffers: Any) -> None:
    for buffer in buffers:
        if not isinstance(buffer, Buffer) or buffer.memory != GLOBAL:
            bad_argument(
                f"`{called}` takes parameters of the kernel, {described(buffer)} given", "give a `T.Tensor` parameter"
            )


@checked_call
def annotate_l2_hit_ratio(l2_hit_ratio_map: dict) -> None:
    """How much of a tensor should stay in the second-level cache: `{A: 0.8}`; no effect on results.

    Errors: TL004 (no dict, no parameter, a ratio outside 0..1).  Source: upstream `tilelang/language/annotations.py`.
    """
    called = "T.annotate_l2_hit_ratio"
    if not isinstance(l2_hit_ratio_map, dict):
        bad_argument(f"`{called}` takes a dict, {described(l2_hit_ratio_map)} given", "write `{A: 0.8}`")
    _global_buffers(called, l2_hit_ratio_map)
    for ratio in l2_hit_ratio_map.values():
        found = number(ratio)
        if found is None or isinstance(found, Value) or not 0 <= found <= 1:
            bad_argument(f"a ratio of `{called}` is {described(ratio)}", "give a number in 0..1")


@checked_call
def annotate_restrict_buffers(*buffers: Any) -> None:
    """These parameters may overlap; no effect here, overlapping arguments are always allowed.

    Errors: TL004 (no parameter).  Source: upstream `tilelang/language/annotations.py`.
    """
    _global_buffers("T.annotate_restrict_buffers", buffers)


@checked_call
def annotate_min_blocks_per_sm(n: int) -> None:
    """How many blocks should fit on a multiprocessor; no effect on results.

    Errors: TL004 (number).  Source: `__launch_bounds__`.
    """
    integer(n, "T.annotate_min_blocks_per_sm", "n", 1)


@checked_call
def annotate_compile_flags(flags: Any) -> None:
    """Flags for the device compiler; no effect on results.

    Errors: TL004 (no text).  Source: upstream `T.annotate_compile_flags`.
    """
    given = [flags] if isinstance(flags, str) else flags
    if not isinstance(given, (list, tuple)) or not all(isinstance(flag, str) for flag in given):
        bad_argument(f"`T.annotate_compile_flags` takes text, {described(flags)} given", 'write `["-O3"]`')


@checked_call
def annotate_pass_configs(configs: Any) -> None:
    """Options of upstream's passes; no effect on results.

    Errors: TL004 (no dict).  Source: upstream `T.annotate_pass_configs`.
    """
    if not isinstance(configs, dict):
        bad_argument(f"`T.annotate_pass_configs` takes a dict, {described(configs)} given", "write `{name: value}`")
