"""Operands of tile operations: buffers, regions and elements as boxes, extents that are compared, constants that must
fit.

A tile operand is a buffer (all of it), a region `A[i:j, k]`, or an element `A[i, j]`, whose meaning depends on the
operation:
an origin whose extent comes from the other side (`T.copy`), or the element itself (`T.atomic_add`).
"""

from __future__ import annotations

from typing import Any, NoReturn

from tvm import tirx as tir
from tvm.sym import Analyzer

from ..source import catalogue as say
from ..source.arrays import element_of
from ..source.diagnostic import Refusal
from ..source.wording import number_text, of_type, tidy, with_article
from .buffer_data import Pointer
from .calling import bad_argument
from .promotion import constant, integer_range, is_float, is_integer, weak
from .values import Buffer, Region, Value, builder, number, simplified

GLOBAL, SHARED, FRAGMENT, LOCAL, VARIABLE = "global", "shared.dyn", "local.fragment", "local", "local.var"
BARRIER = "shared.barrier"
IN_A_LAUNCH = "put it inside a launch: `with T.Kernel(blocks, threads=128) as bx:`"
_LARGEST = 2**31 - 1
_NAMES = {GLOBAL: "global memory", SHARED: "shared memory", FRAGMENT: "a fragment", LOCAL: "a local array"}
_NAMES |= {VARIABLE: "a variable", BARRIER: "a barrier"}


def shape_mismatch(problem: str, remedy: str, keyword: str = "") -> NoReturn:
    """TL204.  keyword: an argument with which the shapes fit."""
    raise Refusal(say.ShapeMismatch(problem=problem, remedy=remedy, keyword=keyword))


def dtype_mismatch(problem: str, remedy: str) -> NoReturn:
    """TL205."""
    raise Refusal(say.DtypeMismatch(problem=problem, remedy=remedy))


def unavailable(problem: str, remedy: str) -> NoReturn:
    """TL302."""
    raise Refusal(say.TargetUnavailable(problem=problem, remedy=remedy))


def no_launch(what: str) -> NoReturn:
    """TL208 for what needs the threads of a launch."""
    raise Refusal(say.OutsideLaunch(problem=f"{what} stands outside a launch", remedy=IN_A_LAUNCH))


def described(value: Any) -> str:
    """What a message calls an operand."""
    if isinstance(value, Buffer):
        return f"`{value.name}`"
    if isinstance(value, Region):
        everything = same_extents(value.extent, value.buffer.shape)
        return f"`{value.buffer.name}`" if everything else f"a region of `{value.buffer.name}`"
    if isinstance(value, Pointer):
        return repr(value)
    if isinstance(value, Value):
        return f"an element of `{value.origin[0].name}`" if value.origin else with_article(f"{value.dtype} value")
    if type(value) is int:
        written = number_text(value)
        return written if " " in written else f"`{written}`"
    return f"`{value!r}`" if isinstance(value, (int, float, str, type(None))) else of_type(value)


def shown(shape: Any) -> str:
    """A shape as a message writes it."""
    parts = [tidy(str(Analyzer().simplify(n.use()) if isinstance(n, Value) else n)) for n in shape]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def boxed(buffer: Buffer, begin: Any, extent: Any) -> Region:
    """The region that starts at `begin` and reaches `extent` in every dimension."""
    region = Region(buffer, tuple(begin))
    region.extent = tuple(extent)
    region.axes = tuple(range(len(region.extent)))
    return region


def whole(buffer: Buffer) -> Region:
    """All of a buffer."""
    return boxed(buffer, (0,) * len(buffer.shape), buffer.shape)


def element(value: Value) -> tuple[Buffer, tuple[Any, ...]]:
    """The place of an element that is meant as a place: its load is not part of the program."""
    value.reads = False  # otherwise the builder would keep the old content before the operation changes memory
    return value.origin


def pointed(value: Any) -> Any:
    """The element that a pointer names, `T.address_of(A[i])`; other operands as they are."""
    return value.element if isinstance(value, Pointer) else value


def is_element(value: Any) -> bool:
    """An element `A[i]` as it stands, which names a place too."""
    return isinstance(value, Value) and value.origin is not None


def box(value: Any, called: str, role: str) -> Region:
    """An operand as a region; an element is a region of extent 1.  TL004 for anything else."""
    if isinstance(value, Region):
        return value
    if isinstance(value, Buffer):
        return whole(value)
    if is_element(value):
        buffer, index = element(value)
        return boxed(buffer, index, (1,) * len(index))
    bad_argument(
        f"`{called}` takes a buffer or a region as {role}, {described(value)} given", f"give a buffer as {role}"
    )


def place(value: Any, called: str, role: str) -> Region:
    """An operand that names one element: `A[i]`, its place, a variable, or a buffer that has only one."""
    value = pointed(value)
    region = box(value, called, role)
    if not all(isinstance(extent, int) and extent == 1 for extent in region.extent):
        bad_argument(
            f"`{called}` takes one element as {role}, {described(value)} of shape {shown(region.extent)} given",
            f"index it: `{region.buffer.name}[{', '.join('ijklmnop'[at % 8] for at in range(len(region.extent)))}]`",
        )
    return region


def sized(value: Any) -> str:
    """What a message calls an operand, with its shape."""
    extents = value.extent if isinstance(value, Region) else value.shape
    return f"{described(value)}, shape {shown(extents)}"


def shifted(begin: Any, offset: Any) -> Any:
    """`begin + offset` as a TIR index, without a needless `0 +`."""
    return offset if isinstance(begin, tir.IntImm) and int(begin.value) == 0 else tir.Add(begin, offset)


def squeezed(extents: Any) -> tuple[Any, ...]:
    """The extents that are not 1."""
    return tuple(extent for extent in extents if not (isinstance(extent, int) and extent == 1))


def same_extent(left: Any, right: Any) -> bool:
    """Provably the same extent."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    difference = simplified(left - right)
    return isinstance(difference, int) and difference == 0


def same_extents(left: Any, right: Any) -> bool:
    """As many extents on both sides, each provably the same."""
    return len(left) == len(right) and all(same_extent(a, b) for a, b in zip(left, right))


def require_memory(value: Any, allowed: tuple[str, ...], called: str, role: str, remedy: str) -> None:
    """TL004 where an operand lies in a memory that the operation does not take."""
    if value.memory not in allowed:
        problem = (
            f"`{called}` takes {role} from {_alternatives(allowed)}, {described(value)} is in {_NAMES[value.memory]}"
        )
        bad_argument(problem, remedy)


def _alternatives(scopes: tuple[str, ...]) -> str:
    names = [_NAMES[scope] for scope in scopes]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" or {names[-1]}"


def integer(value: Any, called: str, name: str, least: int | None = None, most: int | None = None) -> int:
    """A compile-time integer; TL004 otherwise."""
    found = simplified(value)
    if isinstance(found, Value):
        bad_argument(f"`{name}` of `{called}` is known only when the kernel runs", f"give a constant as `{name}`")
    found = number(found)
    if isinstance(found, bool) or not isinstance(found, int):
        bad_argument(
            f"`{name}` of `{called}` is an integer, {described(value)} given", f"write `{name}=1`, for example"
        )
    if (least is not None and found < least) or not -_LARGEST <= found <= (_LARGEST if most is None else most):
        top = _LARGEST if most is None else most
        bounds = f"{least} or more" if most is None and found <= top else f"{least or 0}..{top}"
        bad_argument(f"`{name}` of `{called}` is {bounds}, {number_text(found)} given", f"give {bounds}")
    return found


def flag(value: Any, called: str, name: str) -> bool:
    """A compile-time condition; TL004 otherwise."""
    found = simplified(value)
    if isinstance(found, Value):
        bad_argument(f"`{name}` of `{called}` is known only when the kernel runs", "give True or False")
    if number(found) is None:
        bad_argument(f"`{name}` of `{called}` is True or False, {described(value)} given", "give True or False")
    return bool(found)


def choice(value: Any, called: str, name: str, choices: tuple[str, ...]) -> str:
    """One of some words; TL004 otherwise."""
    from .calling import nearest

    if not isinstance(value, str) or value not in choices:
        near = nearest(value, choices) if isinstance(value, str) else None
        listed = ", ".join(f'"{word}"' for word in choices)
        remedy = f'did you mean "{near}"?' if near else f"give one of {listed}"
        bad_argument(f"`{name}` of `{called}` is one of {listed}, {described(value)} given", remedy, str(value), near)
    return value


def axis(dim: Any, rank: int, called: str, name: str = "dim") -> int:
    """A dimension counted from the front; negative ones count from the end.  TL004 outside."""
    found = integer(dim, called, name)
    if not -rank <= found < rank:
        problem = f"`{name}={found}` of `{called}` is outside an operand of {rank} dimension{'s' * (rank != 1)}"
        bad_argument(problem, f"use {-rank}..{rank - 1}" if rank else "give a tile of at least one dimension")
    return found % rank


def stored(value: Any, target: str, dtype: str) -> Value:
    """`value` as the elements of a type: TL140 for no number, TL135 for a constant that would change.

    A float device value in an integer type is the warning TL212.
    """
    found = number(value)
    if found is None:
        raise Refusal(say.NotANumber(what=described(value), target=target, dtype=str(dtype)))
    if isinstance(found, Value):
        if is_float(found.dtype) and is_integer(dtype):
            builder().warn(say.ImplicitFloatToInteger(source=found.dtype, buffer=target, dtype=str(dtype)))
        return found if found.dtype == dtype else found.astype(str(dtype))
    if is_integer(dtype):
        low, high = integer_range(dtype)
        if weak(found) == "float" and (found != found or found in (float("inf"), float("-inf")) or found != int(found)):
            remedy = f"write `{int(found)}`, or change the dtype" if abs(found) < 2**63 else "change the dtype"
            raise Refusal(say.LossyConstant(value=str(found), target=target, dtype=str(dtype), remedy=remedy))
        if not low <= found <= high:
            remedy = f"use a value in {low}..{high}, or a wider dtype"
            value = number_text(found)
            raise Refusal(say.LossyConstant(value=value, target=target, dtype=str(dtype), remedy=remedy))
    return Value(constant(found, str(dtype), target), str(dtype))


def content(value: Any) -> Any:
    """The content of a variable that is given as its buffer; anything else as it is."""
    return value[(0,)] if isinstance(value, Buffer) and value.is_variable else value


def scalar(value: Any, called: str, role: str) -> Any:
    """A number or device value; TL004 for anything else.  A buffer of one variable is its content."""
    found = number(content(value))
    if found is None:
        remedy = "give a number, or an element of a buffer"
        if isinstance(value, (Buffer, Region)):
            name, rank = value.spoken()[1:]
            remedy = f"give an element, `{element_of(name, rank)}`, in a loop over the elements"
            reduction = {"T.max": "T.reduce_max", "T.min": "T.reduce_min"}.get(called)
            if reduction is not None:
                remedy = f"write `{reduction}({name}, result, dim=0)`; for an element, `{element_of(name, rank)}`"
        bad_argument(f"`{called}` takes a number as {role}, {described(value)} given", remedy)
    return found


def launch() -> Any:
    """The launch being built; TL208 outside of one."""
    found = builder().launch
    if found is None:
        no_launch("a use of the threads")
    return found
