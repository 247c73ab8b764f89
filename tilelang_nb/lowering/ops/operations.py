"""Which module lowers which operation; those that legalise expands into loops are not here."""

from __future__ import annotations

from ..context import OperationLowering
from . import (
    accumulator_store,
    atomic_element,
    copy_groups,
    cumulate,
    device_assert,
    gemm,
    hints,
    mbarriers,
    print,
    reduce,
    reducer,
    registers,
    synchronisation,
    tensor_copies,
    thread_reduce,
    wgmma_wait,
)

OPERATIONS: dict[str, OperationLowering] = {
    "gemm": gemm,
    "reduce": reduce,
    "cumulate": cumulate,
    "thread_reduce": thread_reduce,
    "reducer": reducer,
    "finalize_reducer": reducer,
    "fill": reducer,  # of a reducer; any other is a loop by now
    "atomic_element": atomic_element,
    "atomic_load": atomic_element,
    "atomic_store": atomic_element,
    "print": print,
    "device_assert": device_assert,
    "use_swizzle": hints,
    "commit_group": copy_groups,
    "wait_group": copy_groups,
    "sync_threads": synchronisation,
    "sync_warp": synchronisation,
    "sync_grid": synchronisation,
    "barrier_init": mbarriers,
    "barrier_arrive": mbarriers,
    "barrier_wait": mbarriers,
    "barrier_expect_tx": mbarriers,
    "fence_barrier_init": mbarriers,
    "tma_copy": tensor_copies,
    "tensor_load": tensor_copies,
    "tensor_store": tensor_copies,
    "accumulator_store": accumulator_store,
    "wait_boxes": accumulator_store,
    "set_max_nreg": registers,
    "wait_wgmma": wgmma_wait,
    "pack_operand": wgmma_wait,
    "fence_proxy_async": copy_groups,
}
