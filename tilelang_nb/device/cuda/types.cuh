// Types and constants by the names that TVM's printer and NVIDIA's headers give them.

//: uchar
typedef unsigned char uchar;

//: ushort
typedef unsigned short ushort;

//: uint
typedef unsigned int uint;

//: int8_t
typedef signed char int8_t;

//: int16_t
typedef short int16_t;

//: int32_t
typedef int int32_t;

//: int64_t
typedef long long int64_t;

//: uint8_t
typedef unsigned char uint8_t;

//: uint16_t
typedef unsigned short uint16_t;

//: uint32_t
typedef unsigned int uint32_t;

//: uint64_t
typedef unsigned long long uint64_t;

//: nv_bfloat16
typedef __nv_bfloat16 nv_bfloat16;

//: nv_bfloat162
typedef __nv_bfloat162 nv_bfloat162;

//: half4
struct __align__(8) half4 { half x, y, z, w; };
__device__ __forceinline__ half4 make_half4(half x, half y, half z, half w) { return half4{x, y, z, w}; }

//: nv_bfloat164
struct __align__(8) nv_bfloat164 { nv_bfloat16 x, y, z, w; };
__device__ __forceinline__ nv_bfloat164 make_bfloat164(nv_bfloat16 x, nv_bfloat16 y, nv_bfloat16 z, nv_bfloat16 w) { return nv_bfloat164{x, y, z, w}; }

//: fp8_e4_t
typedef __nv_fp8_e4m3 fp8_e4_t;

//: fp8_e4x2_t
typedef __nv_fp8x2_e4m3 fp8_e4x2_t;

//: fp8_e4x4_t
typedef __nv_fp8x4_e4m3 fp8_e4x4_t;

//: fp8_e4x8_t
struct __align__(8) fp8_e4x8_t { fp8_e4x4_t x, y; };

//: fp8_e4x16_t
struct __align__(16) fp8_e4x16_t { fp8_e4x8_t x, y; };

//: fp8_e5_t
typedef __nv_fp8_e5m2 fp8_e5_t;

//: fp8_e5x2_t
typedef __nv_fp8x2_e5m2 fp8_e5x2_t;

//: fp8_e5x4_t
typedef __nv_fp8x4_e5m2 fp8_e5x4_t;

//: fp8_e5x8_t
struct __align__(8) fp8_e5x8_t { fp8_e5x4_t x, y; };

//: fp8_e5x16_t
struct __align__(16) fp8_e5x16_t { fp8_e5x8_t x, y; };

//: CUtensorMap
struct __align__(64) CUtensorMap { unsigned long long opaque[16]; };

//: CUDART_INF_F
#define CUDART_INF_F __int_as_float(0x7f800000)

//: CUDART_NAN_F
#define CUDART_NAN_F __int_as_float(0x7fffffff)

//: CUDART_INF
#define CUDART_INF __longlong_as_double(0x7ff0000000000000ll)

//: CUDART_NAN
#define CUDART_NAN __longlong_as_double(0x7fffffffffffffffll)

//: HOST_DEVICE
#define HOST_DEVICE __device__ __forceinline__

//: __asm__
#define __asm__ asm

//: __volatile__
#define __volatile__ volatile

//: __pack_half2
__device__ __forceinline__ unsigned __pack_half2(half x, half y) {
  return (unsigned)__half_as_ushort(y) << 16 | __half_as_ushort(x);
}

//: __pack_nv_bfloat162
__device__ __forceinline__ unsigned __pack_nv_bfloat162(nv_bfloat16 x, nv_bfloat16 y) {
  return (unsigned)__bfloat16_as_ushort(y) << 16 | __bfloat16_as_ushort(x);
}
