"""A layout deals every element to exactly its replicas, and the inverse map undoes the forward map."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang_nb.layout.fragment import Digit, Fragment, arrange, blocked, uniform

shapes = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple)
thread_counts = st.sampled_from([1, 2, 6, 12, 32, 96, 100, 128, 256, 384])
vectors = st.sampled_from([1, 2, 4, 8])


def every_slot(layout: Fragment) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """All threads, all registers, and the index that each pair holds."""
    thread, register = np.meshgrid(np.arange(layout.threads), np.arange(layout.register_count), indexing="ij")
    index = tuple(np.broadcast_to(part, thread.shape) for part in layout.inverse(thread, register))
    return thread, register, index


@given(shapes, thread_counts, vectors)
def test_every_element_is_held_by_exactly_its_replicas(shape, threads, vector):
    layout = blocked(shape, threads, vector)
    _, _, index = every_slot(layout)
    count = np.zeros(shape, int)
    inside = np.ones((layout.threads, layout.register_count), bool)
    for extent, part in zip(shape, index):
        inside &= part < extent
    np.add.at(count, tuple(part[inside] for part in index), 1)
    assert (count == layout.replicas).all()
    assert layout.covers == inside.all()


@given(shapes, thread_counts, vectors)
def test_inverse_undoes_forward(shape, threads, vector):
    layout = blocked(shape, threads, vector)
    index = np.indices(shape)
    for got, want in zip(layout.inverse(*layout.forward(index)), index):
        assert (got == want).all()


@given(shapes, thread_counts, vectors)
def test_exactly_one_replica_is_the_first(shape, threads, vector):
    layout = blocked(shape, threads, vector)
    replica = np.broadcast_to(layout.replica(np.arange(threads)), (threads,))
    assert sorted(set(replica.tolist())) == list(range(layout.replicas))
    owners = np.broadcast_to(layout.owners(), shape)
    assert (replica[owners] == 0).all()


@given(st.tuples(st.integers(1, 16), st.integers(1, 40)), thread_counts, vectors)
def test_projection_holds_a_row_where_its_elements_are(shape, threads, vector):
    layout = blocked(shape, threads, vector)
    rows = layout.project([0])
    thread, _, index = every_slot(layout)
    inside = (index[0] < shape[0]) & (index[1] < shape[1])
    # the thread of an element holds its row as well: its own digits of the row agree
    for weight, extent, stride in rows.thread_digits(0):
        assert ((index[0] // weight % extent) == (thread // stride % extent))[inside].all()


def test_neighbouring_threads_hold_neighbouring_vectors():
    layout = blocked((128, 32), 128, 8)
    thread, _ = layout.forward((0, np.arange(32)))
    assert thread.tolist() == [0] * 8 + [1] * 8 + [2] * 8 + [3] * 8
    assert layout.register_count == 32 and not layout.is_replicated and layout.covers


def test_equal_maps_are_equal():
    split = Fragment((16,), ((Digit(2, "register", 2), Digit(2, "register", 1), Digit(4, "thread", 1)),), 4)
    whole = Fragment((16,), ((Digit(4, "register", 1), Digit(4, "thread", 1)),), 4)
    assert split == whole and hash(split) == hash(whole)


def test_unused_threads_replicate():
    layout = blocked((8,), 96)
    assert layout.replicas == 12 and layout.register_count == 1
    assert uniform((4, 4), 64).replicas == 64 and uniform((4, 4), 64).is_uniform


def test_odd_thread_counts_take_part():
    layout = blocked((6,), 6)
    assert layout.register_count == 1 and layout.span(0) == 6
    assert blocked((61,), 12).register_count == 6


@pytest.mark.parametrize(
    "digits",
    [
        ((Digit(4, "thread", 1), Digit(4, "thread", 2)),),  # overlapping
        ((Digit(16, "register", 2),),),  # a gap
        ((Digit(3, "thread", 1), Digit(6, "register", 1)),),  # 3 does not divide 4
        ((Digit(8, "register", 1),),),  # too few
    ],
)
def test_inconsistent_digits_are_refused(digits):
    with pytest.raises(ValueError):
        Fragment((16,), digits, 4)


def test_register_order_survives_a_projection():
    layout = arrange((8, 4), [[Digit(8, "register", 5)], [Digit(4, "register", 1)]], 2)
    assert layout.registers().tolist() == np.arange(32).reshape(8, 4).tolist()
    assert layout.project([0]).registers().tolist() == list(range(8))
