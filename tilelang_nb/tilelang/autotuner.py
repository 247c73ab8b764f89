"""`autotune`: a factory with configurations to choose from.

Each configuration is compiled and timed on made-up inputs, and the fastest kernel is kept for the next call with equal
arguments.  The simulated device gives no times, so there a call that leaves the choice open is refused (TL302).  A call
that gives the tuned arguments itself, or a list of one configuration, needs no choice and is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..runtime.compilation import trying
from ..runtime.errors import CompileError, LaunchError
from ..runtime.kernel import Kernel
from ..runtime.target import resolve
from ..runtime.timing import no_timing
from .eager import EagerFunction
from .jit_function import JitFunction, jit

Configurations = Sequence[dict[str, Any]] | Callable[..., Sequence[dict[str, Any]]]


_INPUTS: ContextVar[tuple[Any, ...]] = ContextVar("inputs", default=())


@contextmanager
def set_autotune_inputs(*inputs: Any) -> Iterator[None]:
    """`with set_autotune_inputs(a, b):` kernels that are compared within are timed with these arguments.

    inputs: as the kernel takes them, also as one list; without any they are made up.
    """
    given = tuple(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
    token = _INPUTS.set(given)
    try:
        yield
    finally:
        _INPUTS.reset(token)


class TunedFunction:
    """A factory whose arguments named in the configurations are chosen, unless the call gives them."""

    def __init__(self, factory: JitFunction, configs: Configurations):
        functools.update_wrapper(self, factory.func)
        self.factory, self._configs = factory, configs
        self._chosen: dict[Any, Kernel] = {}

    def configurations(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """The configurations for a call with these arguments."""
        return list(self._configs(*args, **kwargs) if callable(self._configs) else self._configs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel for these arguments; of an eager kernel what a launch with them returns.

        LaunchError TL302: several configurations, and no device to time them on.
        """
        if not isinstance(self.factory, EagerFunction):
            return self.compile(*args, **kwargs)
        chosen = self._choice(args, kwargs)
        configuration = chosen.config if isinstance(chosen, Kernel) else chosen
        return self.factory(*args, **{**configuration, **kwargs})

    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel for these arguments; arrays of an eager kernel may be left out, its sizes given by name."""
        chosen = self._choice(args, kwargs)
        return chosen if isinstance(chosen, Kernel) else self.factory.compile(*args, **{**chosen, **kwargs})

    def __getattr__(self, name: str) -> Any:
        """What else is asked for is asked of the factory."""
        if name == "factory":  # while it is being made
            raise AttributeError(name)
        return getattr(self.factory, name)

    def _choice(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | Kernel:
        """The configuration of a call that leaves no choice, else the fastest kernel, with its `config`."""
        configurations = self.configurations(*args, **kwargs)
        given = set(self._named(args, kwargs)) | set(kwargs)
        if not configurations or all(set(configuration) <= given for configuration in configurations):
            return {}
        if len(configurations) == 1:
            return configurations[0]
        what = f"choosing one of {len(configurations)} configurations of `{self.factory.func.__name__}`"
        if resolve(self.factory.target or "auto").kind != "cuda":
            example = ", ".join(f"{name}={value!r}" for name, value in configurations[0].items())
            raise no_timing(what, remedy=f"give the arguments yourself, `{example}`, or measure on a GPU")
        key = _key(args, kwargs)
        kernel = self._chosen.get(key) if key is not None else None
        if kernel is None:
            kernel = self._fastest(args, kwargs, configurations)
            if key is not None:
                self._chosen[key] = kernel
        return kernel

    def _fastest(self, args: tuple[Any, ...], kwargs: dict[str, Any], configurations: list[dict[str, Any]]) -> Kernel:
        """The fastest of the configurations that compile and fit the device; it carries `config` and `latency`."""
        timed: list[tuple[float, int, Kernel]] = []
        failed: list[Exception] = []
        with trying() as choose:
            for number, configuration in enumerate(configurations):
                try:
                    kernel = self.factory.compile(*args, **{**configuration, **kwargs})
                    timed.append((float(kernel.bench(*_INPUTS.get()).milliseconds), number, kernel))
                except (CompileError, LaunchError) as error:
                    failed.append(error)
            if not timed:
                raise failed[0]
            latency, number, kernel = min(timed, key=lambda entry: entry[:2])
            choose(kernel)
        kernel.config, kernel.latency = dict(configurations[number]), latency
        return kernel

    def par_compile(self, *args: Any, **kwargs: Any) -> list[Kernel | None]:
        """The kernels of all configurations for a call with these arguments, to be compared by hand."""
        return self.factory.par_compile(
            [{**self._named(args, kwargs), **c} for c in self.configurations(*args, **kwargs)]
        )

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in kwargs.items() if name in self.factory.signature.parameters}
        return dict(self.factory.signature.bind_partial(*args, **known).arguments)


def _key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls with equal arguments, and arrays of one shape and type, have one choice; None where that cannot be told."""
    named = [*((str(at), value) for at, value in enumerate(args)), *sorted(kwargs.items())]
    key = tuple((name, type(value), _outline(value)) for name, value in named)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _outline(value: Any) -> Any:
    """An array by its shape and type, of which a choice depends."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return value if shape is None or dtype is None else (tuple(shape), str(dtype))


def autotune(func: Any = None, *, configs: Configurations = (), **_: Any) -> Any:
    """Decorator above `@jit`: choose one of `configs` (dicts of arguments, or a function that gives them) at the call.

    Upstream's other arguments say how to measure; here it is as `Kernel.bench` does.
    """

    def decorate(factory: Any) -> TunedFunction:
        if not isinstance(factory, JitFunction):
            factory = jit(factory)
        return TunedFunction(factory, configs)

    return decorate if func is None else decorate(func)
