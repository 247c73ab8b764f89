"""Warp exchanges, votes, barriers, device calls."""

from __future__ import annotations

import pytest

import tilelang_nb.language as T
from tilelang_nb.language.values import written


def last(kernel):
    return str(kernel.statements[-1]).splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "device_name"),
    [
        ("shfl_sync", "__shfl_sync"),
        ("shfl_xor", "__shfl_xor_sync"),
        ("shfl_up", "__shfl_up_sync"),
        ("shfl_down", "__shfl_down_sync"),
    ],
)
def test_shuffles_happen_where_they_stand(kernel, device, name, device_name):
    found = getattr(T, name)(device("x"), 1)
    assert found.dtype == "float32"
    assert f'T.call_extern("float32", "{device_name}", T.uint32(4294967295), x, 1)' in last(kernel)
    getattr(T, name)(device("n", "int64"), device("k", "int32"), width=16, mask=0xFF)
    assert f'T.call_extern("int64", "{device_name}", T.uint32(255), n, k, 16)' in last(kernel)


def test_narrow_values_travel_as_32_bits(kernel, device):
    assert T.shfl_xor(device("h", "float16"), 1).dtype == "float16"
    assert 'T.call_extern("float32", "__shfl_xor_sync"' in last(kernel)
    assert T.shfl_xor(device("b", "bool"), 1).dtype == "bool"
    assert 'T.call_extern("int32", "__shfl_xor_sync"' in last(kernel)


def test_mistakes_of_shuffles(kernel, device, refused):
    with refused("TL004", "power of two"):
        T.shfl_sync(device("x"), 0, width=12)
    with refused("TL205", "lane"):
        T.shfl_sync(device("x"), 1.5)
    with refused("TL004", "32 bits"):
        T.shfl_sync(device("x"), 0, mask=1 << 40)
    with refused("TL205", "mask"):
        T.shfl_sync(device("x"), 0, mask=device("m"))


def test_votes(kernel, device, refused):
    x = device("x", "int32")
    assert T.any_sync(x > 0).dtype == "int32"
    assert '"__any_sync", T.uint32(4294967295), T.Cast("int32", x > 0)' in last(kernel)
    assert T.all_sync(x, mask=3).dtype == "int32"
    assert '"__all_sync", T.uint32(3), x' in last(kernel)
    assert T.ballot_sync(x).dtype == T.ballot(x > 1).dtype == T.activemask().dtype == "uint64"
    for name in ("count", "and", "or"):
        assert getattr(T, f"syncthreads_{name}")(x > 0).dtype == "int32"
        assert f'"__syncthreads_{name}"' in last(kernel)
    with refused("TL205", "compare it"):
        T.any_sync(device("f"))


def test_reductions_over_a_warp_take_five_exchanges(kernel, device):
    total = T.warp_reduce_sum(device("x"))
    assert total.dtype == "float32"
    assert [text for text in kernel.text.split() if "__shfl_xor_sync" in text] == ['"__shfl_xor_sync",'] * 5
    for name in ("max", "min", "bitand", "bitor"):
        assert getattr(T, f"warp_reduce_{name}")(device("n", "int32")).dtype == "int32"


def test_block_and_warp_barriers(kernel, refused, device):
    T.sync_threads()
    T.sync_threads(3, 64)
    T.sync_threads(1)
    T.sync_warp()
    T.sync_warp(0xFF)
    first, second, third, fourth, fifth = kernel.calls
    assert (first.name, first["barrier_id"], first["arrive_count"]) == ("sync_threads", None, None)
    assert (second.integer("barrier_id"), second.integer("arrive_count")) == (3, 64)
    assert third.integer("arrive_count") == 128
    assert (fourth["mask"], str(fifth["mask"])) == (None, "T.uint32(255)")
    with refused("TL004", "multiple of 32"):
        T.sync_threads(1, 33)
    with refused("TL004", "0..15"):
        T.sync_threads(16)
    with refused("TL302", "cooperative"):
        T.sync_grid()


def test_mbarriers(kernel, device, refused):
    bars = T.alloc_barrier([128] * 3)
    del kernel.statements[:]
    T.barrier_arrive(bars[1])
    T.mbarrier_arrive(bars[device("i", "int32")])
    T.barrier_wait(bars[0], 0)
    T.mbarrier_wait_parity(bars[2], device("k", "int32"))
    T.mbarrier_expect_tx(bars[0], 4096)
    T.mbarrier_arrive_expect_tx(bars[0], 128)
    names = [call.name for call in kernel.calls]
    assert names == ["barrier_arrive", "barrier_arrive", "barrier_wait", "barrier_wait"] + [
        "barrier_expect_tx",
        "barrier_expect_tx",
        "barrier_arrive",
    ]
    assert [str(call["barrier"].begin[0]) for call in kernel.calls[:4]] == ["1", "i", "0", "2"]
    assert [str(call["parity"]) for call in kernel.calls[2:4]] == ["0", "k & 1"]
    assert "kept" not in kernel.text
    with refused("TL004", "one element"):
        T.barrier_wait(bars, 0)
    with refused("TL004", "T.alloc_barrier"):
        T.barrier_arrive(kernel.buffer("a", (8,))[0])
    with refused("TL205", "float32"):
        T.barrier_wait(bars[0], device("x"))
    with refused("TL004", "parity"):
        T.barrier_wait(bars[0])
    with refused("TL004", "write `T.pdl_sync()`"):
        T.pdl_sync(3)
    with refused("TL208", "T.ClusterKernel"):
        T.mbarrier_arrive(bars[0], cta_id=1)


def test_groups_of_asynchronous_copies(kernel, refused):
    T.ptx_commit_group()
    T.ptx_wait_group(2)
    assert [call.name for call in kernel.calls] == ["commit_group", "wait_group"]
    assert kernel.calls[1].integer("pending") == 2
    with refused("TL004", "0 or more"):
        T.ptx_wait_group(-1)


def test_fences_and_divisions_of_registers_are_for_the_lowering(kernel):
    T.set_max_nreg(240, 1)
    T.dec_max_nreg(24)
    T.set_max_nreg(0, 0)  # leaves them as they are
    T.fence_proxy_async()
    assert [call.name for call in kernel.calls] == ["set_max_nreg", "set_max_nreg", "fence_proxy_async"]
    assert [(call.integer("count"), call.boolean("increase")) for call in kernel.calls[:2]] == [
        (240, True),
        (24, False),
    ]


def test_hints_emit_nothing_and_check_their_arguments(kernel, refused):
    a = kernel.buffer("a", (8,))
    T.annotate_producer_reg_dealloc()
    T.disable_warp_group_reg_alloc()
    T.annotate_l2_hit_ratio({a: 0.5})
    T.annotate_restrict_buffers(a)
    T.annotate_min_blocks_per_sm(2)
    T.warpgroup_fence_operand(kernel.buffer("c", (8,), memory="local.fragment"), num_regs=4)
    assert kernel.statements == []
    with refused("TL004", "multiple of 8"):
        T.set_max_nreg(25, 0)
    with refused("TL004", "0..1"):
        T.annotate_l2_hit_ratio({a: 3})
    with refused("TL004", "parameters"):
        T.annotate_restrict_buffers(kernel.buffer("s", (8,), memory="shared.dyn"))


def test_device_calls_by_name(kernel, device, refused):
    n = device("n", "int32")
    assert T.call_extern("int32", "__popc", n).dtype == "int32"
    assert 'T.call_extern("int32", "__popc", n)' in last(kernel)
    assert written(T.__dict__["__ffs"](n)) == 'T.call_extern("int32", "__ffs", n)'
    assert [T.__dict__["__ffs"](v) for v in (0, 1, 8, 12)] == [0, 1, 4, 3]
    with refused("TL302", "`my_function`", "@T.macro"):
        T.call_extern("float32", "my_function", n)
    with refused("TL004", "1 argument"):
        T.call_extern("int32", "__popc", n, n)


def test_ldg_is_the_element(kernel, refused):
    a = kernel.buffer("a", (8,))
    assert written(T.__dict__["__ldg"](a[3])) == "a[3]"
    assert written(T.__dict__["__ldg"](a, 3)) == "a[3]"
    with refused("TL004", "element"):
        T.__dict__["__ldg"](a)
