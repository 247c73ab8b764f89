"""The kernels and macros of a text, and what is wrong with each as far as its text and the names around it tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ...source import catalogue as say
from ...source.diagnostic import Diagnostic, Poisoned, Refusal
from ...source.text import Text
from .. import refusals
from ..definitions import parameters
from ..eager_syntax import annotated_parameters, is_eager_text
from ..names import bound_names, undefined
from ..places import header_span
from . import surface
from .known import DEVICE, UNKNOWN, Known, Path, Tensor
from .outside import Outside
from .statements import Statements
from .values import Values

Kind = Literal["kernel", "macro", "eager"]
TENSORS = frozenset(("Tensor", "StridedTensor", "Buffer"))
SCALARS = frozenset(("int", "float", "bool"))
# Decorators that give back what they decorate.
TRANSPARENT = frozenset(("tilelang.autotune", "tilelang.autotuner.autotune"))


@dataclass(frozen=True)
class Found:
    """A kernel or macro.  factory: the function of the module that it is made in, if it is made in one."""

    node: ast.FunctionDef
    kind: Kind
    outside: Outside
    factory: str | None


def kernels(body: list[ast.stmt], outside: Outside, factory: str | None = None) -> Iterator[Found]:
    """Kernels and macros at any depth of functions and classes."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            kind = _kind(node, outside)
            if kind is not None:
                yield Found(node, kind, outside, factory)
            if kind is None:
                yield from kernels(node.body, outside.inside(node), factory or node.name)
        elif isinstance(node, ast.AsyncFunctionDef):
            yield from kernels(node.body, outside.inside(node), factory or node.name)
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _kind(node: ast.FunctionDef, outside: Outside) -> Kind | None:
    """What the decorators make of a function; None for a function of the host, and where it is not certain."""
    found: Kind | None = None
    for decorator in reversed(node.decorator_list):
        call = decorator if isinstance(decorator, ast.Call) else None
        path = outside.resolve(call.func if call else decorator)
        if path == "tilelang.language.prim_func":
            eager = call is not None and any(keyword.arg == "eager_jit" for keyword in call.keywords)
            found = "eager" if eager else "kernel"
        elif path == "tilelang.language.macro":
            found = "macro"
        elif path in ("tilelang.jit", "tilelang.jit.jit"):
            found = found or ("eager" if is_eager_text(node) else None)
            if found is None:
                return None
        elif path not in TRANSPARENT:
            return None
    return found


def mistakes(
    found: Found, text: Text, names_before: list[str], refused: Mapping[ast.stmt, Diagnostic]
) -> list[Diagnostic]:
    """What is certainly wrong with a kernel or macro.

    names_before: those of the module when it is built.  refused: statements that Python does not compile.
    """
    node, outside = found.node, found.outside
    arguments = parameters(node)
    own = frozenset([*bound_names(*node.body), *(argument.arg for argument in arguments)])
    values = Values(outside, own, _bound_once(node), names_before)
    read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - own
    values.free = {name: None for scope in outside.scopes[:-1] for name in scope.bound if name in read}
    statements = Statements(values, text, found.kind == "macro", found.kind == "eager", refused)
    in_body = _annotations(node) if found.kind == "eager" else {}
    diagnostics = []
    for argument in arguments:
        values.bound[argument.arg] = None
        try:
            annotation = in_body.get(argument.arg, argument.annotation)
            value = _parameter(argument, annotation, found, values)
        except Refusal as refusal:
            place = refusal.place if isinstance(refusal.place, ast.AST) else argument
            diagnostics.append(refusal.message.at(header_span(text, place)))
            values.poisoned.add(argument.arg)
        except Poisoned:
            values.poisoned.add(argument.arg)
        else:
            values.held[argument.arg] = value if argument.arg in values.once else UNKNOWN
    statements.kernel(node.body)
    return [*diagnostics, *statements.found.values()]


def _bound_once(node: ast.FunctionDef) -> frozenset[str]:
    """Names that a function binds in one place."""
    count: dict[str, int] = {argument.arg: 1 for argument in parameters(node)}
    pending: list[ast.AST] = list(node.body)
    while pending:
        part = pending.pop()
        if isinstance(part, ast.AnnAssign) and part.value is None:
            continue
        if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.MatMult):
            continue  # it is refused where it changes what is known
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            count[part.target.id] = count.get(part.target.id, 0) + 2
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            count[part.id] = count.get(part.id, 0) + 1
        elif isinstance(part, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and part.name:
            count[part.name] = count.get(part.name, 0) + 2
        pending.extend(ast.iter_child_nodes(part))
    return frozenset(name for name, number in count.items() if number == 1)


def _annotations(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """Annotations in the body of an eager kernel that make run-time parameters."""
    names = annotated_parameters(node)
    return {
        part.target.id: part.annotation
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id in names
    }


def _parameter(argument: ast.arg, annotation: ast.expr | None, found: Found, values: Values) -> Known:
    """What a parameter is known to be; TL207 and mistakes of annotations of a kernel that is built when defined."""
    name, node = argument.arg, found.node
    if found.kind == "macro":
        return UNKNOWN
    if found.kind == "kernel":
        if argument in (node.args.vararg, node.args.kwarg):
            message = refusals.missing_annotation(name, f"parameter `{name}` takes any number of arguments", node)
            raise Refusal(message, argument)
        if annotation is None:
            raise Refusal(refusals.missing_annotation(name, f"parameter `{name}` has no annotation", node), argument)
        if not isinstance(annotation, ast.Constant):
            _check_annotation(annotation, found, values)
    if annotation is None:
        return UNKNOWN
    if isinstance(annotation, (ast.Call, ast.Subscript)):
        maker = found.outside.resolve(annotation.func if isinstance(annotation, ast.Call) else annotation.value)
        operation = Path(maker).operation if maker else None
        return Tensor(name, _shape(annotation, found.outside)) if operation in TENSORS else UNKNOWN
    path = found.outside.resolve(annotation)
    operation = Path(path).operation if path else None
    if found.kind == "kernel" and operation in TENSORS:
        shown = f"parameter `{name}` is annotated with `T.Tensor` without a shape"
        raise Refusal(refusals.missing_annotation(name, shown, node), annotation)
    if operation in surface.DTYPES or (found.kind == "kernel" and path in {f"builtins.{t}" for t in SCALARS}):
        return DEVICE
    return UNKNOWN


def _check_annotation(annotation: ast.expr, found: Found, values: Values) -> None:
    """An annotation is an expression of the host, read where the kernel is defined."""
    host = Values(found.outside, frozenset(), frozenset(), values.names_before)
    try:
        host.value(annotation)
    except Refusal as refusal:
        if isinstance(refusal.message, say.UndefinedName):
            if len(found.outside.scopes) > 1:  # Python itself says it there
                raise Poisoned from None
            known = [name for name in values.names_before if not name.startswith("__")]
            refusal.message = undefined(refusal.message.name, known, "assign it before the kernel")
        elif refusal.code not in ("TL003", "TL004", "TL205"):
            raise Poisoned from None
        raise


def _shape(annotation: ast.Call | ast.Subscript, outside: Outside) -> tuple[str, ...] | None:
    """The extents of `T.Tensor(shape, dtype)` or `T.Tensor[shape, dtype]`; None where the rank is not known."""
    if isinstance(annotation, ast.Call):
        given = [keyword.value for keyword in annotation.keywords if keyword.arg == "shape"]
        found = [*annotation.args, *given]
        shape = found[0] if found else None
    else:
        keys = annotation.slice
        shape = keys.elts[0] if isinstance(keys, ast.Tuple) and keys.elts else keys
        if not isinstance(shape, (ast.Tuple, ast.List)):
            return None
    if isinstance(shape, ast.Constant) and type(shape.value) is int:
        return (str(shape.value),)
    if not isinstance(shape, (ast.Tuple, ast.List)) or any(isinstance(part, ast.Starred) for part in shape.elts):
        return None
    sizes = []
    for part in shape.elts:
        number = outside.number(part.id) if isinstance(part, ast.Name) else None
        sizes.append(ast.unparse(part) if number is None else str(number))
    return tuple(sizes)
