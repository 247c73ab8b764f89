"""What `T` offers, as text: it is read without TVM.  Written by `pytest --update-goldens tests/frontend`."""

from __future__ import annotations

# One operation a line, `name(parameters)`, with `=` behind a parameter that has a default, and `name -> called` where
# messages call it otherwise.  Lines that begin with blanks continue the one above.
SIGNATURES = """\
Assert(condition, message=, error_kind=)
Buffer(shape, dtype=, data=, strides=, elem_offset=, scope=, align=, offset_factor=, buffer_type=, axis_separators=)
Cast(dtype, value, annotations=, span=)
ClusterKernel(*blocks, cluster_dims, threads=, prelude=)
Fragment(shape, forward_fn=, forward_thread_fn=, replicate=, forward_index_fn=)
FragmentBuffer(shape, dtype=, data=, strides=, elem_offset=, scope=, align=, offset_factor=, buffer_type=,
    axis_separators=) -> Buffer
Kernel(*blocks, threads=, prelude=, cluster_dims=)
Layout(shape, forward_fn)
LocalBuffer(shape, dtype=, data=, strides=, elem_offset=, scope=, align=, offset_factor=, buffer_type=,
    axis_separators=) -> Buffer
Parallel(*extents, coalesced_width=, loop_layout=, prefer_async=, annotations=)
Persistent(domain, wave_size, index, group_size=, num_stages=, *, annotations=)
PersistentTileScheduler(num_m_tiles, num_n_tiles, num_workers=, swizzle_size=, column_major=, cluster_size=,
    stateful=, name=)
Pipelined(start, stop=, num_stages=, order=, stage=, sync=, group=, annotations=)
Select(condition, true_value, false_value, span=)
Serial(start, stop=, step=, *, annotations=)
SharedBuffer(shape, dtype=, data=, strides=, elem_offset=, scope=, align=, offset_factor=, buffer_type=,
    axis_separators=) -> Buffer
StridedTensor(shape, strides, dtype=, scope=, *, data=)
Tensor(shape, dtype=, data=, scope=)
Unroll(start, stop=, step=, *, explicit=, unroll_factor=, annotations=)
Vectorized(start, stop=, *, annotations=)
WarpSpecialize(*warp_group_idx) -> ws
__cos(x)
__exp(x)
__exp10(x)
__ffs(value)
__ldg(load_or_buf, index=)
__log(x)
__log10(x)
__log2(x)
__sin(x)
__tan(x)
abs(x, span=)
access_ptr(base, access_type=, *extents, offset=, extent=, ignore_last_ndim=)
acos(x)
activemask()
address_of(obj, span=)
align_up(x, y)
all_of(buffer)
all_sync(predicate, mask=)
alloc_barrier(arrive_count)
alloc_buffer(shape, dtype=, scope=, annotations=, data=)
alloc_cluster_barrier(arrive_count)
alloc_fragment(shape, dtype, scope=)
alloc_global(shape, dtype, scope=)
alloc_local(shape, dtype, scope=)
alloc_reducer(shape, dtype, op=, replication=)
alloc_shared(shape, dtype, scope=)
alloc_var(dtype, *args, scope=, init=)
allocate(shape, dtype=, scope=, annotations=, data=) -> alloc_buffer
annotate_compile_flags(flags)
annotate_consumer_reg_alloc(reg_count=)
annotate_l2_hit_ratio(l2_hit_ratio_map)
annotate_layout(layout_map)
annotate_min_blocks_per_sm(n)
annotate_pass_configs(configs)
annotate_producer_reg_dealloc(reg_count=)
annotate_restrict_buffers(*buffers)
annotate_safe_value(safe_value_map)
any_of(buffer)
any_sync(predicate, mask=)
asin(x)
assume(cond=)
async_copy(src, dst, *, coalesced_width=, annotations=, loop_layout=)
atan(x)
atan2(x1, x2)
atomic_add(dst, value, memory_order=, return_prev=, use_tma=, annotations=)
atomic_addx2(dst, value, return_prev=)
atomic_addx4(dst, value, return_prev=)
atomic_load(src, memory_order=)
atomic_max(dst, value, memory_order=, return_prev=, annotations=)
atomic_min(dst, value, memory_order=, return_prev=, annotations=)
atomic_or(dst, value, memory_order=)
atomic_store(dst, src, memory_order=)
attr(node, attr_key, value=)
ballot(predicate)
ballot_sync(predicate, mask=)
barrier_arrive(mbarrier)
barrier_wait(mbarrier, parity)
bitwise_and(x, y, span=)
bitwise_not(x, span=)
bitwise_or(x, y, span=)
bitwise_xor(x, y, span=)
block_rank_in_cluster()
c2d_im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad, eviction_policy=, annotations=) -> im2col
call_extern(*args, dtype=, span=)
cast(value, dtype, round=, sat=, rbits=, span=)
ceil(x, span=)
ceildiv(lhs, rhs, span=)
clamp(dst, min_val, max_val)
clear(buffer, annotations=)
cluster_arrive()
cluster_sync()
cluster_wait()
clz(x)
comm_reducer(combiner, identity)
const(name, dtype=)
copy(src, dst, *, coalesced_width=, disable_tma=, eviction_policy=, prefer_instruction=, annotations=, loop_layout=)
copy_cluster(src, dst, *, dst_block=, cluster_mask=, remote_barrier=, eviction_policy=, coalesced_width=,
    annotations=, loop_layout=)
cos(x)
cosh(x)
cp_async_barrier_noinc(barrier)
cp_async_commit_group() -> ptx_commit_group
cp_async_wait_group(num) -> ptx_wait_group
cummax(src, dst=, dim=, reverse=, annotations=)
cumsum(src, dst=, dim=, reverse=, annotations=)
dec_max_nreg(reg_count)
device_assert(condition, msg=, no_stack_info=)
disable_warp_group_reg_alloc()
dp4a(A, B, C)
dyn(name, dtype=) -> dynamic
dynamic(name, dtype=)
empty(*shape, dtype=)
erf(x)
evaluate(value=)
exp(x)
exp10(x)
exp2(x)
fabs(x, span=)
fast_rcp(x)
fence_proxy_async()
fill(buffer, value, annotations=)
finalize_reducer(reducer, dst=, batch=, annotations=)
floor(x, span=)
floordiv(a, b, span=)
floormod(a, b, span=)
fmod(x, y)
gemm(A, B, C, transpose_A=, transpose_B=, policy=, clear_accum=, k_pack=, wg_wait=, mbar=, annotations=)
get_block_binding(dim=)
get_block_bindings()
get_block_extent(dim=)
get_block_extents()
get_lane_idx(warp_size=)
get_thread_binding(dim=)
get_thread_bindings()
get_thread_extent(dim=)
get_thread_extents()
get_warp_group_idx(warp_size=, warps_per_group=)
get_warp_idx(warp_size=)
get_warp_idx_sync(warp_size=)
grid(*extents)
ieee_add(x, y, rounding_mode=)
ieee_fdiv(x, y, rounding_mode=)
ieee_fmaf(x, y, z, rounding_mode=)
ieee_frcp(x, rounding_mode=)
ieee_frsqrt(x)
ieee_fsqrt(x, rounding_mode=)
ieee_mul(x, y, rounding_mode=)
ieee_sub(x, y, rounding_mode=)
if_then_else(cond, t, f, span=)
im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad, eviction_policy=, annotations=)
inc_max_nreg(reg_count)
index_to_coordinates(index, shape)
infinity(dtype, span=)
isfinite(x, span=)
isinf(x, span=)
isnan(x, span=)
log(x)
log10(x)
log1p(x)
log2(x)
macro(func=)
make_full_bank_swizzled_layout(buffer)
make_half_bank_swizzled_layout(buffer)
make_linear_layout(buffer)
make_quarter_bank_swizzled_layout(buffer)
make_swizzled_layout(buffer, k_major=, allow_pad=)
make_tensor(ptr, shape, dtype=, strides=)
max(*values)
max_value(dtype, span=)
mbarrier_arrive(mbarrier, cta_id=)
mbarrier_arrive_expect_tx(mbarrier, tx)
mbarrier_expect_tx(mbarrier, tx)
mbarrier_wait_parity(mbarrier, parity)
min(*values)
min_value(dtype, span=)
named_barrier_arrive(barrier_id, thread_count)
nearbyint(x, span=)
no_set_max_nreg()
parallel(start, stop=, *, annotations=)
pdl_sync()
pdl_trigger()
popcount(x)
pow(x, y, span=)
prim_func(func=, *, private=, check_well_formed=, eager_jit=)
print(obj=, msg=, warp_group_id=, warp_id=)
ptr(dtype=, storage_scope=, *, is_size_var=)
ptx_arrive_barrier(barrier_id)
ptx_arrive_cluster_barrier(mbarrier, cta_id)
ptx_commit_group()
ptx_cp_async(dst_access_ptr, src_access_ptr, num_elems, predicate=)
ptx_fence_barrier_init()
ptx_init_barrier_thread_count(barrier_id, thread_count)
ptx_wait_group(num)
reduce(buffer, out, reduce_type, dim, clear=, batch=, nan_propagate=, annotations=)
reduce_absmax(buffer, out, dim=, clear=, batch=, nan_propagate=, annotations=)
reduce_abssum(buffer, out, dim=, clear=, batch=, annotations=)
reduce_bitand(buffer, out, dim=, clear=, batch=, annotations=)
reduce_bitor(buffer, out, dim=, clear=, batch=, annotations=)
reduce_bitxor(buffer, out, dim=, clear=, batch=, annotations=)
reduce_max(buffer, out, dim=, clear=, batch=, nan_propagate=, annotations=)
reduce_min(buffer, out, dim=, clear=, batch=, nan_propagate=, annotations=)
reduce_sum(buffer, out, dim=, clear=, batch=, annotations=)
reducer_init(reducer, init=)
reducer_update(target, value)
reinterpret(value, dtype, span=)
reshape(src, shape)
round(x, rounding_mode=, span=)
rsqrt(x)
serial(start, stop=, step=, *, annotations=)
set_max_nreg(reg_count, is_inc)
shfl_down(value, delta, width=, mask=)
shfl_down_sync(value, delta, width=, mask=) -> shfl_down
shfl_sync(value, srcLane, width=, mask=)
shfl_up(value, delta, width=, mask=)
shfl_up_sync(value, delta, width=, mask=) -> shfl_up
shfl_xor(value, delta, width=, mask=)
shfl_xor_sync(value, delta, width=, mask=) -> shfl_xor
shift_left(x, y, span=)
shift_right(x, y, span=)
shuffle_elect(thread_extent)
sigmoid(x)
sin(x)
sinh(x)
sqrt(x)
symbolic(name, dtype=)
sync_grid()
sync_threads(barrier_id=, arrive_count=)
sync_warp(mask=)
syncthreads_and(predicate)
syncthreads_count(predicate)
syncthreads_or(predicate)
tan(x)
tanh(x)
thread_binding(start, stop=, thread=, *, annotations=)
tma_copy(src, dst, *, barrier=, cluster_mask=, leader_scope_threads=, eviction_policy=, annotations=)
tma_store_arrive()
tma_store_wait(count=, read=)
transpose(src, dst, annotations=)
trunc(x, span=)
truncdiv(a, b, span=)
truncmod(a, b, span=)
tvm_access_ptr(ptype, data, offset, extent, rw_mask)
tvm_thread_allreduce(size, value, condition, result, *axes, dtype=)
type_annotation(dtype)
unroll(start, stop=, step=, *, explicit=, unroll_factor=, annotations=)
use_swizzle(panel_size, order=, enable=)
vectorized(start, stop=, *, annotations=)
view(src, shape=, dtype=, strides=)
wait_wgmma(id)
warp_reduce_bitand(value)
warp_reduce_bitor(value)
warp_reduce_max(value)
warp_reduce_min(value)
warp_reduce_sum(value)
warpgroup_arrive()
warpgroup_commit_batch()
warpgroup_fence_operand(buffer_or_ptr, offset=, num_regs=, dtype=)
warpgroup_wait(num_mma)
wgmma_gemm(A, B, C, transpose_A=, transpose_B=, policy=, clear_accum=, annotations=)
wgmma_mma(A, B, C, transpose_A=, transpose_B=, policy=, clear_accum=, annotations=) -> wgmma_gemm
ws(*warp_group_idx)
"""
UNCHECKED = """\
Broadcast CUDASourceCodeKernel Dtype Else GemmWarpPolicy If PrimExpr Ramp Ref Shuffle Then Var WSID WSInstr WSOpRef
    WSPipeline WSRole WSSchedule WSScope WSSync WSSyncKind While __fns abs2 add2 alloc_tcgen05_smem_desc alloc_tmem
    alloc_wgmma_desc annotate_ws_schedule bind buffer_store call_cpacked call_intrin call_packed call_pure_extern
    clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled clc_try_cancel
    clc_try_cancel_multicast create_tma_descriptor deallocate_tmem decl_buffer ds_read_tr16_b64 ds_read_tr8_b64 dtype
    env_thread extract_lane fma2 func_attr gemm_sp handle_add_byte_offset import_source increase_descriptor_offset
    initialize_tcgen05_descriptor initialize_wgmma_descriptor launch_thread ldg128 ldg256 ldg32 ldg64 lds128 lds32
    lds64 let loop_break make_tensor_from_addr match_all_sync match_any_sync match_buffer max2 mfma mfma_store min2
    mma_gemm_blockscaled mul2 ptx_mma_block_scale ptx_wgmma_rs ptx_wgmma_ss reads region rng_init rng_rand
    rng_rand_float sblock sblock_alloc_buffer sblock_attr stg128 stg256 stg32 stg64 sts128 sts32 sts64 sub2
    sync_global target tcgen05_after_thread_sync tcgen05_before_thread_sync tcgen05_cp_warpx4 tcgen05_gemm
    tcgen05_gemm_blockscaled tcgen05_mma tcgen05_mma_arrive tcgen05_mma_blockscaled tcgen05_sf_warp_transpose
    thread_return tma_gather4 tma_gather4_bytes tma_load tma_load_2sm tma_scatter4 tvm_call_cpacked tvm_mfma
    tvm_mfma_store tvm_rdna_wmma tvm_storage_sync tvm_warp_shuffle tvm_warp_shuffle_down tvm_warp_shuffle_up writes
    ws_op
"""
EXPORTED_DTYPES = """\
bf16 bfloat16 bfloat16x16 bfloat16x2 bfloat16x32 bfloat16x4 bfloat16x64 bfloat16x8 bool bool_ boolean double
    e4m3_float8 e5m2_float8 float float16 float16x16 float16x2 float16x32 float16x4 float16x64 float16x8 float32
    float32x16 float32x2 float32x32 float32x4 float32x64 float32x8 float4_e2m1_unpacked float4_e2m1fn float4_e2m1fn_x2
    float4_e2m1fnx16 float4_e2m1fnx2 float4_e2m1fnx32 float4_e2m1fnx4 float4_e2m1fnx64 float4_e2m1fnx8 float64
    float64x16 float64x2 float64x32 float64x4 float64x64 float64x8 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3
    float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e4m3fnx16 float8_e4m3fnx2 float8_e4m3fnx32 float8_e4m3fnx4
    float8_e4m3fnx64 float8_e4m3fnx8 float8_e4m3x16 float8_e4m3x2 float8_e4m3x32 float8_e4m3x4 float8_e4m3x64
    float8_e4m3x8 float8_e5m2 float8_e5m2fnuz float8_e5m2x16 float8_e5m2x2 float8_e5m2x32 float8_e5m2x4 float8_e5m2x64
    float8_e5m2x8 float8_e8m0fnu float8_e8m0fnux16 float8_e8m0fnux2 float8_e8m0fnux32 float8_e8m0fnux4
    float8_e8m0fnux64 float8_e8m0fnux8 fp16 fp32 fp64 half handle int int16 int16x16 int16x2 int16x32 int16x4 int16x64
    int16x8 int32 int32x16 int32x2 int32x32 int32x4 int32x64 int32x8 int4 int64 int64x16 int64x2 int64x32 int64x4
    int64x64 int64x8 int8 int8x16 int8x2 int8x32 int8x4 int8x64 int8x8 long longlong short tf32 tfloat32 uint uint16
    uint16x16 uint16x2 uint16x32 uint16x4 uint16x64 uint16x8 uint32 uint32x16 uint32x2 uint32x32 uint32x4 uint32x64
    uint32x8 uint4 uint64 uint64x16 uint64x2 uint64x32 uint64x4 uint64x64 uint64x8 uint8 uint8x16 uint8x2 uint8x32
    uint8x4 uint8x64 uint8x8 ulong ushort
"""
SCALARS = """\
bf16 bfloat16 bool bool_ boolean custom[tfloat32] double e4m3_float8 e5m2_float8 float float16 float32
    float4_e2m1_unpacked float4_e2m1fn float4_e2m1fn_x2 float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3
    float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu fp16 fp32 fp64 half
    handle int int16 int32 int4 int64 int8 long longlong short tf32 tfloat32 uint uint16 uint32 uint4 uint64 uint8
    ulong ushort
"""
