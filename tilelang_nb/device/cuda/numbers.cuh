// Functions that compute with numbers.  They mean what the simulated device means by the same names; overloads for
// narrow floats compute in float32.

//: tl_to_int8
__device__ __forceinline__ signed char tl_to_int8(float x) { return (signed char)min(max(__float2int_rz(x), -128), 127); }
__device__ __forceinline__ signed char tl_to_int8(double x) { return (signed char)min(max(__double2int_rz(x), -128), 127); }

//: tl_to_int16
__device__ __forceinline__ short tl_to_int16(float x) { return (short)min(max(__float2int_rz(x), -32768), 32767); }
__device__ __forceinline__ short tl_to_int16(double x) { return (short)min(max(__double2int_rz(x), -32768), 32767); }

//: tl_to_int32
__device__ __forceinline__ int tl_to_int32(float x) { return (int)__float2int_rz(x); }
__device__ __forceinline__ int tl_to_int32(double x) { return (int)__double2int_rz(x); }

//: tl_to_int64
__device__ __forceinline__ long long tl_to_int64(float x) { return (long long)__float2ll_rz(x); }
__device__ __forceinline__ long long tl_to_int64(double x) { return (long long)__double2ll_rz(x); }

//: tl_to_uint8
__device__ __forceinline__ unsigned char tl_to_uint8(float x) { return (unsigned char)min(max(__float2uint_rz(x), 0u), 255u); }
__device__ __forceinline__ unsigned char tl_to_uint8(double x) { return (unsigned char)(x == x ? min(max(__double2uint_rz(x), 0u), 255u) : 128u); }

//: tl_to_uint16
__device__ __forceinline__ unsigned short tl_to_uint16(float x) { return (unsigned short)min(max(__float2uint_rz(x), 0u), 65535u); }
__device__ __forceinline__ unsigned short tl_to_uint16(double x) { return (unsigned short)(x == x ? min(max(__double2uint_rz(x), 0u), 65535u) : 32768u); }

//: tl_to_uint32
__device__ __forceinline__ unsigned tl_to_uint32(float x) { return (unsigned)__float2uint_rz(x); }
__device__ __forceinline__ unsigned tl_to_uint32(double x) { return (unsigned)__double2uint_rz(x); }

//: tl_to_uint64
__device__ __forceinline__ unsigned long long tl_to_uint64(float x) { return (unsigned long long)__float2ull_rz(x); }
__device__ __forceinline__ unsigned long long tl_to_uint64(double x) { return (unsigned long long)__double2ull_rz(x); }

//: tl_to_float8_e4m3fn
__device__ __forceinline__ __nv_fp8_e4m3 tl_to_float8_e4m3fn(float x) {
  __nv_fp8_e4m3 y;  // the conversion saturates; beyond the last number there is only NaN
  y.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  if (!(fabsf(x) <= 464.0f)) y.__x = __float_as_uint(x) >> 31 << 7 | 0x7f;
  return y;
}

//: tl_to_float8_e4m3
__device__ __forceinline__ __nv_fp8_e4m3 tl_to_float8_e4m3(float x) {
  __nv_fp8_e4m3 y;  // the conversion saturates; beyond the last number there is only NaN
  y.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  if (!(fabsf(x) <= 464.0f)) y.__x = __float_as_uint(x) >> 31 << 7 | 0x7f;
  return y;
}

//: tl_to_float8_e5m2
__device__ __forceinline__ __nv_fp8_e5m2 tl_to_float8_e5m2(float x) {
  __nv_fp8_e5m2 y;  // the conversion saturates; beyond the last number there is infinity
  y.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
  if (!(fabsf(x) < 61440.0f)) y.__x = __float_as_uint(x) >> 31 << 7 | (x != x ? 0x7e : 0x7c);
  return y;
}

//: tl_from_float8
template <typename T> __device__ __forceinline__ float tl_from_float8(T x) { return (float)x; }

//: tl_as_int32
__device__ __forceinline__ int tl_as_int32(float x) { return __float_as_int(x); }
__device__ __forceinline__ int tl_as_int32(unsigned x) { return (int)x; }

//: tl_as_uint32
__device__ __forceinline__ unsigned tl_as_uint32(float x) { return __float_as_uint(x); }
__device__ __forceinline__ unsigned tl_as_uint32(int x) { return (unsigned)x; }

//: tl_as_float32
__device__ __forceinline__ float tl_as_float32(int x) { return __int_as_float(x); }
__device__ __forceinline__ float tl_as_float32(unsigned x) { return __uint_as_float(x); }

//: tl_as_int64
__device__ __forceinline__ long long tl_as_int64(double x) { return __double_as_longlong(x); }
__device__ __forceinline__ long long tl_as_int64(unsigned long long x) { return (long long)x; }

//: tl_as_uint64
__device__ __forceinline__ unsigned long long tl_as_uint64(double x) { return (unsigned long long)__double_as_longlong(x); }
__device__ __forceinline__ unsigned long long tl_as_uint64(long long x) { return (unsigned long long)x; }

//: tl_as_float64
__device__ __forceinline__ double tl_as_float64(long long x) { return __longlong_as_double(x); }
__device__ __forceinline__ double tl_as_float64(unsigned long long x) { return __longlong_as_double((long long)x); }

//: tl_as_int8
template <typename T> __device__ __forceinline__ signed char tl_as_int8(T x) { return *(signed char*)&x; }

//: tl_as_uint8
template <typename T> __device__ __forceinline__ unsigned char tl_as_uint8(T x) { return *(unsigned char*)&x; }

//: tl_as_int16
template <typename T> __device__ __forceinline__ short tl_as_int16(T x) { return *(short*)&x; }

//: tl_as_uint16
template <typename T> __device__ __forceinline__ unsigned short tl_as_uint16(T x) { return *(unsigned short*)&x; }

//: tl_as_float16
template <typename T> __device__ __forceinline__ half tl_as_float16(T x) { return *(half*)&x; }

//: tl_as_bfloat16
template <typename T> __device__ __forceinline__ nv_bfloat16 tl_as_bfloat16(T x) { return *(nv_bfloat16*)&x; }

//: tl_as_float8_e4m3fn
template <typename T> __device__ __forceinline__ __nv_fp8_e4m3 tl_as_float8_e4m3fn(T x) { return *(__nv_fp8_e4m3*)&x; }

//: tl_as_float8_e4m3
template <typename T> __device__ __forceinline__ __nv_fp8_e4m3 tl_as_float8_e4m3(T x) { return *(__nv_fp8_e4m3*)&x; }

//: tl_as_float8_e5m2
template <typename T> __device__ __forceinline__ __nv_fp8_e5m2 tl_as_float8_e5m2(T x) { return *(__nv_fp8_e5m2*)&x; }

//: tl_popcount
__device__ __forceinline__ int tl_popcount(int x) { return __popc(x); }
__device__ __forceinline__ int tl_popcount(unsigned x) { return __popc(x); }
__device__ __forceinline__ int tl_popcount(long long x) { return __popcll(x); }
__device__ __forceinline__ int tl_popcount(unsigned long long x) { return __popcll(x); }

//: tl_clz
__device__ __forceinline__ int tl_clz(int x) { return __clz(x); }
__device__ __forceinline__ int tl_clz(unsigned x) { return __clz((int)x); }
__device__ __forceinline__ int tl_clz(long long x) { return __clzll(x); }
__device__ __forceinline__ int tl_clz(unsigned long long x) { return __clzll((long long)x); }

//: tl_shift_left
template <typename T, typename U> __device__ __forceinline__ T tl_shift_left(T x, U distance) {
  return distance >= 0 && distance < 8 * sizeof(T) ? (T)((unsigned long long)x << distance) : (T)0;
}

//: tl_shift_right
template <typename T, typename U> __device__ __forceinline__ T tl_shift_right(T x, U distance) {
  return distance >= 0 && distance < 8 * sizeof(T) ? x >> distance : x < 0 ? (T)-1 : (T)0;
}

//: tl_integer_power
template <typename T, typename U> __device__ __forceinline__ T tl_integer_power(T x, U n) {
  T y = 1;
  for (; n > 0; n >>= 1, x *= x)
    if (n & 1) y *= x;
  return y;
}

//: tl_nan_max
// NaN wins: the result is NaN where one of the two is.
__device__ __forceinline__ float tl_nan_max(float x, float y) {
#if __CUDA_ARCH__ >= 800
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
#else
  return x > y || x != x ? x : y;
#endif
}

//: tl_nan_max of half
__device__ __forceinline__ half tl_nan_max(half x, half y) { return __hmax_nan(x, y); }

//: tl_nan_max of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_nan_max(nv_bfloat16 x, nv_bfloat16 y) { return __hmax_nan(x, y); }

//: tl_max
__device__ __forceinline__ float tl_max(float x, float y) { return fmaxf(x, y); }
__device__ __forceinline__ double tl_max(double x, double y) { return fmax(x, y); }
__device__ __forceinline__ int tl_max(int x, int y) { return max(x, y); }

//: tl_max of half
__device__ __forceinline__ half tl_max(half x, half y) { return __hmax(x, y); }

//: tl_max of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_max(nv_bfloat16 x, nv_bfloat16 y) { return __hmax(x, y); }

//: tl_nan_min
// NaN wins: the result is NaN where one of the two is.
__device__ __forceinline__ float tl_nan_min(float x, float y) {
#if __CUDA_ARCH__ >= 800
  float z;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
#else
  return x < y || x != x ? x : y;
#endif
}

//: tl_nan_min of half
__device__ __forceinline__ half tl_nan_min(half x, half y) { return __hmin_nan(x, y); }

//: tl_nan_min of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_nan_min(nv_bfloat16 x, nv_bfloat16 y) { return __hmin_nan(x, y); }

//: tl_min
__device__ __forceinline__ float tl_min(float x, float y) { return fminf(x, y); }
__device__ __forceinline__ double tl_min(double x, double y) { return fmin(x, y); }
__device__ __forceinline__ int tl_min(int x, int y) { return min(x, y); }

//: tl_min of half
__device__ __forceinline__ half tl_min(half x, half y) { return __hmin(x, y); }

//: tl_min of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_min(nv_bfloat16 x, nv_bfloat16 y) { return __hmin(x, y); }

//: tl_divide
// x / y for a divisor that many numbers share: its reciprocal is computed once, and no number takes a branch.  Rounded
// once as x / y is, but for quotients below 2 ** -100 and for the largest number: their last place may differ.
__device__ __forceinline__ float tl_divide(float x, float y) {
  // Divisors below 1/2 are scaled up, to less than 1: no rest is too small then, and what overflows has no quotient.
  int power = 0x7e800000 - (__float_as_int(y) & 0x7f800000), least = fabsf(y) > 0x1p60f ? 0x2f800000 : 0x3f800000;
  float scale = __int_as_float(max(power, least)), divisor = y * scale, minus = -divisor, r, z;
  // The reciprocal, rounded once: two terms of the series of the error that the approximation has.  Rounded as here
  // they are right for each number and each approximation one place away; to nearest, a few would leave ties.  Zero and
  // infinity have an error of NaN and are right as they are.
  asm("{.reg .f32 error, size; .reg .pred known; rcp.approx.ftz.f32 %0, %1; fma.rz.f32 error, %2, %0, 0f3f800000; "
      "abs.f32 size, error; setp.lt.f32 known, size, 0f3f800000; fma.rp.f32 error, error, error, error; "
      "@known fma.rn.f32 %0, error, %0, %0;}"
      : "=&f"(r)
      : "f"(divisor), "f"(minus));
  // The product with r, corrected by the rest that it leaves, is rounded once since r is.  Zeros, infinities and NaN
  // leave a rest of zero, infinity or NaN and are right as they are.  One statement, which costs the compiler less.
  asm("{.reg .f32 dividend, rest, size, most; .reg .pred less; mul.f32 dividend, %1, %2; mul.f32 %0, dividend, %4; "
      "fma.rn.f32 rest, %3, %0, dividend; abs.f32 size, rest; abs.f32 most, dividend; setp.lt.f32 less, size, most; "
      "@less fma.rn.f32 %0, rest, %4, %0;}"
      : "=&f"(z)
      : "f"(x), "f"(scale), "f"(minus), "f"(r));
  return z;
}

//: tl_exp2
// 2 ** x where results below the smallest normal number are 0: one instruction.
__device__ __forceinline__ float tl_exp2(float x) {
  float z;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(z) : "f"(x));
  return z;
}

//: tl_abs
__device__ __forceinline__ float tl_abs(float x) { return fabsf(x); }
__device__ __forceinline__ double tl_abs(double x) { return fabs(x); }

//: tl_abs of half
__device__ __forceinline__ half tl_abs(half x) { return __habs(x); }

//: tl_abs of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_abs(nv_bfloat16 x) { return __habs(x); }

//: tl_asin
__device__ __forceinline__ float tl_asin(float x) { return asinf(x); }
__device__ __forceinline__ double tl_asin(double x) { return asin(x); }

//: tl_acos
__device__ __forceinline__ float tl_acos(float x) { return acosf(x); }
__device__ __forceinline__ double tl_acos(double x) { return acos(x); }

//: tl_atan
__device__ __forceinline__ float tl_atan(float x) { return atanf(x); }
__device__ __forceinline__ double tl_atan(double x) { return atan(x); }

//: tl_asinh
__device__ __forceinline__ float tl_asinh(float x) { return asinhf(x); }
__device__ __forceinline__ double tl_asinh(double x) { return asinh(x); }

//: tl_acosh
__device__ __forceinline__ float tl_acosh(float x) { return acoshf(x); }
__device__ __forceinline__ double tl_acosh(double x) { return acosh(x); }

//: tl_atanh
__device__ __forceinline__ float tl_atanh(float x) { return atanhf(x); }
__device__ __forceinline__ double tl_atanh(double x) { return atanh(x); }

//: tl_sinh
__device__ __forceinline__ float tl_sinh(float x) { return sinhf(x); }
__device__ __forceinline__ double tl_sinh(double x) { return sinh(x); }

//: tl_cosh
__device__ __forceinline__ float tl_cosh(float x) { return coshf(x); }
__device__ __forceinline__ double tl_cosh(double x) { return cosh(x); }

//: tl_tan
__device__ __forceinline__ float tl_tan(float x) { return tanf(x); }
__device__ __forceinline__ double tl_tan(double x) { return tan(x); }

//: tl_erf
__device__ __forceinline__ float tl_erf(float x) { return erff(x); }
__device__ __forceinline__ double tl_erf(double x) { return erf(x); }

//: tl_log1p
__device__ __forceinline__ float tl_log1p(float x) { return log1pf(x); }
__device__ __forceinline__ double tl_log1p(double x) { return log1p(x); }

//: tl_exp10
__device__ __forceinline__ float tl_exp10(float x) { return exp10f(x); }
__device__ __forceinline__ double tl_exp10(double x) { return exp10(x); }

//: tl_round
__device__ __forceinline__ float tl_round(float x) { return roundf(x); }
__device__ __forceinline__ double tl_round(double x) { return round(x); }

//: tl_nearbyint
__device__ __forceinline__ float tl_nearbyint(float x) { return rintf(x); }
__device__ __forceinline__ double tl_nearbyint(double x) { return rint(x); }

//: tl_atan2
__device__ __forceinline__ float tl_atan2(float x, float y) { return atan2f(x, y); }
__device__ __forceinline__ double tl_atan2(double x, double y) { return atan2(x, y); }

//: tl_hypot
__device__ __forceinline__ float tl_hypot(float x, float y) { return hypotf(x, y); }
__device__ __forceinline__ double tl_hypot(double x, double y) { return hypot(x, y); }

//: tl_copysign
__device__ __forceinline__ float tl_copysign(float x, float y) { return copysignf(x, y); }
__device__ __forceinline__ double tl_copysign(double x, double y) { return copysign(x, y); }

//: tl_nextafter
__device__ __forceinline__ float tl_nextafter(float x, float y) { return nextafterf(x, y); }
__device__ __forceinline__ double tl_nextafter(double x, double y) { return nextafter(x, y); }

//: tl_fmod
__device__ __forceinline__ float tl_fmod(float x, float y) { return fmodf(x, y); }
__device__ __forceinline__ double tl_fmod(double x, double y) { return fmod(x, y); }

//: tl_ldexp
__device__ __forceinline__ float tl_ldexp(float x, int y) { return ldexpf(x, y); }
__device__ __forceinline__ double tl_ldexp(double x, int y) { return ldexp(x, y); }

//: tl_sigmoid
__device__ __forceinline__ float tl_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ double tl_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

//: tl_isnan
template <typename T> __device__ __forceinline__ bool tl_isnan(T x) { return x != x; }

//: tl_isinf
__device__ __forceinline__ bool tl_isinf(float x) { return fabsf(x) == __int_as_float(0x7f800000); }
__device__ __forceinline__ bool tl_isinf(double x) { return fabs(x) == __longlong_as_double(0x7ff0000000000000ll); }

//: tl_isfinite
__device__ __forceinline__ bool tl_isfinite(float x) { return fabsf(x) < __int_as_float(0x7f800000); }
__device__ __forceinline__ bool tl_isfinite(double x) { return fabs(x) < __longlong_as_double(0x7ff0000000000000ll); }

//: tl_floor_modulo
// `%` of Python: the result has the sign of the divisor.
template <typename T> __device__ __forceinline__ T tl_floor_modulo(T x, T y) {
  T rest = fmod(x, y);
  if (rest == 0) return copysign((T)0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

//: tl_floor_divide
// `//` of Python.
template <typename T> __device__ __forceinline__ T tl_floor_divide(T x, T y) {
  if (y == 0) return x / y;
  T rest = fmod(x, y), quotient = (x - rest) / y;
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
  if (quotient == 0) return copysign((T)0, x / y);
  T whole = floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
