"""`T.Layout`: a function from the indices of a tile to where the element lies in memory.

It works on Python integers and on device values alike.  `T.Fragment`, in `fragment_layouts.py`, is one to threads and
registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .calling import bad_argument, checked_call
from .index_maps import tables
from .index_tables import function_of
from .operands import described, integer, shape_mismatch, shown, unavailable


def extents_of(shape: Any, called: str) -> tuple[int, ...]:
    """Constants from 1 on, of a tuple or a single one; TL004 for others."""
    given = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    return tuple([integer(extent, called, "shape", 1) for extent in given])


def as_results(value: Any) -> tuple[Any, ...]:
    """What a function of indices gives, one result or several."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


MOST_ELEMENTS = 1 << 22  # of a layout that is asked for all of its places


def indices_before(indices: Any, before: tuple[int, ...], after: tuple[int, ...], called: str) -> list[Any]:
    """The indices of an element in another shape of as many elements, both counted in row-major order."""
    if len(indices) != len(after):
        bad_argument(
            f"{len(indices)} indices for a layout of {len(after)} dimension(s) by `{called}`", "give one for each"
        )
    place: Any = 0
    for index, extent in zip(indices, after):
        place = index if isinstance(place, int) and place == 0 else place * extent + index
    found: list[Any] = []
    for number, extent in reversed(list(enumerate(before))):
        found.insert(0, place % extent if number else place)
        place = place // extent
    return found


def reshaped(shape: Any, rescale_num: int, rescale_den: int, before: tuple[int, ...], called: str) -> tuple[int, ...]:
    """The shape that `reshape` asks for; TL204 for other than as many elements, TL302 for such of another width."""
    if (rescale_num, rescale_den) != (1, 1):
        unavailable(
            f"`{called}` to elements of another width is not lowered by this version",
            "write the layout of the new elements: `T.Layout(shape, ...)`",
        )
    after = extents_of(shape, called)
    if math.prod(after) != math.prod(before):
        shape_mismatch(f"`{called}` of shape {shown(before)} to {shown(after)}", "give a shape of as many elements")
    return after


class Layout:
    """`T.Layout(shape, forward)`: element (i, j) of a tile lies at `forward(i, j)`, an index or a list of indices.

    shape: constants.  forward: a function of one index per dimension, one-to-one.
    Errors: TL004 (shape, function).  Source: upstream `tilelang/layout/layout.py`.
    """

    @checked_call
    def __init__(self, shape: Any, forward_fn: Callable[..., Any]):
        called = f"T.{type(self).__name__}"
        self.shape = extents_of(shape, called)
        if not callable(forward_fn):
            bad_argument(
                f"`forward_fn` of `{called}` is {described(forward_fn)}", "give a function: `lambda i, j: [i, j]`"
            )
        self._forward = forward_fn
        self.forward(*[0] * len(self.shape))

    def forward(self, *indices: Any) -> tuple[Any, ...]:
        """Where the element at these indices lies."""
        return as_results(results_of(self._forward, indices, type(self).__name__))

    def map_forward_index(self, indices: Any) -> tuple[Any, ...]:
        """`forward` of a list of indices."""
        return self.forward(*indices)

    def __call__(self, *indices: Any) -> tuple[Any, ...]:
        """Where the element at these indices lies, as `map_forward_index`."""
        return self.map_forward_index(indices)

    def get_input_shape(self) -> list[int]:
        """The extents of the tile."""
        return list(self.shape)

    def get_output_shape(self) -> list[int]:
        """The extents of the box that all places lie in."""
        return [int(values.max()) + 1 for values in self._tables()]

    def expand(self, leading_shape: Any) -> Layout:
        """The layout of several tiles: the new leading indices stay as they are, the others go through this one.

        leading_shape: constants; none of them leaves the layout as it is.
        Errors: TL004 (shape).  Source: upstream `tilelang/layout/layout.py`.
        """
        leading = extents_of(leading_shape, "Layout.expand")
        count = len(leading)
        if not count:
            return self

        def forward(*indices: Any) -> list[Any]:
            return [*indices[:count], *self.forward(*indices[count:])]

        return Layout((*leading, *self.shape), forward)

    def repeat(self, dim: int, factor: int) -> Layout:
        """The layout of a tile that is `factor` times as large in a dimension: places get the number of the repetition
        in front.

        dim: counted from 0, or from the end by negative numbers.
        Errors: TL004 (dimension, factor).  Source: upstream `tilelang/layout/layout.py`.
        """
        called, rank = "Layout.repeat", len(self.shape)
        axis, times = integer(dim, called, "dim", -rank, rank - 1) % rank, integer(factor, called, "factor", 1)
        extent = self.shape[axis]
        if times == 1:
            return self

        def forward(*indices: Any) -> list[Any]:
            inside = [*indices[:axis], indices[axis] % extent, *indices[axis + 1 :]]
            return [indices[axis] // extent, *self.forward(*inside)]

        return Layout((*self.shape[:axis], extent * times, *self.shape[axis + 1 :]), forward)

    def reshape(self, shape: Any, rescale_num: int = 1, rescale_den: int = 1) -> Layout:
        """The layout of the same elements by the indices of another shape; both count them in row-major order.

        Errors: TL004 (shape), TL204 (as many elements), TL302 (elements of another width).
        Source: upstream `tilelang/layout/layout.py`.
        """
        called = "Layout.reshape"
        after = reshaped(shape, rescale_num, rescale_den, self.shape, called)
        return Layout(after, lambda *indices: self.forward(*indices_before(indices, self.shape, after, called)))

    def inverse(self) -> Layout:
        """The layout that gives for each place the indices of the element that lies there.

        Errors: TL004 (two elements in one place, places that no element has, indices that are neither sums of digits of
        the places nor exclusive ors of their bits).  Source: upstream `tilelang/layout/layout.py`.
        """
        return inverse_of(self, "Layout.inverse")

    @property
    def index(self) -> NoReturn:
        """Upstream's expression of the places.  TL302: call the layout with indices."""
        _expression("index")

    def get_forward_vars(self) -> NoReturn:
        """Upstream's variables of `index`.  TL302."""
        _expression("get_forward_vars")

    def get_forward_index(self) -> NoReturn:
        """Upstream's `index`.  TL302."""
        _expression("get_forward_index")

    def get_linearized_forward_index(self) -> NoReturn:
        """Upstream's `index` as one number.  TL302."""
        _expression("get_linearized_forward_index")

    def map_region_bounds(self, region: Any) -> NoReturn:
        """Upstream's box around the places of a region.  TL302."""
        _expression("map_region_bounds")

    def is_equal(self, other: Any) -> bool:
        """Does another layout put every element in the same place?"""
        if not isinstance(other, Layout) or other.shape != self.shape or type(other) is not type(self):
            return False
        mine, theirs = self._tables(), other._tables()
        return len(mine) == len(theirs) and all((a == b).all() for a, b in zip(mine, theirs))

    def _tables(self) -> list[np.ndarray]:
        """Each result of `forward` for every element."""
        check_size(self.shape)
        return tables(self.forward, self.shape, f"the layout of shape {shown(self.shape)}")

    def __repr__(self) -> str:
        return f"T.{type(self).__name__}({self.shape})"


def results_of(function: Callable[..., Any], arguments: Any, name: str) -> Any:
    """What a function of the text gives; TL004 where it takes another number of indices."""
    try:
        return function(*arguments)
    except TypeError as mistake:
        bad_argument(
            f"the function of `T.{name}` on {len(arguments)} indices: {mistake}", "take one index per dimension"
        )


def check_size(shape: tuple[int, ...]) -> None:
    """TL004 for a layout of so many elements that its places are not looked at one by one."""
    if math.prod(shape) > MOST_ELEMENTS:
        bad_argument(
            f"the places of a layout of shape {shown(shape)}", f"ask layouts of at most {MOST_ELEMENTS:,} elements"
        )


def _expression(name: str) -> NoReturn:
    unavailable(
        f"`{name}` of a layout is an expression of upstream's compiler", "call the layout with indices: `layout(i, j)`"
    )


def inverse_of(layout: Layout, called: str) -> Layout:
    """See `Layout.inverse`; called: what messages name."""
    given = layout._tables()
    extents = tuple(int(values.max()) + 1 for values in given)
    size, box = math.prod(layout.shape), math.prod(extents)
    if any(values.min() < 0 for values in given) or box > size:
        bad_argument(
            f"`{called}` of a layout with places that no element has", "give every place from 0 on to one element"
        )
    places = np.ravel_multi_index(tuple(values.reshape(-1) for values in given), extents)
    elements = np.full(box, -1, np.int64)
    elements[places] = np.arange(size)
    if elements.min() < 0 or box < size:
        bad_argument(f"`{called}` of a layout with two elements in one place", "give every place to one element")
    functions = [function_of(values.reshape(extents)) for values in np.unravel_index(elements, layout.shape)]
    if any(function is None for function in functions):
        bad_argument(
            f"`{called}` of a layout whose indices are no digits or bits of the places",
            "write the inverse as a layout of its own: `T.Layout(shape, ...)`",
        )
    return Layout(extents, lambda *indices: [function(*indices) for function in functions if function is not None])
