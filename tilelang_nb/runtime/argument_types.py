"""The types of the elements that a call passes, and what to pass where they do not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .device_arrays import DeviceArray
from .host_arrays import PLACEHOLDER, host_dtype
from .misfits import mismatch
from .symbols import Symbols


def dtype_text(dtype: str) -> str:
    """A type as the host writes it: `"float32"`, `ml_dtypes.bfloat16`."""
    return f"ml_dtypes.{dtype}" if hasattr(ml_dtypes, dtype) else f'"{dtype}"'


def array_of_list(parameter: Any, written: bool) -> str:
    """What to pass in the place of a list.  written: the kernel stores into it, and a copy would lose the result."""
    if written and all(isinstance(extent, int) for extent in parameter.shape):
        shape = Symbols().written(parameter.shape)
        return (
            f"the kernel writes it: make an array before the call, `np.zeros({shape}, {dtype_text(parameter.dtype)})`"
        )
    if written:
        return "the kernel writes it: make an array before the call, with `np.zeros`"
    return f"pass `np.array({PLACEHOLDER}, {dtype_text(parameter.dtype)})`: a kernel reads and writes memory"


def check_type(parameter: Any, array: Any, shape: tuple[int, ...], written: bool) -> None:
    """TL301 for elements of another type.

    shape: that the array should have.  written: the kernel stores into it, so a converted copy would lose the result.
    """
    dtype = host_dtype(parameter.dtype)
    if dtype is None:
        remedy = "such a parameter cannot be passed from the host"
        raise mismatch(parameter.name, f"dtype {parameter.dtype}", f"dtype {array.dtype.name}", remedy)
    if array.dtype.newbyteorder("=") != dtype:
        small = hasattr(ml_dtypes, dtype.name)
        name = parameter.name
        if isinstance(array, DeviceArray) and array.library == "torch":
            converted = f"{PLACEHOLDER}.to(torch.{dtype.name})"
            remedy = f"pass `{converted}`, or change the annotation"
            if written:
                remedy = f"the kernel writes it: make it of that dtype before the call, `{name} = {converted}`"
            raise mismatch(name, f"dtype {parameter.dtype}", f"dtype {array.dtype.name}", remedy)
        view = f"{PLACEHOLDER}.view(ml_dtypes.{dtype.name})"
        cast = f"{PLACEHOLDER}.astype(ml_dtypes.{dtype.name})" if small else f'{PLACEHOLDER}.astype("{dtype.name}")'
        remedy = f"pass `{cast}`, or change the annotation"
        if small and array.dtype.kind in "iu" and array.itemsize == dtype.itemsize:
            remedy = f"pass `{cast}`, or `{view}` where the integers are its bits"
        if written:
            made = f"np.zeros({tuple(shape)}, {dtype_text(dtype.name)})"
            remedy = f"the kernel writes it, and a converted copy would be lost: make the array itself so, `{made}`"
        given, instead = _not_of_numbers(array.dtype)
        raise mismatch(name, f"dtype {parameter.dtype}", given or f"dtype {array.dtype.name}", instead or remedy)


def _not_of_numbers(dtype: np.dtype) -> tuple[str, str]:
    """What an array is whose elements are no numbers, and what to pass instead; empty for numbers."""
    if dtype.names is not None:
        fields = ", ".join(dtype.names[:4]) + (", ..." if len(dtype.names) > 4 else "")
        return f"a structured array with the fields {fields}", f"pass one field, `{PLACEHOLDER}[{dtype.names[0]!r}]`"
    kinds = {"O": "Python objects", "U": "text", "S": "bytes", "M": "dates", "m": "time spans", "c": "complex numbers"}
    raw = dtype.kind == "V" and not hasattr(ml_dtypes, dtype.name)
    what = f"raw bytes, {dtype.itemsize} an element" if raw else kinds.get(dtype.kind)
    if what is None:
        return "", ""
    given = f"an array of {what}" + ("" if raw else f" (dtype {dtype.name})")
    if dtype.kind == "c":
        return given, f"pass `{PLACEHOLDER}.real` or `{PLACEHOLDER}.imag`, or a view of their numbers"
    return given, "pass an array of numbers"
