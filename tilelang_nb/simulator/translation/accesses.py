"""Loads, stores and pointers.

Registers are arrays (register, blocks, threads): an index made of a uniform base and variables of vector loops is a
view of them, made once per function where the base is a constant.  Memory is flat: the address of an access is an
array part, which is computed as far outside as possible, plus a uniform part, so the checks can recognise an address
pattern that they know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .edges import Edges
from .expressions import Expressions
from .inspection import call_name, constant
from .values import BYTES, NUMPY, V_AXIS, AccessDetail, Storage, Unsupported, Value, integer_range


@dataclass(frozen=True)
class VectorAxis:
    """An open loop that runs as an array axis.

    position: counted outward from the blocks.  extent: iterations.  wide: they are parts of one vector access.
    """

    position: int
    extent: int
    wide: bool


class Accesses(Expressions, Edges):
    """Everything that touches a buffer."""

    buffers: dict[Any, Storage]
    vectors: dict[str, VectorAxis]  # name of the axis variable -> its axis

    def once(self, value: Value) -> Value:
        """A value whose text occurs several times: one that reads memory is computed here."""
        if value.pure or value.atom:
            return value
        name = self.assign("i", value.text)
        return Value(name, value.dtype, value.axes, self.depth, False, True, value.low, value.high)

    def storage(self, buffer: Any) -> Storage:
        if buffer not in self.buffers:
            raise Unsupported(f"buffer {buffer.name} is used where it is not allocated", self.span)
        return self.buffers[buffer]

    # ---- registers ----
    def _register_index(self, storage: Storage, indices: list[Any]) -> list[tuple[int, Value]]:
        """Terms of the row-major index."""
        terms: list[tuple[int, Value]] = []
        stride = 1
        for index, extent in zip(reversed(indices), reversed(storage.shape), strict=True):
            terms += self.terms(index, stride)
            stride *= int(extent)
        return terms

    def registers(self, storage: Storage, indices: list[Any], kind: str) -> tuple[str, str, Any]:
        """(text of the registers, text of their initialisation marks, what they are).

        What they are: a list of register numbers if they are known, "view" for other views, else the index array.
        """
        count, name = storage.count, storage.name
        terms = self._register_index(storage, indices)
        axes: dict[int, tuple[int, int]] = {}
        lanes = False
        for factor, value in terms:
            if value.axes:
                axis = self.vectors.get(value.text)
                if axis is None or axis.position in axes:
                    lanes = True
                else:
                    axes[axis.position] = (axis.extent, factor)
        if lanes:
            return "", "", self.once(self.sum_of(terms, "int32"))
        base = self.once(self.sum_of([term for term in terms if term[1].axes == 0], "int32"))
        low = sum(min(0, (extent - 1) * factor) for extent, factor in axes.values())
        high = sum(max(0, (extent - 1) * factor) for extent, factor in axes.values())
        inside = base.within(-low, count - 1 - high)
        shape = tuple(axes.get(position, (1, 0)) for position in range(max(axes, default=-1), -1, -1))
        fixed = base.low if base.low == base.high else None
        start = base.text if fixed is None else str(fixed)
        if not inside:
            site = self.site(kind, storage.label, "local")
            view = f"{base.text}, {shape}, {self.mask}"
            return f"S.window({name}, {view}, {site})", f"S.window({name}_state, {view}, -1)", "view"
        if not axes:
            texts = [f"{array}[{start}]" for array in (name, name + "_state")]
        elif len(axes) == 1 and 0 in axes and axes[0][1] == 1:
            stop = str(fixed + axes[0][0]) if fixed is not None else f"{base.text}+{axes[0][0]}"
            texts = [f"{array}[{start}:{stop}]" for array in (name, name + "_state")]
        else:
            texts = [f"window({array}, {start}, {shape})" for array in (name, name + "_state")]
        if fixed is None:
            return texts[0], texts[1], "view"
        numbers = [fixed]
        for extent, factor in axes.values():
            numbers = [number + factor * step for number in numbers for step in range(extent)]
        return self.at_depth("r", texts[0], storage.depth), texts[1], numbers

    def _load_register(self, storage: Storage, node: Any) -> Value:
        text, state, what = self.registers(storage, list(node.indices), "read")
        axes = 3
        if isinstance(what, Value):
            site = self.site("read", storage.label, "local")
            text = f"S.gather({storage.name}, {what.text}, {self.mask}, {site})"
            state = f"S.gather({storage.name}_state, {what.text}, {self.mask}, -1)"
            axes |= what.axes
        else:
            for factor, value in self._register_index(storage, list(node.indices)):
                axes |= value.axes if factor else 0
        if self.checks and not (isinstance(what, list) and self.initialised(storage.name, what)):
            self.tracked.add(storage.name)
            text = f"S.check_registers({text}, {state}, {self.mask}, {self.site('read', storage.label, 'local')})"
        low, high = integer_range(storage.dtype) if "int" in storage.dtype or storage.dtype == "bool" else (None, None)
        return Value(text, storage.dtype, axes, self.depth, False, False, low, high)

    def _store_register(self, storage: Storage, indices: list[Any], value: str, out: str | None = None) -> None:
        """out: a NumPy call without its last argument that writes the result itself, instead of `value`."""
        name, mask = storage.name, self.mask
        text, state, what = self.registers(storage, indices, "write")
        if isinstance(what, Value):
            self.emit(f"S.scatter({name}, {what.text}, {value}, {mask}, {self.site('write', storage.label, 'local')})")
            self.emit_tracked(name, f"S.scatter({name}_state, {what.text}, True, {mask}, -1)")
            return
        if mask is not None:
            self.emit(f"S.put({text}, {value}, {mask})")
            self.emit_tracked(name, f"S.put({state}, True, {mask})")
        else:
            target = text if text.isidentifier() else None
            if out is not None and target is not None:
                self.emit(f"{out}, out={target})")
            elif target is not None or not text.startswith("S.window"):
                self.emit(f"{target}[...] = {value}" if target else f"{_assignable(text)} = {value}")
            else:
                self.emit(f"S.put({text}, {value}, None)")
            self.emit_tracked(
                name, f"{_assignable(state)} = True" if not state.startswith("S.") else f"S.put({state}, True, None)"
            )
        if isinstance(what, list):
            self.record_initialised(name, what)

    # ---- memory ----
    def address(self, storage: Storage, indices: list[Any]) -> tuple[Value | None, Value, Value | None]:
        """(array part, uniform part, bounds) of the element address inside a buffer.

        Bounds are None where they are proven, else a value that is at run time None (all inside) or `Bounds`.
        """
        arrays: Value | None = None
        uniform: Value | None = None
        inside: list[Value] = []
        parts: list[tuple[Value | None, Value | None]] = []
        stride: Value | None = Value("1", "int64", atom=True, low=1, high=1)
        for position in reversed(range(len(indices))):
            index, extent = indices[position], storage.shape[position]
            if storage.strides:
                stride = self._wide(self.expression(storage.strides[position]))
            assert stride is not None
            terms = self.terms(index)
            varying = [term for term in terms if term[1].axes and term[0]]
            whole: Value | None = None
            if varying:
                part = self.sum_of(varying, "int32" if varying[0][1].dtype != "int64" else "int64")
                smallest, largest = integer_range(part.dtype)
                if not part.within(smallest + 1, largest - 1):  # a partial sum might wrap where the whole does not
                    part, rest = self.expression(index), []
                else:
                    rest = [term for term in terms if not term[1].axes]
                part = self.once(part)
                arrays = self._add_wide(arrays, part, stride)
            else:
                part, rest = None, terms
            if rest:
                whole = self.once(self.sum_of(rest, "int64"))
                uniform = self._add_uniform(uniform, whole, stride)
            self._bound(inside, extent, part, whole)
            parts.append((part, whole))
            if not storage.strides and position:
                stride = self._times(stride, self._wide(self.expression(extent)))
        return arrays, uniform or Value("0", "int64", atom=True, low=0, high=0), self._combined(inside, parts[::-1])

    def _wide(self, value: Value) -> Value:
        return Value(value.text, "int64", value.axes, value.depth, value.pure, value.atom, value.low, value.high)

    def _times(self, a: Value, b: Value) -> Value:
        if a.low == a.high and b.low == b.high and a.low is not None and b.low is not None:
            number = a.low * b.low
            return Value(str(number), "int64", atom=True, low=number, high=number)
        if a.text == "1":
            return b
        return self.make(f"({a.text} * {b.text})", "int64", a, b)

    def _add_wide(self, total: Value | None, part: Value, stride: Value) -> Value:
        """total + part * stride as an array of native indices."""
        wide = self.make(f"native_index({part.text}, {stride.text})", "int64", part, stride)
        return wide if total is None else self.make(f"({total.text} + {wide.text})", "int64", total, wide)

    def _add_uniform(self, total: Value | None, part: Value, stride: Value) -> Value:
        product = self._times(part, stride) if stride.text != "1" else part
        if total is None or (total.low == 0 and total.high == 0):
            return product
        if product.low == 0 and product.high == 0:
            return total
        if (
            total.low == total.high
            and product.low == product.high
            and total.low is not None
            and product.low is not None
        ):
            number = total.low + product.low
            return Value(str(number), "int64", atom=True, low=number, high=number)
        return self.make(f"({total.text} + {product.text})", "int64", total, product)

    def _bound(self, inside: list[Value], extent: Any, part: Value | None, rest: Value | None) -> None:
        size = constant(extent)
        low = (part.low if part and part.low is not None else 0) + (rest.low if rest and rest.low is not None else 0)
        high = (part.high if part and part.high is not None else 0) + (
            rest.high if rest and rest.high is not None else 0
        )
        known = all(v is None or (v.low is not None and v.high is not None) for v in (part, rest))
        if known and size is not None and low >= 0 and high < size:
            return
        limit = self.expression(extent)
        offset = rest or Value("0", "int64", atom=True)
        if part is None:
            inside.append(self.make(f"inside_uniform({offset.text}, {limit.text})", "bool", offset, limit))
            return
        span = self.make(f"span_of({part.text})", "bool", part)
        span = Value(span.text, "bool", 0, span.depth, span.pure, span.atom)
        text = f"inside({part.text}, {span.text}, {offset.text}, {limit.text})"
        inside.append(self.make(text, "bool", part, span, offset, limit))

    def _combined(self, inside: list[Value], parts: list[tuple[Value | None, Value | None]]) -> Value | None:
        if not inside:
            return None
        used = [value for pair in parts for value in pair if value is not None]
        index = "".join(f"({part.text if part else 'None'}, {rest.text if rest else '0'}), " for part, rest in parts)
        checks = "".join(value.text + ", " for value in inside)
        return self.make(f"bounds_of(({checks}), ({index}))", "bool", *inside, *used)

    def _point(self, storage: Storage, indices: list[Any]) -> tuple[str, int]:
        """(arguments that name the elements for the machine, axes)."""
        if len(indices) != len(storage.shape):
            raise Unsupported(
                f"{len(indices)} indices for the {len(storage.shape)} dimensions of {storage.label}", self.span
            )
        arrays, uniform, inside = self.address(storage, indices)
        axes = (arrays.axes if arrays else 0) | uniform.axes
        bounds = inside.text if inside else "None"
        if storage.space == "global":
            return f"{storage.name}, {arrays.text if arrays else 'None'}, {uniform.text}, {bounds}", axes
        size = BYTES[storage.dtype]
        if storage.base % size:
            raise Unsupported(
                f"{storage.label} starts at byte {storage.base}, which its type {storage.dtype} cannot", self.span
            )
        first = storage.base // size
        start = self._add_uniform(
            uniform, Value(str(first), "int64", atom=True, low=first, high=first), Value("1", "int64")
        )
        return f"{NUMPY[storage.dtype]}, {arrays.text if arrays else 'None'}, {start.text}, {bounds}", axes | 2

    def access_site(self, kind: str, storage: Storage) -> int:
        """Site of a memory access.  Remembers its buffer, and the axis that may be one wide access."""
        site = self.site(kind, storage.label, storage.space)
        wide = next((axis for axis in self.vectors.values() if axis.wide), None)
        known = self.site_details.setdefault(
            site, AccessDetail(storage, wide.position, wide.extent) if wide else AccessDetail(storage)
        )
        if known.wide_extent == 1 and wide:
            self.site_details[site] = AccessDetail(storage, wide.position, wide.extent)
        return site

    def expression_TensorLoad(self, node: Any) -> Value:
        storage, indices = self.storage(node.source), list(node.indices)
        if storage.space == "local":
            return self._load_register(storage, node)
        arguments, axes = self._point(storage, indices)
        site = self.access_site("read", storage)
        text = f"S.load_{storage.space}({arguments}, {self.mask}, {site})"
        if self.peeking:
            text = f"S.peek_{storage.space}({arguments})"
        bounds = (
            (0, 1)
            if storage.dtype == "bool"
            else integer_range(storage.dtype)
            if "int" in storage.dtype
            else (None, None)
        )
        return Value(text, storage.dtype, axes, self.depth, False, False, *bounds)

    def store(self, buffer: Any, indices: list[Any], value: Value) -> None:
        """Emit buffer[indices] = value."""
        storage = self.storage(buffer)
        if storage.space == "local":
            return self._store_register(storage, indices, value.text)
        arguments, _ = self._point(storage, indices)
        site = self.access_site("write", storage)
        self.emit(f"S.store_{storage.space}({arguments}, {self.typed(value)}, {self.mask}, {site})")

    # ---- pointers ----
    def pointer_load(self, node: Any) -> Any:
        """The buffer load under an `address_of`."""
        while call_name(node) in ("tirx.cuda.cvta_generic_to_shared", "tirx.reinterpret"):
            node = node.args[0]
        if call_name(node) == "tirx.address_of":
            return node.args[0]
        raise Unsupported(f"pointer {node}", self.span)

    def pointer(self, node: Any) -> tuple[Any, Value]:
        """(buffer, byte offset inside the shared window of the block or inside the global array)."""
        name = call_name(node)
        if name in ("tirx.cuda.cvta_generic_to_shared", "tirx.reinterpret"):
            return self.pointer(node.args[0])
        if name == "tirx.address_of":
            buffer, storage = node.args[0].source, self.storage(node.args[0].source)
            element = self._flat(storage, list(node.args[0].indices))
        elif name == "tirx.tvm_access_ptr":
            buffer = node.args[1].args[0]
            storage, element = self.storage(buffer), self.expression(node.args[2])
        elif name == "tirx.buffer_data":
            buffer, element = node.args[0], Value("0", "int32", atom=True, low=0, high=0)
            storage = self.storage(buffer)
        elif name in ("tirx.ptr_byte_offset", "tirx.ptx.addr"):
            buffer, start = self.pointer(node.args[0])
            return buffer, self.sum_of([(1, start), *self.terms(node.args[1])], "int32")
        else:
            raise Unsupported(f"pointer {node}", self.span)
        base = Value("1", "int32", atom=True, low=1, high=1)
        return buffer, self.sum_of([(BYTES[storage.dtype], element), (storage.base, base)], "int32")

    def _flat(self, storage: Storage, indices: list[Any]) -> Value:
        """Row-major element index as one value."""
        terms: list[tuple[int, Value]] = []
        stride = 1
        for index, extent in zip(reversed(indices), reversed(storage.shape), strict=True):
            terms += self.terms(index, stride)
            size = constant(extent)
            stride *= size if size is not None else 1
        return self.sum_of(terms, "int32")

    def axis_bit(self, axis: VectorAxis) -> int:
        return V_AXIS << axis.position


def _assignable(text: str) -> str:
    return text if text.endswith("]") else f"{text}[...]"
