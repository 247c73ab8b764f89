"""Device code of a lowered kernel: CUDA C at once, cubin, PTX, SASS and resources when first asked for."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tvm import tirx as tir

from tilelang_nb.lowering.context import Lowered, Snapshot
from tilelang_nb.lowering.hopper.persistent import count_of, without_count
from tilelang_nb.lowering.hopper.tensor_maps import tensor_maps_of, without_tensor_maps
from tilelang_nb.lowering.launches import cluster_of
from tilelang_nb.lowering.rewrite import variables
from tilelang_nb.lowering.spans import source_span
from tilelang_nb.source import catalogue as say
from tilelang_nb.source.collector import collector_paused
from tilelang_nb.source.diagnostic import Diagnostic, Refusal
from tilelang_nb.source.text import Span

from .block_order import in_panels
from .compiler_warnings import compiler_warnings
from .cuda_source import CudaText, print_cuda
from .disassemble import disassemble
from .launch import DeviceLaunch, launch_of
from .longest_first import longest_first
from .machine_code import read_machine_code
from .meanings import spell_out
from .nvrtc import Compiled, NvrtcError, compile_cuda, key_of
from .reports import PARAMETER, Report, ReportWriter
from .resources import KernelResources, read_log, resources_of
from .short_powers import short_powers
from .tail import run_tail

FAST_MATH = ("tl.enable_fast_math", "enable_fast_math", "tirx.enable_fast_math")
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:,.*inlined_at\s+(\d+)\s+(\d+))?")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')


class DeviceError(Exception):
    """Device code cannot be had.  diagnostic: TL302 (no compiler, architecture) or TL900."""

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


@dataclass
class DeviceProgram:
    """The device code of one kernel.

    launches: in order; they share the cubin.  passes: the module after each pass of the tail.  cuda_spans: per line of
    `cuda_source` TVM's span of the statement it comes from, or None; `cuda_lines` are the lines of the cell.
    kernel_line: number of the first line (from 0) after the prelude.  reports: per launch how to read what it prints,
    None if nothing.  milliseconds: that the printing took.  store: where compiled code is kept (`get(key)`,
    `put(key, parts)`), or None.  tile: the module of the tile program.  added_threads: per launch, those that are not
    of the text.  diagnostics: TL900 for a fault of the tail; then there are no launches and no text.

    cubin, ptx, sass and resources raise DeviceError where they cannot be had.
    """

    arch: str
    launches: tuple[DeviceLaunch, ...]
    passes: tuple[Snapshot, ...]
    cuda_source: str
    cuda_spans: tuple[Any, ...]
    kernel_line: int = 0
    reports: tuple[Report | None, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    span: Span | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    milliseconds: float = 0.0
    store: Any = None
    tile: Any = None
    added_threads: tuple[int, ...] = ()

    @property
    def module(self) -> Any:
        """What the CUDA text is printed from; None after a fault."""
        return self.passes[-1].module if self.passes else None

    @property
    def kernel_source(self) -> str:
        """The CUDA text without the prelude."""
        return "\n".join(self.cuda_source.split("\n")[self.kernel_line :])

    @cached_property
    def compiled(self) -> Compiled:
        """What NVRTC makes of the text."""
        if self.diagnostics:
            raise DeviceError(self.diagnostics[0])
        fast = ("--use_fast_math",) if is_fast_math(self.options) else ()
        try:
            key = key_of(self.cuda_source, self.arch, fast)
            kept = self.store.get(key) if self.store is not None else None
            if kept is not None:
                return Compiled(kept["cubin"], kept["ptx"].decode(), kept["log"].decode())
            compiled = compile_cuda(self.cuda_source, self.arch, fast)
        except Refusal as refusal:
            raise DeviceError(refusal.message.at(self.span)) from None
        except NvrtcError as error:
            raise DeviceError(self._refused(error)) from None
        if self.store is not None:
            self.store.put(key, {"cubin": compiled.cubin, "ptx": compiled.ptx.encode(), "log": compiled.log.encode()})
        return compiled

    def _refused(self, error: NvrtcError) -> Diagnostic:
        """TL900 with the generated line, at the user's line."""
        lines = self.cuda_source.split("\n")
        number = error.line or 0
        said = next((line for line in error.log.splitlines() if "error" in line), error.log.splitlines()[0])
        report = f"{' '.join(said.split())[:240]}"
        if 0 < number <= len(lines):
            report += f" | {lines[number - 1].strip()[:160]}"
        found = next((span for span in reversed(self.cuda_spans[:number]) if span is not None), None)
        span = source_span(found) or self.span
        return say.InternalError(problem="NVRTC refused the CUDA text of this kernel", report=report).at(span)

    @property
    def cubin(self) -> bytes:
        """The machine code of all launches."""
        return self.compiled.cubin

    @property
    def ptx(self) -> str:
        """The PTX of all launches."""
        return self.compiled.ptx

    @property
    def log(self) -> str:
        """What NVRTC and ptxas said."""
        return self.compiled.log

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the compiler says of slow machine code (TL213, TL214); nothing before somebody asks for the code."""
        return self._warnings if self.has("ptx") else ()

    @cached_property
    def _warnings(self) -> tuple[Diagnostic, ...]:
        return compiler_warnings(self)

    @property
    def cuda_lines(self) -> tuple[tuple[int, ...], ...]:
        """Per line of `cuda_source` the lines of the cell."""
        return _lines(self.cuda_spans)

    @cached_property
    def ptx_spans(self) -> tuple[Any, ...]:
        """Per line of `ptx` TVM's span of the statement it comes from, or None."""
        return tuple(self.span_of(line) for line in cuda_lines_of_ptx(self.ptx))

    @property
    def ptx_lines(self) -> tuple[tuple[int, ...], ...]:
        """Per line of `ptx` the lines of the cell."""
        return _lines(self.ptx_spans)

    @cached_property
    def _disassembled(self) -> tuple[str, tuple[int | None, ...]]:
        cubin = self.cubin
        try:
            return disassemble(cubin)
        except Refusal as refusal:
            raise DeviceError(refusal.message.at(self.span)) from None
        except Exception as error:
            raise DeviceError(_fault("disassembling", error, self.span)) from error

    @property
    def sass(self) -> str:
        """The machine code as text.  DeviceError TL302 without nvdisasm."""
        return self._disassembled[0]

    @cached_property
    def sass_spans(self) -> tuple[Any, ...]:
        """Per line of `sass` TVM's span of the statement it comes from, or None."""
        return tuple(self.span_of(line) for line in self._disassembled[1])

    @property
    def sass_lines(self) -> tuple[tuple[int, ...], ...]:
        """Per line of `sass` the lines of the cell."""
        return _lines(self.sass_spans)

    def span_of(self, line: int | None) -> Any:
        """TVM's span of the statement that a line (from 1) of the CUDA text comes from, or None."""
        if line is None or not self.kernel_line < line <= len(self.cuda_spans):
            return None
        return self.cuda_spans[line - 1]

    def has(self, language: str) -> bool:
        """Whether the text of "cuda", "ptx" or "sass" is there without more work."""
        needed = {"ptx": "compiled", "sass": "_disassembled"}.get(language)
        return needed is None or needed in self.__dict__

    def text(self, language: str) -> tuple[str, tuple[Any, ...]]:
        """The text of "cuda", "ptx" or "sass", and the span of each line.  DeviceError: it cannot be had."""
        if language == "cuda":
            return self.cuda_source, self.cuda_spans
        return (self.ptx, self.ptx_spans) if language == "ptx" else (self.sass, self.sass_spans)

    @cached_property
    def resources(self) -> KernelResources:
        """What each launch takes of a multiprocessor."""
        report, origin = read_log(self.log), "ptxas"
        if any("registers" not in report.get(launch.name, {}) for launch in self.launches):
            report, origin = read_machine_code(self.cubin, self.arch), "machine code"
        return KernelResources(
            resources_of(
                launch.name,
                self.arch,
                report.get(launch.name, {}),
                launch.threads,
                launch.shared_bytes if isinstance(launch.shared_bytes, int) else None,
                origin,
            )
            for launch in self.launches
        )


def _lines(spans: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(() if span is None else (int(span.line),) for span in spans)


def is_fast_math(options: Mapping[str, Any]) -> bool:
    """Whether the pass options ask for approximate mathematics."""
    return any(options.get(name) for name in FAST_MATH)


def generate(lowered: Lowered, *, arch: str, options: Mapping[str, Any] | None = None) -> DeviceProgram:
    """CUDA C of the launches.  Never raises; a fault of a pass is TL900 among the diagnostics.

    No compiler and no device are needed for this: NVRTC runs when cubin, PTX, SASS or resources are asked for.
    """
    with collector_paused():
        span = source_span(lowered.launches[0].span) if lowered.launches else None
        try:
            return _generate(lowered, arch, dict(options or {}), span)
        except Refusal as refusal:
            found = refusal.message.at(refusal.place if isinstance(refusal.place, Span) else span)
        except Exception as error:
            found = _fault("printing CUDA C", error, span)
        return DeviceProgram(arch, (), (), "", (), diagnostics=(found,), span=span, options=dict(options or {}))


def _generate(lowered: Lowered, arch: str, options: dict[str, Any], span: Span | None) -> DeviceProgram:
    functions: dict[str, Any] = {}
    writers: list[ReportWriter] = []
    for launch, swizzle in zip(lowered.launches, lowered.swizzles or [None] * len(lowered.launches)):
        writer = ReportWriter()
        function = short_powers(spell_out(launch, writer, arch))
        # Reports name blocks as they are started, and those of a cluster are neighbours then.
        if not writer.sites and cluster_of(launch) == (1, 1, 1):
            function = longest_first(function) if swizzle is None else in_panels(function, *swizzle)
        if writer.sites:
            function = _with_parameter(function, writer)
        functions[str(launch.attrs["global_symbol"])] = without_count(without_tensor_maps(function))
        writers.append(writer)
    split = run_tail(functions, arch, is_fast_math(options))
    launches = tuple(
        launch_of(
            host,
            writer.parameter.name if writer.sites else "",
            tensor_maps_of(launch),
            cluster_of(launch),
            multiprocessors=getattr(count_of(launch), "name", ""),
        )
        for host, writer, launch in zip(split.host, writers, lowered.launches)
    )
    started = time.perf_counter()
    clusters = {launch.name: launch.cluster for launch in launches if launch.cluster != (1, 1, 1)}
    text: CudaText = print_cuda(split.device, split.target, arch, clusters)
    return DeviceProgram(
        arch=arch,
        launches=launches,
        passes=split.snapshots,
        cuda_source=text.source,
        cuda_spans=text.spans,
        milliseconds=(time.perf_counter() - started) * 1e3,
        kernel_line=text.first,
        reports=tuple(writer.read() for writer in writers),
        span=span,
        options=options,
        tile=lowered.snapshots[0].module,
        added_threads=lowered.added_threads,
    )


def _with_parameter(function: Any, writer: ReportWriter) -> Any:
    """The function with the report's address as its last parameter, under a name that nothing in it has."""
    taken = {variable.name for variable in variables(function.body)} | {p.name for p in function.params}
    taken.discard(PARAMETER)
    clashes = [p for p in function.params if p.name == PARAMETER]
    body = function.body
    if clashes:
        fresh = tir.Var(
            next(f"{PARAMETER}_{n}" for n in range(1, 1 << 20) if f"{PARAMETER}_{n}" not in taken), writer.parameter.ty
        )
        from tilelang_nb.lowering.rewrite import substitute

        body, writer.parameter = substitute(body, {writer.parameter: fresh}), fresh
    return tir.PrimFunc([*function.params, writer.parameter], body, function.ret_type, function.attrs, function.span)


def cuda_lines_of_ptx(ptx: str) -> list[int | None]:
    """Per line of a PTX text the line (from 1) of the CUDA text, by its `.loc` directives."""
    mine: set[str] = set()
    for found in map(_FILE.match, ptx.splitlines()):
        if found and found[2].endswith("kernel.cu"):
            mine.add(found[1])
    lines: list[int | None] = []
    current: int | None = None
    inline = False
    for line in ptx.splitlines():
        place = _LOC.match(line)
        if place:
            if place[3] is None:
                current = int(place[2]) if place[1] in mine else None
            elif place[3] in mine:  # what was inlined belongs to its call; of nested calls only the inner one is said
                current = int(place[4])
            lines.append(None)
            continue
        text = line.strip()
        if text in ("// begin inline asm", "// end inline asm"):
            inline = text == "// begin inline asm"
        elif inline:  # its braces are those of instructions
            lines.append(current)
            continue
        if text.startswith((".visible", ".entry", "}", "{", ".func")):
            current = None
        code = text and not text.startswith((".", "//", "}", "{", "$", ")"))
        lines.append(current if code else None)
    return lines


def _fault(doing: str, error: Exception, span: Span | None) -> Diagnostic:
    """A fault of ours, as one line to report."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tilelang_nb" in frame.filename]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-3:]))
    said = (str(error).strip().splitlines() or [""])[0][:160]
    report = f"device: {type(error).__name__}: {said} ({places})"
    return say.InternalError(problem=f"{doing} failed", report=report).at(span)
