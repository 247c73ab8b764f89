"""Lanes that a guard keeps from an access beyond the edge of a buffer: counted, for they are silent otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

Mask = Any


class Edges:
    """Part of a strand."""

    def kept_out(self, condition: np.ndarray, times: int, mask: Mask, site: int) -> None:
        """Count the lanes for which the condition does not hold; each makes `times` accesses."""
        if condition.all():
            return
        outside = ~condition if mask is None else mask & ~condition
        if outside.ndim > max(condition.ndim, 2):  # the mask has vector axes itself
            times = max(times // int(np.prod(outside.shape[:-2])), 1)
        self.all_kept_out(times, outside, site)

    def all_kept_out(self, times: int, mask: Mask, site: int) -> None:
        """Count all lanes that run."""
        number = self.lane_count(mask) * times
        if number:
            self.counters.kept_out[site] += number
