// Every operation on one machine's lanes. Included once for each machine, after its lanes.h, hence no guard.
namespace arrcomp::ARRCOMP_MACHINE {

ARRCOMP_INLINE void put(unsigned char* slot, U32 x) { store((uint32_t*)slot, x); }
ARRCOMP_INLINE void put(unsigned char* slot, U64 x) { store((uint64_t*)slot, x); }
ARRCOMP_INLINE void put(unsigned char* slot, F32 x) { store((float*)slot, x); }
ARRCOMP_INLINE void put(unsigned char* slot, F64 x) { store((double*)slot, x); }
ARRCOMP_INLINE void put_uniform(unsigned char* slot, uint64_t x) {
  if (leader()) *(uint64_t*)(slot + test::lanes_bytes) = x;
}
ARRCOMP_INLINE void put(unsigned char* slot, Mask m) { put_uniform(slot, bits(m)); }

// Writes the results of all operations, a slot of test::slot_bytes each.
#ifdef __CUDACC__
static __global__
#else
static
#endif
    void
    run(test::Inputs in, unsigned char* slot) {
  const int k = in.k, wide_k = in.wide_k, first = in.first;
  const uint32_t scalar = in.scalar;
  const uint64_t wide_scalar = in.wide_scalar;
  const float float_scalar = in.float_scalar;
  const double double_scalar = in.double_scalar;
#define put(...) put(slot, __VA_ARGS__)
#define uniform(value) put_uniform(slot, (uint64_t)(value))
#define OPERATION(name, machine, scalars)                                                                  \
  {                                                                                                        \
    [[maybe_unused]] U32 x = load(in.x), y = load(in.y), index = load(in.index), shifts = load(in.shifts); \
    [[maybe_unused]] U64 wide_x = load(in.wide_x), wide_y = load(in.wide_y);                               \
    [[maybe_unused]] F32 f = load(in.f), g = load(in.g);                                                   \
    [[maybe_unused]] F64 d = load(in.d), e = load(in.e);                                                   \
    [[maybe_unused]] Mask m = mask(in.mask_word), other = mask(in.other_word);                             \
    machine;                                                                                               \
    slot += test::slot_bytes;                                                                              \
  }
#include "lanes_operations.inc"
#undef OPERATION
#undef uniform
#undef put
}

}  // namespace arrcomp::ARRCOMP_MACHINE
