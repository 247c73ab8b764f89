"""The T namespace: what a kernel may say.  `import tilelang.language as T` in a cell means this module.

Each subject has a file; `_PUBLIC` says which of its names are public.  Names of Python built-ins (`T.int`, `T.max`,
`T.print`) are bound here alone, so that the files themselves keep Python's.  An unknown attribute is TL003 with the
nearest real name.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, NoReturn

from ..source import catalogue as say
from ..source.calls import unknown_operation
from ..source.diagnostic import Refusal
from .dtypes import DTYPES
from .fast_math import FAST
from .unavailable import REFUSED

# file -> its public names; `name:called` binds a function of the file under another name.
_PUBLIC = {
    "entry": "prim_func macro const",
    "tensors": """Tensor Buffer StridedTensor FragmentBuffer SharedBuffer LocalBuffer Ref dynamic symbolic dyn empty""",
    "parameter_pointers": "ptr make_tensor",
    "dtypes": "dtype Dtype",
    "launch": """Kernel ClusterKernel ws WarpSpecialize get_thread_binding get_thread_bindings get_thread_extent
        get_thread_extents get_block_binding get_block_bindings get_block_extent get_block_extents""",
    "loops": """serial Serial unroll Unroll Parallel parallel vectorized Vectorized Pipelined Persistent grid
        thread_binding""",
    "tile_scheduler": "PersistentTileScheduler",
    "allocation": """alloc_shared alloc_fragment alloc_local alloc_var alloc_global alloc_buffer alloc_buffer:allocate
        alloc_barrier alloc_cluster_barrier alloc_reducer""",
    "copies": "copy async_copy tma_copy fill clear transpose",
    "clusters": "block_rank_in_cluster cluster_sync cluster_arrive cluster_wait copy_cluster",
    "convolution": "im2col c2d_im2col",
    "matmul": "gemm wgmma_gemm wgmma_gemm:wgmma_mma GemmWarpPolicy",
    "reductions": """reduce reduce_sum reduce_max reduce_min reduce_abssum reduce_absmax reduce_bitand reduce_bitor
        reduce_bitxor cumsum cummax any_of all_of""",
    "thread_reductions": "attr comm_reducer tvm_thread_allreduce",
    "reducers": "reducer_init reducer_update finalize_reducer",
    "atomics": """atomic_add atomic_max atomic_min atomic_or atomic_addx2 atomic_addx4 atomic_load atomic_store""",
    "dot_products": "dp4a",
    "conversion": "cast Cast reinterpret reshape view",
    "elementary": """exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan atan2 erf
        sigmoid floor ceil trunc nearbyint round_of:round abs_of:abs fabs power:pow fmod isnan isinf isfinite""",
    "selection": "if_then_else Select min_of:min max_of:max clamp",
    "integers": """ceildiv floordiv floormod truncdiv truncmod bitwise_and bitwise_or bitwise_xor bitwise_not
        shift_left shift_right align_up index_to_coordinates infinity min_value max_value popcount clz""",
    "fast_math": "ieee_add ieee_sub ieee_mul ieee_fdiv ieee_fmaf ieee_frcp ieee_fsqrt ieee_frsqrt fast_rcp",
    "pointers": "access_ptr address_of tvm_access_ptr type_annotation ptx_cp_async",
    "device_calls": "call_extern find_first_set:__ffs read_only_load:__ldg",
    "warp": """shfl_sync shfl_xor shfl_up shfl_down shfl_xor_sync shfl_up_sync shfl_down_sync any_sync all_sync
        ballot_sync ballot activemask get_lane_idx get_warp_idx get_warp_idx_sync get_warp_group_idx shuffle_elect
        warp_reduce_sum warp_reduce_max warp_reduce_min warp_reduce_bitand warp_reduce_bitor""",
    "sync": """sync_threads sync_warp sync_grid syncthreads_count syncthreads_and syncthreads_or mbarrier_arrive
        barrier_arrive ptx_arrive_barrier ptx_arrive_cluster_barrier named_barrier_arrive mbarrier_wait_parity
        barrier_wait mbarrier_expect_tx cp_async_barrier_noinc
        mbarrier_arrive_expect_tx ptx_commit_group ptx_wait_group cp_async_commit_group cp_async_wait_group
        ptx_init_barrier_thread_count ptx_fence_barrier_init pdl_sync pdl_trigger""",
    "hints": """set_max_nreg inc_max_nreg dec_max_nreg no_set_max_nreg disable_warp_group_reg_alloc
        annotate_producer_reg_dealloc annotate_consumer_reg_alloc fence_proxy_async tma_store_arrive tma_store_wait
        wait_wgmma warpgroup_arrive warpgroup_commit_batch warpgroup_wait warpgroup_fence_operand
        annotate_l2_hit_ratio annotate_restrict_buffers annotate_min_blocks_per_sm annotate_compile_flags
        annotate_pass_configs""",
    "debug": "print_of:print device_assert Assert assume evaluate",
    "layouts": "Layout",
    "fragment_layouts": "Fragment",
    "swizzled_layouts": """make_swizzled_layout make_full_bank_swizzled_layout make_half_bank_swizzled_layout
        make_quarter_bank_swizzled_layout make_linear_layout""",
    "annotations": "annotate_layout annotate_safe_value use_swizzle",
}
__tilelang_dialect__ = "cuda"


def _collected() -> dict[str, Any]:
    names: dict[str, Any] = {**REFUSED, **DTYPES, **FAST}
    for file, public in _PUBLIC.items():
        module = importlib.import_module(f"{__name__}.{file}")
        for entry in public.split():
            name, _, called = entry.partition(":")
            names[called or name] = getattr(module, name)
    return names


_NAMES = _collected()
__all__ = sorted(_NAMES)
globals().update(_NAMES)
for _file in [*_PUBLIC, "calling", "unavailable", "operands", "promotion", "values"]:
    # Files are no operations: `T.copies` is TL003, while `from tilelang_nb.language import copies` goes on working.
    globals().pop(_file, None)


class UnknownOperation(Refusal, AttributeError):
    """TL003; an AttributeError too, so that `hasattr`, `getattr` with a default and imports work as for any module."""


def unknown(name: str) -> NoReturn:
    """TL003 with the nearest real name."""
    raise UnknownOperation(unknown_operation(name, _NAMES.keys() - REFUSED.keys()))


class _Namespace(ModuleType):
    """What stands in `T` stays: every later cell and kernel reads it."""

    def __setattr__(self, name: str, value: Any) -> None:
        _check_free(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        _check_free(name)
        super().__delattr__(name)


def _check_free(name: str) -> None:
    if name in _NAMES:
        remedy = "bind a name of your own"
        raise Refusal(say.UnsupportedSyntax(what=f"a change of `T.{name}`", remedy=remedy))


_Namespace.__name__ = "module"  # messages say what it is
sys.modules[__name__].__class__ = _Namespace


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    unknown(name)


def __dir__() -> list[str]:
    return list(__all__)
