"""What went wrong on a device, and in which kernel.

A launch returns before it runs, so the driver reports a fault at a later call, perhaps in another cell.  The kernels
launched since the device was last known to be idle are remembered by stream and in order.  Where a stream goes over to
another kernel, it also writes a mark behind the first one's launches; marks that were written when a fault comes up
tell which kernels had finished, and the fault is laid to the ones after them.  After most faults the context of the
process is lost: every later launch says so.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Note
from ..source.providers import provided
from .driver import DriverError
from .errors import LaunchError

REMEMBERED = 64
STREAMS = 1024  # that have a word for their marks
MARKS_AT_ONCE = 8  # since the device was idle; then one for each PAUSE: a mark costs both sides some 2 microseconds
PAUSE = 1e-3
RESTART = "restart the notebook's kernel (the process): its CUDA context takes no more work"
ON_SIM = 'run it once with `target="sim"`: the simulated device names the access, the block and the thread'


@dataclass
class Segment:
    """Launches of one kernel that follow each other in a stream.  mark: written behind them; 0 for none."""

    kernel: Any
    mark: int = 0


@dataclass
class Track:
    """The launches in one stream since the device was idle, oldest first.  word: of its marks."""

    word: int
    segments: deque[Segment] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


@dataclass(frozen=True)
class Taken:
    """Launches by stream.  threads: of several threads, so that an order between them is not known."""

    tracks: dict[int, Track]
    threads: bool


class Faults:
    """The faults of one device.

    kernel, stream: of the latest launch, None and 0 for none.  Who launches calls `launching` before and `launched`
    after, unless both are the same again.  lost: why the context takes no more work.  marks: makes the words that
    streams write (`Driver.marks`).  others: gives the faults of the other devices.
    """

    def __init__(
        self,
        number: int,
        marks: Callable[[int], Any] = lambda count: None,
        others: Callable[[], Iterable[Faults]] = tuple,
    ):
        self.number, self._others = number, others
        self.kernel: Any = None
        self.stream = 0
        self.lost: str | None = None
        self._tracks: dict[int, Track] = {}
        self._make_marks = marks
        self._marks: Any = None
        self._put, self._last, self._budget = 0, 0.0, MARKS_AT_ONCE
        self._words = itertools.count()
        self._thread = 0
        self._threads = False

    @property
    def is_running(self) -> bool:
        """May work of ours not have finished?"""
        return bool(self._tracks)

    @property
    def last(self) -> Any:
        """The latest kernel that may not have finished; None where all is done."""
        rest = [segment.kernel for track in list(self._tracks.values()) for segment in list(track.segments)]
        return self.kernel or (rest[-1] if rest else None)

    def take(self) -> Taken:
        """The launches that may not have finished, to be waited for: they are no longer among those here, unless
        `give_back` says that the wait failed.
        """
        taken = Taken(self._tracks, self._threads)
        self.all_idle()
        return taken

    def give_back(self, taken: Taken) -> None:
        """What was taken did not finish."""
        self._tracks = {**self._tracks, **taken.tracks}
        self._threads = self._threads or taken.threads

    def launching(self, kernel: Any, stream: int) -> None:
        """A kernel is about to be launched into a stream that does not record a graph."""
        track = self._tracks.get(stream)
        if track is not None and track.segments and track.segments[-1].kernel is not kernel:
            track.segments[-1].mark = self._mark(track.word, stream)

    def launched(self, kernel: Any, stream: int) -> None:
        """The launch was made."""
        thread = threading.get_ident()
        if self._thread != thread:
            self._threads = self._threads or self._thread != 0
            self._thread = thread
        track = self._tracks.get(stream)
        if track is None:
            track = self._tracks[stream] = Track(next(self._words) % STREAMS)
        if not track.segments or track.segments[-1].kernel is not kernel:
            track.segments.append(Segment(kernel))
        self.kernel, self.stream = kernel, stream

    def _mark(self, word: int, stream: int) -> int:
        """Let the stream write a mark; its number, 0 for none."""
        if not self._budget:
            now = time.monotonic()
            if now - self._last < PAUSE:
                return 0
            self._last = now
        else:
            self._budget -= 1
        if self._marks is None:
            self._marks = self._make_marks(STREAMS) or _NoMarks()
        self._put += 1
        return self._put if self._marks.put(word, self._put, stream) else 0

    def idle(self, stream: int) -> None:
        """The work of a stream is done, without a fault."""
        track = self._tracks.get(stream)
        if track is not None:
            track.segments.clear()
        if all(not other.segments for other in list(self._tracks.values())):
            self.all_idle()
        elif self.stream == stream:
            self.kernel = None

    def all_idle(self) -> None:
        """The work of all streams is done, without a fault."""
        self._tracks = {}
        self.kernel, self._thread, self._threads, self._budget = None, 0, False, MARKS_AT_ONCE

    def _suspects(self) -> list[Any]:
        """The kernels that may have failed, the latest last: of each stream those behind its last mark, up to the first
        mark that is missing.
        """
        found: dict[Any, None] = {}
        for track in list(self._tracks.values()):
            segments = list(track.segments)
            reached = self._marks.reached(track.word) if self._marks is not None else 0
            if not self._threads:
                done = [at for at, segment in enumerate(segments) if 0 < segment.mark <= reached]
                segments = segments[done[-1] + 1 :] if done else segments
                missing = next((at for at, segment in enumerate(segments) if segment.mark), len(segments) - 1)
                segments = segments[: missing + 1]
            found |= dict.fromkeys(segment.kernel for segment in segments)
        return list(found)

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
        suspects = self._suspects()
        if error.ran and kernel not in suspects:
            suspects.append(kernel)
        self.all_idle()
        if self.lost is None:  # a fault may cost all devices of the process their contexts
            self.lost = next((other.lost for other in self._others() if other.lost is not None), None)
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
            notes = (Note("these were under way together, or too soon after each other to be told apart"),)
        self.lost = f"the CUDA context was lost after {error.words} in {who}"
        problem = f"{error.words} on device {self.number} in {who}"
        message = say.TargetUnavailable(problem=problem, remedy=remedy)
        return LaunchError(message.at(found.span, notes), found.text)


class _NoMarks:
    """Where the driver has none."""

    def put(self, at: int, number: int, stream: int) -> bool:
        return False

    def reached(self, at: int) -> int:
        return 0


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
