"""Device loops: bounds with `range`'s meaning, loop variables, `T.Persistent`, and loops bound to thread axes."""

from __future__ import annotations

import ast
import math
from typing import Any

from tvm import tirx as tir

from ..language import loops as loop_specs
from ..language.fragment_layouts import Fragment
from ..language.launch import thread_count
from ..language.layout_tables import loop_table
from ..language.loops import LOOP_LAYOUT, DeviceLoop
from ..language.operands import IN_A_LAUNCH, described
from ..language.promotion import as_type, constant, is_integer, promote, strong
from ..language.values import Value, number, simplified
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import with_article
from .assign import bind_target
from .launches import run_launch, thread_axis
from .loop_counts import Plan, known_step, saturated, unknown_step
from .merge import merge_loop
from .names import bound_names
from .schedules import check_schedule
from .thread_axes import thread_index
from .unroll import Node, Turn

KINDS = {
    "serial": tir.ForKind.SERIAL,
    "unroll": tir.ForKind.UNROLLED,
    "vectorized": tir.ForKind.VECTORIZED,
    "parallel": tir.ForKind.PARALLEL,
    "pipelined": tir.ForKind.SERIAL,
    "grid": tir.ForKind.SERIAL,
    "persistent": tir.ForKind.SERIAL,
}
RECORDED_TURNS = 1024  # turns of a `T.unroll` loop that the record lists


def _launch_for(spec: DeviceLoop) -> str:
    """What to write around a loop that stands outside a launch."""
    start, stop, step = spec.dims[0] if len(spec.dims) == 1 else (None, None, None)
    if (start, step) != (0, 1) or not isinstance(stop, int) or stop <= 128:
        return IN_A_LAUNCH
    launch = f"with T.Kernel(T.ceildiv({stop}, 128), threads=128) as bx:"
    return f"put it inside a launch, `{launch}`, whose blocks take 128 turns each: `for i in T.Parallel(128)`"


def device_loop(walker: Any, node: ast.For, spec: DeviceLoop, loop: Any) -> None:
    """One loop, or directly nested ones for several loop variables."""
    builder, span = walker.builder, walker.builder.span
    if builder.launch is None:
        walker.locate(node.iter, builder.allow, "a loop", _launch_for(spec))
    walker.locate(node.iter, builder.allow, "a loop")
    targets = _targets(node, spec)
    names = bound_names(node)
    walker.declare_before(node, names)
    persistent = spec.kind == "persistent"
    ranges = ((0, loop_specs.persistent_waves(spec), 1),) if persistent else spec.dims
    labels = ("wave",) if persistent else tuple(target.id for target in targets)
    plans = [walker.locate(node.iter, bounds, walker, label, r) for label, r in zip(labels, ranges)]
    if spec.kind not in ("serial", "unroll", "grid"):
        plans = [saturated(plan) for plan in plans]
    _check_elements(node, spec, plans)
    scope = walker.open("parallel" if spec.kind == "parallel" else "for", node, names)
    loop.scope = scope
    loops, values = [], []
    for label, (start, extent, step, dtype, counter) in zip(labels, plans):
        plain = not isinstance(step, Value) and step == 1 and counter == dtype
        var = tir.Var(label if plain else f"{label}_turn", counter)
        loops.append((var, as_type(start, dtype) if plain else constant(0, counter), extent))
        builder.ranges.bind(*loops[-1])
        value = Value(var, counter, scope)
        stepped = value if not isinstance(step, Value) and step == 1 else value * step
        values.append(value if plain else (start + stepped).astype(dtype))
    value = None
    inside = None
    if persistent:
        inside, values = loop_specs.persistent_tile(spec, values[0])
        values = list(values)
    record = _unrolled(walker, node, spec, plans)
    if record is not None:
        walker.record.stack.append(turn := record.iterations[0] if record.iterations else Turn(""))
    guard, failures = None, walker.record.failures
    walker.loops.append(loop)
    try:
        if inside is not None and not (isinstance(inside, bool) and inside):
            guard = walker.open("if", node)
        first = builder.count
        for target in targets:
            box = [values.pop(0)]
            bind_target(walker, target, box, node)
        walker.suite(node.body)
    finally:
        walker.loops.pop()
        if record is not None:
            walker.record.end(turn)
            for turn in record.iterations:
                turn.children = record.iterations[0].children
                turn.first_statement, turn.last_statement = first, builder.count - 1
        if guard is not None:
            guarded = walker.close()
            builder.append_at(tir.IfThenElse(inside.use(), guarded, None, span), span)
        body = walker.close()
    if spec.kind == "pipelined" and walker.record.failures == failures:  # else statements are missing
        walker.locate(node.iter, check_schedule, spec, body, node.iter)
    annotations = walker.locate(node.iter, _annotations, spec, builder)
    for var, start, extent in reversed(loops):
        body = tir.For(var, start, extent, KINDS[spec.kind], body, annotations=annotations, span=span)
    builder.append_at(body, span)
    merge_loop(walker, scope, {target.id for target in targets})


def _targets(node: ast.For, spec: DeviceLoop) -> list[ast.Name]:
    given = list(node.target.elts) if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
    for target in given:
        if not isinstance(target, ast.Name):
            message = say.UnsupportedSyntax(
                what="a device loop into something that is no name", remedy="use a plain name"
            )
            raise Refusal(message, target)
    if len(given) != len(spec.dims):
        count = len(spec.dims)
        problem = f"{len(given)} target{'s' * (len(given) != 1)} for {count} loop variable{'s' * (count != 1)}"
        raise Refusal(say.BadArgument(problem=problem, remedy=f"write {count} name{'s' * (count != 1)}"), node.target)
    return given  # type: ignore[return-value]


def _check_elements(node: ast.For, spec: DeviceLoop, plans: list[Any]) -> None:
    """TL004 for more elements in a `T.Parallel` than its threads can count."""
    extents = [int(extent.value) for _, extent, *_ in plans if isinstance(extent, tir.IntImm)]
    if spec.kind == "parallel" and math.prod(extents) >= 2**31:
        problem = f"`T.Parallel` over {math.prod(extents):,} elements"
        raise Refusal(say.BadArgument(problem=problem, remedy="it has to be below 2**31: use more blocks"), node.iter)


def _annotations(spec: DeviceLoop, builder: Any) -> dict[str, Any]:
    own = ("wave_size", "index", "group_size") if spec.kind == "persistent" else ()
    found = {name: value for name, value in spec.annotations.items() if name not in own}
    if spec.kind == "persistent" and not found.get("num_stages"):
        found.pop("num_stages", None)
    if isinstance(found.get(LOOP_LAYOUT), Fragment):
        extents = [stop - start for start, stop, _ in spec.dims]
        key = f"layout{len(builder.layouts)}"
        builder.layouts[key] = loop_table(found[LOOP_LAYOUT], extents, thread_count())
        found[LOOP_LAYOUT] = key
    return {f"tl.{name}": value.use() if isinstance(value, Value) else value for name, value in found.items()}


def _unrolled(walker: Any, node: ast.For, spec: DeviceLoop, plans: list[Any]) -> Node | None:
    """The record of a `T.unroll` of constant extent; its turns share their statements."""
    if spec.kind != "unroll":
        return None
    start, stop, step = spec.dims[0]
    if any(isinstance(bound, Value) for bound in (start, stop, step)):
        return None
    turns = range(start, stop, step)
    label = ast.unparse(node.target)
    record = walker.record.enter(Node("unroll", node.lineno, label))
    record.iterations = [Turn(str(turn), bound={label: str(turn)}) for turn in turns[:RECORDED_TURNS]]
    return record


def bounds(walker: Any, name: str, given: tuple[Any, Any, Any]) -> Plan:
    """The plan of a loop variable.

    Bounds that read memory are evaluated once, before the loop.
    """
    start, stop, step = (kept(walker, bound) for bound in given)
    dtype = None
    for bound in (start, stop):
        if isinstance(bound, Value):
            if not is_integer(bound.dtype):
                message = say.BadArgument(
                    problem=f"a loop bound is {with_article(bound.dtype)} value", remedy="cast it to int32"
                )
                raise Refusal(message)
            dtype = bound.dtype if dtype is None else promote(dtype, bound.dtype)
    for bound in (start, stop, step):
        if not isinstance(bound, (Value, int)):
            raise Refusal(say.BadArgument(problem=f"a loop bound is {described(bound)}", remedy="give an integer"))
        if isinstance(bound, int):
            loop_specs.check_bound(bound)
            literal = strong("int", bound)
            dtype = literal if dtype is None else promote(dtype, literal) if literal == "int64" else dtype
    assert dtype is not None
    if dtype.startswith("uint"):  # turns of a loop are counted in signed integers
        dtype = "int64" if dtype in ("uint32", "uint64") else "int32"
    elif dtype in ("int8", "int16", "int4"):
        dtype = "int32"
    start, stop, step = (b.astype(dtype) if isinstance(b, Value) else b for b in (start, stop, step))
    if not isinstance(step, Value):
        if step == 0:
            raise Refusal(say.ZeroStep())
        if not isinstance(start, Value) and not isinstance(stop, Value):
            turns = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)  # `len` ends at 2**63
            loop_specs.check_bound(turns, "the number of turns")
            dtype = dtype if turns < 2**31 else "int64"
            return Plan(start, constant(turns, dtype), step, dtype, dtype)
        return known_step(walker.builder.ranges, start, stop, step, dtype)
    plan = unknown_step(walker.builder.ranges, start, stop, step, dtype)
    return plan._replace(extent=walker.builder.bind(f"{name}_turns", plan.extent, plan.counter))


def kept(walker: Any, bound: Any) -> Any:
    """What is bound before a loop as the loop may read it.

    A load becomes a value, since the loop may store to its place.
    """
    if isinstance(bound, Value):
        if bound.reads:
            walker.builder.keep(bound, "bound")
        return simplified(bound)
    found = number(bound)
    return bound if found is None else found


def bound_loop(walker: Any, node: ast.For, spec: DeviceLoop) -> None:
    """`T.thread_binding`: the variable is the index along a thread axis of the launch; outside of one it makes it."""
    (target,) = _targets(node, spec)
    if walker.builder.launch is None:
        _launch_of_loops(walker, node)
        return
    bind_target(walker, target, [thread_index(walker, spec, node.iter)], node)
    walker.suite(node.body)


def _launch_of_loops(walker: Any, node: ast.For) -> None:
    """Nested `T.thread_binding` loops outside a launch: together they are the launch."""
    axes: dict[str, Any] = {}
    targets: list[tuple[ast.Name, str]] = []
    inner: Any = node
    while True:
        spec = walker.evaluate(inner.iter)
        if not (isinstance(spec, DeviceLoop) and spec.kind == "thread_binding"):
            break
        (target,) = _targets(inner, spec)
        start, stop, _ = spec.dims[0]
        tag = str(spec.annotations["thread"])
        axes[tag] = thread_axis(target.id, simplified(stop - start), tag)
        targets.append((target, tag))
        if len(inner.body) != 1 or not isinstance(inner.body[0], ast.For):
            break
        inner = inner.body[0]
    body = inner.body if targets[-1][0] is inner.target else [inner]
    for tag in ("blockIdx.x", "threadIdx.x"):
        axes.setdefault(tag, thread_axis(tag[0] + "x", 1, tag))
    blocks = [axes[tag] for tag in sorted(axes) if tag.startswith("blockIdx")]
    threads = [axes[tag] for tag in sorted(axes) if tag.startswith("threadIdx")]
    names = ast.Tuple([target for target, _ in targets], ast.Store())
    indices = tuple(Value(axes[tag][0].var, "int32") for _, tag in targets)
    launch = ast.With([], body)
    ast.copy_location(names, node.target)
    ast.copy_location(launch, node)
    run_launch(walker, launch, blocks, threads, names if len(targets) > 1 else targets[0][0], indices)
