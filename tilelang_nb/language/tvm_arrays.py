"""The elements of TVM's arrays as a list.

Python's iteration over such an array makes four calls for each element, which is most of the time of walking a program
that a compile-time loop wrote out.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi

_item = tvm_ffi.get_global_func("ffi.ArrayGetItem")
_size = tvm_ffi.get_global_func("ffi.ArraySize")


def elements(array: Any) -> list[Any]:
    """What `list(array)` gives."""
    return [_item(array, at) for at in range(_size(array))]
