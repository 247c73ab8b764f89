"""Element types: `T.float16` and its like are names, annotations and casts at once.

`Dtype` is a `str`, so `T.float16 == "float16"` and a dtype may be given as `T.float16`, `"float16"`, `"half"`,
`np.float16`,
an `ml_dtypes` type or a torch dtype.  `dtype_of` reads any of them; `storable` asks in addition that memory can hold
it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..source import catalogue as say
from ..source.calls import no_such_dtype
from ..source.diagnostic import Refusal
from ..source.wording import number_text, of_type
from .calling import bad_argument
from .promotion import KNOWN
from .promotion import bits as bits_of
from .values import Buffer, Region, Value, number

ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "longlong": "int64",
    "ushort": "uint16",
    "uint": "uint32",
    "ulong": "uint64",
    "bool_": "bool",
    "boolean": "bool",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "tf32": "tfloat32",
    "custom[tfloat32]": "tfloat32",
    "float8_e4m3": "float8_e4m3fn",  # on NVIDIA devices e4m3 is the finite one
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
    "float4_e2m1fn_x2": "float4_e2m1fnx2",
}
_PYTHON = {bool: "bool", int: "int32", float: "float32"}

# Types that upstream names and that no array or tile of this implementation holds, with the reason.
_PACKED = "is packed below a byte and no array or tile holds it"
_ROCM = "exists on AMD devices only"
WITHOUT_STORAGE = {
    "int4": _PACKED,
    "uint4": _PACKED,
    "float4_e2m1fn": _PACKED,
    "float4_e2m1_unpacked": "is a shared-memory form of sm_100 tensor cores",
    "float6_e2m3fn": _PACKED,
    "float6_e3m2fn": _PACKED,
    "float8_e4m3fnuz": _ROCM,
    "float8_e5m2fnuz": _ROCM,
    "float8_e4m3b11fnuz": "exists on no NVIDIA device",
    "float8_e3m4": "exists on no NVIDIA device",
    "handle": "is a pointer, and no array or tile holds pointers",
}
SCALARS = KNOWN | set(WITHOUT_STORAGE)
_VECTOR = re.compile(r"(.+?)x(\d+)$")


class Dtype(str):
    """An element type: a name to compare and print, an annotation, and a cast when called.

    `T.dtype(value)` reads a type from a name, a Python, NumPy, `ml_dtypes` or torch type.  `T.float16(x)` is
    `T.cast(x, "float16")`; on a Python number it gives a constant of that type.
    Errors: TL205 for a type that does not exist, TL302 for vector construction.
    Source: `tvm.DataType` as upstream patches it.
    """

    def __new__(cls, value: Any = None, *more: Any) -> Dtype:
        if more:
            bad_argument(f"`T.dtype` takes one type, {1 + len(more)} given", "write `T.dtype(name)`")
        return value if isinstance(value, Dtype) else str.__new__(cls, _name_of(value))

    def __repr__(self) -> str:
        return f"T.{self}"

    def __str__(self) -> str:
        return str.__str__(self)

    @property
    def dtype_name(self) -> str:
        return str(self)

    @property
    def lanes(self) -> int:
        """Elements of a vector type; 1 for a scalar."""
        found = _VECTOR.match(self)
        return int(found.group(2)) if found and found.group(1) in SCALARS else 1

    @property
    def bits(self) -> int:
        """Bits of one element."""
        element = _VECTOR.match(self).group(1) if self.lanes > 1 else str(self)  # type: ignore[union-attr]
        return 8 if element in ("bool", "float4_e2m1_unpacked") else 64 if element == "handle" else bits_of(element)

    @property
    def itemsize(self) -> int:
        """Bytes of one value in memory."""
        width = 32 if self == "tfloat32" else self.bits
        return (width * self.lanes + 7) // 8

    bytes = itemsize

    def as_numpy(self) -> np.dtype:
        """The NumPy (or `ml_dtypes`) type of the same elements."""
        import ml_dtypes

        name = "float32" if self == "tfloat32" else str(self)
        return np.dtype(getattr(ml_dtypes, name, None) or name)

    def as_torch(self) -> Any:
        """The torch type of the same elements; TL205 where torch has none, ImportError where there is no torch."""
        import torch

        kind = getattr(torch, "float32" if self == "tfloat32" else str(self), None)
        if not isinstance(kind, torch.dtype):
            raise Refusal(say.DtypeMismatch(problem=f"torch has no dtype `{self}`", remedy="name one that it has"))
        return kind

    def __call__(self, *values: Any) -> Any:
        if self == "handle":
            from .parameter_pointers import ptr  # which is made of dtypes itself

            return ptr(*values)
        if len(values) != 1:
            if self.lanes > 1:
                unavailable_vector(self)
            bad_argument(f"`T.{self}` as a cast takes one value, {len(values)} given", f"write `T.{self}(x)`")
        return cast_to(values[0], self)


def _name_of(value: Any) -> str:
    if hasattr(value, "dtype_name") and isinstance(value, type):  # `T.ptr`, as the type of elements
        value = value.dtype_name
    if isinstance(value, str):
        name = value.removeprefix("torch.").removeprefix("T.")
    elif value in _PYTHON if isinstance(value, type) else False:
        name = _PYTHON[value]
    elif isinstance(value, (np.dtype, type)):
        try:
            kind = np.dtype(value)
        except TypeError:
            kind = np.dtype(object)
        name = getattr(value, "__name__", str(value)) if kind.hasobject else kind.name
    elif isinstance(value, int):
        name = number_text(value)
    else:
        name = str(getattr(value, "dtype_name", value)).removeprefix("torch.")
    name = ALIASES.get(name, name)
    if name in SCALARS:
        return name
    vector = _VECTOR.match(name)
    if vector and (ALIASES.get(vector.group(1), vector.group(1))) in SCALARS and int(vector.group(2)) > 1:
        return f"{ALIASES.get(vector.group(1), vector.group(1))}x{vector.group(2)}"
    if isinstance(value, str):
        raise Refusal(no_such_dtype(value, name, [*SCALARS, *ALIASES]))
    shown = f"`{value}`" if isinstance(value, (float, type(None))) else of_type(value)
    shown = number_text(value) if isinstance(value, int) else shown
    raise Refusal(
        say.NoSuchDtype(
            problem=f"there is no dtype `{name}`" if isinstance(value, type) else f"{shown} is no dtype",
            remedy='name one, such as `"float16"` or `T.float16`',
        )
    )


def dtype_of(value: Any) -> Dtype:
    """A dtype given in any of its forms; TL205 where there is none."""
    return Dtype(value)


def unavailable_vector(dtype: str) -> None:
    """TL302 for a vector type."""
    raise Refusal(
        say.TargetUnavailable(
            problem=f"the vector type `{dtype}` is not lowered by this version",
            remedy="use the scalar type: `T.vectorized` and `T.Parallel` pick the vector width themselves",
        )
    )


def storable(value: Any, *, tile: bool) -> Dtype:
    """A dtype that memory can hold: TL205 for one without storage, TL302 for a vector type.

    tile: tfloat32 is a way to multiply float32 tiles; an array of the host holds float32.
    """
    dtype = Dtype(value)
    if dtype.lanes > 1:
        unavailable_vector(dtype)
    reason = WITHOUT_STORAGE.get(dtype)
    if reason is None and dtype == "tfloat32" and not tile:
        reason = "is a format of tensor-core operands; arrays hold float32"
    if reason is not None:
        if dtype == "tfloat32":
            remedy = 'use `"float32"`'
        elif dtype in ("int4", "uint4", "float4_e2m1fn"):
            remedy = 'use `"uint8"` with half the columns, two values in each byte, and take them apart with shifts'
        elif dtype == "handle":
            remedy = "pass one array that holds all of them, and index it: `T.Tensor((L, N), dtype)`"
        else:
            remedy = 'use `"float8_e4m3fn"`'
        raise Refusal(say.DtypeMismatch(problem=f"`{dtype}` {reason}", remedy=remedy))
    return dtype


def computable(value: Any) -> Dtype:
    """A dtype that a scalar of a kernel can have."""
    return storable(value, tile=True)


def cast_to(value: Any, dtype: Any) -> Value:
    """`value` as a device value of a type; a Python number becomes a constant of it.

    Errors: TL205 for a type without storage, TL135 for an integer constant that does not fit, TL004 for what is no
    number.
    """
    from .promotion import as_type

    target = computable(dtype)
    if isinstance(value, Value):
        return value.astype(str(target))
    if isinstance(value, (Buffer, Region)):
        bad_argument(
            f"a buffer cannot be cast to {target}", "cast an element of it, or copy it into a tile of that dtype"
        )
    constant_value = number(value)
    if constant_value is None:
        bad_argument(f"{of_type(value)} cannot be cast to {target}", "cast a number")
    return Value(as_type(constant_value, str(target)), str(target))


def _exported() -> dict[str, Dtype]:
    names = {name: Dtype(name) for name in SCALARS}
    names |= {alias: Dtype(alias) for alias in ALIASES if alias.isidentifier()}
    for element in (
        *[f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)],
        "float16",
        "bfloat16",
        "float32",
        "float64",
    ):
        names |= {f"{element}x{lanes}": Dtype(f"{element}x{lanes}") for lanes in (2, 4, 8, 16, 32, 64)}
    for element in ("float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"):
        names |= {f"{element}x{lanes}": Dtype(f"{element}x{lanes}") for lanes in (2, 4, 8, 16, 32, 64)}
    return names


DTYPES: dict[str, Dtype] = _exported()
dtype = Dtype
