// Bulk copies and matrix multiplication by warp groups (sm_90a).

//: tl_wgmma_descriptor
// A matrix in shared memory: offsets in 16 bytes, layout 1, 2, 3 for swizzles of 128, 64, 32 bytes.
__device__ __forceinline__ unsigned long long tl_wgmma_descriptor(const void* start, int leading, int stride, int layout) {
  unsigned int address = (unsigned int)__cvta_generic_to_shared(start);
  return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)leading << 16 |
         (unsigned long long)stride << 32 | (unsigned long long)layout << 62;
}

//: tl_wgmma_descriptor_at
// The matrix `units` of 16 bytes behind the start of a tile.
__device__ __forceinline__ unsigned long long tl_wgmma_descriptor_at(const void* start, int units, int leading,
                                                                     int stride, int layout) {
  unsigned int low = ((unsigned int)__cvta_generic_to_shared(start) & 0x3FFFF) >> 4 | leading << 16;
  unsigned int high = (unsigned int)stride | (unsigned int)layout << 30;
  return (unsigned long long)high << 32 | (low + units);
}

//: tl_warp_uniform
// A value on which the lanes of a warp agree, as the compiler sees from now on.
__device__ __forceinline__ int tl_warp_uniform(int value) { return __shfl_sync(0xFFFFFFFF, value, 0); }

//: tl_register_fence
// No use of the register moves to before this: it may be written by instructions that the compiler does not see.
__device__ __forceinline__ void tl_register_fence(float& value) { asm volatile("" : "+f"(value) :: "memory"); }
__device__ __forceinline__ void tl_register_fence(unsigned int& value) { asm volatile("" : "+r"(value) :: "memory"); }
