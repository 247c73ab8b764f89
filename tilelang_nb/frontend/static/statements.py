"""The statements of a kernel or macro in the order of the walk, as far as it certainly reaches them.

Compile-time loops are taken as run at least once.  A branch whose condition is not known to be the device's is left
out, and what follows it too where it may leave the loop or the function.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...source import catalogue as say
from ...source.diagnostic import Diagnostic, Message, Poisoned, Refusal
from ...source.text import Text
from .. import refusals
from ..expressions import compile_expression, refused_syntax
from ..names import bound_names
from ..places import header_span
from ..unreached_operands import Search, condition, is_of_device, walruses
from . import surface
from .known import DEVICE, UNKNOWN, Device, Known, Number, Path, Tensor
from .leaving import Left, breaks, may_leave
from .values import Values

LOOP_KINDS = {
    **dict.fromkeys(("serial", "Serial"), "serial"),
    **dict.fromkeys(("unroll", "Unroll"), "unroll"),
    **dict.fromkeys(("Parallel", "parallel"), "parallel"),
    **dict.fromkeys(("vectorized", "Vectorized"), "vectorized"),
    "Pipelined": "pipelined",
    "Persistent": "persistent",
    "grid": "grid",
}
EXPANDED = frozenset(("enumerate", "zip", "reversed", "sorted", "list", "tuple", "map", "filter"))
LAUNCHES = ("Kernel", "ClusterKernel")
# Built-ins that a kernel could only mean as a context manager of Python.
OF_NUMBERS = frozenset(("min", "max", "abs", "round", "int", "float", "bool", "sum"))
MANAGERS = frozenset(("open", "memoryview"))
# What a statement may only do where it surely runs.
UNCERTAIN = frozenset(("TL110", "TL121"))


@dataclass(frozen=True)
class Loop:
    """kind: as the walk calls it, or unknown.  depth: of the device control flow around its body."""

    kind: str
    node: ast.stmt
    depth: int


class Statements:
    """One pass over a body.

    is_macro, may_return: what `return` may do.  refused: statements that Python does not compile, with why.
    """

    def __init__(
        self, values: Values, text: Text, is_macro: bool, may_return: bool, refused: Mapping[ast.stmt, Diagnostic] = {}
    ):
        self.refused = refused
        self.values, self.text, self.is_macro, self.may_return = values, text, is_macro, may_return
        self.found: dict[object, Diagnostic] = {}
        self.loops: list[Loop] = []
        self.launched: set[int] = set()  # statements, by id, that stand in a `with`
        self.depth = 0
        self.unsure = 0  # above 0 in a block of a refused statement
        self.reached: set[int] = set()  # blocks of the statement at hand, by id, that were walked

    def report(self, refusal: Refusal, node: ast.AST) -> None:
        """Add a mistake; what was said at this place is not said again."""
        if self.unsure and refusal.code in UNCERTAIN:
            return
        place = refusal.place if refusal.place is not None else node
        span = header_span(self.text, place) if isinstance(place, ast.AST) else place
        diagnostic = refusal.message.at(span, refusal.notes, refusal.fixes)
        self.found.setdefault(diagnostic.key, diagnostic)

    def kernel(self, body: list[ast.stmt]) -> None:
        """All of a kernel or macro."""
        for top in body:
            for part in ast.walk(top):
                if isinstance(part, ast.With) and id(part) not in self.launched:
                    self.launched.update(map(id, ast.walk(part)))
        self.suite(body)

    def suite(self, body: list[ast.stmt]) -> Left:
        """Statements until one of them may leave the block."""
        for node in body:
            left = self.statement(node)
            if left:
                return left
        return Left.NOTHING

    def statement(self, node: ast.stmt) -> Left:
        """One statement; what a refused one would have bound is silent afterwards."""
        outside, loops, depth = self.reached, len(self.loops), self.depth
        self.reached = set()
        try:
            mistake = self.refused.get(node)
            if mistake is not None and mistake.said is not None:
                raise Refusal(mistake.said, mistake.span, unevaluated=True)
            refused = refusals.STATEMENTS.get(type(node).__name__)
            if refused is not None:
                raise Refusal(refused(node), node)
            handler: Callable[[ast.stmt], Left | None] | None = getattr(self, f"_{type(node).__name__}", None)
            return (handler(node) if handler is not None else None) or Left.NOTHING
        except (Refusal, Poisoned) as failure:
            if isinstance(failure, Refusal):
                self.report(failure, node)
            self._operands(node, failure)
        except RecursionError:  # a text nested so deep is left to the build
            pass
        finally:
            del self.loops[loops:]
            self.depth = depth
            for name in bound_names(node):
                self.values.bound[name] = None
            reached, self.reached = self.reached, outside
        self._below(node, reached)
        self.values.poisoned.update(bound_names(node))
        return Left.NOTHING

    def _operands(self, node: ast.stmt, mistake: Refusal | Poisoned) -> None:
        """What the refused statement did not evaluate."""
        search = Search(self.text, self._value_or_place, self._call_mistake, self._is_poisoned, self._of_device)
        with contextlib.suppress(RecursionError):
            self.values.poisoned.update(bound_names(*walruses(node)))
            for refusal in search.mistakes(node, mistake):
                self.report(refusal, node)

    def _is_poisoned(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.values.poisoned

    def _value_or_place(self, node: ast.expr) -> None:
        if not isinstance(getattr(node, "ctx", None), ast.Store):
            self.evaluate(node)
        elif isinstance(node, ast.Subscript):
            self.bind(node, UNKNOWN)

    def _call_mistake(self, node: ast.Call) -> Message | None:
        function = self.values.value(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else UNKNOWN
        operation = function.operation if isinstance(function, Path) else None
        signature = surface.signature(operation) if operation is not None else None
        return surface.call_mistake(signature, node) if signature is not None else None

    def _below(self, node: ast.stmt, reached: set[int]) -> None:
        """The blocks of a refused statement that were not reached."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(node, (ast.If, ast.Match)):
            if not self._of_device(condition(node)):
                return
        parts = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
        blocks = [(part, getattr(part, name, [])) for part in parts for name in ("body", "orelse", "finalbody")]
        self.unsure += 1
        loops = len(self.loops)
        for part, block in blocks:
            if not block or id(block) in reached:
                continue
            header = [value for key, value in ast.iter_fields(part) if key not in ("body", "orelse", "finalbody")]
            flat = [item for value in header for item in (value if isinstance(value, list) else [value])]
            names = bound_names(*(item for item in flat if isinstance(item, (ast.expr, ast.withitem, ast.pattern))))
            self.values.poisoned.update(names)
            self.values.bound.update(dict.fromkeys(names))
            if isinstance(part, ast.ExceptHandler) and part.name:
                self.values.bound[part.name] = None
                self.values.poisoned.add(part.name)
            if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
                self.values.poisoned.update(bound_names(node))
                self.loops.append(Loop("unknown", node, self.depth))
            self.suite(block)
            del self.loops[loops:]
        self.unsure -= 1

    def _of_device(self, node: ast.expr) -> bool:
        return is_of_device(node, self._is_of_device, self._gives_number)

    def _is_of_device(self, node: ast.Name) -> bool:
        with contextlib.suppress(Refusal, Poisoned):
            return isinstance(self.values.value(node), (Device, Tensor))
        return False

    def _gives_number(self, node: ast.expr) -> bool:
        function: Known = UNKNOWN
        with contextlib.suppress(Refusal, Poisoned):
            function = self.values.value(node)
        operation = function.operation if isinstance(function, Path) else None
        of_python = isinstance(function, Path) and function.builtin in OF_NUMBERS
        return of_python or operation is not None and surface.signature(operation) is not None

    def enter(self, block: list[ast.stmt]) -> Left:
        """A block of the statement at hand."""
        self.reached.add(id(block))
        return self.suite(block)

    def evaluate(self, node: ast.expr) -> Known:
        """An expression: what cannot be compiled is refused before anything of it is evaluated."""
        self.values.loops = [(loop.kind, loop.node) for loop in self.loops]
        if any(refused_syntax(part) is not None for part in ast.walk(node)):
            compile_expression(node)
        return self.values.value(node)

    # -- bindings --------------------------------------------------------------------------------------------------
    def bind(self, target: ast.expr, value: Known) -> None:
        """A target holds a value, or an element of a buffer is stored."""
        if isinstance(target, ast.Name):
            self.values.bind(target.id, value if isinstance(value, (Device, Number)) else UNKNOWN)
        elif isinstance(target, ast.Subscript):
            self.values.note_brackets(target)
            base = self.evaluate(target.value)
            self.values.indexed(base, target.slice, self.evaluate(target.slice), target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, Tensor):
                what = f"`{value.name}` to unpack"
                raise Refusal(say.NotIterable(what=what, remedy="unpack a tuple, or index it"), target)
            for part in target.elts:
                self.bind(part, UNKNOWN)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN)
        else:
            raise refusals.target_is_attribute(target)

    def bind_indices(self, target: ast.expr | None) -> None:
        """Variables of a launch or device loop."""
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(part, ast.Name):
                self.values.bind(part.id, DEVICE)
            elif part is not None:
                self.bind(part, UNKNOWN)

    def _Assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            if self.is_macro or id(node) in self.launched or not refusals.names_only(node):
                raise refusals.several_targets(node)
            value = self.evaluate(node.value)
            for target in node.targets:
                self.bind(target, value)
            return
        value = self.evaluate(node.value)
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            value = UNKNOWN
        self.bind(target, value)
        stored = self.values.region(target)
        if stored is not None:
            number = isinstance(node.value, ast.Constant) and isinstance(node.value.value, (int, float))
            if number or isinstance(value, (Device, Number)):
                raise Refusal(refusals.stores_region(stored.name, "fill", ast.unparse(target)), target)
            if isinstance(value, Tensor) or self.values.region(node.value) is not None:
                raise Refusal(refusals.stores_region(stored.name, "copy", ast.unparse(target)), target)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        old: Known = UNKNOWN
        if isinstance(target, ast.Name):
            old = self.values.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        elif isinstance(target, ast.Subscript):
            self.values.note_brackets(target)
            base = self.evaluate(target.value)
            old = self.values.indexed(base, target.slice, self.evaluate(target.slice), target)
        else:
            raise refusals.target_is_attribute(target)
        self.evaluate(node.value)
        if isinstance(node.op, ast.MatMult) and isinstance(old, (Tensor, Device)):
            raise Refusal(say.MatrixMultiplyOperator(), node)
        if isinstance(target, ast.Name):
            self.values.bind(target.id)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            return
        self.evaluate(node.value)
        if not isinstance(node.annotation, ast.Constant):
            self.evaluate(node.annotation)
        self.bind(node.target, UNKNOWN)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise refusals.deletes_no_name(node)
            self.values.bind(target.id)

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)

    def _Assert(self, node: ast.Assert) -> None:
        if isinstance(self.evaluate(node.test), Device):
            raise Refusal(say.RuntimeAssert(condition=ast.unparse(node.test)), node)

    # -- branches --------------------------------------------------------------------------------------------------
    def _If(self, node: ast.If) -> Left:
        if not isinstance(self.evaluate(node.test), Device):
            return self._skip(node.body, node.orelse)
        self.depth += 1
        left = [self.enter(node.body), self.enter(node.orelse)]
        self.depth -= 1
        if node.orelse:
            return min(left)
        return Left.NOTHING

    def _Match(self, node: ast.Match) -> Left:
        if isinstance(self.evaluate(node.subject), Device):
            raise Refusal(say.MatchOnDeviceValue(), node)
        return self._skip(*(case.body for case in node.cases))

    def _skip(self, *blocks: list[ast.stmt]) -> Left:
        """Blocks of which the arguments choose one: what they may leave."""
        return max((may_leave(block) for block in blocks), default=Left.NOTHING)

    def _With(self, node: ast.With) -> Left:
        if len(node.items) != 1:
            raise refusals.several_items(node)
        item = node.items[0]
        call, maker = item.context_expr, None
        if isinstance(call, ast.Call) and isinstance(call.func, (ast.Name, ast.Attribute)):
            maker = self.evaluate(call.func)
            if isinstance(maker, Path) and maker.builtin in MANAGERS:
                raise refusals.context_of_python(call, item.optional_vars)
        operation = maker.operation if isinstance(maker, Path) else None
        if operation in LAUNCHES:
            refused = False
            try:
                self.evaluate(call)
            except Refusal as refusal:
                self.report(refusal, node)
                self._operands(node, refusal)
                refused = True
            self.bind_indices(item.optional_vars)
            if refused and item.optional_vars is not None:
                self.values.poisoned.update(bound_names(item.optional_vars))
            return self.enter(node.body)
        self.evaluate(call)
        if operation == "ws" and item.optional_vars is not None:
            remedy = "leave `as` out"
            raise Refusal(say.UnsupportedWith(what="`T.ws` with `as`", remedy=remedy), item.optional_vars)
        if item.optional_vars is not None:
            self.bind(item.optional_vars, UNKNOWN)
        self.depth += operation == "ws"
        return self.enter(node.body)

    # -- loops -----------------------------------------------------------------------------------------------------
    def _For(self, node: ast.For) -> Left:
        if node.orelse:
            self.report(Refusal(say.LoopElse(), node.orelse[0]), node)
        iterable = self.evaluate(node.iter)
        kind = self._kind(node.iter, iterable)
        left = Left.NOTHING
        if kind == "empty":
            self.reached.add(id(node.body))
        elif kind in ("expanded", "unknown"):
            self.bind(node.target, UNKNOWN)
            self.loops.append(Loop(kind, node, self.depth))
            left = self.enter(node.body)
            self.loops.pop()
        else:
            self.bind_indices(node.target)
            self.depth += 1
            self.loops.append(Loop(kind, node, self.depth))
            self.enter(node.body)
            self.loops.pop()
            self.depth -= 1
        if node.orelse:
            raise Poisoned
        return Left.FUNCTION if left is Left.FUNCTION else Left.NOTHING

    def _kind(self, node: ast.expr, value: Known) -> str:
        """The kind of a loop over an expression; TL111 for a tensor or a number."""
        if isinstance(value, Tensor) and isinstance(node, ast.Name):
            if value.shape is None:
                return "unknown"
            message = refusals.iterates_over_buffer(f"`{value.name}`", node, len(value.shape))
            raise Refusal(message, node)
        if isinstance(value, Number) and isinstance(node, ast.Constant):
            raise Refusal(refusals.iterates_over_number("a Python int", node), node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            if not node.elts:
                return "empty"
            return "unknown" if all(isinstance(part, ast.Starred) for part in node.elts) else "expanded"
        if not isinstance(node, ast.Call):
            return "unknown"
        function = self.values.value(node.func)
        if not isinstance(function, Path):
            return "unknown"
        if function.builtin is not None:
            expanded = "expanded" if function.builtin in EXPANDED else "unknown"
            return "serial" if function.builtin == "range" else expanded
        kind = LOOP_KINDS.get(function.operation or "", "unknown")
        starred = any(isinstance(part, ast.Starred) for part in node.args)
        if kind == "grid" and (len(node.args) < 2 or starred):
            return "unknown" if starred else "serial"
        return kind

    def _While(self, node: ast.While) -> Left:
        if node.orelse:
            self.report(Refusal(say.LoopElse(), node.orelse[0]), node)
        self.loops.append(Loop("while", node, self.depth + 1))
        self.evaluate(node.test)
        self.loops.pop()
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if isinstance(node.test, ast.Constant) and not endless:
            self.reached.add(id(node.body))
        else:
            self.depth += 1
            self.loops.append(Loop("while", node, self.depth))
            self.enter(node.body)
            self.loops.pop()
            self.depth -= 1
            if endless and not breaks(node.body):
                raise Refusal(say.EndlessWhile(), node)
        if node.orelse:
            raise Poisoned
        return Left.NOTHING

    def _leave(self, node: ast.Break | ast.Continue) -> Left:
        word = "break" if isinstance(node, ast.Break) else "continue"
        loop = self.loops[-1]
        if loop.kind == "expanded" and self.depth != loop.depth:
            raise refusals.leaves_expanded_loop(word, node, loop.node, self.text)
        if loop.kind not in ("expanded", "unknown"):
            refused = refusals.leaves_loop_of_kind(word, node, loop.kind)
            if refused is not None:
                raise refused
        return Left.LOOP

    _Break = _Continue = _leave

    def _Return(self, node: ast.Return) -> Left:
        if self.is_macro:
            if self.depth:
                raise refusals.returns_from_macro(node)
        elif self.depth or any(loop.kind != "unknown" for loop in self.loops):
            raise refusals.returns_early(node)
        elif refusals.has_value(node) and not self.may_return and not self.loops:
            raise refusals.returns_value(node)
        if node.value is not None:
            self.evaluate(node.value)
        return Left.FUNCTION
