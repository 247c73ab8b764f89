"""Expressions of a kernel followed in the order in which they are evaluated, up to the first mistake that is certain.

What is evaluated only for some values (the branches of a condition that is not known to be the device's, the bodies
of lambdas and lazy generators) is left out: it may be there to be avoided.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...source import catalogue as say
from ...source.calls import (
    unknown_attribute_of_array,
    unknown_attribute_of_scalar,
    unknown_operation,
    with_written,
    wrong_rank,
)
from ...source.diagnostic import Message, Poisoned, Refusal
from ..attributes import PUBLIC
from ..names import bound_elsewhere, bound_names, only_augmented, unbound_at_first, undefined
from ..refusals import length_of
from . import surface
from .known import DEVICE, UNKNOWN, Device, Known, Number, Path, Tensor
from .outside import Outside

ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
EQUAL = (ast.Eq, ast.NotEq)
# Operations whose value is the device's, whatever their arguments are.
ON_DEVICE = frozenset(
    ("get_thread_binding", "get_block_binding", "get_lane_idx", "get_warp_idx", "get_warp_idx_sync", "activemask")
)


class Values:
    """Names and values in one kernel or macro.

    own: names that its text binds.  once: those that it binds in one place.  bound: names bound so far.  held: what
    is known of them.  poisoned: names that a refused statement would have bound.
    """

    def __init__(self, outside: Outside, own: frozenset[str], once: frozenset[str], names_before: list[str]):
        self.outside, self.own, self.once, self.names_before = outside, own, once, names_before
        self.bound: dict[str, None] = {}
        self.held: dict[str, Known] = {}
        self.poisoned: set[str] = set()
        self.loops: list[tuple[str, ast.stmt]] = []  # kinds and nodes of the loops around the statement at hand
        self.overlays: list[set[str]] = []  # variables of the comprehensions at hand
        self.free: dict[str, None] = {}
        self.behind: dict[ast.AST, str] = {}  # the brackets behind an element, `[j]` of `A[i][j]`

    def bind(self, name: str, value: Known = UNKNOWN) -> None:
        """A name holds a value from here on; one that is bound elsewhere too may hold another."""
        self.bound[name] = None
        self.poisoned.discard(name)
        self.held[name] = value if name in self.once else UNKNOWN

    # -- names -----------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr) -> Known:
        """What is known of an expression; Refusal for its first certain mistake, Poisoned behind an earlier one."""
        found = getattr(self, f"_{type(node).__name__}", None)
        if found is not None:
            return found(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def _Name(self, node: ast.Name) -> Known:
        name = node.id
        if any(name in overlay for overlay in self.overlays):
            return UNKNOWN
        if name in self.poisoned:
            raise Poisoned
        if name in self.bound:
            return self.held.get(name, UNKNOWN)
        if name not in self.own:
            path = self.outside.path(name)
            if path is not None:
                return Path(path)
            number = self.outside.number(name)
            if number is not None or self.outside.has(name) or self.outside.open:
                return UNKNOWN if number is None else Number(number)
        elif self.outside.open:
            return UNKNOWN
        elif self.outside.has(name):
            remedy = f"`{name}` is assigned in this function, so it is local here: bind another name to the outer one"
            raise Refusal(say.UndefinedName(name=name, remedy=remedy), node)
        if name in self.own:
            raise Refusal(self._unbound(name), node)
        known = [*self.bound, *self.free, *self.names_before]
        raise Refusal(undefined(name, [n for n in known if not n.startswith("__")]), node)

    def _unbound(self, name: str) -> Message:
        """What is said of a name that the text binds further on; Poisoned where it depends on the kind of a loop."""
        kinds = {kind for kind, loop in self.loops if name in set(bound_names(loop)) - only_augmented(loop)}
        if kinds <= {"expanded"}:
            return bound_elsewhere(name)
        if kinds <= {"expanded", "unknown"}:
            raise Poisoned
        return unbound_at_first(name)

    def _Constant(self, node: ast.Constant) -> Known:
        return Number(node.value) if type(node.value) is int else UNKNOWN

    def _Attribute(self, node: ast.Attribute) -> Known:
        owner = self.value(node.value)
        if not isinstance(owner, Path):
            return self._attribute_of_device(owner, node)
        if owner.name == "tilelang.language" and node.attr not in surface.NAMES:
            if node.attr.startswith("__") and node.attr.endswith("__"):
                return UNKNOWN
            raise Refusal(unknown_operation(node.attr, surface.SUGGESTED), node)
        return Path(f"{owner.name}.{node.attr}") if owner.builtin is None else UNKNOWN

    def _attribute_of_device(self, owner: Known, node: ast.Attribute) -> Known:
        """TL003 for what a buffer or an element of one does not have."""
        public = PUBLIC["Buffer"] if isinstance(owner, Tensor) else PUBLIC["Value"]
        if node.attr in public or node.attr.startswith("__") or not isinstance(node.ctx, ast.Load):
            return UNKNOWN
        if isinstance(owner, Tensor) and owner.shape is not None:
            raise Refusal(
                unknown_attribute_of_array(
                    f"`{owner.name}`", node.attr, owner.name, len(owner.shape), surface.OPERATIONS
                ),
                node,
            )
        if isinstance(owner, Device) and owner.element_of:
            message = unknown_attribute_of_scalar(f"an element of `{owner.element_of}`", node.attr, surface.OPERATIONS)
            if message.instead:
                written = f"write `{message.instead.format(x=ast.unparse(node.value))}`"
                message = replace(message, remedy=written)
            raise Refusal(message, node)
        return UNKNOWN

    def _NamedExpr(self, node: ast.NamedExpr) -> Known:
        value = self.value(node.value)
        self.bind(node.target.id, value if isinstance(value, Device) else UNKNOWN)
        return UNKNOWN

    # -- operators -------------------------------------------------------------------------------------------------
    def _BinOp(self, node: ast.BinOp) -> Known:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            literal = isinstance(node.left, ast.Constant)
            if isinstance(left, (Tensor, Device)) or (literal and isinstance(right, (Tensor, Device))):
                raise Refusal(say.MatrixMultiplyOperator(), node)
            return UNKNOWN
        return DEVICE if self._join(left, right) else UNKNOWN

    def _join(self, *values: Known) -> bool:
        return all(isinstance(v, (Device, Number)) for v in values) and any(isinstance(v, Device) for v in values)

    def _UnaryOp(self, node: ast.UnaryOp) -> Known:
        value = self.value(node.operand)
        return DEVICE if isinstance(value, Device) else Number() if isinstance(value, Number) else UNKNOWN

    def _Compare(self, node: ast.Compare) -> Known:
        left, right = self.value(node.left), self.value(node.comparators[0])
        certain = isinstance(node.ops[0], ORDERED) and isinstance(left, Device) | isinstance(right, Device)
        certain = certain or (isinstance(node.ops[0], EQUAL) and self._join(left, right))
        if not certain:
            return UNKNOWN
        for more in node.comparators[1:]:
            self.value(more)
        return DEVICE

    def _BoolOp(self, node: ast.BoolOp) -> Known:
        if not isinstance(self.value(node.values[0]), Device):
            return UNKNOWN
        found = [self.value(more) for more in node.values[1:]]
        return DEVICE if all(isinstance(value, Device) for value in found) else UNKNOWN

    def _IfExp(self, node: ast.IfExp) -> Known:
        if isinstance(self.value(node.test), Device):
            found = self.value(node.body), self.value(node.orelse)
            return DEVICE if all(isinstance(value, Device) for value in found) else UNKNOWN
        return UNKNOWN

    # -- what has a scope of its own, or is lazy -----------------------------------------------------------------------
    def _Lambda(self, node: ast.Lambda) -> Known:
        return UNKNOWN

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Known:
        self.value(node.generators[0].iter)
        return UNKNOWN

    def _comprehension(self, node: Any, *parts: ast.expr) -> Known:
        first = node.generators[0]
        self.value(first.iter)
        items = first.iter.elts if isinstance(first.iter, (ast.List, ast.Tuple)) else ()
        certain = any(not isinstance(item, ast.Starred) for item in items)
        if certain and len(node.generators) == 1 and not first.ifs:
            self.overlays.append({part.id for part in ast.walk(first.target) if isinstance(part, ast.Name)})
            try:
                for part in parts:
                    self.value(part)
            finally:
                self.overlays.pop()
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.bind(inner.target.id)
        return UNKNOWN

    def _ListComp(self, node: ast.ListComp | ast.SetComp) -> Known:
        return self._comprehension(node, node.elt)

    _SetComp = _ListComp

    def _DictComp(self, node: ast.DictComp) -> Known:
        return self._comprehension(node, node.key, node.value)

    def _Dict(self, node: ast.Dict) -> Known:
        for key, value in zip(node.keys, node.values):
            for part in (key, value):
                if part is not None:
                    self.value(part)
        return UNKNOWN

    def _JoinedStr(self, node: ast.JoinedStr) -> Known:
        """Parts of f-strings have wrong places before Python 3.12: the mistake is said of the whole."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                try:
                    self.value(part.value)
                except Refusal as refusal:
                    refusal.place = node
                    raise
        return UNKNOWN

    # -- elements --------------------------------------------------------------------------------------------------
    def _Subscript(self, node: ast.Subscript) -> Known:
        self.note_brackets(node)
        base = self.value(node.value)
        return self.indexed(base, node.slice, self.value(node.slice), node)

    def note_brackets(self, node: ast.Subscript) -> None:
        """What stands behind the element that `node` indexes again."""
        if isinstance(node.value, ast.Subscript):
            self.behind[node.value] = f"[{ast.unparse(node.slice)}]{self.behind.get(node, '')}"

    def indexed(self, base: Known, index: ast.expr, value: Known, place: ast.AST) -> Known:
        """An element or region of `base`; TL201 where the number of indices is not the rank."""
        if not isinstance(base, Tensor):
            return UNKNOWN
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        plain = all(not isinstance(part, ast.Starred) and not _is_ellipsis(part) for part in parts)
        counted = isinstance(index, (ast.Tuple, ast.Slice)) or isinstance(value, (Device, Number))
        if base.shape is None or not plain or not counted:
            return UNKNOWN
        if len(parts) != len(base.shape):
            raise Refusal(
                with_written(wrong_rank(base.name, base.shape, len(parts)), place, self.behind.get(place, "")), place
            )
        found = [value] if parts == [index] else [self._again(part) for part in parts]
        return Device(base.name) if all(isinstance(part, (Device, Number)) for part in found) else UNKNOWN

    def region(self, node: ast.expr) -> Tensor | None:
        """The tensor of which an expression is a region: `A[i:j]`."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        base = self.held.get(node.value.id) if node.value.id not in self.poisoned else None
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return base if isinstance(base, Tensor) and any(isinstance(part, ast.Slice) for part in parts) else None

    def _again(self, node: ast.expr) -> Known:
        return UNKNOWN if isinstance(node, ast.Slice) else self.value(node)

    # -- calls -----------------------------------------------------------------------------------------------------
    def _Call(self, node: ast.Call) -> Known:
        function = self.value(node.func)
        given = [self.value(argument) for argument in node.args]
        for keyword in node.keywords:
            self.value(keyword.value)
        if not isinstance(function, Path):
            return UNKNOWN
        if function.builtin is not None:
            message = _refused_builtin(function.builtin, node, given)
            if message is not None:
                raise Refusal(message, node)
            return UNKNOWN
        if function.operation is None:
            return UNKNOWN
        self._check_operation(function.operation, node)
        return DEVICE if function.operation in ON_DEVICE else UNKNOWN

    def _check_operation(self, name: str, node: ast.Call) -> None:
        signature = surface.signature(name)
        mistake = surface.call_mistake(signature, node) if signature is not None else None
        if mistake is not None:
            raise Refusal(mistake, node)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _length(what: str, written: str, value: Known) -> Message:
    return length_of(what, written if isinstance(value, Tensor) else "")


_REFUSED: dict[str, Callable[[str, str, Known], Message]] = {
    "len": _length,
    "type": lambda what, written, value: say.TypeOfDeviceValue(what=what, name=written),
    "isinstance": lambda what, written, value: say.IsinstanceOfDeviceValue(what=what, name=written),
}


def _refused_builtin(name: str, node: ast.Call, given: list[Known]) -> Message | None:
    """The message for a built-in that refuses tensors and their elements."""
    if name == "print":
        return next((_printed(value, part) for value, part in zip(given, node.args) if isinstance(value, Tensor)), None)
    if name == "range" and len(given) == 3 and given[2] == Number(0) and not node.keywords:
        return say.ZeroStep()
    if name not in _REFUSED or not given:
        return None
    value = given[0]
    what = f"`{value.name}`" if isinstance(value, Tensor) else ""
    if isinstance(value, Device) and value.element_of:
        what = f"an element of `{value.element_of}`"
    return _REFUSED[name](what, ast.unparse(node.args[0]), value) if what else None


def _printed(value: Tensor, node: ast.expr) -> Message:
    return say.PrintOfDeviceValue(what=f"`{value.name}`", name=ast.unparse(node))
