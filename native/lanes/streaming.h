// Stores that leave the caches alone, for the instruction sets of x86-64. Included once by each of them, after host.h,
// hence no guard.
namespace arrcomp::ARRCOMP_ISA {

constexpr bool can_stream = true;

// In segments of 16 bytes, as arrays are aligned to no more than that; a processor joins them to lines.
template <class T, class V>
ARRCOMP_INLINE void store_streaming(T* p, V x) {
  constexpr int segments = 32 * sizeof(T) / sizeof(__m128i);
  alignas(64) T row[32];
  store(row, x);
#pragma GCC unroll 16
  for (int i = 0; i < segments; i++) _mm_stream_si128((__m128i*)p + i, _mm_load_si128((const __m128i*)row + i));
}

ARRCOMP_INLINE void end_streaming() { _mm_sfence(); }

}  // namespace arrcomp::ARRCOMP_ISA
