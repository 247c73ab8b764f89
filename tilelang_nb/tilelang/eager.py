"""`@jit` on a function whose body is the kernel: a call compiles it for its arguments, launches it and returns the
tensors that it makes.

Sizes named by `T.const` and arguments that are no tensors are constants of a compilation, and so is what the kernel
reads from outside (`frontend.surroundings`); one is kept for each set of them.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..frontend import eager
from ..frontend.eager_syntax import syntax_mistakes
from ..frontend.locate import header_span
from ..frontend.surroundings import comparable
from ..language.tensors import Tensor
from ..language.values import is_building, is_device
from ..runtime.arguments import assign, bind
from ..runtime.device_arrays import DeviceArray, outline
from ..runtime.errors import CompileError, LaunchError
from ..runtime.host_arrays import NoHostArray, host_array, host_dtype
from ..runtime.kernel import Kernel
from ..runtime.misfits import Collection, Misfits, mismatch
from ..runtime.refused_launch import Callee, refused_launch
from ..runtime.standalone import make_kernel, module_limits, text_of
from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Refusal
from ..source.interrupts import pass_on_interrupt
from ..source.text import Span
from .jit_function import JitFunction, compile

# What an eager kernel shows of the kernel compiled last.
INSPECTED = frozenset(
    [
        "findings",
        "counters",
        "printed",
        "stages",
        "unroll",
        "script",
        "cuda_source",
        "ptx",
        "sass",
        "resources",
        "inspect",
    ]
    + ["to_html", "program", "parameters", "diagnostics"]
)
BENCH_OPTIONS = {"baseline", "repeat", "warm_up", "flush", "stream"}
UNKEYED = object()  # the key of arguments that cannot be compared


@dataclass(frozen=True)
class _Taken:
    """A parameter as far as a call is bound to it."""

    name: str
    default: Any
    kind: str = "eager"


@dataclass(frozen=True)
class Compiled:
    """kernel: what is launched.  collection: tuple or list, where it returns one."""

    kernel: Kernel
    collection: type | None


class EagerFunction(JitFunction):
    """An eager kernel: calling it with arrays compiles it for them where it was not yet, and launches it.

    Tensors that are passed are written in place; those that `T.empty` made and the body returns are returned, several
    as a tuple.

    kernel: the kernel of the last call or compilation, None before the first.  kernels: all that were compiled.
    CompileError: it is refused for these arguments.  LaunchError: TL301 an argument does not fit; else as `Kernel`.
    """

    def __init__(self, func: Callable[..., Any], *, target: Any = None, pass_configs: Mapping[Any, Any] | None = None):
        super().__init__(func, target=target, pass_configs=pass_configs)
        self.kernel: Kernel | None = None
        self.arch: str | None = None
        self._compiled: dict[Any, Compiled] = {}
        self._outlines: dict[Any, eager.Outline] = {}
        self._kernels_made: list[Kernel] = []
        try:
            self.eager = eager.describe(func, module_limits())
        except Refusal as refusal:
            place = refusal.place if isinstance(refusal.place, Span) else None
            raise CompileError((refusal.message.at(place, refusal.notes),), text_of(func)) from None
        self.mistakes: tuple[Diagnostic, ...] = syntax_mistakes(self.eager.definition)
        if self.mistakes and not eager.report(self.eager.session, self.mistakes):
            raise CompileError(self.mistakes, self.eager.text)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels compiled so far, oldest first."""
        return tuple(self._kernels_made)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Launch it; the tensors that it returns."""
        stream = {}
        if "stream" in kwargs and "stream" not in self.signature.parameters:
            stream = {"stream": kwargs.pop("stream")}
        if is_building() and any(map(is_device, (*args, *kwargs.values()))):
            what = f"a call of the kernel `{self.func.__name__}` in a kernel"
            remedy = "make it a `@T.macro`, or launch the kernels one after the other"
            raise Refusal(say.UnsupportedSyntax(what=what, remedy=remedy))
        given, sizes = self._arguments(args, kwargs, launch=True)
        try:
            compiled = self._for(given, sizes)
            kernel = compiled.kernel
            passed = [p.name for at, p in enumerate(kernel.parameters) if at not in kernel.outputs]
            result = kernel(*[given[name] for name in passed], **stream)
        except (Misfits, LaunchError) as error:
            raise self._at_call(error, args, kwargs) from None
        if compiled.collection is None:
            return result
        return compiled.collection(result if isinstance(result, list) else [] if result is None else [result])

    def bench(self, /, *args: Any, **kwargs: Any) -> Any:
        """Time a call on a GPU, compiled for its arguments; options and errors as for `Kernel.bench`."""
        named = {name: kwargs.pop(name) for name in BENCH_OPTIONS - set(self.signature.parameters) if name in kwargs}
        given, sizes = self._arguments(args, kwargs, launch=True)
        try:
            kernel = self._for(given, sizes).kernel
            passed = [p.name for at, p in enumerate(kernel.parameters) if at not in kernel.outputs]
            return kernel.bench(*[given[name] for name in passed], **named)
        except (Misfits, LaunchError) as error:
            raise self._at_call(error, args, kwargs) from None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel for these arguments.

        Tensors may be left out, or given as `T.Tensor(shape, dtype)`; sizes of `T.const` may be given by name.  With
        nothing but `target=` or `arch=`, as for `Kernel.compile`: the same eager kernel for that target.
        """
        options = {"target", "arch"} - set(self.signature.parameters) - set(self.eager.constants)
        if kwargs and not args and set(kwargs) <= options:
            return self._on(**kwargs)
        given, sizes = self._arguments(args, kwargs, launch=False)
        try:
            return self._for(given, sizes).kernel
        except Misfits as misfits:
            raise self._refused(misfits, args, kwargs) from None

    def _on(self, target: Any = None, arch: str | None = None) -> EagerFunction:
        other = copy.copy(self)
        other.target, other.arch = target or self.target, arch or self.arch
        other.kernel, other._compiled, other._kernels_made = None, {}, []
        return other

    def __getattr__(self, name: str) -> Any:
        """What a kernel shows is shown of the kernel compiled last."""
        kernel = self.__dict__.get("kernel")
        if name in INSPECTED and kernel is not None:
            return getattr(kernel, name)
        if name == "findings":
            return ()
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """The tile program for these arguments, as a TIR function."""
        return self.compile(*args, **kwargs).program.function

    def get_kernel_source(self, *args: Any, kernel_only: bool = True, **kwargs: Any) -> str:
        """The CUDA C for these arguments; without any that of the kernel compiled last."""
        kernel = self.kernel if self.kernel is not None and not args and not kwargs else self.compile(*args, **kwargs)
        return kernel.get_kernel_source(kernel_only)

    # -- arguments

    def _arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, launch: bool
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Arguments by parameter name, and sizes given by name.  LaunchError TL301 for what does not fit."""
        if self.mistakes:
            raise CompileError(self.mistakes, self.eager.text)
        named = self.signature.parameters
        sizes = {name: value for name, value in kwargs.items() if name not in named and name in self.eager.constants}
        rest = {name: value for name, value in kwargs.items() if name not in sizes}
        binds = self.signature.bind if launch else self.signature.bind_partial
        try:
            bound = binds(*args, **rest)
        except TypeError as error:
            raise self._refused(self._misfits(args, rest, error), args, kwargs) from None
        bound.apply_defaults()
        mistakes = Collection()
        for name in named:
            if name not in bound.arguments and name not in self.eager.run_time:
                mistakes.add(say.MissingArgument(name, "a value for this compilation", "nothing", f"give `{name}=`"))
        try:
            mistakes.raise_if_any(list(named))
        except Misfits as misfits:
            raise self._refused(misfits, args, kwargs) from None
        return dict(bound.arguments), sizes

    def _misfits(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: TypeError) -> Refusal:
        """Why the arguments do not fit the parameters."""
        named = list(self.signature.parameters)
        taken = [
            _Taken(p.name, None if p.default is p.empty else p.default) for p in self.signature.parameters.values()
        ]
        mistakes = Collection()
        assign(taken, frozenset(), args, kwargs, mistakes)
        try:
            mistakes.raise_if_any(named)
        except Misfits as misfits:
            return misfits
        takes = f"the kernel takes {', '.join(named) or 'no arguments'}"
        return mismatch(", ".join(named), "arguments that fit", str(error), takes)

    def _refused(self, refusal: Refusal, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LaunchError:
        """TL301 at the argument or the parameter that it speaks of, else at the call or the kernel."""
        of = Callee(self.func.__name__, self.eager.text, list(self.signature.parameters), self._place)
        return refused_launch(refusal, of, args, kwargs)

    def _place(self, parameter: str) -> Span | None:
        """Where a parameter stands; the header of the kernel with ""."""
        node, text = self.eager.definition.node, self.eager.text
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if argument.arg == parameter:
                return text.span(argument)
        return None if parameter else header_span(text, node)

    def _at_call(self, error: Refusal | LaunchError, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LaunchError:
        """A refusal of the kernel that was compiled, at the arguments of the call of this."""
        refusal = error.refusal if isinstance(error, LaunchError) else error
        if refusal is None:
            assert isinstance(error, LaunchError)
            return error
        return self._refused(refusal, args, kwargs)

    # -- compiling

    def _for(self, given: Mapping[str, Any], sizes: Mapping[str, int]) -> Compiled:
        """The kernel for these arguments, from the cache where one with the same constants was compiled before."""
        arguments = {}
        for name in self.signature.parameters:
            value = given.get(name, eager.RUN_TIME)
            arguments[name] = eager.RUN_TIME if self._is_run_time(name, value) else value
        key = _frozen(arguments)
        key = (key, self.eager.surroundings) if key is not UNKEYED else UNKEYED
        call = eager.Call(arguments, dict(sizes), arrays=_arrays(given))
        while True:
            at = (key, tuple(sorted(call.sizes.items()))) if key is not UNKEYED else UNKEYED
            compiled = self._compiled.get(at)
            if compiled is not None:
                break
            outline = self._outlines.get(at) or eager.outline(self.eager, call)
            if at is not UNKEYED:
                self._outlines[at] = outline
            missing = {name: var for name, var in outline.sizes.items() if name not in call.sizes}
            found = self._sizes(outline, given, missing)
            if not found:
                if missing:
                    raise CompileError(outline.undetermined(list(missing)), self.eager.text)
                compiled = self._build(call)
                if at is not UNKEYED:
                    self._compiled[at] = compiled
                break
            call.sizes.update(found)
        self.kernel = compiled.kernel
        return compiled

    def _is_run_time(self, name: str, value: Any) -> bool:
        if value is eager.RUN_TIME:
            return True
        if name not in self.eager.run_time:
            return _is_array(value)
        return not (value is None and self.signature.parameters[name].default is None)

    def _sizes(self, outline: eager.Outline, given: Mapping[str, Any], missing: Mapping[str, Any]) -> dict[str, int]:
        """Sizes that the shapes of the given tensors tell.  Misfits (TL301): they do not fit each other."""
        if not missing:
            return {}
        told = [p for p in outline.parameters if p.name in given and given[p.name] is not eager.RUN_TIME]
        shaped = {p.name: _shaped(p, given[p.name]) if p.kind == "tensor" else given[p.name] for p in told}
        binding = bind(told, frozenset(), (), shaped, read=_outline_or_host)
        found = {name: binding.symbols.evaluate(var) for name, var in missing.items()}
        return {name: int(value) for name, value in found.items() if value is not None}

    def _build(self, call: eager.Call) -> Compiled:
        built = eager.build(self.eager, call)
        diagnostics = tuple(sorted(built.diagnostics, key=lambda diagnostic: diagnostic.order))
        session = self.eager.session
        eager.report(session, diagnostics)
        factory = (
            session.kernel_factory if session is not None else functools.partial(make_kernel, text=self.eager.text)
        )
        made = factory(self.func.__name__, built.program, diagnostics)
        kernel = compile(made, target=self.target, pass_configs=self.pass_configs)
        if self.arch is not None:
            kernel = kernel.compile(arch=self.arch)
        self._kernels_made.append(kernel)
        return Compiled(kernel, built.collection)

    def __repr__(self) -> str:
        count = len(self._kernels_made)
        state = "refused" if self.mistakes else f"{count} kernel{'s' * (count != 1)} compiled"
        return f"<eager jit {self.func.__name__}{self.signature}: {state}>"


def _is_array(value: Any) -> bool:
    """Something with memory, or a stand-in for it; NumPy scalars are numbers."""
    if isinstance(value, np.generic):
        return False
    names = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
    return isinstance(value, Tensor) or (not isinstance(value, type) and any(hasattr(value, name) for name in names))


def _shaped(parameter: Any, given: Any) -> Any:
    """An array of the same shape and dtype whose elements nobody reads; what is no array is left as it is."""
    if isinstance(given, Tensor):
        dtype = host_dtype(str(given.dtype))
        if dtype is None or not all(isinstance(extent, int) for extent in given.shape):
            return given
        return np.empty(given.shape, dtype)  # no memory is touched
    found = outline(given)
    if found is not None:
        return found
    try:
        array = host_array(given)
    except NoHostArray:
        return given
    if parameter.strides is not None or array.flags.c_contiguous:
        return array
    return np.empty(array.shape, array.dtype)


def _outline_or_host(given: Any) -> Any:
    return given if isinstance(given, DeviceArray) else host_array(given)


def _arrays(given: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """Rank and dtype of the arrays among the arguments."""
    found = {name: (getattr(v, "shape", None), getattr(v, "dtype", None)) for name, v in given.items()}
    return {
        name: (len(shape), str(dtype).removeprefix("torch."))
        for name, (shape, dtype) in found.items()
        if isinstance(shape, tuple) and dtype is not None
    }


def _frozen(value: Any) -> Any:
    """What equal arguments have in common; UNKEYED where they cannot be compared."""
    if isinstance(value, (list, tuple, dict)):
        parts = list(value.items()) if isinstance(value, dict) else list(value)
        frozen = [_frozen(part) for part in parts]
        return UNKEYED if any(part is UNKEYED for part in frozen) else (type(value), tuple(frozen))
    try:
        hash(value)
    except BaseException as error:
        pass_on_interrupt(error)
        return UNKEYED
    changes = type(value).__hash__ is object.__hash__ and not isinstance(
        value, type
    )  # equal to itself, whatever it holds
    return (type(value), repr(value) if isinstance(value, float) else comparable(value) if changes else value)
