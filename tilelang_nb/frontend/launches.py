"""`with T.Kernel(...)` and `with T.ws(...)`, and loops bound to thread axes."""

from __future__ import annotations

import ast
from types import BuiltinFunctionType
from typing import Any

from tvm import tirx as tir
from tvm.ir import Range, StringImm

from ..language.launch import LARGEST_CLUSTER, ClusterKernel, Kernel, ws
from ..language.promotion import as_type, constant
from ..language.thread_reductions import PlainScope, ReduceScope
from ..language.tile_program import CLUSTER
from ..language.values import Value
from ..source import catalogue as say
from ..source.diagnostic import Poisoned, Refusal
from .assign import bind_target
from .control import ReturnValue
from .emit import Launch
from .merge import close_launch, merge_branches
from .refusals import context_of_python, several_items
from .scopes import Scope

AXES = "xyz"


def with_statement(walker: Any, node: ast.With) -> None:
    """`with T.Kernel(...)` opens a launch, `T.ws` chooses warp groups, `T.attr` names a reducer; TL104 for others."""
    if len(node.items) != 1:
        raise several_items(node)
    item = node.items[0]
    call = item.context_expr
    maker = None
    if isinstance(call, ast.Call) and isinstance(call.func, (ast.Name, ast.Attribute)):
        maker = walker.evaluate(call.func)
        _check_maker(maker, item)
    try:
        manager = walker.evaluate(call)
    except (Refusal, Poisoned) as mistake:
        if maker not in (Kernel, ClusterKernel):
            raise
        _refused_launch(walker, node, mistake)
        return
    if isinstance(manager, Kernel):
        mistake = _other_count(manager, item)
        if mistake is not None:
            _refused_launch(walker, node, mistake)
            return
        launch(walker, node, manager, item.optional_vars)
    elif isinstance(manager, ws):
        warp_groups(walker, node, manager, item.optional_vars)
    elif isinstance(manager, ReduceScope):
        reduce_scope(walker, node, manager, item.optional_vars)
    elif isinstance(manager, PlainScope):
        _no_name(item.optional_vars)
        walker.suite(node.body)
    else:
        raise context_of_python(call, item.optional_vars)


def _other_count(spec: Kernel, item: ast.withitem) -> Refusal | None:
    """TL208 where the `as` clause names more or fewer block indices than the grid has axes."""
    target, axes = item.optional_vars, len(spec.grid)
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(part, ast.Starred) for part in target.elts):
        return None
    names = [ast.unparse(part) for part in target.elts]
    if len(names) == axes:
        return None
    fitting = names[0] if axes == 1 else f"({', '.join((names + ['bx', 'by', 'bz'][len(names) :])[:axes])})"
    remedy = f"write `as {fitting}`"
    if axes < len(names) <= len(AXES) and isinstance(item.context_expr, ast.Call):
        call = item.context_expr
        ones = [ast.Constant(1)] * (len(names) - axes)
        wider = ast.unparse(ast.Call(call.func, [*call.args, *ones], call.keywords))
        remedy += f", or `{wider}`" if not any(isinstance(part, ast.Starred) for part in call.args) else ""
    given = "1 name is" if len(names) == 1 else f"{len(names)} names are"
    problem = f"the launch has {axes} {'axis' if axes == 1 else 'axes'}, {given} given"
    return Refusal(say.BlockNames(problem=problem, remedy=remedy), target)


def _refused_launch(walker: Any, node: ast.With, mistake: Refusal | Poisoned) -> None:
    """Report a launch that is not possible, and walk its body for the mistakes there."""
    if isinstance(mistake, Refusal):
        walker.report(mistake, node)
    walker.complete = False
    walker.search_operands(node, mistake)
    target = node.items[0].optional_vars
    if target is not None:
        walker.poison(target)
    pretended = Kernel(LARGEST_CLUSTER, 1, 1, threads=(1024, 1, 1), cluster_dims=LARGEST_CLUSTER)
    launch(walker, node, pretended, None)


def _check_maker(function: Any, item: ast.withitem) -> None:
    """Other context managers are refused before they are made: `open` would already touch a file."""
    if str(getattr(function, "__module__", "")).startswith(__name__.split(".")[0]):
        return
    if isinstance(function, (type, BuiltinFunctionType)):
        raise context_of_python(item.context_expr, item.optional_vars)


def launch(walker: Any, node: ast.With, spec: Kernel, target: ast.expr | None) -> None:
    """One launch: the body runs once in every thread of every block."""
    builder = walker.builder
    if builder.launch is not None and not (walker.unsure and builder.launch.pretended):
        message = say.LaunchConfiguration(problem="a launch inside a launch", remedy="end the first `with` before it")
        raise Refusal(message, node.items[0].context_expr)
    for extent in spec.grid:
        if isinstance(extent, Value) and extent.reads:
            walker.locate(node.items[0].context_expr, builder.check_readable)
    blocks = [
        thread_axis(name, extent, f"blockIdx.{axis}")
        for name, extent, axis in zip(_block_names(target), spec.grid, AXES)
    ]
    names = ("tx", "ty", "tz")
    threads = [thread_axis(name, extent, f"threadIdx.{axis}") for name, extent, axis in zip(names, spec.threads, AXES)]
    indices = tuple(Value(axis.var, "int32") for axis, _ in blocks)
    run_launch(walker, node, blocks, threads, target, indices, spec.cluster)


def run_launch(
    walker: Any,
    node: Any,
    blocks: Any,
    threads: Any,
    target: ast.expr | None,
    indices: Any,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> None:
    """Walk the body of `node` as a launch with these axes, and emit it."""
    if not walker.begin_launch():
        return
    builder, span = walker.builder, walker.builder.span
    scope = walker.open("launch", node)
    outside = builder.launch  # of a launch in the body of a refused statement
    builder.launch = Launch(
        tuple((axis.var, extent) for axis, extent in threads),
        tuple((axis.var, extent) for axis, extent in blocks),
        cluster=cluster,
    )
    for var, extent in (*builder.launch.threads, *builder.launch.blocks):
        builder.ranges.bind(var, constant(0, "int32"), extent)
    leaving = None
    try:
        try:
            if target is not None:
                several = len(indices) > 1 or (isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 1)
                bind_target(walker, target, [indices if several else indices[0]], node)
            walker.suite(node.body)
        except ReturnValue as returned:  # a final `return` ends the kernel after the launch is emitted
            leaving = returned
        body = walker.close()  # it reads the elements that names still hold, which only threads can
    finally:
        builder.launch = outside
    for condition in reversed(walker.host_conditions):
        body = tir.IfThenElse(condition, body, None, span)
    if cluster != (1, 1, 1):
        extents = StringImm(",".join(map(str, cluster)))
        body = tir.AttrStmt(constant(0, "int32"), CLUSTER, extents, body, span)
    for axis, extent in reversed([*blocks, *threads]):
        body = tir.AttrStmt(axis, "thread_extent", extent, body, span)
    builder.append_at(body, span)
    close_launch(walker, scope)
    if leaving is not None:
        raise leaving


def _block_names(target: ast.expr | None) -> list[str]:
    """Block indices are called what the `as` clause calls them."""
    given = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [part.id if isinstance(part, ast.Name) else "" for part in given]
    return [
        name if name and name != "_" else default for name, default in zip([*names, "", "", ""][:3], ("bx", "by", "bz"))
    ]


def thread_axis(name: str, extent: Any, tag: str) -> tuple[Any, Any]:
    """The variable of a grid or block axis and its extent, as a launch binds them."""
    size = as_type(extent, "int32")
    return tir.IterVar(Range(constant(0, "int32"), size), tir.Var(name, "int32"), tir.IterVar.ThreadIndex, tag), size


def warp_groups(walker: Any, node: ast.With, spec: ws, target: ast.expr | None) -> None:
    """The statements run in these warp groups only, so names bound here are known only to them."""
    builder, span = walker.builder, walker.builder.span
    if builder.launch is None:
        message = say.LaunchConfiguration(
            problem="`T.ws` outside a launch", remedy="put it inside `with T.Kernel(...)`"
        )
        raise Refusal(message, node.items[0].context_expr)
    if target is not None:
        raise Refusal(say.UnsupportedWith(what="`T.ws` with `as`", remedy="leave `as` out"), target)
    scope = walker.open("if", node)
    walker.suite(node.body)
    body = walker.close()
    groups = StringImm(",".join(str(group) for group in spec.groups))
    builder.append_at(tir.AttrStmt(constant(0, "int32"), "tl.warp_groups", groups, body, span), span)
    outside = Scope("if", node, walker.scope)
    merge_branches(walker, [scope, outside], node, "`with T.ws`")


def reduce_scope(walker: Any, node: ast.With, spec: ReduceScope, target: ast.expr | None) -> None:
    """The statements combine values of threads by this reducer; names live on after it, as in Python."""
    _no_name(target)
    builder = walker.builder
    before, builder.reducer = builder.reducer, spec.reducer
    try:
        walker.suite(node.body)
    finally:
        builder.reducer = before


def _no_name(target: ast.expr | None) -> None:
    """`T.attr` has nothing to give a name to."""
    if target is not None:
        raise Refusal(say.UnsupportedWith(what="`T.attr` with `as`", remedy="leave `as` out"), target)
