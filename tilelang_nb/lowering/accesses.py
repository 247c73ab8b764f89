"""What a statement touches: reads, writes and atomics of shared memory, and of global memory within the block.

Accesses that wait for a barrier are kept in a `Pending` set, grouped by buffer, kind and form, so that its size
depends on how many different kinds of access a program has and not on how many statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx as tir
from tvm_ffi import WalkResult

from .addresses import Form, Prover

READ, WRITE, ATOMIC = "read", "write", "atomic"
_MOST_GROUPS = 24  # of one buffer; beyond it an access is taken to touch anything in it
_MOST_OFFSETS = 16  # compared one by one, beyond it as a range


@dataclass(frozen=True, eq=False)
class Memory:
    """A buffer as far as overlap goes: two memories share bytes only where their ranges of one space do.

    space: the arena, or the buffer itself where nothing else can lie in its place.
    key: equal for views that address the same elements by the same indices.
    """

    space: Any
    begin: int
    end: int
    key: Any
    name: str
    is_shared: bool

    def overlaps(self, other: Memory) -> bool:
        return self.space == other.space and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class Access:
    """form: the indices without constants; offsets: the constants."""

    memory: Memory
    kind: str
    form: Form
    offsets: tuple[int, ...]
    region: str = ""  # the warp groups that execute it, where it is not the whole block


@dataclass
class _Group:
    memory: Memory
    kind: str
    form: Form
    region: str
    low: list[int]
    high: list[int]
    offsets: set[tuple[int, ...]]

    def stretch(self, other: _Group) -> None:
        self.low = [min(pair) for pair in zip(self.low, other.low)]
        self.high = [max(pair) for pair in zip(self.high, other.high)]
        if len(self.offsets) <= _MOST_OFFSETS:
            self.offsets = self.offsets | other.offsets


@dataclass(frozen=True)
class Conflict:
    """Two accesses that no program order arranges."""

    first: Memory
    first_kind: str
    second_kind: str


class Pending:
    """Accesses since the last barrier."""

    def __init__(self, accesses: Iterable[Access] = ()):
        self.groups: dict[Any, dict[Any, _Group]] = {}  # memory -> (kind, form, region) -> group
        for access in accesses:
            self._insert(
                _Group(
                    access.memory,
                    access.kind,
                    access.form,
                    access.region,
                    list(access.offsets),
                    list(access.offsets),
                    {access.offsets},
                )
            )

    def __bool__(self) -> bool:
        return bool(self.groups)

    def _insert(self, group: _Group) -> None:
        groups = self.groups.setdefault(group.memory, {})
        key = (group.kind, group.form, group.region)
        if key in groups:
            if groups[key] is not group:
                known = groups[key]
                groups[key] = _Group(
                    known.memory, known.kind, known.form, known.region, known.low, known.high, known.offsets
                )
                groups[key].stretch(group)
        elif len(groups) >= _MOST_GROUPS:
            form = Form((None,) * len(group.form.dims), 0)
            zero = [0] * len(form.dims)
            groups[(group.kind, form, group.region)] = _Group(
                group.memory, group.kind, form, group.region, zero, zero, {tuple(zero)}
            )
        else:
            groups[key] = group

    def add(self, other: Pending) -> None:
        for groups in other.groups.values():
            for group in groups.values():
                self._insert(group)

    def copy(self) -> Pending:
        result = Pending()
        result.groups = {memory: dict(groups) for memory, groups in self.groups.items()}
        return result

    def stale(self, variables: Iterable[Any]) -> Pending:
        """The same accesses after the variables took other values."""
        variables, result = frozenset(variables), Pending()
        for groups in self.groups.values():
            for group in groups.values():
                form = group.form
                old = (form.stale | variables) & form.variables()
                if old != form.stale:
                    form = Form(form.dims, form.mask, old)
                result._insert(
                    _Group(group.memory, group.kind, form, group.region, group.low, group.high, group.offsets)
                )
        return result


class Conflicts:
    """Compares sets of accesses; remembers what it found."""

    def __init__(self, prover: Prover, independent: Callable[[str, str], bool]):
        """independent(region, region): the user orders these two sets of threads himself."""
        self.prover, self.independent = prover, independent
        self._known: dict[Any, bool] = {}

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
        offsets = tuple((al - bh, ah - bl) for al, ah, bl, bh in zip(a.low, a.high, b.low, b.high))
        if not self._ask(a.form, b.form, offsets):
            return False
        if max(len(a.offsets), len(b.offsets)) > _MOST_OFFSETS:
            return True
        if len(a.offsets) == len(b.offsets) == 1:
            return True
        return any(
            self._ask(a.form, b.form, tuple((x - y, x - y) for x, y in zip(one, other)))
            for one in a.offsets
            for other in b.offsets
        )

    def _ask(self, a: Form, b: Form, offsets: tuple[tuple[int, int], ...]) -> bool:
        key = (a, b, offsets)
        if key not in self._known:
            self._known[key] = self.prover.relate(a, b, offsets) == "unordered"
        return self._known[key]


class AccessReader:
    """Finds the accesses of expressions and statements.

    memory: which buffers matter, and where they are.
    """

    def __init__(self, prover: Prover, memory: dict[Any, Memory]):
        self.prover, self.memory = prover, memory
        self.mask, self.region = 0, ""
        self._found: list[Access] = []
        self._handlers = [(tvm.ir.Call, self._call), (tvm.ir.TensorLoad, self._load)]

    def reads(self, *expressions: Any) -> list[Access]:
        """Everything that evaluating the expressions touches."""
        found, self._found = self._found, []
        for expr in expressions:
            if type(expr) not in (tir.IntImm, tir.FloatImm, tvm.ir.Var):
                tvm_ffi.structural_walk(expr, self._handlers, order="pre")
        found, self._found = self._found, found
        return found

    def store(self, node: tir.BufferStore) -> list[Access]:
        """The write of a store, without what its operands read."""
        return [self._access(self.memory[node.buffer], WRITE, node.indices)] if node.buffer in self.memory else []

    def _access(self, memory: Memory, kind: str, indices: Any) -> Access:
        dims, offsets = [], []
        for index in indices:
            value = self.prover.parse(index)
            dims.append(None if value is None else frozenset(value.terms.items()))
            offsets.append(0 if value is None else value.constant)
        return Access(memory, kind, Form(tuple(dims), self.mask), tuple(offsets), self.region)

    def _load(self, load: Any) -> None:
        if load.source in self.memory:
            self._found.append(self._access(self.memory[load.source], READ, load.indices))

    def _anywhere(self, buffer: Any, *kinds: str) -> None:
        if buffer in self.memory:
            for kind in kinds:
                form = Form((None,) * len(buffer.ty.shape), self.mask)
                self._found.append(Access(self.memory[buffer], kind, form, (0,) * len(form.dims), self.region))

    def _element(self, pointer: Any, kind: str) -> None:
        """What a pointer to an element stands for, and the reads of its indices."""
        while type(pointer) is tvm.ir.Call and pointer.op.name == "tirx.cuda.cvta_generic_to_shared":
            pointer = pointer.args[0]
        if type(pointer) is tvm.ir.Call and pointer.op.name == "tirx.address_of":
            load = pointer.args[0]
            if load.source in self.memory:
                self._found.append(self._access(self.memory[load.source], kind, load.indices))
            for index in load.indices:
                tvm_ffi.structural_walk(index, self._handlers, order="pre")
        else:
            tvm_ffi.structural_walk(pointer, self._handlers, order="pre")

    def _call(self, call: Any) -> Any:
        name = getattr(call.op, "name", "")
        if name == "tirx.call_extern":
            name = call.args[0].value
        kind = _ELEMENT_CALLS.get(name) or (ATOMIC if name.startswith("tl_atomic_") else None)
        if kind is not None:
            for argument in call.args:
                self._element(argument, kind)
            return WalkResult.SKIP
        if name == "tirx.address_of":
            load = call.args[0]
            self._anywhere(load.source, READ, WRITE)
            for index in load.indices:
                tvm_ffi.structural_walk(index, self._handlers, order="pre")
            return WalkResult.SKIP
        if name in ("tirx.tvm_access_ptr", "tirx.buffer_data"):
            tvm_ffi.structural_walk(call, (tvm.ir.Var, lambda variable: self._anywhere(variable, READ, WRITE)))
            return WalkResult.SKIP
        return None


# mbarriers: initialising one is a write, waiting and arriving are ordered by the hardware among themselves
_ELEMENT_CALLS = {
    "tirx.ptx.mbarrier_init": WRITE,
    "tirx.ptx.mbarrier_arrive_nocount": ATOMIC,
    "tirx.ptx.mbarrier_arrive": ATOMIC,
    "tirx.ptx.mbarrier_arrive_expect_tx": ATOMIC,
    "tirx.ptx.mbarrier_expect_tx": ATOMIC,
    "tirx.cuda.mbarrier_wait": ATOMIC,
}
