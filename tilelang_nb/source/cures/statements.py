"""Statements of Python that a kernel says in another way, or in several lines."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .. import catalogue as say
from ..diagnostic import Fix
from ..syntax_tree import Places
from ..text import Span
from .reading import between, end, fresh, indentation, joined, language, quoted, replaced, start, the


def one_target_each(message: say.ChainedAssignment, span: Span, at: Places) -> Iterator[Fix]:
    """One assignment per target.  The value is computed once: by the first name, or by a new one."""
    node = the(at, span, ast.Assign, lambda node: len(node.targets) > 1)
    if node is None:
        return
    behind = between(at, end(at, node.targets[-1]), end(at, node))
    value = behind[behind.index("=") + 1 :].strip()
    lines = one_for_each(node, at.written, value, lambda: fresh(at, "value"))
    yield replaced("one assignment per target", at, node, joined(at, node, lines))


def one_for_each(
    node: ast.Assign, written_of: Callable[[ast.expr], str], value: str, unused: Callable[[], str]
) -> list[str]:
    """The statements of a chained assignment.  value: its text.  unused: a name that is free."""
    targets = list(node.targets)
    named = [target for target in targets if isinstance(target, ast.Name)]
    written = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if _repeatable(node.value, written):
        source, lines = value, []
    else:
        # A name that no other target reads may come first: what the others then hold is the same.
        free = [
            name
            for name in named
            if not any(_reads(target, name.id) for target in targets if target is not name)
            and sum(isinstance(n, ast.Name) and n.id == name.id for t in targets for n in ast.walk(t)) == 1
        ]
        source = free[0].id if free else unused()
        lines = [f"{source} = {value}"]
        targets = [target for target in targets if not (free and target is free[0])]
    return lines + [f"{written_of(target)} = {source}" for target in targets]


def _repeatable(value: ast.expr, written: set[str]) -> bool:
    """Whether an expression may stand in every assignment: a constant, or a name that none of them binds."""
    if isinstance(value, ast.UnaryOp):
        value = value.operand
        return isinstance(value, ast.Constant)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id not in written)


def _reads(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(target))


def device_assert(message: say.RuntimeAssert, span: Span, at: Places) -> Iterator[Fix]:
    """`T.device_assert(condition, text)`; without a text, the condition is the text."""
    node = the(at, span, ast.Assert)
    if node is not None:
        condition = at.written(node.test)
        text = at.written(node.msg) if node.msg is not None else quoted(condition)
        called = f"{language(at)}.device_assert"
        yield replaced(f"write `{called}`", at, node, f"{called}({condition}, {text})")


def assert_for_raise(message: say.RaiseStatement, span: Span, at: Places) -> Iterator[Fix]:
    """`T.device_assert(False, text)` with the text of the exception, or its name."""
    node = the(at, span, ast.Raise)
    if node is None or node.exc is None:
        return
    raised = node.exc
    if isinstance(raised, ast.Call) and not raised.keywords and len(raised.args) <= 1:
        text = at.written(raised.args[0]) if raised.args else quoted(at.written(raised.func))
        if raised.args and not _is_text(raised.args[0]):
            return
    elif isinstance(raised, ast.Name):
        text = quoted(raised.id)
    else:
        return
    called = f"{language(at)}.device_assert"
    yield replaced(f"write `{called}`", at, node, f"{called}(False, {text})")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def device_print(message: say.PrintOfDeviceValue, span: Span, at: Places) -> Iterator[Fix]:
    """A `T.print` for every value, with the words before it as its text."""
    call = the(at, span, ast.Call, lambda node: isinstance(node.func, ast.Name) and node.func.id == "print")
    if (
        message.item
        or call is None
        or call.keywords
        or any(isinstance(argument, ast.Starred) for argument in call.args)
    ):
        return
    called = f"{language(at)}.print"
    if len(call.args) == 1 and not isinstance(call.args[0], ast.JoinedStr):
        yield replaced(f"write `{called}`", at, call.func, called)
        return
    lines = _prints(call, called, at)
    statement = at.parents[call]
    if lines and isinstance(statement, ast.Expr):
        yield replaced(f"write `{called}`", at, statement, joined(at, statement, lines))


def _prints(call: ast.Call, called: str, at: Places) -> list[str]:
    """The statements for a `print` of several things; none where a value is formatted in its own way."""
    lines, words = [], ""
    for argument in call.args:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        words += " " if words and not words.endswith(" ") else ""
        for part in parts:
            if _is_text(part):
                words += part.value  # type: ignore[attr-defined]
                continue
            shown = part
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion != -1:
                    return []
                # Before Python 3.12 the places of what stands in an f-string are not those of the text.
                shown = part.value
                written = ast.unparse(shown)
            else:
                written = at.written(part)
            text = words.strip()
            lines.append(f"{called}({written}, msg={quoted(text)})" if text else f"{called}({written})")
            words = ""
    if words.strip():
        lines.append(f"{called}(msg={quoted(words.strip())})")
    return lines


def import_before(message: say.ImportInKernel, span: Span, at: Places) -> Iterator[Fix]:
    """The import moves in front of the kernel or macro."""
    node = the(at, span, (ast.Import, ast.ImportFrom))
    function = next((n for n in at.around(node) if isinstance(n, ast.FunctionDef)), None) if node is not None else None
    if function is None or indentation(at, node) is None:
        return
    first = min((start(at, decorator) for decorator in function.decorator_list), default=start(at, function))
    line, column = first[0], start(at, function)[1]
    blanks = at.text.line(line)[:column]
    end_line, end_column = end(at, node)
    if blanks.strip() or at.text.line(end_line)[end_column:].strip():
        return
    siblings = getattr(at.parents[node], "body", [])
    kept = between(at, (line, column), start(at, node))
    written = at.written(node)
    if len(siblings) > 1:  # the line goes, with the empty ones after it
        kept = kept[: kept.rindex("\n")]
        while at.text.line(end_line + 1).strip() == "" and end_line + 1 <= at.text.last_line:
            end_line += 1
        end_column = len(at.text.line(end_line))
    else:
        kept += "pass"
    place = Span(line, column, end_line, end_column)
    yield Fix("import it before the kernel", place, f"{written}\n\n{blanks}{kept}")
