"""Device functions by their CUDA names: `T.call_extern` of those that every executor knows, `T.__ffs`, `T.__ldg`."""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from .atomics import ORDERS, atomic
from .buffer_data import Pointer
from .calling import bad_argument, checked_call, nearest
from .dtypes import cast_to, computable
from .integers import integers
from .operands import described, integer, is_element, pointed, scalar, unavailable
from .promotion import as_type, bits, strong, weak
from .values import Buffer, Value, builder, derived
from .warp import device_call

# Calls of the device that `T.call_extern` may name, with their number of arguments.
DEVICE_CALLS = {
    "__activemask": (0, 0),
    "__all_sync": (2, 2),
    "__any_sync": (2, 2),
    "__ballot_sync": (2, 2),
    "__clz": (1, 1),
    "__ffs": (1, 1),
    "__popc": (1, 1),
    "__shfl_down_sync": (3, 4),
    "__shfl_sync": (3, 4),
    "__shfl_up_sync": (3, 4),
    "__shfl_xor_sync": (3, 4),
    "__syncthreads_and": (1, 1),
    "__syncthreads_count": (1, 1),
    "__syncthreads_or": (1, 1),
    "__expf": (1, 1),
    "__exp10f": (1, 1),
    "__logf": (1, 1),
    "__log2f": (1, 1),
    "__log10f": (1, 1),
    "__sinf": (1, 1),
    "__cosf": (1, 1),
    "__tanf": (1, 1),
    "__fdividef": (2, 2),
    "__frcp_rn": (1, 1),
    "__fsqrt_rn": (1, 1),
    "__frsqrt_rn": (1, 1),
    "__fadd_rn": (2, 2),
    "__fsub_rn": (2, 2),
    "__fmul_rn": (2, 2),
    "__fmaf_rn": (3, 3),
    "__fdiv_rn": (2, 2),
}
# Atomic operations by the names of CUDA and of TileLang's templates, on the place of an element: what is done, and
# whether the call gives the old content.
ATOMIC_CALLS = {
    "atomicAdd": ("add", True),
    "atomicMax": ("max", True),
    "atomicMin": ("min", True),
    "atomicOr": ("or", True),
    "AtomicAdd": ("add", False),
    "AtomicMax": ("max", False),
    "AtomicMin": ("min", False),
    "AtomicAddRet": ("add", True),
    "AtomicMaxRet": ("max", True),
    "AtomicMinRet": ("min", True),
}
# Fences of a thread, which are statements: for its block, the device, and the system.
FENCES = ("__threadfence_block", "__threadfence", "__threadfence_system")


def _named(name: str) -> Any:
    return lambda function: checked_call(function, name)


@checked_call
def call_extern(*args: Any, dtype: Any = None, span: Any = None) -> Any:
    """Calls a device function that every executor knows: `T.call_extern("int32", "__popc", mask)`.

    args: the dtype of the result, where it is not given as `dtype=`; then the name of the function, a CUDA intrinsic
    on scalars, such as `__popc`, `__ffs`, `__shfl_sync`, `__expf`,
    or a fence: `T.call_extern("void", "__threadfence")` orders what the thread did before it and what it does after
    it for threads of other blocks that come to a fence themselves.
    An atomic function takes a place first: `T.call_extern("int32", "atomicAdd", T.address_of(C[i]), 1)`.
    Errors: TL302 (any other function), TL004 (number and kind of arguments), TL205 (dtype).
    Source: TVM's `call_extern`.
    """
    call = 'write `T.call_extern("int32", "__popc", x)`'
    if len(args) < (2 if dtype is None else 1):
        bad_argument("`T.call_extern` needs a dtype and the name of a function", call)
    if dtype is None:
        dtype, *args = args  # type: ignore[assignment]
    func_name, *args = args  # type: ignore[assignment]
    if not isinstance(func_name, str):
        bad_argument(f"`T.call_extern` takes a name, {described(func_name)} given", call)
    if func_name in FENCES:
        if args:
            bad_argument(f"`{func_name}` takes no arguments, {len(args)} given", "leave them out")
        builder().operation("thread_fence", func_name)
        return None
    if func_name in ATOMIC_CALLS:
        return _atomic_call(str(dtype), func_name, tuple(args))
    if func_name not in DEVICE_CALLS:
        near = nearest(func_name, [*DEVICE_CALLS, *ATOMIC_CALLS, *FENCES])
        remedy = f"did you mean `{near}`?" if near else "write it as a macro: `@T.macro`"
        if func_name.lower().startswith("atomic"):
            remedy = "use `T.atomic_add`, `T.atomic_max`, `T.atomic_min` or `T.atomic_or`"
        unavailable(f"`T.call_extern` of `{func_name}`, which has no meaning here outside CUDA text", remedy)
    fewest, most = DEVICE_CALLS[func_name]
    if not fewest <= len(args) <= most:
        bad_argument(f"`{func_name}` takes {fewest} argument(s), {len(args)} given", f"give {fewest}")
    values = [scalar(value, "T.call_extern", "an argument") for value in args]
    exprs = [v.use() if isinstance(v, Value) else as_type(v, strong(weak(v), v)) for v in values]
    if func_name.endswith("_sync") and exprs:
        exprs[0] = as_type(values[0] if isinstance(values[0], Value) else values[0] & 0xFFFFFFFF, "uint32")
    return device_call(func_name, str(computable(dtype)), *exprs)


def _atomic_call(dtype: str, name: str, args: tuple[Any, ...]) -> Any:
    """An atomic operation by the name of its function; the third argument of TileLang's is the number of an order."""
    kind, gives_old = ATOMIC_CALLS[name]
    most = 2 if name.startswith("a") else 3
    if not 2 <= len(args) <= most:
        bad_argument(f"`{name}` takes 2 arguments, {len(args)} given", "give the place of an element and a value")
    target, value, *order = args
    if not isinstance(target, Pointer) and not is_element(target):
        bad_argument(f"`{name}` takes a place, {described(target)} given", "write `T.address_of(C[i])`")
    said = ORDERS[integer(order[0], name, "the order", 0, len(ORDERS) - 1)] if order else None
    old = atomic(name, kind, target, value, said, gives_old)
    if not gives_old or dtype in ("handle", "void"):
        return None
    return cast_to(old, dtype)


@_named("__ffs")
def find_first_set(value: Any) -> Any:
    """The position of the lowest set bit, counted from 1; 0 where none is set.  int32.

    value: a 32-bit integer.  Errors: TL205 (float), TL004 (no number).  Source: CUDA's `__ffs`.
    """

    (found,) = integers("T.__ffs", value)
    if not isinstance(found, Value):
        low = int(found) & 0xFFFFFFFF
        return (low & -low).bit_length()
    if bits(found.dtype) > 32:
        unavailable(
            "`T.__ffs` of a 64-bit integer is not lowered by this version",
            "look at both halves: `x & 0xFFFFFFFF`, `x >> 32`",
        )
    return derived(tir.call_extern("int32", "__ffs", as_type(found, "int32")), "int32", found)


@_named("__ldg")
def read_only_load(load_or_buf: Any, index: Any = None) -> Any:
    """The element itself: `T.__ldg(A[i])`, `T.__ldg(A, i)`; the read-only cache is the device compiler's choice.

    Errors: TL004 (no element).  Source: CUDA's `__ldg`.
    """

    if isinstance(load_or_buf, Buffer) and index is not None:
        return load_or_buf[index]
    load_or_buf = pointed(load_or_buf)
    if not is_element(load_or_buf):
        bad_argument(f"`T.__ldg` takes an element, {described(load_or_buf)} given", "write `T.__ldg(A[i])`")
    return load_or_buf
