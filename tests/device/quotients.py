"""Divisions that are hard to round, and `tl_divide` as its CUDA C says it, run with NumPy.

With the mantissas A and B of two numbers as integers of 24 bits, a quotient is k / (B * 2**s) away from a middle
M / 2**s of two neighbouring float32, where A * 2**s - B * M = k, M is odd, and s is 24 for A >= B, else 25.  An error
below that distance does no harm: the small k are the hard ones, and a divisor has few of them.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from tilelang_nb.device.prelude import definitions

FIRST, LAST = 1 << 23, (1 << 24) - 1  # mantissas
NEAR = 14
SMALL, LARGEST = np.float32(2.0**-100), np.finfo(np.float32).max
# Patterns of zero, infinity, NaN, and of what lies at the ends of ranges and of mantissas.
TELLING = (
    *(0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x007FFFFF, 0x00800000, 0x00800001, 0x0D800000, 0x0DFFFFFF),
    *(0x21800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FFFFFFF, 0x40400000, 0x5D800000, 0x5D800001, 0x7E7FFFFF),
    *(0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7FC00000),
)


def hard_pairs(divisors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(A, B): the pairs with abs(k) <= NEAR of mantissas B from `divisors`, int64."""
    found = []
    for twos in (1, 2, 4, 8):
        b = divisors[divisors & (2 * twos - 1) == twos]
        odd = (b // twos).astype(np.uint32)
        inverse = odd.copy()  # modulo 2**32: three digits are right, then twice as many each time
        for _ in range(4):
            inverse *= np.uint32(2) - odd * inverse
        for s in (24, 25):
            turn = 2**s // twos
            for k in range(-NEAR // twos | 1, NEAR // twos + 1, 2):
                middles = (inverse * np.uint32(-k % 2**32)).astype(np.int64) % turn
                for middle in (middles + start for start in range(0, 1 << 25, turn)):
                    a = (b * middle + k * twos) >> s
                    kept = (middle >> 24 == 1) & (a >= FIRST) & (a <= LAST)
                    found.append((a[kept], b[kept]))
    a, b = (np.concatenate(part) for part in zip(*found))
    return a, b


def with_exponents(a: np.ndarray, b: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Normal numbers of any sign and size with these mantissas; their quotients are SMALL at least."""
    b_power = random.integers(-149, 105, b.shape)
    a_power = random.integers(np.maximum(b_power - 98, -149), np.minimum(b_power + 127, 105), a.shape)
    x = np.ldexp(a.astype(np.float64), a_power) * random.choice([-1, 1], a.shape)
    y = np.ldexp(b.astype(np.float64), b_power) * random.choice([-1, 1], b.shape)
    return x.astype(np.float32), y.astype(np.float32)


def shared_divisors(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of shape (rows, columns) and their divisors, of shape (rows,): hard pairs, then numbers of every kind."""
    random = np.random.default_rng(seed)
    hard = rows // 2
    b = random.integers(FIRST, LAST + 1, hard)
    b[:4] = FIRST, FIRST + 1, LAST - 1, LAST
    a = random.integers(FIRST, LAST + 1, (hard, columns))
    numerators, divisors = hard_pairs(np.unique(b))
    for row in range(hard):
        near = numerators[divisors == b[row]][:columns]
        a[row, : len(near)] = near
    x, y = with_exponents(a, b[:, None], random)
    telling = np.array([*TELLING, *(one | 1 << 31 for one in TELLING)], np.uint32).view(np.float32)
    more = random.integers(0, 1 << 32, (rows - hard, columns), dtype=np.uint32).view(np.float32)
    more[:, :: max(1, columns // 32)] = random.choice(telling, more[:, :: max(1, columns // 32)].shape)
    below = random.choice([*telling, np.float32(1), np.float32(-3), np.float32(1e4)], rows - hard).astype(np.float32)
    return np.concatenate([x, more]), np.concatenate([y[:, 0], below])


def check_quotients(got: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """`got` is x / y rounded once, but for what is SMALL, where the last place may differ, or the largest number."""
    with np.errstate(all="ignore"):
        want = x / y
    last = (np.abs(want) < SMALL) & (x != 0) & np.isfinite(y) | (np.abs(want) == LARGEST)
    off = np.abs(got.view(np.int32).astype(np.int64) - want.view(np.int32))
    right = (off <= last) | np.isnan(got) & np.isnan(want)
    at = np.flatnonzero(~right)[:5]
    said = [(x.flat[n], y.flat[n], got.flat[n], want.flat[n]) for n in at]
    assert right.all(), f"{np.count_nonzero(~right)} differ: {said}"


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray, rounding: str = "rn") -> np.ndarray:
    """x * y + z of float32, rounded once: to the nearest number, up (rp), or to zero (rz)."""
    product, z = x.astype(np.float64) * y, z.astype(np.float64)  # exact
    total = product + z
    back = total - product
    rest = (product - (total - back)) + (z - back)
    # A last digit of 1 where something was lost keeps the second rounding from what is not there.
    bits = total.view(np.int64)
    lost = np.isfinite(total) & (rest != 0) & (bits & 1 == 0)
    away = (rest > 0) == (total > 0)
    total = np.where(lost, bits + np.where(away, 1, -1), bits).view(np.float64)
    rounded = total.astype(np.float32)
    if rounding == "rp":
        return np.where(rounded < total, np.nextafter(rounded, np.float32(np.inf)), rounded)
    if rounding == "rz":
        return np.where(np.abs(rounded) > np.abs(total), np.nextafter(rounded, np.float32(0)), rounded)
    return rounded


def reciprocals(y: np.ndarray, places: int) -> np.ndarray:
    """1 / y, rounded and so many places of the last digit away from that; 1 / 0 and 1 / inf are what they are."""
    nearest = (1 / y.astype(np.float64)).astype(np.float32)
    away = (nearest.view(np.int32) + np.int32(places)).view(np.float32)
    return np.where(np.isfinite(y) & (y != 0), away, nearest)


@lru_cache(maxsize=1)
def division() -> tuple[tuple[int, float, int, int], list[list[str]]]:
    """Of the text of `tl_divide`: the numbers that its scale is made of, and the instructions of its two statements."""
    text = next(text for name, _, text, _ in definitions() if name == "tl_divide")
    begin = (
        r"int power = (0x\w+) - \(__float_as_int\(y\) & 0x7f800000\), least = fabsf\(y\) > (0x1p\d+)f \? (0x\w+) : (0x\w+);\s+"
        r"float scale = __int_as_float\(max\(power, least\)\), divisor = y \* scale, minus = -divisor, r, z;"
    )
    found = re.search(begin, text)
    assert found is not None
    numbers = int(found[1], 16), float.fromhex(found[2]), int(found[3], 16), int(found[4], 16)
    statements = ["".join(re.findall(r'"([^"]*)"', text)) for text in re.findall(r'asm\(((?:\s*"[^"]*")+)', text)]
    instructions = [[one.strip() for one in text.strip("{}").split(";") if one.strip()] for text in statements]
    return numbers, instructions


def run(instructions: list[str], values: dict[str, np.ndarray], places: int) -> dict[str, np.ndarray]:
    """What PTX instructions leave in the registers, from those in `values`."""
    for instruction in instructions:
        if instruction.startswith(".reg"):
            continue
        read = re.fullmatch(r"(?:@(\w+) )?([\w.]+) (.*)", instruction)
        assert read, instruction
        condition, name, words = read.groups()
        target, *sources = words.split(", ")
        x, *more = (np.float32(1) if word == "0f3f800000" else values[word] for word in sources)
        if name == "rcp.approx.ftz.f32":
            made = reciprocals(x, places)
        elif name.startswith("fma."):
            made = fused(x, more[0], np.broadcast_to(more[1], x.shape), name[4:6])
        else:
            plain = {"mul.f32": np.multiply, "abs.f32": np.abs, "setp.lt.f32": np.less}
            made = plain[name](x, *more)
        values[target] = made if condition is None else np.where(values[condition], made, values[target])
    return values


def divide(x: np.ndarray, y: np.ndarray, places: int = 0) -> np.ndarray:
    """`tl_divide(x, y)`, with approximate reciprocals so many places from the nearest: see `reciprocals`."""
    (most, large, low, usual), (reciprocal, quotient) = division()
    power = np.int32(most) - (y.view(np.int32) & np.int32(0x7F800000))
    with np.errstate(all="ignore"):
        scale = np.maximum(power, np.where(np.abs(y) > large, low, usual).astype(np.int32)).view(np.float32)
        divisor = y * scale
        r = run(reciprocal, {"%1": divisor, "%2": -divisor}, places)["%0"]
        return run(quotient, {"%1": x, "%2": scale, "%3": -divisor, "%4": r}, places)["%0"]


# Ways to divide a tile of 64 rows by one number each, or by one for each column.
_TILE = """
@T.prim_func
def k(a: T.Tensor(({rows}, 64), "float32"), b: T.Tensor(({rows},), "float32"), o: T.Tensor(({rows}, 64), "{out}")):
    with T.Kernel({rows} // 64, threads=128) as r:
{body}
"""
_FRAGMENTS = """
        f, s = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64,), "float32")
        T.copy(a[r * 64, 0], f)
        T.copy(b[r * 64], s)
        for i, j in T.Parallel(64, 64):
            {divided}
        T.copy(f, o[r * 64, 0])
"""
_PRODUCT = """
        x, y = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
        f, s = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64,), "float32")
        for i, j in T.Parallel(64, 64):
            x[i, j] = T.cast(a[r * 64 + i, j], "float16")
            y[i, j] = T.if_then_else(i == j, T.float16(1), T.float16(0))
        T.copy(b[r * 64], s)
        T.clear(f)
        T.gemm(x, y, f)
        for i, j in T.Parallel(64, 64):
            f[i, j] /= s[i]
        T.copy(f, o[r * 64, 0])
"""
_GLOBAL = """
        for i, j in T.Parallel(64, 64):
            o[r * 64 + i, j] = a[r * 64 + i, j] / b[r * 64 + i]
"""
_UNROLLED = """
        for i in T.Parallel(64):
            for j in T.unroll(64):
                o[r * 64 + i, j] = a[r * 64 + i, j] / b[r * 64 + i]
"""
_BODIES = {
    "in place": _FRAGMENTS.format(divided="f[i, j] /= s[i]"),
    "of an expression": _FRAGMENTS.format(divided="f[i, j] = -(-f[i, j] / s[i])"),
    "columns": _FRAGMENTS.format(divided="f[i, j] = f[i, j] / s[j]"),
    "product": _PRODUCT,
    "global": _GLOBAL,
    "unrolled": _UNROLLED,
}


def tile_cell(form: str, rows: int, out: str = "float32") -> str:
    """A kernel that divides `a` of (rows, 64) by `b` of (rows,), or the columns of each tile by its part of `b`."""
    return _TILE.format(rows=rows, out=out, body=_BODIES[form].strip("\n"))


FORMS = tuple(_BODIES)
