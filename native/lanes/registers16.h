// Registers of 16 bytes, for instruction sets that have such (plain, neon), and what is the same on each of them.
// Included once by each, before all else but its constants, hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr int register_bytes = 16;
constexpr bool short_lookup = false;
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

// In lane l the largest lane of rows[l].
ARRCOMP_INLINE u32r max_of_each(const u32r (&rows)[4]) {
  u32r found{};
  for (int l = 0; l < 4; l++)
    for (int i = 0; i < 4; i++) found[l] = rows[l][i] > found[l] ? rows[l][i] : found[l];
  return found;
}

ARRCOMP_INLINE u32r sar(u32r x, int k) { return (u32r)((i32r)x >> k); }
ARRCOMP_INLINE u64r sar(u64r x, int k) { return (u64r)((i64r)x >> k); }

template <class R, class T>
ARRCOMP_INLINE R merged(R x, R y, T mask) {
  return (x & mask) | (y & ~mask);
}
ARRCOMP_INLINE f32r exponents(f32r x) { return __builtin_convertvector((i32r)((u32r)x << 1 >> 24), f32r) - 127; }
ARRCOMP_INLINE f32r near_sum(f32r x, f32r y, f32r z) { return x * y + z; }
ARRCOMP_INLINE f64r near_sum(f64r x, f64r y, f64r z) { return x * y + z; }

}  // namespace arrcomp::ARRCOMP_ISA
