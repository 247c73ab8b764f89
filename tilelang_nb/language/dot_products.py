"""`T.dp4a`: four products of bytes and their sum."""

from __future__ import annotations

from typing import Any

from .atomics import first_of
from .calling import checked_call
from .dtypes import cast_to
from .operands import dtype_mismatch, place
from .values import builder

NEIGHBOURS = 4
SUMS = {"int8": "int32", "uint8": "uint32"}


@checked_call
def dp4a(A: Any, B: Any, C: Any) -> None:
    """`C += A[0] * B[0] + ... + A[3] * B[3]`, in 32 bits: `T.dp4a(A[i, 0], B[j, 0], C[0])`.

    A, B: the first of four neighbours, or a region or buffer of four, int8 or both uint8, in any memory.  C: an
    element, int32 (uint32 for uint8).
    Errors: TL204 (extents), TL205 (dtypes), TL004 (operand).  Source: upstream `T.dp4a`; PTX `dp4a`.
    """
    called = "T.dp4a"
    left, at_left = first_of(A, NEIGHBOURS, called, "A")
    right, at_right = first_of(B, NEIGHBOURS, called, "B")
    total = place(C, called, "C")
    wanted = SUMS.get(str(left.dtype))
    if wanted is None or left.dtype != right.dtype or total.dtype not in (wanted, "int32"):
        dtype_mismatch(
            f"`{called}` of {left.dtype} and {right.dtype} into {total.dtype}", "use int8 tiles and int32 sums"
        )
    into, at = total.buffer, tuple(total.begin)
    value = into[at]
    for lane in range(NEIGHBOURS):
        one = left[(*at_left[:-1], at_left[-1] + lane)]
        other = right[(*at_right[:-1], at_right[-1] + lane)]
        value = value + cast_to(one, str(into.dtype)) * cast_to(other, str(into.dtype))
    builder().store(into, at, value)


__all__ = ["dp4a"]
