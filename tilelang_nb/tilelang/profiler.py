"""`Profiler`: a kernel compared with a reference on made-up inputs.  Timing the simulated device is refused (TL302)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..runtime.errors import LaunchError
from ..runtime.kernel import Kernel
from ..source import catalogue as say
from ..source.providers import register
from .supply import TensorSupplyType, make_tensor


def no_timing(what: str) -> LaunchError:
    """The refusal of a measurement where there is no device to measure."""
    message = say.TargetUnavailable(
        problem=f"{what}: the simulated device has no clock, its time says nothing about a GPU",
        remedy="compare `k.counters` of two variants, or measure on a GPU",
    )
    return LaunchError(message.at(None))


def do_bench(function: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """Milliseconds of a launch.  LaunchError TL302: there is no GPU in this version."""
    raise no_timing("timing")


class Profiler:
    """Tries a kernel on inputs that it makes from the kernel's parameters.

    supply_type: what the inputs hold.  Inputs are the same for every call (a fixed seed).
    """

    def __init__(self, kernel: Kernel, supply_type: TensorSupplyType = TensorSupplyType.Auto):
        self.kernel, self.supply_type = kernel, supply_type

    def inputs(self) -> list[Any]:
        """One argument for each parameter that the caller passes."""
        random = np.random.default_rng(0)
        made: list[Any] = []
        for index, parameter in enumerate(self.kernel.parameters):
            if index in self.kernel.outputs:
                continue
            if parameter.kind == "scalar":
                raise ValueError(f"{parameter.name} is a number that cannot be made up: give input_tensors")
            made.append(make_tensor(parameter, self.supply_type, random))
        return made

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Launch once on made-up inputs; what the call returns."""
        return (func or self.kernel)(*self.inputs())

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """The kernel and the reference must agree, in what they return and in the arrays that they write.

        AssertionError: more than `max_mismatched_ratio` of the elements of an array differ by more than the tolerances.
        """
        ours = list(input_tensors) if input_tensors is not None else self.inputs()
        theirs = [np.array(value) if isinstance(value, np.ndarray) else value for value in ours]
        expected = _as_list(reference_program(*theirs))
        got = _as_list(self.kernel(*ours))
        if len(got) != len(expected):
            raise AssertionError(f"the kernel returns {len(got)} tensors, the reference {len(expected)}")
        for name, one, other in zip(self._names(len(ours), len(got)), [*ours, *got], [*theirs, *expected]):
            _assert_close(name, np.asarray(one), np.asarray(other), atol, rtol, max_mismatched_ratio)

    def do_bench(self, *args: Any, **kwargs: Any) -> float:
        """Milliseconds of a launch.  LaunchError TL302: the kernel is for the simulated device."""
        raise no_timing(f"timing `{self.kernel.name}`")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)

    def _names(self, passed: int, returned: int) -> list[str]:
        names = [p.name for index, p in enumerate(self.kernel.parameters) if index not in self.kernel.outputs]
        return [*names[:passed], *(f"result {index}" for index in range(returned))]


def _as_list(returned: Any) -> list[Any]:
    return [] if returned is None else list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _assert_close(name: str, got: np.ndarray, want: np.ndarray, atol: float, rtol: float, allowed: float) -> None:
    if got.shape != want.shape:
        raise AssertionError(f"{name}: shape {got.shape}, the reference has {want.shape}")
    close = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)
    wrong = int(close.size - close.sum())
    if wrong > allowed * close.size:
        at = tuple(int(index) for index in np.argwhere(~close)[0])
        said = f"{wrong} of {close.size} elements differ, first at {at}: {got[at]} instead of {want[at]}"
        raise AssertionError(f"{name}: {said}")


register("profiler", lambda kernel, tensor_supply_type=TensorSupplyType.Auto: Profiler(kernel, tensor_supply_type))
