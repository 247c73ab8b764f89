"""What went wrong on a device, and in which kernel.

A launch returns before it runs, so the driver reports a fault at a later call, perhaps in another cell.  The kernels
launched since the device was last known to be idle are remembered; a fault names them.  After most faults the context
of the process is lost: every later launch says so.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Note
from ..source.providers import provided
from .driver import DriverError
from .errors import LaunchError

REMEMBERED = 64
RESTART = "restart the notebook's kernel (the process): its CUDA context takes no more work"
ON_SIM = 'run it once with `target="sim"`: the simulated device names the access, the block and the thread'


class Faults:
    """The faults of one device.

    running: (kernel, stream) of launches that may not have finished, oldest first.  lost: why the context takes no
    more work.
    """

    def __init__(self, number: int):
        self.number = number
        self.running: deque[tuple[Any, int]] = deque(maxlen=REMEMBERED)
        self.lost: str | None = None

    def idle(self, stream: int) -> None:
        """The work of a stream is done, without a fault."""
        rest = [entry for entry in self.running if entry[1] != stream]
        self.running.clear()
        self.running.extend(rest)

    def refuse_if_lost(self, kernel: Any) -> None:
        """LaunchError TL302 where the context was lost before."""
        if self.lost is not None:
            raise self._again(kernel)

    def error(self, error: DriverError, kernel: Any) -> LaunchError:
        """What the driver reported while `kernel` was launched or waited for."""
        if error.result == "CUDA_ERROR_OUT_OF_MEMORY":
            return _refused(
                kernel,
                f"the device has not enough memory for `{kernel.name}` ({error.what})",
                "delete arrays that are no longer used, or work on smaller ones",
            )
        if error.result == "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES":
            return _refused(
                kernel,
                f"the device has not enough registers for a block of `{kernel.name}`",
                "give `T.Kernel` fewer `threads`; `resources` of the kernel tells its registers",
            )
        if error.result in ("CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"):
            return _refused(
                kernel,
                f"device {self.number} cannot run code for {kernel.target.arch}",
                "leave out `arch`: it is then the one of the device",
            )
        if not error.is_lost:
            return _refused(kernel, f"the driver refused `{kernel.name}`: {error.words} ({error.what})", ON_SIM)
        return self._lost(error, kernel)

    def _again(self, kernel: Any) -> LaunchError:
        return _refused(kernel, f"`{kernel.name}` cannot run: {self.lost}", RESTART)

    def _lost(self, error: DriverError, kernel: Any) -> LaunchError:
        suspects = list(dict.fromkeys(suspect for suspect, _ in self.running))
        if error.ran and kernel not in suspects:
            suspects.append(kernel)
        self.running.clear()
        if self.lost is not None:
            return self._again(kernel)
        found = suspects[-1] if len(suspects) == 1 else kernel
        notes: tuple[Note, ...] = ()
        remedy = f"{ON_SIM}. Then {RESTART}"
        if not suspects:
            who, remedy = f"work that was there before `{kernel.name}`, of no kernel of this package", RESTART
        elif len(suspects) == 1:
            who = f"kernel {place(found)}"
        else:
            who = f"one of {', '.join(map(place, reversed(suspects)))}"
            notes = (Note("these were launched since the device was last waited for"),)
        self.lost = f"the CUDA context was lost after {error.words} in {who}"
        problem = f"{error.words} on device {self.number} in {who}"
        message = say.TargetUnavailable(problem=problem, remedy=remedy)
        return LaunchError(message.at(found.span, notes), found.text)


def _refused(kernel: Any, problem: str, remedy: str) -> LaunchError:
    return LaunchError(say.TargetUnavailable(problem=problem, remedy=remedy).at(kernel.span), kernel.text)


def place(kernel: Any) -> str:
    """`add` of In[3] line 2."""
    name = kernel.text.name
    try:
        name = provided("file_name")(name)
    except LookupError:
        pass
    line = f" line {kernel.span.line}" if kernel.span is not None else ""
    return f"`{kernel.name}` of {name}{line}"
