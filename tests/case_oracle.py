"""The outcome that an acceptance case asks for, read from its text, and the comparison with what the package does.

The format is in `cases/README.md`.  What a case expects is computed from its own functions and NumPy, never by the
package.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import tilelang_nb

TARGET = "sim"
RTOL = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
}
ATOL = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 1e-3,
    "float8_e5m2": 1e-3,
}
SIMULATED = {"TL401", "TL402", "TL403", "TL404", "TL405", "TL406"}
INTERNALS = re.compile(r"Traceback \(most recent call last\)|__tb\.|<locals>")


class CaseFailed(AssertionError):
    """The package does something else than the case asks for."""


def need(condition: Any, text: str) -> None:
    if not condition:
        raise CaseFailed(text)


def run_case(text: str, target: str = TARGET) -> None:
    """Compile and run a case; CaseFailed says what is not as the case asks."""
    spec = expectations(text)
    compilation = tilelang_nb.compile_cell(text, target=target)
    for diagnostic in compilation.diagnostics:
        need(diagnostic.code != "TL900", f"internal error: {diagnostic}")
    if "EXPECT" in spec:
        check_refusal(spec, text, compilation)
    else:
        check_acceptance(spec, compilation)
    if "EXPECT_WARN" in spec:
        check_warnings(spec, compilation)


# -- what the case says


def expectations(text: str) -> dict[str, Any]:
    """The names that the case defines, without running what needs the package."""
    text = text.replace("T.assert(", "T.Assert(")
    spec: dict[str, Any] = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:
        for name, value in re.findall(r"(?m)^(EXPECT\w*|RTOL|ATOL) = (.+)$", text):
            spec[name] = ast.literal_eval(value)
        return spec
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if name == "__future__" or (name or "").startswith("tilelang"):
                continue
        if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.name == "build"):
            continue
        if isinstance(node, (ast.Expr, ast.ClassDef)):
            continue
        try:
            exec(compile(ast.Module([node], []), "<case>", "exec"), spec)
        except NameError:
            pass  # needs the package: no part of the expectation
    return spec


def code_fits(pattern: str, code: str) -> bool:
    return pattern == "*" or code in pattern.split("|")


def line_fits(expected: Any, line: int | None) -> bool:
    if expected is None:
        return True
    return line in expected if isinstance(expected, (tuple, list)) else line == expected


def line_of(diagnostic: Any) -> int | None:
    return diagnostic.span.line if diagnostic.span else None


def same(expected: list[tuple[str, Any]], found: list[Any]) -> bool:
    """Do the diagnostics match the expected (code, line) pairs one to one?"""
    left = list(found)
    exact_first = sorted(expected, key=lambda pair: (pair[1] is None, not isinstance(pair[1], int), "*" in pair[0]))
    for code, line in exact_first:
        match = next((d for d in left if code_fits(code, d.code) and line_fits(line, line_of(d))), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def show(found: list[Any]) -> str:
    return "[" + ", ".join(f"{d.code}:{line_of(d)} {d.message}" for d in found) + "]"


# -- refusals and warnings


def errors_of(compilation: Any) -> list[Any]:
    return [d for d in compilation.diagnostics if d.severity == "error"]


def diagnostics_of(error: BaseException) -> list[Any]:
    """The diagnostics that an exception carries."""
    found = getattr(error, "diagnostics", None) or (error.diagnostic,) if hasattr(error, "diagnostic") else ()
    return list(found or getattr(error, "diagnostics", ()))


def help_text(diagnostic: Any) -> str:
    return " ".join(map(str, (diagnostic.help, *diagnostic.fixes, *diagnostic.notes)))


def whole_text(diagnostic: Any) -> str:
    return f"{diagnostic.message} {diagnostic.label} {help_text(diagnostic)}"


def check_refusal(spec: dict[str, Any], text: str, compilation: Any) -> None:
    found, rendered = errors_of(compilation), compilation.to_text()
    need(same(spec["EXPECT"], found), f"errors: expected {spec['EXPECT']}, found {show(found)}")
    lines = [line for d in found if (line := line_of(d)) is not None]
    need(lines == sorted(lines), "the errors are not sorted by line")
    for diagnostic, want in zip(found, spec.get("EXPECT_SPAN_TEXT", ())):
        accepted = (want,) if isinstance(want, str) else want
        got = compilation.text.slice(diagnostic.span)
        need(got.strip() in accepted, f"{diagnostic.code}: the span covers {got!r}, expected {accepted[0]!r}")
    if "EXPECT_COLUMNS" in spec:
        columns = [d.span.column for d in found]
        need(columns == spec["EXPECT_COLUMNS"], f"columns: expected {spec['EXPECT_COLUMNS']}, found {columns}")
    for part in spec.get("EXPECT_HELP", ()):
        need(any(part in help_text(d) for d in found), f"no help contains {part!r}")
    for part in spec.get("EXPECT_MESSAGE", ()):
        need(any(part in whole_text(d) for d in found), f"no message contains {part!r}")
    for diagnostic, wanted in zip(found, spec.get("EXPECT_NOTE_LINES", ())):
        have = {line_of(note) for note in diagnostic.notes}
        words = set(re.findall(r"\d+", " ".join(map(str, diagnostic.notes)) + " " + rendered))
        for line in wanted:
            need(line in have or str(line) in words, f"{diagnostic.code}: no note speaks of line {line}")
    need(not INTERNALS.search(rendered), "the report shows a traceback or generated code")


def check_warnings(spec: dict[str, Any], compilation: Any) -> None:
    found = [d for d in compilation.diagnostics if d.severity == "warning"]
    for code, line in spec["EXPECT_WARN"]:
        need(
            any(code_fits(code, d.code) and line_fits(line, line_of(d)) for d in found),
            f"warnings: expected {spec['EXPECT_WARN']}, found {show(found)}",
        )


# -- cells that compile


def kernel_of(compilation: Any) -> Any:
    names = compilation.namespace
    if "build" in names:
        kernel = names["build"]()
    elif "k" in names:
        kernel = names["k"]
    else:
        kernels = list(compilation.kernels.values())
        need(len(kernels) == 1, f"the cell defines {len(kernels)} kernels, none named k")
        kernel = kernels[0]
    return kernel.compile(target=compilation.target.kind)


def check_acceptance(spec: dict[str, Any], compilation: Any) -> None:
    """A case that runs, or may be refused in the ways that it names."""
    either, errors = spec.get("EXPECT_EITHER"), errors_of(compilation)
    if either and not errors:
        try:
            kernel_of(compilation)
        except tilelang_nb.CompileError as error:
            errors = [d for d in error.diagnostics if d.severity == "error"]
    if either and errors:
        need(same(either, errors), f"errors: expected none or {either}, found {show(errors)}")
        return
    need(not errors and compilation.ok, f"errors: expected none, found {show(errors)}")
    if "EXPECT_LAUNCH" in spec:
        check_refused_launch(spec, compilation)
    elif "EXPECT_FINDINGS" in spec:
        check_findings(spec, compilation)
    elif "EXPECT_EITHER_LAUNCH" in spec:
        try:
            check_numbers(spec, compilation)
        except tilelang_nb.LaunchError as error:
            need(code_fits(spec["EXPECT_EITHER_LAUNCH"], error.diagnostic.code), f"launch: {error}")
    else:
        check_numbers(spec, compilation)


def check_refused_launch(spec: dict[str, Any], compilation: Any) -> None:
    kernel = kernel_of(compilation)
    try:
        spec["calls"](kernel)
    except (tilelang_nb.LaunchError, tilelang_nb.CompileError) as error:
        found, said = diagnostics_of(error), str(error)
    else:
        raise CaseFailed(f"the launch was accepted, expected {spec['EXPECT_LAUNCH']}")
    codes = [d.code for d in found]
    need(any(code_fits(spec["EXPECT_LAUNCH"], code) for code in codes), f"launch: got {codes}: {said}")
    said += " ".join(map(whole_text, found))
    for part in spec.get("EXPECT_LAUNCH_TEXT", ()):
        need(part in said, f"launch: the message does not contain {part!r}: {said}")


def check_findings(spec: dict[str, Any], compilation: Any) -> None:
    kernel = kernel_of(compilation)
    raised: list[Any] = []
    try:
        kernel(*spec["inputs"]().values())
    except (tilelang_nb.LaunchError, tilelang_nb.runtime.kernel.SimulatorFindings) as error:
        raised = diagnostics_of(error)
    found = [*kernel.findings, *raised]
    wanted = [(want, None) if isinstance(want, str) else want for want in spec["EXPECT_FINDINGS"]]
    for code, line in wanted:
        need(
            any(code_fits(code, d.code) and line_fits(line, line_of(d)) for d in found),
            f"findings: expected {spec['EXPECT_FINDINGS']}, found {show(found)}",
        )
    extra = [d for d in found if d.code in SIMULATED and d.code not in {code for code, _ in wanted}]
    need(not extra, f"unexpected findings {show(extra)}")


def check_numbers(spec: dict[str, Any], compilation: Any) -> None:
    kernel = kernel_of(compilation)
    arguments = spec["inputs"]()
    frozen = {name: copy.copy(value) for name, value in arguments.items()}
    with np.errstate(all="ignore"):  # a reference may compute with infinities on purpose
        wanted = spec["reference"](**{name: copy.copy(value) for name, value in frozen.items()})
    out = kernel(*arguments.values())
    returned = [] if out is None else list(out) if isinstance(out, (tuple, list)) else [out]
    for name, value in wanted.items():
        compare(name, arguments[name] if name in arguments else returned.pop(0), value, spec)
    for name, value in frozen.items():
        if name not in wanted and isinstance(value, np.ndarray):
            compare(f"{name} (an input)", arguments[name], value, {"RTOL": 0, "ATOL": 0})
    found = [d for d in kernel.findings if d.code in SIMULATED]
    need(not found, f"unexpected findings {show(found)}")
    for part in spec.get("EXPECT_SCRIPT_TEXT", ()):
        need(re.search(rf"\b{re.escape(part)}\b", kernel.script()), f"the script does not name {part!r}")
    if "EXPECT_UNROLL" in spec:
        check_expansion(spec, kernel)


def compare(name: str, got: Any, want: Any, spec: dict[str, Any]) -> None:
    got, want = np.asarray(got), np.asarray(want)
    need(got.dtype == want.dtype, f"{name}: dtype {got.dtype}, expected {want.dtype}")
    need(got.shape == want.shape, f"{name}: shape {got.shape}, expected {want.shape}")
    kind = want.dtype.name
    if kind in RTOL:
        rtol, atol = spec.get("RTOL", RTOL[kind]), spec.get("ATOL", ATOL[kind])
        close = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)
    else:
        close = np.asarray(got == want)
    if not np.all(close):
        at = tuple(int(v) for v in np.argwhere(~np.atleast_1d(close))[0])
        a, b = np.atleast_1d(got)[at], np.atleast_1d(want)[at]
        wrong = int((~close).sum())
        raise CaseFailed(f"{name}: {wrong} of {close.size} elements differ, first at {at}: {a} instead of {b}")


def nodes_below(root: Any) -> Iterator[Any]:
    for turn in root.iterations:
        for child in turn.children:
            yield child
            yield from nodes_below(child)


def check_expansion(spec: dict[str, Any], kernel: Any) -> None:
    nodes = list(nodes_below(kernel.unroll))
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for want in spec["EXPECT_UNROLL"]:
        groups.setdefault((want["line"], want["kind"]), []).append(want)
    for (line, kind), wants in groups.items():
        have = [node for node in nodes if (node.line, node.kind) == (line, kind)]
        need(len(have) == len(wants), f"record: {len(wants)} {kind} node(s) expected at line {line}, found {len(have)}")
        for want, node in zip(wants, have):
            turns = node.iterations
            count = want.get("iterations", len(turns))
            need(len(turns) == count, f"record: line {line}: {count} iterations expected, found {len(turns)}")
            for turn, value in zip(turns, want.get("values", ())):
                shown = (str(turn.value), repr(turn.value))
                need(value in shown, f"record: line {line}: {value} expected, found {turn.value!r}")
