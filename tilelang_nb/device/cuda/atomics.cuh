// Atomic operations.  They give the old content; their order in memory is relaxed, or that of their last argument, by
// fences before and after.  What the device has no instruction for is a loop of compare-and-swap, for 8 bits on the word
// around them.

//: tl_combined_max
template <typename T> __device__ __forceinline__ T tl_combined_max(T x, T y) { return x < y ? y : x; }
__device__ __forceinline__ float tl_combined_max(float x, float y) { return fmaxf(x, y); }
__device__ __forceinline__ double tl_combined_max(double x, double y) { return fmax(x, y); }

//: tl_combined_max of half
__device__ __forceinline__ half tl_combined_max(half x, half y) { return __hmax(x, y); }

//: tl_combined_max of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_combined_max(nv_bfloat16 x, nv_bfloat16 y) { return __hmax(x, y); }

//: tl_combined_min
template <typename T> __device__ __forceinline__ T tl_combined_min(T x, T y) { return y < x ? y : x; }
__device__ __forceinline__ float tl_combined_min(float x, float y) { return fminf(x, y); }
__device__ __forceinline__ double tl_combined_min(double x, double y) { return fmin(x, y); }

//: tl_combined_min of half
__device__ __forceinline__ half tl_combined_min(half x, half y) { return __hmin(x, y); }

//: tl_combined_min of nv_bfloat16
__device__ __forceinline__ nv_bfloat16 tl_combined_min(nv_bfloat16 x, nv_bfloat16 y) { return __hmin(x, y); }

//: tl_word
template <int> struct tl_word;
template <> struct tl_word<2> { typedef unsigned short type; };
template <> struct tl_word<4> { typedef unsigned type; };
template <> struct tl_word<8> { typedef unsigned long long type; };

//: tl_atomic_update
template <typename T, typename F> __device__ __forceinline__ T tl_atomic_update(T* place, T value, F combine) {
  if constexpr (sizeof(T) == 1) {
    unsigned* word = (unsigned*)((unsigned long long)place & ~3ull);
    unsigned shift = ((unsigned long long)place & 3) * 8, seen = *(volatile unsigned*)word, before;
    T old;
    do {
      before = seen;
      old = (T)(before >> shift);
      unsigned changed = (unsigned)(unsigned char)combine(old, value) << shift;
      seen = atomicCAS(word, before, (before & ~(0xffu << shift)) | changed);
    } while (seen != before);
    return old;
  } else {
    typedef typename tl_word<sizeof(T)>::type W;
    W seen = *(volatile W*)place, before;
    T old;
    do {
      before = seen;
      *(W*)&old = before;
      T changed = combine(old, value);
      seen = atomicCAS((W*)place, before, *(W*)&changed);
    } while (seen != before);
    return old;
  }
}

//: tl_atomic_add
template <typename T> __device__ __forceinline__ T tl_atomic_add(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return (T)(old + given); });
}
__device__ __forceinline__ int tl_atomic_add(int* place, int value) { return atomicAdd(place, value); }
__device__ __forceinline__ unsigned tl_atomic_add(unsigned* place, unsigned value) { return atomicAdd(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_add(unsigned long long* place, unsigned long long value) { return atomicAdd(place, value); }
__device__ __forceinline__ float tl_atomic_add(float* place, float value) { return atomicAdd(place, value); }
__device__ __forceinline__ double tl_atomic_add(double* place, double value) { return atomicAdd(place, value); }
__device__ __forceinline__ long long tl_atomic_add(long long* place, long long value) {
  return (long long)atomicAdd((unsigned long long*)place, (unsigned long long)value);
}

//: tl_atomic_add of half
__device__ __forceinline__ half tl_atomic_add(half* place, half value) { return atomicAdd(place, value); }

//: tl_atomic_add of nv_bfloat16
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ nv_bfloat16 tl_atomic_add(nv_bfloat16* place, nv_bfloat16 value) { return atomicAdd(place, value); }
#endif

//: tl_atomic_max
template <typename T> __device__ __forceinline__ T tl_atomic_max(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return tl_combined_max(old, given); });
}
__device__ __forceinline__ int tl_atomic_max(int* place, int value) { return atomicMax(place, value); }
__device__ __forceinline__ unsigned tl_atomic_max(unsigned* place, unsigned value) { return atomicMax(place, value); }
__device__ __forceinline__ long long tl_atomic_max(long long* place, long long value) { return atomicMax(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_max(unsigned long long* place, unsigned long long value) { return atomicMax(place, value); }

//: tl_atomic_min
template <typename T> __device__ __forceinline__ T tl_atomic_min(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return tl_combined_min(old, given); });
}
__device__ __forceinline__ int tl_atomic_min(int* place, int value) { return atomicMin(place, value); }
__device__ __forceinline__ unsigned tl_atomic_min(unsigned* place, unsigned value) { return atomicMin(place, value); }
__device__ __forceinline__ long long tl_atomic_min(long long* place, long long value) { return atomicMin(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_min(unsigned long long* place, unsigned long long value) { return atomicMin(place, value); }

//: tl_atomic_and
template <typename T> __device__ __forceinline__ T tl_atomic_and(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return (T)(old & given); });
}
__device__ __forceinline__ int tl_atomic_and(int* place, int value) { return atomicAnd(place, value); }
__device__ __forceinline__ unsigned tl_atomic_and(unsigned* place, unsigned value) { return atomicAnd(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_and(unsigned long long* place, unsigned long long value) { return atomicAnd(place, value); }
__device__ __forceinline__ long long tl_atomic_and(long long* place, long long value) {
  return (long long)atomicAnd((unsigned long long*)place, (unsigned long long)value);
}

//: tl_atomic_or
template <typename T> __device__ __forceinline__ T tl_atomic_or(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return (T)(old | given); });
}
__device__ __forceinline__ int tl_atomic_or(int* place, int value) { return atomicOr(place, value); }
__device__ __forceinline__ unsigned tl_atomic_or(unsigned* place, unsigned value) { return atomicOr(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_or(unsigned long long* place, unsigned long long value) { return atomicOr(place, value); }
__device__ __forceinline__ long long tl_atomic_or(long long* place, long long value) {
  return (long long)atomicOr((unsigned long long*)place, (unsigned long long)value);
}

//: tl_atomic_xor
template <typename T> __device__ __forceinline__ T tl_atomic_xor(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return (T)(old ^ given); });
}
__device__ __forceinline__ int tl_atomic_xor(int* place, int value) { return atomicXor(place, value); }
__device__ __forceinline__ unsigned tl_atomic_xor(unsigned* place, unsigned value) { return atomicXor(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_xor(unsigned long long* place, unsigned long long value) { return atomicXor(place, value); }
__device__ __forceinline__ long long tl_atomic_xor(long long* place, long long value) {
  return (long long)atomicXor((unsigned long long*)place, (unsigned long long)value);
}

//: tl_atomic_exchange
template <typename T> __device__ __forceinline__ T tl_atomic_exchange(T* place, T value) {
  return tl_atomic_update(place, value, [](T old, T given) { return given; });
}
__device__ __forceinline__ int tl_atomic_exchange(int* place, int value) { return atomicExch(place, value); }
__device__ __forceinline__ unsigned tl_atomic_exchange(unsigned* place, unsigned value) { return atomicExch(place, value); }
__device__ __forceinline__ unsigned long long tl_atomic_exchange(unsigned long long* place, unsigned long long value) { return atomicExch(place, value); }
__device__ __forceinline__ float tl_atomic_exchange(float* place, float value) { return atomicExch(place, value); }
__device__ __forceinline__ long long tl_atomic_exchange(long long* place, long long value) {
  return (long long)atomicExch((unsigned long long*)place, (unsigned long long)value);
}

//: tl_atomic_load
template <typename T> __device__ __forceinline__ T tl_atomic_load(T* place) {
  T value;
  if constexpr (sizeof(T) == 1) *(unsigned char*)&value = *(volatile unsigned char*)place;
  else *(typename tl_word<sizeof(T)>::type*)&value = *(volatile typename tl_word<sizeof(T)>::type*)place;
  return value;
}

//: tl_atomic_store
template <typename T, typename U> __device__ __forceinline__ void tl_atomic_store(T* place, U given) {
  T value = (T)given;
  if constexpr (sizeof(T) == 1) *(volatile unsigned char*)place = *(unsigned char*)&value;
  else *(volatile typename tl_word<sizeof(T)>::type*)place = *(typename tl_word<sizeof(T)>::type*)&value;
}

//: tl_atomic_add of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_add(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_add(place, value);
  order.after();
  return old;
}

//: tl_atomic_max of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_max(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_max(place, value);
  order.after();
  return old;
}

//: tl_atomic_min of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_min(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_min(place, value);
  order.after();
  return old;
}

//: tl_atomic_and of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_and(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_and(place, value);
  order.after();
  return old;
}

//: tl_atomic_or of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_or(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_or(place, value);
  order.after();
  return old;
}

//: tl_atomic_xor of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_xor(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_xor(place, value);
  order.after();
  return old;
}

//: tl_atomic_exchange of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_exchange(T* place, T value, O order) {
  order.before();
  T old = tl_atomic_exchange(place, value);
  order.after();
  return old;
}

//: tl_atomic_load of tl_ordered
template <typename T, typename O> __device__ __forceinline__ T tl_atomic_load(T* place, O order) {
  order.before();
  T value = tl_atomic_load(place);
  order.after();
  return value;
}

//: tl_atomic_store of tl_ordered
template <typename T, typename U, typename O> __device__ __forceinline__ void tl_atomic_store(T* place, U given, O order) {
  order.before();
  tl_atomic_store(place, given);
  order.after();
}

//: tl_fence_acq_rel
__device__ __forceinline__ void tl_fence_acq_rel() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

//: tl_ordered
// What an order asks for around an operation that is relaxed by itself (PTX ISA, release and acquire patterns).
struct tl_ordered {
  static __device__ __forceinline__ void before() {}
  static __device__ __forceinline__ void after() {}
};

//: tl_order_acquire
struct tl_order_acquire : tl_ordered {
  static __device__ __forceinline__ void after() { tl_fence_acq_rel(); }
};

//: tl_order_release
struct tl_order_release : tl_ordered {
  static __device__ __forceinline__ void before() { tl_fence_acq_rel(); }
};

//: tl_order_acq_rel
struct tl_order_acq_rel : tl_ordered {
  static __device__ __forceinline__ void before() { tl_fence_acq_rel(); }
  static __device__ __forceinline__ void after() { tl_fence_acq_rel(); }
};

//: tl_order_seq_cst
struct tl_order_seq_cst : tl_ordered {
  static __device__ __forceinline__ void before() { __threadfence(); }
  static __device__ __forceinline__ void after() { tl_fence_acq_rel(); }
};

//: tl_mbarrier_wait
// Waits for the phase of a barrier in shared memory to end, by asking again and again.
__device__ __forceinline__ void tl_mbarrier_wait(void* barrier, unsigned parity) {
  unsigned address = (unsigned)__cvta_generic_to_shared(barrier), done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(address), "r"(parity) : "memory");
}
