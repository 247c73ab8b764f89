"""What the text alone refuses, in the words of the walk: the tables of refused syntax, and messages that need a node
but no device value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..source import catalogue as say
from ..source.cures.control_flow import as_range
from ..source.cures.statements import one_for_each
from ..source.diagnostic import Message, Note, Refusal
from ..source.text import Text
from .places import line_span

KINDS_TO_LEAVE = ("serial", "unroll", "while", "persistent", "pipelined")
KINDS_TO_CONTINUE = (*KINDS_TO_LEAVE, "parallel", "grid")
# `grid` is nested loops, of which `break` would leave the innermost only.
_WRITTEN = {kind: f"`T.{name}`" for kind, name in (("parallel", "Parallel"), ("pipelined", "Pipelined"))}
_WRITTEN |= {"vectorized": "`T.vectorized`", "grid": "`T.grid`"}


def _function(node: Any) -> Message:
    return say.NestedFunction(name=node.name)


def _try(node: Any) -> Message:
    return say.TryStatement()


def _import(node: Any) -> Message:
    return say.ImportInKernel()


STATEMENTS: dict[str, Callable[[Any], Message]] = {
    "AsyncFor": lambda node: say.GeneratorKernel(what="`async for`", remedy="write `for`"),
    "AsyncFunctionDef": _function,
    "AsyncWith": lambda node: say.GeneratorKernel(what="`async with`", remedy="write `with T.Kernel(...)`"),
    "ClassDef": lambda node: say.NestedClass(name=node.name),
    "FunctionDef": _function,
    "Global": lambda node: say.GlobalStatement(word="global"),
    "Import": _import,
    "ImportFrom": _import,
    "Nonlocal": lambda node: say.GlobalStatement(word="nonlocal"),
    "Raise": lambda node: say.RaiseStatement(),
    "Try": _try,
    "TryStar": _try,
    "TypeAlias": lambda node: say.UnsupportedSyntax(what="a type alias in a kernel", remedy="define it outside"),
}


def names_only(node: ast.Assign) -> bool:
    """Whether every target is a name."""
    return all(isinstance(target, ast.Name) for target in node.targets)


def several_targets(node: ast.Assign) -> Refusal:
    """TL101 with the assignments that say the same."""
    if names_only(node):
        names = [ast.unparse(target) for target in node.targets]
        lines = [f"{name} = {source}" for name, source in zip(names, [ast.unparse(node.value), *names])]
    else:  # memory is not read back
        lines = one_for_each(node, ast.unparse, ast.unparse(node.value), lambda: "value")
    return Refusal(say.ChainedAssignment(statements=" and ".join(f"`{line}`" for line in lines)), node)


def target_is_attribute(target: ast.expr) -> Refusal:
    """TL127 for a store into an attribute."""
    remedy = "bind a name, or store into a buffer"
    return Refusal(say.UnsupportedSyntax(what="assignment to an attribute in a kernel", remedy=remedy), target)


def stores_into_object(what: str, base: Any) -> say.RuntimeIndexIntoPythonObject:
    """TL116 for a store at a device index.  base: an array of the host, a list or dict, or anything else."""
    if not is_array(base):
        remedy = "store into a tensor that the kernel takes, or into a tile: `T.alloc_fragment(shape, dtype)`"
        return say.RuntimeIndexIntoPythonObject(what, remedy)
    remedy = "take the array as a parameter"
    return say.RuntimeIndexIntoPythonObject(
        what, f"{remedy}, or under `@jit` make it with `{empty_like(base.shape, base.dtype)}`"
    )


def is_array(value: Any) -> bool:
    """An array of NumPy or PyTorch, or one like them; a module or class with functions of such names is none."""
    kind = type(value)
    if not (hasattr(kind, "shape") and hasattr(kind, "dtype")):
        return False
    return isinstance(value.shape, tuple) and all(isinstance(extent, int) for extent in value.shape)


def empty_like(shape: Any, dtype: Any) -> str:
    """`T.empty` of an array of the host; NumPy's default float64 is seldom meant on a device."""
    name = str(dtype).removeprefix("torch.")
    extents = ", ".join(map(str, shape))
    return f"T.empty(({extents}{',' if len(shape) == 1 else ''}), T.{'float32' if name == 'float64' else name})"


def stores_region(name: str, operation: str, region: str = "region") -> say.RegionStore:
    """TL127 for `A[i:j] = value`.  operation: of the language, which stores such a value there; "" for none.

    region: its text.
    """
    what = f"a store into a region of `{name}`"
    remedies = {"copy": f"write `T.copy(source, {region})`", "fill": f"write `T.fill({region}, value)`"}
    return say.RegionStore(
        what=what, remedy=remedies.get(operation, "store each element in a loop"), operation=operation
    )


def deletes_no_name(node: ast.Delete) -> Refusal:
    """TL127 for `del` of an element or attribute."""
    remedy = "only names can be deleted"
    return Refusal(say.UnsupportedSyntax(what="`del` of something that is no name", remedy=remedy), node)


def several_items(node: ast.With) -> Refusal:
    """TL104 for `with a, b:`."""
    remedy = "write one `with` inside the other"
    return Refusal(say.UnsupportedWith(what="several items", remedy=remedy), node)


def context_of_python(node: ast.expr, target: ast.expr | None) -> Refusal:
    """TL104 for a context manager of Python, where it can before it is made.  target: of its `as` clause."""
    what = f"`{ast.unparse(node.func if isinstance(node, ast.Call) else node)}`"
    remedy = "leave it out here; in host code it may stand around the call of the kernel"
    if target is not None:
        remedy = f"bind `{ast.unparse(target)}` before the kernel, in host code"
    return Refusal(say.UnsupportedWith(what=what, remedy=remedy), node)


def iterates_over_buffer(what: str, node: ast.expr, rank: int) -> say.NotIterable:
    """TL111 with the loop over the indices of the buffer."""
    written = ast.unparse(node)
    remedy = f"loop over its indices, `for i in range({written}.shape[0])`, and read `{written}[i]`"
    return say.NotIterable(what, remedy, f"{written}.shape[0]", written if rank == 1 else "")


def iterates_over_number(what: str, node: ast.expr) -> say.NotIterable:
    """TL111 with `range` of the number."""
    written = ast.unparse(node)
    return say.NotIterable(what=what, remedy=f"write `range({written})`", extent=written)


def leaves_expanded_loop(word: str, node: ast.stmt, loop: ast.stmt, text: Text) -> Refusal:
    """TL110 with the line of the loop."""
    line = loop.lineno
    note = Note(f"the loop on line {line} is expanded while building", line_span(text, line))
    numbers = as_range(loop.iter) if isinstance(loop, ast.For) else ""
    remedy = ", with the values in a buffer: `for i in range(n)`"
    if numbers and isinstance(loop, ast.For):
        remedy = f": `for {ast.unparse(loop.target)} in {numbers}`"
    return Refusal(say.RuntimeBreakOfCompileTimeLoop(word=word, line=str(line), remedy=remedy), node, notes=[note])


def leaves_loop_of_kind(word: str, node: ast.stmt, kind: str) -> Refusal | None:
    """TL119 where a device loop of this kind has no `break` or `continue`."""
    if kind in (KINDS_TO_LEAVE if word == "break" else KINDS_TO_CONTINUE):
        return None
    return Refusal(say.BreakNotAllowed(word=word, kind=_WRITTEN.get(kind, kind)), node)


def returns_from_macro(node: ast.Return) -> Refusal:
    """TL121 for `return` of a macro that only some threads or iterations would reach."""
    problem, remedy = "`return` under runtime control flow", "return once, at the end, and choose with `if`/`else`"
    return Refusal(say.ReturnNotAllowed(problem=problem, remedy=remedy), node)


def returns_early(node: ast.Return, remedy: str = "put the rest under `if`/`else`") -> Refusal:
    """TL121 for `return` of a kernel in a loop or branch, or with statements behind it."""
    return Refusal(say.ReturnNotAllowed(problem="`return` before the end", remedy=remedy), node)


def has_value(node: ast.Return) -> bool:
    """Whether a `return` gives something: `return None` says no more than `return`."""
    return node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)


def returns_value(node: ast.Return) -> Refusal:
    """TL121 for the value of a kernel."""
    problem, remedy = "a kernel returns nothing", "store the result in a buffer parameter"
    return Refusal(say.ReturnNotAllowed(problem=problem, remedy=remedy), node)


def missing_annotation(
    name: str, problem: str, kernel: ast.FunctionDef | None = None, *, eager: tuple[int, str] | None = None
) -> say.MissingAnnotation:
    """TL207 with an annotation to write: that of a tensor which the kernel takes too, where there is one.

    eager: rank and dtype of an array whose annotation stands in the body, after the names of its sizes.
    """
    if eager is not None:
        rank, dtype = eager
        sizes = ", ".join("KLMN"[-rank:]) if 1 <= rank <= 4 else "N"
        example = f'{sizes} = T.const("{sizes}")` and `{name}: T.Tensor[[{sizes}], T.{dtype}]'
        return say.MissingAnnotation(problem=problem, example=example)
    written = 'T.Tensor((M, N), "float16")'
    for argument in kernel.args.args if kernel is not None else ():
        call = argument.annotation
        if isinstance(call, ast.Call) and argument.arg != name and ast.unparse(call.func).endswith("Tensor"):
            written = ast.unparse(call).replace("'", '"')
            break
    return say.MissingAnnotation(problem=problem, example=f"{name}: {written}")


def length_of(what: str, shaped: str = "") -> say.LenOfBuffer:
    """TL107 with the extent to read.  shaped: what has a shape."""
    if shaped:
        return say.LenOfBuffer(what=what, remedy=f"`{shaped}.shape[0]`", shaped="yes")
    return say.LenOfBuffer(what=what, remedy="`buffer.shape[dim]`")
