"""Integer arithmetic that is undefined on a device for some operands: division by 0, shifts beyond the type.

The results are fixed here, 0 and what no bits are left of; the threads that get one are reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


class UndefinedArithmetic:
    """Part of a strand."""

    def divided(self, function: Callable[..., Array], a: Array, b: Array, mask: Array, site: int) -> Array:
        """A quotient or remainder; TL406 for active lanes whose divisor is 0."""
        if not isinstance(b, int) or not b:
            self._report(b == 0, 0, mask, site)
        return function(a, b)

    def shifted(self, function: Callable[..., Array], a: Array, b: Array, dtype: Any, mask: Array, site: int) -> Array:
        """A shift; TL406 for active lanes that shift by less than 0 or by the width of the type or more."""
        bits = np.dtype(dtype).itemsize * 8
        if not isinstance(b, int) or not 0 <= b < bits:
            self._report((b < 0) | (b >= bits), b, mask, site)
        return function(a, b, dtype)

    def _report(self, wrong: Array, operand: Array, mask: Array, site: int) -> None:
        """operand: what the first of the lanes has on the right."""
        if mask is not None:
            wrong = wrong & mask
        if not np.any(wrong):
            return
        lanes = np.broadcast_to(wrong, self.shape_of(wrong))
        code, position = self.first_lane(lanes)
        shown = int(np.broadcast_to(operand, lanes.shape)[position])
        self.findings.undefined(site, self.coordinates(code), shown, int(np.count_nonzero(lanes)))
