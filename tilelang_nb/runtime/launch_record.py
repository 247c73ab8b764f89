"""The launches that a cell makes, with their arguments, so that they can be made again and timed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LaunchRecord:
    """Kernels and the arguments of their calls, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def add(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A kernel is called.  The stream of the call is left out: a timing has its own order."""
        self.calls.append((kernel, args, {name: value for name, value in kwargs.items() if name != "stream"}))

    def timed(self) -> Iterator[Any]:
        """The benchmark of each kernel, with the arguments of its last call.  Errors as `Kernel.bench`."""
        last = {id(kernel): (kernel, args, kwargs) for kernel, args, kwargs in self.calls}
        for kernel, args, kwargs in last.values():
            yield kernel.bench(*args, **kwargs)


# The record that calls are added to; None while none is taken.
record: LaunchRecord | None = None


@contextmanager
def recording() -> Iterator[LaunchRecord]:
    """Record the calls of kernels in the block."""
    global record
    before, record = record, LaunchRecord()
    try:
        yield record
    finally:
        record = before
