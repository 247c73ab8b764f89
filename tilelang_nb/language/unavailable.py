"""Names that upstream has and this version does not lower: each exists, says why (TL302) and what to write instead.

A group is a reason, a remedy and its names.  Nothing here computes; a name moves to a file of its own when it is
lowered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .operands import unavailable

_BLACKWELL = "is an operation of sm_100 tensor cores; this version lowers for sm_70 to sm_90"
_HOPPER = "is an operation of sm_90 that this version does not lower yet"
_DESCRIPTOR = "works on a descriptor of the hardware"
_AMD = "is an operation of AMD devices"
_SCRIPT = "is a form of TVMScript, which builds IR by hand"
_RAW = "names a device instruction directly"
_POINTER = "takes a bare pointer"
_SCHEDULE = "states a warp schedule by hand, which this version does not take"
_PACKED = "works on two packed elements"
_FOREIGN = "puts foreign code into the kernel"

# reason, remedy, names
GROUPS: tuple[tuple[str, str, str], ...] = (
    (
        _BLACKWELL,
        "use `T.gemm` with a fragment as accumulator",
        "tcgen05_gemm tcgen05_gemm_blockscaled tcgen05_mma tcgen05_mma_blockscaled tcgen05_mma_arrive "
        "tcgen05_cp_warpx4 tcgen05_sf_warp_transpose tcgen05_before_thread_sync tcgen05_after_thread_sync "
        "alloc_tmem deallocate_tmem alloc_tcgen05_smem_desc initialize_tcgen05_descriptor "
        "mma_gemm_blockscaled ptx_mma_block_scale",
    ),
    (
        _BLACKWELL,
        "give each block its tiles with `T.Persistent`",
        "clc_try_cancel clc_try_cancel_multicast clc_is_canceled clc_get_first_ctaid_x clc_get_first_ctaid_y "
        "clc_get_first_ctaid_z",
    ),
    (
        _BLACKWELL,
        "copy the rows with `T.copy`, or one by one with `T.tma_copy`",
        "tma_gather4 tma_gather4_bytes tma_scatter4",
    ),
    (_BLACKWELL, "use `T.tma_copy`", "tma_load_2sm"),
    (
        _DESCRIPTOR,
        "use `T.tma_copy(A[i, j], tile, barrier=bar)`, which makes the descriptor itself",
        "tma_load create_tma_descriptor",
    ),
    (
        _DESCRIPTOR,
        "use `T.wgmma_gemm(A_shared, B_shared, C)`, which makes the descriptors itself",
        "ptx_wgmma_ss ptx_wgmma_rs alloc_wgmma_desc initialize_wgmma_descriptor increase_descriptor_offset",
    ),
    (_HOPPER, "use `T.gemm`", "gemm_sp"),
    (_AMD, "use `T.gemm`", "mfma mfma_store tvm_mfma tvm_mfma_store tvm_rdna_wmma"),
    (_AMD, "use `T.copy`", "ds_read_tr16_b64 ds_read_tr8_b64"),
    (
        _SCHEDULE,
        "use `with T.ws(...)`, or leave the schedule to the compiler",
        "WSSync WSSyncKind WSScope WSRole WSPipeline WSSchedule WSInstr WSOpRef WSID annotate_ws_schedule ws_op",
    ),
    (
        _SCRIPT,
        "write Python's own statements: `if`, `for`, `while`, `x = ...`",
        "If Then Else While let bind sblock sblock_attr sblock_alloc_buffer reads writes func_attr "
        "buffer_store launch_thread env_thread Ramp Broadcast Shuffle "
        "Var PrimExpr target thread_return region decl_buffer",
    ),
    (_SCRIPT, "write `break`", "loop_break"),
    (_SCRIPT, "declare the parameter as `A: T.Tensor(shape, dtype)`", "match_buffer"),
    (_RAW, "use `T.sync_threads()`", "tvm_storage_sync sync_global"),
    (_RAW, "use `T.shfl_sync`", "tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down"),
    (_RAW, "use `T.any_sync`, `T.all_sync` or `T.ballot_sync`", "match_any_sync match_all_sync __fns"),
    (
        _RAW,
        "read and write elements: `A[i]`; `T.vectorized` makes them one access",
        "ldg32 ldg64 ldg128 ldg256 stg32 stg64 stg128 stg256 lds32 lds64 lds128 sts32 sts64 sts128 extract_lane",
    ),
    (
        _POINTER,
        "pass the buffer or a region of it",
        "handle_add_byte_offset make_tensor_from_addr",
    ),
    (_PACKED, "compute on the elements: `T.vectorized` packs them", "add2 sub2 mul2 fma2 max2 min2 abs2"),
    (
        _FOREIGN,
        "write it as a macro: `@T.macro`",
        "import_source call_intrin call_pure_extern call_packed call_cpacked tvm_call_cpacked CUDASourceCodeKernel",
    ),
    (
        "needs a random number library on the device",
        "pass the random numbers as a tensor",
        "rng_init rng_rand rng_rand_float",
    ),
)


def _refused(name: str, reason: str, remedy: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        unavailable(f"`T.{name}` {reason}", remedy)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Not lowered by this version: `T.{name}` {reason}.\n\n"
        f"    Errors: TL302 always; {remedy}.  Source: upstream `T.{name}`."
    )
    return function


REFUSED: dict[str, Callable[..., Any]] = {
    name: _refused(name, reason, remedy) for reason, remedy, names in GROUPS for name in names.split()
}
