// Every operation on the lanes of one instruction set. Included once for each, after its lanes.h, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE void put(unsigned char* slot, U32 x) { store((uint32_t*)slot, x); }
ARRCOMP_INLINE void put(unsigned char* slot, U64 x) { store((uint64_t*)slot, x); }
ARRCOMP_INLINE void put(unsigned char* slot, F32 x) { store((float*)slot, x); }
ARRCOMP_INLINE void put(unsigned char* slot, F64 x) { store((double*)slot, x); }
ARRCOMP_INLINE void put_uniform(unsigned char* slot, uint64_t x) {
  if (leader()) *(uint64_t*)(slot + test::lanes_bytes) = x;
}
ARRCOMP_INLINE void put(unsigned char* slot, Mask m) { put_uniform(slot, bits(m)); }

struct Values {
  U32 x, y, index, shifts;
  U64 wide_x, wide_y;
  F32 f, g;
  F64 d, e;
  Mask m, other;
};

// A function for each operation: compilers take long over one function with all of them.
#ifdef __CUDACC__
#define ARRCOMP_TEST_FUNCTION static __device__ __noinline__
#define ARRCOMP_TEST_ENTRY static __global__
#else
#define ARRCOMP_TEST_FUNCTION static __attribute__((noinline))
#define ARRCOMP_TEST_ENTRY static
#endif
#define put(...) put(slot, __VA_ARGS__)
#define uniform(value) put_uniform(slot, (uint64_t)(value))
#define OPERATION(name, isa, ...)                                                                      \
  ARRCOMP_TEST_FUNCTION void run_##name([[maybe_unused]] const test::Inputs& in, const Values& values, \
                                        [[maybe_unused]] unsigned char* slot) {                        \
    [[maybe_unused]] auto [x, y, index, shifts, wide_x, wide_y, f, g, d, e, m, other] = values;        \
    isa;                                                                                               \
  }
#include "lanes_operations.inc"
#undef OPERATION
#undef uniform
#undef put

// Writes the results of all operations, a slot of test::slot_bytes each.
ARRCOMP_TEST_ENTRY void run(test::Inputs in, unsigned char* slots) {
  const Values values = {load(in.x),      load(in.y),      load(in.index),     load(in.shifts),
                         load(in.wide_x), load(in.wide_y), load(in.f),         load(in.g),
                         load(in.d),      load(in.e),      mask(in.mask_word), mask(in.other_word)};
#define OPERATION(name, ...)     \
  run_##name(in, values, slots); \
  slots += test::slot_bytes;
#include "lanes_operations.inc"
#undef OPERATION
}
#undef ARRCOMP_TEST_ENTRY
#undef ARRCOMP_TEST_FUNCTION

}  // namespace arrcomp::ARRCOMP_ISA
