"""Stretches of device control flow: what is bound in them, and what must be undone when they end."""

from __future__ import annotations

from typing import Any, Literal

ScopeKind = Literal["kernel", "launch", "if", "for", "while", "parallel", "host-if", "unknown"]
DEVICE = frozenset(("if", "for", "while", "parallel", "host-if", "unknown"))


class Scope:
    """kind: launch and kernel run exactly once; the others are device control flow, unknown where a refused statement
    would decide.

    saved: (frame, name) -> binding before the scope, the journal that undoes bindings. rebound: (frame, name) ->
    the node that bound it last, which tells a loop what changed. exposed: names that were read before the body
    re-bound them -> the statement that reads, None where it is not of this text. final: (frame, name) -> binding at
    the end. hidden: names hidden on entry. outside: what was made before the scope, once that was asked for.
    unseen: the state that code without a call in the text may change here; None where nothing is compared. escaped:
    names that hold what the last iteration of a `T.Parallel` loop left when a `break` or `continue` leaves this
    loop -> the node that binds them there. stored: names of mutable scalars that were certainly stored since the
    scope was entered. unbound_next, unbound_after: names without a value where a `continue` or `break` leaves for
    the next turn of this loop or what follows it. terminated: nothing after this point in the scope is reached.
    """

    __slots__ = (
        "depth",
        "escaped",
        "exposed",
        "final",
        "hidden",
        "kind",
        "node",
        "open",
        "outside",
        "parent",
        "rebound",
        "saved",
        "stored",
        "terminated",
        "unbound_after",
        "unbound_next",
        "unseen",
    )

    def __init__(self, kind: ScopeKind, node: Any, parent: Scope | None):
        self.kind, self.node, self.parent = kind, node, parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.open, self.terminated = True, False
        self.saved: dict[Any, Any] = {}
        self.rebound: dict[Any, Any] = {}
        self.exposed: dict[Any, Any] = {}
        self.unbound_next: set[Any] = set()
        self.unbound_after: set[Any] = set()
        self.final: dict[Any, Any] = {}
        self.escaped: dict[Any, Any] = {}
        self.hidden: list[Any] = []
        self.stored: set[Any] = set()
        self.outside: Any = None
        self.unseen: Any = None

    @property
    def device(self) -> bool:
        return self.kind in DEVICE

    @property
    def host(self) -> bool:
        """Outside every launch: values are known before the launch, nothing can be stored."""
        return self.kind in ("kernel", "host-if")
