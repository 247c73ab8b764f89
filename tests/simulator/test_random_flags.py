"""Random programs of blocks that hand over data by flags, counters and fences, with the orders that they need or not.

A second engine, which keeps a vector clock for each block, says which accesses nothing orders.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tilelang_nb

BLOCKS = 4
HEAD = """
@T.prim_func
def k(P: T.Tensor((8,), "int32"), F: T.Tensor((64,), "int32"), Y: T.Tensor((8,), "int32")):
    with T.Kernel({blocks}, threads=1) as b:
        x = T.alloc_var("int32", init=0)
{body}
"""
ORDERS = {"store": ("relaxed", "release"), "load": ("relaxed", "acquire"), "update": ("relaxed", "release", "acq_rel")}


class Clocks:
    """known[b, c]: the last step of block c that comes before what block b does next."""

    def __init__(self):
        self.known = np.zeros((BLOCKS, BLOCKS), np.int64)
        self.pending, self.fenced = self.known.copy(), self.known.copy()
        self.flags: dict[int, np.ndarray] = {}
        self.accesses: list[tuple[int, int, int, bool]] = []  # block, step, element, whether it writes
        self.now, self.raced = 0, False

    def access(self, block, element, write):
        self.now += 1
        self.raced |= any(
            other != block and at == element and (write or wrote) and step > self.known[block, other]
            for other, step, at, wrote in self.accesses
        )
        self.accesses.append((block, self.now, element, write))
        self.known[block, block] = self.now

    def send(self, block, flag, order, update):
        sent = self.fenced[block].copy()
        if order in ("release", "acq_rel"):
            sent = np.maximum(sent, self.known[block])
        before = self.flags.get(flag, np.zeros(BLOCKS, np.int64)) if update else 0
        if update and order == "acq_rel":
            self.known[block] = np.maximum(self.known[block], before)
            sent = np.maximum(sent, self.known[block])
        elif update:
            self.pending[block] = np.maximum(self.pending[block], before)
        self.flags[flag] = np.maximum(sent, before)

    def wait(self, block, flag, order):
        table = self.known if order == "acquire" else self.pending
        table[block] = np.maximum(table[block], self.flags[flag])

    def fence(self, block):
        self.known[block] = np.maximum(self.known[block], self.pending[block])
        self.fenced[block] = self.known[block]


def program(rng):
    """(text of the body, does it race)"""
    clocks = Clocks()
    parts: list[list[str]] = [[] for _ in range(BLOCKS)]
    flags: list[int] = []
    for step in range(int(rng.integers(6, 22))):
        block = int(rng.integers(BLOCKS))
        kind = rng.choice(["read", "write", "store", "wait", "update", "fence"], p=[0.2, 0.12, 0.2, 0.25, 0.13, 0.1])
        element = int(rng.integers(3))
        if kind == "read":
            clocks.access(block, element, False)
            parts[block].append(f"x += P[{element}]")
        elif kind == "write":
            clocks.access(block, element, True)
            parts[block].append(f"P[{element}] = {step + 100}")
        elif kind == "fence":
            clocks.fence(block)
            parts[block].append('T.call_extern("void", "__threadfence")')
        elif kind == "store":
            order, flag = rng.choice(ORDERS["store"]), len(flags)
            flags.append(1)
            clocks.send(block, flag, order, False)
            parts[block].append(f'T.atomic_store(F[{flag}], 1, memory_order="{order}")')
        elif flags and kind == "update":  # in its turn: behind a relaxed poll for the value before
            order, flag = rng.choice(ORDERS["update"]), int(rng.integers(len(flags)))
            clocks.wait(block, flag, "relaxed")
            clocks.send(block, flag, order, True)
            poll = f'while T.atomic_load(F[{flag}], memory_order="relaxed") < {flags[flag]}:\n    pass'
            parts[block] += [poll, f'T.atomic_add(F[{flag}], 1, memory_order="{order}")']
            flags[flag] += 1
        elif flags:
            order, flag = rng.choice(ORDERS["load"]), int(rng.integers(len(flags)))
            # others may add to it meanwhile: only what is certain to be read counts
            if flags[flag] == 1 or order == "relaxed":
                clocks.wait(block, flag, order)
                parts[block].append(
                    f'while T.atomic_load(F[{flag}], memory_order="{order}") < {flags[flag]}:\n    pass'
                )
    lines = []
    for block, part in enumerate(parts):
        lines += [
            f"if b == {block}:",
            *("    " + line for text in part for line in text.splitlines()),
            f"    Y[{block}] = x",
        ]
    return "\n".join("        " + line for line in lines), clocks.raced


@pytest.mark.parametrize("seed", range(12))
def test_what_no_flag_orders_is_found_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        body, raced = program(rng)
        cell = tilelang_nb.compile_cell(HEAD.format(blocks=BLOCKS, body=body), {}, target="sim")
        assert cell.ok, cell.to_text()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cell.namespace["k"](np.zeros(8, np.int32), np.zeros(64, np.int32), np.zeros(8, np.int32))
        codes = {one.code for one in cell.namespace["k"].findings}
        assert codes == ({"TL401"} if raced else set()), body
