"""What a statement touches: reads, writes and atomics of shared memory, and of global memory within the block.

Accesses that wait for a barrier are kept in a `Pending` set, grouped by buffer, kind and form, so that its size
depends on how many different kinds of access a program has and not on how many statements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm_ffi import WalkResult

from .addresses import Form, Prover, Window
from .index_sums import identity
from .memory_overlap import Memory

READ, WRITE, ATOMIC = "read", "write", "atomic"
_MOST_GROUPS = 24  # of one buffer; beyond it an access is taken to touch anything in it
_MOST_OFFSETS = 16  # compared one by one, beyond it as a range


class Access(NamedTuple):
    """form: the indices without constants; offsets: the constants."""

    memory: Memory
    kind: str
    form: Form
    offsets: tuple[int, ...]
    region: str = ""  # the warp groups that execute it, where it is not the whole block


class _Group:
    """Accesses of one kind and form; they differ in their constants."""

    __slots__ = ("form", "kind", "memory", "offsets", "region", "windows")

    def __init__(self, memory: Memory, kind: str, form: Form, region: str, windows: Any, offsets: set[Any]):
        self.memory, self.kind, self.form, self.region = memory, kind, form, region
        self.windows: tuple[Window, ...] = windows
        self.offsets = offsets  # all constants, or more than _MOST_OFFSETS of them

    def with_form(self, form: Form) -> _Group:
        return _Group(self.memory, self.kind, form, self.region, self.windows, self.offsets)

    def joined(self, other: _Group) -> _Group:
        if other.offsets <= self.offsets and self.windows == other.windows:
            return self
        windows = tuple(mine.joined(theirs) for mine, theirs in zip(self.windows, other.windows))
        offsets = self.offsets | other.offsets if len(self.offsets) <= _MOST_OFFSETS else self.offsets
        return _Group(self.memory, self.kind, self.form, self.region, windows, offsets)


@dataclass(frozen=True)
class Conflict:
    """Two accesses that no program order arranges."""

    first: Memory
    first_kind: str
    second_kind: str


class Pending:
    """Accesses since the last barrier."""

    __slots__ = ("groups",)

    def __init__(self, accesses: Iterable[Access] = ()):
        self.groups: dict[Memory, dict[Any, _Group]] = {}  # then by (kind, form, region)
        for memory, kind, form, offsets, region in accesses:
            windows = tuple(Window(offset, offset, 0) for offset in offsets)
            self._insert(_Group(memory, kind, form, region, windows, {offsets}))

    def __bool__(self) -> bool:
        return bool(self.groups)

    def _insert(self, group: _Group) -> None:
        groups = self.groups.setdefault(group.memory, {})
        key = (group.kind, group.form, group.region)
        known = groups.get(key)
        if known is None and len(groups) >= _MOST_GROUPS:
            form = Form((None,) * len(group.form.dims), 0)
            key, group = (group.kind, form, group.region), group.with_form(form)
            known = groups.get(key)
        groups[key] = group if known is None else known.joined(group)

    def add(self, other: Pending) -> None:
        for groups in other.groups.values():
            for group in groups.values():
                self._insert(group)

    def copy(self) -> Pending:
        result = Pending()
        result.groups = {memory: dict(groups) for memory, groups in self.groups.items()}
        return result

    def stale(self, variables: Iterable[int], prover: Prover, turn: int | None = None) -> Pending:
        """The same accesses after the variables took other values.

        turn: the variable of a loop whose next turn has begun: it differs from what it was.
        """
        variables, result = frozenset(variables), Pending()
        for groups in self.groups.values():
            for group in groups.values():
                form, moves = group.form, prover.variables(group.form)
                old = (form.stale | (variables - {turn})) & moves
                earlier = (form.earlier | {turn}) & moves if turn is not None else form.earlier - variables
                if turn is None:
                    old |= form.earlier & variables
                if (old, earlier) != (form.stale, form.earlier):
                    group = group.with_form(form._replace(stale=old, earlier=earlier - old))
                result._insert(group)
        return result


class Conflicts:
    """Compares sets of accesses; remembers what it found."""

    def __init__(self, prover: Prover, independent: Callable[[str, str], bool]):
        """independent(region, region): the user orders these two sets of threads himself."""
        self.prover, self.independent = prover, independent
        self._known: dict[Any, bool] = {}
        self._safe: dict[Any, tuple[Window, ...]] = {}  # differences of constants without a conflict, by forms

    def between(self, first: Pending, second: Pending) -> Conflict | None:
        """A conflict of an earlier with a later set of accesses."""
        if not first.groups or not second.groups:
            return None
        for memory, later in second.groups.items():
            for other, earlier in first.groups.items():
                if other is not memory and not memory.overlaps(other):
                    continue
                for b in later.values():
                    for a in earlier.values():
                        if a.kind == b.kind != WRITE or self.independent(a.region, b.region):
                            continue
                        if memory.key != other.key or self._conflict(a, b):
                            return Conflict(other, a.kind, b.kind)
        return None

    def _conflict(self, a: _Group, b: _Group) -> bool:
        pair = (a.form, b.form)
        offsets = tuple(mine.minus(theirs) for mine, theirs in zip(a.windows, b.windows))
        for dim_a, dim_b, offset in zip(a.form.dims, b.form.dims, offsets):
            if dim_a == dim_b == _CONSTANT and (offset.low > 0 or offset.high < 0):
                return False
        safe = self._safe.get(pair)
        if safe is not None and all(window.holds(offset) for window, offset in zip(safe, offsets)):
            return False
        if not self._ask(pair, offsets):
            # More of the same is likely to come: prove it for twice the range if that is possible.
            wider = tuple(_widened(offset) for offset in offsets)
            self._safe[pair] = offsets if self._ask(pair, wider) else wider
            return False
        if len(a.offsets) > _MOST_OFFSETS or len(b.offsets) > _MOST_OFFSETS:
            return True
        if len(a.offsets) == len(b.offsets) == 1:
            return True
        return any(
            self._ask(pair, tuple(Window(x - y, x - y, 0) for x, y in zip(one, other)))
            for one in a.offsets
            for other in b.offsets
        )

    def own_elements(self, form: Form) -> bool:
        """No two threads touch one place when they execute the access together."""
        return not self._ask((form, form), (Window(0, 0, 0),) * len(form.dims))

    def _ask(self, pair: tuple[Form, Form], offsets: tuple[Window, ...]) -> bool:
        key = (pair, offsets)
        if key not in self._known:
            self._known[key] = self.prover.relate(*pair, offsets) == "unordered"
        return self._known[key]


_CONSTANT: frozenset[Any] = frozenset()  # a dimension whose index is a constant


def _widened(window: Window) -> Window:
    """Twice as far to both sides, on the same grid."""
    step = window.step or math.gcd(window.low, window.high) or 1
    more = max(1, (window.high - window.low) // step + 1) * step
    return Window(window.low - more, window.high + more, step)


class AccessReader:
    """Finds the accesses of expressions and statements.

    memory: which buffers matter, and where they are.
    """

    def __init__(self, prover: Prover, memory: Mapping[Any, Memory]):
        self.prover = prover
        self.memory = {identity(buffer): found for buffer, found in memory.items()}
        self.mask, self.region = 0, ""
        self.copied: dict[str, dict[Memory, int]] = {}  # by region: targets of asynchronous copies, and their ranks
        self._found: list[Access] = []

    def reads(self, *expressions: Any) -> list[Access]:
        """Everything that evaluating the expressions touches."""
        self._found = []
        for expr in expressions:
            self._expression(expr)
        return self._found

    def _expression(self, root: Any) -> None:
        waiting = [root]
        while waiting:  # no recursion: expressions may be deep
            expr = waiting.pop()
            kind = type(expr)
            if kind in _LEAVES:
                continue
            if kind in _BINARY:
                waiting.append(expr.a)
                waiting.append(expr.b)
            elif kind is tvm.ir.TensorLoad:
                memory = self.memory.get(identity(expr.source))
                if memory is not None:
                    self._found.append(self._access(memory, READ, expr.indices))
                waiting.extend(expr.indices)
            elif kind is tir.Cast:
                waiting.append(expr.value)
            elif kind is tvm.ir.Call:
                waiting.extend(self._call(expr))
            elif kind is tir.Not:
                waiting.append(expr.a)
            elif kind is tir.Select:
                waiting.extend((expr.condition, expr.true_value, expr.false_value))
            else:
                tvm_ffi.structural_walk(
                    expr, [(tvm.ir.Call, self._whole_call), (tvm.ir.TensorLoad, self._load)], order="pre"
                )

    def note_copy(self, call: Any, region: str) -> None:
        """The target of an asynchronous copy that these warp groups start."""
        load = pointed(call.args[0])
        if load is not None and identity(load.source) in self.memory:
            self.copied.setdefault(region, {})[self.memory[identity(load.source)]] = len(load.indices)

    def write(self, buffer: Any, indices: list[Any]) -> list[Access]:
        """The write of a store, without what its operands read."""
        memory = self.memory.get(identity(buffer))
        return [] if memory is None else [self._access(memory, WRITE, indices)]

    def _access(self, memory: Memory, kind: str, indices: Any) -> Access:
        dims, offsets = [], []
        for index in indices:
            try:
                value = self.prover.parse(index)
            except RecursionError:
                value = None
            dims.append(None if value is None else frozenset(value.terms.items()))
            offsets.append(0 if value is None else value.constant)
        return Access(memory, kind, Form(tuple(dims), self.mask), tuple(offsets), self.region)

    def _load(self, load: Any) -> None:
        memory = self.memory.get(identity(load.source))
        if memory is not None:
            self._found.append(self._access(memory, READ, load.indices))

    def _anywhere(self, buffer: Any) -> None:
        memory = self.memory.get(identity(buffer))
        if memory is not None:
            form = Form((None,) * len(buffer.ty.shape), self.mask)
            for kind in (READ, WRITE):
                self._found.append(Access(memory, kind, form, (0,) * len(form.dims), self.region))

    def _whole_call(self, call: Any) -> Any:
        for expr in self._call(call):
            self._expression(expr)
        return WalkResult.SKIP

    def _call(self, call: Any) -> list[Any]:
        """Notes what a call touches through pointers; the operands that are still to be looked at."""
        name = getattr(call.op, "name", "")
        if name in ("tirx.call_extern", "tirx.call_pure_extern"):
            name = call.args[0].value
        if name.startswith(BULK_COPY):
            return self._bulk_copy(call)
        if name in _AT_BLOCK:
            return self._at_block(call, _AT_BLOCK[name])
        if name in _WIDE_CALLS:
            return self._wide(call, _WIDE_CALLS[name])
        kind = _ELEMENT_CALLS.get(name) or (ATOMIC if name.startswith("tl_atomic_") else None)
        if kind is not None:
            rest: list[Any] = []
            for argument in call.args:
                rest += self._element(argument, kind)
            return rest
        if name == "tirx.address_of":
            self._anywhere(call.args[0].source)
            return list(call.args[0].indices)
        if name in ("tirx.tvm_access_ptr", "tirx.buffer_data"):
            tvm_ffi.structural_walk(call, (tvm.ir.Var, self._anywhere))
            return []
        return list(call.args)

    def _at_block(self, call: Any, source: int | None) -> list[Any]:
        """Pointers are to memory of another block of the cluster, but for that of the source, which is read."""
        rest: list[Any] = []
        for position, argument in enumerate(call.args[1:]):
            load = pointed(argument)
            if load is None:
                rest += [] if isinstance(argument, _LEAVES) else [argument]
                continue
            rest += list(load.indices)
            memory = self.memory.get(identity(load.source))
            if position == source and memory is not None:
                form = Form((None,) * len(load.indices), self.mask)
                self._found.append(Access(memory, READ, form, (0,) * len(form.dims), self.region))
        return rest

    def _bulk_copy(self, call: Any) -> list[Any]:
        """A load writes a tile and a store reads one; the other pointers are to maps and barriers."""
        kind, rest, waiting = READ if "s2g" in call.op.name else WRITE, [], True
        for argument in call.args:
            load = pointed(argument)
            if load is not None and type(load) is tvm.ir.TensorLoad:
                rest += list(load.indices)
                if waiting:
                    self._around(load, kind)
                waiting = False
            elif type(argument) is not tvm.ir.Call and not isinstance(argument, _LEAVES):
                rest.append(argument)
        return rest

    def _around(self, load: Any, kind: str) -> None:
        """Notes an access of the matrix or vector around an element: it lies in the last two dimensions."""
        memory = self.memory.get(identity(load.source))
        if memory is not None:
            access = self._access(memory, kind, load.indices)
            exact = max(len(access.form.dims) - 2, 0)
            dims = (*access.form.dims[:exact], *(None,) * (len(access.form.dims) - exact))
            offsets = (*access.offsets[:exact], *(0,) * (len(access.offsets) - exact))
            self._found.append(access._replace(form=Form(dims, self.mask), offsets=offsets))

    def _wide(self, call: Any, kinds: tuple[str, ...]) -> list[Any]:
        """Notes what a call touches around the elements that it is given, one kind for each pointer.

        Matrices and vectors lie in the last two dimensions.
        """
        rest: list[Any] = []
        waiting = list(kinds)
        for argument in call.args:
            load = pointed(argument)
            if load is None:
                if not isinstance(argument, _LEAVES):
                    rest.append(argument)
                continue
            rest += list(load.indices)
            self._around(load, waiting.pop(0))
        return rest

    def landing(self) -> list[Access]:
        """What waiting for asynchronous copies may have brought: writes of every place that these threads copy to."""
        targets: dict[Memory, int] = {}
        for region, copied in self.copied.items():
            if not region or not self.region or region == self.region:
                targets |= copied
        return [
            Access(memory, WRITE, Form((None,) * rank, self.mask), (0,) * rank, self.region)
            for memory, rank in targets.items()
        ]

    def _element(self, argument: Any, kind: str) -> list[Any]:
        """Notes the element that a pointer is to; the operands that are still to be looked at."""
        load = pointed(argument)
        if load is None:
            return [argument]
        memory = self.memory.get(identity(load.source))
        if memory is not None:
            self._found.append(self._access(memory, kind, load.indices))
        return list(load.indices)


def pointed(argument: Any) -> Any | None:
    """The load whose address an argument is; None for any other argument."""
    while type(argument) is tvm.ir.Call and argument.op.name == "tirx.cuda.cvta_generic_to_shared":
        argument = argument.args[0]
    if type(argument) is not tvm.ir.Call or argument.op.name != "tirx.address_of":
        return None
    return argument.args[0]


def starts_copy(expr: Any) -> bool:
    """cp.async: what it writes is there after a wait."""
    return type(expr) is tvm.ir.Call and expr.op.name in _COPIES


def starts_bulk_load(expr: Any) -> bool:
    """A bulk copy into shared memory: what it writes is there when its barrier says so."""
    return type(expr) is tvm.ir.Call and expr.op.name.startswith(BULK_COPY + "g2s")


def waits_for_copies(expr: Any) -> bool:
    """cp.async.wait_group and wait_all."""
    return type(expr) is tvm.ir.Call and expr.op.name in ("tirx.ptx.cp_async_wait_group", "tirx.ptx.cp_async_wait_all")


_COPIES = tuple(f"tirx.ptx.cp_async_{name}" for name in ("cg", "ca", "cg_src_size", "ca_src_size"))
BULK_COPY = "tirx.ptx.cp_async_bulk_tensor_"
# Calls that touch more than the element whose address they are given: the kinds of access by pointer.
_WIDE_CALLS = {
    "tirx.ptx.ldmatrix": (READ,),
    "tirx.ptx.stmatrix": (WRITE,),
    "tl_wgmma_descriptor": (READ,),
    **dict.fromkeys(_COPIES, (WRITE, READ)),
}
# Calls that write into another block of the cluster: which of their pointers is to a source of the own block.
_AT_BLOCK = {"tl_store_at_block": None, "tl_arrive_at_block": None, "tl_expect_at_block": None, "tl_copy_to_block": 1}
_LEAVES = (tir.IntImm, tir.FloatImm, tvm.ir.Var, tvm.ir.StringImm)
_BINARY = frozenset(
    (
        *(tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max),
        *(tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE, tir.And, tir.Or),
        *(tir.BitwiseAnd, tir.BitwiseOr, tir.BitwiseXor, tir.LShift, tir.RShift),
    )
)
# mbarriers: initialising one is a write, waiting and arriving are ordered by the hardware among themselves
_ELEMENT_CALLS = {
    "tirx.ptx.mbarrier_init": WRITE,
    "tirx.ptx.mbarrier_arrive_nocount": ATOMIC,
    "tirx.ptx.mbarrier_arrive": ATOMIC,
    "tirx.ptx.mbarrier_arrive_expect_tx": ATOMIC,
    "tirx.ptx.mbarrier_expect_tx": ATOMIC,
    "tirx.ptx.cp_async_mbarrier_arrive": ATOMIC,
    "tirx.cuda.mbarrier_wait": ATOMIC,
    "tirx.cuda.mbarrier_wait_acquire_cluster": ATOMIC,
}
