"""Device values, buffers and regions: what an evaluated expression may yield besides ordinary Python objects.

A `Value` wraps a TIR expression.  TVM's own expressions are not handed to user code: their `==` compares identities
when used as a condition, they hash, and their operators promote and simplify by other rules.  Every Python protocol
that needs the value while building is refused here with its code; the front end finds the place.
"""

from __future__ import annotations

import operator
import sys
import weakref
from types import EllipsisType, FrameType
from typing import Any

import tvm_ffi
from tvm import tirx as tir
from tvm.ir import Var
from tvm.sym import Analyzer

from ..source import catalogue as say
from ..source.calls import used_as_number, wrong_rank
from ..source.diagnostic import Message, Refusal
from ..source.wording import number_text, of_type, with_article
from .buffer_data import BufferData
from .building import BUILDERS, Builder, builder, building, is_building
from .expression_size import manageable
from .operator_nodes import COMPARE, SMALL_POWER, node
from .promotion import (
    KNOWN,
    as_type,
    cast,
    check_right,
    constant,
    in_ir,
    integer_of,
    is_float,
    is_integer,
    join_operands,
)
from .protocols import IndexedOnly, KnownAtLaunch, asked_by_message, checked_dtype, refuse, text_refused


class Value(KnownAtLaunch):
    """A scalar known when the kernel runs.

    scope: the scope that must be open where it is used; None lives everywhere.  reads: it contains loads, so it must be
    bound before the next effect.  origin: (buffer, index) of an element that was loaded as it stands.
    """

    __slots__ = ("__weakref__", "depth", "dtype", "expr", "origin", "reads", "scope", "size")

    def __init__(self, expr: Any, dtype: str, scope: Any = None, reads: bool = False, origin: Any = None):
        self.expr, self.dtype, self.scope, self.reads, self.origin = expr, dtype, scope, reads, origin
        self.depth, self.size = 0, 1
        if reads:
            builder().pending.append(weakref.ref(self))

    def use(self) -> Any:
        """The TIR expression, if the value still exists."""
        if self.scope is not None and not self.scope.open:
            raise Refusal(say.GeneratorOutOfScope(problem="a value of a loop or branch that has ended is used"))
        return self.expr

    def __getitem__(self, index: Any) -> Value:
        if self.is_variable and index in (0, (0,)):
            return self
        raise Refusal(say.RuntimeIndexIntoPythonObject(what="a device value"))

    @property
    def is_variable(self) -> bool:
        """It is the content of a `T.alloc_var` variable."""
        return self.origin is not None and self.origin[0].is_variable

    def __repr__(self) -> str:
        return _text(self, sys._getframe(1))

    def __format__(self, form: str) -> str:
        return _text(self, sys._getframe(1))

    def __neg__(self) -> Value:
        # -1.0 * x also turns 0.0 into -0.0, which 0 - x does not
        return arithmetic("*", self, -1.0) if is_float(self.dtype) else arithmetic("-", 0, self)

    def __pos__(self) -> Value:
        return self.astype("int32") if self.dtype == "bool" else self

    def __invert__(self) -> Value:
        if self.dtype == "bool":
            return derived(tir.Not(self.use()), "bool", self)
        if is_float(self.dtype):
            raise Refusal(say.DtypeMismatch(problem=f"`~` of {self.dtype}", remedy="bit operations need integers"))
        return derived(tir.bitwise_not(self.use()), self.dtype, self)

    def __abs__(self) -> Value:
        if self.dtype == "bool" or self.dtype.startswith("uint"):
            return +self
        if self.dtype.startswith("float8"):  # TVM has no absolute value of these
            return abs(self.astype("float32")).astype(self.dtype)
        return derived(tir.abs(self.use()), self.dtype, self, times=3)  # of integers: `x if x >= 0 else -x`

    def __round__(self, digits: int | None = None) -> Value:
        """Half to even; an integer where no digits are given, as in Python."""
        if digits:
            raise Refusal(
                say.BadArgument(problem="round to digits of a device value", remedy="scale, round and scale back")
            )
        if not is_float(self.dtype):
            return +self
        rounded = derived(tir.nearbyint(self.use()), self.dtype, self)
        return rounded if digits == 0 else rounded.astype(integer_of(self.dtype))

    def __divmod__(self, other: Any) -> Any:
        quotient = arithmetic("//", self, other)
        return quotient if quotient is NotImplemented else (quotient, arithmetic("%", self, other))

    def __rdivmod__(self, other: Any) -> Any:
        quotient = arithmetic("//", other, self)
        return quotient if quotient is NotImplemented else (quotient, arithmetic("%", other, self))

    def astype(self, dtype: str) -> Value:
        """This value converted to another type; TL205 where there is no such type."""
        dtype = dtype if dtype in KNOWN else checked_dtype(dtype)
        return derived(cast(self.use(), self.dtype, dtype), dtype, self)


DEEPEST, BIGGEST = 100, 500  # beyond these an expression is bound to a variable: compilers recurse over its tree


def derived(expr: Any, dtype: str, *sources: Any, times: int = 1) -> Value:
    """A value computed from others, each so many times part of it: it lives as long as the innermost of them."""
    scope, reads, depth, size = None, False, 0, 1
    for source in sources:
        if isinstance(source, Value):
            reads, depth = reads or source.reads, max(depth, source.depth)
            size += times * source.size
            if source.scope is not None and (scope is None or source.scope.depth > scope.depth):
                scope = source.scope
    value = Value(expr, dtype, scope, reads)
    if (depth >= DEEPEST or size > BIGGEST) and BUILDERS.get():
        BUILDERS.get()[-1].keep(value)
    else:
        value.depth, value.size = depth + 1, size
    return value


def number(value: Any) -> Any:
    """A Python number, a `Value`, or the number in a 0-d NumPy scalar or array; None for anything else."""
    if isinstance(value, (Value, bool, int, float)):
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        item = value.item()
        return item if isinstance(item, (bool, int, float)) else float(item) if hasattr(item, "__float__") else None
    return None


def arithmetic(op: str, left: Any, right: Any) -> Any:
    """`left op right` with at least one device operand; NotImplemented for operands that are no numbers."""
    left, right = number(left), number(right)
    if left is None or right is None:
        return NotImplemented
    x, y, dtype = join_operands(left, right)
    if op in COMPARE:
        return derived(COMPARE[op](x, y), "bool", left, right)
    if dtype == "bool" and op not in "&|^":
        x, y, dtype = cast(x, "bool", "int32"), cast(y, "bool", "int32"), "int32"
    check_right(op, right, dtype)
    return derived(node(op, x, y, dtype, right), dtype, left, right, times=SMALL_POWER if op == "**" else 1)


_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def _method(op: str, reflected: bool = False) -> Any:
    def method(self: Any, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:  # only `pow` has a third operand
            problem = "`pow` of a device value with a modulus"
            raise Refusal(say.BadArgument(problem=problem, remedy="write the power and then `%`"))
        return arithmetic(op, other, self) if reflected else arithmetic(op, self, other)

    return method


for _op, _name in {**_OPERATORS, **_COMPARISONS}.items():
    setattr(Value, f"__{_name}__", _method(_op))
    if _op in _OPERATORS:
        setattr(Value, f"__r{_name}__", _method(_op, reflected=True))


def simplified(value: Any) -> Any:
    """An extent or index as a Python int where it is a constant in disguise: `(i + 1) * 32 - i * 32` is 32, and so is
    `end - begin` of two names that hold these.
    """
    if isinstance(value, Value) and is_integer(value.dtype):
        expr = value.use()
        for _ in range(_NAMES_OF_NAMES):
            if not manageable(expr):
                break
            found = Analyzer().simplify(expr)
            if isinstance(found, tir.IntImm):
                return int(found.value)
            expr, before = _written_out(found), found
            if expr is before:
                break
    return value


_NAMES_OF_NAMES = 8  # how far names are followed


def _written_out(expr: Any) -> Any:
    """An expression with what the names in it hold, one step deep; itself where they hold nothing that is known."""
    meanings = getattr(builder(), "meanings", None) if is_building() else None
    if not meanings:
        return expr
    known = []
    tvm_ffi.structural_walk(expr, (Var, lambda var: known.append(var) if var in meanings else None))
    return tvm_ffi.structural_map(expr, (Var, lambda var: meanings.get(var, var))) if known else expr


class Buffer(IndexedOnly):
    """A handle of device memory; identity is Python's, contents are the device's.

    shape: ints and integer Values.  memory: the scope string ("global", "shared.dyn", "local.fragment", "local",
    "local.var", "shared.barrier").  var: the TIR buffer variable.  home: the scope it was allocated in, None for
    parameters.
    """

    is_variable = False  # a `T.alloc_var` scalar: its name means its content

    def __init__(self, name: str, shape: Any, dtype: str, memory: str, var: Any, strides: Any = None, home: Any = None):
        self.name, self.shape, self.dtype, self.memory, self.var = name, tuple(shape), dtype, memory, var
        self.strides = tuple(strides) if strides is not None else None
        self.home = home

    __iter__ = refuse(
        lambda self: say.NotIterable(
            what=f"the buffer `{self.name}`", remedy=f"write `for i in range({self.name}.shape[0])`"
        )
    )
    __len__ = refuse(lambda self: say.LenOfBuffer(what=f"the buffer `{self.name}`", remedy=f"`{self.name}.shape[0]`"))
    __bool__ = refuse(lambda self: say.BufferAsCondition(what=f"the buffer `{self.name}`", name=self.name))
    __matmul__ = __rmatmul__ = refuse(lambda self: say.MatrixMultiplyOperator())

    def __repr__(self) -> str:
        return _text(self, sys._getframe(1))

    def spoken(self) -> tuple[str, str, int]:
        return f"the buffer `{self.name}`", self.name, len(self.shape)

    def scope(self) -> str:
        """The memory scope, as TVM's buffers tell it."""
        return self.memory

    @property
    def ndim(self) -> int:
        return len(self.shape)

    data = property(BufferData)  # of which `T.Tensor(shape, dtype, A.data)` makes a view

    def check_alive(self) -> None:
        """TL115 where the scope that it was allocated in has ended."""
        if self.home is not None and not self.home.open:
            problem = f"`{self.name}` was allocated in a loop, branch or kernel that has ended"
            raise Refusal(say.GeneratorOutOfScope(problem=problem))

    def __getitem__(self, index: Any) -> Any:
        places = self.indices(index)
        if any(isinstance(i, slice) for i in places):
            return Region(self, places)
        depends = [i.scope for i in places if isinstance(i, Value) and i.scope is not None]
        scope = max(depends, key=lambda s: s.depth, default=None)
        load = tir.BufferLoad(self.var, [self.index_expr(i) for i in places])
        return Value(load, self.dtype, scope, True, (self, places))

    def lacks_indices(self, given: int = 0) -> Message:
        """TL201, with so many indices given."""
        return wrong_rank(self.name, self.shape, given)

    def __setitem__(self, index: Any, value: Any) -> None:
        builder().store(self, self.indices(index), value)

    def index_expr(self, index: Any) -> Any:
        """One index as a TIR expression."""
        if isinstance(index, int):
            if not -(2**63) <= index < 2**63:
                problem = f"index {number_text(index)} is outside `{self.name}`"
                raise Refusal(say.IndexOutOfBounds(problem=problem, remedy="keep the index inside the buffer"))
            return tir.IntImm("int32" if abs(index) < 2**31 else "int64", index)
        if not is_integer(index.dtype):
            if index.dtype == "bool":
                return cast(index.use(), "bool", "int32")
            problem = f"`{self.name}` is indexed by {with_article(index.dtype)} value"
            raise Refusal(say.DtypeMismatch(problem=problem, remedy="cast the index to int32"))
        return index.use()

    def indices(self, index: Any) -> tuple[Any, ...]:
        """Normalised: constants counted from the front and checked, slices as slice(begin, end)."""
        self.check_alive()
        index = index if isinstance(index, tuple) else (index,)
        if EllipsisType in map(type, index):
            at = next(at for at, i in enumerate(index) if i is Ellipsis)
            index = (*index[:at], *[slice(None)] * (len(self.shape) - len(index) + 1), *index[at + 1 :])
        if len(index) != len(self.shape):
            raise Refusal(self.lacks_indices(len(index)))
        return tuple([self._normal(i, extent) for i, extent in zip(index, self.shape)])

    def _normal(self, index: Any, extent: Any) -> Any:
        if isinstance(index, int) and not isinstance(index, bool):
            position = index
        elif isinstance(index, Value):
            return index
        elif isinstance(index, slice):
            return self._normal_slice(index, extent)
        else:
            if isinstance(index, (Buffer, Region)):
                remedy = "index with an element of it"
                raise Refusal(say.BadArgument(problem=f"`{self.name}` is indexed by a buffer", remedy=remedy))
            try:
                position = operator.index(index)
            except TypeError:
                problem = f"`{self.name}` is indexed by {of_type(index)}"
                raise Refusal(say.BadArgument(problem=problem, remedy="use an integer")) from None
        if isinstance(extent, int):
            if not -extent <= position < extent:
                problem = f"index {number_text(position)} is outside `{self.name}` of shape {self.shape}"
                raise Refusal(
                    say.IndexOutOfBounds(
                        problem=problem, remedy=f"use 0..{extent - 1}" if extent else "the buffer is empty"
                    )
                )
            return position + extent if position < 0 else position
        return extent + position if position < 0 else position

    def _normal_slice(self, index: slice, extent: Any) -> slice:
        if index.step is not None and not (isinstance(index.step, int) and index.step == 1):
            written = isinstance(index.step, (int, float, Value))
            step = number_text(index.step) if written else of_type(index.step)
            raise Refusal(say.SliceStep(buffer=self.name, step=step))
        begin = self._bound(index.start, 0, extent)
        end = self._bound(index.stop, extent, extent)
        outside = isinstance(begin, int) and begin < 0 or isinstance(end, int) and end < 0
        if isinstance(extent, int):
            outside = outside or isinstance(begin, int) and begin >= extent or isinstance(end, int) and end > extent
        size = simplified(end - begin)
        if outside or isinstance(size, int) and size <= 0:
            written = f"{number_text(begin)}:{number_text(end)}"
            problem = f"{written} is outside `{self.name}` of shape {self.shape}" if outside else f"{written} is empty"
            raise Refusal(say.IndexOutOfBounds(problem=problem, remedy="keep the region inside the buffer"))
        return slice(begin, end)

    def _bound(self, bound: Any, default: Any, extent: Any) -> Any:
        if bound is None:
            return default
        if isinstance(bound, Value):
            self.index_expr(bound)  # refuses a float
            return bound
        try:
            bound = operator.index(bound)
        except TypeError:
            problem = f"`{self.name}` is sliced by {of_type(bound)}"
            raise Refusal(say.BadArgument(problem=problem, remedy="use integers")) from None
        return extent + bound if bound < 0 else bound


class Region(IndexedOnly):
    """`buffer[i:j, k]`: begin and extent per dimension of the buffer; `axes` are the dimensions that were sliced."""

    def __init__(self, buffer: Buffer, index: tuple[Any, ...]):
        self.buffer = buffer
        self.begin = tuple(i.start if isinstance(i, slice) else i for i in index)
        self.extent = tuple(simplified(i.stop - i.start) if isinstance(i, slice) else 1 for i in index)
        self.axes = tuple(at for at, i in enumerate(index) if isinstance(i, slice))

    __iter__ = refuse(
        lambda self: say.NotIterable(what=f"a region of `{self.buffer.name}`", remedy="write `for i in range(n)`")
    )
    __len__ = refuse(lambda self: say.LenOfBuffer(what="a buffer region", remedy="`region.shape[dim]`"))
    __bool__ = refuse(lambda self: say.BufferAsCondition(what=f"a region of `{self.buffer.name}`"))
    __matmul__ = __rmatmul__ = refuse(lambda self: say.MatrixMultiplyOperator())

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents of the sliced dimensions, as NumPy's view has them."""
        return tuple(self.extent[at] for at in self.axes)

    @property
    def dtype(self) -> str:
        return self.buffer.dtype

    @property
    def memory(self) -> str:
        return self.buffer.memory

    def lacks_indices(self) -> Message:
        """TL201: a region is no number."""
        what, name, rank = self.spoken()
        return used_as_number(what, name, self.shape, rank)

    def spoken(self) -> tuple[str, str, int]:
        return f"a region of `{self.buffer.name}`", self.buffer.name, len(self.buffer.shape)

    def inner(self, index: Any) -> tuple[Any, ...]:
        """An index into this region as an index into its buffer."""
        view = Buffer(f"the region of {self.buffer.name}", self.shape, self.dtype, self.memory, None)
        places = list(self.begin)
        for at, i in zip(self.axes, view.indices(index)):
            shift = self.begin[at]
            places[at] = slice(shift + i.start, shift + i.stop) if isinstance(i, slice) else shift + i
        return tuple(places)

    def __getitem__(self, index: Any) -> Any:
        return self.buffer[self.inner(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.buffer[self.inner(index)] = value

    def __repr__(self) -> str:
        return _text(self, sys._getframe(1))


def is_device(value: Any) -> bool:
    """A device value, buffer or region."""
    return isinstance(value, (Value, Buffer, Region))


def _text(value: Any, asking: FrameType) -> str:
    """TL128 for code of a kernel that makes a text of a value; outside of one its text is its expression."""
    if is_building() and not asked_by_message(asking):
        raise Refusal(text_refused())
    return written(value)


def written(value: Any) -> str:
    """A device value, buffer or region as messages and the record of expansion write it: by its expression."""
    if isinstance(value, Value):
        return str(value.expr)
    if isinstance(value, Buffer):
        return value.name
    parts = [f"{begin}:{begin + extent}" for begin, extent in zip(value.begin, value.extent)]
    return f"{value.buffer.name}[{', '.join(parts)}]"


def truth(value: Any) -> Any:
    """A Python bool, or a boolean Value; buffers refuse."""
    if isinstance(value, Value):
        if value.dtype == "bool":
            return value
        return derived(tir.NE(value.use(), constant(0, in_ir(value.dtype))), "bool", value)
    return bool(value)


__all__ = [
    "COMPARE",
    "Buffer",
    "Builder",
    "Region",
    "Value",
    "arithmetic",
    "as_type",
    "builder",
    "building",
    "constant",
    "derived",
    "is_building",
    "is_device",
    "number",
    "simplified",
    "truth",
    "written",
]
