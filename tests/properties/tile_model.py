"""Kernels run as plain Python on NumPy arrays: the second interpreter that tile programs are compared with.

`run(text, arguments, ...)` executes the text of a kernel with a `T` of its own: a launch is a loop over its blocks, a loop
of any kind a Python loop, a tile an array, an operation on tiles its sentence in NumPy.  One thread stands for all threads of
a block, so a program must be one whose statements give every thread the same.  It shares nothing with the package.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from properties import device_numbers as numbers
from properties.device_numbers import FLOATS, Number, UnwrittenRead, converted, numpy_dtype

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", *FLOATS)


class Unordered(Exception):
    """What a program computes depends on the order of the iterations of a parallel loop: no result can be expected."""


class Buffer:
    """Memory with an extent in every dimension; what was never written is known."""

    def __init__(self, shape: Any, dtype: str, memory: str, data: np.ndarray | None = None):
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        self.shape = tuple(builtins.int(extent) for extent in shape)
        self.dtype, self.memory = str(dtype), memory
        self.data = np.zeros(self.shape, numpy_dtype(self.dtype)) if data is None else data
        self.written = np.full(self.shape, data is not None)
        self.turns: np.ndarray | None = None  # of a per-thread array: the iterations that wrote its elements

    def places(self, index: Any) -> tuple[Any, ...]:
        """Constants counted from the end are counted from the front; slices are (begin, end)."""
        index = index if isinstance(index, tuple) else (index,)
        assert len(index) == len(self.shape), (index, self.shape)
        return tuple(_place(i, extent) for i, extent in zip(index, self.shape))

    def __getitem__(self, index: Any) -> Any:
        places = self.places(index)
        if any(isinstance(place, tuple) for place in places):
            begin = tuple(place[0] if isinstance(place, tuple) else place for place in places)
            return Region(self, begin, tuple(p[1] - p[0] if isinstance(p, tuple) else 1 for p in places))
        if not self.holds(places):
            return Number(0, self.dtype, (self, places))
        return Number(self.data[places], self.dtype, (self, places), self.is_written(places))

    def __setitem__(self, index: Any, value: Any) -> None:
        places = self.places(index)
        value = value.value if isinstance(value, Number) else value
        if self.holds(places):
            self.data[places] = converted(value, self.dtype)
            self.written[places] = True
            if self.turns is not None:
                self.turns[places] = TURN[-1]

    def holds(self, places: tuple[Any, ...]) -> bool:
        inside = all(0 <= place < extent for place, extent in zip(places, self.shape))
        assert inside or self.memory == "global", (places, self.shape)
        return inside

    def is_written(self, places: tuple[Any, ...]) -> bool:
        ours = self.turns is None or self.turns[places] in (BEFORE, TURN[-1])
        return bool(self.written[places] and ours)

    def whole(self) -> Region:
        return Region(self, (0,) * len(self.shape), self.shape)


TURN = [0]  # the iteration of a parallel loop that runs, 0 outside of them
BEFORE = -1  # instead of one: before the loop


class Region:
    """A box in a buffer."""

    def __init__(self, buffer: Buffer, begin: tuple[int, ...], extent: tuple[int, ...]):
        self.buffer, self.begin, self.extent = buffer, begin, extent

    def _inside(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the box that the buffer has, in the buffer and in the box."""
        sides = [
            (max(0, -begin), min(extent, size - begin))
            for begin, extent, size in zip(self.begin, self.extent, self.buffer.shape)
        ]
        sides = [(low, max(low, high)) for low, high in sides]
        assert self.buffer.memory == "global" or all(s == (0, e) for s, e in zip(sides, self.extent)), self.begin
        return (
            tuple(slice(begin + low, begin + high) for begin, (low, high) in zip(self.begin, sides)),
            tuple(slice(low, high) for low, high in sides),
        )

    def read(self) -> np.ndarray:
        """What it holds; 0 where the buffer ends before the box."""
        ours, within = self._inside()
        if not self.buffer.written[ours].all():
            raise UnwrittenRead
        found = np.zeros(self.extent, self.buffer.data.dtype)
        found[within] = self.buffer.data[ours]
        return found

    def write(self, values: np.ndarray) -> None:
        ours, within = self._inside()
        values = np.broadcast_to(values.reshape(self.extent) if values.shape else values, self.extent)
        self.buffer.data[ours] = cast_array(values[within], self.buffer.dtype)
        self.buffer.written[ours] = True


def _place(index: Any, extent: int) -> Any:
    if isinstance(index, slice):
        assert index.step in (None, 1)
        begin = 0 if index.start is None else _place(index.start, extent)
        return begin, extent if index.stop is None else _place(index.stop, extent)
    if isinstance(index, Number):
        return builtins.int(index.value)
    return index + extent if index < 0 else builtins.int(index)


def cast_array(values: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        if dtype == "bool":
            return values != 0
        if dtype not in FLOATS and values.dtype.kind not in "iub":
            values = np.trunc(values.astype(np.float64)).astype(np.int64)
        return values.astype(numpy_dtype(dtype))


def boxed(operand: Any, other: Any = None) -> Region:
    """An operand of an operation as a box; an element takes the extents of the other side."""
    if isinstance(operand, Buffer):
        return operand.whole()
    if isinstance(operand, Region):
        return operand
    buffer, begin = operand.place
    extent = boxed(other).extent if other is not None else (1,) * len(begin)
    if len(extent) > len(begin):
        extent = tuple(n for n in extent if n != 1)
    return Region(buffer, begin, (1,) * (len(begin) - len(extent)) + tuple(extent))


class Dtype(str):
    """`T.float16`: a name and a conversion."""

    def __call__(self, value: Any) -> Number:
        return Number(value.value if isinstance(value, Number) else value, str(self))


class Language:
    """`T`.  symbols: values of `T.dynamic` names.  forwards: the order of the iterations of parallel loops."""

    if_then_else = Select = staticmethod(lambda condition, x, y: x if condition else y)
    max, min = staticmethod(numbers.maximum), staticmethod(numbers.minimum)
    prim_func = macro = staticmethod(lambda function: function)

    class GemmWarpPolicy:
        Square, FullRow, FullCol = range(3)

    def __init__(self, symbols: dict[str, int], forwards: bool):
        self.symbols, self.forwards = symbols, forwards
        self.buffers: list[Buffer] = []
        for name in DTYPES:
            setattr(self, name, Dtype(name))

    # -- memory ----------------------------------------------------------------------------------------------------
    def Tensor(self, shape: Any, dtype: str) -> None: ...

    def dynamic(self, name: str) -> Number:
        return Number(self.symbols[name], "int32")

    symbolic = dynamic

    def _memory(memory: str) -> Callable[..., Buffer]:
        def allocate(self: Language, shape: Any, dtype: str, **options: Any) -> Buffer:
            self.buffers.append(Buffer(shape, dtype, memory))
            return self.buffers[-1]

        return allocate

    alloc_shared, alloc_fragment, alloc_local = map(_memory, ("shared", "fragment", "local"))
    alloc_reducer = _memory("reducer")

    def alloc_var(self, dtype: str, init: Any = 0) -> Number:
        return self.cast(init, dtype)

    # -- launches and loops ----------------------------------------------------------------------------------------
    def Kernel(self, *blocks: Any, threads: Any = 128) -> Iterator[Any]:
        for block in itertools.product(*(range(builtins.int(extent)) for extent in reversed(blocks))):
            found = tuple(Number(at, "int32") for at in reversed(block))
            yield found if len(found) > 1 else found[0]

    def serial(self, start: Any, stop: Any = None, step: Any = 1, **options: Any) -> Iterator[Number]:
        bounds = (0, start, step) if stop is None else (start, stop, step)
        wide = any(isinstance(bound, Number) and bound.dtype == "int64" for bound in bounds)
        first, last, stride = (builtins.int(bound) for bound in bounds)
        for at in range(first, last, stride) if stride else ():
            yield Number(at, "int64" if wide else "int32")

    unroll = vectorized = Vectorized = Serial = Unroll = serial

    def Pipelined(self, start: Any, stop: Any = None, num_stages: int = 0) -> Iterator[Number]:
        return self.serial(start, stop)

    def grid(self, *extents: Any) -> Iterator[tuple[Number, ...]]:
        for index in itertools.product(*(range(builtins.int(extent)) for extent in extents)):
            yield tuple(Number(at, "int32") for at in index)

    def Parallel(self, *extents: Any, **options: Any) -> Iterator[Any]:
        """Iterations without order; what one of them leaves in a per-thread array is not there in another."""
        own = [buffer for buffer in self.buffers if buffer.memory == "local"]
        outermost = TURN[-1] == 0
        for buffer in own if outermost else ():
            buffer.turns = np.where(buffer.written, BEFORE, 0)
        turns = list(itertools.product(*(range(builtins.int(extent)) for extent in extents)))
        for number, index in enumerate(turns if self.forwards else reversed(turns), 1):
            if outermost:
                TURN[-1] = number
            found = tuple(Number(at, "int32") for at in index)
            yield found if len(found) > 1 else found[0]
        if outermost:
            TURN[-1] = 0
            for buffer in own:
                buffer.written &= buffer.turns == BEFORE  # type: ignore[arg-type]
                buffer.turns = None

    def of(self, iterable: Any) -> Any:
        """What a `for` statement goes through."""
        return self.serial(iterable.start, iterable.stop, iterable.step) if isinstance(iterable, range) else iterable

    # -- values ----------------------------------------------------------------------------------------------------
    def cast(self, value: Any, dtype: str) -> Number:
        return Dtype(dtype)(value)

    def clamp(self, value: Any, low: Any, high: Any) -> Any:
        return numbers.minimum(numbers.maximum(value, low), high)

    def abs(self, value: Any) -> Any:
        return builtins.abs(value)

    def ceildiv(self, x: Any, y: Any) -> Any:
        return -(-x // y)

    def floordiv(self, x: Any, y: Any) -> Any:
        return x // y

    def floormod(self, x: Any, y: Any) -> Any:
        return x % y

    def truncdiv(self, x: Any, y: Any) -> Any:
        sign = 1 if (x < 0) == (y < 0) else -1
        return builtins.abs(x) // builtins.abs(y) * sign

    def truncmod(self, x: Any, y: Any) -> Any:
        return x - self.truncdiv(x, y) * y

    def _rounding(function: Any) -> Callable[[Any, Any], Number]:
        return lambda self, x: Number(function(np.float64(x.value)), x.dtype)

    floor, ceil, trunc, nearbyint = map(_rounding, (np.floor, np.ceil, np.trunc, np.rint))
    round = _rounding(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x))

    def sqrt(self, x: Number) -> Number:
        return Number(np.sqrt(x.value), x.dtype)

    # -- operations on tiles ---------------------------------------------------------------------------------------
    def copy(self, source: Any, target: Any, **options: Any) -> None:
        read = boxed(source, target if isinstance(source, Number) else None)
        written = boxed(target, source if isinstance(target, Number) else None)
        written.write(read.read())

    def fill(self, target: Any, value: Any) -> None:
        boxed(target).write(np.asarray(value.value if isinstance(value, Number) else value))

    def clear(self, target: Any) -> None:
        self.fill(target, 0)

    def transpose(self, source: Any, target: Any) -> None:
        boxed(target).write(boxed(source).read().T)

    def gemm(
        self, a: Any, b: Any, c: Any, transpose_A: bool = False, transpose_B: bool = False, policy: int = 0,
        clear_accum: Any = False,
    ) -> None:  # fmt: skip
        wide = np.float64 if boxed(c).buffer.dtype in FLOATS else np.int64
        left, right = boxed(a).read().astype(wide), boxed(b).read().astype(wide)
        product = (left.T if transpose_A else left) @ (right.T if transpose_B else right)
        boxed(c).write(product if clear_accum else boxed(c).read().astype(wide) + product)

    def _reduction(
        function: Callable[..., Any], join: Callable[[Any, Any], Any], before: Callable[[Any], Any]
    ) -> Callable[..., None]:
        def reduce(self: Language, source: Any, target: Any, dim: int = -1, clear: bool = True) -> None:
            read, written = boxed(source).read(), boxed(target)
            wide = np.float64 if read.dtype.kind not in "iub" else np.int64
            found = function(before(read.astype(wide)), axis=dim).reshape(written.extent)
            written.write(found if clear else join(written.read().astype(wide), found))

        return reduce

    def _same(values: np.ndarray) -> np.ndarray:
        return values

    reduce_sum, reduce_abssum = _reduction(np.sum, np.add, _same), _reduction(np.sum, np.add, np.abs)
    reduce_max, reduce_absmax = _reduction(np.max, np.maximum, _same), _reduction(np.max, np.maximum, np.abs)
    reduce_min = _reduction(np.min, np.minimum, _same)
    reduce_bitand = _reduction(np.bitwise_and.reduce, np.bitwise_and, _same)
    reduce_bitor = _reduction(np.bitwise_or.reduce, np.bitwise_or, _same)
    reduce_bitxor = _reduction(np.bitwise_xor.reduce, np.bitwise_xor, _same)

    def _scan(function: Callable[..., Any]) -> Callable[..., None]:
        def scan(self: Language, source: Any, target: Any = None, dim: int = 0, reverse: bool = False) -> None:
            read = boxed(source).read()
            wide = read.astype(np.float64 if read.dtype.kind not in "iub" else np.int64)
            turned = np.flip(wide, dim) if reverse else wide
            found = function(turned, axis=dim)
            boxed(source if target is None else target).write(np.flip(found, dim) if reverse else found)

        return scan

    cumsum, cummax = _scan(np.cumsum), _scan(np.maximum.accumulate)

    def any_of(self, operand: Any) -> Number:
        return Number(bool((boxed(operand).read() != 0).any()), "bool")

    def all_of(self, operand: Any) -> Number:
        return Number(bool((boxed(operand).read() != 0).all()), "bool")

    def finalize_reducer(self, reducer: Buffer, batch: int = 1) -> None: ...

    def sync_threads(self) -> None: ...

    def _atomic(join: Callable[[Any, Any], Any]) -> Callable[..., None]:
        def atomic(self: Language, target: Any, value: Any) -> None:
            if isinstance(value, (Buffer, Region)):
                written = boxed(target, value)
                written.write(join(written.read().astype(np.float64), boxed(value).read().astype(np.float64)))
                return
            buffer, places = target.place
            buffer[tuple(Number(place, "int64") for place in places)] = join(buffer[_constant(places)], value)

        return atomic

    atomic_add = _atomic(lambda x, y: x + y)
    atomic_max, atomic_min = _atomic(numbers.maximum), _atomic(numbers.minimum)
    atomic_or = _atomic(lambda x, y: x | y)


def _constant(places: tuple[int, ...]) -> tuple[Number, ...]:
    return tuple(Number(place, "int64") for place in places)


class _Text(ast.NodeTransformer):
    """What Python has no protocol for: a launch is a loop, an annotation a conversion."""

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        item = node.items[0]
        target = item.optional_vars or ast.Name("_", ast.Store())
        return ast.For(target, item.context_expr, node.body, [])

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = ast.Call(ast.Attribute(ast.Name("T", ast.Load()), "of", ast.Load()), [node.iter], [])
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.Assign([node.target], ast.Call(node.annotation, [node.value], []))


BUILTINS = {"max": numbers.maximum, "min": numbers.minimum, "int": numbers.to_int, "float": numbers.to_float}
BUILTINS |= {"bool": numbers.to_bool}


def run(
    text: str, tensors: dict[str, np.ndarray], scalars: dict[str, int], symbols: dict[str, int], forwards: bool = True
) -> None:
    """Runs kernel `k` of a text on arrays, in place.  UnwrittenRead where it reads what nothing wrote."""
    tree = ast.fix_missing_locations(_Text().visit(ast.parse(text.replace("import tilelang.language as T\n", ""))))
    namespace = {"T": Language(symbols, forwards), **BUILTINS}
    TURN[:] = [0]
    exec(compile(tree, "<model>", "exec"), namespace)
    names = {array.dtype.name: array.dtype.name for array in tensors.values()}
    memory = {name: Buffer(a.shape, names[a.dtype.name], "global", a) for name, a in tensors.items()}
    with np.errstate(all="ignore"):
        namespace["k"](**memory, **{name: Number(value, "int32") for name, value in scalars.items()})
