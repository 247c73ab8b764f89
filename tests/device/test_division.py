"""`tl_divide`, which divides by what many numbers share, rounds as `/` does.

The proof has two parts, for mantissas, since powers of two change nothing where no quotient is below 2**-100.

1. The reciprocal r is rounded once, for each of the 2**23 mantissas and each approximation at most one place from the
   nearest number; PTX promises an error of one unit of the last place.
2. A quotient q = round(a * r) is off by at most 1.5 units of its last place, so the rest a - q * b has at most 25 bits
   and is rounded by at most one unit of 2**-46.  Then q + rest * r is off by less than 1.75 * 2**-23 units, which is
   the distance of k = 7 from a middle between two numbers, or of k = 14 where q is a power of two above the quotient.
   So only the pairs that `hard_pairs` lists can be rounded to the wrong side: at night all of them are tried.
"""

from __future__ import annotations

import numpy as np
import pytest
from device.quotients import (
    FIRST,
    FORMS,
    LAST,
    NEAR,
    SMALL,
    TELLING,
    check_quotients,
    divide,
    division,
    fused,
    hard_pairs,
    run,
    shared_divisors,
    tile_cell,
    with_exponents,
)
from properties.amounts import NIGHTLY

import tilelang_nb

PLACES = (-1, 0, 1)
PART = 1 << 19


def mantissas(count: int, seed: int) -> np.ndarray:
    """The first and last ones, one that is hard for other roundings, and random ones; at night all."""
    if NIGHTLY:
        return np.arange(FIRST, LAST + 1)
    some = np.random.default_rng(seed).integers(FIRST, LAST + 1, count)
    return np.concatenate([np.arange(FIRST, FIRST + 500), np.arange(LAST - 500, LAST + 1), [0xEE4BC5], some])


@pytest.mark.timeout(3600 if NIGHTLY else 120)
@pytest.mark.parametrize("places", PLACES)
def test_reciprocals_are_rounded_once(places: int) -> None:
    for part in np.array_split(mantissas(1 << 18, 1), 16):
        y = (part * 2.0**-23).astype(np.float32)
        for divisor in (y, -y * np.float32(2.0**40)):
            r = run(division()[1][0], {"%1": divisor, "%2": -divisor}, places)["%0"]
            assert np.array_equal(r, 1 / divisor)


@pytest.mark.timeout(7200 if NIGHTLY else 120)
def test_quotients_next_to_the_middle_of_two_numbers() -> None:
    random = np.random.default_rng(2)
    tried = 0
    for part in np.array_split(mantissas(1 << 15, 3), 128 if NIGHTLY else 1):
        a, b = hard_pairs(part)
        x, y = with_exponents(a, b, random)
        got = divide(x, y, places=1)
        assert np.array_equal(got, x / y)
        tried += len(got)
    assert tried > 9 * (LAST - FIRST if NIGHTLY else 1 << 15)


def test_the_pairs_are_those_near_the_middle() -> None:
    """All A for a few B, by whole numbers."""
    for b in (FIRST + 2, 0xABCDEF, 0xF0F0F4, LAST):
        every = np.arange(FIRST, LAST + 1)
        up = np.where(every >= b, 24, 25)
        over = (every << up) % (2 * b)
        k = over - b  # the rest of A * 2**s by odd multiples of B
        near = set(every[(np.abs(k) <= NEAR) & (k != 0)].tolist())
        found, _ = hard_pairs(np.array([b]))
        assert near == set(found.tolist()), hex(b)


def test_numbers_of_every_kind() -> None:
    random = np.random.default_rng(4)
    telling = np.array(TELLING, np.uint32)
    telling = np.concatenate([telling, telling | np.uint32(1 << 31)]).view(np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(telling, telling))
    for places in PLACES:
        check_quotients(divide(x, y, places), x, y)
    x, y = random.integers(0, 1 << 32, (2, PART), dtype=np.uint32).view(np.float32)
    check_quotients(divide(x, y, places=-1), x, y)
    y = random.choice(telling, PART)
    check_quotients(divide(x, y, places=1), x, y)


def test_signs_of_zeros_and_infinities() -> None:
    ends = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 1e-45, -3e38], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        want = x / y
    got = divide(x, y)
    known = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[known]), np.signbit(want[known]))
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))


def test_quotients_from_the_smallest_exact_one_to_the_largest_number() -> None:
    random = np.random.default_rng(5)
    for around in (float(SMALL), 2.0**-60, 1.0, 2.0**60, 2.0**127):
        y = random.integers(0x00000001, 0x7F800000, PART, dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            x = (y.astype(np.float64) * around * random.uniform(0.5, 2, PART)).astype(np.float32)
        check_quotients(divide(x, y), x, y)


def test_sums_of_products_are_rounded_once() -> None:
    """What the others rest on, by whole numbers: 2**-23 * 2**-24 decides about a tie, which float64 does not hold."""
    one, small = np.array([1.0], np.float32), np.array([2.0**-24], np.float32)
    assert fused(small, one, one)[0] == 1 and fused(small, one, one, "rp")[0] == 1 + 2.0**-23
    assert fused(small * np.float32(1 + 2.0**-23), one, one)[0] == 1 + 2.0**-23
    tie = np.array([1 + 2.0**-23], np.float32)
    tiny = np.array([2.0**-60], np.float32)
    assert fused(tie, small, tie)[0] == 1 + 2.0**-22  # a little above the tie
    assert fused(tiny, one, one, "rp")[0] == 1 + 2.0**-23 and fused(-tiny, one, one, "rp")[0] == 1
    assert fused(tiny, -one, one, "rz")[0] == 1 - 2.0**-24 and fused(tiny, -one, -one, "rz")[0] == -1


@pytest.mark.parametrize("form", FORMS)
def test_loops_share_reciprocals(program_of, form: str) -> None:
    """Branches and calls are for divisors of one number only; the simulated device divides as NumPy does."""
    program = program_of(tile_cell(form, 256))
    assert "tl_divide(" in program.kernel_source
    assert "CALL" not in program.sass and "FCHK" not in program.sass
    # Of 32 numbers or 64; between two stores to memory, the number that divides may have changed.
    assert program.sass.count("MUFU.RCP") <= (64 if form == "unrolled" else 8)
    if form == "product":
        return
    x, y = shared_divisors(256, 64, 6)
    a = x.reshape(4, 64, 64).swapaxes(1, 2).reshape(x.shape).copy() if form == "columns" else x
    o = np.zeros_like(a)
    tilelang_nb.compile_cell(tile_cell(form, 256), target="sim").kernels["k"](a, y, o)
    if form == "columns":
        o = o.reshape(4, 64, 64).swapaxes(1, 2).reshape(x.shape)
    with np.errstate(all="ignore"):
        assert np.array_equal(o, x / y[:, None], equal_nan=True)
    check_quotients(divide(x, np.broadcast_to(y[:, None], x.shape)), x, np.broadcast_to(y[:, None], x.shape))
