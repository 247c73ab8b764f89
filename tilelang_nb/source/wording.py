"""Words that many messages need: articles, the real name nearest to a misspelt one, and numbers in a length that a
line can hold.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Iterable
from typing import Any

LIKENESS = 0.7  # of a name to one that is mistyped; below it, another word is more often meant
LONGEST = 40  # digits that a message writes out
_WRITTEN_OUT = 10**LONGEST
_VOWEL_SOUND = ("a", "e", "i", "o", "un", "up", "ndarray", "mbarrier")
_CONSONANT_SOUND = ("one", "eu", "uni")


def with_article(noun: str) -> str:
    """`an int`, `a uint8`, `an ndarray`: the noun as it is spoken behind its article."""
    spoken = noun.lstrip("`'\"").lower()
    vowel = spoken.startswith(_VOWEL_SOUND) and not spoken.startswith(_CONSONANT_SOUND)
    return f"{'an' if vowel else 'a'} {noun}"


# What messages call objects by their class, where its name is not the word a person has for it.
_SPOKEN = {
    ("builtins", "NoneType"): "None",
    ("builtins", "type"): "a class",
    ("builtins", "builtin_function_or_method"): "a built-in function",
    ("builtins", "method_descriptor"): "a method",
    ("builtins", "wrapper_descriptor"): "a method",
    ("builtins", "ellipsis"): "an ellipsis",
    ("tilelang_nb.language.launch", "Kernel"): "a launch",
    ("tilelang_nb.language.launch", "ws"): "a choice of warp groups",
    ("tilelang_nb.language.tensors", "Tensor"): "a tensor annotation",
}
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def of_type(value: Any) -> str:
    """What a message calls a Python object that it cannot show: `an int`, `a list`, `a device loop`."""
    kind = type(value)
    module, name = str(kind.__module__), kind.__name__
    spoken = _SPOKEN.get((module, name))
    if spoken is not None:
        return spoken
    if module.startswith("tilelang_nb."):  # the words of its name
        name = _CAPITALS.sub(" ", name.lstrip("_")).lower()
    return with_article(name)


def number_text(value: Any) -> str:
    """A number as messages write it; a very long integer by its length, which Python would refuse to write out."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) < _WRITTEN_OUT:
        return str(value)
    digits = int(math.log10(abs(value)))
    if digits < 10_000 and 10**digits > abs(value):  # the logarithm was rounded up
        digits -= 1
    return f"{'a negative' if value < 0 else 'an'} integer of {digits + 1:,} digits"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, as a person mistypes it; None where nothing is near."""
    candidates = sorted(set(names))
    found = difflib.get_close_matches(name, candidates, 1, LIKENESS)
    if found:
        return found[0]
    folded = {candidate.lower().replace("_", ""): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower().replace("_", ""), list(folded), 1, LIKENESS)
    return folded[close[0]] if close else None


def listed(names: Iterable[str]) -> str:
    """Names in backticks, as a sentence lists them."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}" if quoted else "nothing"


def tidy(expression: str) -> str:
    """The text of an index expression as a kernel would write it: `T.ceildiv(n, 64)` for `(n + 64 - 1) // 64`."""
    if "//" not in expression:
        return expression
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return expression
    return ast.unparse(_CeilingDivisions().visit(tree))


class _CeilingDivisions(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        size = _rounded_up(node.left, node.right) if isinstance(node.op, ast.FloorDiv) else None
        if size is None:
            return node
        called = ast.Attribute(ast.Name("T", ast.Load()), "ceildiv", ast.Load())
        return ast.Call(called, [size, node.right], [])


def _rounded_up(left: ast.expr, step: ast.expr) -> ast.expr | None:
    """`x` of `x + step - 1` or of `x + 63` for a step of 64."""
    if not isinstance(left, ast.BinOp):
        return None
    less_one = isinstance(left.op, ast.Sub) and isinstance(left.right, ast.Constant) and left.right.value == 1
    if less_one and isinstance(left.left, ast.BinOp) and isinstance(left.left.op, ast.Add):
        return left.left.left if ast.dump(left.left.right) == ast.dump(step) else None
    added = left.right.value if isinstance(left.op, ast.Add) and isinstance(left.right, ast.Constant) else None
    whole = step.value if isinstance(step, ast.Constant) else None
    if isinstance(added, int) and isinstance(whole, int) and whole > 1 and added == whole - 1:
        return left.left
    return None
