"""split-launches: one function per launch of a kernel.

Before: one PrimFunc with bindings of scalars and launches in sequence.  After: a list of PrimFuncs in launch order,
whose bodies are the launches (`thread_extent` attributes down to the work), each with its LaunchContext; scalars
bound between launches are inlined, buffers of `T.alloc_global` are trailing parameters, and annotations of layouts
are in the contexts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tvm import tirx as tir
from tvm.ir import Range
from tvm.sym import Analyzer

from tilelang_nb.language.tile_program import CLUSTER
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.diagnostic import Refusal
from tilelang_nb.source.text import Text

from .annotated_layouts import read_annotations
from .context import LaunchContext, ThreadSet, Workspace
from .rewrite import constant, dtype_of, map_children, nothing, scope, statements, substitute, walk, with_body

THREAD_EXTENT = "thread_extent"


def split_launches(
    function: Any, name: str, text: Text, arch: str, options: Mapping[str, Any], annotated: Mapping[str, Any]
) -> tuple[list[tuple[Any, LaunchContext]], tuple[Workspace, ...]]:
    """The launches of a kernel and the workspaces it needs."""
    workspaces: list[Any] = []

    def hoist(node: Any) -> Any:
        if isinstance(node, tir.AllocBuffer) and scope(node.buffer) == "global":
            workspaces.append(node.buffer)
            return nothing(node.span)
        return map_children(node, hoist)

    found: list[Any] = []
    walk(function.body, (tir.AllocBuffer, lambda node: found.append(scope(node.buffer))))
    bound: dict[Any, Any] = {}
    bodies = []
    for node in statements(hoist(function.body) if "global" in found else function.body):
        if isinstance(node, tir.Bind):
            bound[node.var] = substitute(node.value, bound)
        elif isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
            bodies.append(_inline(node, bound))
        elif not isinstance(node, tir.Evaluate):
            raise NotImplementedError(f"a {type(node).__name__} between launches")
    taken = {buffer.name for buffer in function.params}
    renamed = {buffer: _renamed(buffer, taken) for buffer in workspaces}
    parameters = [*function.params, *renamed.values()]
    launches = []
    for number, body in enumerate(bodies):
        symbol = name if number == 0 else f"{name}_{number}"
        body, cluster = _without_cluster(body)
        launch = tir.PrimFunc(parameters, substitute(body, renamed), span=function.span)
        launch = launch.with_attr("global_symbol", symbol)
        context = _context(launch, text, arch, options, annotated)
        if cluster is not None:
            launch, context.cluster = launch.with_attr(CLUSTER, list(cluster)), cluster
            context.function = launch
        launches.append((read_annotations(launch, context), context))
    kept = tuple(Workspace(buffer.name, tuple(buffer.shape), dtype_of(buffer)) for buffer in renamed.values())
    return launches, kept


def _without_cluster(node: Any) -> tuple[Any, tuple[int, int, int] | None]:
    """A launch without the attribute of its clusters, and their extents where there is one."""
    if isinstance(node, tir.AttrStmt) and node.attr_key == CLUSTER:
        x, y, z = (int(extent) for extent in node.value.value.split(","))
        return node.body, (x, y, z)
    if not isinstance(node, tir.AttrStmt) or node.attr_key != THREAD_EXTENT:
        return node, None
    body, cluster = _without_cluster(node.body)
    return (node, None) if cluster is None else (with_body(node, body), cluster)


def cluster_of(function: Any) -> tuple[int, int, int]:
    """Blocks of a cluster of a lowered launch along x, y and z."""
    if function.attrs is None or CLUSTER not in function.attrs:
        return 1, 1, 1
    x, y, z = (int(extent) for extent in function.attrs[CLUSTER])
    return x, y, z


def check_clusters(name: str, grid: Iterable[int], cluster: Iterable[int]) -> None:
    """TL208 where a grid is not made of whole clusters."""
    for axis, blocks, extent in zip("xyz", (*grid, 1, 1), cluster):
        if blocks % extent:
            problem = f"the grid of `{name}` has {blocks} blocks along {axis}, which are no whole clusters of {extent}"
            remedy = f"round the grid up to a multiple of {extent} in `T.ClusterKernel`, or pass arrays that give one"
            raise Refusal(say.LaunchConfiguration(problem=problem, remedy=remedy))


def _inline(launch: Any, bound: Mapping[Any, Any]) -> Any:
    """The extents of the grid and the body with the scalars bound before the launch."""
    if not bound:
        return launch
    body = launch.body
    if isinstance(body, tir.AttrStmt) and body.attr_key == THREAD_EXTENT:
        body = _inline(body, bound)
    else:
        body = substitute(body, bound)
    return tir.AttrStmt(launch.node, launch.attr_key, substitute(launch.value, bound), body, launch.span)


def _renamed(buffer: Any, taken: set[str]) -> Any:
    name, number = buffer.name, 1
    while name in taken:
        name, number = f"{buffer.name}_{number}", number + 1
    taken.add(name)
    if name == buffer.name:
        return buffer
    return tir.decl_buffer(list(buffer.shape), dtype_of(buffer), name, scope="global", layout=None)


def _context(
    launch: Any, text: Text, arch: str, options: Mapping[str, Any], annotated: Mapping[str, Any]
) -> LaunchContext:
    analyzer = Analyzer()
    extents: dict[str, tuple[Any, Any]] = {}
    node = launch.body
    while isinstance(node, tir.AttrStmt) and node.attr_key == THREAD_EXTENT:
        extents[str(node.node.thread_tag)] = (node.node.var, node.value)
        analyzer.bind(node.node.var, Range(0, node.value))
        node = node.body
    threads, linear = 1, None
    for axis in ("threadIdx.x", "threadIdx.y", "threadIdx.z"):
        if axis not in extents:
            continue
        var, extent = extents[axis][0], constant(extents[axis][1]) or 1
        term = var if threads == 1 else var * threads
        linear = (
            term if linear is None or (extent == 1 and linear is None) else linear if extent == 1 else linear + term
        )
        threads *= extent
    return LaunchContext(
        text=text,
        arch=arch,
        options=options,
        threads=threads,
        block_thread=linear if linear is not None else tir.const(0, "int32"),
        axes=tuple(var for tag, (var, _) in extents.items() if tag.startswith("threadIdx")),
        blocks=tuple(var for tag, (var, _) in extents.items() if tag.startswith("blockIdx")),
        analyzer=analyzer,
        set=ThreadSet(0, threads),
        annotated=annotated,
        function=launch,
    )
