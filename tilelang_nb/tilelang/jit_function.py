"""`tilelang.jit`, `compile`, `lower`: kernels from Python functions that return them.

`@jit` on a function that returns a `T.prim_func` makes a factory: each set of arguments gives one compiled kernel,
kept for the next call with equal arguments (as upstream, also when a global that the function reads has changed
since).  A function whose own body is the kernel is in `eager`.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..frontend.definitions import definition_of
from ..frontend.eager_syntax import is_eager
from ..frontend.locate import header_span
from ..runtime.errors import CompileError
from ..runtime.kernel import Kernel
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.uncopied import Uncopied
from ..source.wording import of_type
from .pass_config import options_of

OutIdx = int | list[int] | tuple[int, ...] | None


class JitFunction(Uncopied):
    """A factory of kernels: calling it gives the kernel for these arguments, compiled.

    func: the function.  signature: its parameters.  A call raises CompileError, with TL004 where the function returns
    something else than a kernel.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        out_idx: OutIdx = None,
        target: Any = None,
        pass_configs: Mapping[Any, Any] | None = None,
    ):
        functools.update_wrapper(self, func)
        self.func, self.signature = func, inspect.signature(func)
        self.out_idx, self.target, self.pass_configs = out_idx, target, pass_configs
        self._kernels: dict[Any, Kernel] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel for these arguments."""
        return self.compile(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel for these arguments, from the cache where they were used before."""
        key = self.key(args, kwargs)
        kernel = self._kernels.get(key) if key is not None else None
        if kernel is None:
            made = self._make(args, kwargs)
            kernel = compile(made, out_idx=self.out_idx, target=self.target, pass_configs=self.pass_configs)
            if key is not None:
                self._kernels[key] = kernel
        return kernel

    def get_kernel_source(self, *args: Any, kernel_only: bool = True, **kwargs: Any) -> str:
        """The CUDA C of the kernel for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source(kernel_only)

    def par_compile(
        self,
        configs: Iterable[dict[str, Any] | tuple[Any, ...]],
        num_workers: int | None = None,
        ignore_error: bool = False,
    ) -> list[Kernel | None]:
        """One kernel for each configuration, in order; with `ignore_error`, None where one does not compile."""
        return [
            _unless(
                ignore_error,
                lambda config=config: self.compile(**config) if isinstance(config, dict) else self.compile(*config),
            )
            for config in configs
        ]

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """The tile program for these arguments, as a TIR function."""
        return get_tir(self._make(args, kwargs))

    def _make(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Kernel:
        made = self.func(*args, **kwargs)
        if not isinstance(made, Kernel):
            raise _no_kernel(self.func, made)
        return made

    def key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Equal arguments of equal types; None where they cannot be compared, and then nothing is kept."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            return None  # the call of the function says it better
        bound.apply_defaults()
        key = tuple((name, type(value), value) for name, value in bound.arguments.items())
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def __repr__(self) -> str:
        return f"<jit {self.func.__name__}{self.signature}>"


def _no_kernel(func: Callable[..., Any], made: Any) -> CompileError:
    """TL004 for a factory that returns no kernel, at its `def`."""
    given = "nothing" if made is None else of_type(made)
    problem = f"the `@jit` function `{func.__name__}` returns {given}, where a kernel is expected"
    try:
        definition = definition_of(func)
    except Refusal:
        remedy = "return the `T.prim_func` that it defines"
        return CompileError((say.NoKernelReturned(problem=problem, remedy=remedy).at(None),))
    inner = [node.name for node in definition.node.body if isinstance(node, ast.FunctionDef)]
    remedy = f"end it with `return {inner[-1]}`" if inner else "define a `@T.prim_func` in it and return that"
    span = header_span(definition.text, definition.node)
    return CompileError((say.NoKernelReturned(problem=problem, remedy=remedy).at(span),), definition.text)


def jit(
    func: Callable[..., Any] | None = None,
    *,
    out_idx: OutIdx = None,
    target: Any = None,
    target_host: Any = None,
    execution_backend: str | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    debug_root_path: str | None = None,
    compile_flags: list[str] | str | None = None,
) -> Any:
    """Decorator: a function that returns a `T.prim_func` becomes a factory of compiled kernels, and one whose body is
    the kernel an eager kernel, which a call with arrays compiles and launches.

    out_idx: positions of tensors that a call of the kernel returns; not for an eager kernel.  target: "auto", "sim" or
    "cuda".  pass_configs: options of the lowering.  The other arguments are upstream's; they choose between ways of
    launching that do not exist here.
    """

    def decorate(function: Any) -> Any:
        if isinstance(function, Kernel):
            return compile(function, out_idx=out_idx, target=target, pass_configs=pass_configs)
        if is_eager(function):
            return _eager(function, out_idx, target, pass_configs)
        return JitFunction(function, out_idx=out_idx, target=target, pass_configs=pass_configs)

    return decorate if func is None else decorate(func)


def _eager(function: Any, out_idx: OutIdx, target: Any, pass_configs: Mapping[Any, Any] | None) -> Any:
    from .eager import EagerFunction  # it is made of what is here

    if out_idx is not None:
        message = say.BadArgument(
            problem=f"`out_idx` is given to the eager kernel `{function.__name__}`",
            remedy="leave it out: the kernel returns what it makes with `T.empty`",
        )
        raise CompileError((message.at(None),))
    return EagerFunction(function, target=target, pass_configs=pass_configs)


def compile(
    func: Kernel,
    out_idx: OutIdx = None,
    execution_backend: str | None = None,
    target: Any = None,
    target_host: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: list[str] | str | None = None,
) -> Kernel:
    """A `T.prim_func` compiled for a target.  CompileError: it was refused.  LaunchError TL302: no such target here."""
    if not isinstance(func, Kernel):
        raise TypeError(f"compile takes a T.prim_func, not {of_type(func)}")
    options = None if pass_configs is None else options_of(pass_configs)
    return func.compile(target, out_idx=out_idx, options=options)


def par_compile(
    funcs: Iterable[Kernel],
    out_idx: OutIdx = None,
    execution_backend: str | None = None,
    target: Any = None,
    target_host: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: list[str] | str | None = None,
    num_workers: int | None = None,
    ignore_error: bool = False,
) -> list[Kernel | None]:
    """Several kernels compiled, in order; with `ignore_error`, None where one does not compile."""
    return [
        _unless(ignore_error, lambda func=func: compile(func, out_idx, target=target, pass_configs=pass_configs))
        for func in funcs
    ]


def lower(func: Kernel, target: Any = None, **_: Any) -> Kernel:
    """The kernel with its stages: `lower(k).stages`, of which `thread` is the program of one thread."""
    return compile(func, target=target)


def get_tir(func: Kernel) -> Any:
    """The tile program of a kernel, as a TIR function.  CompileError: it was refused."""
    func.compile()
    return func.program.function


def _unless(ignore_error: bool, make: Callable[[], Kernel]) -> Kernel | None:
    try:
        return make()
    except Exception:
        if not ignore_error:
            raise
        return None
