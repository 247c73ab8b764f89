"""What rewritten expressions call: calls, logic with short circuit, comparisons without a protocol, comprehensions."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from tvm import tirx as tir

from ..language.loops import DeviceLoop
from ..language.operands import described
from ..language.promotion import as_type, join_operands, join_rebound, kind_of
from ..language.values import COMPARE, Buffer, Region, Value, derived, is_device, number, truth
from ..language.values import written as written_of
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from .bindings import dtype_of_kind
from .builtin_functions import loop_over, table
from .conditional_bindings import ConditionalBindings
from .contents import check_change, check_used_up, device_scope, noting, watched
from .describing_text import Blank, DescribingText, device_values, text_needed
from .introspection import GETTERS, checked_getter, is_hidden, refuse_objects_of_compiler
from .large_integers import grown
from .locate import no_attribute
from .macros import Macro
from .unroll import Clause
from .user_code import MUTATORS, all_plain


class Identities:
    """Objects that are looked up by identity: an object of the user may compare as it likes."""

    def __init__(self, objects: tuple[Any, ...]):
        self._objects = {id(known): known for known in objects}

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._objects


PYTHON = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


FORMATTING = ("format", "format_map", "join", "__mod__", "__format__")
# What calls the functions that it is given.
TAKE_FUNCTIONS = Identities(
    (map, filter, sorted, min, max, functools.reduce, functools.partial, itertools.starmap, itertools.accumulate)
    + (itertools.groupby, itertools.takewhile, itertools.dropwhile, itertools.filterfalse)
)
FINITE = (list, tuple, dict, set, frozenset, str, bytes, bytearray, range)


class Intrinsics:
    """One per walk of a kernel; `walker` gives frames, scopes and the builder."""

    def __init__(self, walker: Any):
        self.walker = walker
        self.argument_names: tuple[Any, ...] = ()  # plain names among the positional arguments of the call at hand
        # Device values, with their text, in the f-string that is an argument of a call; None outside of one.
        self._described: list[tuple[Any, str]] | None = None
        self.conditional = ConditionalBindings(walker)
        self._table = table(self)

    # -- calls -----------------------------------------------------------------------------------------------------
    def call(self, names: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`function(*args, **kwargs)`.

        names: which arguments are plain names: a name or None per positional one, and (keyword, name) pairs.
        """
        walker = self.walker
        if device_scope(walker) is not None or walker.builder.guard:
            for value in (getattr(function, "__self__", None), *args, *kwargs.values()):
                check_used_up(walker, value)
            owner = _changed_by(function, args, kwargs)
            if owner is not None:
                check_change(walker, owner)
            said = owner is not None and all_plain(args) and not kwargs
            if type(function) is not Macro and not said:
                return watched(walker, function, args, kwargs, lambda: self._called(names, function, args, kwargs))
        return self._called(names, function, args, kwargs)

    def _called(self, names: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        walker = self.walker
        if function in TAKE_FUNCTIONS:
            args = tuple(map(self.meaning, args))
            kwargs = {name: self.meaning(value) for name, value in kwargs.items()}
        special = self._table.get(id(function))
        if special is not None:
            self.argument_names = names[0] if names else ()
            return special(*args, **kwargs)
        if type(function) is Macro:
            return walker.inline(function, args, kwargs, names)
        if isinstance(getattr(function, "__self__", None), str) and getattr(function, "__name__", "") in FORMATTING:
            found = device_values(*args, kwargs)
            if found:
                raise Refusal(text_needed(written_of(found[0])))
        if isinstance(function, GETTERS):
            function = checked_getter(function)
        result = function(*args, **kwargs)
        refuse_objects_of_compiler(result)
        return result

    def meaning(self, value: Any) -> Any:
        """What a function that another one will call means in a kernel; any other value as it is."""
        if isinstance(value, GETTERS):
            return checked_getter(value)
        return self._table.get(id(value), value)

    def call_with_texts(self, names: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`call` with f-strings among the arguments."""
        for text in (*args, *kwargs.values()):
            if type(text) is DescribingText:
                if function is builtins.print:
                    raise Refusal(say.PrintOfDeviceValue(what=described(text.value), name=text.written))
                place = ast.Constant("")
                place.lineno, place.col_offset, place.end_lineno, place.end_col_offset = text.place
                raise Refusal(text_needed(text.written), place)
        return self.call(names, function, *args, **kwargs)

    def unpacked(self, iterable: Any) -> Any:
        """The operand of a `*`: an iterator must end."""
        return self.bounded(iterable)

    def bounded(self, iterable: Any) -> Any:
        """An iterable of the user with the limit on items put on it; a device loop is refused; what certainly ends, or
        is no iterable, as it is.
        """
        if isinstance(iterable, DeviceLoop):
            raise Refusal(say.RuntimeComprehensionBound())
        kind = type(iterable)
        iterator = hasattr(kind, "__next__")
        if is_device(iterable) or not iterator and (kind in FINITE or kind.__module__ == "numpy"):
            return iterable
        if not iterator and not hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__"):
            return iterable
        check_used_up(self.walker, iterable)
        items = self.walker.replayed(iterable)
        return self._limited(noting(self.walker, iterable, items) if iterator else items)

    def _limited(self, items: Iterable[Any]) -> Any:
        limit = self.walker.limits.items
        for number_of_item, item in enumerate(items):
            if number_of_item >= limit:
                raise Refusal(say.EndlessIterable(limit=f"{limit:,}"))
            yield item

    def grown(self, op: str, left: Any, right: Any) -> Any:
        """`**` and `<<`: of Python integers a short text may ask for more digits than memory holds."""
        return grown(op, left, right, self.walker.limits.bits)

    # -- logic -----------------------------------------------------------------------------------------------------
    def and_(self, value: Any, *rest: Callable[[], Any]) -> Any:
        for at, thunk in enumerate(rest):
            condition = truth(value)
            if isinstance(condition, Value):
                bound: Any
                other, bound = self.conditional.guarded(lambda thunk=thunk, at=at: self.and_(thunk(), *rest[at + 1 :]))
                result = self.select(condition, other, value, "and")
                del other
                self.conditional.join(condition, bound, {})
                return result
            if not condition:
                return value
            value = thunk()
        return value

    def or_(self, value: Any, *rest: Callable[[], Any]) -> Any:
        for at, thunk in enumerate(rest):
            condition = truth(value)
            if isinstance(condition, Value):
                bound: Any
                other, bound = self.conditional.guarded(lambda thunk=thunk, at=at: self.or_(thunk(), *rest[at + 1 :]))
                result = self.select(condition, value, other, "or")
                del other
                self.conditional.join(condition, {}, bound)
                return result
            if condition:
                return value
            value = thunk()
        return value

    def any_of(self, items: Iterable[Any], negated: bool = False) -> Any:
        """Whether one of the items is true, as a bool or Value; negated: whether one is false.

        Items are taken until one decides, as Python does: what follows the first device value runs under a condition.
        A flat fold: a chain of thousands must not nest.
        """
        result: Any = False
        iterator, end = iter(items), object()
        while True:
            bound: dict[str, Any] = {}
            if isinstance(result, Value):
                item, bound = self.conditional.guarded(lambda: next(iterator, end))
            else:
                item = next(iterator, end)
            if item is end:
                return result
            condition, item = self.not_(item) if negated else truth(item), None
            if isinstance(condition, Value) and isinstance(result, Value):
                before = result
                x, y = result.use(), condition.use()
                node = tir.if_then_else(x, as_type(True, "bool"), y) if condition.reads else tir.Or(x, y)
                result, condition = derived(node, "bool", result, condition), None
                self.conditional.join(before, {}, bound)
            elif isinstance(condition, Value):
                result = condition
            else:
                if isinstance(result, Value):
                    self.conditional.join(result, {}, bound)
                if condition:
                    return True

    def not_(self, value: Any) -> Any:
        condition = truth(value)
        return derived(tir.Not(condition.use()), "bool", condition) if isinstance(condition, Value) else not condition

    def pick(self, test: Any, then: Callable[[], Any], other: Callable[[], Any], evaluated: Any) -> Any:
        """`then if test else other`.  evaluated: names that the test has bound where true, and where false."""
        condition = truth(test)
        if not isinstance(condition, Value):
            return then() if condition else other()
        first, bound = self.conditional.guarded(then, evaluated[0])
        second, bound_otherwise = self.conditional.guarded(other, evaluated[1])
        result = self.select(condition, first, second, "if")
        del first, second
        self.conditional.join(condition, bound, bound_otherwise)
        return result

    def select(self, condition: Value, then: Any, other: Any, word: str) -> Any:
        """`then` where the condition holds, else `other`.  word: the operator that it comes from."""
        then, other = number(then) if not is_device(then) else then, number(other) if not is_device(other) else other
        for value in (then, other):
            if word != "if" and isinstance(value, (Buffer, Region)):
                truth(value)  # an operand of `and` and `or` is a condition
            if not isinstance(value, (Value, bool, int, float)):
                what = "an object that is no number" if value is None else described(value)
                remedy = "use an `if` statement, or choose with a compile-time condition"
                raise Refusal(
                    say.CompileTimeObjectChanged(what=f"{what} is chosen by a device condition", remedy=remedy)
                )
        if isinstance(then, Value) or isinstance(other, Value):
            x, y, dtype = join_operands(then, other)
        else:
            kind = join_rebound(kind_of(then), kind_of(other))
            dtype = dtype_of_kind(kind, max(then, other, key=abs))  # type: ignore[arg-type]
            x, y = as_type(then, dtype), as_type(other, dtype)
        # Compilers may evaluate both sides of And, Or and Select: a side that loads needs the lazy form.
        guarded = other if word == "or" else then
        lazy = isinstance(guarded, Value) and guarded.reads
        plain = dtype == "bool" and word != "if"
        test = condition.use()
        if plain and word == "and":
            node = tir.if_then_else(test, x, as_type(False, "bool")) if lazy else tir.And(test, x)
        elif plain:
            node = tir.if_then_else(test, as_type(True, "bool"), y) if lazy else tir.Or(test, y)
        else:
            node = tir.if_then_else(test, x, y)
        return derived(node, dtype, condition, then, other)

    def compare(self, operators: tuple[str, ...], left: Any, *thunks: Callable[[], Any]) -> Any:
        """Chains, `in` and `is`; the operands after the first are evaluated only while the chain holds."""

        def rest(value: Any, at: int) -> Any:
            other = thunks[at]()
            result = self.relation(operators[at], value, other)
            return result if at + 1 == len(thunks) else self.and_(result, lambda: rest(other, at + 1))

        return rest(left, 0)

    def relation(self, op: str, left: Any, right: Any) -> Any:
        if op in COMPARE:
            return PYTHON[op](left, right)
        if op in ("is", "is not"):
            numbers = (Value, bool, int, float)
            if isinstance(left, numbers) and isinstance(right, numbers) and (is_device(left) or is_device(right)):
                raise Refusal(say.IdentityOfDeviceValues(word=op, operator="==" if op == "is" else "!="))
            return (left is right) == (op == "is")
        return self.membership(op, left, right)

    def membership(self, op: str, left: Any, right: Any) -> Any:
        if is_device(right):
            remedy = "compare the elements in a loop"
            raise Refusal(say.NotIterable(what=f"{described(right)} on the right of `{op}`", remedy=remedy))
        if isinstance(right, DeviceLoop):
            found = self.in_range(left, right)
            return found if op == "in" else self.not_(found)
        if isinstance(left, Value) or (
            isinstance(right, (list, tuple, set, frozenset, dict)) and any(isinstance(i, Value) for i in right)
        ):
            if isinstance(right, (str, bytes)):
                raise Refusal(say.RuntimeIndexIntoPythonObject(what="a string"))
            found = self.any_of(left == item for item in self.bounded(right))
        else:
            found = left in (right if hasattr(type(right), "__contains__") else self.bounded(right))
        return found if op == "in" else self.not_(found)

    def in_range(self, value: Any, loop: DeviceLoop) -> Any:
        """`value in range(...)` with bounds that are known only when the kernel runs."""
        number = value.dtype if isinstance(value, Value) else type(value).__name__
        start, stop, step = loop.dims[0]
        if loop.kind != "serial" or len(loop.dims) > 1 or isinstance(step, Value) or "int" not in number:
            remedy = "compare with the bounds: `start <= x < stop`"
            raise Refusal(say.BadArgument(problem="`in` of a `range` with runtime bounds", remedy=remedy))
        inside = (lambda: value < stop) if step > 0 else (lambda: value > stop)
        found = self.and_(start <= value if step > 0 else start >= value, inside)
        return found if abs(step) == 1 else self.and_(found, lambda: (value - start) % abs(step) == 0)

    # -- names and comprehensions ----------------------------------------------------------------------------------
    def walrus(self, name: str, value: Any, place: tuple[int, int, int, int]) -> Any:
        return self.walker.bind_walrus(name, value, place)

    def formatted(self, value: Any, written: str) -> Any:
        """A value inside an f-string.  written: its text."""
        found = device_values(value)
        if not found:
            return value
        if not is_device(value):
            written = written_of(found[0])
        if self._described is None:
            raise Refusal(text_needed(written))
        self._described.append((found[0], written))
        return Blank()

    def text_argument(self, text: Callable[[], str], place: tuple[int, int, int, int]) -> Any:
        """An f-string as an argument of a call."""
        around, self._described = self._described, []
        try:
            made = text()
            return DescribingText(*self._described[0], place) if self._described else made
        finally:
            self._described = around

    def attribute(self, value: Any, name: str) -> Any:
        """`value.name`, where the name is one of the compiler's for a device value."""
        if is_hidden(value, name):
            raise Refusal(no_attribute(value, name))
        return getattr(value, name)

    def items(self, iterable: Any, line: int, target: Any, first: bool) -> Any:
        """The iterable of a comprehension; each item is a turn in the expansion record."""
        if isinstance(iterable, DeviceLoop):
            raise Refusal(say.RuntimeComprehensionBound())
        if is_device(iterable) or isinstance(iterable, (int, float)):
            raise Refusal(say.NotIterable(what=described(iterable), remedy=loop_over(iterable)))
        if not hasattr(type(iterable), "__iter__") and not hasattr(type(iterable), "__getitem__"):
            raise Refusal(say.NotIterable(what=described(iterable), remedy="iterate over a list or a tuple"))
        walker = self.walker
        check_used_up(walker, iterable)
        statement = walker.statement
        taken = walker.replayed(iterable)
        return walker.record.comprehension(
            noting(walker, iterable, taken) if hasattr(type(iterable), "__next__") else taken,
            Clause(line, target, first),
            warn=lambda message: walker.report(Refusal(message), statement),
        )

    def made(self, element: Any) -> Any:
        """An element of a generator, which its consumer gets now."""
        self.walker.record.made()
        return element

    def filter(self, value: Any) -> bool:
        condition = truth(value)
        if isinstance(condition, Value):
            raise Refusal(say.RuntimeComprehensionFilter())
        return condition


def _changed_by(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The compile-time object that a call changes in place, or None."""
    if type(kwargs.get("out")) is np.ndarray:
        return kwargs["out"]
    if (function is setattr or function is delattr) and args:
        return args[0]
    if getattr(function, "__name__", None) not in MUTATORS:
        return None
    owner = getattr(function, "__self__", None)
    if owner is None and args and hasattr(function, "__objclass__"):  # list.append(items, x)
        owner = args[0]
    return (
        owner if type(owner).__module__ in ("builtins", "collections", "array", "numpy") and owner is not None else None
    )
