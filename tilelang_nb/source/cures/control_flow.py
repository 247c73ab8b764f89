"""Loops, branches and returns, where the same control flow can be written in the way of a kernel."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from .. import catalogue as say
from ..diagnostic import Fix
from ..syntax_tree import Places
from ..text import Span
from .reading import between, end, fresh, indentation, replaced, start, the


def loop_over_indices(message: say.NotIterable, span: Span, at: Places) -> Iterator[Fix]:
    """`range(n)`; for the elements of a buffer, its indices and a first line that reads the element."""
    node = the(at, span, ast.expr, lambda n: at.spans[n] == span)
    parent = at.parents.get(node) if node is not None else None
    if not message.extent or not isinstance(parent, (ast.For, ast.comprehension)) or parent.iter is not node:
        return
    if not message.element:
        instead = f"range({message.extent})"
        if message.extent == ast.unparse(node):
            instead = f"range({at.written(node)})"
            yield replaced(f"write `{instead}`", at, node, instead)
    elif isinstance(parent, ast.For):
        yield from _elements(message, parent, at)


def _elements(message: say.NotIterable, loop: ast.For, at: Places) -> Iterator[Fix]:
    index, first = fresh(at, "i"), loop.body[0]
    blanks = indentation(at, first)
    head = f"{index} in range({message.extent})"
    behind = between(at, end(at, loop.iter), start(at, first))
    element = f"{at.written(loop.target)} = {message.element}[{index}]"
    separator = "; " if blanks is None else f"\n{blanks}"
    place = Span(*start(at, loop.target), *start(at, first))
    yield Fix(f"loop over `range({message.extent})`", place, f"{head}{behind}{element}{separator}")


def range_of_items(message: say.RuntimeBreakOfCompileTimeLoop, span: Span, at: Places) -> Iterator[Fix]:
    """A loop over numbers that are written out at even distances is a loop over a `range`."""
    node = the(at, span, (ast.Break, ast.Continue))
    loop = next((n for n in at.around(node) if isinstance(n, (ast.For, ast.While))), None) if node is not None else None
    instead = as_range(loop.iter) if isinstance(loop, ast.For) else ""
    if instead:
        yield replaced(f"loop over `{instead}`", at, loop.iter, instead)  # type: ignore[union-attr]


def as_range(items: ast.expr) -> str:
    """The `range` that gives the numbers of a list or tuple, where they stand at even distances; "" for others."""
    if not isinstance(items, (ast.List, ast.Tuple)):
        return ""
    numbers = [item.value for item in items.elts if isinstance(item, ast.Constant) and type(item.value) is int]
    steps = {following - number for number, following in itertools.pairwise(numbers)}
    if len(numbers) < len(items.elts) or len(steps) != 1 or 0 in steps:
        return ""
    (step,) = steps
    stop = numbers[-1] + step
    written = f"{stop}" if step == 1 and numbers[0] == 0 else f"{numbers[0]}, {stop}"
    return f"range({written})" if step == 1 else f"range({written}, {step})"


def after_the_loop(message: say.LoopElse, span: Span, at: Places) -> Iterator[Fix]:
    """Without a `break` the `else` of a loop always runs: its lines may follow the loop."""
    loop = _owner(at, span)
    if loop is None or any(_breaks(loop, at)):
        return
    header = _else_line(loop, at)
    blanks = indentation(at, loop)
    inner = indentation(at, loop.orelse[0])
    lines = range(at.spans[loop.orelse[0]].line, at.spans[loop].end_line + 1)
    if header is None or blanks is None or inner is None or not _movable(loop.orelse, at):
        return
    between_them = [at.text.line(n) for n in range(header + 1, lines[0])]
    moved = _shifted([*between_them, *(at.text.line(n) for n in lines)], inner, blanks)
    place = Span(header, 0, lines[-1], len(at.text.line(lines[-1])))
    yield Fix("put these lines after the loop", place, "\n".join(moved))


def _owner(at: Places, span: Span) -> ast.For | ast.While | None:
    for node in at.parents:
        if isinstance(node, (ast.For, ast.While)) and node.orelse:
            first = at.spans[node.orelse[0]]
            if (first.line, first.column) == (span.line, span.column):
                return node
    return None


def _breaks(loop: ast.For | ast.While, at: Places) -> Iterator[bool]:
    for part in loop.body:
        for node in ast.walk(part):
            if isinstance(node, ast.Break):
                nearest = next((n for n in at.around(node) if isinstance(n, (ast.For, ast.While))), None)
                yield nearest is loop
            elif isinstance(node, ast.Return):
                yield True


def _else_line(node: ast.For | ast.While, at: Places) -> int | None:
    """The line that holds `else:` and nothing else but a comment."""
    for line in range(end(at, node.body[-1])[0] + 1, start(at, node.orelse[0])[0]):
        if at.text.line(line).partition("#")[0].replace(" ", "").strip() == "else:":
            return line
    return None


def _movable(statements: list[ast.stmt], at: Places) -> bool:
    """Whether lines may be shifted: no text runs over several of them."""
    return not any(
        isinstance(node, (ast.Constant, ast.JoinedStr)) and at.spans[node].line != at.spans[node].end_line
        for statement in statements
        for node in ast.walk(statement)
        if node in at.spans
    )


def _shifted(lines: list[str], inner: str, outer: str) -> list[str]:
    return [outer + line[len(inner) :] if line.startswith(inner) else line for line in lines]


def rest_under_else(message: say.ReturnNotAllowed, span: Span, at: Places) -> Iterator[Fix]:
    """What follows `if ...: return` goes under its `else`, where the kernel ends behind it."""
    node = the(at, span, ast.Return)
    branch = at.parents.get(node) if node is not None else None
    if node is None or node.value is not None or not isinstance(branch, ast.If):
        return
    if branch.body[-1] is not node or branch.orelse or not _ends_the_kernel(branch, at):
        return
    owner = at.parents[branch]
    rest = owner.body[owner.body.index(branch) + 1 :]  # type: ignore[attr-defined]
    blanks, inner = indentation(at, branch), indentation(at, node)
    if blanks is None or inner is None or not inner.startswith(blanks) or not _movable(rest, at):
        return
    if not rest:
        yield replaced("leave it out: the kernel ends here", at, node, "pass")
        return
    last = end(at, rest[-1])
    lines = between(at, end(at, node), last).split("\n")
    step = inner[len(blanks) :]
    following = [step + text if text.strip() else text for text in lines[1:]]
    first, kept = start(at, node), "pass" + lines[0]
    if len(branch.body) > 1 and not lines[0].strip():  # the line of the `return` goes
        first, kept = end(at, branch.body[-2]), at.text.line(end(at, branch.body[-2])[0])[end(at, branch.body[-2])[1] :]
    yield Fix("put the rest under `else`", Span(*first, *last), "\n".join([kept, f"{blanks}else:", *following]))


def _ends_the_kernel(node: ast.stmt, at: Places) -> bool:
    """Whether the suite that a statement stands in is the last thing of the kernel."""
    inner: ast.AST = at.parents[node]
    if node not in getattr(inner, "body", ()):
        return False
    while isinstance(inner, ast.With):
        owner = at.parents[inner]
        if getattr(owner, "body", [None])[-1] is not inner:
            return False
        inner = owner
    return isinstance(inner, ast.FunctionDef)


def branches(message: say.MatchOnDeviceValue, span: Span, at: Places) -> Iterator[Fix]:
    """`if` and `elif` for a `match` on a name whose cases are values."""
    node = next((n for n in at.parents if isinstance(n, ast.Match) and start(at, n) == (span.line, span.column)), None)
    if node is None or not isinstance(node.subject, ast.Name) or not _movable([node], at):
        return
    blanks = indentation(at, node)
    tests = [_test(case, node.subject.id, at) for case in node.cases]
    if blanks is None or None in tests or tests[0] == "" or "" in tests[:-1]:
        return
    lines = [at.text.line(n) for n in range(span.line + 1, at.spans[node].end_line + 1)]
    headers = {}
    for number, (case, test) in enumerate(zip(node.cases, tests)):
        line, column, body = _colon(case, at)
        word = "if" if number == 0 else "elif" if test else "else"
        headers[line] = f"{word} {test}".rstrip() + at.text.line(line)[column:]
        if start(at, case.pattern)[0] != line or (body and not at.text.line(line)[:column].lstrip().startswith("case")):
            return
    first = min(headers)
    inner = at.text.line(first)[: len(at.text.line(first)) - len(at.text.line(first).lstrip())]
    moved = _shifted(lines, inner, blanks)
    for line, header in headers.items():
        moved[line - span.line - 1] = blanks + header
    yield Fix("write `if` and `elif`", Span(span.line, 0, at.spans[node].end_line, len(lines[-1])), "\n".join(moved))


def _test(case: ast.match_case, subject: str, at: Places) -> str | None:
    """The condition of a case; "" for one that always holds; None where it is no plain comparison."""
    pattern, guard = case.pattern, f"({at.written(case.guard)})" if case.guard else ""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
        return guard
    parts = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    if not all(isinstance(part, ast.MatchValue) for part in parts):
        return None
    test = " or ".join(f"{subject} == {at.written(part)}" for part in parts)
    return f"({test}) and {guard}" if guard and len(parts) > 1 else f"{test} and {guard}" if guard else test


def _colon(case: ast.match_case, at: Places) -> tuple[int, int, bool]:
    """The line and column of the colon of a case, and whether its body begins in the same line."""
    line, column = end(at, case.guard or case.pattern)
    column = at.text.line(line).index(":", column)
    return line, column, start(at, case.body[0])[0] == line
