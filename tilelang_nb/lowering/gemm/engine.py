"""Which instructions multiply: tensor cores where types, tile and architecture allow it, else CUDA cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang_nb.language.tile_program import RegionOperand, TileCall
from tilelang_nb.layout.matrix import COLUMNS, WARP, Instruction

from ..architecture import capability
from ..rewrite import constant, dtype_of

# operand dtype -> (name in PTX, elements in a register, depths of the instruction, first architecture)
_OPERANDS: dict[str, tuple[str, int, tuple[int, ...], int]] = {
    "float16": ("f16", 2, (16, 8), 80),
    "bfloat16": ("bf16", 2, (16, 8), 80),
    "tfloat32": ("tf32", 1, (8, 4), 80),
    "float64": ("f64", 1, (4,), 80),
    "int8": ("s8", 4, (32, 16), 80),
    "uint8": ("u8", 4, (32, 16), 80),
    "float8_e4m3fn": ("e4m3", 4, (32,), 89),
    "float8_e5m2": ("e5m2", 4, (32,), 89),
}


@dataclass(frozen=True)
class Engine:
    """instruction: None for CUDA cores.  reason: why not tensor cores, "" where they are used."""

    instruction: Instruction | None
    reason: str = ""

    @property
    def name(self) -> str:
        return "simt" if self.instruction is None else f"mma.sync {self.instruction.form}"


def choose(call: TileCall, launch: Any) -> Engine:
    """The engine of a gemm.  It depends on the types, the extents, the architecture and the number of threads alone."""
    a, b, c = call["a"], call["b"], call["c"]
    dtype = operand_dtype(call)
    if dtype == "float32":
        return Engine(None, "float32 operands are multiplied exactly; tensor cores take them as tfloat32")
    if dtype not in _OPERANDS:
        return Engine(None, f"no matrix instruction multiplies {dtype}")
    word, each, depths, first = _OPERANDS[dtype]
    if capability(launch.arch) < first:
        return Engine(None, f"matrix instructions of {dtype} need sm_{first}")
    if launch.threads % WARP:
        return Engine(None, f"{launch.threads} threads are no whole warps")
    rows, columns = extents(c)
    depth = extents(a)[0 if call.boolean("transpose_a") else 1]
    height = 8 if dtype == "float64" else 16
    if rows % height or columns % COLUMNS:
        return Engine(None, f"C of {rows} by {columns} is no multiple of the instruction's {height} by {COLUMNS}")
    fitting = [k for k in depths if depth % k == 0]
    if not fitting:
        return Engine(None, f"a depth of {depth} is no multiple of the instruction's {depths[-1]}")
    other = _OPERANDS.get(dtype_of(b.buffer), (word,))[0] if dtype != "tfloat32" else word
    total = _total(dtype, dtype_of(c.buffer))
    form = f"m{height}n{COLUMNS}k{fitting[0]}.row.col.{total}.{word}.{other}.{total}"
    return Engine(Instruction(height, fitting[0], each, form))


def operand_dtype(call: TileCall) -> str:
    """The dtype in which A and B are multiplied; tfloat32 tiles hold float32."""
    return "tfloat32" if call["precision"] == "tf32" else dtype_of(call["a"].buffer)


def extents(operand: RegionOperand) -> tuple[int, int]:
    """The two dimensions of an operand of a product."""
    sizes = [constant(extent) for extent in operand.extent[-2:]]
    assert sizes[0] is not None and sizes[1] is not None
    return sizes[0], sizes[1]


def _total(dtype: str, accumulator: str) -> str:
    if dtype == "float64":
        return "f64"
    if dtype in ("int8", "uint8"):
        return "s32"
    return "f16" if accumulator == "float16" and dtype == "float16" else "f32"
