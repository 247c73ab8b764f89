"""`Profiler`: a kernel compared with a reference on made-up inputs, and timed.  Timing the simulated device is refused
(TL302).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..runtime.kernel import Kernel
from ..runtime.timing import Times, bench_callable, no_timing
from ..source.providers import register
from .supply import TensorSupplyType, make_tensor

# Upstream's words for one number out of many times.
RETURNED: dict[str, Callable[[Times], float]] = {
    "mean": lambda times: times.mean,
    "median": lambda times: times.median,
    "min": lambda times: times.least,
    "max": lambda times: times.most,
}


def do_bench(
    fn: Callable[..., Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "event",
    return_mode: str = "mean",
) -> float | list[float]:
    """Milliseconds of a call's work on the GPU; with `quantiles`, those of the calls.

    warmup, rep: milliseconds to spend, where `_n_warmup` and `_n_repeat` do not say how many calls.  return_mode: mean,
    median, min or max.  fast_flush, backend: accepted; the cache is flushed and events take the time.
    LaunchError TL302: there is no GPU.
    """
    times = _timed(fn, _n_repeat or None, _n_warmup or 3)
    return _chosen(times, quantiles, return_mode)


def _timed(fn: Callable[..., Any], repeat: int | None, warm_up: int) -> Times:
    return bench_callable(fn, repeat=repeat, warm_up=warm_up)


def _chosen(times: Times, quantiles: Sequence[float] | None, mode: str) -> float | list[float]:
    if mode not in RETURNED:
        raise ValueError(f"return_mode {mode!r}: it is one of {', '.join(RETURNED)}")
    if quantiles is not None:
        found = [times.quantile(share) for share in quantiles]
        return found[0] if len(found) == 1 else found
    return RETURNED[mode](times)


class Profiler:
    """Tries a kernel on inputs that it makes from the kernel's parameters.

    supply_type: what the inputs hold.  Inputs are the same for every call (a fixed seed).
    """

    def __init__(self, kernel: Kernel, supply_type: TensorSupplyType = TensorSupplyType.Auto):
        self.kernel, self.supply_type = kernel, supply_type

    @property
    def func(self) -> Kernel:
        """The kernel."""
        return self.kernel

    def inputs(self) -> list[Any]:
        """One argument for each parameter that the caller passes: tensors of torch where torch is loaded, on the GPU
        for a kernel that runs there, else NumPy arrays.
        """
        random = np.random.default_rng(0)
        made: list[Any] = []
        for index, parameter in enumerate(self.kernel.parameters):
            if index in self.kernel.outputs:
                continue
            if parameter.kind == "scalar":
                raise ValueError(f"{parameter.name} is a number that cannot be made up: give input_tensors")
            made.append(self._placed(make_tensor(parameter, self.supply_type, random)))
        return made

    def _placed(self, array: np.ndarray) -> Any:
        torch, on_gpu = sys.modules.get("torch"), self.kernel.target.kind == "cuda"
        if torch is None or not hasattr(torch, array.dtype.name) or (on_gpu and not torch.cuda.is_available()):
            return array
        plain = array.dtype.kind != "V"
        tensor = torch.from_numpy(array if plain else array.view(f"int{8 * array.itemsize}"))
        tensor = tensor.cuda() if on_gpu else tensor
        return tensor if plain else tensor.view(getattr(torch, array.dtype.name))

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
        theirs = [_copy(value) for value in ours]
        expected = _as_list(reference_program(*theirs))
        got = _as_list(self.kernel(*ours))
        if len(got) != len(expected):
            raise AssertionError(f"the kernel returns {len(got)} tensors, the reference {len(expected)}")
        for name, one, other in zip(self._names(len(ours), len(got)), [*ours, *got], [*theirs, *expected]):
            _assert_close(name, _on_host(one), _on_host(other), atol, rtol, max_mismatched_ratio)

    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[list[Any], list[Any]], Any] | None = None,
    ) -> None:
        """`manual_check_prog` gets what the kernel returns and what the reference returns, both as lists, and raises
        where they do not agree.
        """
        ours = list(input_tensors) if input_tensors is not None else self.inputs()
        theirs = [_copy(value) for value in ours]
        expected, got = _as_list(reference_program(*theirs)), _as_list(self.kernel(*ours))
        if manual_check_prog is not None:
            manual_check_prog(got, expected)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Launches on the same inputs must give the same bits: `repeat` of them against the first.

        AssertionError: one does not, as where threads race or add in an order of their own.
        """
        inputs = self.inputs()
        first: list[np.ndarray] | None = None
        for turn in range(repeat + 1):
            ours = [_copy(value) for value in inputs]
            got = _as_list(self.kernel(*ours))
            arrays = [_on_host(value) for value in [*ours, *got]]
            if first is None:
                first = [np.array(array) for array in arrays]
                continue
            for name, one, other in zip(self._names(len(ours), len(got)), arrays, first):
                if one.tobytes() != other.tobytes():
                    raise AssertionError(f"{name}: launch {turn + 1} gives other bits than the first")

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 1,
        n_repeat: int = 1,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **_: Any,
    ) -> float | list[float]:
        """Milliseconds of a launch, or of `func` on the same inputs.  The arguments are upstream's, as for `do_bench`.

        n_warmup, n_repeat: numbers of calls, where more than 1.  LaunchError TL302: the kernel is for the simulated
        device.
        """
        if self.kernel.target.kind != "cuda":
            raise no_timing(f"timing `{self.kernel.name}`", self.kernel.span, self.kernel.text)
        inputs = list(input_tensors) if input_tensors is not None else self.inputs()
        repeat, warm_up = n_repeat if n_repeat > 1 else None, max(n_warmup, 3)
        if func is None or func is self.kernel:
            times = self.kernel.bench(*inputs, repeat=repeat, warm_up=warm_up).times
        else:
            times = _timed(lambda: func(*inputs), repeat, warm_up)
        return _chosen(times, quantiles, return_mode)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)

    def _names(self, passed: int, returned: int) -> list[str]:
        names = [p.name for index, p in enumerate(self.kernel.parameters) if index not in self.kernel.outputs]
        return [*names[:passed], *(f"result {index}" for index in range(returned))]


def _as_list(returned: Any) -> list[Any]:
    return [] if returned is None else list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _copy(value: Any) -> Any:
    """The same elements in memory of their own; numbers as they are."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    clone = getattr(value, "clone", None) or getattr(value, "copy", None)
    return clone() if callable(clone) else value


def _on_host(value: Any) -> np.ndarray:
    """The elements as a NumPy array."""
    if hasattr(value, "detach"):  # of torch
        value = value.detach().cpu()
        known = str(value.dtype).removeprefix("torch.") in np.sctypeDict
        return np.asarray(value.numpy() if known else value.float().numpy())
    for name in ("get", "copy_to_host"):  # of cupy, of numba
        if hasattr(value, name):
            return np.asarray(getattr(value, name)())
    return np.asarray(value)


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
