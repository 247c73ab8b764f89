"""Calls of sm_90: bulk copies through tensor maps, products of warp groups, their groups and fences, setmaxnreg."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm.backend.cuda.ptx.table import TABLE

from .calls import STATEMENTS, Calls
from .inspection import call_name, extern_name
from .matrix_calls import TYPES, operands_of, read_registers, register_slice
from .values import BULK_COPY, NUMPY, Unsupported

DESCRIPTOR = "tl_wgmma_descriptor"
_KINDS = ("f16", "f16_f16acc", "bf16", "tf32", "fp8", "int")
_PRODUCTS = tuple(f"wgmma_{kind}_{form}" for kind in _KINDS for form in ("ss", "rs"))


def accumulators(func: Any) -> set[Any]:
    """Register buffers that products of warp groups write: whether they hold a value is known at run time only."""
    found: set[Any] = set()

    def visit(call: Any) -> None:
        if call_name(call).startswith("tirx.ptx.wgmma_") and call.args and isinstance(call.args[0], tvm.ir.TensorLoad):
            found.add(call.args[0].source)

    tvm_ffi.structural_walk(func.body, (tvm.ir.Call, visit))
    return found


def _tensor_map(t: Calls, node: Any, written: bool) -> str:
    """The name of the tensor map whose address an operand is."""
    while isinstance(node, tvm.ir.Call) and node.args:
        node = node.args[0]
    if node not in t.names:
        raise Unsupported("a tensor map that is no parameter", t.span)
    t.mapped[written].add(node)
    return t.names[node].text


def _shared(t: Calls, node: Any, kind: str) -> tuple[str, int]:
    """(byte address in the window of the block, site) of a pointer into shared memory."""
    buffer, address = t.pointer(node)
    storage = t.storage(buffer)
    if storage.space != "shared":
        raise Unsupported(f"shared memory is needed here, `{storage.label}` is in {storage.space} memory", t.span)
    return address.text, t.access_site(kind, storage)


def _rank(tokens: dict[str, str]) -> int:
    if tokens["load_mode"] != "tile":
        raise Unsupported(f"a bulk copy {' '.join(filter(None, tokens.values()))}", None)
    return int(tokens["dim"][0])


def _coordinates(t: Calls, operands: list[Any]) -> str:
    return "(" + "".join(t.expression(one).text + ", " for one in operands) + ")"


def _tensor_load(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    rank = _rank(tokens)
    target, site = _shared(t, operands[0], BULK_COPY)
    barrier, label = t.barrier(operands[2 + rank])
    view, where = _tensor_map(t, operands[1], False), _coordinates(t, operands[2 : 2 + rank])
    sites = site, t.site("mbarrier", label), t.site("read", t.shown[view], "global")
    blocks = int(operands[3 + rank]) if tokens.get("multicast") else 0
    t.emit(f"S.tensor_load({target}, {view}, {where}, {barrier}, {t.mask}, {sites}, {blocks})")


def _tensor_store(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    rank = _rank(tokens)
    source, site = _shared(t, operands[1 + rank], "read")
    view, where = _tensor_map(t, operands[0], True), _coordinates(t, operands[1 : 1 + rank])
    sites = t.site("write", t.shown[view], "global"), site
    t.emit(f"S.tensor_store({view}, {where}, {source}, {t.mask}, {sites})")


def _commit_stores(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.commit_stores({t.mask})")


def _wait_stores(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    t.emit(f"S.wait_stores({int(operands[0])}, {bool(tokens.get('read'))}, {t.mask})")


def _descriptor(t: Calls, node: Any) -> tuple[str, int]:
    """(text of the descriptor, site of the matrix that it names)."""
    if extern_name(node) != DESCRIPTOR:
        raise Unsupported("a matrix descriptor that is computed", t.span)
    address, site = _shared(t, node.args[1], "read")
    leading, stride, layout = (int(argument) for argument in node.args[2:])
    return f"S.matrix_descriptor({address}, {leading}, {stride}, {layout})", site


def _product(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    columns, depth = (int(number) for number in tokens["shape"].removeprefix("m64n").split("k"))
    kinds = tokens["atype"], tokens["btype"]
    if any(kind not in TYPES for kind in kinds) or tokens["dtype"] not in ("f32", "s32", "f16"):
        raise Unsupported(f"wgmma of {' and '.join(kinds)} into {tokens['dtype']}", t.span)
    held = columns // 4 if tokens["dtype"] == "f16" else columns // 2
    total, rest = operands[:held], operands[held:]
    found = register_slice(t, total)
    if found is None:
        raise Unsupported("a wgmma whose accumulators are no neighbouring registers", t.span)
    label, target, state = found
    site = t.site("read", label, "local")
    if name.endswith("rs"):
        left, first, rest = read_registers(t, rest[:4]), site, rest[4:]
        turned_a = "False"
    else:
        (left, first), rest = _descriptor(t, rest[0]), rest[1:]
        turned_a = str(len(rest) > 4 and bool(int(rest[4])))
    right, second = _descriptor(t, rest[0])
    if tokens["dtype"] != "s32" and any(int(scale) != 1 for scale in rest[2:4]):
        raise Unsupported("a wgmma that negates an operand", t.span)
    turned_b = str(len(rest) > 4 and bool(int(rest[-1])))
    keep = t.truth(rest[1]).text
    types = f"({TYPES[kinds[0]][0]}, {TYPES[kinds[1]][0]})"
    sites = f"({first}, {second}, {site})"
    t.emit(
        f"S.wgmma({columns}, {depth}, {types}, ({turned_a}, {turned_b}), {target}, {state}, {left}, {right}, {keep},"
        f" {t.mask}, {sites})"
    )


def _commit_products(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.commit_products({t.mask})")


def _wait_products(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.wait_products({int(arguments[0])}, {t.mask})")


def _proxy_fence(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.proxy_fence({t.mask})")


def _nothing(t: Calls, name: str, arguments: list[Any]) -> None:
    """Orders registers and barrier objects, which nothing here takes out of order."""


def _set_registers(t: Calls, name: str, arguments: list[Any]) -> None:
    operands, tokens, _ = operands_of(name, arguments)
    increase = tokens["action"] == "inc"
    t.emit(f"yield from S.set_registers({increase}, {int(operands[0])}, {t.mask}, {t.site('setmaxnreg')})")


def _cluster_arrive(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"S.cluster_arrive({t.mask}, {t.site('cluster barrier')})")


def _cluster_wait(t: Calls, name: str, arguments: list[Any]) -> None:
    t.emit(f"yield from S.cluster_wait({t.mask}, {t.site('cluster barrier')})")


def _arrive_at_block(t: Calls, arguments: list[Any]) -> None:
    """barrier, block; barrier, bytes, block"""
    address, name = t.barrier(arguments[0])
    size = f", {t.expression(arguments[1]).text}" if len(arguments) > 2 else ""
    block = t.expression(arguments[-1]).text
    t.emit(f"S.arrive_at_block({address}, {block}, {t.mask}, {t.site('mbarrier', name)}{size})")


def _store_at_block(t: Calls, arguments: list[Any]) -> None:
    """place, value, block"""
    buffer, _ = t.pointer(arguments[0])
    address, site = _shared(t, arguments[0], "write")
    value, block = t.typed(t.expression(arguments[1])), t.expression(arguments[2]).text
    dtype = NUMPY[t.storage(buffer).dtype]
    t.emit(f"S.store_at_block({dtype}, {address}, {value}, {block}, {t.mask}, {site})")


def _copy_to_block(t: Calls, arguments: list[Any]) -> None:
    """target, source, bytes, barrier, block"""
    target, written = _shared(t, arguments[0], BULK_COPY)
    source, read = _shared(t, arguments[1], "read")
    barrier, label = t.barrier(arguments[3])
    size, block = t.expression(arguments[2]).text, t.expression(arguments[4]).text
    sites = written, read, t.site("mbarrier", label)
    t.emit(f"S.copy_to_block({target}, {source}, {size}, {barrier}, {block}, {t.mask}, {sites})")


HOPPER_STATEMENTS = {
    "cp_async_bulk_tensor_g2s_cluster": _tensor_load,
    "cp_async_bulk_tensor_g2s_cta": _tensor_load,
    "cp_async_bulk_tensor_s2g": _tensor_store,
    "cp_async_bulk_commit_group": _commit_stores,
    "cp_async_bulk_wait_group": _wait_stores,
    **dict.fromkeys(_PRODUCTS, _product),
    "wgmma_commit_group": _commit_products,
    "wgmma_wait_group": _wait_products,
    "wgmma_fence": _nothing,
    "fence_mbarrier_init": _nothing,
    "fence_proxy": _proxy_fence,
    "fence_proxy_async": _proxy_fence,
    "setmaxnreg": _set_registers,
    "barrier_cluster_arrive": _cluster_arrive,
    "barrier_cluster_wait": _cluster_wait,
}


def _arrive_after_copies(t: Calls, arguments: list[Any]) -> None:
    address, name = t.barrier(arguments[0])
    t.emit(f"S.arrive_after_copies({address}, {t.mask}, {t.site('mbarrier', name)})")


STATEMENTS["tirx.ptx.cp_async_mbarrier_arrive"] = _arrive_after_copies
STATEMENTS["tl_arrive_at_block"] = STATEMENTS["tl_expect_at_block"] = _arrive_at_block
STATEMENTS["tl_store_at_block"] = _store_at_block
STATEMENTS["tl_copy_to_block"] = _copy_to_block
STATEMENTS["tirx.cuda.mbarrier_wait_acquire_cluster"] = STATEMENTS["tirx.cuda.mbarrier_wait"]
assert HOPPER_STATEMENTS.keys() <= TABLE.keys() | {"fence_proxy_async"}
STATEMENTS.update(
    {
        f"tirx.ptx.{name}": lambda t, arguments, name=name, emit=emit: emit(t, name, arguments)
        for name, emit in HOPPER_STATEMENTS.items()
    }
)
