// Registers of 16 bytes, for instruction sets that have such (plain, neon), and what is the same on each of them.
// Included once by each, before all else but its constants, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr int register_bytes = 16;
typedef uint32_t u32r __attribute__((vector_size(register_bytes)));
typedef int32_t i32r __attribute__((vector_size(register_bytes)));
typedef uint64_t u64r __attribute__((vector_size(register_bytes)));
typedef int64_t i64r __attribute__((vector_size(register_bytes)));
typedef float f32r __attribute__((vector_size(register_bytes)));
typedef double f64r __attribute__((vector_size(register_bytes)));

constexpr u32r lane_bits = {1, 2, 4, 8};

// All ones in a lane of `chosen` take `yes`.
template <class R>
ARRCOMP_INLINE R blend(u32r chosen, R yes, R no);

#define ARRCOMP_MIN_MAX(R)                                              \
  ARRCOMP_INLINE R min(R x, R y) { return blend((u32r)(y < x), y, x); } \
  ARRCOMP_INLINE R max(R x, R y) { return blend((u32r)(x < y), y, x); }
ARRCOMP_MIN_MAX(u64r)
ARRCOMP_MIN_MAX(f32r)
ARRCOMP_MIN_MAX(f64r)
#undef ARRCOMP_MIN_MAX

ARRCOMP_INLINE u32r sar(u32r x, int k) { return (u32r)((i32r)x >> k); }
ARRCOMP_INLINE u64r sar(u64r x, int k) { return (u64r)((i64r)x >> k); }

}  // namespace arrcomp::ARRCOMP_ISA
