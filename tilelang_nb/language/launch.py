"""Launches: `with T.Kernel(...)`, warp groups, and the indices of the executing block and thread.

`Kernel`, `ClusterKernel` and `ws` are specifications that the front end interprets; only it opens scopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import number_text, with_article
from .building import is_building, on_host
from .calling import bad_argument, checked_call
from .operands import described, integer, launch, unavailable
from .promotion import is_integer
from .values import Value, number, simplified

LIMIT_OF_THREADS = 1024
LIMITS_OF_BLOCK = (1024, 1024, 64)
LARGEST_CLUSTER = 8
WARP_GROUP = 128
WARP = 32


def _bad_launch(problem: str, remedy: str) -> NoReturn:
    raise Refusal(say.LaunchConfiguration(problem=problem, remedy=remedy))


@dataclass(frozen=True, init=False)
class Kernel:
    """`with T.Kernel(*blocks, threads=128) as (bx, by)`: one launch; the body runs in every thread of every block.

    blocks: up to 3 extents of the grid (x, y, z), integers or device values; one block without any, 0 do nothing.
    threads: threads of a block, an integer or up to 3 extents (x, y, z); None is 128.  Their product is 1 to 1024.
    prelude: CUDA text put before the kernel.  cluster_dims: blocks of a cluster, up to 3 extents that divide those of
    the grid, at most 8 blocks; None is 1.
    Gives the block index, or a tuple of them for several extents.
    Errors: TL208 (thread count, grid, cluster), TL004 (keywords), TL302 (prelude; clusters before sm_90).
    Source: upstream `tilelang/language/kernel.py`.
    """

    grid: tuple[Any, ...]
    threads: tuple[int, ...]
    cluster: tuple[int, int, int]

    @checked_call
    def __init__(self, *blocks: Any, threads: Any = None, prelude: str | None = None, cluster_dims: Any = None):
        object.__setattr__(self, "grid", _grid(blocks))
        object.__setattr__(self, "threads", _threads(threads))
        if prelude:
            unavailable("a launch with a CUDA prelude", "write the function as a macro: `@T.macro`")
        object.__setattr__(self, "cluster", _cluster(cluster_dims, self.grid))

    def __enter__(self) -> NoReturn:
        """The front end opens launches itself: Python comes here only where a kernel runs as plain Python."""
        what, remedy = "`T.Kernel` in a function that is no kernel", "put `@T.prim_func` above its `def`"
        refusal = Refusal(say.LaunchConfiguration(problem=what, remedy=remedy))
        raise refusal if is_building() else on_host(refusal)

    def __exit__(self, *_: object) -> None:
        """Never reached; `with` asks for it first."""

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        product = 1
        for extent in self.threads:
            product *= extent
        return product


def _grid(blocks: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(blocks) == 1 and isinstance(blocks[0], (tuple, list)):
        blocks = tuple(blocks[0])
    blocks = blocks or (1,)
    if len(blocks) > 3:
        _bad_launch(
            f"a grid of {len(blocks)} dimensions; a grid has 1 to 3", "write `T.Kernel(T.ceildiv(N, 128), threads=128)`"
        )
    found = []
    for at, extent in enumerate(blocks):
        value = simplified(extent)
        if isinstance(value, Value):
            if not is_integer(value.dtype):
                _bad_launch(f"a grid extent is {with_article(value.dtype)} value", "round it up: `T.ceildiv(n, block)`")
        else:
            value = number(value)
            if isinstance(value, float):
                _bad_launch(f"a grid extent is the float {value}", "round it up: `T.ceildiv(n, block)`")
            if isinstance(value, bool) or not isinstance(value, int):
                _bad_launch(f"a grid extent is {described(extent)}", "give integers")
            limit = 2**31 - 1 if at == 0 else 65535
            if not 0 <= value <= limit:
                problem = f"a grid extent of {number_text(value)} in {'xyz'[at]}; it has 0 to {limit}"
                _bad_launch(problem, f"use 0..{limit}")
        found.append(value)
    return tuple(found)


def _threads(threads: Any) -> tuple[int, ...]:
    given = (128,) if threads is None else tuple(threads) if isinstance(threads, (tuple, list)) else (threads,)
    if not 1 <= len(given) <= 3:
        _bad_launch(
            f"a block of {len(given)} dimensions; a block has 1 to 3", "write `threads=128` or `threads=(32, 4)`"
        )
    product, found = 1, []
    for at, extent in enumerate(given):
        value = simplified(extent)
        if isinstance(value, Value):
            _bad_launch("a thread count known only when the kernel runs", "give a constant, such as `threads=128`")
        value = number(value)
        if isinstance(value, bool) or not isinstance(value, int):
            _bad_launch(f"`threads` is {described(extent)}", "give an integer, such as `threads=128`")
        if not 1 <= value <= LIMITS_OF_BLOCK[at]:
            limit = LIMITS_OF_BLOCK[at]
            where = "" if len(given) == 1 else f" in {'xyz'[at]}"
            given_threads = f"`threads={value}`" if abs(value) < 10**9 else f"{number_text(value)} as `threads`"
            _bad_launch(f"{given_threads}{where}; a block has 1 to {limit} threads{where}", "choose 128")
        product *= value
        found.append(value)
    if product > LIMIT_OF_THREADS:
        _bad_launch(
            f"`threads={tuple(found)}` makes {product} threads; a block has 1 to {LIMIT_OF_THREADS}", "choose 128"
        )
    return tuple(found)


def _cluster(cluster_dims: Any, grid: tuple[Any, ...], called: str = "T.Kernel") -> tuple[int, int, int]:
    """Blocks of a cluster along x, y and z."""
    if cluster_dims is None:
        return 1, 1, 1
    given = tuple(cluster_dims) if isinstance(cluster_dims, (tuple, list)) else (cluster_dims,)
    if not 1 <= len(given) <= 3:
        _bad_launch(f"a cluster of {len(given)} dimensions; a cluster has 1 to 3", "write `cluster_dims=(2, 1, 1)`")
    found = [integer(extent, called, "cluster_dims", 1) for extent in given]
    x, y, z = (*found, 1, 1)[:3]
    if x * y * z > LARGEST_CLUSTER:
        _bad_launch(
            f"a cluster of {x * y * z} blocks; every device takes at most {LARGEST_CLUSTER}",
            "give `cluster_dims` smaller extents",
        )
    for axis, blocks, extent in zip("xyz", (*grid, 1, 1), (x, y, z)):
        if isinstance(blocks, int) and blocks % extent:
            _bad_launch(
                f"{blocks} blocks along {axis} are no whole clusters of {extent}",
                f"round the grid up to a multiple of {extent}, or give `cluster_dims` another extent in {axis}",
            )
    return x, y, z


@checked_call
def ClusterKernel(*blocks: Any, cluster_dims: Any, threads: Any = None, prelude: str | None = None) -> Kernel:
    """`with T.ClusterKernel(*blocks, cluster_dims=...)`: a launch in clusters of blocks (sm_90).

    cluster_dims: blocks of a cluster along x, y and z, at most 8 together; the extents divide those of the grid.  The
    blocks of a cluster run at the same time: `T.block_rank_in_cluster`, `T.cluster_sync`, `T.copy_cluster`.
    Errors: as `T.Kernel` (TL208, TL004, TL302).
    Source: upstream `tilelang/cuda/language/cluster.py`.
    """
    _cluster(cluster_dims, _grid(blocks), "T.ClusterKernel")
    return Kernel(*blocks, threads=threads, prelude=prelude, cluster_dims=cluster_dims)


@dataclass(frozen=True, init=False)
class ws:
    """`with T.ws(0)`, `with T.ws(1, 2)`: the statements run in these warp groups only; group g is threads 128g to 128g
    + 127.

    groups: compile-time integers from 0; what lies beyond the block selects nothing.
    Errors: TL004 (none given, negative, known only at run time), TL208 outside a launch.
    Source: upstream `tilelang/cuda/language/warpgroup.py`.
    """

    groups: tuple[int, ...]

    @checked_call
    def __init__(self, *warp_group_idx: Any):
        if not warp_group_idx:
            bad_argument("`T.ws` needs the warp groups", "write `with T.ws(0):`")
        found = [integer(group, "T.ws", "warp_group_idx", 0) for group in warp_group_idx]
        object.__setattr__(self, "groups", tuple(dict.fromkeys(found)))


WarpSpecialize = ws


def thread_index() -> Value:
    """The index of the executing thread in its block, x fastest; TL208 outside a launch."""
    axes = launch().threads
    linear, stride = Value(axes[0][0], "int32"), int(axes[0][1])
    for var, extent in axes[1:]:
        linear = linear + Value(var, "int32") * stride
        stride *= int(extent)
    return linear


def thread_count() -> int:
    """Threads of a block; TL208 outside a launch."""
    product = 1
    for _, extent in launch().threads:
        product *= int(extent)
    return product


def _binding(axes: Any, dim: Any, called: str) -> Any:
    at = integer(dim, called, "dim", 0, 2)
    return Value(axes[at][0], "int32") if at < len(axes) else 0


def _extent(axes: Any, dim: Any, called: str) -> Any:
    at = integer(dim, called, "dim", 0, 2)
    if at >= len(axes):
        return 1
    extent = axes[at][1]
    return extent if isinstance(extent, (int, Value)) else simplified(Value(extent, "int32"))


@checked_call
def get_thread_binding(dim: int = 0) -> Any:
    """The index of the executing thread in its block along x (0), y (1) or z (2); int32, 0 for a dimension not given.

    Errors: TL208 outside a launch, TL004 (dim).  Source: upstream `tilelang/language/kernel.py`; CUDA's `threadIdx`.
    """
    return _binding(launch().threads, dim, "T.get_thread_binding")


@checked_call
def get_thread_bindings() -> tuple[Any, ...]:
    """The thread indices along x, y and z.  Errors: TL208 outside a launch.  Source: as `T.get_thread_binding`."""
    axes = launch().threads
    return tuple([_binding(axes, dim, "T.get_thread_bindings") for dim in range(3)])


@checked_call
def get_block_binding(dim: int = 0) -> Any:
    """The index of the executing block along x (0), y (1) or z (2); int32, 0 for a dimension not given.

    Errors: TL208 outside a launch, TL004 (dim).  Source: upstream `tilelang/language/kernel.py`; CUDA's `blockIdx`.
    """
    return _binding(launch().blocks, dim, "T.get_block_binding")


@checked_call
def get_block_bindings() -> tuple[Any, ...]:
    """The block indices, one per dimension of the grid.

    Errors: TL208 outside a launch.  Source: as `T.get_block_binding`.
    """
    return tuple([Value(var, "int32") for var, _ in launch().blocks])


@checked_call
def get_thread_extent(dim: int = 0) -> Any:
    """Threads of a block along x (0), y (1) or z (2); a Python int.

    Errors: TL208 outside a launch, TL004 (dim).  Source: CUDA's `blockDim`.
    """
    return _extent(launch().threads, dim, "T.get_thread_extent")


@checked_call
def get_thread_extents() -> tuple[Any, ...]:
    """Threads of a block along x, y and z.  Errors: TL208 outside a launch.  Source: CUDA's `blockDim`."""
    return tuple([_extent(launch().threads, dim, "T.get_thread_extents") for dim in range(3)])


@checked_call
def get_block_extent(dim: int = 0) -> Any:
    """Blocks of the grid along x (0), y (1) or z (2); an int, or a device value where the grid is symbolic.

    Errors: TL208 outside a launch, TL004 (dim).  Source: CUDA's `gridDim`.
    """
    return _extent(launch().blocks, dim, "T.get_block_extent")


@checked_call
def get_block_extents() -> tuple[Any, ...]:
    """Blocks of the grid along x, y and z.  Errors: TL208 outside a launch.  Source: CUDA's `gridDim`."""
    return tuple([_extent(launch().blocks, dim, "T.get_block_extents") for dim in range(3)])


def cluster_size(called: str) -> int:
    """Blocks of a cluster.  TL208: the launch has no clusters, and `called` is of use only there."""
    x, y, z = launch().cluster
    if x * y * z == 1:
        _bad_launch(
            f"`{called}` concerns the blocks of a cluster, and this launch has clusters of one block",
            "write `with T.ClusterKernel(..., cluster_dims=(2, 1, 1))`",
        )
    return int(x * y * z)
