"""A printed line of TIR in the words of the tile language: `T.copy(A[by * 128:by * 128 + 128, 0:32], A_s)`.

TVM prints a tile operation as an extern call with its operands in order, and allocations and loops with all that its
own parser needs.  A line is parsed, calls of known shape are written anew, and everything else stays as TVM printed it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from ..language.tile_program import PREFIX, SIGNATURES
from .readable_ptx import PTX, dotted, instruction

Shape = tuple[str, ...]
Shapes = dict[str, Shape]

# A line without any of these has no trigger below.
SOME_TRIGGER = ("T.", "annotations=", "TypeVar(")
# Text that can occur only in lines that are written anew: a cheap test before a line is parsed.
TRIGGERS = (
    "T.call_extern(",
    "T.Buffer(",
    "T.alloc_",
    "T.decl_buffer(",
    "T.attr(",
    "T.let[",
    "T.serial(",
    "T.parallel(",
    "annotations=",
    "T.tvm_storage_sync(",
    "T.ptx.",
    "T.int32()",
    "T.int64()",
    "TypeVar(",
)
WORD = re.compile(r"\w+")
REGION = PREFIX + "region"  # what looks at the shape of a buffer
OPERATOR_CALL = re.compile(r"\bT\.(?:Add|Sub|Mul|Div|FloorDiv|FloorMod|EQ|NE|LT|LE|GT|GE|And|Or)\(")
# Operands that a reader knows by their place; the others are written by name.
BY_PLACE = {"source", "target", "a", "b", "c", "buffer", "barrier", "value", "message", "condition", "layout", "parity"}
# Operations whose first operand completes their name: reduce with "max" is reduce_max.
COMPOSED = {"reduce": "reduce_{}", "cumulate": "cum{}", "atomic_region": "atomic_{}", "atomic_element": "atomic_{}"}
ALLOCATIONS = {
    "shared": "alloc_shared",
    "shared.dyn": "alloc_shared",
    "local.fragment": "alloc_fragment",
    "local": "alloc_local",
    "local.var": "alloc_var",
    "shared.barrier": "alloc_barrier_memory",
}
# The printer writes an operator as a call where its parser would fold it.
OPERATORS = {
    "T.Add": "+",
    "T.Sub": "-",
    "T.Mul": "*",
    "T.Div": "/",
    "T.FloorDiv": "//",
    "T.FloorMod": "%",
    "T.EQ": "==",
    "T.NE": "!=",
    "T.LT": "<",
    "T.LE": "<=",
    "T.GT": ">",
    "T.GE": ">=",
    "T.And": "and",
    "T.Or": "or",
}
WITHOUT_PARTS = frozenset([ast.Name, ast.Constant, ast.Load, ast.Store])
OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Attribute)
DEVICE_CALLS = {"tl_print": "T.print", "tl_device_assert": "T.device_assert"}
ATOMIC = "tl_atomic_"
NEUTRAL = ("layout", "scope")


def readable(lines: Iterable[str]) -> list[str]:
    """The lines of one function in readable form, one for one.  A line that is not understood stays as it is."""
    printed = list(lines)
    shapes = _shapes(printed)
    return [_readable_line(line, shapes) for line in printed]


def forget() -> None:
    """Forget the lines that were written before."""
    _written.cache_clear()
    _shapes_of.cache_clear()


def _readable_line(line: str, shapes: Shapes) -> str:
    if not any(word in line for word in SOME_TRIGGER):
        return line
    if not any(trigger in line for trigger in TRIGGERS) and not OPERATOR_CALL.search(line):
        return line
    body = line.lstrip()
    named = {name: shapes[name] for name in WORD.findall(body) if name in shapes} if REGION in body else {}
    return line[: len(line) - len(body)] + _written(body, tuple(named.items()))


@lru_cache(maxsize=4096)  # most lines of a stage stand in the stages before it, and in those of the cell's last run
def _written(body: str, shapes: tuple[tuple[str, Shape], ...]) -> str:
    """A line without its indentation in readable form.  shapes: of the buffers that it names."""
    try:
        tree = _parsed(body)
        return _Writer(body, dict(shapes)).written(tree) if tree else body
    except (ValueError, TypeError, LookupError, AttributeError, SyntaxError, RecursionError):
        return body  # an unexpected form is shown as TVM printed it


def _parsed(body: str) -> ast.Module | None:
    """The syntax of one printed line; a header such as `for ...:` gets a body."""
    for text in (*([] if body.endswith(":") else [body]), body + " pass", f"if 1:\n pass\n{body} pass"):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    return None


def _shapes(lines: list[str]) -> Shapes:
    """The shape of every buffer, as printed, by its printed name."""
    found: Shapes = {}
    for line in lines:
        if "T.Buffer(" in line or "T.alloc_" in line or "T.decl_buffer(" in line:
            found.update(_shapes_of(line.lstrip()))
    return found


@lru_cache(maxsize=1024)
def _shapes_of(body: str) -> tuple[tuple[str, Shape], ...]:
    """The buffers that a line defines."""
    tree = _parsed(body)
    return tuple(_defined(tree)) if tree else ()


def _defined(tree: ast.Module) -> Iterator[tuple[str, Shape]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Call):
            name, call = node.arg, node.annotation
        elif (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
        ):
            name, call = node.targets[0].id, node.value
        else:
            continue
        if call.args and isinstance(call.args[0], ast.Tuple):
            yield name, tuple(_extent(element) for element in call.args[0].elts)


def _extent(node: ast.expr) -> str:
    """An extent; a symbolic one is printed as a string where its variable is not defined yet."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    """The nodes directly inside; without operators, where there are many nodes of a class."""
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    if isinstance(node, ast.Subscript):
        return node.value, node.slice
    if isinstance(node, ast.Attribute):
        return (node.value,)
    if isinstance(node, ast.Call):
        return node.func, *node.args, *node.keywords
    return ast.iter_child_nodes(node)


class _Writer:
    """Writes one line anew: nodes of known shape through REWRITES, all else by its own text."""

    def __init__(self, line: str, shapes: Shapes):
        self.line, self.shapes = line.encode(), shapes

    def written(self, tree: ast.Module) -> str:
        return self.between(0, len(self.line), tree)

    def text(self, node: ast.AST) -> str:
        """A node in readable form."""
        new = self.anew(node)
        if new is not None:
            return new
        return self.between(node.col_offset, node.end_col_offset, node)  # type: ignore[attr-defined]

    def between(self, start: int, stop: int, parent: ast.AST) -> str:
        """The printed text with every part that has a readable form replaced by it."""
        pieces, position = [], start
        for first, last, new in sorted(self.replacements(parent)):
            if first >= position:
                pieces += [self.line[position:first].decode(), new]
                position = last
        return "".join(pieces) + self.line[position:stop].decode()

    def replacements(self, parent: ast.AST) -> Iterable[tuple[int, int, str]]:
        for node in _parts(parent):
            if type(node) in WITHOUT_PARTS:
                continue
            new = self.anew(node)
            if new is None:
                yield from self.replacements(node)
            else:
                if isinstance(parent, OPERATIONS) and _is_operator(node):
                    new = f"({new})"
                yield node.col_offset, node.end_col_offset, new  # type: ignore[attr-defined]

    def anew(self, node: ast.AST) -> str | None:
        """The readable form of a node that has one of its own."""
        if isinstance(node, ast.Subscript) and dotted(node.value) == "T.let":
            return self.text(node.slice)
        if not isinstance(node, ast.Call):
            return None
        name = dotted(node.func)
        if name == "T.call_extern":
            return self.extern(node)
        if _is_operator(node):
            left, right = (self.operand(argument) for argument in node.args)
            return f"{left} {OPERATORS[name]} {right}"
        if name.startswith(PTX):
            return instruction(node, self.text)
        rewrite = CALLS.get(name)
        return rewrite(self, node) if rewrite else None

    def operand(self, node: ast.expr) -> str:
        """An operand of an operator, in parentheses where it has operators of its own."""
        text = self.text(node)
        return f"({text})" if isinstance(node, OPERATIONS) or _is_operator(node) else text

    # calls

    def extern(self, call: ast.Call) -> str | None:
        _, name, *operands = call.args
        if not isinstance(name, ast.Constant):
            return None
        word = str(name.value)
        if word == PREFIX + "region":
            return self.region(operands)
        if word.startswith(PREFIX):
            return self.operation(word.removeprefix(PREFIX), operands)
        if word.startswith(ATOMIC):
            return f"T.atomic_{word.removeprefix(ATOMIC)}({', '.join(map(self.pointee, operands))})"
        shown = DEVICE_CALLS.get(word, word)
        if not all(part.isidentifier() for part in shown.split(".")):
            return None
        return f"{shown}({', '.join(map(self.text, operands))})"

    def operation(self, name: str, operands: list[ast.expr]) -> str:
        """A tile operation: operands known by their place first, then the others by name; absent ones left out."""
        fields = [field.rstrip("?") for field in SIGNATURES[name]]
        if len(operands) != len(fields):
            raise ValueError("not as many operands as the operation has")
        optional = {field.rstrip("?") for field in SIGNATURES[name] if field.endswith("?")}
        shown = list(zip(fields, operands))
        if name in COMPOSED:
            (_, kind), *shown = shown
            name = COMPOSED[name].format(_plain(kind))
        shown = [
            (field, operand)
            for field, operand in shown
            if not _is_absent(operand) and not (field in optional and _plain(operand) is False)
        ]
        places = [self.constant(operand) for field, operand in shown if field in BY_PLACE]
        names = [f"{field}={self.constant(operand)}" for field, operand in shown if field not in BY_PLACE]
        return f"T.{name}({', '.join(places + names)})"

    def region(self, operands: list[ast.expr]) -> str:
        """`A_s` for a whole buffer, else `A[by * 128:by * 128 + 128, k]`."""
        load, *extents = operands
        if not isinstance(load, ast.Subscript):
            raise ValueError("a region is a load and its extents")
        buffer = self.text(load.value)
        begins = load.slice.elts if isinstance(load.slice, ast.Tuple) else [load.slice]
        if len(begins) != len(extents):
            raise ValueError("one extent per index")
        shape = tuple(ast.unparse(extent) for extent in extents)
        if all(_plain(begin) == 0 for begin in begins) and self.shapes.get(buffer) == shape:
            return buffer
        return f"{buffer}[{', '.join(self.slice(begin, extent) for begin, extent in zip(begins, extents)) or '()'}]"

    def slice(self, begin: ast.expr, extent: ast.expr) -> str:
        first, count = _plain(begin), _plain(extent)
        if count == 1:
            return self.text(begin)
        if isinstance(first, int) and isinstance(count, int):
            return f"{first}:{first + count}"
        if first == 0:
            return f"0:{self.text(extent)}"
        start = self.text(begin)
        tight = isinstance(begin, (ast.Name, ast.Constant, ast.Call, ast.Subscript, ast.Attribute)) or (
            isinstance(begin, ast.BinOp) and isinstance(begin.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
        )
        return f"{start}:{start if tight else f'({start})'} + {self.text(extent)}"

    def constant(self, operand: ast.expr) -> str:
        """An operand; a typed constant `T.float32(0.0)` is its number."""
        if isinstance(operand, ast.Call) and len(operand.args) == 1 and isinstance(operand.args[0], ast.Constant):
            value = operand.args[0].value
            if isinstance(value, (bool, int, float)) and dotted(operand.func).startswith("T."):
                return self.text(operand.args[0])
        return self.text(operand)

    def pointee(self, operand: ast.expr) -> str:
        """`T.address_of(C[0])` is the element `C[0]`."""
        if isinstance(operand, ast.Call) and dotted(operand.func) == "T.address_of":
            return self.text(operand.args[0])
        return self.text(operand)

    def tensor(self, call: ast.Call) -> str:
        return f"T.Tensor({', '.join(self.shape_and_dtype(call))})"

    def allocation(self, call: ast.Call) -> str | None:
        scope = _keyword(call, "scope")
        name = ALLOCATIONS.get("local" if dotted(call.func) == "T.alloc_local" else str(scope or "shared"))
        operands = self.shape_and_dtype(call)
        return f"T.{name}({', '.join(operands[1:] if name == 'alloc_var' else operands)})" if name else None

    def view(self, call: ast.Call) -> str:
        """`T.view(arena, (64, 64), "float16", byte_offset=8192)`."""
        (pointer,) = (word for word in call.keywords if word.arg == "data")
        call.keywords.remove(pointer)
        base, offset = pointer.value, ""
        if isinstance(base, ast.Call) and dotted(base.func) == "T.ptr_byte_offset":
            offset = self.text(base.args[1])
            base = base.args[0]
        source = self.text(base.value) if isinstance(base, ast.Attribute) and base.attr == "data" else self.text(base)
        operands = [source, *self.shape_and_dtype(call)] + ([f"byte_offset={offset}"] if offset else [])
        return f"T.view({', '.join(operands)})"

    def attribute(self, call: ast.Call) -> str | None:
        """The threads of `T.ws(0, 1)`."""
        groups = _plain(call.args[2]) if len(call.args) == 3 else None
        if _plain(call.args[1]) != PREFIX + "warp_groups" or not isinstance(groups, str):
            return None
        return f"T.ws({', '.join(groups.split(','))})"

    def shape_and_dtype(self, call: ast.Call) -> list[str]:
        shape, *rest = call.args
        extents = [_extent(element) for element in shape.elts] if isinstance(shape, ast.Tuple) else None
        first = self.text(shape) if extents is None else f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"
        dtype = self.text(rest[0]) if rest else '"float32"'
        others = [f"{word.arg}={self.text(word.value)}" for word in call.keywords if word.arg not in NEUTRAL]
        return [first, dtype, *map(self.text, rest[1:]), *others]

    def loop(self, call: ast.Call) -> str:
        """`T.serial(8, annotations={"tl.num_stages": 3})` is `T.Pipelined(8, num_stages=3)`."""
        name, options = dotted(call.func), []
        kind = {"T.parallel": "T.Parallel"}.get(name, name)
        for word in call.keywords:
            if word.arg == "annotations" and isinstance(word.value, ast.Dict):
                for key, value in zip(word.value.keys, word.value.values):
                    option = str(_plain(key)).removeprefix(PREFIX)
                    if not option.isidentifier() or option == "None":
                        raise ValueError("an annotation that is no option of a loop")
                    kind = "T.Pipelined" if option == "num_stages" else kind
                    options.append(f"{option}={self.constant(value)}")
            else:
                options.append(f"{word.arg}={self.text(word.value)}")
        return f"{kind}({', '.join([*map(self.text, call.args), *options])})"

    def barrier(self, call: ast.Call) -> str | None:
        return "T.sync_threads()" if _plain(call.args[0]) in ("shared", "shared.dyn") else None

    def size_variable(self, call: ast.Call) -> str | None:
        name, equals, _ = self.line.decode().partition(" = ")
        if not equals or not name.isidentifier() or (dotted(call.func) != "TypeVar" and call.args):
            return None
        dtype = dotted(call.func).removeprefix("T.")
        return f'T.dynamic("{name}")' if dtype in ("int32", "TypeVar") else f'T.dynamic("{name}", "{dtype}")'


CALLS: dict[str, Callable[[_Writer, ast.Call], str | None]] = {
    "T.Buffer": _Writer.tensor,
    "T.alloc_buffer": _Writer.allocation,
    "T.alloc_shared": _Writer.allocation,
    "T.alloc_local": _Writer.allocation,
    "T.decl_buffer": _Writer.view,
    "T.attr": _Writer.attribute,
    "T.int32": _Writer.size_variable,
    "T.int64": _Writer.size_variable,
    "T.serial": _Writer.loop,
    "T.unroll": _Writer.loop,
    "T.vectorized": _Writer.loop,
    "T.parallel": _Writer.loop,
    "T.tvm_storage_sync": _Writer.barrier,
    "TypeVar": _Writer.size_variable,
}


def _keyword(call: ast.Call, name: str) -> object:
    return next((_plain(word.value) for word in call.keywords if word.arg == name), None)


def _plain(node: ast.AST | None) -> object:
    """The Python value of a constant, also of a typed one; None for any other expression."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    return node.value if isinstance(node, ast.Constant) else None


def _is_operator(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and len(node.args) == 2 and dotted(node.func) in OPERATORS


def _is_absent(operand: ast.expr) -> bool:
    return isinstance(operand, ast.Constant) and operand.value == ""
