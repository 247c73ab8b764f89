"""Which elements of arrays lie in the same bytes."""

from __future__ import annotations

import numpy as np

# Elements up to which offsets are enumerated; beyond it an array whose strides prove nothing counts as overlapping.
ENUMERATED = 1 << 24
# Work limit of NumPy's exact overlap solver.
EXACT_WORK = 100_000


def overlaps_itself(array: np.ndarray) -> bool:
    """Do two elements of the array share a byte?"""
    if array.size <= 1 or array.flags.c_contiguous or array.flags.f_contiguous:
        return False
    axes = sorted((abs(stride), extent) for stride, extent in zip(array.strides, array.shape) if extent > 1)
    reach = array.itemsize
    for stride, extent in axes:
        if stride < reach:
            return _enumerated_overlap(axes, array)
        reach += stride * (extent - 1)
    return False


def _enumerated_overlap(axes: list[tuple[int, int]], array: np.ndarray) -> bool:
    """Interleaved strides: decide by the offsets themselves."""
    if axes[0][0] == 0 or array.size > ENUMERATED:
        return True
    offsets = np.zeros(1, np.int64)
    for stride, extent in axes:
        offsets = (offsets[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
    offsets.sort()
    return bool((np.diff(offsets) < array.itemsize).any())


def same_elements(a: np.ndarray, b: np.ndarray) -> bool:
    """Are they views of the same elements in the same order?"""
    if a is b:
        return True
    steps = [[stride for stride, extent in zip(x.strides, x.shape) if extent > 1] for x in (a, b)]
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.dtype == b.dtype and steps[0] == steps[1]


def share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """Do they share a byte?  True also where that is too hard to decide."""
    try:
        return np.shares_memory(a, b, max_work=EXACT_WORK)  # type: ignore[arg-type]  # any limit is accepted
    except np.exceptions.TooHardError:
        return True
