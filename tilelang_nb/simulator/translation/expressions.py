"""TIR expressions -> NumPy expressions, one method per class of node.

Integers are exact: uniform ones are Python ints that are wrapped wherever their bounds do not prove that they fit,
array ones wrap in NumPy.  Uniform floats are NumPy scalars, so that one operation rounds once in every type.
"""

from __future__ import annotations

import math
from typing import Any

from tvm.ir.prim import expr as pe

from .inspection import constant, reads_memory
from .values import NUMPY, Unsupported, Value, dtype_of, integer_range, is_float, is_integer
from .writer import Writer


class Expressions(Writer):
    """`expression(node) -> Value`."""

    names: dict[Any, Value]

    def expression(self, node: Any) -> Value:
        method = getattr(self, "expression_" + type(node).__name__, None)
        if method is None:
            raise Unsupported(f"expression {type(node).__name__}: {node}", self.span)
        return method(node)

    # ---- leaves ----
    def expression_IntImm(self, node: Any) -> Value:
        dtype, number = dtype_of(node), int(node.value)
        if dtype == "bool":
            return Value(str(bool(number)), dtype, atom=True, low=int(bool(number)), high=int(bool(number)))
        low, high = integer_range(dtype)
        number = (number - low) % (high - low + 1) + low
        return Value(str(number) if number >= 0 else f"({number})", dtype, atom=True, low=number, high=number)

    def expression_FloatImm(self, node: Any) -> Value:
        dtype, number = dtype_of(node), float(node.value)
        text = repr(number) if math.isfinite(number) else f"float('{number}')"
        return Value(self.at_depth("c", f"{NUMPY[dtype]}({text})", 0), dtype, atom=True)

    def expression_Var(self, node: Any) -> Value:
        if node not in self.names:
            raise Unsupported(f"variable {node.name} is used where it is not defined", self.span)
        return self.names[node]

    def expression_Let(self, node: Any) -> Value:
        self.names[node.var] = self.expression(node.value)
        return self.expression(node.body)

    def typed(self, value: Value) -> str:
        """Text of a value whose NumPy type is fixed: a Python number would let the other operand decide."""
        return f"{NUMPY[value.dtype]}({value.text})" if value.axes == 0 and not is_float(value.dtype) else value.text

    # ---- sums ----
    def terms(self, node: Any, factor: int = 1) -> list[tuple[int, Value]]:
        """An integer expression as a sum of factor * value."""
        if is_integer(dtype_of(node)):
            if isinstance(node, pe.Add):
                return self.terms(node.a, factor) + self.terms(node.b, factor)
            if isinstance(node, pe.Sub):
                return self.terms(node.a, factor) + self.terms(node.b, -factor)
            if isinstance(node, pe.Mul):
                for side, other in ((node.a, node.b), (node.b, node.a)):
                    number = constant(other)
                    if number is not None:
                        return self.terms(side, factor * number)
            number = constant(node)
            if number is not None:
                return [(factor * number, Value("1", dtype_of(node), atom=True, low=1, high=1))]
            if node in self.shifted:
                return self.terms(self.shifted[node][0], factor) + [(factor, self.shifted[node][1])]
        return [(factor, self.expression(node))]

    def sum_of(self, terms: list[tuple[int, Value]], dtype: str) -> Value:
        """The sum of factor * value, invariants first, so that a loop only adds what changes in it."""
        number = sum(factor for factor, value in terms if value.text == "1" and value.atom)
        varying = [(factor, value) for factor, value in terms if not (value.text == "1" and value.atom) and factor]
        uniform = [term for term in varying if term[1].axes == 0]
        arrays = sorted((term for term in varying if term[1].axes), key=lambda term: (not term[1].pure, term[1].depth))
        result: Value | None = None
        for factor, value in arrays:
            result = self._plus(result, self._scaled(factor, value, dtype), dtype)
        if uniform or number or result is None:
            result = self._plus(result, self._uniform_sum(uniform, number, dtype), dtype)
        assert result is not None
        return result

    def _scaled(self, factor: int, value: Value, dtype: str) -> Value:
        smallest, largest = integer_range(dtype)
        factor = (factor - smallest) % (largest - smallest + 1) + smallest  # modulo 2 ** bits: the product wraps anyway
        if factor == 1:
            return value
        low, high = _bounds(factor, value)
        if factor == -1 and not dtype.startswith("u"):
            return self.integer(f"(-{value.text})", dtype, low, high, value)
        return self.integer(f"({value.text} * {factor})", dtype, low, high, value)

    def _plus(self, a: Value | None, b: Value, dtype: str) -> Value:
        if a is None:
            return b
        if b.atom and b.text == "0":
            return a
        low = None if a.low is None or b.low is None else a.low + b.low
        high = None if a.high is None or b.high is None else a.high + b.high
        return self.integer(f"({a.text} + {b.text})", dtype, low, high, a, b)

    def _uniform_sum(self, terms: list[tuple[int, Value]], number: int, dtype: str) -> Value:
        low = high = number
        known = True
        text = ""
        for factor, value in terms:
            bounds = _bounds(factor, value)
            if bounds[0] is None or bounds[1] is None:
                known = False
            else:
                low, high = low + bounds[0], high + bounds[1]
            sign = "-" if factor < 0 else "+" if text else ""
            text += sign + (value.text if abs(factor) == 1 else f"{abs(factor)}*{value.text}")
        if not terms:
            smallest, largest = integer_range(dtype)
            number = (number - smallest) % (largest - smallest + 1) + smallest
            return Value(str(number) if number >= 0 else f"({number})", dtype, atom=True, low=number, high=number)
        if number:
            text += f"{'-' if number < 0 else '+'}{abs(number)}"
        values = [value for _, value in terms]
        if len(terms) == 1 and terms[0][0] == 1 and not number:
            return values[0]
        return self.integer(f"({text})", dtype, low if known else None, high if known else None, *values)

    def expression_Add(self, node: Any) -> Value:
        dtype = dtype_of(node)
        if not is_integer(dtype):
            return self._float_binary(node, "+" if isinstance(node, pe.Add) else "-")
        return self.sum_of(self.terms(node), dtype)

    expression_Sub = expression_Add

    # ---- products and quotients ----
    def _float_binary(self, node: Any, operator: str) -> Value:
        a, b = self.expression(node.a), self.expression(node.b)
        return self.make(f"({a.text} {operator} {b.text})", dtype_of(node), a, b)

    def expression_Mul(self, node: Any) -> Value:
        dtype = dtype_of(node)
        if not is_integer(dtype):
            return self._float_binary(node, "*")
        if constant(node.a) is not None or constant(node.b) is not None:
            return self.sum_of(self.terms(node), dtype)
        a, b = self.expression(node.a), self.expression(node.b)
        low = high = None
        if None not in (a.low, a.high, b.low, b.high):
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]  # type: ignore[operator]
            low, high = min(corners), max(corners)
        return self.integer(f"({a.text} * {b.text})", dtype, low, high, a, b)

    def expression_FloorDiv(self, node: Any) -> Value:
        dtype = dtype_of(node)
        if not is_integer(dtype):
            return self._float_binary(node, "//")
        a, divisor = self.expression(node.a), constant(node.b)
        if divisor is not None and divisor > 0:
            if divisor == 1:
                return a
            low = None if a.low is None else a.low // divisor
            high = None if a.high is None else a.high // divisor
            shift = f">> {divisor.bit_length() - 1}" if divisor & (divisor - 1) == 0 else f"// {divisor}"
            return self.integer(f"({a.text} {shift})", dtype, low, high, a)
        return self._division("floor_divide", node, a)

    def expression_FloorMod(self, node: Any) -> Value:
        dtype = dtype_of(node)
        if not is_integer(dtype):
            return self._float_binary(node, "%")
        a, divisor = self.expression(node.a), constant(node.b)
        if divisor is not None and divisor > 0:
            if a.within(0, divisor - 1):
                return a
            low, high = 0, divisor - 1
            operation = f"& {divisor - 1}" if divisor & (divisor - 1) == 0 else f"% {divisor}"
            return self.integer(f"({a.text} {operation})", dtype, low, high, a)
        return self._division("floor_modulo", node, a)

    def expression_Div(self, node: Any) -> Value:
        if is_float(dtype_of(node)):
            return self._float_binary(node, "/")
        return self._division("truncating_divide", node, self.expression(node.a))

    def expression_Mod(self, node: Any) -> Value:
        if is_float(dtype_of(node)):
            a, b = self.expression(node.a), self.expression(node.b)
            return self.make(f"np.fmod({a.text}, {b.text})", dtype_of(node), a, b)
        return self._division("truncating_modulo", node, self.expression(node.a))

    def _division(self, function: str, node: Any, a: Value) -> Value:
        b, dtype = self.expression(node.b), dtype_of(node)
        if not self.checks or b.low is not None and b.low > 0 or b.high is not None and b.high < 0:
            return self.integer(f"{function}({a.text}, {b.text})", dtype, None, None, a, b)
        return self._checked(f"S.divided({function}, {a.text}, {b.text}", "division", dtype, a, b)

    def _checked(self, call: str, kind: str, dtype: str, a: Value, b: Value) -> Value:
        """Arithmetic that some operands leave undefined: it stays where it stands, since lanes at work are checked."""
        here = Value("", dtype, depth=self.depth, pure=False)
        return self.integer(f"{call}, {self.mask}, {self.site(kind)})", dtype, None, None, a, b, here)

    # ---- bits ----
    def _bitwise(self, node: Any, operator: str) -> Value:
        a, b = self.expression(node.a), self.expression(node.b)
        low = high = None
        if (
            a.low is not None
            and b.low is not None
            and a.low >= 0
            and b.low >= 0
            and a.high is not None
            and b.high is not None
        ):
            low = 0
            high = min(a.high, b.high) if operator == "&" else (1 << max(a.high, b.high).bit_length()) - 1
        return self.make(f"({a.text} {operator} {b.text})", dtype_of(node), a, b, low=low, high=high)

    def expression_BitwiseAnd(self, node: Any) -> Value:
        return self._bitwise(node, "&")

    def expression_BitwiseOr(self, node: Any) -> Value:
        return self._bitwise(node, "|")

    def expression_BitwiseXor(self, node: Any) -> Value:
        return self._bitwise(node, "^")

    def expression_BitwiseNot(self, node: Any) -> Value:
        a, dtype = self.expression(node.a), dtype_of(node)
        if dtype == "bool":
            return self._not(a)
        return self.integer(f"(~{a.text})", dtype, None, None, a)

    def _shift(self, node: Any, operator: str, function: str) -> Value:
        a, b, dtype = self.expression(node.a), self.expression(node.b), dtype_of(node)
        bits = integer_range(dtype)[1].bit_length()
        if b.within(0, bits - 1):
            low = high = None
            if b.low == b.high and a.low is not None and a.high is not None:
                assert b.low is not None
                low, high = (a.low << b.low, a.high << b.low) if operator == "<<" else (a.low >> b.low, a.high >> b.low)
            return self.integer(f"({a.text} {operator} {b.text})", dtype, low, high, a, b)
        if self.checks:
            call = f"S.shifted({function}, {a.text}, {b.text}, {NUMPY[dtype]}"
            return self._checked(call, f"shift of {dtype}", dtype, a, b)
        return self.integer(f"{function}({a.text}, {b.text}, {NUMPY[dtype]})", dtype, None, None, a, b)

    def expression_LShift(self, node: Any) -> Value:
        return self._shift(node, "<<", "shift_left")

    def expression_RShift(self, node: Any) -> Value:
        return self._shift(node, ">>", "shift_right")

    # ---- comparisons and choices ----
    def _comparison(self, node: Any, operator: str) -> Value:
        a, b = self.expression(node.a), self.expression(node.b)
        return self.make(f"({a.text} {operator} {b.text})", "bool", a, b)

    def expression_EQ(self, node: Any) -> Value:
        return self._comparison(node, "==")

    def expression_NE(self, node: Any) -> Value:
        return self._comparison(node, "!=")

    def expression_LT(self, node: Any) -> Value:
        return self._comparison(node, "<")

    def expression_LE(self, node: Any) -> Value:
        return self._comparison(node, "<=")

    def expression_GT(self, node: Any) -> Value:
        return self._comparison(node, ">")

    def expression_GE(self, node: Any) -> Value:
        return self._comparison(node, ">=")

    def _extremum(self, node: Any, largest: bool) -> Value:
        a, b, dtype = self.expression(node.a), self.expression(node.b), dtype_of(node)
        pick = max if largest else min
        if is_float(dtype):  # fmaxf and fminf return the operand that is a number
            return self.make(f"np.{'fmax' if largest else 'fmin'}({a.text}, {b.text})", dtype, a, b)
        low = None if a.low is None or b.low is None else pick(a.low, b.low)
        high = None if a.high is None or b.high is None else pick(a.high, b.high)
        function = pick.__name__ if a.axes | b.axes == 0 else "np.maximum" if largest else "np.minimum"
        return self.make(f"{function}({a.text}, {b.text})", dtype, a, b, low=low, high=high)

    def expression_Max(self, node: Any) -> Value:
        return self._extremum(node, True)

    def expression_Min(self, node: Any) -> Value:
        return self._extremum(node, False)

    def _not(self, a: Value) -> Value:
        return self.make(f"(not {a.text})" if a.axes == 0 else f"np.logical_not({a.text})", "bool", a)

    def expression_Not(self, node: Any) -> Value:
        return self._not(self.truth(node.a))

    def truth(self, node: Any) -> Value:
        """A condition: a number means "is not zero"."""
        value = self.expression(node)
        return value if value.dtype == "bool" else self.make(f"({value.text} != 0)", "bool", value)

    def _named(self, value: Value) -> Value:
        """A value that is used twice: one that reads memory is computed here, once."""
        if value.atom or value.pure:
            return value
        return Value(self.assign("c", value.text), value.dtype, value.axes, self.depth, False, True)

    def lanes(self, join: str, condition: Value) -> str:
        """Emit the mask of the lanes with ("with") or without ("without") the condition; returns its name."""
        return self.assign("m", f"S.lanes_{join}({self.mask}, {condition.text})")

    def under(self, join: str, condition: Value, node: Any) -> Value:
        """`node` evaluated only by the lanes with or without the condition."""
        outer, self.mask = self.mask, self.lanes(join, condition)
        if join == "with":
            self.count_kept_load(node, condition, outer)
        value = self.expression(node)
        self.mask = outer
        return value

    def _logical(self, node: Any, word: str, function: str, join: str) -> Value:
        a = self.truth(node.a)
        if reads_memory(node.b):  # the right side must not be evaluated where the left one decides
            a = self._named(a)
            b = self.under(join, a, node.b)
        else:
            b = self.expression(node.b)
        if b.dtype != "bool":
            b = self.make(f"({b.text} != 0)", "bool", b)
        text = f"({a.text} {word} {b.text})" if a.axes | b.axes == 0 else f"{function}({a.text}, {b.text})"
        return self.make(text, "bool", a, b)

    def expression_And(self, node: Any) -> Value:
        return self._logical(node, "and", "np.logical_and", "with")

    def expression_Or(self, node: Any) -> Value:
        return self._logical(node, "or", "np.logical_or", "without")

    def choice(self, condition_node: Any, true_node: Any, false_node: Any, dtype: str) -> Value:
        """A conditional expression: each side is evaluated by the lanes that take it."""
        condition = self.truth(condition_node)
        if reads_memory(true_node) or reads_memory(false_node):
            condition = self._named(condition)
            a = self.under("with", condition, true_node)
            b = self.under("without", condition, false_node)
        else:
            a, b = self.expression(true_node), self.expression(false_node)
        low = None if a.low is None or b.low is None else min(a.low, b.low)
        high = None if a.high is None or b.high is None else max(a.high, b.high)
        if condition.axes == 0:
            # where one side is an array, the other one must have its type and methods
            x, y = (a.text, b.text) if a.axes | b.axes == 0 else (self.typed(a), self.typed(b))
            return self.make(f"({x} if {condition.text} else {y})", dtype, condition, a, b, low=low, high=high)
        text = f"np.where({condition.text}, {self.typed(a)}, {self.typed(b)})"
        return self.make(text, dtype, condition, a, b, low=low, high=high)

    def expression_Select(self, node: Any) -> Value:
        return self.choice(node.condition, node.true_value, node.false_value, dtype_of(node))

    # ---- conversions ----
    def expression_Cast(self, node: Any) -> Value:
        return self.cast(self.expression(node.value), dtype_of(node))

    def cast(self, value: Value, dtype: str) -> Value:
        """Conversion as on the device: float to integer truncates and saturates, integers wrap, floats round once."""
        if value.dtype == dtype:
            return value
        if dtype not in NUMPY:
            raise Unsupported(f"conversion to {dtype}", self.span)
        if is_float(dtype):
            if is_float(value.dtype) or value.axes:
                return self.make(f"{value.text}.astype({NUMPY[dtype]})", dtype, value)
            return self.make(f"{self.typed(value)}.astype({NUMPY[dtype]})", dtype, value)
        if dtype == "bool":
            return self.make(f"({value.text} != 0)", dtype, value, low=0, high=1)
        if is_float(value.dtype):
            text = f"saturating_cast({value.text}, {NUMPY[dtype]})"
            return self.make(text if value.axes else f"int({text})", dtype, value)
        smallest, largest = integer_range(dtype)
        fits = value.within(smallest, largest)
        low, high = (value.low, value.high) if fits else (smallest, largest)
        if value.axes:
            return self.make(f"{value.text}.astype({NUMPY[dtype]})", dtype, value, low=low, high=high)
        if value.dtype == "bool":
            return self.make(f"int({value.text})", dtype, value, low=0, high=1)
        if fits:
            return Value(value.text, dtype, 0, value.depth, value.pure, value.atom, low, high)
        return self.make(f"wrap_{dtype}({value.text})", dtype, value, low=low, high=high)


def _bounds(factor: int, value: Value) -> tuple[int | None, int | None]:
    """Bounds of factor * value."""
    if value.low is None or value.high is None:
        return None, None
    return min(factor * value.low, factor * value.high), max(factor * value.low, factor * value.high)
