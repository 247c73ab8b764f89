"""Matrix multiply-accumulate on tiles: `T.gemm` and the warp partition policies."""

from __future__ import annotations

from enum import EnumMeta, IntEnum
from typing import Any, NoReturn

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import tidy
from .calling import bad_argument, checked_call, nearest
from .operands import (
    FRAGMENT,
    SHARED,
    box,
    described,
    dtype_mismatch,
    flag,
    integer,
    require_memory,
    same_extent,
    shape_mismatch,
    shown,
    unavailable,
)
from .values import Value, builder, truth


class _Policies(EnumMeta):
    """An unknown policy is TL003 with the nearest real one."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        near = nearest(name, list(cls.__members__))
        remedy = (
            f"did you mean `T.GemmWarpPolicy.{near}`?" if near else f"the policies are {', '.join(cls.__members__)}"
        )
        raise UnknownPolicy(
            say.UnknownOperation(namespace="T.GemmWarpPolicy", name=name, remedy=remedy, near=near or "")
        )


class UnknownPolicy(Refusal, AttributeError):
    """TL003; an AttributeError too, so that `hasattr` and `getattr` with a default work."""


class GemmWarpPolicy(IntEnum, metaclass=_Policies):
    """How the warps of a block divide the tile of C: Square (both ways), FullRow (along rows only), FullCol (along
    columns only).

    It changes speed, not results.  Errors: TL003 (another name).  Source: upstream `tilelang/tileop/base.py`.
    """

    Square = 0
    FullRow = 1
    FullCol = 2

    def is_square(self) -> bool:
        return self is GemmWarpPolicy.Square

    def is_full_row(self) -> bool:
        return self is GemmWarpPolicy.FullRow

    def is_full_col(self) -> bool:
        return self is GemmWarpPolicy.FullCol

    @property
    def word(self) -> str:
        """Its name in a tile program."""
        return {0: "square", 1: "full_row", 2: "full_col"}[int(self)]


# Accumulator dtypes by operand dtype, the usual one first.
ACCUMULATORS = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32",),
    "float32": ("float32",),
    "tfloat32": ("float32",),
    "float64": ("float64",),
    "float8_e4m3fn": ("float32", "float16"),
    "float8_e5m2": ("float32", "float16"),
    "int8": ("int32",),
    "uint8": ("int32",),
}


@checked_call
def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: Any = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    mbar: Any = None,
    annotations: dict | None = None,
) -> None:
    """`C += A @ B` on tiles; `transpose_A` and `transpose_B` say that an operand is stored transposed.

    A: (M, K), or (K, M) transposed; B: (K, N), or (N, K) transposed; C: (M, N).  Leading extents of 1 do not count.
    A, B in shared memory or fragments, C in a fragment or shared memory.
    dtypes: A and B equal (two float8 dtypes may mix); float16, bfloat16, float32, float8 accumulate in float32
    (float16 and float8
    also in float16), float64 in float64, int8 and uint8 in int32.
    clear_accum: `C = A @ B` instead; a device condition is allowed.  policy: `T.GemmWarpPolicy`.
    From sm_80 (float8: sm_89) tensor cores multiply tiles of whole instructions, whose extents are multiples of 16 (M),
    8 (N) and the instruction's depth; they take float32 tiles only as tfloat32.  The report says what was used and why.
    On sm_90a the warp groups' instructions keep fewer bits of sums of float8 products than float32 has: they differ
    from exact ones by some 1e-4 of their size.
    k_pack, wg_wait: accepted, hints.
    Errors: TL204 (shapes, both named), TL205 (dtypes), TL004 (operand, memory, option), TL302 (`mbar`).
    Source: upstream `tilelang/language/gemm_op.py`.
    """
    _gemm("T.gemm", A, B, C, transpose_A, transpose_B, policy, clear_accum, k_pack, wg_wait, mbar)


@checked_call
def wgmma_gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: Any = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    annotations: dict | None = None,
) -> None:
    """`T.gemm` that runs on while the next statements do, until the caller waits for it with `T.wait_wgmma`.

    On sm_90a a product of warp groups, whoever fills its tiles.  It takes A and B from shared memory, or A from a
    fragment, and accumulates into a fragment.  Operands may be rows or columns of larger tiles, and versions of a ring
    (`A_s[stage, :, :]`): rows from a multiple of 8, columns from a multiple of 32 bytes along K (of what one box holds,
    64 elements of 16 bits, where K runs down the rows).  Whole warp groups execute it, all of the block or those of a
    part of `T.ws`.
    C may not be read or written before `T.wait_wgmma(0)`, or before `T.wait_wgmma(n)` with n later products; nor
    may A and B be written.  In `T.Pipelined`, where copies of later turns would overwrite the tiles of a product that
    still runs when its turn ends, it is waited for at once.
    Where wgmma does not take the operands, and on other architectures, it is done as `T.gemm`, complete when the call
    returns; the decisions say why.  `clear_accum`, `policy`, dtypes: as of `T.gemm`.
    Errors: as `T.gemm` (TL204, TL205, TL004).  Source: upstream `tilelang/language/gemm_op.py`.
    """
    _gemm("T.wgmma_gemm", A, B, C, transpose_A, transpose_B, policy, clear_accum, 1, 0, None, "open")


def _gemm(
    called: str, a: Any, b: Any, c: Any, ta: Any, tb: Any, policy: Any, clear: Any, k_pack: Any, wait: Any, mbar: Any,
    asynchronous: str | None = None,
) -> None:  # fmt: skip
    if mbar is not None:
        unavailable(f"`{called}` with `mbar=` needs sm_100", "leave `mbar` out")
    integer(k_pack, called, "k_pack", 1)
    integer(wait, called, "wg_wait")
    word = policy_word(policy, called)
    ta, tb = flag(ta, called, "transpose_A"), flag(tb, called, "transpose_B")
    tiles = [box(tile, called, role) for tile, role in ((a, "A"), (b, "B"), (c, "C"))]
    copy_first = "copy it into shared memory first, with `T.copy`"
    require_memory(tiles[0], (SHARED, FRAGMENT), called, "A", copy_first)
    require_memory(tiles[1], (SHARED, FRAGMENT), called, "B", copy_first)
    require_memory(
        tiles[2], (FRAGMENT, SHARED), called, "C", "accumulate in a fragment: `T.alloc_fragment((M, N), dtype)`"
    )
    _check_shapes(called, tiles, ta, tb)
    _check_dtypes(called, tiles)
    condition = clear if isinstance(clear, Value) else flag(clear, called, "clear_accum")
    precision = "tf32" if all(tile.dtype == "tfloat32" for tile in tiles[:2]) else None
    builder().operation("gemm", *tiles, ta, tb, truth(condition), word, precision, asynchronous)


def policy_word(policy: Any, called: str) -> str:
    """A warp policy as a tile program names it; TL004 for anything else."""
    try:
        return GemmWarpPolicy(policy).word
    except ValueError:
        bad_argument(
            f"`policy` of `{called}` is {described(policy)}", "give `T.GemmWarpPolicy.Square`, `.FullRow` or `.FullCol`"
        )


def _check_shapes(called: str, tiles: list[Any], ta: bool, tb: bool) -> None:
    for tile, role in zip(tiles, "ABC"):
        if len(tile.extent) < 2 or any(not isinstance(n, int) or n != 1 for n in tile.extent[:-2]):
            shape_mismatch(
                f"{role} of `{called}` is {described(tile)}, shape {shown(tile.extent)}",
                "give a tile of two dimensions",
            )
        if any(isinstance(n, Value) for n in tile.extent):
            symbolic = next(n for n in tile.extent if isinstance(n, Value))
            raise Refusal(say.SymbolicTileShape(extent=tidy(str(symbolic))))
    a, b, c = tiles
    m, k = reversed(a.extent[-2:]) if ta else a.extent[-2:]
    kb, n = reversed(b.extent[-2:]) if tb else b.extent[-2:]
    shape_a, shape_b, shape_c = (shown(tile.extent) for tile in tiles)
    how_a, how_b = (f"shape {shape_a}" + " transposed" * ta, f"shape {shape_b}" + " transposed" * tb)
    if not same_extent(k, kb):
        rows, columns = c.extent[-2:]
        hint = None
        if same_extent(k, n) and same_extent(kb, columns) and same_extent(m, rows):
            hint = "transpose_B"
        elif same_extent(m, kb) and same_extent(k, rows) and same_extent(n, columns):
            hint = "transpose_A"
        problem = f"`{called}`: K is {k} in A ({described(a)}, {how_a}) and {kb} in B ({described(b)}, {how_b})"
        if hint is None:
            shape_mismatch(problem, "make the K of A and B equal")
        keyword = f"{hint}={not {'transpose_A': ta, 'transpose_B': tb}[hint]}"
        tile, role = (b, "B") if hint == "transpose_B" else (a, "A")
        _turned(problem, tile, role, keyword)
    if not same_extent(m, c.extent[-2]) or not same_extent(n, c.extent[-1]):
        shape_mismatch(
            f"`{called}`: A ({how_a}) times B ({how_b}) is ({m}, {n}), C ({described(c)}) has shape {shape_c}",
            f"give a C of shape ({m}, {n})",
        )


def _turned(problem: str, tile: Any, role: str, keyword: str) -> NoReturn:
    """TL204 for an operand with its dimensions in the other order: only its author knows which of the two is meant."""
    wanted = shown((*tile.extent[:-2], tile.extent[-1], tile.extent[-2]))
    name, way = tile.buffer.name, "transposed" if keyword.endswith("True") else "as it is"
    message = say.ShapeMismatch(
        problem=problem,
        remedy=f"allocate `{name}` with shape {wanted}, or add `{keyword}` if it holds {role} {way}",
        keyword=keyword,
        tile=name,
        shape=shown(tile.buffer.shape),
        wanted=wanted,
    )
    raise Refusal(message)


def _check_dtypes(called: str, tiles: list[Any]) -> None:
    a, b, c = (tile.dtype for tile in tiles)
    float8 = a.startswith("float8") and b.startswith("float8")
    for dtype in (a, b):
        if dtype not in ACCUMULATORS:
            dtype_mismatch(f"`{called}` of {dtype} operands", f"use one of {', '.join(ACCUMULATORS)}")
    if a != b and not float8:
        names = f"A ({described(tiles[0])}) is {a} and B ({described(tiles[1])}) is {b}"
        dtype_mismatch(f"`{called}`: {names}", "give both the same dtype: `T.copy` converts into a tile of another one")
    if c not in ACCUMULATORS[a]:
        allowed = " or ".join(ACCUMULATORS[a])
        dtype_mismatch(
            f"`{called}` of {a} operands accumulates in {allowed}, C ({described(tiles[2])}) is {c}",
            f"give a C of {allowed}",
        )
