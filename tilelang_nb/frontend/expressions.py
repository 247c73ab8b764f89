"""Expressions: rewritten where Python would need a truth value, compiled once per syntax node, evaluated many times.

Only syntax that has no protocol to overload is rewritten; operators, subscripts, attributes, comprehensions,
generators and lambdas stay Python.  Every call goes through the intrinsic `call`, which compares the *callee* with
the built-ins: an alias of `range` is range, a user's own `range` is not.  Rewritten nodes keep their places, so
tracebacks lead to the text.
"""

from __future__ import annotations

import ast
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Message, Refusal
from .attributes import HIDDEN
from .names import INTRINSICS, targets
from .places import MARK
from .python_mistakes import python_mistake
from .walruses import bound_where

HANDLED = frozenset(
    [
        "BoolOp",
        "NamedExpr",
        "BinOp",
        "UnaryOp",
        "Lambda",
        "IfExp",
        "Dict",
        "Set",
        "ListComp",
        "SetComp",
        "DictComp",
        "GeneratorExp",
        "Compare",
        "Call",
        "FormattedValue",
        "JoinedStr",
        "Constant",
        "Attribute",
        "Subscript",
        "Starred",
        "Name",
        "List",
        "Tuple",
        "Slice",
    ]
)


def _generator(what: str) -> Message:
    return say.GeneratorKernel(what=f"`{what}`", remedy="store results in a buffer; use `for` loops")


def _template(what: str) -> Message:
    return say.UnsupportedSyntax(what=f"a {what} in a kernel", remedy="use an f-string")


ASYNCHRONOUS = _generator("async for")  # in a comprehension
REFUSED: dict[str, Message] = {
    "Await": _generator("await"),
    "Yield": _generator("yield"),
    "YieldFrom": _generator("yield from"),
    "TemplateStr": _template("template string"),
    "Interpolation": _template("template string"),
}
BINARY_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}
UNARY_OPERATORS = {ast.Invert: "~", ast.Not: "not", ast.UAdd: "+", ast.USub: "-"}
COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_WITHOUT_PROTOCOL = (ast.In, ast.NotIn, ast.Is, ast.IsNot)
_NO_ARGUMENTS: dict[str, Any] = {"vararg": None, "kwarg": None}
_NO_ARGUMENTS |= {name: [] for name in ("posonlyargs", "args", "kwonlyargs", "kw_defaults", "defaults")}


def refused_syntax(node: ast.AST) -> Message | None:
    """The refusal of an expression for its class, or as an asynchronous comprehension."""
    if any(clause.is_async for clause in getattr(node, "generators", ())):
        return ASYNCHRONOUS
    return REFUSED.get(type(node).__name__)


class _Rewriter:
    """Makes a rewritten copy; the nodes of the user's text stay as they are."""

    def __init__(self) -> None:
        self.in_lambda = 0

    def visit(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.visit(part) for part in node]
        if not isinstance(node, ast.AST):
            return node
        refused = refused_syntax(node)
        if refused is not None:
            raise Refusal(refused, node)
        special = getattr(self, f"visit_{type(node).__name__}", None)
        return special(node) if special else self.copy(node)

    def copy(self, node: Any) -> Any:
        fields = {name: self.visit(getattr(node, name)) for name in node._fields if hasattr(node, name)}
        return ast.copy_location(type(node)(**fields), node)

    def intrinsic(self, node: Any, name: str, *arguments: Any, keywords: Any = ()) -> ast.Call:
        function = ast.Attribute(ast.Name(INTRINSICS, ast.Load()), name, ast.Load())
        call = ast.Call(function, list(arguments), list(keywords))
        for part in (function.value, function, call):
            ast.copy_location(part, node)
        return call

    def thunk(self, node: Any) -> ast.Lambda:
        return ast.copy_location(ast.Lambda(ast.arguments(**_NO_ARGUMENTS), self.visit(node)), node)

    def constant(self, node: Any, value: Any) -> ast.Constant:
        return ast.copy_location(ast.Constant(value), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return self.intrinsic(node, name, self.visit(node.values[0]), *[self.thunk(v) for v in node.values[1:]])

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if not isinstance(node.op, (ast.Pow, ast.LShift)):
            return self.copy(node)
        operator = self.constant(node, BINARY_OPERATORS[type(node.op)])
        return self.intrinsic(node, "grown", operator, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.intrinsic(node, "not_", self.visit(node.operand))
        return self.copy(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        names = self.constant(node, (bound_where(node.test, True), bound_where(node.test, False)))
        branches = self.thunk(node.body), self.thunk(node.orelse)
        return self.intrinsic(node, "pick", self.visit(node.test), *branches, names)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1 and not isinstance(node.ops[0], _WITHOUT_PROTOCOL):
            return self.copy(node)
        operators = self.constant(node, tuple(COMPARISONS[type(op)] for op in node.ops))
        return self.intrinsic(
            node, "compare", operators, self.visit(node.left), *[self.thunk(c) for c in node.comparators]
        )

    def visit_Call(self, node: ast.Call) -> Any:
        """The names of arguments that are plain names go with the call: messages and `T.Ref` parameters need them."""
        positional = tuple(a.id if isinstance(a, ast.Name) else None for a in node.args)
        keyword = tuple((k.arg, k.value.id) for k in node.keywords if k.arg and isinstance(k.value, ast.Name))
        names = (positional, keyword) if any(positional) or keyword else None
        keywords = [ast.copy_location(ast.keyword(k.arg, self.argument(k.value)), k) for k in node.keywords]
        arguments = [self.argument(a) for a in node.args]
        texts = any(isinstance(value, ast.JoinedStr) for value in (*node.args, *(k.value for k in node.keywords)))
        return self.intrinsic(
            node,
            "call_with_texts" if texts else "call",
            self.constant(node, names),
            self.visit(node.func),
            *arguments,
            keywords=keywords,
        )

    def visit_Starred(self, node: ast.Starred) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return self.copy(node)
        bounded = self.intrinsic(node.value, "unpacked", self.visit(node.value))
        return ast.copy_location(ast.Starred(bounded, ast.Load()), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        if self.in_lambda:  # it binds the lambda's local, as Python has it
            return self.copy(node)
        place = self.constant(node, _place(node))
        return self.intrinsic(node, "walrus", self.constant(node, node.target.id), self.visit(node.value), place)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if node.attr not in HIDDEN or not isinstance(node.ctx, ast.Load):
            return self.copy(node)
        return self.intrinsic(node, "attribute", self.visit(node.value), self.constant(node, node.attr))

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        arguments = self.visit(node.args)  # defaults are evaluated outside
        self.in_lambda += 1
        body = self.visit(node.body)
        self.in_lambda -= 1
        return ast.copy_location(ast.Lambda(arguments, body), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        """Lazy: its turns are over when an element is handed out."""
        made = self.intrinsic(node.elt, "made", self.visit(node.elt))
        return ast.copy_location(ast.GeneratorExp(made, self.clauses(node)), node)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> Any:
        return ast.copy_location(type(node)(self.visit(node.elt), self.clauses(node)), node)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        parts = self.visit(node.key), self.visit(node.value)
        return ast.copy_location(ast.DictComp(*parts, self.clauses(node)), node)

    def clauses(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> list[ast.comprehension]:
        return [self.clause(clause, number == 0) for number, clause in enumerate(node.generators)]

    def clause(self, node: ast.comprehension, first: bool) -> ast.comprehension:
        facts = node.iter.lineno, targets(node.target), first
        constants = [self.constant(node.iter, fact) for fact in facts]
        items = self.intrinsic(node.iter, "items", self.visit(node.iter), *constants)
        tests = [self.intrinsic(test, "filter", self.visit(test)) for test in node.ifs]
        return ast.comprehension(self.visit(node.target), items, tests, node.is_async)

    def argument(self, node: ast.expr) -> Any:
        """An argument of a call: an f-string with a device value in it is the call's to refuse."""
        if not isinstance(node, ast.JoinedStr):
            return self.visit(node)
        text = ast.copy_location(ast.Lambda(ast.arguments(**_NO_ARGUMENTS), self.visit_JoinedStr(node)), node)
        return self.intrinsic(node, "text_argument", text, self.constant(node, _place(node)))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """Parts of f-strings have wrong places before Python 3.12: a failure in one is reported at the whole string."""
        text = self.copy(node)
        for part in ast.walk(text):
            if hasattr(part, "lineno"):
                ast.copy_location(part, node)
        return text

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        written = self.constant(node.value, ast.unparse(node.value))
        value = self.intrinsic(node.value, "formatted", self.visit(node.value), written)
        form = self.copy(node.format_spec) if node.format_spec else None  # Python wants an f-string there
        return ast.copy_location(ast.FormattedValue(value, node.conversion, form), node)


def _place(node: Any) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def compile_expression(node: ast.expr) -> Any:
    """A code object for `eval` in a frame's namespace.  A refusal says so: nothing of the expression was evaluated."""
    try:
        return compile(ast.Expression(_Rewriter().visit(node)), MARK, "eval", dont_inherit=True)
    except RecursionError:
        raise Refusal(too_deep("an expression"), node) from None
    except SyntaxError as error:  # the rules that Python checks only when it compiles
        raise Refusal(python_mistake(str(error.msg)), node, unevaluated=True) from None
    except Refusal as refusal:
        refusal.unevaluated = True
        raise


def too_deep(what: str) -> Message:
    """The refusal of a text that is nested deeper than Python's own stack allows."""
    return say.UnsupportedSyntax(what=f"{what} nested too deeply", remedy="split it, with names for the parts")
