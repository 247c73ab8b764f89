"""`T.PersistentTileScheduler`: which tile of a two-dimensional grid a persistent block works on next."""

from __future__ import annotations

import math
from typing import Any

from .allocation import alloc_var
from .calling import bad_argument, checked_call
from .integers import ceildiv, floordiv
from .launch import get_block_extents
from .operands import flag, integer, scalar
from .selection import if_then_else, min_of


class PersistentTileScheduler:
    """Distributes `num_m_tiles` x `num_n_tiles` tiles over `num_workers` persistent blocks: worker w gets w, w +
    num_workers, ...

    num_workers: the clusters of `cluster_size` blocks of the launch, where it is left out.
    swizzle_size: width of the panels in which the slower axis is visited, for the second-level cache; 1 is none.
    column_major: m varies fastest (the default), else n.  cluster_size: 1.
    stateful: False keeps no variables and offers `coord` only.
    Use: `sched.init(block)`, `while sched.valid():` with `sched.m_idx`, `sched.n_idx`, `sched.current_iter`, then
    `sched.next_tile()`.
    Every tile is visited exactly once over all workers.
    Errors: TL004 (arguments).  Source: upstream `tilelang/language/tile_schedule.py`.
    """

    @checked_call
    def __init__(
        self,
        num_m_tiles: Any,
        num_n_tiles: Any,
        num_workers: Any = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ):
        called = "T.PersistentTileScheduler"
        self._panel = integer(swizzle_size, called, "swizzle_size", 1)
        cluster = integer(cluster_size, called, "cluster_size", 1)
        if num_workers is None:
            num_workers = floordiv(math.prod(get_block_extents()), cluster)
        rows, columns, workers = (scalar(count, called, "a count") for count in (num_m_tiles, num_n_tiles, num_workers))
        self._m, self._n = ceildiv(rows, cluster), ceildiv(columns, 1)
        self._workers, self._column_major = ceildiv(workers, 1), flag(column_major, called, "column_major")
        self._total = self._m * self._n
        self._stateful = stateful
        if stateful:
            self._m_idx, self._n_idx = alloc_var("int32"), alloc_var("int32")
            self._linear, self._turn = alloc_var("int32"), alloc_var("int32")

    def _state(self, variable: str) -> Any:
        if not self._stateful:
            bad_argument("a scheduler made with `stateful=False` has no current tile", "use `coord(tile)`")
        return getattr(self, variable)[(0,)]

    @property
    def m_idx(self) -> Any:
        """The row of the current tile."""
        return self._state("_m_idx")

    @property
    def n_idx(self) -> Any:
        """The column of the current tile."""
        return self._state("_n_idx")

    @property
    def linear_idx(self) -> Any:
        """The number of the current tile."""
        return self._state("_linear")

    @property
    def current_iter(self) -> Any:
        """How many tiles this worker has finished."""
        return self._state("_turn")

    def coord(self, tile: Any) -> tuple[Any, Any]:
        """Row and column of a tile by its number."""
        fast, slow = (self._m, self._n) if self._column_major else (self._n, self._m)
        if self._panel == 1:
            at_fast, at_slow = tile % fast, tile // fast
        else:
            panel = tile // (fast * self._panel)
            inside = tile % (fast * self._panel)
            width = min_of(self._panel, slow - panel * self._panel)  # the last panel may be narrower
            at_fast, at_slow = inside // width, panel * self._panel + inside % width
        return (at_fast, at_slow) if self._column_major else (at_slow, at_fast)

    def _go_to(self, tile: Any) -> None:
        self._linear[(0,)] = tile
        current = self._linear[(0,)]
        # past the end there is no tile: width would be 0, so stay on the first one
        row, column = self.coord(if_then_else(current < self._total, current, 0))
        self._m_idx[(0,)], self._n_idx[(0,)] = row, column

    def init(self, linear_init: Any) -> None:
        """Begins at the tile of this worker's number."""
        self._state("_turn")
        self._turn[(0,)] = 0
        self._go_to(linear_init)

    def next_tile(self, step: Any = None) -> None:
        """Goes on to this worker's next tile."""
        self._turn[(0,)] = self._state("_turn") + 1
        self._go_to(self._linear[(0,)] + (self._workers if step is None else step))

    def valid(self) -> Any:
        """Whether the current tile exists."""
        return self._state("_linear") < self._total
