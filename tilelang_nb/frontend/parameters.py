"""Parameters of a kernel, from the annotations of its `def`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from tvm import tirx as tir

from ..language.dtypes import Dtype
from ..language.operands import described
from ..language.parameter_pointers import ParameterPointer, pointer_kind
from ..language.promotion import in_ir
from ..language.tensors import Tensor
from ..language.values import Buffer, Value, is_device, number
from ..source import catalogue as say
from ..source.diagnostic import Message, Poisoned, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.text import Text
from ..source.wording import of_type
from .large_integers import compiled
from .locate import MARK, exception_text, place_of
from .macros import parameters
from .program import Parameter
from .refusals import missing_annotation

PYTHON_TYPES = {int: "int32", float: "float32", bool: "bool"}


def read_parameters(
    text: Text,
    node: ast.FunctionDef,
    annotations: Mapping[str, Any],
    defaults: Mapping[str, Any],
    evaluate: Callable[[str | CodeType], Any],
) -> tuple[list[Parameter], list[Refusal]]:
    """The parameters, and what is wrong with others; one whose annotation is poisoned is in neither list.

    annotations: by name; postponed ones are strings, which `evaluate` turns into objects.  defaults: by name.
    """
    found, wrong = [], []
    for argument in parameters(node):
        code = None
        try:
            if argument in (node.args.vararg, node.args.kwarg):
                raise Refusal(
                    missing_annotation(argument.arg, f"parameter `{argument.arg}` takes any number of arguments", node),
                    argument,
                )
            if argument.annotation is None:
                problem = f"parameter `{argument.arg}` has no annotation"
                if argument.arg in ("self", "cls") and argument is parameters(node)[0]:
                    example = f"@staticmethod` above the kernel, and leave out `{argument.arg}"
                    raise Refusal(say.MissingAnnotation(problem=problem, example=example), argument)
                raise Refusal(missing_annotation(argument.arg, problem, node), argument)
            kind = annotations.get(argument.arg)
            if (
                isinstance(kind, str)
                and not isinstance(kind, Dtype)
                and not isinstance(argument.annotation, ast.Constant)
            ):
                code = compiled(argument.annotation, MARK)
                kind = evaluate(code)
            while isinstance(kind, str) and not isinstance(kind, Dtype):
                kind = evaluate(kind)
            one = parameter(argument.arg, kind, node)
            if argument.arg in defaults:
                one = replace(one, default=_default(one, defaults[argument.arg]))
            found.append(one)
        except Refusal as refusal:
            exact = place_of(refusal.__traceback__, text, code).span if code is not None else None
            refusal.place = refusal.place or exact or argument.annotation
            wrong.append(refusal)
        except Poisoned:  # it names what was refused before
            continue
        except BaseException as error:
            pass_on_interrupt(error)
            remedy = "an annotation is Python that runs when the kernel is defined"
            message: Message = say.ExceptionWhileBuilding(exception=exception_text(error), remedy=remedy)
            if isinstance(error, SyntaxError):  # of a text in quotes
                problem = f"the annotation of `{argument.arg}` is not Python: {error.msg}"
                message = say.SyntaxMistake(problem=problem, remedy="correct the text in the quotes")
            wrong.append(Refusal(message, argument.annotation))
    return found, wrong


def parameter(name: str, kind: Any, kernel: ast.FunctionDef | None = None) -> Parameter:
    """A parameter with this annotation; TL207 for what is none.  kernel: the `def` that it belongs to."""
    if isinstance(kind, Tensor):
        if kind.scope != "global":
            remedy = f"parameter `{name}` lies in {kind.scope}; a kernel takes arrays in global memory"
            raise Refusal(missing_annotation(name, remedy, kernel))
        shape = tuple([extent.use() if isinstance(extent, Value) else int(extent) for extent in kind.shape])
        strides = None
        if kind.strides is not None:
            strides = tuple([stride.use() if isinstance(stride, Value) else int(stride) for stride in kind.strides])
        dtype = str(kind.dtype)
        var = tir.decl_buffer(shape, in_ir(dtype), name, strides=strides, layout=None)
        return Parameter(name, "tensor", dtype, shape, strides, var)
    pointer = pointer_kind(kind)
    if pointer is not None:
        return Parameter(name, "pointer", str(pointer.dtype or ""), (), None, None)
    dtype = str(kind) if isinstance(kind, Dtype) else PYTHON_TYPES.get(kind) if isinstance(kind, type) else None
    if dtype is None:
        shown = of_type(kind) if not isinstance(kind, type) else f"`{kind.__name__}`"
        if kind is Tensor or (isinstance(kind, type) and issubclass(kind, Tensor)):
            shown = "`T.Tensor` without a shape"
        raise Refusal(missing_annotation(name, f"parameter `{name}` is annotated with {shown}", kernel))
    return Parameter(name, "scalar", dtype, (), None, tir.Var(name, in_ir(dtype)))


def _default(parameter: Parameter, value: Any) -> bool | int | float:
    """The default of a scalar parameter; TL004 for what none can have."""
    name = parameter.name
    if parameter.kind != "scalar":
        problem = f"the tensor parameter `{name}` has a default"
        raise Refusal(say.BadArgument(problem=problem, remedy=f"remove it: every launch passes `{name}`"))
    found = None if is_device(value) else number(value)
    if not isinstance(found, (bool, int, float)):
        problem = f"the default of parameter `{name}` is {described(value)}"
        raise Refusal(say.BadArgument(problem=problem, remedy=f"give a number that {parameter.dtype} holds"))
    return found


def arguments_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """What the names of parameters are bound to in the kernel."""
    sizes = sizes_of_launch(parameters)
    return {
        one.name: ParameterPointer(one.name, Dtype(one.dtype) if one.dtype else None, sizes)
        if one.kind == "pointer"
        else argument_of(one)
        for one in parameters
    }


def sizes_of_launch(parameters: Sequence[Parameter]) -> frozenset[Any]:
    """The variables that a launch knows: numbers that are parameters, and sizes in the shapes of tensors."""
    found = {one.var for one in parameters if one.kind == "scalar"}
    for one in parameters:
        for extent in one.shape:
            if not isinstance(extent, int):
                found.update(tir.analysis.undefined_vars(tir.Evaluate(extent), []))
    return frozenset(found)


def pointed(parameter: Parameter, pointer: ParameterPointer, kernel: ast.FunctionDef) -> Parameter:
    """What a `T.ptr` takes, after the walk of its kernel.  TL207 where nothing makes a tensor of it."""
    made = pointer.buffer
    if made is None:
        name = parameter.name
        place = next(argument.annotation for argument in parameters(kernel) if argument.arg == name)
        problem = f"no `T.make_tensor({name}, shape, dtype)` says what `{name}` points to"
        raise Refusal(missing_annotation(name, problem, kernel), place)
    var = made.var
    strides = None if made.strides is None else tuple(map(_extent, var.strides))
    return Parameter(
        parameter.name, "tensor", str(made.dtype), tuple(map(_extent, var.shape)), strides, var, pointed=True
    )


def _extent(size: Any) -> Any:
    return int(size.value) if isinstance(size, tir.IntImm) else size


def argument_of(parameter: Parameter) -> Any:
    """What the name of a parameter is bound to in the kernel.  TL302 for a pointer: an eager kernel has none."""
    if parameter.kind == "pointer":
        remedy = f'annotate the array, `N = T.const("N")` and `{parameter.name}: T.Tensor[[N], T.float32]`'
        raise Refusal(
            say.TargetUnavailable(problem=f"the pointer `{parameter.name}` of an eager kernel", remedy=remedy)
        )
    if parameter.kind == "scalar":
        return Value(parameter.var, parameter.dtype)
    return Buffer(
        parameter.name,
        _values(parameter.shape),
        Dtype(parameter.dtype),
        "global",
        parameter.var,
        None if parameter.strides is None else _values(parameter.strides),
    )


def _values(extents: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([extent if isinstance(extent, int) else Value(extent, str(extent.ty.dtype)) for extent in extents])
