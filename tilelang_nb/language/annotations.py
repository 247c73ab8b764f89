"""Facts that a kernel states about its buffers and its launch: layouts, safe values, the order of blocks."""

from __future__ import annotations

from typing import Any

from .calling import bad_argument, checked_call
from .fragment_layouts import Fragment
from .launch import thread_count
from .layout_tables import FragmentTable, TileOrder, fragment_table, tile_order
from .layouts import Layout
from .operands import BARRIER, FRAGMENT, GLOBAL, SHARED, choice, described, flag, integer, shape_mismatch, shown, stored
from .values import Buffer, builder


def _map(value: Any, called: str, example: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        bad_argument(f"`{called}` takes a dict, {described(value)} given", f"write `{called}({example})`")
    for buffer in value:
        if not isinstance(buffer, Buffer):
            bad_argument(f"`{called}` takes buffers as keys, {described(buffer)} given", f"write `{called}({example})`")
    return value


@checked_call
def annotate_layout(layout_map: dict) -> None:
    """Says how tiles lie in memory: `T.annotate_layout({A_shared: T.make_swizzled_layout(A_shared)})`.

    layout_map: a `T.Layout`, or a function of the indices, for a shared tile; a `T.Fragment` for a fragment.  A layout
    that leaves gaps takes the shared memory for them.  Results do not depend on it; a layout that the uses of a tile do
    not allow is not taken, and the report says why.
    Errors: TL004 (no dict, kind of layout, two elements in one place, a thread that there is not), TL204 (shape).
    Source: upstream `tilelang/language/annotations.py`.
    """
    called = "T.annotate_layout"
    found = builder()
    for buffer, layout in _map(layout_map, called, "{tile: layout}").items():
        if not isinstance(layout, Layout):
            if not callable(layout):
                bad_argument(
                    f"the layout of `{buffer.name}` is {described(layout)}",
                    "give a `T.Layout`, or a function of the indices",
                )
            layout = Layout(buffer.shape, layout)
        if buffer.memory == FRAGMENT and not isinstance(layout, Fragment):
            bad_argument(f"`{buffer.name}` is a fragment, and its layout a `T.Layout`", "give a `T.Fragment`")
        if buffer.memory == SHARED and isinstance(layout, Fragment):
            bad_argument(f"`{buffer.name}` is a shared tile, and its layout a `T.Fragment`", "give a `T.Layout`")
        if buffer.memory in (GLOBAL, BARRIER):
            bad_argument(f"`{called}` of `{buffer.name}`, which is no tile", "annotate shared tiles and fragments")
        if layout.shape != tuple(buffer.shape):
            shape_mismatch(
                f"a layout of shape {shown(layout.shape)} for `{buffer.name}`, shape {shown(buffer.shape)}",
                "make the shapes equal",
            )
        key = f"layout{len(found.layouts)}"
        found.layouts[key] = _tables(buffer, layout)
        found.operation("annotate_layout", buffer, key)


def _tables(buffer: Buffer, layout: Layout) -> TileOrder | FragmentTable | None:
    if not isinstance(layout, Fragment):
        return tile_order(buffer, layout)
    return fragment_table(buffer, layout, thread_count())


@checked_call
def annotate_safe_value(safe_value_map: dict) -> None:
    """What a guarded load over the edge of a global buffer gives: `T.annotate_safe_value({A: -1.0})`; default 0.

    safe_value_map: a number or device value per parameter.
    Errors: TL004 (no dict, no global buffer), TL135, TL140 (value).
    Source: upstream `tilelang/language/annotations.py`.
    """
    called = "T.annotate_safe_value"
    for buffer, value in _map(safe_value_map, called, "{A: 0.0}").items():
        if buffer.memory != GLOBAL:
            bad_argument(
                f"`{called}` of `{buffer.name}`, which is not in global memory", "annotate a parameter of the kernel"
            )
        builder().operation("annotate_safe_value", buffer, stored(value, buffer.name, buffer.dtype))


@checked_call
def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Lets blocks visit the grid in panels, for the second-level cache; no effect on results.

    panel_size: tiles per panel.  order: "row", "column" or "mlx".  enable: False does nothing.
    Errors: TL004 (arguments).  Source: upstream `tilelang/language/annotations.py`.
    """
    called = "T.use_swizzle"
    size = integer(panel_size, called, "panel_size", 1)
    word = choice(order, called, "order", ("row", "column", "mlx"))
    builder().operation("use_swizzle", size, word, flag(enable, called, "enable"))


__all__ = ["annotate_layout", "annotate_safe_value", "use_swizzle"]
