"""PTX calls with register operands: ldmatrix, stmatrix, mma.sync, cp.async and its groups.

The arguments of a PTX call are its operands, one string per modifier (empty where it is left out) and a flag that
says which operand is a predicate.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm.backend.cuda.ptx.table import TABLE

from .calls import STATEMENTS, Calls
from .values import Storage, Unsupported, Value

# Types of matrix elements: name in PTX -> (name in the generated text, bytes).
TYPES = {
    "f16": ("np.float16", 2),
    "bf16": ("bfloat16", 2),
    "tf32": ("np.float32", 4),
    "f64": ("np.float64", 8),
    "e4m3": ("float8_e4m3fn", 1),
    "e5m2": ("float8_e5m2", 1),
    "s8": ("np.int8", 1),
    "u8": ("np.uint8", 1),
}
COPY_SIZES = (4, 8, 16)


def operands_of(name: str, arguments: list[Any]) -> tuple[list[Any], dict[str, str], str]:
    """(operands, modifiers by name, flag)."""
    slots = TABLE[name].slots
    split = len(arguments) - len(slots) - 1
    tokens = {slot.name: str(text.value) for slot, text in zip(slots, arguments[split:-1], strict=True)}
    return arguments[:split], tokens, str(arguments[-1].value)


# ---- registers ----
def _neighbours(t: Calls, loads: list[Any]) -> tuple[Storage, Value] | None:
    """The array and the first register, where the operand is made of neighbouring registers; else None."""
    if not all(isinstance(load, tvm.ir.TensorLoad) for load in loads):
        return None
    storage = t.storage(loads[0].source)
    if storage.space != "local" or any(not load.source.same_as(loads[0].source) for load in loads):
        return None
    first: dict[str, int] | None = None
    for step, load in enumerate(loads):
        parts: dict[str, int] = {}
        for factor, value in t._register_index(storage, list(load.indices)):
            if value.axes or not value.pure:
                return None
            parts[value.text] = parts.get(value.text, 0) + factor
        parts["1"] = parts.get("1", 0) - step
        if first is not None and parts != first:
            return None
        first = parts
    return storage, t.once(t.sum_of(t._register_index(storage, list(loads[0].indices)), "int32"))


def read_registers(t: Calls, loads: list[Any]) -> str:
    """The operand as one array (register, blocks, threads)."""
    found = _neighbours(t, loads)
    if found is None:
        values = [t.typed(t.expression(load)) for load in loads]
        return f"S.stacked(({''.join(value + ', ' for value in values)}))"
    storage, first = found
    name, stop = storage.name, f"{first.text}+{len(loads)}"
    text = f"{name}[{first.text}:{stop}]"
    fixed = first.low if first.low == first.high else None
    if t.checks and (fixed is None or not t.initialised(name, range(fixed, fixed + len(loads)))):
        t.tracked.add(name)
        site = t.site("read", storage.label, "local")
        text = f"S.check_registers({text}, {name}_state[{first.text}:{stop}], {t.mask}, {site})"
    return text


def register_slice(t: Calls, loads: list[Any]) -> tuple[str, str, str] | None:
    """(label of the buffer, text of neighbouring registers as a view, text of their marks); None for others."""
    found = _neighbours(t, loads)
    if found is None:
        return None
    storage, first = found
    part = f"[{first.text}:{first.text}+{len(loads)}]"
    if not t.checks:
        return storage.label, storage.name + part, "None"
    t.tracked.add(storage.name)
    return storage.label, storage.name + part, f"{storage.name}_state{part}"


def _write_registers(t: Calls, loads: list[Any], value: str) -> None:
    found = _neighbours(t, loads)
    if found is None:
        result = t.assign("d", value)
        for step, load in enumerate(loads):
            t._store_register(t.storage(load.source), list(load.indices), f"{result}[{step}]")
        return
    storage, first = found
    name, stop = storage.name, f"{first.text}+{len(loads)}"
    text, state = f"{name}[{first.text}:{stop}]", f"{name}_state[{first.text}:{stop}]"
    if t.mask is None:
        t.emit(f"{text} = {value}")
        t.emit_tracked(name, f"{state} = True")
    else:
        t.emit(f"S.put({text}, {value}, {t.mask})")
        t.emit_tracked(name, f"S.put({state}, True, {t.mask})")
    if first.low is not None and first.low == first.high:
        t.record_initialised(name, range(first.low, first.low + len(loads)))


# ---- addresses ----
def _address(t: Calls, node: Any, space: str) -> tuple[Storage, str]:
    """(buffer, "type or array, array part, uniform part, bounds") of a pointer to an element."""
    load = t.pointer_load(node)
    storage = t.storage(load.source)
    if storage.space != space:
        raise Unsupported(f"{space} memory is needed here, `{storage.label}` is in {storage.space} memory", t.span)
    return storage, t._point(storage, list(load.indices))[0]


def _ldmatrix(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    storage, point = _address(t, operands[-1], "shared")
    site, count = t.access_site("read", storage), len(operands) - 1
    transpose = tokens["trans"] == "trans"
    _write_registers(t, operands[:-1], f"S.ldmatrix({point}, {count}, {transpose}, {t.mask}, {site})")


def _stmatrix(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    storage, point = _address(t, operands[0], "shared")
    site, registers = t.access_site("write", storage), read_registers(t, operands[1:])
    transpose = tokens["trans"] == "trans"
    t.emit(f"S.stmatrix({point}, {registers}, {transpose}, {t.mask}, {site})")


def _mma(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    shape, kinds = tokens["shape"], (tokens["atype"], tokens["btype"])
    rows, rest = shape[1:].split("n")
    columns, depth = (int(number) for number in rest.split("k"))
    if columns != 8 or (tokens["alayout"], tokens["blayout"]) != ("row", "col") or any(k not in TYPES for k in kinds):
        raise Unsupported(f"mma {shape} of {' and '.join(kinds)}", t.span)
    if shape == "m8n8k4" and kinds[0] != "f64":
        raise Unsupported(f"mma {shape} of {kinds[0]}", t.span)
    each = max(4 // TYPES[kinds[0]][1], 1)  # elements in a register
    a = int(rows) // 8 * (depth // (4 * each))
    b = depth // (4 * each)
    c = (len(operands) - a - b) // 2
    left, right = read_registers(t, operands[c : c + a]), read_registers(t, operands[c + a : c + a + b])
    start = read_registers(t, operands[c + a + b :])
    types = f"({TYPES[kinds[0]][0]}, {TYPES[kinds[1]][0]})"
    _write_registers(t, operands[:c], f"S.mma({rows}, {depth}, {types}, {left}, {right}, {start}, {t.mask})")


def _cp_async(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, _, flag = operands_of(name, arguments)
    size, rest = int(operands[2]), operands[3:]
    outer = t.mask
    if flag == "pred":
        condition = t.truth(rest.pop())
        t.mask = t.lanes("with", condition)
    if size not in COPY_SIZES or len(rest) > 1:
        raise Unsupported(f"cp.async of {size} bytes", t.span)
    count = t.expression(rest[0]) if rest else None
    target, to = _address(t, operands[0], "shared")
    source, start = _address(t, operands[1], "global")
    sites = t.access_site("write", target), t.access_site("read", source)
    dtype, where = to.split(", ", 1)
    array, place = start.split(", ", 1)
    text = "None" if count is None else count.text
    t.emit(f"S.cp_async({dtype}, ({where}), {array}, ({place}), {size}, {text}, {t.mask}, {sites})")
    t.mask = outer


def _commit(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.commit_copies({t.mask})")


def _wait(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.wait_copies({int(arguments[0])}, {t.mask})")


def _wait_all(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.wait_all_copies({t.mask})")


def _pack(t: Calls, name: str, arguments: list[Any]) -> None:
    """cvt of two float32 into the halves of a register."""
    operands, tokens, _ = operands_of(name, arguments)
    high, low = t.expression(operands[1]), t.expression(operands[2])
    dtype = {"f16x2": "np.float16", "bf16x2": "bfloat16"}[tokens["dtype"]]
    t._store_register(
        t.storage(operands[0].source), list(operands[0].indices), f"S.packed({high.text}, {low.text}, {dtype})"
    )


PTX_STATEMENTS = {
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
    **dict.fromkeys(("mma", "mma_f16acc", "mma_int", "mma_f64"), _mma),
    **dict.fromkeys(("cp_async_cg", "cp_async_ca", "cp_async_cg_src_size", "cp_async_ca_src_size"), _cp_async),
    **dict.fromkeys(("cvt_f16x2_f32", "cvt_bf16x2_f32"), _pack),
    "cp_async_commit_group": _commit,
    "cp_async_wait_group": _wait,
    "cp_async_wait_all": _wait_all,
}
STATEMENTS.update(
    {
        f"tirx.ptx.{name}": lambda t, arguments, name=name, emit=emit: emit(t, name, arguments)
        for name, emit in PTX_STATEMENTS.items()
    }
)
