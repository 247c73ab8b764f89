"""Binding of a call's arguments to the parameters of a kernel: checks (TL301), shape variables, and the memory a
launch uses.

A launch works on arrays in the order of memory that the kernel assumes: row-major without gaps for `T.Tensor`, the
annotated strides for `T.StridedTensor`.  Arrays of that form are used where they are.  Other arrays of the host
(transposed, reversed, sliced, repeated, byte-swapped, misaligned) are copied in, and copied back where the kernel
writes them; arrays in device memory must have that form.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import with_article
from .argument_types import array_of_list, check_type
from .device_arrays import DeviceArray
from .host_arrays import PLACEHOLDER, NoHostArray, follows_autograd, host_array, host_dtype
from .memory import overlaps_itself, same_elements, share_memory
from .misfits import Collection, mismatch
from .pointed_arrays import pointed_array
from .scalars import scalar
from .symbols import Symbols


@dataclass(frozen=True)
class Binding:
    """The arguments of one launch.

    values: for each parameter by name, the array or number that the launch works on.
    copied: pairs (the caller's array, the copy the launch works on) to be written back.
    outputs: shape and type by name of the tensors that the caller does not pass, in the order in which they are
    returned; who launches makes them.
    """

    values: dict[str, Any]
    copied: tuple[tuple[np.ndarray, np.ndarray], ...]
    outputs: dict[str, tuple[tuple[int, ...], np.dtype]]
    symbols: Symbols

    def write_back(self) -> None:
        """Give the caller what the launch wrote into copies."""
        for original, copy in self.copied:
            original[...] = copy


def bind(
    parameters: Sequence[Any],
    written: frozenset[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    outputs: tuple[int, ...] = (),
    read: Callable[[Any], Any] = host_array,
) -> Binding:
    """Bind a call.  Misfits (TL301) name every parameter that gets nothing or what does not fit, what it takes and what
    was given.

    written: names of the parameters that the kernel writes.  outputs: positions of parameters that the caller does
    not pass.  read: makes an array of an argument, of NumPy or a `DeviceArray`; NoHostArray where it is none.
    """
    taken = [parameter for index, parameter in enumerate(parameters) if index not in outputs]
    names = [parameter.name for parameter in taken]
    mistakes = Collection()
    given = assign(taken, written, args, kwargs, mistakes, [parameters[index].name for index in outputs])
    symbols = Symbols()
    arrays: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for parameter in taken:
        if parameter.name not in given:
            continue
        with mistakes.collecting():
            if parameter.kind == "scalar":
                values[parameter.name] = _read(parameter, scalar, given[parameter.name])
            else:
                arrays[parameter.name] = _read(parameter, read, given[parameter.name], parameter.name in written)
    pointed = any(parameter.pointed for parameter in taken)
    if pointed:
        _bind_numbers(taken, values, symbols)
    for parameter in taken if pointed else ():
        if parameter.pointed and parameter.name in arrays:
            with mistakes.collecting():
                arrays[parameter.name] = pointed_array(parameter, arrays[parameter.name], symbols)
    tensors = [parameter for parameter in taken if parameter.name in arrays and parameter.name not in mistakes]
    shapes = _check_shapes(tensors, arrays, symbols, mistakes)
    for parameter in tensors:
        name, array = parameter.name, arrays[parameter.name]
        with mistakes.collecting():
            check_type(parameter, array, shapes.get(name, array.shape), name in written)
        if name in mistakes:
            continue
        with mistakes.collecting():
            _check_strides(parameter, array, symbols)
            if name in written:
                _check_writable(parameter, array)
            if isinstance(array, DeviceArray):
                _check_order(parameter, array)
    mistakes.raise_if_any(names)
    copied = _place(tensors, arrays, written, symbols, values, mistakes)
    mistakes.raise_if_any(names)
    made = {parameters[index].name: _output(parameters[index], symbols) for index in outputs}
    return Binding({p.name: values[p.name] for p in parameters if p.name in values}, copied, made, symbols)


def uninitialised(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Memory that no one wrote: NaN in float types, all bits set in integers, so that reading it shows."""
    array = np.empty(shape, dtype)
    if dtype == np.bool_:
        array.fill(True)
    else:
        array.reshape(-1).view(np.uint8).fill(0xFF)
    return array


def expected_of(parameter: Any) -> str:
    """What a parameter takes, `a float32 tensor of shape (n, 64)`."""
    if parameter.kind == "eager":
        return "an argument"
    if parameter.kind == "scalar":
        return f"a number ({parameter.dtype})"
    return f"{with_article(parameter.dtype)} tensor of shape {Symbols().written(parameter.shape)}"


def assign(
    taken: Sequence[Any],
    written: frozenset[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    mistakes: Collection,
    returned: Sequence[str] = (),
) -> dict[str, Any]:
    """Arguments by parameter name, by the rules of a Python call; what breaks them is collected.

    returned: parameters that the call does not take.
    """
    names = [parameter.name for parameter in taken]
    takes = f"the kernel takes {', '.join(names) or 'no arguments'}"
    if returned:
        takes += f"; {', '.join(returned)} {'is' if len(returned) == 1 else 'are'} returned"
    if len(args) > len(names):
        mistakes.add(say.TooManyArguments("", _count(len(names), "argument"), f"{len(args)}", takes))
    given = dict(zip(names, args))
    meant = set()  # parameters whose name the call misspells
    for name, value in kwargs.items():
        if name in given:
            mistakes.add(say.RepeatedArgument(name, "one value", "two, by position and by name", f"drop `{name}=`"))
        elif name not in names:
            near = near_names(name, [other for other in names if other not in given])
            meant.update(near)
            remedy = f"did you mean `{near[0]}`?" if near else takes
            mistakes.add(say.UnknownArgument(name, "a parameter", "one by name", remedy))
        else:
            given[name] = value
    for parameter in taken:
        if parameter.name not in given and parameter.default is not None:
            given[parameter.name] = parameter.default
        if parameter.name not in given and parameter.name not in meant:
            remedy = takes
            if parameter.name in written and all(isinstance(extent, int) for extent in parameter.shape):
                memory = f'{parameter.name} = np.empty({Symbols().written(parameter.shape)}, "{parameter.dtype}")'
                remedy = f"the kernel writes it, so pass an array to write into: `{memory}`"
            mistakes.add(say.MissingArgument(parameter.name, expected_of(parameter), "nothing", remedy))
    return given


def near_names(name: str, names: Sequence[str]) -> list[str]:
    """The parameter that a misspelt name means, if there is one."""
    alike = [other for other in names if other.lower() == name.lower()]
    return alike[:1] or difflib.get_close_matches(name, names, 1)


def _read(parameter: Any, reader: Callable[..., Any], given: Any, written: bool = False) -> Any:
    if written and follows_autograd(given):
        raise written_past_autograd(parameter.name)
    try:
        return reader(given, parameter.dtype) if parameter.kind == "scalar" else reader(given)
    except NoHostArray as error:
        remedy = error.remedy
        if isinstance(given, (list, tuple)) and parameter.kind != "scalar":
            remedy = array_of_list(parameter, written)
        elif parameter.kind != "scalar" and parameter.pointed and isinstance(given, int):
            remedy = "pass the array itself, not its address: its size is checked"
        raise mismatch(parameter.name, expected_of(parameter), error.given, remedy) from None


def _bind_numbers(taken: Sequence[Any], values: Mapping[str, Any], symbols: Symbols) -> None:
    """The integers of a call, of which shapes of pointed arrays are made."""
    for parameter in taken:
        if parameter.kind == "scalar" and parameter.name in values:
            number = values[parameter.name]
            if isinstance(number, (int, np.integer)):
                symbols.values[parameter.var], symbols.origins[parameter.var] = (
                    int(number),
                    f"argument {parameter.name}",
                )


def _check_shapes(
    tensors: list[Any], arrays: dict[str, Any], symbols: Symbols, mistakes: Collection
) -> dict[str, tuple[int, ...]]:
    """Bind the shape variables and collect what does not agree; the shapes that the tensors should have, as far as they
    are known.
    """
    right = []
    for parameter in tensors:
        array = arrays[parameter.name]
        if array.ndim == len(parameter.shape):
            right.append(parameter)
            continue
        dimensions = _count(len(parameter.shape), "dimension")
        expected = f"{dimensions}, shape {symbols.written(parameter.shape)}"
        given = f"{_count(array.ndim, 'dimension')}, shape {array.shape}"
        remedy = f"pass an array of {dimensions}"
        sizes = [extent for extent in map(symbols.evaluate, parameter.shape) if extent is not None]
        if len(sizes) == len(parameter.shape) and math.prod(sizes) == array.size and array.flags.c_contiguous:
            remedy = f"pass `{PLACEHOLDER}.reshape({tuple(sizes)})`"
        mistakes.add(say.ArgumentMismatch(parameter.name, expected, given, remedy))
    _bind_symbols(right, arrays, symbols, mistakes)
    known = {}
    for parameter in right:
        shape = [symbols.evaluate(dimension) for dimension in parameter.shape]
        if None in shape and mistakes:
            continue  # the size may be missing because of them
        with mistakes.collecting():
            if parameter.name not in mistakes:
                _check_shape(parameter, arrays[parameter.name], symbols)
        if None not in shape:
            known[parameter.name] = tuple(extent for extent in shape if extent is not None)
    return known


def _bind_symbols(tensors: list[Any], arrays: dict[str, Any], symbols: Symbols, mistakes: Collection) -> None:
    """Give every shape variable a value: those that stand alone first, then the ones inside sums and products.

    Of several values for one variable it takes the one that most arrays have, of equally many the first.
    """
    votes: dict[Any, Counter[int]] = {}
    for parameter in tensors:
        for dimension, extent in zip(parameter.shape, arrays[parameter.name].shape):
            if type(dimension).__name__.endswith("Var"):
                votes.setdefault(dimension, Counter())[extent] += 1
    chosen = {dimension: extents.most_common(1)[0][0] for dimension, extents in votes.items()}
    for alone in (True, False):
        for parameter in tensors:
            array, origin = arrays[parameter.name], f"shape of {parameter.name}"
            for dimension, extent in zip(parameter.shape, array.shape):
                single = type(dimension).__name__.endswith("Var")
                if (alone and not single) or (single and chosen[dimension] != extent):
                    continue
                if not symbols.solve(dimension, extent, origin) and parameter.name not in mistakes:
                    expected = f"shape {symbols.written(parameter.shape)}"
                    remedy = f"{extent} is no value of `{dimension}`: pad the array, or pass another size"
                    given = f"shape {array.shape}"
                    mistakes.add(say.ArgumentMismatch(parameter.name, expected, given, remedy))
            for stride, own in zip(parameter.strides or (), array.strides):
                if not alone or type(stride).__name__.endswith("Var"):
                    symbols.solve(stride, own // array.itemsize, f"strides of {parameter.name}")


def _count(number: int, of: str) -> str:
    return f"{number} {of}{'' if number == 1 else 's'}"


def _check_shape(parameter: Any, array: np.ndarray, symbols: Symbols) -> None:
    wanted: list[int] = []
    for dimension in parameter.shape:
        extent = symbols.evaluate(dimension)
        if extent is None:
            missing = ", ".join(symbols.unbound(dimension)) or str(dimension)
            given = f"no argument that says what {missing} is"
            remedy = f"use {missing} alone as a dimension of some tensor"
            raise mismatch(parameter.name, f"shape {symbols.written(parameter.shape)}", given, remedy)
        wanted.append(extent)
    if tuple(wanted) != array.shape:
        expected = f"shape {symbols.written(parameter.shape)}{symbols.meaning(parameter.shape)}"
        possible = min(wanted, default=0) >= 0
        remedy = f"pass an array of shape {tuple(wanted)}" if possible else "these sizes do not fit together"
        about = symbols.source(parameter.shape, parameter.name)
        raise mismatch(parameter.name, expected, f"shape {array.shape}", remedy, about)


def _check_strides(parameter: Any, array: np.ndarray, symbols: Symbols) -> None:
    """Strides of a `T.StridedTensor` must be the annotated ones; those of axes of one element and of empty arrays are
    free.
    """
    if parameter.strides is None or array.size == 0:
        return
    for axis, (stride, extent, own) in enumerate(zip(parameter.strides, array.shape, array.strides)):
        wanted = symbols.evaluate(stride)
        if extent > 1 and own < 0:
            remedy = "pass a view that goes forward, or annotate `T.Tensor`, which takes any strides"
            raise mismatch(parameter.name, "strides that go forward", f"strides {array.strides} in bytes", remedy)
        if extent > 1 and (wanted is None or own != wanted * array.itemsize):
            given = tuple(s // array.itemsize if s % array.itemsize == 0 else s / array.itemsize for s in array.strides)
            expected = f"strides {symbols.written(parameter.strides)}{symbols.meaning(parameter.strides)}"
            remedy = f"axis {axis} must step {stride} elements: pass such a view, or annotate `T.Tensor`"
            raise mismatch(parameter.name, expected, f"strides {given}", remedy)


def written_past_autograd(name: str) -> Refusal:
    """TL301 for a tensor that requires grad and is written."""
    remedy = f"pass `{PLACEHOLDER}.detach()`: what the kernel writes is not seen by autograd"
    return mismatch(name, "a tensor to write", "one that requires grad", remedy)


def _check_writable(parameter: Any, array: Any) -> None:
    if not array.flags.writeable:
        remedy = f"the kernel writes it: pass an array of your own, `{PLACEHOLDER}.copy()`"
        raise mismatch(parameter.name, "a writable array", "a read-only one", remedy)
    if overlaps_itself(array):
        remedy = f"the kernel writes it, and several elements share memory: pass `{PLACEHOLDER}.copy()`"
        raise mismatch(
            parameter.name, "an array of separate elements", f"overlapping memory, strides {array.strides}", remedy
        )


def _place(
    tensors: list[Any],
    arrays: dict[str, np.ndarray],
    written: frozenset[str],
    symbols: Symbols,
    values: dict[str, Any],
    mistakes: Collection,
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Fill `values` with the arrays that the launch works on; the pairs to write back.

    One array passed for two parameters stays one memory: the kernel then sees its own writes, as on a device.
    """
    placed: list[tuple[Any, np.ndarray, np.ndarray]] = []
    for parameter in tensors:
        array = arrays[parameter.name]
        if isinstance(array, DeviceArray):
            values[parameter.name] = array
            continue
        used = _as_the_kernel_reads(parameter, array, symbols)
        for other, before, memory in placed:
            if array.size == 0 or not {parameter.name, other.name} & written:
                continue
            if used is array and memory is before:
                continue
            if same_elements(array, before) and used is not array and memory is not before:
                used = memory
            elif share_memory(array, before):
                copied = parameter.name if used is not array else other.name
                remedy = f"{copied} is not row-major, so it works on a copy: pass contiguous arrays, or separate ones"
                given = f"memory that overlaps {other.name}"
                mistakes.add(say.ArgumentMismatch(parameter.name, "memory of its own", given, remedy, other.name))
                break
        placed.append((parameter, array, used))
        values[parameter.name] = used
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for parameter, array, used in placed:
        if used is not array and parameter.name in written and not any(copy is used for _, copy in pairs):
            pairs.append((array, used))
    return tuple(pairs)


def _check_order(parameter: Any, array: DeviceArray) -> None:
    """Device memory is used where it is, so a tensor without annotated strides has to be row-major."""
    if parameter.strides is None and not array.flags.c_contiguous:
        torch, cupy = f"pass `{PLACEHOLDER}.contiguous()`", f"pass `cupy.ascontiguousarray({PLACEHOLDER})`"
        remedy = {"torch": torch, "cupy": cupy}.get(array.library, "pass a contiguous array")
        given = f"strides {array.strides} in bytes"
        raise mismatch(
            parameter.name, "a row-major array without gaps", given, f"{remedy}, or annotate `T.StridedTensor`"
        )


def _as_the_kernel_reads(parameter: Any, array: np.ndarray, symbols: Symbols) -> np.ndarray:
    """The array itself where the launch can work on it, else a copy in the right order of memory."""
    plain = array.dtype.isnative and array.flags.aligned
    if parameter.strides is None:
        return (
            array if plain and array.flags.c_contiguous else np.array(array, array.dtype.newbyteorder("="), order="C")
        )
    if plain:
        return array
    strides = [symbols.evaluate(stride) or 0 for stride in parameter.strides]
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(array.shape, strides) if extent > 1)
    dtype = array.dtype.newbyteorder("=")
    memory = np.zeros(max(span, 1), (np.void, dtype.itemsize))  # NumPy cannot stride over every type of `ml_dtypes`
    copy = np.lib.stride_tricks.as_strided(memory, array.shape, [stride * dtype.itemsize for stride in strides])
    copy = copy.view(dtype)
    if array.size:
        copy[...] = array
    return copy


def _output(parameter: Any, symbols: Symbols) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of a tensor that the call returns."""
    shape = [symbols.evaluate(dimension) for dimension in parameter.shape]
    dtype = host_dtype(parameter.dtype)
    if parameter.kind == "scalar" or dtype is None:
        remedy = "only tensors can be returned: pass it as an argument"
        raise mismatch(
            parameter.name, "a tensor to return", with_article(f"{parameter.dtype} {parameter.kind}"), remedy
        )
    if None in shape:
        missing = ", ".join(symbols.unbound(parameter.shape[shape.index(None)]))
        remedy = f"a returned tensor needs its shape from the arguments: use {missing} in the shape of one of them"
        raise mismatch(
            parameter.name,
            f"shape {symbols.written(parameter.shape)}",
            f"no argument that says what {missing} is",
            remedy,
        )
    return tuple(int(extent) for extent in shape if extent is not None), dtype
