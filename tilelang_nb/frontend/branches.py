"""`if`, `match`, `assert`, `return`, and expressions as statements."""

from __future__ import annotations

import ast
import contextlib
from typing import Any

from tvm import tirx as tir
from tvm.ir import Call

from ..language.values import Region, Value, truth
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .conditional_bindings import enter_branch
from .control import ReturnValue
from .locate import MARK
from .merge import merge, merge_branches, merge_host_branches
from .names import bound_names
from .refusals import has_value, returns_early, returns_from_macro, returns_value
from .walruses import bound_where


def truth_at(walker: Any, node: ast.expr) -> Any:
    """A condition: a Python bool, or a boolean Value."""
    return walker.locate(node, truth, walker.evaluate(node))


def if_statement(walker: Any, node: ast.If) -> None:
    """A compile-time condition chooses a branch while building; a runtime one emits both and joins their names."""
    condition = truth_at(walker, node.test)
    while not isinstance(condition, Value):
        if condition or len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
            walker.suite(node.body if condition else node.orelse)
            return
        node = walker.statement = node.orelse[0]  # an `elif`: long chains must not nest
        walker.builder.at(node, walker.frame.text)
        condition = truth_at(walker, node.test)
    if walker.scope.host:
        host_if(walker, node, condition)
        return
    names = bound_names(*node.body, *node.orelse)
    joined = walker.joined_after(node, names)
    builder = walker.builder
    test, span = condition.use(), builder.span
    condition = None
    then = walker.open("if", node)
    enter_branch(walker, bound_where(node.test, True))
    walker.suite(node.body)
    end_branch(walker, joined, node)
    then_body = walker.close()
    if then.terminated and node.orelse:  # what follows a `break` is the other branch: its bindings belong to this scope
        builder.append_at(tir.IfThenElse(test, then_body, None, span), span)
        merge_branches(walker, [then], node)
        enter_branch(walker, bound_where(node.test, False))
        walker.suite(node.orelse)
        return
    other = walker.open("if", node)
    enter_branch(walker, bound_where(node.test, False))
    walker.suite(node.orelse)
    end_branch(walker, joined, node)
    other_body = walker.close()
    # Without `else` the other branch still stores what the names hold that begin at this `if`.
    builder.append_at(tir.IfThenElse(test, then_body, other_body if node.orelse or joined else None, span), span)
    merge_branches(walker, [then, other], node)
    for name, scalar in joined.items():
        merge(walker, (walker.frame, name), scalar)
    if then.terminated and other.terminated:
        walker.scope.terminated = True
    elif then.terminated or other.terminated:  # what follows runs where the other branch does
        enter_branch(walker, bound_where(node.test, other.terminated))


def end_branch(walker: Any, joined: dict[str, Any], node: ast.If) -> None:
    """At the end of a branch, store what it bound to names that are variables after it."""
    if joined and not walker.scope.terminated:
        walker.builder.at(node, walker.frame.text)
        walker.store_joined(joined, node)


def host_if(walker: Any, node: ast.If, condition: Value) -> None:
    """A run-time `if` around launches: nothing runs on the host, so each launch takes the condition inside."""
    if condition.reads:
        walker.locate(node.test, walker.builder.check_readable)
    test = Value(walker.builder.bind("condition", condition.use(), "bool"), "bool", walker.scope)
    scopes = []
    for holds, body in ((test.use(), node.body), (tir.Not(test.use()), node.orelse)):
        scopes.append(walker.open("host-if", node))
        enter_branch(walker, bound_where(node.test, body is node.body))
        walker.host_conditions.append(holds)
        walker.suite(body)
        walker.host_conditions.pop()
        walker.close()
    merge_host_branches(walker, test, *scopes)


def match_statement(walker: Any, node: ast.Match) -> None:
    """Python's own `match` on a compile-time subject; captures are bound like assignments."""
    subject = walker.evaluate(node.subject)
    parts = subject if isinstance(subject, (tuple, list)) else [subject]
    if any(isinstance(part, (Value, Region)) for part in parts):
        raise Refusal(say.MatchOnDeviceValue(), node)
    code = walker.frame.codes.get(node)
    if code is None:
        code = walker.frame.codes[node] = _chooser(node)
    captured = _Captures(walker.frame.names)
    captured.update({"__subject": subject, "__case": None})

    def choose() -> None:
        exec(code, walker.frame.names, captured)

    try:
        walker.locate(node.subject, choose)
    except Refusal as refusal:
        if refusal.code == "TL128":  # a guard, or a value pattern, that compares a device value
            raise Refusal(say.MatchOnDeviceValue(), node) from None
        raise
    chosen = captured["__case"]
    if chosen is None:
        return
    for name, value in captured.items():
        if not name.startswith("__"):
            walker.bind(name, [value], node)
    walker.suite(node.cases[chosen].body)


class _Captures(dict):
    """Locals of a `match`: what it captures, else the names of the kernel."""

    def __init__(self, names: Any):
        super().__init__()
        self.names = names

    def __missing__(self, name: str) -> Any:
        return self.names[name]


def _chooser(node: ast.Match) -> Any:
    cases = []
    for number, case in enumerate(node.cases):
        body = ast.Assign([ast.Name("__case", ast.Store())], ast.Constant(number))
        cases.append(ast.match_case(case.pattern, case.guard, [body]))
    tree = ast.Module([ast.Match(ast.Name("__subject", ast.Load()), cases)], [])
    return compile(ast.fix_missing_locations(tree), MARK, "exec", dont_inherit=True)


def assertion(walker: Any, node: ast.Assert) -> None:
    """`assert`: checked while building (TL145); TL105 for a runtime condition."""
    condition = truth_at(walker, node.test)
    written = ast.unparse(node.test)
    if isinstance(condition, Value):
        raise Refusal(say.RuntimeAssert(condition=written), node)
    if not condition:
        said = f"`{written}`"
        if node.msg is not None:
            with contextlib.suppress(Refusal):  # a text with a device value in it
                said = walker.locate(node, lambda: str(walker.evaluate(node.msg)))
        raise Refusal(say.AssertionFailedWhileBuilding(condition=said, remedy=f"make `{written}` true"), node)


def return_statement(walker: Any, node: ast.Return) -> None:
    """`return` unwinds to the call of the macro or ends the kernel; under device control flow it cannot."""
    inside = walker.under_device_control()
    if walker.calls:
        if inside:
            raise returns_from_macro(node)
    elif inside or walker.loops:
        raise returns_early(node)
    elif is_followed(walker.definition.node, node):
        raise returns_early(node, "leave out the `return`, or what follows it")
    elif has_value(node) and not walker.may_return:
        raise returns_value(node)
    raise ReturnValue(walker.evaluate(node.value) if node.value else None)


def is_followed(function: ast.FunctionDef, node: ast.stmt) -> bool:
    """Whether a statement of a function is followed by others, in its block or after the `with` that it ends."""
    for parent in ast.walk(function):
        for field in ("body", "orelse"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and any(statement is node for statement in block):
                return block[-1] is not node or (isinstance(parent, ast.With) and is_followed(function, parent))
    return False


def expression(walker: Any, node: ast.Expr) -> None:
    """A call that gives a device value is kept for its effect."""
    if isinstance(node.value, ast.Constant):
        return
    value = walker.evaluate(node.value)
    if isinstance(value, Value) and isinstance(node.value, ast.Call) and value.origin is None:
        if isinstance(value.expr, Call):
            expr = value.use()
            value = None
            walker.builder.effect()
            walker.builder.emit(tir.Evaluate(expr, walker.builder.span))
