"""What a refused statement still had to evaluate: expressions whose mistakes do not depend on the one that was found.

Python evaluates the operands of an expression one after the other, so a failure in one says nothing of those behind
it.  What runs only for some values that are known while building (the right side of `and`, the branches of a
conditional expression, bodies of lambdas and comprehensions) is left out: it may be there to be avoided.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from ..source.diagnostic import Message, Poisoned, Refusal
from ..source.text import Span, Text

Operand = tuple[ast.expr, bool]  # an expression, and whether it is evaluated whatever the others are


def operands(node: ast.AST, of_device: Callable[[ast.expr], bool] = lambda node: False) -> list[Operand]:
    """The operands of an expression or simple statement in the order of their evaluation.

    of_device: whether an expression is certainly the device's; as a condition it lets all its operands be evaluated
    while building.
    """
    parts = _PARTS.get(type(node))
    found = parts(node) if parts is not None else []
    if isinstance(node, (ast.IfExp, ast.BoolOp, ast.Compare)):
        found = _decided(node, of_device)
    return [part for operand in found if operand[0] is not None for part in _unwrapped(operand)]


def _all(*nodes: Any) -> list[Operand]:
    return [(node, True) for node in nodes]


def _first(*nodes: Any) -> list[Operand]:
    return [(node, at == 0) for at, node in enumerate(nodes)]


def _decided(node: ast.expr, of_device: Callable[[ast.expr], bool]) -> list[Operand]:
    """The operands of an expression that evaluates some only under a condition."""
    if isinstance(node, ast.IfExp):
        sure = of_device(node.test)
        return [(node.test, True), (node.body, sure), (node.orelse, sure)]
    if isinstance(node, ast.BoolOp):
        conditions = [of_device(value) for value in node.values]
        return [(value, all(conditions[:at])) for at, value in enumerate(node.values)]
    assert isinstance(node, ast.Compare)
    values = [node.left, *node.comparators]
    known = [of_device(value) for value in values]
    conditions = [left or right for left, right in itertools.pairwise(known)]
    return [(value, all(conditions[: max(0, at - 1)])) for at, value in enumerate(values)]


def _unwrapped(operand: Operand) -> list[Operand]:
    """An operand as something that can be evaluated alone: the value of `*x`, the items of a tuple, the bounds of a
    slice.
    """
    node, certain = operand
    inner: tuple[Any, ...]
    if isinstance(node, ast.Starred):
        inner = (node.value,)
    elif isinstance(node, ast.Slice):
        inner = (node.lower, node.upper, node.step)
    elif isinstance(node, (ast.Tuple, ast.List)):
        inner = tuple(node.elts)
    else:
        return [operand]
    return [part for item in inner if item is not None for part in _unwrapped((item, certain))]


_PARTS: dict[type[ast.AST], Callable[[Any], list[Operand]]] = {
    ast.Assign: lambda node: _all(node.value, *node.targets),
    ast.AugAssign: lambda node: _all(node.target, node.value),
    ast.AnnAssign: lambda node: _all(node.value, node.target),
    ast.Expr: lambda node: _all(node.value),
    ast.Assert: lambda node: _all(node.test),
    ast.Return: lambda node: _all(node.value),
    ast.For: lambda node: _all(node.iter),
    ast.While: lambda node: _all(node.test),
    ast.If: lambda node: _all(node.test),
    ast.With: lambda node: _first(*[item.context_expr for item in node.items]),
    ast.Match: lambda node: _all(node.subject),
    ast.BinOp: lambda node: _all(node.left, node.right),
    ast.UnaryOp: lambda node: _all(node.operand),
    ast.BoolOp: lambda node: _first(*node.values),
    ast.Compare: lambda node: [*_all(node.left), *_first(*node.comparators)],
    ast.IfExp: lambda node: _first(node.test, node.body, node.orelse),
    ast.Call: lambda node: _all(node.func, *node.args, *[keyword.value for keyword in node.keywords]),
    ast.Subscript: lambda node: _all(node.value, node.slice),
    ast.Attribute: lambda node: _all(node.value),
    ast.Set: lambda node: _all(*node.elts),
    ast.Dict: lambda node: _all(*[part for pair in zip(node.keys, node.values) for part in pair]),
    ast.NamedExpr: lambda node: _all(node.value),
    **dict.fromkeys(
        (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), lambda node: _all(node.generators[0].iter)
    ),
    ast.Await: lambda node: _all(node.value),
    ast.Yield: lambda node: _all(node.value),
    ast.YieldFrom: lambda node: _all(node.value),
}


def condition(node: ast.stmt) -> ast.expr:
    """What chooses between the branches of an `if` or `match`."""
    return node.subject if isinstance(node, ast.Match) else node.test  # type: ignore[attr-defined]


def is_of_device(
    node: ast.expr, of_device: Callable[[ast.Name], bool], gives_number: Callable[[ast.expr], bool]
) -> bool:
    """Whether the value of an expression would certainly be the device's, whatever its refused parts are.

    of_device: whether a name holds a device value.  gives_number: whether a function makes one of such a value.
    """
    if isinstance(node, ast.Name):
        return of_device(node)
    if isinstance(node, ast.Call):
        known = isinstance(node.func, (ast.Name, ast.Attribute)) and gives_number(node.func)
        return known and any(is_of_device(argument, of_device, gives_number) for argument in node.args)
    if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return False
    parts = _DECIDING.get(type(node))
    return parts is not None and any(is_of_device(part, of_device, gives_number) for part in parts(node))


_DECIDING: dict[type[ast.AST], Callable[[Any], list[ast.expr]]] = {
    ast.Subscript: lambda node: [node.value, node.slice],
    ast.UnaryOp: lambda node: [node.operand],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.BoolOp: lambda node: node.values[:1],
    ast.IfExp: lambda node: [node.test],
    ast.NamedExpr: lambda node: [node.value],
}


def behind(node: ast.AST, failed: Span, text: Text, of_device: Callable[[ast.expr], bool]) -> list[ast.expr | Call]:
    """The operands of `node` behind the one that failed; a Call around it comes with its arguments' names."""
    if text.span(node) == failed and not (isinstance(node, ast.Assign) and len(node.targets) > 1):
        return []
    found: list[ast.expr | Call] | None = None
    for operand, certain in operands(node, of_device):
        if found is not None:
            if certain:
                found.append(operand)
        elif text.span(operand).covers(failed):
            found = behind(operand, failed, text, of_device)
    if found is None:
        several = isinstance(node, ast.Assign) and text.span(node) == failed
        return [operand for operand, _ in operands(node)] if several else []
    if isinstance(node, ast.Call) and not text.span(node.func).covers(failed):
        found.append(Call(node))
    return found


def beside(node: ast.AST, failed: Span, text: Text, of_device: Callable[[ast.expr], bool]) -> list[ast.expr | Call]:
    """The operands of `node` around the one whose text is refused, and those inside of it."""
    found: list[ast.expr | Call] = []
    for operand, certain in operands(node, of_device):
        if text.span(operand).covers(failed):
            found += beside(operand, failed, text, of_device)
        elif certain or text.span(node) == failed:
            found.append(operand)
    if isinstance(node, ast.Call) and not text.span(node.func).covers(failed) and text.span(node) != failed:
        found.append(Call(node))
    return found


def walruses(node: ast.AST) -> Iterator[ast.expr]:
    """The targets of `:=` in the expressions of a statement: whether one was bound before the failure is not known."""
    for operand, _ in operands(node):
        for part in ast.walk(operand):
            if isinstance(part, ast.NamedExpr):
                yield part.target


class Call:
    """A call one of whose arguments failed: how many there are and what their names are does not depend on it."""

    def __init__(self, node: ast.Call):
        self.node = node


def first_poisoned(node: ast.AST, is_poisoned: Callable[[Any], bool]) -> ast.expr | None:
    """The name or attribute at which the evaluation of a statement stopped in silence."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and is_poisoned(node):
        return node
    found = (first_poisoned(operand, is_poisoned) for operand, _ in operands(node))
    return next((name for name in found if name is not None), None)


class Search:
    """The further mistakes of a refused statement.

    evaluate: evaluates an expression or target, raising Refusal or Poisoned.  call_mistake: what the text of a call
    shows to be wrong for its function.  is_poisoned: whether a name, or an attribute, is one that an
    earlier mistake left unbound.  of_device: whether an expression is certainly the device's.
    """

    def __init__(
        self,
        text: Text,
        evaluate: Callable[[ast.expr], Any],
        call_mistake: Callable[[ast.Call], Message | None],
        is_poisoned: Callable[[Any], bool],
        of_device: Callable[[ast.expr], bool],
    ):
        self.text, self.evaluate, self.call_mistake, self.is_poisoned = text, evaluate, call_mistake, is_poisoned
        self.of_device = of_device
        self._said: set[str] = set()

    def mistakes(self, node: ast.stmt, mistake: Refusal | Poisoned) -> Iterator[Refusal]:
        """Refusals of what stands behind `mistake` in the statement, each said once."""
        pending = self._behind(node, mistake)
        while pending:
            operand = pending.pop(0)
            try:
                if isinstance(operand, Call):
                    said = self.call_mistake(operand.node)
                    if said is not None:
                        raise Refusal(said, operand.node)
                else:
                    self.evaluate(operand)
            except Refusal as refusal:
                if self._is_new(refusal):
                    yield refusal
                pending[:0] = self._behind(operand, refusal) if isinstance(operand, ast.AST) else []
            except Poisoned as poisoned:
                pending[:0] = self._behind(operand, poisoned) if isinstance(operand, ast.AST) else []

    def _is_new(self, refusal: Refusal) -> bool:
        said = f"{refusal.code} {refusal}"
        new = said not in self._said
        self._said.add(said)
        return new

    def _behind(self, node: ast.AST, mistake: Refusal | Poisoned) -> list[ast.expr | Call]:
        place: Any
        if isinstance(mistake, Refusal):
            self._is_new(mistake)
            place = mistake.place if mistake.place is not None else node
        else:
            place = first_poisoned(node, self.is_poisoned)
        if place is None:
            return []
        unevaluated = mistake.unevaluated if isinstance(mistake, Refusal) else isinstance(place, ast.Attribute)
        around = beside if unevaluated else behind
        failed = self.text.span(place) if isinstance(place, ast.AST) else place
        if not self.text.span(node).covers(failed):  # said of an earlier line: of two bindings that do not fit
            return [operand for operand, certain in operands(node, self.of_device) if certain]
        return around(node, failed, self.text, self.of_device)
