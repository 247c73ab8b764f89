"""Random turns of several products: barriers of their tiles give what the barrier of the block gives, also where halves
of the block drift apart.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from lowering.test_turn_barriers import DISABLE, case, drifting, indented, is_ordered, run

from tilelang_nb.lowering import turn_barriers

ROWS = "policy=T.GemmWarpPolicy.FullRow"


def turns(rng: random.Random, keys: str, values: str, at: str, stages: int) -> str:
    """A loop whose turns multiply by two tiles, read them in other ways, too, and do this and that."""
    first, second = (keys, values) if rng.random() < 0.7 else (values, keys)
    copies = [f"T.copy(K[({at}) * BN, 0], {keys})", f"T.copy(V[({at}) * BN, 0], {values})"]
    mask = "for x, y in T.Parallel(BM, BN):\n        s[x, y] = T.if_then_else(x + i >= y, 0, -2)"
    some = {
        f"for x, y in T.Parallel(BM, BN):\n        s[x, y] += {second}[y, x % DIM]": 0.3,
        "T.copy(s, p)": 1,
        f"if i % 2 == 0:\n        for x, y in T.Parallel(BM, DIM):\n            o[x, y] += {first}[0, y]": 0.3,
        f"T.gemm(p, {second}, o, {ROWS})": 1,
        f"T.gemm(p, {first}, o, {ROWS})": 0.4,
        "for x, y in T.Parallel(BM, DIM):\n        o[x, y] += i": 0.3,
        "T.atomic_add(R[0], 1)": 0.2,
    }
    begin = rng.choice(["T.clear(s)", mask])
    parts = [*rng.sample(copies, 2), begin, f"T.gemm(Q_s, {first}, s, transpose_B=True, {ROWS})"]
    parts += [one for one, share in some.items() if rng.random() < share]
    return f"for i in T.Pipelined({rng.choice(['', '1, '])}n, num_stages={stages}):\n    " + "\n    ".join(parts) + "\n"


@pytest.mark.parametrize("seed", range(24))
def test_random_turns_give_what_the_barrier_of_the_block_gives(monkeypatch, seed):
    monkeypatch.setattr(turn_barriers, "LEAST", 0)
    rng = random.Random(seed)
    stages = rng.choice([2, 3, 4])
    loop = turns(rng, "K_s", "V_s", "i", stages)
    if rng.random() < 0.4:
        loop += turns(rng, "M_s", "W_s", "8 - i", rng.choice([2, 3]))
    around = rng.choice(["", "", "for time in T.serial(times):", "if n > 1:"])
    shape = {"n": rng.choice([0, 1, 2, 3, 5, 7]), "times": rng.choice([1, 2, 3]), "stages": stages}
    shape["threads"] = rng.choice([64, 128, 256])
    text = f"{around}\n{indented(loop, 4)}" if around else loop
    one, plain = case(text, **shape), case(text, **shape, options={DISABLE: True})
    assert is_ordered(one), text
    launches = [one.launch, *(drifting(one.launch, first) for first in (0, 1) if shape["threads"] == 256)]
    wanted, report = run(plain)
    assert not report.findings, text
    for launch in launches:
        got, report = run(one, launch)
        assert not report.findings, text
        for name in "OR":
            np.testing.assert_array_equal(got[name], wanted[name], err_msg=text)
