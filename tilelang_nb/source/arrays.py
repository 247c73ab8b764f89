"""What people write who know arrays of NumPy and PyTorch, and how a kernel says it: methods, attributes, functions.

A kernel computes with elements and with tile operations; a buffer is a place in memory and has no methods.
"""

from __future__ import annotations

from collections.abc import Container

INDICES = "ijklmnop"
_FILL, _COPY = "write `T.fill({array}, value)`", "write `T.copy(source, {array})`"
_CLEAR = "write `T.clear({array})`"
_TILE = "allocate a tile and write `T.copy({array}, tile)`"
_LOOP = "loop over its elements: `for i in range({array}.shape[0])`"
_CAST = "cast each element: `T.cast({element}, dtype)`"
_RESHAPE = "write `T.reshape({array}, shape)`"
_SWAP = "give the indices in the other order where it is read: `{swapped}`"
_GEMM = "write `T.gemm` on tiles"
_SHAPE = "its extents are in `{array}.shape`"
_ELEMENT = "read an element: `{element}`"
_ALONE = "compute with its elements: `{element}`"


def _named(remedy: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), remedy)


def _reduced(operation: str, then: str = "") -> str:
    return f"reduce a tile of it: `T.{operation}(tile, result, dim=0)`{then}"


# What is said of an array.  {array}: its name.  {element}: an element of it.  {swapped}: one with the indices turned.
OF_ARRAYS: dict[str, str] = {
    **_named(_FILL, "fill fill_ full_like ones_like"),
    **_named(_CLEAR, "zero_ zeros_like"),
    **_named(_COPY, "copy_ copyto put"),
    **_named(_TILE, "copy clone contiguous detach ascontiguousarray empty_like"),
    **_named(_reduced("reduce_sum"), "sum nansum add.reduce"),
    **_named(_reduced("reduce_sum", ", then divide by the count"), "mean average var std"),
    **_named(_reduced("reduce_max"), "max amax nanmax maximum.reduce"),
    **_named(_reduced("reduce_min"), "min amin nanmin minimum.reduce"),
    **_named("write `T.cumsum(tile, dim=0)` on a tile of it", "cumsum add.accumulate"),
    **_named(_LOOP, "prod any all argmax argmin argsort sort topk median nonzero count_nonzero unique searchsorted"),
    **_named("choose each element: `T.if_then_else(condition, x, y)`", "where select masked_fill"),
    **_named("limit each element: `T.clamp({element}, low, high)`", "clip clamp clamp_"),
    **_named(_CAST, "astype to type float half double int long short bool bfloat16"),
    **_named(_GEMM, "dot matmul mm bmm inner vdot einsum tensordot linear"),
    **_named(_SWAP, "T mT H t transpose permute swapaxes movedim moveaxis"),
    **_named(_RESHAPE, "reshape flatten ravel squeeze unsqueeze resize expand broadcast_to"),
    "view": "write `T.view({array}, shape)`",
    **_named(_SHAPE, "size numel nelement nbytes itemsize stride data_ptr"),
    "dim": "write `len({array}.shape)`",
    **_named(_ELEMENT, "item tolist numpy cpu cuda data array asarray flat take"),
    **_named(_ALONE, "add subtract multiply divide true_divide floor_divide remainder mod power negative positive"),
    **_named(_ALONE, "mul sub div add_ sub_ mul_ div_ square equal not_equal less less_equal greater greater_equal"),
}
# Methods that are one call of the language with the same meaning.
CALLS = {
    "fill": "T.fill({array}, {arguments})",
    "fill_": "T.fill({array}, {arguments})",
    "zero_": "T.clear({array})",
    "copy_": "T.copy({arguments}, {array})",
}
# NumPy's and PyTorch's names of functions that the language calls otherwise; most have the same name in both.
SPELT_OTHERWISE = {
    "maximum": "max",
    "minimum": "min",
    "absolute": "abs",
    "fabs": "abs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "rint": "nearbyint",
    "clip": "clamp",
    "power": "pow",
    "fmax": "max",
    "fmin": "min",
}
OF_TWO = frozenset(("max", "min", "pow", "atan2", "fmod"))
# Methods that convert a scalar, with the dtype that they give; None where an argument names it.
CONVERSIONS: dict[str, str | None] = {
    "to": None,
    "astype": None,
    "type": None,
    "cast": None,
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
}


def element_of(array: str, rank: int) -> str:
    """An element of an array as its text: `A[i, j]`."""
    return f"{array}[{', '.join(INDICES[at % len(INDICES)] for at in range(rank)) or '()'}]"


def for_array(name: str, array: str, rank: int, operations: Container[str]) -> str:
    """How a kernel says what `name` (a method, attribute or function of arrays) means for a buffer; "" where nothing is
    known.
    """
    turned = ", ".join(reversed([INDICES[at % len(INDICES)] for at in range(max(rank, 2))]))
    known = OF_ARRAYS.get(name)
    if known is not None:
        return known.format(array=array, element=element_of(array, rank), swapped=f"{array}[{turned}]")
    ours = SPELT_OTHERWISE.get(name, name).removesuffix("_")
    more = ", other" if ours in OF_TWO else ""
    return f"compute each element: `T.{ours}({element_of(array, rank)}{more})`" if ours in operations else ""


def call_for_array(name: str, array: str) -> str:
    """The call that a method of an array is, with `{arguments}` for those of the method; "" for none."""
    return CALLS.get(name, "").replace("{array}", array)


def for_scalar(name: str, operations: Container[str]) -> str:
    """The expression, with `{x}` for the scalar, that a method or attribute `name` of a scalar means; "" where nothing
    is known.
    """
    if name in CONVERSIONS:
        dtype = CONVERSIONS[name]
        return f'T.cast({{x}}, "{dtype}")' if dtype else "T.cast({x}, dtype)"
    if name in ("item", "copy", "clone", "tolist", "numpy", "cpu", "detach"):
        return "{x}"
    if name in ("clip", "clamp"):
        return "T.clamp({x}, low, high)"
    if name == "where":
        return "T.if_then_else({x}, value, other)"
    ours = SPELT_OTHERWISE.get(name, name).removesuffix("_")
    return f"T.{ours}({{x}})" if ours in operations else ""
