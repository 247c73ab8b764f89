"""`T.Fragment`: a function from the indices of a tile to the thread that holds the element, and its register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .calling import bad_argument, checked_call
from .index_maps import tables
from .index_tables import function_of
from .layouts import Layout, as_results, check_size, extents_of, indices_before, inverse_of, reshaped, results_of
from .operands import described, flag, integer, unavailable


class Fragment(Layout):
    """`T.Fragment(shape, forward)`: element (i, j) is held by thread `forward(i, j)[0]`, in its register `forward(i,
    j)[1]`.

    forward_fn: gives (thread, register).  Or forward_thread_fn and forward_index_fn, one each; without the last, the
    registers are
    numbered in row-major order.  replicate: copies of each element; the functions then take the number of the copy as
    last argument.
    Errors: TL004 (shape, functions).  Source: upstream `tilelang/layout/fragment.py`.
    """

    @checked_call
    def __init__(
        self,
        shape: Any,
        forward_fn: Callable[..., Any] | None = None,
        forward_thread_fn: Callable[..., Any] | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., Any] | None = None,
    ):
        self.shape = extents_of(shape, "T.Fragment")
        self.copies = integer(replicate, "T.Fragment", "replicate", 1)
        if (forward_fn is None) == (forward_thread_fn is None):
            bad_argument(
                "`T.Fragment` needs `forward_fn` or `forward_thread_fn`",
                "write `forward_fn=lambda i, j: (thread, register)`",
            )
        for function in (forward_fn, forward_thread_fn, forward_index_fn):
            if function is not None and not callable(function):
                bad_argument(
                    f"a function of `T.Fragment` is {described(function)}", "give a function: `lambda i, j: (i, j)`"
                )
        self._pair, self._thread, self._index = forward_fn, forward_thread_fn, forward_index_fn
        self.place(*[0] * len(self.shape))

    def place(self, *indices: Any, copy: Any = 0) -> tuple[Any, tuple[Any, ...]]:
        """The thread that holds an element, and the index of its register (empty where none was given)."""
        arguments = (*indices, copy) if self.copies > 1 else indices
        if self._pair is not None:
            pair = as_results(results_of(self._pair, arguments, "Fragment"))
            if len(pair) != 2:
                bad_argument(f"`forward_fn` of `T.Fragment` gives {len(pair)} values", "give (thread, register)")
            return pair[0], as_results(pair[1])
        assert self._thread is not None
        thread = results_of(self._thread, arguments, "Fragment")
        return thread, as_results(results_of(self._index, indices, "Fragment")) if self._index is not None else ()

    def forward(self, *indices: Any) -> tuple[Any, ...]:
        """The thread that holds an element, the first one of several, and the index of its register."""
        thread, registers = self.place(*indices)
        return (thread, *registers)

    def map_forward_index(self, indices: Any) -> tuple[Any, ...]:
        """The index of the register that holds an element.  TL004: the layout does not say."""
        registers: tuple[Any, ...] = self.place(*indices)[1]
        if not registers:
            bad_argument("a `T.Fragment` that says no registers", "give it a `forward_index_fn`")
        return registers

    def get_output_shape(self) -> list[int]:
        """The extents of the box of registers that a thread has for the tile.  TL004: the layout does not say."""
        check_size(self.shape)
        return [
            int(values.max()) + 1 for values in tables(lambda *i: self.map_forward_index(i), self.shape, "the layout")
        ]

    def _threads(self) -> np.ndarray:
        """The thread of every element, with the copies of each along the last axis."""
        shape = (*self.shape, self.copies)
        check_size(shape)
        return tables(lambda *index: self.place(*index[:-1], copy=index[-1])[0], shape, "the layout")[0]

    def _tables(self) -> list[np.ndarray]:
        """The thread of every copy of every element, and each index of its register."""
        registers = tables(lambda *index: self.place(*index)[1], self.shape, "the layout")
        return [*np.moveaxis(self._threads(), -1, 0), *registers]

    def is_equal(self, other: Any) -> bool:
        """Does another layout give every copy of every element to the same thread and register?"""
        return super().is_equal(other) and bool(other.copies == self.copies)

    def map_forward_thread(self, indices: Any) -> Any:
        """The thread that holds an element, the first one of several."""
        return self.place(*indices)[0]

    def get_thread_size(self) -> int:
        """How many threads hold the tile, counted from 0."""
        return int(self._threads().max()) + 1

    def expand(self, leading_shape: Any) -> NoReturn:
        """TL302: the new elements have no thread."""
        unavailable(
            "`Fragment.expand` does not say who holds the new elements",
            "write the layout of the whole tile: `T.Fragment(shape, ...)`",
        )

    @property
    def thread(self) -> NoReturn:
        """Upstream's expression of the thread.  TL302: call `map_forward_thread` with indices."""
        unavailable(
            "`thread` of a layout is an expression of upstream's compiler",
            "call it with indices: `layout.map_forward_thread([i, j])`",
        )

    def reshape(self, shape: Any, rescale_num: int = 1, rescale_den: int = 1) -> Fragment:
        """The layout of the same elements by the indices of another shape; both count them in row-major order.

        Errors: TL004 (shape), TL204 (as many elements), TL302 (elements of another width).
        Source: upstream `tilelang/layout/fragment.py`.
        """
        called, before = "Fragment.reshape", self.shape
        after = reshaped(shape, rescale_num, rescale_den, before, called)

        def place(*indices: Any) -> tuple[Any, tuple[Any, ...]]:
            return self.place(*indices_before(indices[:-1], before, after, called), copy=indices[-1])

        return self._like(after, self.copies, place)

    def inverse(self) -> Layout:
        """The layout that gives for (register, thread) the indices of the element and the number of its copy.

        Errors: TL004 as `Layout.inverse`, and for a layout that says no registers.
        Source: upstream `tilelang/layout/fragment.py`.
        """
        return inverse_of(
            Layout(
                (*self.shape, self.copies),
                lambda *indices: [
                    *self.map_forward_index(indices[:-1]),
                    self.place(*indices[:-1], copy=indices[-1])[0],
                ],
            ),
            "Fragment.inverse",
        )

    def condense_rep_var(self) -> Fragment:
        """The layout without copies that are held by the same threads as another one.

        Source: upstream `tilelang/layout/fragment.py`.
        """
        seen: dict[bytes, int] = {}
        threads = self._threads()
        for copy in range(self.copies):
            seen.setdefault(threads[..., copy].tobytes(), copy)
        kept = list(seen.values())
        number = function_of(np.array(kept))
        if len(kept) == self.copies or number is None:
            return self

        def place(*indices: Any) -> tuple[Any, tuple[Any, ...]]:
            return self.place(*indices[:-1], copy=number(indices[-1]))

        return self._like(self.shape, len(kept), place)

    def repeat(  # type: ignore[override]
        self, repeats: Any, repeat_on_thread: bool = False, lower_dim_first: bool = True
    ) -> Fragment:
        """The layout of a tile that is `repeats` times as large in each dimension.

        Each repetition is held by further threads (repeat_on_thread), or in further registers of the same.  They are
        counted from the last dimension outwards (lower_dim_first), or from the first one inwards.
        Errors: TL004 (numbers of repetitions).  Source: upstream `tilelang/layout/fragment.py`.
        """
        called = "Fragment.repeat"
        times = extents_of(repeats, called)
        if len(times) != len(self.shape):
            bad_argument(
                f"`{called}` of {len(self.shape)} dimension(s) with {len(times)} repetition(s)", "give one for each"
            )
        shape, threads = self.shape, self.get_thread_size()
        numbered = bool(self.place(*[0] * len(shape))[1])
        extents = self.get_output_shape() if numbered else []
        order = reversed(range(len(shape))) if flag(lower_dim_first, called, "lower_dim_first") else range(len(shape))
        dims = list(order)
        on_thread = flag(repeat_on_thread, called, "repeat_on_thread")

        def place(*indices: Any) -> tuple[Any, tuple[Any, ...]]:
            *index, copy = indices
            number, stride = 0, 1
            for dim in dims:
                number = number + index[dim] // shape[dim] * stride
                stride *= times[dim]
            thread, registers = self.place(*[i % extent for i, extent in zip(index, shape)], copy=copy)
            if on_thread:
                return thread + threads * number, registers
            return thread, (registers[0] + extents[0] * number, *registers[1:]) if registers else ()

        return self._like(tuple(extent * n for extent, n in zip(shape, times)), self.copies, place)

    def replicate(self, replicate: int) -> Fragment:
        """The layout in which further threads hold copies of the whole tile.

        Errors: TL004 (no positive number).  Source: upstream `tilelang/layout/fragment.py`.
        """
        times, threads = integer(replicate, "Fragment.replicate", "replicate", 1), self.get_thread_size()

        def place(*indices: Any) -> tuple[Any, tuple[Any, ...]]:
            *index, copy = indices
            thread, registers = self.place(*index, copy=copy % self.copies)
            return thread + threads * (copy // self.copies), registers

        return self._like(self.shape, self.copies * times, place)

    def _like(self, shape: tuple[int, ...], copies: int, place: Callable[..., Any]) -> Fragment:
        """A layout by a function of the indices and the number of the copy."""

        def thread(*indices: Any) -> Any:
            return place(*(indices if copies > 1 else (*indices, 0)))[0]

        def index(*indices: Any) -> Any:
            return place(*indices, 0)[1]

        numbered = bool(self.place(*[0] * len(self.shape))[1])
        return Fragment(shape, None, thread, copies, index if numbered else None)
