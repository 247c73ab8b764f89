// Shared memory of other blocks of a cluster (sm_90).

//: tl_shared_at_block
// The address of the same place in the shared memory of another block of the cluster.
__device__ __forceinline__ unsigned int tl_shared_at_block(const void* place, int block) {
  unsigned int there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned int)__cvta_generic_to_shared(place)), "r"(block));
  return there;
}

//: tl_arrive_at_block
__device__ __forceinline__ void tl_arrive_at_block(const void* barrier, int block) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
               :: "r"(tl_shared_at_block(barrier, block)) : "memory");
}

//: tl_expect_at_block
// Arrive there, and announce bytes.
__device__ __forceinline__ void tl_expect_at_block(const void* barrier, int bytes, int block) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
               :: "r"(tl_shared_at_block(barrier, block)), "r"(bytes) : "memory");
}

//: tl_copy_to_block
// A bulk copy to the place of `target` there; the barrier there counts the bytes.
__device__ __forceinline__ void tl_copy_to_block(const void* target, const void* source, int bytes, const void* barrier,
                                                 int block) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(tl_shared_at_block(target, block)), "r"((unsigned int)__cvta_generic_to_shared(source)), "r"(bytes),
                  "r"(tl_shared_at_block(barrier, block)) : "memory");
}

//: tl_store_at_block
template <typename T> __device__ __forceinline__ void tl_store_at_block(const void* place, T value, int block) {
  unsigned long long there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(place), "r"(block));
  *(T*)there = value;
}
