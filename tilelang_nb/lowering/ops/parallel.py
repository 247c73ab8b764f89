"""T.Parallel: the iterations of a loop nest, dealt to the threads as its layout says.

A loop over the register digits of the layout remains per thread; the loop variables become sums of thread and
register digits; fragment elements become registers.  Iterations beyond the extent of a padded dimension are guarded.
Where several threads run the same iteration (a replicated layout), only the first of them touches memory.

A loop whose extent is known only at run time is flattened: thread t runs iterations t, t + threads, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx as tir
from tvm.ir import Range

from tilelang_nb.layout.fragment import Digit, Fragment
from tilelang_nb.layout.indexing import Part, Sum, split, variable
from tilelang_nb.layout.matrix import is_matrix_like

from ..context import LaunchContext
from ..index_arithmetic import fold_indices
from ..nests import perfect_nest
from ..rewrite import branch, constant, dtype_of, scope, statements, substitute, variables
from ..vectors import widest
from . import matrix_stores
from .copy import ASYNCHRONOUS

VECTOR = "tl.vector"  # a loop whose iterations may be done at once; decided by guard-accesses
PARALLEL = "tl.parallel"  # the outermost loop that remains of a T.Parallel nest
UNROLL_LIMIT = 64  # iterations per thread


def lower(outer: Any, launch: LaunchContext, lowering: Any) -> Any:
    """outer: the outermost For.  lowering: rewrites the statements of the body (`lower_tile_operations.Bodies`)."""
    loops, body = perfect_nest(outer)
    layout: Fragment = launch.facts["loops"][outer.loop_var]
    whole = outer.loop_var in launch.facts["whole-body"]
    _note_matrix_tiles(body, launch)
    if any(constant(loop.extent) is None for loop in loops):
        return _flattened(outer, loops, body, layout, launch, lowering)
    return _Dealt(loops, layout, launch).statement(body, whole, lowering, outer)


def _note_matrix_tiles(body: Any, launch: LaunchContext) -> None:
    """Shared tiles on the way to or from matrix registers, whose rows lie in different threads, are swizzled too."""
    used = variables(body)
    if any(var in launch.layouts and is_matrix_like(launch.layouts[var]) for var in used):
        tiles = launch.facts.setdefault("matrix tiles", {})
        for var in used:
            if isinstance(var.ty, tir.BufferType) and scope(var).startswith("shared"):
                tiles[var] = None


def first_replica(layout: Fragment, launch: LaunchContext) -> Any | None:
    """The condition that picks one of the threads that run the same iteration; None where there is only one."""
    condition = None
    for digit in layout.replication:
        term = tir.EQ(layout.part(launch.thread, digit, layout.threads), tir.const(0, "int32"))
        condition = term if condition is None else tir.And(condition, term)
    return condition


class _Dealt:
    """The loop variables in terms of thread and register digits."""

    def __init__(self, loops: Sequence[Any], layout: Fragment, launch: LaunchContext):
        self.loops, self.layout, self.launch = loops, layout, launch
        self.registers: dict[Digit, Any] = {}
        owner = {digit: k for k, digits in enumerate(layout.digits) for digit in digits}
        for digit in layout.register_digits():
            name = loops[owner[digit]].loop_var.name
            only = sum(not d.on_thread for d in layout.digits[owner[digit]]) == 1
            inner = digit is layout.digits[owner[digit]][-1]
            self.registers[digit] = tir.Var(name + ("_r" if only or not inner else "_v"), "int32")
            launch.analyzer.bind(self.registers[digit], Range(0, digit.extent))
        self.sums: dict[Any, Sum] = {}
        self.values: dict[Any, Any] = {}
        for loop, digits in zip(loops, layout.digits):
            var, start = loop.loop_var, constant(loop.min)
            base = variable(digits)
            self.sums[var] = base if start == 0 else Sum(base.parts, loop.min if start is None else start)
            value = self.total(base)
            if start != 0:
                value = value + loop.min
            self.values[var] = value if dtype_of(var) == "int32" else tir.Cast(dtype_of(var), value)

    def total(self, value: Sum) -> Any:
        result: Any = tir.const(0, "int32")
        for part in reversed(value.parts):
            term = self.part(part.digit)
            if part.weight > 1:
                term = term * part.weight
            result = term if isinstance(result, tir.IntImm) else result + term
        return result

    def part(self, digit: Digit) -> Any:
        """The value of a digit of the loop layout, or of a piece of one."""
        if digit.on_thread:
            return self.layout.part(self.launch.thread, digit, self.layout.threads)
        for whole, var in self.registers.items():
            if whole.stride <= digit.stride and digit.stride + 1 <= whole.stride * whole.extent:
                piece = Digit(digit.extent, "register", digit.stride // whole.stride)
                return self.layout.part(var, piece, whole.extent)
        raise AssertionError(f"no loop for {digit}")

    def register(self, fragment: Fragment, index: Sequence[Any], sums: Sequence[Sum | None]) -> Any:
        """The register of a fragment element: digits of the loop where they are known, else by division."""
        result: Any = tir.const(0, "int32")
        for dim in range(len(fragment.digits)):
            value_sum = sums[dim]
            parts = None if value_sum is None else _known(fragment, dim, value_sum)
            if parts is None:
                term: Any = _by_division(fragment, dim, index[dim])
            else:
                term = tir.const(0, "int32")
                for factor, digit in parts:
                    value = self.part(digit)
                    value = value * factor if factor != 1 else value
                    term = value if isinstance(term, tir.IntImm) and int(term.value) == 0 else term + value
            result = term if isinstance(result, tir.IntImm) and int(result.value) == 0 else result + term
        return result

    def statement(self, body: Any, whole: bool, lowering: Any, outer: Any) -> Any:
        launch, layout = self.launch, self.layout
        replica = first_replica(layout, launch)
        inner = lowering.inside(self, None if whole else replica)
        result = inner.statement(body)
        if matrix_stores.fits(outer, self.loops, body, layout, launch):
            return matrix_stores.stored(result, self.registers, layout, launch, outer.span)
        for dim, loop in reversed(list(enumerate(self.loops))):
            if layout.span(dim) > layout.shape[dim]:
                position = self.total(variable(layout.digits[dim]))
                result = branch(launch.analyzer.simplify(position < layout.shape[dim]), result, None, loop.span)
        result = self._walk(result, outer)
        if whole and replica is not None:
            result = branch(replica, result, None, outer.span)
        return result

    def _walk(self, result: Any, outer: Any) -> Any:
        """The loops over the register digits, the innermost one in vectors where all accesses are wide."""
        digits = list(self.layout.register_digits())
        # Registers have no addresses: where fragments are touched, every turn has to be known.
        few = self.layout.register_count <= UNROLL_LIMIT or self._touches_registers(result)
        kind = tir.ForKind.UNROLLED if few else tir.ForKind.SERIAL
        span = outer.span
        last = self.layout.digits[-1][-1] if self.layout.digits and self.layout.digits[-1] else None
        if last is not None and not last.on_thread and last in digits:
            digits.remove(last)
            var = self.registers[last]
            width = widest(stores(result), var, last.extent, self.launch)
            if width > 1:
                result = in_vectors(result, var, last.extent, width, kind, span, self.launch)
            else:
                result = tir.For(var, 0, last.extent, kind, result, span=span)
        for digit in reversed(digits):
            result = tir.For(self.registers[digit], 0, digit.extent, kind, result, span=span)
        if ASYNCHRONOUS in outer.annotations and not isinstance(result, tir.For):
            result = tir.For(tir.Var("once", "int32"), 0, 1, kind, result, span=span)  # what carries the mark
        if isinstance(result, tir.For):
            annotations = {**result.annotations, PARALLEL: 1}
            if ASYNCHRONOUS in outer.annotations:
                annotations[ASYNCHRONOUS] = 1
            result = tir.For(
                result.loop_var,
                result.min,
                result.extent,
                tir.ForKind(result.kind),
                result.body,
                annotations=annotations,
                span=span,
            )
        return result

    def _touches_registers(self, body: Any) -> bool:
        held = set(self.launch.registers.values())
        return not held.isdisjoint(variables(body))


def in_vectors(body: Any, var: Any, extent: int, width: int, kind: Any, span: Any, launch: LaunchContext) -> Any:
    """The loop over `var` as groups of `width` iterations, marked as vectors."""
    lane = tir.Var(var.name.removesuffix("_r").removesuffix("_v") + "_v", "int32")
    launch.analyzer.bind(lane, Range(0, width))
    group, value = None, lane
    if extent != width:
        group = tir.Var(var.name, "int32")
        launch.analyzer.bind(group, Range(0, extent // width))
        value = group * width + lane
    if dtype_of(var) != "int32":
        value = tir.Cast(dtype_of(var), value)
    body = fold_indices(substitute(body, {var: value}), launch.analyzer)
    loop = tir.For(lane, 0, width, tir.ForKind.SERIAL, body, annotations={VECTOR: 1}, span=span)
    return loop if group is None else tir.For(group, 0, extent // width, kind, loop, annotations={}, span=span)


def _known(fragment: Fragment, dim: int, value: Sum) -> list[tuple[int, Digit]] | None:
    """(factor, digit) of the register index of one dimension; None where the digits do not line up."""
    if not (isinstance(value.rest, int) and value.rest == 0):
        return None
    found: list[tuple[int, Digit]] = []
    digits = [(w, d) for w, d in zip(fragment.weights(dim), fragment.digits[dim]) if not d.on_thread]
    for weight, digit in digits:
        end = weight * digit.extent
        for part in value.parts:
            low, high = max(part.weight, weight), min(part.end, end)
            if low >= high:
                continue
            if low % part.weight or high % part.weight or low % weight:
                return None
            piece = part
            try:
                if low > piece.weight:
                    piece = _upper(piece, low)
                if high < piece.end:
                    piece = _lower(piece, high)
            except ValueError:
                return None
            found.append((digit.stride * (low // weight), piece.digit))
    return found


def _upper(part: Part, weight: int) -> Part:
    if part.digit.extent % (weight // part.weight):
        raise ValueError
    return split(part, weight)[1]


def _lower(part: Part, weight: int) -> Part:
    if part.digit.extent % (weight // part.weight):
        raise ValueError
    return split(part, weight)[0]


def _by_division(fragment: Fragment, dim: int, index: Any) -> Any:
    """The register part of one dimension by floor divisions of the index itself."""
    result: Any = tir.const(0, "int32")
    for position, (weight, digit) in enumerate(zip(fragment.weights(dim), fragment.digits[dim])):
        if digit.on_thread:
            continue
        value = index // weight if weight > 1 else index
        if position:
            value = value % digit.extent
        value = value * digit.stride if digit.stride > 1 else value
        result = value if isinstance(result, tir.IntImm) and int(result.value) == 0 else result + value
    return result


def stores(body: Any) -> list[Any]:
    """The statements of a body with its plain `if`s opened; every other statement stays as it is."""
    found = []
    for node in statements(body):
        if isinstance(node, tir.IfThenElse) and node.else_case is None:
            found += stores(node.then_case)
        else:
            found.append(node)
    return found


def _flattened(
    outer: Any, loops: Sequence[Any], body: Any, layout: Fragment, launch: LaunchContext, lowering: Any
) -> Any:
    if not layout.shape:  # every thread runs all of it
        inner = lowering.inside(None, first_replica(layout, launch))
        result = inner.statement(body)
        for loop in reversed(loops):
            result = tir.For(
                loop.loop_var, loop.min, loop.extent, tir.ForKind.SERIAL, result, annotations={}, span=loop.span
            )
        return result
    dtype = dtype_of(loops[0].extent)
    total = loops[0].extent
    for loop in loops[1:]:
        total = total * loop.extent
    count = launch.thread_count
    turn = tir.Var("turn", dtype)
    thread = launch.thread if dtype == "int32" else tir.Cast(dtype, launch.thread)
    number = turn * count + thread if count > 1 else turn
    values, rest = {}, number
    for k, loop in reversed(list(enumerate(loops))):
        value = rest if k == 0 else rest % loop.extent
        values[loop.loop_var] = value if constant(loop.min) == 0 else value + loop.min
        rest = rest // loop.extent if k else rest
    inner = lowering.inside(None, None)
    result = inner.statement(substitute(body, values))
    result = branch(number < total, result, None, outer.span)
    turns = (total + (count - 1)) // count if count > 1 else total
    return tir.For(
        turn, tir.const(0, dtype), turns, tir.ForKind.SERIAL, result, annotations={PARALLEL: 1}, span=outer.span
    )
