"""What a kernel says about clusters, without running it."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T

from .conftest import Launch


@pytest.fixture
def clustered(kernel):
    kernel.launch = Launch((128,), (8, 4), (2, 2, 1))
    return kernel


def test_the_rank_is_made_of_block_indices(clustered):
    assert str(T.block_rank_in_cluster().use()) == "bx % 2 + by % 2 * 2"


def test_the_rank_in_clusters_of_one_block_is_0(kernel):
    assert T.block_rank_in_cluster() == 0


def test_the_barrier_of_the_cluster(clustered):
    T.cluster_sync()
    T.cluster_arrive()
    T.cluster_wait()
    assert [call.name for call in clustered.calls] == ["cluster_arrive", "cluster_wait"] * 2


def test_arrivals_at_other_blocks(clustered, refused, device):
    bar = T.alloc_cluster_barrier([4])
    T.mbarrier_arrive(bar, 3)
    T.ptx_arrive_cluster_barrier(bar[0], device("r", "int64"))
    one, other = clustered.calls[1:]
    assert (one.name, one.integer("block"), other.name) == ("barrier_arrive", 3, "barrier_arrive")
    with refused("TL004", "a cluster has 4 blocks", "0 to 3"):
        T.mbarrier_arrive(bar, 4)
    with refused("TL205", "float32"):
        T.mbarrier_arrive(bar, device("x", "float32"))


def test_arrivals_at_other_blocks_need_clusters(kernel, refused):
    with refused("TL208", "T.ClusterKernel"):
        T.mbarrier_arrive(T.alloc_barrier(1), 0)


def test_copies_to_other_blocks(clustered, refused):
    a = clustered.buffer("a", (64, 32))
    s, d = (clustered.buffer(name, (8, 32), memory="shared.dyn") for name in "sd")
    bar = T.alloc_cluster_barrier(1)
    T.copy_cluster(s, d, dst_block=2, remote_barrier=bar[0])
    T.copy_cluster(s, d, dst_block=1)
    T.copy_cluster(a[8, 0], s, cluster_mask=0b1011)
    T.tma_copy(a[8, 0], s, barrier=bar[0], cluster_mask=0b11)
    names = [call.name for call in clustered.calls[1:]]
    assert names == ["copy_to_block", "copy_to_block", "copy_to_blocks", "tma_copy"]
    first, second, third, fourth = clustered.calls[1:]
    assert (first.integer("block"), first["barrier"].buffer.name, second["barrier"]) == (2, "barrier", None)
    assert (third.integer("mask"), fourth.integer("mask")) == (11, 3)
    with refused("TL004", "one of the two"):
        T.copy_cluster(s, d)
    with refused("TL004", "one of the two"):
        T.copy_cluster(s, d, dst_block=1, cluster_mask=1)
    with refused("TL302", "T.copy"):
        T.copy_cluster(a[8, 0], s, dst_block=1)
    with refused("TL302", "T.copy"):
        T.copy_cluster(s, d, cluster_mask=1)
    with refused("TL004", "beyond the 4"):
        T.copy_cluster(a[8, 0], s, cluster_mask=16)
    with refused("TL004", "waits for itself"):
        T.copy_cluster(a[8, 0], s, cluster_mask=3, remote_barrier=bar)
    with refused("TL004", "one element as its barrier"):
        T.copy_cluster(s, d, dst_block=1, remote_barrier=s)
    with refused("TL204", "extents"):
        T.copy_cluster(s[0:4, :], d[0:5, :], dst_block=1)
    with refused("TL205", "convert"):
        T.copy_cluster(s, clustered.buffer("f", (8, 32), "float16", "shared.dyn"), dst_block=1)
    with refused("TL004", "takes no `cluster_mask`"):
        T.tma_copy(s, a[8, 0], cluster_mask=3)


def test_options_of_copies_to_other_blocks_are_those_of_copies(clustered, refused):
    s, d = (clustered.buffer(name, (8, 32), memory="shared.dyn") for name in "sd")
    T.copy_cluster(s, d, dst_block=1, coalesced_width=8, eviction_policy="evict_first", annotations={"note": 1})
    for wrong, words in (
        ({"eviction_policy": "soon"}, "evict_first"),
        ({"coalesced_width": 0}, "coalesced_width"),
        ({"annotations": 3}, "a dict"),
    ):
        with refused("TL004", words):
            T.copy_cluster(s, d, dst_block=1, **wrong)
