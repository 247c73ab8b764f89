"""The digits found in an index add up to the index, and layouts made from them hold what the loop touches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tvm import tirx as tir

from tilelang_nb.layout.fragment import Digit, Fragment, blocked
from tilelang_nb.layout.indexing import Sum, decompose, held, layout_for, variable


def granule(value: Any) -> int:
    return abs(value) if isinstance(value, int) else 1


def iterations(loop: Fragment) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...], np.ndarray]:
    """Thread and register of every iteration inside the loop, and the values of its variables."""
    thread, register = np.meshgrid(np.arange(loop.threads), np.arange(loop.register_count), indexing="ij")
    values = tuple(np.broadcast_to(v, thread.shape) for v in loop.inverse(thread, register))
    inside = np.ones(thread.shape, bool)
    for value, extent in zip(values, loop.shape):
        inside &= value < extent
    return thread, register, values, inside


def evaluate(value: Sum, thread: np.ndarray, register: np.ndarray) -> np.ndarray:
    total = np.full(thread.shape, value.rest)
    for part in value.parts:
        source = thread if part.digit.on_thread else register
        total = total + source // part.digit.stride % part.digit.extent * part.weight
    return total


def random_index(numbers: random.Random, i: Any, j: Any, columns: int) -> tuple[Any, Any]:
    """An expression and the same as a Python function."""
    c = numbers.choice([2, 4, 8, 16])
    return numbers.choice(
        [
            (i * columns + j, lambda i, j: i * columns + j),
            (i + 64, lambda i, j: i + 64),
            (j // c, lambda i, j: j // c),
            (j % c, lambda i, j: j % c),
            ((i * columns + j) // c, lambda i, j: (i * columns + j) // c),
            ((i * columns + j) % c, lambda i, j: (i * columns + j) % c),
            (j % c * 2, lambda i, j: j % c * 2),
            (i * 3 + 1, lambda i, j: i * 3 + 1),
            (j - i, lambda i, j: j - i),
            (i + j, lambda i, j: i + j),
        ]
    )


@pytest.mark.parametrize("seed", range(200))
def test_the_digits_add_up_to_the_index(seed):
    numbers = random.Random(seed)
    shape = (numbers.choice([1, 4, 6, 16]), numbers.choice([8, 10, 32, 33]))
    loop = blocked(shape, numbers.choice([1, 6, 32, 96, 128]), numbers.choice([1, 2, 4]))
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    env = {i: variable(loop.digits[0]), j: variable(loop.digits[1])}
    expr, function = random_index(numbers, i, j, shape[1])
    found = decompose(expr, env, granule)
    thread, register, (rows, columns), inside = iterations(loop)
    if found is not None:
        assert (evaluate(found, thread, register) == function(rows, columns))[inside].all()


@pytest.mark.parametrize("seed", range(200))
def test_a_layout_made_for_an_index_is_held_by_the_executing_threads(seed):
    numbers = random.Random(seed)
    shape = (numbers.choice([1, 4, 6, 16]), numbers.choice([8, 10, 32, 33]))
    loop = blocked(shape, numbers.choice([1, 6, 32, 96, 128]), numbers.choice([1, 2, 4]))
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    env = {i: variable(loop.digits[0]), j: variable(loop.digits[1])}
    expr, function = random_index(numbers, i, j, shape[1])
    found = decompose(expr, env, granule)
    thread, _, (rows, columns), inside = iterations(loop)
    index = function(rows, columns)
    tile = int(index[inside].max()) + 1 + numbers.randint(0, 5)
    layout = layout_for([tile], [found], loop.threads, granule)
    if layout is None or found is None:
        return
    assert held(layout, [found], granule)
    assert holds(layout, thread, index)[inside].all()


def holds(layout: Fragment, thread: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Is the thread among those that hold the element?"""
    result = np.ones(thread.shape, bool)
    for weight, extent, stride in layout.thread_digits(0):
        result &= index // weight % extent == thread // stride % extent
    return result


def test_held_agrees_with_counting():
    """Over many pairs of a layout and an index: what `held` accepts is true for every iteration."""
    numbers = random.Random(1)
    accepted = 0
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    for _ in range(400):
        shape = (numbers.choice([1, 4, 8]), numbers.choice([8, 16, 32]))
        threads = numbers.choice([8, 32, 64])
        loop = blocked(shape, threads, numbers.choice([1, 2, 4]))
        env = {i: variable(loop.digits[0]), j: variable(loop.digits[1])}
        expr, function = random_index(numbers, i, j, shape[1])
        found = decompose(expr, env, granule)
        thread, _, (rows, columns), inside = iterations(loop)
        index = function(rows, columns)
        if index[inside].min() < 0:
            continue
        layout = blocked([int(index[inside].max()) + 1], threads, numbers.choice([1, 2, 4]))
        if held(layout, [found], granule):
            accepted += 1
            assert holds(layout, thread, index)[inside].all()
    assert accepted > 20


def test_an_index_read_from_memory_has_no_digits():
    buffer = tir.decl_buffer((8,), "int32", "table", layout=None)
    i = tir.Var("i", "int32")
    env = {i: variable((Digit(8, "thread", 1),))}
    assert decompose(tir.BufferLoad(buffer, [i]), env, granule) is None
    assert not held(blocked([8], 8), [None], granule)
