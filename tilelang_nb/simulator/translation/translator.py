"""A thread program -> the source of a Python generator function over NumPy, once per program."""

from __future__ import annotations

from typing import Any

from ...lowering.hopper.tensor_maps import tensor_maps_of
from .edges import Guard
from .endless import any_asking_loop
from .hopper_calls import accumulators
from .inspection import BLOCKING, accessed_buffers, calls_extern, contains_call, variables
from .statements import Statements
from .suites import render
from .values import NUMPY, AccessDetail, Storage, Unsupported, Value, integer_range

# Fences, and the orders of atomic operations.
ORDERING = (
    "__threadfence",
    "__threadfence_system",
    *(f"tl_order_{order}" for order in ("consume", "acquire", "release", "acq_rel", "seq_cst")),
)
PARAMETER = "p_"  # prefix of the Python names of parameters


class Translator(Statements):
    """Translates `func`.

    checks: emit what finds missing initialisation and counts operations.
    aliased: arrays that are passed as different parameters may overlap.
    guards: accesses that the lowering put under conditions.
    like: a translation of the same program; in this one threads that wait for different things run apart, and sites
    and operations have the same numbers.
    """

    def __init__(
        self,
        func: Any,
        checks: bool,
        aliased: bool = False,
        guards: frozenset[Guard] = frozenset(),
        like: Translator | None = None,
    ):
        super().__init__(checks)
        self.apart = like is not None
        self.func, self.aliased, self.guards = func, aliased, guards
        self.accumulators = accumulators(func)
        self.mapped: tuple[set[Any], set[Any]] = set(), set()  # tensor maps that are read and written through
        self.shown: dict[str, str] = {}  # tensor map by its Python name -> name of the array that it shows
        self.names: dict[Any, Value] = {}
        self.shifted: dict[Any, tuple[Any, Value]] = {}  # vector loop variable with a start -> (start, axis variable)
        self.buffers: dict[Any, Storage] = {}
        self.grid: dict[str, Any] = {}  # axis -> extent as a TIR expression
        self.block: dict[str, Any] = {}
        self.vectors = {}
        self.open_vectors: list[tuple[Any, int]] = []
        self.loops = []
        self.roles, self.peeking = 0, False
        self.orders = calls_extern(func.body, ORDERING)
        self.outer_loops = 0  # loops that stand in no other: their turns tell how far a launch has come
        self.tallies: dict[tuple[tuple[str, int], ...], int] = like.tallies if like else {}
        self.site_details: dict[int, AccessDetail] = like.site_details if like else {}
        if like:
            self.sites, self._site_numbers, self._turns = like.sites, like._site_numbers, like._turns
        self.shared_bytes, self.register_bytes, self.granule, self.largest_vector = 0, 0, 16, 1
        self.global_views: dict[Any, Any] = {}  # view of a parameter -> the parameter
        self._access: tuple[set[Any], set[Any]] | None = None
        self._left: list[str | None] = []
        self._next_position = 0

    def translate(self) -> str:
        """The text of `def kernel(S, P)`: S is the strand that runs, P maps names to arguments."""
        for parameter in self.func.params:
            self._parameter(parameter)
        for one in tensor_maps_of(self.func):
            self.shown[PARAMETER + self._label(one.variable)] = one.buffer.name
        self.statement(self.func.body)
        head = ["if False: yield"]
        head += [f"{name} = P[{name[len(PARAMETER) :]!r}]" for name in sorted(self.reserved)]
        head += [f"b{axis} = S.block_index({axis!r})" for axis in self.grid]
        head += [f"t{axis} = S.thread_index({axis!r})" for axis in self.block]
        body = render(self.suites[0].lines, self.tracked)
        return "\n".join(["def kernel(S, P):", *("  " + line for line in head + body)]) + "\n"

    def _parameter(self, parameter: Any) -> None:
        name = self._reserve(parameter)
        if not hasattr(parameter.ty, "shape"):
            dtype = str(getattr(parameter.ty, "dtype", "handle"))
            low, high = integer_range(dtype) if dtype == "bool" or "int" in dtype else (None, None)
            self.names[parameter] = Value(name, dtype, 0, 0, True, True, low, high)
            return
        dtype = str(parameter.ty.dtype)
        if dtype not in NUMPY:
            raise Unsupported(f"type {dtype} of parameter {parameter.name}")
        shape, strides = tuple(parameter.ty.shape), tuple(parameter.ty.strides or ())
        self.buffers[parameter] = Storage("global", name, parameter.name, shape, dtype, 0, strides)
        for symbol in (variable for extent in (*shape, *strides) for variable in variables(extent)):
            if symbol not in self.names and symbol not in self.func.params:
                name = self._reserve(symbol)
                self.names[symbol] = Value(name, str(symbol.ty.dtype), 0, 0, True, True, 0, integer_range("int32")[1])

    def _reserve(self, variable: Any) -> str:
        """The Python name of a parameter or symbolic size; no temporary may take it."""
        name = PARAMETER + self._label(variable)
        self.reserved.add(name)
        self.define(name)
        return name

    def _label(self, variable: Any) -> str:
        """A Python name for a parameter or symbolic size, also where names repeat or are not identifiers."""
        if variable not in self.labels:
            stem = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in variable.name) or "_"
            taken = set(self.labels.values())
            name, number = stem, 1
            while name in taken:
                number += 1
                name = f"{stem}_{number}"
            self.labels[variable] = name
        return self.labels[variable]

    @property
    def labels(self) -> dict[Any, str]:
        """Parameter or symbolic size -> its key among the arguments of the generated function."""
        return self.__dict__.setdefault("_labels", {})

    @property
    def accessed(self) -> tuple[set[Any], set[Any]]:
        """(buffers that are read, buffers that are written); a view counts as the parameter it shows."""
        if self._access is None:
            reads, writes = accessed_buffers(self.func.body)
            for one in tensor_maps_of(self.func):
                for touched, through in ((reads, self.mapped[0]), (writes, self.mapped[1])):
                    if one.variable in through:
                        touched.add(one.buffer)
            roots = self.global_views
            self._access = {roots.get(b, b) for b in reads}, {roots.get(b, b) for b in writes}
        return self._access

    @property
    def can_wait(self) -> bool:
        """True if a thread may have to wait for another one."""
        return self.asks or contains_call(self.func.body, BLOCKING)

    @property
    def asks(self) -> bool:
        """True if a loop may ask for what other threads store."""
        return self.__dict__.setdefault("_asks", any_asking_loop(self.func.body))
