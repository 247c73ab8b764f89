"""Whether a refusal of a random kernel has a reason in the specification, decided from the text by flow analysis.

The specification allows some texts that Python runs to be refused, each for a property of the text: a name that some
path leaves unbound, a scalar that goes from one iteration of `T.Parallel` to another or out of the loop, a `break` of
a compile-time loop under a runtime condition.  This looks for that property with the textbook analyses on a control
flow graph, and shares nothing with the front end.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

RUN_TIME = frozenset({"n", "m", "a", "out"})  # parameters of the kernel
MACROS = frozenset({"total"})  # those that give a runtime value whatever they are given


@dataclass(eq=False)
class Step:
    """A statement, or the head of one: the names it reads, then those it binds."""

    node: ast.AST
    reads: frozenset[str]
    binds: frozenset[str]
    unbinds: frozenset[str] = frozenset()
    after: list[Step] = field(default_factory=list)


@dataclass
class Loop:
    node: ast.For | ast.While
    head: Step
    ends: list[Step] = field(default_factory=list)  # steps that leave it by `break`


class Flow:
    """The control flow graph of the statements of a kernel."""

    def __init__(self, body: list[ast.stmt]):
        self.steps: list[Step] = []
        self.loops: dict[ast.AST, Loop] = {}
        self._open: list[Loop] = []
        self.entry = self._step(ast.Pass(), (), ())
        self.last = self._suite(body, [self.entry])

    def _step(self, node: ast.AST, reads: Iterable[str], binds: Iterable[str]) -> Step:
        step = Step(node, frozenset(reads), frozenset(binds))
        self.steps.append(step)
        return step

    def _suite(self, body: list[ast.stmt], before: list[Step]) -> list[Step]:
        for node in body:
            before = self._statement(node, before)
        return before

    def _add(self, node: ast.AST, parts: Iterable[ast.AST | None], before: list[Step]) -> Step:
        found = [part for part in parts if part is not None]
        step = self._step(node, names_read(*found), names_bound(*found))
        if isinstance(node, ast.Delete):
            step.unbinds = frozenset(target.id for target in node.targets if isinstance(target, ast.Name))
        for other in before:
            other.after.append(step)
        return step

    def _statement(self, node: ast.stmt, before: list[Step]) -> list[Step]:
        if isinstance(node, ast.If):
            test = self._add(node, [node.test], before)
            return [*self._suite(node.body, [test]), *self._suite(node.orelse, [test])]
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, before)
        if isinstance(node, ast.Match):
            subject = self._add(node, [node.subject], before)
            return [end for case in node.cases for end in self._suite(case.body, [subject])] + [subject]
        step = self._add(node, [node], before)
        if isinstance(node, ast.Break):
            self._open[-1].ends.append(step)
            return []
        if isinstance(node, ast.Continue):
            step.after.append(self._open[-1].head)
            return []
        return [step]

    def _loop(self, node: ast.For | ast.While, before: list[Step]) -> list[Step]:
        if isinstance(node, ast.For):
            before = [self._add(node, [node.iter], before)]  # once
            head = self._add(node, [], before)
            turn = self._step(node, (), names_bound(node.target))
            head.after.append(turn)
        else:
            head = turn = self._add(node, [node.test], before)
        loop = self.loops[node] = Loop(node, head)
        self._open.append(loop)
        for end in self._suite(node.body, [turn]):
            end.after.append(head)
        self._open.pop()
        return [head, *loop.ends]

    # -- analyses --------------------------------------------------------------------------------------------------
    def live(self) -> dict[Step, frozenset[str]]:
        """Names that something behind a step may read before they are bound again."""
        found = {step: frozenset[str]() for step in self.steps}

        def renew(step: Step) -> frozenset[str]:
            behind = frozenset().union(*(found[other] for other in step.after))
            return step.reads | (behind - step.binds)

        return _settled(found, renew)

    def bound(self) -> dict[Step, frozenset[str]]:
        """Names that are bound on every path to a step."""
        every = frozenset().union(*(step.binds for step in self.steps)) | RUN_TIME
        before: dict[Step, list[Step]] = {step: [] for step in self.steps}
        for step in self.steps:
            for other in step.after:
                before[other].append(step)
        found = dict.fromkeys(self.steps, every) | {self.entry: RUN_TIME}

        def renew(step: Step) -> frozenset[str]:
            if step is self.entry or not before[step]:
                return found[step]
            return frozenset.intersection(*((found[other] | other.binds) - other.unbinds for other in before[step]))

        return _settled(found, renew)

    def step_at(self, line: int, column: int) -> Step:
        """The innermost step around a place."""
        around = [step for step in self.steps if hasattr(step.node, "lineno") and _covers(step.node, line, column)]
        return min(around, key=lambda step: (step.node.end_lineno - step.node.lineno, -step.node.col_offset))  # type: ignore[attr-defined]


def _settled(found: dict[Step, frozenset[str]], renew: Callable[[Step], frozenset[str]]) -> dict[Step, frozenset[str]]:
    changed = True
    while changed:
        changed = False
        for step in found:
            new = renew(step)
            if new != found[step]:
                found[step], changed = new, True
    return found


def _covers(node: Any, line: int, column: int) -> bool:
    return (node.lineno, node.col_offset) <= (line, column) <= (node.end_lineno, node.end_col_offset)


def _names(node: ast.AST, context: type, own: frozenset[str]) -> Iterator[str]:
    """Names used in a context; own: those that comprehensions and lambdas around the node bind for themselves."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, context) and node.id not in own:
        yield node.id
    if isinstance(node, ast.Lambda):
        own |= {argument.arg for argument in node.args.args}
    for clause in getattr(node, "generators", ()):
        own |= {part.id for part in ast.walk(clause.target) if isinstance(part, ast.Name)}
    for part in ast.iter_child_nodes(node):
        yield from _names(part, context, own)


def names_read(*nodes: ast.AST) -> set[str]:
    """Names whose value a statement or expression needs."""
    found = {name for node in nodes for name in _names(node, ast.Load, frozenset())}
    changed = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    return found | {target.id for target in changed if isinstance(target, ast.Name)}


def names_bound(*nodes: ast.AST) -> set[str]:
    """Names that a statement or expression binds."""
    return {name for node in nodes for name in _names(node, ast.Store, frozenset())}


def is_parallel(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and ast.unparse(node.iter).startswith("T.Parallel(")


def is_compile_time(node: ast.AST) -> bool:
    """A loop over a list, a tuple, or what Python makes of them."""
    return isinstance(node, ast.For) and not ast.unparse(node.iter).startswith(("range(", "T."))


def runtime_names(body: list[ast.stmt]) -> set[str]:
    """Names that may hold a value known only when the kernel runs: by what they are given, or by where that happens."""
    found = set(RUN_TIME)
    while True:
        size = len(found)
        _spread(body, found, False)
        if len(found) == size:
            return found


def _spread(body: list[ast.stmt], found: set[str], under: bool) -> None:
    """under: the statements run under a runtime condition, or in a device loop, which carries what it re-binds."""
    for node in body:
        if isinstance(node, ast.If):
            inside = under or is_runtime(node.test, found)
            for block in (node.body, node.orelse):
                _spread(block, found, inside)
        elif isinstance(node, ast.For):
            if not is_compile_time(node) or is_runtime(node.iter, found):
                found |= names_bound(node.target)
            _spread(node.body, found, under or not is_compile_time(node))
        elif isinstance(node, ast.While):
            _spread(node.body, found, True)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                _spread(case.body, found, under)
        if under or is_runtime(node, found):
            found |= names_bound(node) if not isinstance(node, (ast.If, ast.For, ast.While, ast.Match)) else set()


def is_runtime(node: ast.AST, names: set[str]) -> bool:
    made = ("T.alloc_var", "T.alloc_local")
    return bool(names_read(node) & (names | MACROS)) or any(word in ast.unparse(node) for word in made)


def reason_is_found(found: Any, source: str) -> bool:
    """Whether the text has what the diagnostic says of it."""
    tree = ast.parse(source)
    kernel = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "k")
    (launch,) = (n for n in kernel.body if isinstance(n, ast.With))
    flow = Flow(launch.body)
    place = found.span.line, found.span.column
    step = flow.step_at(*place)
    named = re.search(r"`(\w+)`", found.message)
    name = named[1] if named else ""
    if found.code == "TL134":
        live = flow.live()
        inside = [loop for node, loop in flow.loops.items() if is_parallel(node) and _covers(node, *place)]
        return any(name in names_bound(*loop.node.body) and name in live[loop.head] for loop in inside)
    if found.code in ("TL002", "TL130", "TL131"):
        return name in step.reads and name not in flow.bound()[step]
    if found.code == "TL101":
        return isinstance(step.node, ast.Assign) and len(step.node.targets) > 1
    if found.code == "TL133":  # a name of a number known at run time, bound to an object where it is not at home
        around = [n for n in ast.walk(launch) if isinstance(n, (ast.If, ast.For, ast.While)) and _covers(n, *place)]
        return bool(around) or f"{name} = T.alloc_var(" in source
    if found.code == "TL110":
        around = [node for node in flow.loops if _covers(node, *place)]
        nearest = max(around, key=lambda node: node.lineno)
        conditions = [n for n in ast.walk(nearest) if isinstance(n, ast.If) and _covers(n, *place)]
        names = runtime_names(launch.body)
        return is_compile_time(nearest) and any(is_runtime(n.test, names) for n in conditions)
    return False
