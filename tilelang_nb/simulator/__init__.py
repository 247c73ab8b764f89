"""The simulated device: runs thread programs on NumPy, finds faults that a GPU does not tell, and counts.

`Program(func).run(arguments)` gives a `Report`.  `translation/` turns a thread program into NumPy source in which
every value is an array over the blocks and threads in flight; `machine/` is what this source runs on: memory,
barriers, shadow memories.
"""

from .program import Program
from .report import Counters, Report, Traffic
from .translation.values import Unsupported

__all__ = ["Counters", "Program", "Report", "Traffic", "Unsupported"]
