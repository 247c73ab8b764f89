"""Clusters of blocks (sm_90): rank, barrier, and copies between the shared memories of a cluster."""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .copies import block_mask, check_inside, checked_options, copy_barrier, copy_boxes
from .launch import cluster_size
from .operands import GLOBAL, SHARED, dtype_mismatch, integer, launch, scalar, unavailable
from .promotion import is_integer
from .values import Value, builder


@checked_call
def block_rank_in_cluster() -> Any:
    """int32: the number of the executing block in its cluster, x fastest; 0 in clusters of one block.

    Errors: TL208 outside a launch.  Source: upstream `T.block_rank_in_cluster`; PTX `%cluster_ctarank`.
    """
    found = launch()
    rank: Any = None
    stride = 1
    for (var, _), extent in zip(found.blocks, found.cluster):
        if extent > 1:
            part = Value(var, "int32") % extent
            rank = part if rank is None else rank + part * stride
            stride *= extent
    return 0 if rank is None else rank


@checked_call
def cluster_arrive() -> None:
    """The executing threads arrive at the barrier of the cluster; `T.cluster_wait` must follow, by the same threads.

    Errors: TL004 outside a kernel.  Source: upstream `T.cluster_arrive`; PTX `barrier.cluster.arrive`.
    """
    builder().operation("cluster_arrive")


@checked_call
def cluster_wait() -> None:
    """Waits until all threads of the cluster have arrived; what they wrote before is seen by all after.

    Errors: TL004 outside a kernel.  Source: upstream `T.cluster_wait`; PTX `barrier.cluster.wait`.
    """
    builder().operation("cluster_wait")


@checked_call
def cluster_sync() -> None:
    """`T.cluster_arrive`, then `T.cluster_wait`: a barrier of all threads of all blocks of the cluster.

    Errors: TL004 outside a kernel.  Source: upstream `T.cluster_sync`.
    """
    builder().operation("cluster_arrive")
    builder().operation("cluster_wait")


def block_of_cluster(called: str, block: Any, name: str) -> Any:
    """The number of a block of the cluster, int32: a constant that is one, or a device value."""
    blocks = cluster_size(called)
    found = scalar(block, called, f"`{name}`")
    if isinstance(found, Value):
        if not is_integer(found.dtype):
            dtype_mismatch(f"`{name}` of `{called}` is {found.dtype}", "give an integer")
        return found.astype("int32")
    number = integer(found, called, name, 0)
    if number >= blocks:
        bad_argument(f"`{name}={number}` of `{called}`; a cluster has {blocks} blocks", f"give 0 to {blocks - 1}")
    return number


@checked_call
def copy_cluster(
    src: Any,
    dst: Any,
    *,
    dst_block: Any = None,
    cluster_mask: int | None = None,
    remote_barrier: Any = None,
    eviction_policy: str | None = None,
    coalesced_width: int | None = None,
    annotations: dict | None = None,
    loop_layout: Any = None,
) -> None:
    """A copy that reaches other blocks of the cluster (sm_90).

    cluster_mask: from global to shared memory, one load for all blocks that the bits name.  All threads of all blocks
    of the cluster call it; it is complete when it returns.
    dst_block: from the executing block's shared memory to the same buffer `dst` of another block.  With
    remote_barrier, of the target's, it runs on: the target waits for a phase that counts one arrival for each copy.
    Without one, `T.cluster_sync` must stand between it and the target's use.
    The other options are hints for the device.
    Errors: TL004 (both or none given, no barrier, a block outside the cluster, option), TL208 (no clusters), TL302
    (other memories, before sm_90), TL204 (shapes), TL205 (dtypes).  Source: upstream `T.copy_cluster`.
    """
    called = "T.copy_cluster"
    checked_options(called, annotations, eviction_policy=eviction_policy, coalesced_width=coalesced_width)
    if (dst_block is None) == (cluster_mask is None):
        bad_argument(f"`{called}` takes `dst_block` or `cluster_mask`", "give one of the two")
    boxes = copy_boxes(src, dst, called)
    memories = None if boxes is None else (boxes[0].memory, boxes[1].memory)
    wanted = (GLOBAL, SHARED) if dst_block is None else (SHARED, SHARED)
    if boxes is None or memories != wanted:
        if dst_block is None:
            unavailable(
                f"`{called}` with `cluster_mask` copies tiles from global to shared memory",
                "use `T.copy` in each block, or `dst_block` for a tile of shared memory",
            )
        unavailable(
            f"`{called}` with `dst_block` copies tiles from shared to shared memory",
            "bring the tile into shared memory first, with `T.copy`",
        )
    source, target = boxes
    for one in boxes:
        check_inside(one, called)
    if source.dtype != target.dtype:
        dtype_mismatch(f"`{called}` from {source.dtype} to {target.dtype}", "convert with `T.copy` first")
    if dst_block is None:
        if remote_barrier is not None:
            bad_argument(f"`{called}` with `cluster_mask` waits for itself", "leave `remote_barrier` out")
        builder().operation("copy_to_blocks", source, target, block_mask(called, cluster_mask))
        return
    block = block_of_cluster(called, dst_block, "dst_block")
    barrier = None if remote_barrier is None else copy_barrier(called, remote_barrier, "remote_barrier")
    builder().operation("copy_to_block", source, target, block, barrier)
