"""A kernel as the user holds it: it is called with arrays, shows its stages, and says what the last launch found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, overload

from ..layout.maps import Layouts
from ..lowering.pipeline_steps import Pipelines
from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Refusal
from ..source.text import Span, Text
from ..source.uncopied import Uncopied
from . import launch_record, views
from .arguments import bind, uninitialised
from .build import Build
from .cache import build_of
from .device_calls import LAUNCHED, DeviceCalls
from .device_launch import NOTHING_SHOWN, Shown
from .errors import CompileError, LaunchError
from .expansion import ExpansionNode, PrintedStatements
from .host_arrays import as_callers_kind
from .internal import internal_error
from .refused_launch import Callee, refused_launch
from .simulate import Outcome, simulate
from .simulated_launches import Launch, SimulatorFindings, launches, warn_of
from .stages import Stages, definition, device_stages, stages_of
from .symbols import Symbols
from .target import Target, resolve
from .timing import Benchmark, bench, no_timing

__all__ = ["Kernel", "Launch", "SimulatorFindings", "launches"]


class Kernel(Uncopied):
    """A `@T.prim_func`, compiled on first need for its target.

    Calling it launches it: `k(A, B, C)` with NumPy arrays, or what gives its memory through `__array_interface__`,
    `__cuda_array_interface__` or DLPack; arguments may be given by name.  Tensors named by `out_idx` are not passed but
    returned.  On a GPU a launch with device arrays returns before it has run, in order with the other work of its
    stream (`stream=`, else the one that the arrays' library works on); arrays of the host are copied there and back.

    CompileError: the kernel was refused.  LaunchError: TL301 an argument does not fit, TL302 the target is not
    available or the device failed, TL208 and TL209 the device has not that much of something, TL404 a
    `T.device_assert` failed.
    """

    def __init__(
        self,
        name: str,
        program: Any,
        diagnostics: tuple[Diagnostic, ...] = (),
        *,
        text: Text,
        target: Target,
        outputs: tuple[int, ...] = (),
        options: Mapping[str, Any] | None = None,
    ):
        self.name = self.__name__ = name
        self.expansion = program.expansion if program is not None else None
        self.program, self.text, self.target = program, text, target
        self.outputs, self.options = outputs, dict(options or {})
        self._diagnostics = tuple(diagnostics)
        self._build: Build | None = None
        self._stages: Stages | None = None
        self._unroll: ExpansionNode | None = None
        self._outcome = Outcome()
        self._calls: DeviceCalls | None = None

    # -- compiling

    def compile(
        self,
        target: Any = None,
        arch: str | None = None,
        *,
        out_idx: int | list[int] | tuple[int, ...] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Kernel:
        """This kernel, compiled for a target: "sim", "cuda", or "auto" (what this machine has).

        out_idx: positions of tensor parameters that a call returns instead of taking, negative ones from the end.
        CompileError: it does not compile for that target.  LaunchError TL302: there is no such target.  Code for a GPU
        is compiled and shown on any machine; only a launch needs the device.
        """
        if self.program is None:
            raise CompileError(self._diagnostics, self.text)
        try:
            wanted = self.target if target is None and arch is None else resolve(target or self.target.kind, arch)
        except Refusal as refusal:
            raise self._refused_call(refusal, (), {}) from None
        outputs = self.outputs if out_idx is None else self._positions(out_idx)
        chosen = self.options if options is None else dict(options)
        kernel = self
        if (wanted, outputs, chosen) != (self.target, self.outputs, self.options):
            kernel = Kernel(
                self.name,
                self.program,
                self._diagnostics,
                text=self.text,
                target=wanted,
                outputs=outputs,
                options=chosen,
            )
        kernel._ready()
        return kernel

    def build(self) -> Build | None:
        """The lowered program, made on first need; None if the front end refused the kernel."""
        if self._build is None and self.program is not None:
            self._build = build_of(self.program, self.target.arch, {**self.target.options, **self.options})
            # An equal program may have been built before: the stages carry the span objects and variables of that one.
            self.program = self._build.program
        return self._build

    def _ready(self) -> Build:
        """The build.  CompileError: the kernel was refused."""
        build = self.build()
        if build is None or not self.ok:
            raise CompileError(self.diagnostics, self.text)
        return build

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the front end and the lowering for this target say of it, by line; and the compiler of the device code,
        once that was asked for.
        """
        build = self.build()
        found = self._diagnostics + ((*build.diagnostics, *build.warnings) if build else ())
        return tuple(sorted(dict.fromkeys(found), key=lambda diagnostic: diagnostic.order))

    @property
    def own_diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the front end says of it."""
        return self._diagnostics

    @property
    def ok(self) -> bool:
        """No error among its diagnostics."""
        return self.program is not None and all(d.severity != "error" for d in self.diagnostics)

    def _positions(self, out_idx: int | list[int] | tuple[int, ...]) -> tuple[int, ...]:
        count = len(self.program.parameters)
        given = (out_idx,) if isinstance(out_idx, int) else tuple(out_idx)
        for index in given:
            if not -count <= index < count:
                raise IndexError(f"out_idx {index}: {self.name} has {count} parameters")
        return tuple(index % count for index in given)

    # -- launching

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if launch_record.record is not None:
            launch_record.record.add(self, args, kwargs)
        calls = self._calls
        if calls is not None and not kwargs:
            done = calls.first(args, None) or calls.short(args)
            if done is not None:
                calls.launches += 1
                return None if done is LAUNCHED else self._shown(*done)
        build = self._ready()
        self._outcome = Outcome()
        stream = None
        if "stream" in kwargs and all(parameter.name != "stream" for parameter in self.parameters):
            stream = kwargs.pop("stream")
        try:
            if self.target.kind == "cuda":
                result, shown = self._on_device(build, args, kwargs, stream)
            else:
                result = self._simulated(build, args, kwargs)
        except Refusal as refusal:
            raise self._refused_call(refusal, args, kwargs) from None
        if self.target.kind == "cuda":
            return self._shown(result, shown)
        self._after_launch()
        return result

    def _simulated(self, build: Build, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the launches on the simulated device, which has one stream: all is done when this returns."""
        binding = bind(build.program.parameters, build.written, args, kwargs, outputs=self.outputs)
        made = {name: uninitialised(shape, dtype) for name, (shape, dtype) in binding.outputs.items()}
        try:
            self._outcome = simulate(build, binding, made)
        except Refusal:
            raise
        except Exception as error:
            raise LaunchError(internal_error(error, f"simulating {self.name}", self.span), self.text) from error
        binding.write_back()
        results = [as_callers_kind(result, (*args, *kwargs.values())) for result in made.values()]
        return (results[0] if len(results) == 1 else results) if results else None

    def __getitem__(self, configuration: Any) -> NoReturn:
        """LaunchError TL301: the launch configuration stands in the kernel."""
        takes = ", ".join(parameter.name for parameter in self.parameters)
        remedy = f"blocks and threads stand in `T.Kernel`: call `{self.name}({takes})`"
        raise self._refused_call(Refusal(say.NoLaunchConfiguration("", "", "", remedy)), (), {})

    def _on_device(
        self, build: Build, args: tuple[Any, ...], kwargs: Mapping[str, Any], stream: Any
    ) -> tuple[Any, Shown]:
        """Launch on a GPU; a Refusal says why not."""
        try:
            if self._calls is None:
                self._calls = DeviceCalls(self, build)
            return self._calls(args, kwargs, stream)
        except (Refusal, LaunchError):
            raise
        except Exception as error:
            raise LaunchError(internal_error(error, f"launching {self.name}", self.span), self.text) from error

    def _refused_call(self, refusal: Refusal, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception:
        from ..language.values import is_building, is_device

        if is_building() and any(map(is_device, (*args, *kwargs.values()))):
            what = f"a call of the kernel `{self.name}` in a kernel"
            remedy = "make it a `@T.macro`, or launch the kernels one after the other"
            return Refusal(say.UnsupportedSyntax(what=what, remedy=remedy))
        names = [parameter.name for at, parameter in enumerate(self.parameters) if at not in self.outputs]
        return refused_launch(refusal, Callee(self.name, self.text, names, self._place), args, kwargs)

    def _place(self, parameter: str) -> Span | None:
        """Where a parameter stands; the kernel itself with ""."""
        return self._parameter_span(parameter) if parameter else self.span

    def _shown(self, result: Any, shown: Shown) -> Any:
        """The result of a launch on a GPU, after what the kernel printed.  LaunchError TL404: an assertion failed."""
        if shown is not NOTHING_SHOWN:
            self._outcome = Outcome(printed=shown.printed)
            for line in shown.printed:
                print(line)
            if shown.failures:
                raise LaunchError(shown.failures[0], self.text)
        return result

    def bench(
        self,
        *args: Any,
        baseline: Callable[[], Any] | None = None,
        repeat: int | None = None,
        warm_up: int = 3,
        flush: bool = True,
        stream: Any = None,
        **kwargs: Any,
    ) -> Benchmark:
        """Time a call on a GPU: the median of single launches and their spread, GB/s and TFLOP/s, the share of what the
        device could do, and the ratio to `baseline`, a callable that is timed in turn with it.

        Without arguments they are made up.  Arrays of the host are copied once before, and are left as they are; arrays
        of the device are written as by a call.  repeat: launches to time, else as many as take 100 ms, 20 at least.
        flush: empty the second-level cache before each.
        LaunchError TL302: the kernel is for the simulated device, which has no clock.  Others as for a call.
        """
        build = self._ready()
        if self.target.kind != "cuda":
            raise no_timing(f"timing `{self.name}`", self.span, self.text)
        if not args and not kwargs and self.parameters:
            args = tuple(self.get_profiler().inputs())
        try:
            options = {"baseline": baseline, "repeat": repeat, "warm_up": warm_up, "flush": flush, "stream": stream}
            return bench(self, build, args, kwargs, **options)
        except Refusal as refusal:
            raise self._refused_call(refusal, args, kwargs) from None

    def _after_launch(self) -> None:
        """Show what was printed, and do not let a finding pass in silence."""
        outcome = self._outcome
        launches.append(Launch(self, outcome.findings, outcome.printed))
        for line in outcome.printed:
            print(line, end="" if line.endswith("\n") else "\n")
        if outcome.failed_assertion is not None:
            raise LaunchError(outcome.failed_assertion, self.text)
        warn_of(self.name, outcome.findings)

    def _parameter_span(self, name: str) -> Span | None:
        node = definition(self.text, self.span) if self.span is not None and name else None
        for parameter in node.args.args if node is not None else ():
            if parameter.arg == name:
                return self.text.span(parameter)
        return None

    # -- what is known about it

    @property
    def span(self) -> Span | None:
        """The line of its `def`."""
        if self.program is None:
            return None
        line, column = self.program.span.line, self.program.span.column
        return Span(line, column, line, len(self.text.line(line).rstrip()))

    @property
    def parameters(self) -> tuple[Any, ...]:
        """Its parameters in order: .name .kind .dtype .shape .strides."""
        return self.program.parameters if self.program is not None else ()

    @property
    def stages(self) -> Stages:
        """`source`, `tile`, the stages of lowering, `thread`, the passes after it, `cuda`, `ptx`, `sass`; as far as it
        compiled.  The texts of `ptx` and `sass` run the CUDA compiler when they are asked for; of a program of many
        thousand statements `cuda` too is made then, and the passes after `thread` are left out.
        """
        if self._stages is None:
            build = self.build()
            found = stages_of(self.program, build.lowered.snapshots if build.lowered else ()) if build else ()
            if build is not None and build.ok:
                found += device_stages(self.program, build)
            self._stages = Stages(found)
        return self._stages

    @property
    def unroll(self) -> ExpansionNode:
        """The root of the record of compile-time expansion."""
        if self.program is None:
            raise CompileError(self._diagnostics, self.text)
        if self._unroll is None:
            self._unroll = ExpansionNode(self.expansion, PrintedStatements(self._statements_of))
        return self._unroll

    def _statements_of(self, stage: str) -> list[int | None]:
        """For each line of a stage's text, the number of the statement that it comes from."""
        found = {known.name: known for known in self.stages}[stage]
        if found.statements is not None:
            return list(found.statements)
        if found.module is None:
            return [None] * len(found.spans)
        return views.view("stage_statements")(found.module, self.program.statement_spans)

    def script(self) -> str:
        """The tile program as text."""
        if self.program is None:
            raise CompileError(self._diagnostics, self.text)
        return next(stage.text for stage in self.stages if stage.name == "tile")

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """What the simulated device found in the last launch (TL401 to TL406)."""
        return self._outcome.findings

    @property
    def counters(self) -> tuple[Any, ...]:
        """What the simulated device counted in the last call, one entry per launch."""
        return self._outcome.counters

    @property
    def printed(self) -> tuple[str, ...]:
        """What `T.print` wrote in the last launch."""
        return self._outcome.printed

    def _device_code(self, what: Callable[[Any], Any]) -> Any:
        """Something of the device code.  CompileError, or LaunchError: it cannot be had here."""
        from ..device import DeviceError

        build = self._ready()
        try:
            if build.device.diagnostics:
                raise DeviceError(build.device.diagnostics[0])
            return what(build.device)
        except DeviceError as error:
            raise LaunchError(error.diagnostic, self.text) from None

    @property
    def cuda_source(self) -> str:
        """The CUDA C of the kernel: all that NVRTC compiles.  Needs no device and no compiler."""
        return self._device_code(lambda code: code.cuda_source)

    @property
    def ptx(self) -> str:
        """The PTX of the kernel.  LaunchError TL302: there is no NVRTC here, or it does not know the architecture."""
        return self._device_code(lambda code: code.ptx)

    @property
    def sass(self) -> str:
        """The machine code of the kernel as text.  LaunchError TL302: as for PTX, or there is no nvdisasm here."""
        return self._device_code(lambda code: code.sass)

    @property
    def resources(self) -> Any:
        """What the kernel takes of a multiprocessor: `.registers`, `.shared_bytes`, `.local_bytes`, `.spill_stores`,
        `.spill_loads`, `.threads`, `.blocks`, `.occupancy`, each with `.value` and `.origin`.

        Of several launches the one that takes most; iterating gives all.  LaunchError TL302: as for PTX.
        """
        return self._device_code(lambda code: code.resources)

    @property
    def layouts(self) -> Layouts:
        """Where the elements of each tile are, by its name: thread and register, or byte and bank of shared memory.

        CompileError: the kernel was refused.
        """
        return Layouts(self._ready().lowered.maps)

    @property
    def pipelines(self) -> tuple[Any, ...]:
        """Its `T.Pipelined` loops: what copies run ahead, what each version of a tile holds in each turn, and which
        copies stay in their turn and why.  Printed, each is a table.

        CompileError: the kernel was refused.
        """
        return Pipelines(self._ready().lowered.pipelines)

    @property
    def decisions(self) -> tuple[Any, ...]:
        """What the compiler decided, in the order of the text: `.subject` ("product", "pipeline", "roles", ...),
        `.value`, `.reason` and `.line`.  Printed, each is a line.

        CompileError: the kernel was refused.
        """
        return tuple(self._ready().lowered.decisions)

    def inspect(self) -> Any:
        """The view of the kernel for a notebook."""
        return views.view("widget")(self)

    def to_text(self) -> str:
        """The kernel's report as text."""
        return views.view("text")(self)

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | PathLike[str]) -> Path: ...

    def to_html(self, path: Any = None) -> str | Path:
        """The kernel's report as static HTML.

        With a path: the whole view is written there as a page of its own, and the path is returned.
        """
        return views.view("html")(self) if path is None else views.written(self, path)

    # -- upstream's names

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The CUDA C of the kernel; with kernel_only=False also what stands in front of it, as `cuda_source`."""
        return self._device_code(lambda code: code.kernel_source) if kernel_only else self.cuda_source

    def get_profiler(self, *args: Any, **kwargs: Any) -> Any:
        """A profiler of this kernel; see `tilelang_nb.tilelang.profiler`."""
        return views.view("profiler")(self, *args, **kwargs)

    def __repr__(self) -> str:
        if self.program is None:
            count = sum(diagnostic.severity == "error" for diagnostic in self._diagnostics)
            return f"<Kernel {self.name}: refused, {count} error{'s' * (count != 1)}>"
        return f"<Kernel {self.name}({', '.join(map(_written, self.parameters))}) for {self.target}>"


def _written(parameter: Any) -> str:
    """`A: float32 (n, 64)`."""
    if parameter.kind == "scalar":
        return f"{parameter.name}: {parameter.dtype}"
    return f"{parameter.name}: {parameter.dtype} {Symbols().written(parameter.shape)}"
