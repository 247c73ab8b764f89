"""Every name of the sm_90 surface: it is lowered, or refused with what to write instead."""

from __future__ import annotations

import re

import pytest

import tilelang_nb.language as T
from tilelang_nb.language.unavailable import REFUSED
from tilelang_nb.source.diagnostic import Refusal

LOWERED = [
    "ws",
    "WarpSpecialize",
    "alloc_barrier",
    "alloc_cluster_barrier",
    "barrier_arrive",
    "barrier_wait",
    "mbarrier_arrive",
    "mbarrier_wait_parity",
    "mbarrier_expect_tx",
    "mbarrier_arrive_expect_tx",
    "ptx_arrive_barrier",
    "ptx_arrive_cluster_barrier",
    "ptx_init_barrier_thread_count",
    "ptx_fence_barrier_init",
    "cp_async_barrier_noinc",
    "named_barrier_arrive",
    "sync_threads",
    "tma_copy",
    "tma_store_arrive",
    "tma_store_wait",
    "fence_proxy_async",
    "copy_cluster",
    "wgmma_gemm",
    "wgmma_mma",
    "wait_wgmma",
    "warpgroup_arrive",
    "warpgroup_commit_batch",
    "warpgroup_wait",
    "warpgroup_fence_operand",
    "set_max_nreg",
    "inc_max_nreg",
    "dec_max_nreg",
    "no_set_max_nreg",
    "disable_warp_group_reg_alloc",
    "annotate_producer_reg_dealloc",
    "annotate_consumer_reg_alloc",
    "shuffle_elect",
    "Kernel",
    "ClusterKernel",
    "block_rank_in_cluster",
    "cluster_sync",
    "cluster_arrive",
    "cluster_wait",
    "pdl_sync",
    "pdl_trigger",
    "async_copy",
    "ptx_commit_group",
    "ptx_wait_group",
]
INSTEAD = {
    "tma_load": "T.tma_copy",
    "create_tma_descriptor": "T.tma_copy",
    "tma_load_2sm": "T.tma_copy",
    "tma_gather4": "T.tma_copy",
    "tma_gather4_bytes": "T.tma_copy",
    "tma_scatter4": "T.tma_copy",
    "ptx_wgmma_ss": "T.wgmma_gemm",
    "ptx_wgmma_rs": "T.wgmma_gemm",
    "alloc_wgmma_desc": "T.wgmma_gemm",
    "initialize_wgmma_descriptor": "T.wgmma_gemm",
    "increase_descriptor_offset": "T.wgmma_gemm",
    "annotate_ws_schedule": "T.ws",
    "WSSchedule": "T.ws",
    "clc_try_cancel": "T.Persistent",
    "clc_try_cancel_multicast": "T.Persistent",
}


@pytest.mark.parametrize("name", LOWERED)
def test_a_name_is_lowered_and_says_how(name: str) -> None:
    found = getattr(T, name)
    assert name not in REFUSED
    assert re.search(r"Errors: ", found.__doc__ or "")


@pytest.mark.parametrize("name", INSTEAD)
def test_a_name_that_is_not_lowered_says_what_to_write(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        getattr(T, name)(1, 2)
    assert refused.value.code == "TL302" and INSTEAD[name] in refused.value.message.remedy
