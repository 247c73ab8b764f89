"""PTX calls in printed lines as instructions: `T.ptx.mma.sync.aligned.m16n8k16(...)`, neighbouring registers as slices.

TVM prints the operands, then one string for each modifier and a flag; addresses are nested calls.  Words of Python get
an underscore, as TVM writes them; instructions with other signs in their names are written `T.ptx["..."](...)`.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable

PTX = "T.ptx."
_POINTERS = ("T.cuda.cvta_generic_to_shared", "T.address_of")


def instruction(call: ast.Call, text: Callable[[ast.AST], str]) -> str | None:
    """The call as the instruction it is; None for one that is not made of operands and modifiers."""
    modifiers: list[str] = []
    for node in reversed(call.args):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            break
        modifiers.insert(0, node.value)
    operands = call.args[: len(call.args) - len(modifiers)]
    if not modifiers:
        return None
    words = [*dotted(call.func).removeprefix(PTX).split("."), *(word for word in modifiers[:-1] if word)]
    shown = ", ".join(_operands(operands, text))
    if all(word.isidentifier() for word in words):
        return f"{PTX}{'.'.join(word + '_' if keyword.iskeyword(word) else word for word in words)}({shown})"
    return f'T.ptx["{".".join(words)}"]({shown})'


def _operands(nodes: list[ast.expr], text: Callable[[ast.AST], str]) -> list[str]:
    shown: list[str] = []
    position = 0
    while position < len(nodes):
        count = _neighbours(nodes[position:])
        node = nodes[position]
        if count > 1 and isinstance(node, ast.Subscript):
            name, index, constant = _register(node) or ("", "", 0)
            start = text(node.slice)
            end = f"{index} + {constant + count}" if index else str(constant + count)
            shown.append(f"{name}[{start}:{end}]")
        else:
            shown.append(_element(node, text))
        position += count
    return shown


def _element(node: ast.expr, text: Callable[[ast.AST], str]) -> str:
    """What an address is the address of."""
    while isinstance(node, ast.Call) and dotted(node.func) in _POINTERS and node.args:
        node = node.args[0]
    return text(node)


def _neighbours(nodes: list[ast.expr]) -> int:
    """How many operands from the first on are registers that follow each other."""
    first = _register(nodes[0])
    if first is None:
        return 1
    count = 1
    while count < len(nodes) and _register(nodes[count]) == (first[0], first[1], first[2] + count):
        count += 1
    return count


def _register(node: ast.expr) -> tuple[str, str, int] | None:
    """(array, index without its constant, constant) of `array[index + constant]`."""
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, (ast.Tuple, ast.Slice)):
        return None
    array, index = dotted(node.value), node.slice
    number = _number(index)
    if number is not None:
        return array, "", number
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add):
        number = _number(index.right)
        if number is not None:
            return array, dotted(index.left), number
    return array, dotted(index), 0


def dotted(node: ast.expr) -> str:
    """What `ast.unparse` writes.  That takes long to begin, and most of what is asked for are names."""
    words: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        words.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        return ast.unparse(node)
    return ".".join([inner.id, *reversed(words)])


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
