// Records of `T.print` and `T.device_assert`; see reports.py.

//: tl_bits
__device__ __forceinline__ unsigned long long tl_bits(double x) { return __double_as_longlong(x); }
__device__ __forceinline__ unsigned long long tl_bits(float x) { return __double_as_longlong(x); }
template <typename T> __device__ __forceinline__ unsigned long long tl_bits(T x) { return (long long)x; }

//: tl_bits of half
__device__ __forceinline__ unsigned long long tl_bits(half x) { return tl_bits(__half2float(x)); }

//: tl_bits of nv_bfloat16
__device__ __forceinline__ unsigned long long tl_bits(nv_bfloat16 x) { return tl_bits(__bfloat162float(x)); }

//: tl_bits of __nv_fp8_e4m3
__device__ __forceinline__ unsigned long long tl_bits(__nv_fp8_e4m3 x) { return tl_bits((float)x); }

//: tl_bits of __nv_fp8_e5m2
__device__ __forceinline__ unsigned long long tl_bits(__nv_fp8_e5m2 x) { return tl_bits((float)x); }

//: tl_report_write
// A record of the report: size, site, order in the thread, block, thread, value, indices.
template <typename T, typename... I>
__device__ __forceinline__ void tl_report_write(unsigned* report, int site, unsigned order, T value, I... index) {
  const unsigned size = 7 + sizeof...(I);
  unsigned at = 4 + atomicAdd(report, size);
  if (at + size > report[1]) return;
  unsigned long long bits = tl_bits(value);
  unsigned record[size] = {
      size, (unsigned)site, order, blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z),
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z),
      (unsigned)bits, (unsigned)(bits >> 32), (unsigned)index...};
  for (unsigned i = 0; i < size; ++i) report[at + i] = record[i];
}
