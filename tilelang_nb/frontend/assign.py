"""Assignments: names, elements, unpacking, augmented and annotated forms, `del`."""

from __future__ import annotations

import ast
import operator
from typing import Any

from ..language.dtypes import ALIASES, SCALARS, Dtype, cast_to
from ..language.operands import described
from ..language.promotion import as_type
from ..language.values import Buffer, Region, Value, is_device, number
from ..source import catalogue as say
from ..source.diagnostic import Poisoned, Refusal
from ..source.wording import of_type
from .bindings import CONTAINERS
from .large_integers import OPERATORS, check_size
from .refusals import deletes_no_name, names_only, several_targets, stores_into_object, target_is_attribute
from .thread_axes import is_thread_index, thread_index

IN_PLACE = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.MatMult: operator.imatmul,
}


def assign(walker: Any, node: ast.Assign) -> None:
    """`target = value`: one target, which may be a name, an element, an attribute or a tuple.

    TL101 for several, but for names before a launch, where the text is Python of the host.
    """
    target = node.targets[0]
    if len(node.targets) > 1:
        if not (walker.builder.launch is None and walker.scope.host and names_only(node)):
            raise several_targets(node)
        value = walker.evaluate(node.value)
        for target in node.targets:
            bind_target(walker, target, [value], node)
        return
    walker.builder.hint = target.id if isinstance(target, ast.Name) else None
    box = [walker.evaluate(node.value)]
    if is_thread_index(box[0]):
        box[0] = walker.locate(node.value, thread_index, walker, box[0], node.value)
    bind_target(walker, target, box, node)


def bind_target(walker: Any, target: ast.expr, box: list[Any], node: ast.AST) -> None:
    """Bind a name, store an element, or unpack.

    box: a one-element list that the last user empties; a value that a statement consumes must have no other
    reference, or it would be kept in a variable (emit.py).
    """
    if isinstance(target, ast.Name):
        walker.locate(target, walker.bind, target.id, box, node if isinstance(node, ast.AugAssign) else target)
    elif isinstance(target, ast.Subscript):
        store_place(walker, target, walker.evaluate(target.value), walker.evaluate(target.slice), box)
    elif isinstance(target, (ast.Tuple, ast.List)):
        unpack(walker, target, box.pop(), node)
    elif isinstance(target, ast.Starred):
        bind_target(walker, target.value, box, node)
    else:
        raise target_is_attribute(target)


def unpack(walker: Any, target: ast.Tuple | ast.List, value: Any, node: ast.AST) -> None:
    """A tuple target: one item for each, with a starred one taking the rest."""
    if is_device(value):
        remedy = "unpack a tuple, or index it"
        raise Refusal(say.NotIterable(what=f"{described(value)} to unpack", remedy=remedy), target)
    if isinstance(value, (int, float)):
        remedy = f"give {len(target.elts)} values, separated by commas"
        raise Refusal(say.NotIterable(what=f"{of_type(value)} to unpack", remedy=remedy), target)
    items = walker.locate(target, lambda: list(walker.intrinsics.bounded(value)))
    value = None
    stars = [at for at, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    count = len(target.elts)
    if (len(items) < count - 1) if stars else len(items) != count:
        expected = f"at least {count - 1}" if stars else str(count)
        message = say.ExceptionWhileBuilding(
            exception=f"ValueError: {expected} value{'s' * (count != 1)} to unpack, {len(items)} given",
            remedy="give as many targets as values",
        )
        raise Refusal(message, target)
    for item in items:  # all right-hand sides are read before the first target is stored
        if isinstance(item, Value) and item.reads:
            walker.builder.keep(item)
    item = None
    if stars:
        at, after = stars[0], count - stars[0] - 1
        items[at : len(items) - after] = [items[at : len(items) - after]]
    for part in target.elts:
        bind_target(walker, part, [items.pop(0)], node)


def store_place(walker: Any, target: ast.expr, base: Any, index: Any, box: list[Any]) -> None:
    """`base[index] = box[0]`."""
    if isinstance(base, Value) and base.is_variable and index in (0, (0,), ()):  # x[0] of a `T.alloc_var` variable
        base, index = base.origin[0], (0,)
    if isinstance(base, Region):
        base, index = base.buffer, walker.locate(target, base.inner, index)
    if isinstance(base, Buffer):
        walker.locate(target, lambda: walker.builder.store(base, base.indices(index), box.pop()))
    elif is_device(base):
        remedy = "store into an element of a buffer"
        raise Refusal(say.UnsupportedSyntax(what=f"a store into {described(base)}", remedy=remedy), target)
    elif isinstance(index, Value):
        raise Refusal(stores_into_object(of_type(base), base), target)
    else:
        walker.locate(target, walker.check_change, base)
        walker.locate(target, operator.setitem, base, index, box.pop())


def augmented(walker: Any, node: ast.AugAssign) -> None:
    """Python's order: the old value is read first, then the operand.  Lists change in place: aliases see it."""
    apply, target = IN_PLACE[type(node.op)], node.target
    base = index = None
    if isinstance(target, ast.Name):
        old = [walker.evaluate(_load_of(walker, target))]
    elif isinstance(target, ast.Subscript):
        base, index = walker.evaluate(target.value), walker.evaluate(target.slice)
        if isinstance(base, Buffer):
            index = walker.locate(target, base.indices, index)  # once: an index that loads is read once
            for part in index:
                if isinstance(part, Value) and part.reads:
                    walker.builder.keep(part, "at")
            part = None
        old = [walker.locate(target, operator.getitem, base, index)]
    else:
        raise target_is_attribute(target)
    operand = [walker.evaluate(node.value)]
    if isinstance(old[0], CONTAINERS):
        walker.locate(target, walker.check_change, old[0])
    sign = OPERATORS.get(type(node.op))
    if sign is not None:
        walker.locate(node, check_size, sign, old[0], operand[0], walker.limits.bits)
    box = [walker.locate(node, lambda: apply(old.pop(), operand.pop()))]
    if isinstance(target, ast.Name):
        bind_target(walker, target, box, node)
    else:
        store_place(walker, target, base, index, box)


def _load_of(walker: Any, target: ast.Name) -> ast.Name:
    """The target of an augmented assignment as an expression, one node per target."""
    key = ("load", target)
    load = walker.frame.codes.get(key)
    if load is None:
        load = walker.frame.codes[key] = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return load


def annotated(walker: Any, node: ast.AnnAssign) -> None:
    """`x: T.float16 = e` casts; without a value it declares a parameter of an eager kernel, or is for people only."""
    if node.value is None:
        if walker.unsure:
            raise Poisoned
        walker.declare_parameter(node)
        return
    walker.builder.hint = node.target.id if isinstance(node.target, ast.Name) else None
    value = walker.evaluate(node.value)
    kind = annotation(walker, node.annotation)
    dtype = _dtype_of(kind)
    if dtype is not None:
        found = value if is_device(value) else number(value)
        if isinstance(found, Value):
            value = found.astype(dtype)
        elif found is not None and not is_device(found):
            value = walker.locate(node.value, lambda: Value(as_type(_whole(found, dtype), dtype), dtype))
        elif isinstance(kind, Dtype) and not getattr(value, "is_variable", False):
            walker.locate(node.value, cast_to, value, dtype)  # which refuses it
        found = None
    box, value = [value], None
    bind_target(walker, node.target, box, node)


def annotation(walker: Any, node: ast.expr) -> Any:
    """What an annotation stands for; text in quotes is the name of a type or an expression, and else says nothing."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return walker.evaluate(node)
    text = node.value.strip()
    if text in SCALARS or text in ALIASES:
        return Dtype(text)
    key = ("quoted", node)
    expression = walker.frame.codes.get(key)
    if expression is None:
        try:
            expression = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError):
            return None
        for part in ast.walk(expression):
            if isinstance(part, ast.expr):
                ast.copy_location(part, node)
        walker.frame.codes[key] = expression
    return walker.evaluate(expression)


def _whole(found: Any, dtype: str) -> Any:
    """A float constant cast to an integer type drops its fraction, as the cast of a device value does."""
    return int(found) if isinstance(found, float) and "int" in dtype else found


def _dtype_of(annotation: Any) -> str | None:
    if isinstance(annotation, Dtype):
        return str(annotation)
    return {float: "float32", int: "int32", bool: "bool"}.get(annotation) if isinstance(annotation, type) else None


def delete(walker: Any, node: ast.Delete) -> None:
    """`del name`: the name is not bound from here on."""
    for target in node.targets:
        if not isinstance(target, ast.Name):
            raise deletes_no_name(node)
        walker.evaluate(_load_of(walker, target))  # an unbound name is refused
        walker.note_rebound(target.id, node)
        walker.frame.set(target.id, None)
