"""CUDA C from the device module, with the place in the cell of every line.

Just before printing, every statement that has a place gets a call of a marker in front; the calls are taken out of the
text again and leave the places of the lines behind them.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx as tir

from .free_names import called, names_in, with_free_names
from .narrow_types import only_moved
from .prelude import prelude_for

MARK = "__line_mark"
_MARK_LINE = re.compile(rf"\s*{MARK}\((\d+)\);")
MARKED = (
    tir.BufferStore,
    tir.IfThenElse,
    tir.For,
    tir.While,
    tir.Bind,
    tir.Evaluate,
    tir.AllocBuffer,
    tir.DeclBuffer,
    tir.Break,
    tir.Continue,
)
# The last lines of what TVM puts in front of the kernels.
_PRELUDE_END = "#define ushort unsigned short\n#endif\n"
_DECLARATION = re.compile(r'extern "C" __global__ .*\);$')
_KERNEL = re.compile(r'extern "C" __global__ .*?(\w+)\([^()]*\) \{$')
_SHARED_VALUE = re.compile(r"\w+ cse_v\d+ = ")
_HEXADECIMAL = re.compile(r"(0x[0-9a-f]+(?:\.[0-9a-f]*)?p[+-]\d+)(f?)(?:/\*[^*]*\*/)?")
_DOUBLE = re.compile(r"__double_([0-9a-f]{16})\(\)")
_SMALLEST = re.compile(r"(?<![\w.])-(2147483648|9223372036854775808)(?![\w.])")
# The printer writes `while (c)` as a loop without an end that begins with a test.
_ENDLESS, _TEST = "while (1) {", re.compile(r"if \(!\((.*)\)\) \{ break; \}")
_BRACES = ("", "{", "}", "} else {", "};")


@dataclass(frozen=True)
class CudaText:
    """source: all of it.  spans: per line, TVM's span of the statement it comes from, or None.  first: number of the
    first line (from 0) that is not the prelude.
    """

    source: str
    spans: tuple[Any, ...]
    first: int


def print_cuda(
    device: Any, target: Any, arch: str, clusters: Mapping[str, tuple[int, int, int]] | None = None
) -> CudaText:
    """The text of all kernels of a module.  clusters: blocks of a cluster by the names of kernels that have them."""
    spans: list[Any] = []
    known = {name: names_in(function) for name, function in device.functions.items()}
    marked = {
        name: function.with_body(_marked(_with_exact_doubles(function.body), spans))
        for name, function in device.functions.items()
    }
    functions = {name: with_free_names(function, known[name]) for name, function in marked.items()}
    text = _printed(functions, device, target)
    calls = called(text)
    if any(calls.intersection(names.values()) for names in known.values()):
        functions = {name: with_free_names(function, known[name], calls) for name, function in marked.items()}
        text = _printed(functions, device, target)
    lines, places = _without_marks(
        text, spans, {str(f.attrs["global_symbol"]): _launch_span(f) for f in device.functions.values()}
    )
    lines = [_in_clusters(line, clusters) for line in lines] if clusters else lines
    prelude = prelude_for("\n".join(lines), only_moved(device.functions.values(), arch)).splitlines()
    head = [*prelude, ""] if prelude else []
    return CudaText("\n".join([*head, *lines]) + "\n", (None,) * len(head) + tuple(places), len(head))


def _printed(functions: Mapping[Any, Any], device: Any, target: Any) -> str:
    """What TVM prints of the functions, without what it puts in front."""
    printed = tvm.get_global_func("target.build.cuda")(tvm.IRModule(dict(functions), attrs=device.attrs), target)
    text = str(printed.inspect_source())
    return text[text.index(_PRELUDE_END) + len(_PRELUDE_END) :]


def _in_clusters(line: str, clusters: Mapping[str, tuple[int, int, int]]) -> str:
    """The first line of a kernel with the extents of its clusters."""
    kernel = _KERNEL.match(line)
    extents = clusters.get(kernel[1]) if kernel else None
    if extents is None:
        return line
    words = f"__cluster_dims__({', '.join(map(str, extents))}) "
    return line.replace("__global__ void ", f"__global__ void {words}", 1)


def _launch_span(function: Any) -> Any:
    """The place of the launch: that of the outermost thread axis."""
    found: list[Any] = []

    def visit(node: Any) -> None:
        if node.attr_key == "thread_extent" and node.span is not None:
            found.append(node.span)

    tvm_ffi.structural_walk(function.body, (tir.AttrStmt, visit), order="pre")
    return found[0] if found else None


def _without_marks(text: str, spans: list[Any], kernels: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """The lines without marks, and the places of each.

    A mark holds for the lines up to the next one, braces aside; what is computed once for several statements
    (`cse_v1 = ...`) stands at the first of them.
    """
    lines: list[str] = []
    places: list[Any] = []
    current: Any = None
    waiting: list[int] = []
    for line in text.splitlines():
        found = _MARK_LINE.fullmatch(line)
        if found:
            current = spans[int(found[1])]
            for number in waiting:
                places[number] = current
            waiting = []
            continue
        if _DECLARATION.match(line):
            continue
        bare = line.strip()
        if not bare and (not lines or not lines[-1]):
            continue
        test = _TEST.fullmatch(bare)
        if test and lines and lines[-1].endswith(_ENDLESS):
            lines[-1] = lines[-1].replace(_ENDLESS, f"while ({_plain(test[1])}) {{")
            continue
        kernel = _KERNEL.match(line)
        if kernel:
            current = kernels.get(kernel[1])
        elif not line.startswith(" "):
            current = None
        elif _SHARED_VALUE.match(bare):
            waiting.append(len(lines))
        lines.append(_DOUBLE.sub(_double, _SMALLEST.sub(_smallest, _HEXADECIMAL.sub(_decimal, line.rstrip()))))
        places.append(None if bare in _BRACES else current)
    while lines and not lines[-1]:
        lines.pop()
        places.pop()
    return lines, places


def _plain(condition: str) -> str:
    """Without brackets around the whole of it; the constant by its name."""
    depth = 0
    for at, character in enumerate(condition):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and at < len(condition) - 1:
            return "true" if condition == "(bool)1" else condition
    return condition[1:-1] if condition.startswith("(") else condition


def _decimal(found: re.Match[str]) -> str:
    """The shortest decimal that means the same number of the type."""
    value = float.fromhex(found[1])
    shortest = str(np.float32(value)) if found[2] and float(np.float32(value)) == value else repr(value)
    return shortest + found[2]


def _with_exact_doubles(body: Any) -> Any:
    """The printer writes a double with fifteen places after the point, whatever its size: a name stands for it."""

    def constant(node: Any) -> Any:
        value = float(node.value)
        if str(node.ty.dtype) != "float64" or not math.isfinite(value):
            return node
        return tir.call_pure_extern("float64", f"__double_{struct.pack('>d', value).hex()}")

    return tvm_ffi.structural_map(body, (tir.FloatImm, constant))


def _double(found: re.Match[str]) -> str:
    (value,) = struct.unpack(">d", bytes.fromhex(found[1]))
    return repr(value) if value >= 0 and math.copysign(1.0, value) > 0 else f"({value!r})"


def _smallest(found: re.Match[str]) -> str:
    """The smallest integer of a type: in C the number without its sign is of a wider type."""
    return "(-2147483647 - 1)" if found[1] == "2147483648" else "(-9223372036854775807ll - 1)"


def _marked(body: Any, spans: list[Any]) -> Any:
    def mark(node: Any) -> Any:
        if node.span is None:
            return node
        spans.append(node.span)
        call = tir.call_extern("void", MARK, tir.const(len(spans) - 1, "int32"))
        return tir.SeqStmt([tir.Evaluate(call), node])

    return tvm_ffi.structural_map(body, (MARKED, mark))
