// Narrow floats for kernels that only move them and convert them from and to float32: NVIDIA's headers cost NVRTC more
// time than the rest of such a kernel.

//: half
struct __align__(2) half {
  unsigned short bits;
  half() = default;
  __device__ __forceinline__ explicit half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
struct __align__(4) half2 { half x, y; };
__device__ __forceinline__ half __float2half_rn(float x) { return half(x); }
__device__ __forceinline__ float __half2float(half x) { return x; }

//: nv_bfloat16
struct __align__(2) __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  __device__ __forceinline__ explicit __nv_bfloat16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};
struct __align__(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
__device__ __forceinline__ __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
__device__ __forceinline__ float __bfloat162float(__nv_bfloat16 x) { return x; }
