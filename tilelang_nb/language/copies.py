"""Moving tiles: `T.copy`, `T.async_copy`, `T.tma_copy`, `T.fill`, `T.clear`, `T.transpose`.

An element as an operand of a copy is an origin: `T.copy(A[i, j], tile)` takes its extent from the other side.
"""

from __future__ import annotations

from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import tidy
from .calling import bad_argument, checked_call
from .launch import WARP, cluster_size, thread_count
from .operands import (
    BARRIER,
    GLOBAL,
    SHARED,
    box,
    boxed,
    choice,
    content,
    described,
    dtype_mismatch,
    element,
    flag,
    integer,
    is_element,
    place,
    same_extents,
    shape_mismatch,
    shown,
    sized,
    squeezed,
    stored,
    unavailable,
    whole,
)
from .promotion import is_float, is_integer
from .values import Buffer, Region, Value, builder

_POLICIES = ("evict_normal", "evict_first", "evict_last")
_INSTRUCTIONS = ("tma", "cp_async", "sync")


def copy_boxes(source: Any, target: Any, called: str) -> tuple[Region, Region] | None:
    """The boxes of both sides of a copy, of the same extents up to 1; None where both are single elements.

    TL204 where the shapes differ, TL004 for what is no buffer.
    """
    source, target = content(source), content(target)
    if isinstance(source, Buffer) and isinstance(target, Buffer):
        if not same_extents(source.shape, target.shape):
            shape_mismatch(
                f"`{called}` from {sized(source)}, to {sized(target)}",
                _way_out(source, target),
            )
        return whole(source), whole(target)
    if is_element(source) and is_element(target):
        return None
    if is_element(source):
        target = box(target, called, "its target")
        return _origin(source, target, called), target
    if is_element(target):
        source = box(source, called, "its source")
        return source, _origin(target, source, called)
    source, target = box(source, called, "its source"), box(target, called, "its target")
    if not same_extents(squeezed(source.extent), squeezed(target.extent)):
        shape_mismatch(
            f"`{called}` from {sized(source)}, to {sized(target)}",
            "make the extents equal, or give one side as an origin: `A[i, j]`",
        )
    return source, target


def _way_out(source: Buffer, target: Buffer) -> str:
    """An origin in global memory, where a tile may hang over the edge, or in the side that holds the other."""
    sides = [(x, y) for x, y in ((source, target), (target, source)) if len(x.shape) >= len(y.shape)]
    holding = [x for x, y in sides if x.memory == GLOBAL != y.memory]
    holding += [x for x, y in sides if all(map(_at_most, reversed(y.shape), reversed(x.shape)))]
    if not holding:
        return "make the shapes equal"
    return f"make the shapes equal, or name a region: `{holding[0].name}[{', '.join(['0'] * len(holding[0].shape))}]`"


def _at_most(extent: Any, limit: Any) -> bool:
    """What is known only when the kernel runs may fit."""
    return not (isinstance(extent, int) and isinstance(limit, int)) or extent <= limit


def _origin(value: Value, other: Region, called: str) -> Region:
    """The box at an origin that has the extents of the other side, aligned at the last dimension."""
    buffer, index = element(value)
    extents = other.extent if len(other.extent) <= len(index) else squeezed(other.extent)
    if len(extents) > len(index):
        shape_mismatch(
            f"`{called}` between an origin in `{buffer.name}`, {len(index)} dimension(s), and {sized(other)}",
            f"give the region of `{buffer.name}` with slices",
        )
    return boxed(buffer, index, (1,) * (len(index) - len(extents)) + tuple(extents))


def check_inside(side: Region, called: str) -> None:
    """TL202 where an origin with the extents of the other side leaves its tile; over the edge of global memory nothing
    is read or written.
    """
    if side.memory == GLOBAL:
        return
    for begin, extent, size in zip(side.begin, side.extent, side.buffer.shape):
        if isinstance(begin, int) and isinstance(extent, int) and isinstance(size, int) and begin + extent > size:
            taken, shape = f"{begin}:{begin + extent} of `{side.buffer.name}`", shown(side.buffer.shape)
            problem = f"`{called}` takes {taken}, which has the shape {shape}"
            remedy = "copy fewer elements, with slices on both sides" if begin else "make the tile larger"
            raise Refusal(say.IndexOutOfBounds(problem=problem, remedy=remedy))


def checked_options(called: str, annotations: Any, **options: Any) -> dict[str, Any]:
    """The options of a copy, where `annotations` may stand for them.

    TL004: `annotations` is no dict; a width that is no positive integer, a policy that there is not.
    """
    if annotations is not None and not isinstance(annotations, dict):
        bad_argument(f"`annotations` of `{called}` is {described(annotations)}", "give a dict, or leave it out")
    found = options | {name: value for name, value in (annotations or {}).items() if name in options}
    if found.get("coalesced_width") is not None:
        found["coalesced_width"] = integer(found["coalesced_width"], called, "coalesced_width", 1)
    policy = found.get("eviction_policy")
    if policy is not None and not isinstance(policy, int):
        choice(policy, called, "eviction_policy", _POLICIES)
    return found


def _copy(name: str, called: str, source: Any, target: Any, *options: Any) -> None:
    source, target = content(source), content(target)
    boxes = copy_boxes(source, target, called)
    if boxes is None:
        buffer, index = element(target)
        buffer[index] = source
        return
    read, written = boxes
    for side in boxes:
        if side.memory == BARRIER:
            bad_argument(f"`{called}` of the barrier `{side.buffer.name}`", "barriers are arrived at and waited for")
        check_inside(side, called)
    if is_float(read.dtype) and is_integer(written.dtype):
        builder().warn(say.ImplicitFloatToInteger(source=read.dtype, buffer=written.buffer.name, dtype=written.dtype))
    builder().operation(name, read, written, *options)


@checked_call
def copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: dict | None = None,
    loop_layout: Any = None,
) -> None:
    """Copies a tile, converting to the target's dtype: `T.copy(A[by * BM, ko * BK], A_shared)`.

    src, dst: buffers, regions, or elements as origins; any memory to any memory.
    Whole buffers must have equal shapes; regions
    equal extents, where extents of 1 do not count; an origin takes the extents of the other side, aligned at the last
    dimension.
    Two elements are one assignment.  Over the edge of a global buffer loads give 0 (or the annotated safe value),
    stores are skipped.
    coalesced_width: the vector width to aim for, in elements.  The other options are hints for the device.
    Errors: TL204 (shapes, both named), TL004 (operand, option); warning TL212 (float to integer).
    Source: upstream `tilelang/language/copy_op.py`.
    """
    called = "T.copy"
    options = checked_options(
        called,
        annotations,
        coalesced_width=coalesced_width,
        disable_tma=disable_tma,
        eviction_policy=eviction_policy,
        prefer_instruction=prefer_instruction,
    )
    if options["prefer_instruction"] is not None:
        choice(options["prefer_instruction"], called, "prefer_instruction", _INSTRUCTIONS)
    no_tma = flag(options["disable_tma"], called, "disable_tma")
    _copy("copy", called, src, dst, options["coalesced_width"], no_tma)


@checked_call
def async_copy(
    src: Any, dst: Any, *, coalesced_width: int | None = None, annotations: dict | None = None, loop_layout: Any = None
) -> None:
    """Starts a copy from global to shared memory; `T.ptx_wait_group(0)` and a barrier must stand before its use.

    Operands as for `T.copy`; each call is a group of its own for `T.ptx_wait_group`.
    Errors: TL204 (shapes), TL004 (operand, memory, option); warning TL212.
    Source: upstream `tilelang/language/copy_op.py`.
    """
    called = "T.async_copy"
    width = checked_options(called, annotations, coalesced_width=coalesced_width)["coalesced_width"]
    boxes = copy_boxes(src, dst, called)
    if boxes is not None and (boxes[0].memory != GLOBAL or boxes[1].memory != SHARED):
        bad_argument(f"`{called}` copies from global to shared memory", "use `T.copy` for other memories")
    _copy("async_copy", called, src, dst, width)


@checked_call
def tma_copy(
    src: Any,
    dst: Any,
    *,
    barrier: Any = None,
    cluster_mask: int | None = None,
    leader_scope_threads: int | None = None,
    eviction_policy: str | None = None,
    annotations: dict | None = None,
) -> None:
    """A tensor-memory-accelerator copy (sm_90), started once by the threads around it: by the first of those that get
    there, be it under `if tx == 0:`.

    From global to shared memory: the bytes of the tile are announced at `barrier`, and counted there when they arrive.
    Whoever reads the tile arrives at the barrier (`T.barrier_arrive`) or lets others do so, and waits for its phase
    (`T.mbarrier_wait_parity`).  Elements over the edge of the array are 0.
    From shared to global memory: `T.tma_store_wait` waits for it, before the tile is written again and before the
    kernel ends.  What these threads wrote into the tile, or know from a barrier to be written, is visible to the copy.
    Elements over the edge of the array are left out.
    The tile: whole rows of one of two dimensions, or of one of several: `tiles[i, :, :]`.
    leader_scope_threads: not one copy but one for each so many neighbouring threads, such as 32 for each warp.
    cluster_mask: bits of the blocks of the cluster whose tiles one load fills: the first of them starts it, the others
    only announce the bytes at their barriers.  A block that is not named loads for itself.  All blocks must be done
    with the tile before: `T.cluster_sync`, or `T.mbarrier_arrive(barrier, block)` from each.
    Errors: TL302 (other memories, an architecture before sm_90, a tile or array that no bulk copy
    moves), TL204 (shapes), TL205 (dtypes), TL004 (operand).  Source: upstream `tilelang/language/copy_op.py`.
    """
    called = "T.tma_copy"
    options = checked_options(called, annotations, cluster_mask=cluster_mask, eviction_policy=eviction_policy)
    boxes = copy_boxes(src, dst, called)
    memories = None if boxes is None else (boxes[0].memory, boxes[1].memory)
    if boxes is None or memories not in ((GLOBAL, SHARED), (SHARED, GLOBAL)):
        unavailable(f"`{called}` moves tiles between global and shared memory", "use `T.copy` for other memories")
    region = None
    if memories == (GLOBAL, SHARED):
        region = copy_barrier(called, barrier)
    elif barrier is not None:
        bad_argument(f"`{called}` into global memory takes no barrier", "wait for it with `T.tma_store_wait()`")
    elif options["cluster_mask"] is not None:
        bad_argument(f"`{called}` into global memory takes no `cluster_mask`", "leave it out")
    mask = block_mask(called, options["cluster_mask"])
    source, target = boxes
    for side in boxes:
        check_inside(side, called)
    if source.dtype != target.dtype:
        dtype_mismatch(f"`{called}` from {source.dtype} to {target.dtype}", "use `T.copy`, which converts")
    builder().operation("tma_copy", source, target, region, _scope(called, leader_scope_threads), mask)


def block_mask(called: str, mask: Any) -> int | None:
    """The bits of the blocks of a cluster that one copy fills; None for the own block alone.

    TL004: no bits of blocks of the cluster.  TL208: the launch has no clusters.
    """
    if mask is None:
        return None
    blocks = cluster_size(called)
    found = integer(mask, called, "cluster_mask", 1)
    if found >= 1 << blocks:
        bad_argument(
            f"`cluster_mask={found:#b}` of `{called}` names blocks beyond the {blocks} of a cluster",
            f"give bits of the blocks 0 to {blocks - 1}",
        )
    return found


def copy_barrier(called: str, barrier: Any, name: str = "barrier") -> Region:
    """The barrier that counts the bytes of a copy."""
    if barrier is None:
        bad_argument(
            f"`{called}` into shared memory needs a barrier", "give one of `T.alloc_barrier(count)`: `barrier=bar`"
        )
    region = place(barrier, called, "its barrier")
    if region.memory != BARRIER:
        bad_argument(f"`{name}` of `{called}` is {described(barrier)}", "give one of `T.alloc_barrier(count)`")
    return region


def _scope(called: str, threads: Any) -> int | None:
    """How many neighbouring threads start one copy; None for all."""
    if threads is None:
        return None
    count = integer(threads, called, "leader_scope_threads", 1)
    if count % WARP:
        bad_argument(f"`leader_scope_threads={count}` of `{called}`", f"give a multiple of {WARP}: whole warps")
    return count if count < thread_count() else None


@checked_call
def fill(buffer: Any, value: Any, annotations: dict | None = None) -> None:
    """Sets every element of a buffer or region to `value`.

    buffer: a buffer, region or element in any memory.  value: a number or device value, converted to the dtype.
    Errors: TL135 (a constant that does not fit), TL140 (no number), TL004 (no buffer; another start than the identity
    for a
    reducer); warning TL212 (float to integer).  Source: upstream `tilelang/language/fill_op.py`.
    """
    _fill("T.fill", buffer, value)


def _fill(called: str, buffer: Any, value: Any) -> None:
    region = box(buffer, called, "its target")
    if region.memory == BARRIER:
        bad_argument(f"`{called}` of the barrier `{region.buffer.name}`", "barriers are arrived at and waited for")
    state = getattr(region.buffer, "reducer", None)
    if state is not None and state.operation == "sum" and not (isinstance(value, (int, float)) and value == 0):
        bad_argument(
            f"every thread would add {described(value)} to the sum in `{region.buffer.name}`",
            f"give the start once: `T.reducer_init({region.buffer.name}, value)`",
        )
    builder().operation("fill", region, stored(value, region.buffer.name, region.dtype))


@checked_call
def clear(buffer: Any, annotations: dict | None = None) -> None:
    """Sets every element of a buffer or region to 0.

    Errors: TL004 (no buffer).  Source: upstream `tilelang/language/fill_op.py`.
    """
    _fill("T.clear", buffer, 0)


def _spelt_out(origin: Value | None, source: Region) -> str:
    """The region that begins at an element, where only the element is given; "" where a region is."""
    if origin is None or len(origin.origin[1]) < 2:
        return ""
    buffer, index = origin.origin
    extents = (1,) * (len(index) - 2) + tuple(reversed(source.extent[-2:]))
    begins = [tidy(str(i.use())) if isinstance(i, Value) else str(i) for i in index]
    parts = [
        begin
        if extent == 1
        else f"{begin}:{begin} + {extent}"
        if not begin.isdigit()
        else f"{begin}:{int(begin) + extent}"
        for begin, extent in zip(begins, extents)
    ]
    return f": `{buffer.name}[{', '.join(parts)}]`"


@checked_call
def transpose(src: Any, dst: Any, annotations: dict | None = None) -> None:
    """`dst[j, i] = src[i, j]` for tiles of two dimensions (leading extents of 1 do not count), converting the dtype.

    src, dst: buffers or regions in any memory, not overlapping.
    Errors: TL204 (shapes), TL004 (operand); warning TL212 (float to integer).  Source: upstream `T.transpose`.
    """
    called = "T.transpose"
    origin = dst if is_element(dst) else None
    source, target = box(src, called, "its source"), box(dst, called, "its target")
    for side in (source, target):
        if len(side.extent) < 2 or any(not isinstance(n, int) or n != 1 for n in side.extent[:-2]):
            shape_mismatch(
                f"`{called}` of {described(side)}, shape {shown(side.extent)}", "give tiles of two dimensions"
            )
    if not same_extents(source.extent[-2:], tuple(reversed(target.extent[-2:]))):
        shape_mismatch(
            f"`{called}` from {sized(source)}, to {sized(target)}",
            f"give a target of shape {shown(tuple(reversed(source.extent[-2:])))}" + _spelt_out(origin, source),
        )
    if is_float(source.dtype) and is_integer(target.dtype):
        builder().warn(say.ImplicitFloatToInteger(source=source.dtype, buffer=target.buffer.name, dtype=target.dtype))
    builder().operation("transpose", source, target)
