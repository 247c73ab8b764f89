"""Calls in expressions and statements: mathematics, device calls, atomics, printing, barriers.

Each table maps the name of a call to what it becomes.  Everything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm.ir import StringImm

from .accesses import Accesses
from .inspection import call_name, extern_name
from .values import BYTES, LANES, NUMPY, Unsupported, Value, dtype_of, integer_range, is_float

# Operators of TIR and fast device functions: name -> function of the generated text.  `math_*` are in
# machine/arithmetic.py.
MATH = {
    **{
        name: f"np.{name}"
        for name in ("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "tanh")
    },
    **{name: f"np.{name}" for name in ("sinh", "cosh", "floor", "ceil", "trunc", "fabs", "fmod", "hypot", "copysign")},
    **{name: f"np.{name}" for name in ("isnan", "isinf", "isfinite", "nextafter", "ldexp")},
    **{name: f"np.arc{name[1:]}" for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "abs": "np.abs",
    "atan2": "np.arctan2",
    "nearbyint": "np.rint",
    "round": "math_round",
    "rsqrt": "math_rsqrt",
    "exp10": "math_exp10",
    "erf": "math_erf",
    "sigmoid": "math_sigmoid",
    "pow": "math_power",
    "popcount": "count_bits",
    "clz": "leading_zeros",
}
FAST_MATH = {
    "__expf": "np.exp",
    "__exp10f": "math_exp10",
    "__logf": "np.log",
    "__log2f": "np.log2",
    "__log10f": "np.log10",
    "__sinf": "np.sin",
    "__cosf": "np.cos",
    "__tanf": "np.tan",
    "__tanhf": "np.tanh",
    "__powf": "math_power",
    "tl_floor_divide": "np.floor_divide",  # of floats, as Python's `//` and `%`
    "tl_floor_modulo": "np.remainder",
    "__fdividef": "np.divide",
    "__fdiv_rn": "np.divide",
    "__fadd_rn": "np.add",
    "__fsub_rn": "np.subtract",
    "__fmul_rn": "np.multiply",
    "__fmaf_rn": "math_fma",
    "__frcp_rn": "math_reciprocal",
    "__fsqrt_rn": "np.sqrt",
    "__frsqrt_rn": "math_rsqrt",
    "__popc": "count_bits",
    "__popcll": "count_bits",
    "__clz": "leading_zeros",
    "__clzll": "leading_zeros",
    "__ffs": "first_bit",
    "__ffsll": "first_bit",
}
REINTERPRETING = ("__int_as_float", "__float_as_int", "__uint_as_float", "__float_as_uint")
SHUFFLES = {"__shfl_sync": "index", "__shfl_xor_sync": "xor", "__shfl_up_sync": "up", "__shfl_down_sync": "down"}
VOTES = {"__any_sync": "any", "__all_sync": "all", "__ballot_sync": "ballot"}
BLOCK_VOTES = {"__syncthreads_and": "and", "__syncthreads_or": "or", "__syncthreads_count": "count"}
ATOMICS = (
    {f"tl_atomic_{name}": name for name in ("add", "max", "min", "and", "or", "xor", "exchange", "load", "store")}
    | {f"atomic{name}": name.lower() for name in ("Add", "Max", "Min", "And", "Or", "Xor")}
    | {"atomicExch": "exchange"}
)
WITHOUT_EFFECT = (
    "__threadfence_block",
    "__nanosleep",
    "tirx.cuda.thread_fence",
    "tl_register_fence",
    "tirx.assume",
)


class Calls(Accesses):
    """Calls as values and calls as statements."""

    orders: bool  # do atomic operations, or fences beside them, order what threads do?
    peeking: bool  # are the loads only to look, which counts as no access?
    roles: int  # how many forks the translated statement is inside

    # ---- values ----
    def expression_Call(self, node: Any) -> Value:
        name = call_name(node)
        short = name.removeprefix("tirx.").removeprefix("prim.")
        if short in MATH:
            return self._function(MATH[short], node, list(node.args))
        if short == "if_then_else":
            return self.choice(node.args[0], node.args[1], node.args[2], dtype_of(node))
        if short == "likely":
            return self.expression(node.args[0])
        if short in ("call_extern", "call_pure_extern"):
            return self._extern(node, node.args[0].value, list(node.args[1:]))
        if short == "reinterpret" and dtype_of(node) in NUMPY:
            return self._reinterpret(self.expression(node.args[0]), dtype_of(node))
        if short in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "bitwise_not"):
            return self._operator_call(short, node)
        raise Unsupported(f"call {name or node.op}", self.span)

    def _operator_call(self, short: str, node: Any) -> Value:
        classes = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}
        classes |= {"shift_left": "LShift", "shift_right": "RShift", "bitwise_not": "BitwiseNot"}
        kind = getattr(tvm.ir.prim.expr, classes[short])
        return self.expression(kind(*node.args))

    def _function(self, function: str, node: Any, arguments: list[Any]) -> Value:
        """An elementwise function; its result has the type of the node."""
        values = [self.expression(argument) for argument in arguments]
        dtype = dtype_of(node)
        text = f"{function}({', '.join(self.typed(value) for value in values)})"
        if not is_float(dtype) and dtype != "bool":
            text = f"{text}.astype({NUMPY[dtype]})"
            if all(value.axes == 0 for value in values):
                text = f"int({text})"
            return self.make(text, dtype, *values)
        if dtype == "bool" and values[0].dtype in ("int32", "int64"):
            raise Unsupported(f"{function} of an integer", self.span)
        return self.make(text, dtype, *values)

    def _reinterpret(self, value: Value, dtype: str) -> Value:
        if BYTES[value.dtype] != BYTES[dtype]:
            raise Unsupported(f"reinterpret from {value.dtype} to {dtype}", self.span)
        text = f"np.asarray({self.typed(value)}).view({NUMPY[dtype]})"
        if value.axes == 0:
            text = f"{text}[()]" if is_float(dtype) else f"int({text})"
        return self.make(text, dtype, value)

    def effectful(self, text: str, dtype: str, axes: int) -> Value:
        low, high = integer_range(dtype) if "int" in dtype else (None, None)
        return Value(text, dtype, axes, self.depth, False, False, low, high)

    def _extern(self, node: Any, function: str, arguments: list[Any]) -> Value:
        dtype = dtype_of(node)
        if function in FAST_MATH:
            return self._function(FAST_MATH[function], node, arguments)
        if function in REINTERPRETING:
            return self._reinterpret(self.expression(arguments[0]), dtype)
        if function in SHUFFLES:
            value, lane = self.expression(arguments[1]), self.expression(arguments[2])
            width = self.expression(arguments[3]).text if len(arguments) > 3 else "32"
            taking = f"{self.expression(arguments[0]).text}, {self.mask}, {self.site('shuffle')}"
            text = f"S.shuffle({SHUFFLES[function]!r}, {self.typed(value)}, {lane.text}, {width}, {taking})"
            return self.effectful(text, value.dtype, LANES | value.axes | lane.axes)
        if function in VOTES:
            value = self.truth(arguments[1])
            taking = f"{self.expression(arguments[0]).text}, {self.mask}, {self.site('vote')}"
            text = f"S.vote({VOTES[function]!r}, {value.text}, {taking}).view({NUMPY[dtype]})"
            return self.effectful(text, dtype, LANES | value.axes)
        if function == "__activemask":
            text = f"S.vote('ballot', True, None, {self.mask}, -1).view({NUMPY[dtype]})"
            return self.effectful(text, dtype, LANES)
        if function in BLOCK_VOTES:
            value = self.truth(arguments[0])
            self.emit_block_barrier()
            return self.effectful(f"S.block_vote({BLOCK_VOTES[function]!r}, {value.text}, {self.mask})", dtype, LANES)
        if function in ATOMICS:
            return self._atomic(ATOMICS[function], arguments)
        if function in ("fmaxf", "fminf", "max", "min"):
            return self._function("np.fmax" if "max" in function else "np.fmin", node, arguments)
        raise Unsupported(f"device function {function}", self.span)

    def _atomic(self, kind: str, arguments: list[Any]) -> Value:
        load = self.pointer_load(arguments[0])
        storage, indices = self.storage(load.source), list(load.indices)
        if storage.space == "local":
            raise Unsupported("an atomic operation on registers", self.span)
        point, axes = self._point(storage, indices)
        last = extern_name(arguments[-1])
        order = last.removeprefix("tl_order_") if last.startswith("tl_order_") else ""
        given = arguments[1 : len(arguments) - bool(order)]
        value = self.cast(self.expression(given[0]), storage.dtype) if given else None
        site = self.access_site("atomic", storage)
        asked = kind
        if self.peeking:
            return self.effectful(f"S.peek_{storage.space}({point})", storage.dtype, axes)
        if kind == "load":
            text = f"S.load_{storage.space}({point}, {self.mask}, {site})"
        elif value is None:
            raise Unsupported(f"atomic {kind} without a value", self.span)
        else:
            kind = "exchange" if kind == "store" else kind
            amount, axes = self._for_every_turn(value, axes)
            text = f"S.atomic_{storage.space}({kind!r}, {point}, {amount}, {self.mask}, {site})"
            axes |= LANES
        if self.orders:
            does = {"load": "load", "store": "store"}.get(asked, "update")
            text = f"S.ordered({order!r}, {does!r}, {self.mask}, lambda: {text})"
        return self.effectful(text, storage.dtype, axes)

    def _for_every_turn(self, value: Value, axes: int) -> tuple[str, int]:
        """The text of what an atomic operation adds, over the axes of the loops around it too, and all its axes.

        axes: of its place.  Where neither moves with a loop that runs as an axis, every turn still counts.
        """
        axes |= value.axes
        missing = {name: bit for name, axis in self.vectors.items() if not axes & (bit := self.axis_bit(axis))}
        if not missing:
            return self.typed(value), axes
        shapes = ", ".join(f"np.shape({part})" for part in (self.typed(value), *missing))
        for bit in missing.values():
            axes |= bit
        return f"np.broadcast_to({self.typed(value)}, np.broadcast_shapes({shapes}))", axes

    # ---- statements ----
    def statement_Evaluate(self, statement: Any) -> None:
        node = statement.value
        if not isinstance(node, tvm.ir.Call):
            if isinstance(node, tvm.ir.Expr) and type(node).__name__ == "IntImm":
                return
            self.emit(self.expression(node).text)
            return
        name = call_name(node)
        function = node.args[0].value if name in ("tirx.call_extern", "tirx.call_pure_extern") else name
        if function in WITHOUT_EFFECT:
            return
        handler = STATEMENTS.get(function)
        arguments = list(node.args[1:]) if function != name else list(node.args)
        if handler is not None:
            handler(self, arguments)
        else:
            self.emit(self.expression(node).text)

    def emit_block_barrier(self) -> None:
        if self.roles:  # strands are no longer in step: barrier 0 of all threads of the block
            site = self.site("named barrier")
            self.emit(f"yield from S.named_barrier(0, S.machine.threads, {self.mask}, {site})")
        else:
            self.emit(f"S.block_barrier({self.mask}, {self.site('block barrier')})")

    def barrier(self, node: Any) -> tuple[str, str]:
        """Byte address of an mbarrier inside the shared window, and its name."""
        buffer, address = self.pointer(node)
        if self.storage(buffer).space != "shared":
            raise Unsupported("an mbarrier outside shared memory", self.span)
        return address.text, buffer.name


Handler = Callable[[Calls, list[Any]], None]
STATEMENTS: dict[str, Handler] = {}


def _statement(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        STATEMENTS.update(dict.fromkeys(names, handler))
        return handler

    return register


@_statement("tirx.tvm_storage_sync")
def _storage_sync(t: Calls, arguments: list[Any]) -> None:
    scope = arguments[0].value
    if scope == "warp":
        t.emit(f"S.warp_barrier({t.mask})")
    elif scope in ("shared", "shared.dyn", "global"):
        t.emit_block_barrier()
    else:
        raise Unsupported(f"synchronisation of {scope}", t.span)


@_statement("__syncthreads", "tirx.cuda.cta_sync")
def _block_barrier(t: Calls, arguments: list[Any]) -> None:
    t.emit_block_barrier()


@_statement("__syncwarp", "tirx.cuda.warp_sync", "tirx.ptx.bar_warp_sync")
def _warp_barrier(t: Calls, arguments: list[Any]) -> None:
    t.emit(f"S.warp_barrier({t.mask})")


@_statement("__threadfence", "__threadfence_system")
def _fence(t: Calls, arguments: list[Any]) -> None:
    t.emit(f"S.fence({t.mask})")


@_statement("tirx.ptx.bar_sync_count", "tirx.ptx.barrier_sync_count")
def _named_barrier(t: Calls, arguments: list[Any]) -> None:
    number, threads = t.expression(arguments[0]).text, t.expression(arguments[1]).text
    t.emit(f"yield from S.named_barrier({number}, {threads}, {t.mask}, {t.site('named barrier')})")


@_statement("tirx.ptx.bar_sync", "tirx.ptx.barrier_sync")
def _whole_named_barrier(t: Calls, arguments: list[Any]) -> None:
    number = t.expression(arguments[0]).text
    t.emit(f"yield from S.named_barrier({number}, S.machine.threads, {t.mask}, {t.site('named barrier')})")


@_statement("tirx.ptx.bar_arrive", "tirx.ptx.barrier_arrive")
def _named_arrival(t: Calls, arguments: list[Any]) -> None:
    number, threads = t.expression(arguments[0]).text, t.expression(arguments[1]).text
    t.emit(f"S.named_arrive({number}, {threads}, {t.mask}, {t.site('named barrier')})")


def _mbarrier(method: str, with_count: bool) -> Handler:
    def emit(t: Calls, arguments: list[Any]) -> None:
        count = t.expression(arguments[1]).text if with_count else "1"
        address, name = t.barrier(arguments[0])
        t.emit(f"S.{method}({address}, {count}, {t.mask}, {t.site('mbarrier', name)})")

    return emit


STATEMENTS["tirx.ptx.mbarrier_init"] = _mbarrier("mbarrier_init", True)
STATEMENTS["tirx.ptx.mbarrier_arrive"] = _mbarrier("mbarrier_arrive", True)
STATEMENTS["tirx.ptx.mbarrier_arrive_nocount"] = _mbarrier("mbarrier_arrive", False)
STATEMENTS["tirx.ptx.mbarrier_arrive_expect_tx"] = _mbarrier("mbarrier_arrive_expect", True)
STATEMENTS["tirx.ptx.mbarrier_expect_tx"] = _mbarrier("mbarrier_expect", True)


@_statement("tirx.cuda.mbarrier_wait")
def _mbarrier_wait(t: Calls, arguments: list[Any]) -> None:
    (address, name), parity = t.barrier(arguments[0]), t.expression(arguments[1]).text
    t.emit(f"yield from S.mbarrier_wait({address}, {parity}, {t.mask}, {t.site('mbarrier wait', name)})")


@_statement("tl_print")
def _print(t: Calls, arguments: list[Any]) -> None:
    """message, value, description, index...: `{}` in a description stands for the next index."""
    texts = [a.value if isinstance(a, StringImm) else None for a in arguments]
    values = [t.expression(a).text for a in arguments[1:] if not isinstance(a, StringImm)]
    description = next((text for text in texts[1:] if text is not None), "")
    value, indices = (values[0], values[1:]) if values else ("None", [])
    shown = "".join(index + ", " for index in indices)
    t.emit(f"S.print_values({texts[0]!r}, {value}, {description!r}, ({shown}), {t.mask})")


@_statement("tl_device_assert")
def _device_assert(t: Calls, arguments: list[Any]) -> None:
    message = arguments[1].value if len(arguments) > 1 else ""
    t.emit(f"S.device_assert({t.truth(arguments[0]).text}, {message!r}, {t.mask}, {t.site('assertion')})")
