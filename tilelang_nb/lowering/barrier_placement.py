"""A program cut where barriers may stand, and the way back to statements.

`barriers` turns statements into chains of pieces and marks the places of barriers; `place` writes the statements
again. A barrier inside an `if` that only some threads take moves out of it: the `if` becomes several under the same
condition, with the barrier between them, and what the parts share lives in variables declared before the first. A
loop in such an `if` is run by all threads, its parts under the condition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm import tirx as tir
from tvm.ir import StringImm
from tvm.script.tirx import ptx

from .accesses import Conflict, Pending
from .context import LaunchContext
from .rewrite import loop, sequence, substitute, with_body


@dataclass
class Scope:
    """The threads that a barrier is for: the block, or the warps of `T.ws` through the named barrier `identifier`."""

    identifier: int = 0
    count: int = 0
    chosen: bool = True  # the condition that selects the warps has been seen

    @staticmethod
    def of_groups(groups: list[int], threads: int) -> Scope:
        count = 128 * len(groups)
        return Scope(1 + min(groups), count, chosen=count == threads)  # no condition selects all threads

    @property
    def is_block(self) -> bool:
        return self.count == 0

    def take_group(self) -> bool:
        """True for the first condition inside `T.ws`: the one that selects its warps."""
        first, self.chosen = not self.chosen, True
        return first

    def barrier(self, span: Any) -> tir.Stmt:
        if self.is_block:
            sync = tir.call_intrin("void", "tirx.tvm_storage_sync", StringImm("shared"))
        else:
            sync = ptx["bar.sync"](self.identifier, self.count)
        return tir.Evaluate(sync, span)


@dataclass
class Piece:
    """A statement, with what it leaves to its neighbours.

    entry: what it touches before any barrier of its own; exit: after the last one.
    through: some way through it crosses no barrier.
    jump: where it may `break` or `continue`: what it touched before.
    inner: set where barriers were placed inside it.
    """

    node: tir.Stmt
    entry: Pending
    exit: Pending
    through: bool = True
    jump: Pending | None = None
    inner: Chain | Loop | Branch | None = None


@dataclass
class Summary:
    """What a chain leaves to its surroundings; as in Piece."""

    entry: Pending
    exit: Pending
    through: bool
    jump: Pending | None


@dataclass
class Chain:
    """Pieces in a row; `before` holds the positions that need a barrier in front, with the reason."""

    pieces: list[Piece]
    scope: Scope
    before: dict[int, Conflict] = field(default_factory=dict)
    at_end: Conflict | None = None

    @property
    def has_barriers(self) -> bool:
        return bool(self.before) or self.at_end is not None or any(piece.inner is not None for piece in self.pieces)

    @property
    def first_conflict(self) -> Conflict:
        """The reason of a barrier in here; one about shared memory where there is one."""
        found = list(self.before.values()) + ([self.at_end] if self.at_end is not None else [])
        for piece in self.pieces:
            inner = piece.inner
            chains = [inner] if isinstance(inner, Chain) else []
            if isinstance(inner, Loop):
                chains = [inner.body]
            elif isinstance(inner, Branch):
                chains = [chain for chain in (inner.then, inner.other) if chain is not None]
                found += [inner.between] if inner.between is not None else []
            found += [chain.first_conflict for chain in chains if chain.has_barriers]
        return next((conflict for conflict in found if conflict.first.is_shared), found[0])

    def drop_barriers(self) -> None:
        """Leave the statements as they were."""
        self.before, self.at_end = {}, None
        for piece in self.pieces:
            piece.inner = None


@dataclass
class Loop:
    """A loop with barriers in its body; all threads run the same turns."""

    node: tir.For | tir.While
    body: Chain


@dataclass
class Branch:
    """An `if` with barriers in it.

    divergent: only some threads take a side; between: the sides need a barrier between them.
    reusable: the condition may be evaluated again at any time.
    """

    node: tir.IfThenElse
    divergent: bool
    then: Chain
    other: Chain | None
    between: Conflict | None
    reusable: bool


def place(chain: Chain, launch: LaunchContext) -> tir.Stmt:
    """The statements of a chain with its barriers."""
    return sequence(_Placement(launch).chain(chain, None))


class _Placement:
    def __init__(self, launch: LaunchContext):
        self.launch = launch
        self.moved: dict[Any, Any] = {}  # variables that became memory: variable -> load

    def chain(self, chain: Chain, guard: Any) -> list[tir.Stmt]:
        """The statements of a chain; those that are not barriers run where `guard` holds (None: everywhere)."""
        if guard is not None and not chain.has_barriers:
            return self._guarded([piece.node for piece in chain.pieces], guard)
        result: list[tir.Stmt] = []
        run: list[tir.Stmt] = []

        def flush() -> None:
            if run:
                result.extend(self._guarded(run, guard))
                run.clear()

        for position, piece in enumerate(chain.pieces):
            if position in chain.before:
                flush()
                result.append(chain.scope.barrier(piece.node.span))
            if piece.inner is not None:
                flush()
                result.extend(self._inner(piece, guard))
            elif guard is None:
                run.append(piece.node)
            else:
                self._keep(piece.node, guard, result, run)
        flush()
        if chain.at_end is not None:
            result.append(chain.scope.barrier(chain.pieces[-1].node.span if chain.pieces else None))
        return result

    def _guarded(self, statements: list[tir.Stmt], guard: Any) -> list[tir.Stmt]:
        statements = [self._renamed(statement) for statement in statements]
        if guard is None or not statements:
            return statements
        return [tir.IfThenElse(guard, sequence(statements), None, statements[0].span)]

    def _renamed(self, node: Any) -> Any:
        return substitute(node, self.moved)

    def _keep(self, node: tir.Stmt, guard: Any, result: list[tir.Stmt], run: list[tir.Stmt]) -> None:
        """A statement of a guarded chain that is cut: what it declares must outlive the part it is in."""
        if isinstance(node, (tir.AllocBuffer, tir.DeclBuffer)):
            result.append(node)
        elif isinstance(node, tir.Bind):
            memory = self._variable(node.var.name, str(node.var.ty.dtype), node.span, result)
            run.append(tir.BufferStore(memory, node.value, [0], node.span))
            self.moved[node.var] = tir.BufferLoad(memory, [0])
        else:
            run.append(node)

    def _variable(self, name: str, dtype: str, span: Any, result: list[tir.Stmt]) -> Any:
        memory = self.launch.local(1, dtype, name)
        result.append(tir.AllocBuffer(memory, None, span))
        return memory

    def _inner(self, piece: Piece, guard: Any) -> list[tir.Stmt]:
        inner, node = piece.inner, piece.node
        assert inner is not None
        if isinstance(inner, Chain):
            return [with_body(node, sequence(self.chain(inner, guard)))]
        if isinstance(inner, Loop):
            body = sequence(self.chain(inner.body, guard))
            if isinstance(node, tir.While):
                return [tir.While(self._renamed(node.condition), body, node.span)]
            bounds = (self._renamed(node.min), self._renamed(node.extent))
            return [loop(node, min=bounds[0], extent=bounds[1], body=body)]
        return self._branch(inner, guard)

    def _branch(self, branch: Branch, guard: Any) -> list[tir.Stmt]:
        node, condition = branch.node, self._renamed(branch.node.condition)
        if not branch.divergent and guard is None:
            then = sequence(self.chain(branch.then, None))
            other = None if branch.other is None else sequence(self.chain(branch.other, None))
            return [tir.IfThenElse(condition, then, other, node.span)]
        result: list[tir.Stmt] = []
        if branch.reusable and guard is None:
            taken, skipped = condition, tir.Not(condition)
        else:
            # evaluated once: what it reads may change before the last part
            memory = self._variable("taken", "bool", node.span, result)
            value = condition if guard is None else tir.And(guard, condition)
            result.append(tir.BufferStore(memory, value, [0], node.span))
            taken = tir.BufferLoad(memory, [0])
            skipped = tir.Not(taken) if guard is None else tir.And(guard, tir.Not(taken))
        result += self.chain(branch.then, taken)
        if branch.between is not None:
            result.append(branch.then.scope.barrier(node.span))
        if branch.other is not None:
            result += self.chain(branch.other, skipped)
        return result
