// Asynchronous copies from global to shared memory under a condition: one instruction, without a branch.

//: tl_copy_16_if
__device__ __forceinline__ void tl_copy_16_if(unsigned int to, const void* from, bool condition) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16;}"
               :: "r"(to), "l"(from), "r"((int)condition) : "memory");
}
// Only the first `bytes` are read; the others are written as 0.
__device__ __forceinline__ void tl_copy_16_if(unsigned int to, const void* from, unsigned int bytes, bool condition) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.cg.shared.global [%0], [%1], 16, %2;}"
               :: "r"(to), "l"(from), "r"(bytes), "r"((int)condition) : "memory");
}
