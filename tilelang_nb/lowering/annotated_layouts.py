"""Layouts that the text gives to its tiles by T.annotate_layout.

`read_annotations` takes the annotations out of a launch before anything is done with its tiles, so that a tile with an
order by hand is like any other one.  Of a shared tile, an order that is a swizzle is left to swizzle-shared-memory;
any other one is carried out by `ordered_tiles`, which addresses the tile by one index before its place is planned.
Of a fragment, infer-layouts starts from it.

Of a T.Parallel loop (`loop_layout`), infer-layouts takes it where the fragments of the loop allow it.

An order that cannot be had is not taken: results do not depend on it.  `launch.facts["layouts"]` and, for loops,
`launch.facts["loop layouts"]` say why not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx as tir

from tilelang_nb.language.layout_tables import FragmentTable, TileOrder
from tilelang_nb.language.tile_program import read, statement_name
from tilelang_nb.layout.fragment import Fragment
from tilelang_nb.layout.swizzle import CHUNK_BYTES, ROWS, Swizzle
from tilelang_nb.layout.tables import fragment_of, run_length, swizzle_of

from .context import FRAGMENT, SHARED, LaunchContext
from .index_arithmetic import fold
from .rewrite import Load, as_int32, dtype_of, element_bytes, map_children, nothing, scope, substitute, variables, walk
from .views import views

FACTS = "layouts"  # of a launch: what became of the annotated layouts, by buffer
LOOPS = "loop layouts"  # the same for T.Parallel loops, by the variables of the loop
VIEWED = "it is also seen through a view"
NO_DIGITS = "thread and register are no sums of digits of the indices"


@dataclass(frozen=True)
class Order:
    """The order of a shared tile.

    swizzle: its form as a swizzle, None for any other.  run: elements of a row that stay together.
    """

    given: TileOrder
    swizzle: Swizzle | None
    run: int


@dataclass(frozen=True)
class Annotation:
    """What became of an annotated layout.  span: of the annotation.  refused: why it was not taken, "" if it was."""

    span: Any
    refused: str = ""


def read_annotations(function: Any, launch: LaunchContext) -> Any:
    """The launch without its annotations; `orders` and `annotated` of the context get what they say."""
    found: list[tuple[Any, Any, Any]] = []

    def visit(node: Any) -> Any:
        if statement_name(node) == "annotate_layout":
            call = read(node.value, node.span)
            found.append((call["buffer"].buffer, launch.annotated.get(call["layout"]), node.span))
            return nothing(node.span)
        return map_children(node, visit)

    if not launch.annotated:
        return function
    body = visit(function.body)
    sources = views(body)
    viewed = {*sources, *sources.values()}
    said = launch.facts.setdefault(FACTS, {})
    for buffer, layout, span in found:
        said[buffer] = Annotation(span, VIEWED if buffer in viewed else "")
        if buffer in viewed:
            continue
        if isinstance(layout, TileOrder) and scope(buffer).startswith("shared"):
            swizzle = swizzle_of(layout.table, element_bytes(buffer))
            launch.orders[buffer] = Order(layout, swizzle, run_length(layout.table))
        elif isinstance(layout, FragmentTable) and scope(buffer) == FRAGMENT:
            launch.wanted[buffer] = layout
    return function.with_body(body)


def wanted_fragment(buffer: Any, threads: int, launch: LaunchContext) -> Fragment | None:
    """The layout that the text gives to a fragment of a set of threads; None for none, and for one not to be had."""
    table = launch.wanted.get(buffer)
    if table is None:
        return None
    layout = fragment_of(table.thread_table, table.register_table, threads)
    if layout is None:
        give_up(buffer, NO_DIGITS, launch)
    return layout


def wanted_loop(key: str, threads: int, launch: LaunchContext) -> Fragment | str | None:
    """The layout that the text gives to a loop of a set of threads; why it is not to be had; None for none."""
    table = launch.annotated.get(key)
    if not isinstance(table, FragmentTable):
        return None
    if table.thread_table.max() >= threads:
        return f"it names threads that are not among the {threads} that run the loop"
    layout = fragment_of(table.thread_table, None, threads)
    return NO_DIGITS if layout is None else layout


def give_up(buffer: Any, reason: str, launch: LaunchContext) -> None:
    """Do without the layout that the text gives to a tile."""
    launch.wanted.pop(buffer, None)
    launch.orders.pop(buffer, None)
    said = launch.facts[FACTS]
    said[buffer] = Annotation(said[buffer].span, reason)


def give_way(tile: Any, boxes: Any, launch: LaunchContext) -> None:
    """A tile that bulk copies fill, or warp groups multiply, lies as they have it; that is as annotated where both are
    one order.

    boxes: its `TensorTile`, None for one that the compiler fills.
    """
    order = launch.orders.pop(tile)
    named = tile  # that of the text, where this one has several versions
    for other in [one for one, known in launch.orders.items() if known is order]:
        named = other
        launch.orders.pop(other)
    if boxes is not None and boxes.swizzle and boxes.boxes == 1:
        chunks = boxes.swizzle // CHUNK_BYTES
        if order.swizzle == Swizzle(CHUNK_BYTES // boxes.itemsize, ROWS // chunks, chunks):
            return
    give_up(named, "bulk copies and warp groups take it in boxes, swizzled as wide as they are", launch)


def ordered_tiles(function: Any, launch: LaunchContext) -> Any:
    """The launch with its tiles in an order by hand, other than a swizzle, addressed by one index.

    A tile of several versions has one index for the version before it.
    """
    orders = {buffer: order for buffer, order in launch.orders.items() if order.swizzle is None}
    allocated: list[Any] = []
    if orders:
        walk(function.body, (tir.AllocBuffer, lambda node: allocated.append(node.buffer)))
    tiles = {
        buffer: tir.decl_buffer(
            [*buffer.shape[: _versions(buffer, orders[buffer])], orders[buffer].given.size],
            dtype_of(buffer),
            buffer.name,
            scope=SHARED,
            layout=None,
        )
        for buffer in allocated
        if buffer in orders
    }
    if not tiles:
        return function
    launch.orders.update({tile: orders[buffer] for buffer, tile in tiles.items()})

    def placed(buffer: Any, indices: Any, lane: Any) -> list[Any]:
        """lane: the variable of the vector loop around, whose turns stay neighbours."""
        given, leading = orders[buffer].given, _versions(buffer, orders[buffer])
        first = [as_int32(index) for index in list(indices)[leading:]]
        moved = lane is not None and any(lane in variables(index) for index in first)
        if moved:
            zero = {lane: tir.const(0, dtype_of(lane))}
            first = [substitute(index, zero) for index in first]
        first = [fold(index, launch.analyzer) for index in first]
        place = fold(substitute(given.place, dict(zip(given.variables, first))), launch.analyzer)
        return [*list(indices)[:leading], place + lane if moved else place]

    def accesses(node: Any, lane: Any) -> Any:
        def load(access: Any) -> Any:
            if access.source not in tiles:
                return access
            return tir.BufferLoad(tiles[access.source], placed(access.source, access.indices, lane))

        def store(access: Any) -> Any:
            tile, indices = access.buffer, access.indices
            if tile not in tiles:
                return access
            return tir.BufferStore(tiles[tile], access.value, placed(tile, indices, lane), access.span)

        def allocation(made: Any) -> Any:
            return (
                made if made.buffer not in tiles else tir.AllocBuffer(tiles[made.buffer], made.annotations, made.span)
            )

        return tvm_ffi.structural_map(node, [(Load, load), (tir.BufferStore, store), (tir.AllocBuffer, allocation)])

    def vectors(node: Any) -> Any:
        if isinstance(node, tir.For) and int(node.kind) == tir.ForKind.VECTORIZED:
            return accesses(node, node.loop_var)
        return map_children(node, vectors)

    return function.with_body(accesses(vectors(function.body), None))


def _versions(buffer: Any, order: Order) -> int:
    """Leading dimensions that a pipeline has added."""
    return len(buffer.shape) - len(order.given.shape)
