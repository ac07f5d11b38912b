// AVX-512 (F, BW, DQ, VL, CD): 16 lanes a register, masks in registers of their own.
#pragma once
// GCC 12 takes the undefined values inside of its own intrinsics for uninitialized ones.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

namespace arrcomp::avx512 {

constexpr int streams = 4;
constexpr int encoder_streams = 2;
constexpr int rows_at_once = 8;
constexpr int rows_side_by_side = 4;
constexpr bool short_lookup = true;
constexpr int register_bytes = 64;
typedef uint32_t u32r __attribute__((vector_size(register_bytes)));
typedef int32_t i32r __attribute__((vector_size(register_bytes)));
typedef uint64_t u64r __attribute__((vector_size(register_bytes)));
typedef int64_t i64r __attribute__((vector_size(register_bytes)));
typedef float f32r __attribute__((vector_size(register_bytes)));
typedef double f64r __attribute__((vector_size(register_bytes)));
typedef uint32_t u32half __attribute__((vector_size(register_bytes / 2)));
typedef uint32_t u32quarter __attribute__((vector_size(register_bytes / 4)));

// --- memory and tables

ARRCOMP_INLINE u32r load_widened(const uint16_t* p) {
  return (u32r)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
}
ARRCOMP_INLINE u32r load_widened(const uint8_t* p) {
  return (u32r)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
}
ARRCOMP_INLINE void store_narrowed(uint16_t* p, u32r x) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16((__m512i)x));
}
ARRCOMP_INLINE void store_narrowed(uint8_t* p, u32r x) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)x));
}

ARRCOMP_INLINE u32r gather(const uint32_t* t, u32r i) { return (u32r)_mm512_i32gather_epi32((__m512i)i, t, 4); }
ARRCOMP_INLINE u32r gather(const uint16_t* t, u32r i) {
  return (u32r)_mm512_i32gather_epi32((__m512i)i, t, 2) & 0xffff;
}
ARRCOMP_INLINE u32r gather(const uint8_t* t, u32r i) { return (u32r)_mm512_i32gather_epi32((__m512i)i, t, 1) & 0xff; }

// t[i mod n]: permutations of one register, or two, see the low bits of an index alone.
template <int n>
ARRCOMP_INLINE u32r lookup(const uint32_t* t, u32r i) {
  const __m512i first = _mm512_loadu_si512(t);
  if constexpr (n == 16) {
    return (u32r)_mm512_permutexvar_epi32((__m512i)i, first);
  } else if constexpr (n == 32) {
    return (u32r)_mm512_permutex2var_epi32(first, (__m512i)i, _mm512_loadu_si512(t + 16));
  } else {
    const __mmask16 upper = _mm512_test_epi32_mask((__m512i)i, _mm512_set1_epi32(n / 2));
    return (u32r)_mm512_mask_blend_epi32(upper, (__m512i)lookup<n / 2>(t, i), (__m512i)lookup<n / 2>(t + n / 2, i));
  }
}

ARRCOMP_INLINE u32r compressed(u32r x, uint32_t m) {
  return (u32r)_mm512_maskz_compress_epi32((__mmask16)m, (__m512i)x);
}
ARRCOMP_INLINE void store_compressed(uint32_t* p, u32r x, uint32_t m) {
  _mm512_storeu_si512(p, (__m512i)compressed(x, m));
}
ARRCOMP_INLINE void store_compressed(uint64_t* p, u64r x, uint32_t m) {
  _mm512_storeu_si512(p, _mm512_maskz_compress_epi64((__mmask8)m, (__m512i)x));
}
ARRCOMP_INLINE void store_compressed(uint16_t* p, u32r x, uint32_t m) { store_narrowed(p, compressed(x, m)); }

ARRCOMP_INLINE u32r load_expanded(const uint32_t* p, uint32_t m) {
  return (u32r)_mm512_maskz_expand_epi32((__mmask16)m, _mm512_loadu_si512(p));
}
ARRCOMP_INLINE u64r load_expanded(const uint64_t* p, uint32_t m) {
  return (u64r)_mm512_maskz_expand_epi64((__mmask8)m, _mm512_loadu_si512(p));
}

ARRCOMP_INLINE u32r take(const uint16_t* p, u32r x, uint32_t m) {
  __m512i word = _mm512_maskz_expand_epi32((__mmask16)m, (__m512i)load_widened(p));
  return (u32r)_mm512_mask_or_epi32((__m512i)x, (__mmask16)m, (__m512i)(x << 16), word);
}

// --- arithmetic

ARRCOMP_INLINE u32r min(u32r x, u32r y) { return (u32r)_mm512_min_epu32((__m512i)x, (__m512i)y); }
ARRCOMP_INLINE u32r max(u32r x, u32r y) { return (u32r)_mm512_max_epu32((__m512i)x, (__m512i)y); }
ARRCOMP_INLINE u64r min(u64r x, u64r y) { return (u64r)_mm512_min_epu64((__m512i)x, (__m512i)y); }
ARRCOMP_INLINE u64r max(u64r x, u64r y) { return (u64r)_mm512_max_epu64((__m512i)x, (__m512i)y); }
// These instructions return their second operand unless the first is the smaller, or the larger.
ARRCOMP_INLINE f32r min(f32r x, f32r y) { return (f32r)_mm512_min_ps((__m512)y, (__m512)x); }
ARRCOMP_INLINE f32r max(f32r x, f32r y) { return (f32r)_mm512_max_ps((__m512)y, (__m512)x); }
ARRCOMP_INLINE f64r min(f64r x, f64r y) { return (f64r)_mm512_min_pd((__m512d)y, (__m512d)x); }
ARRCOMP_INLINE f64r max(f64r x, f64r y) { return (f64r)_mm512_max_pd((__m512d)y, (__m512d)x); }

ARRCOMP_INLINE u32r sar(u32r x, int k) { return (u32r)((i32r)x >> k); }
ARRCOMP_INLINE u64r sar(u64r x, int k) { return (u64r)((i64r)x >> k); }

ARRCOMP_INLINE u32r mulhi(u32r x, u32r y) {
  __m512i even = _mm512_mul_epu32((__m512i)x, (__m512i)y);
  __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)x, 32), _mm512_srli_epi64((__m512i)y, 32));
  return (u32r)_mm512_mask_shuffle_epi32(odd, 0x5555, even, (_MM_PERM_ENUM)0xf5);  // each upper half in both
}

ARRCOMP_INLINE u32r merged(u32r x, u32r y, uint32_t mask) {
  return (u32r)_mm512_ternarylogic_epi32(_mm512_set1_epi32((int)mask), (__m512i)x, (__m512i)y, 0xca);
}
ARRCOMP_INLINE u64r merged(u64r x, u64r y, uint64_t mask) {
  return (u64r)_mm512_ternarylogic_epi64(_mm512_set1_epi64((long long)mask), (__m512i)x, (__m512i)y, 0xca);
}

template <class Operation>
ARRCOMP_INLINE uint32_t fold(u32r x, Operation operation) {
  u32half eight =
      operation((u32half)_mm512_castsi512_si256((__m512i)x), (u32half)_mm512_extracti64x4_epi64((__m512i)x, 1));
  u32quarter four = operation((u32quarter)_mm256_castsi256_si128((__m256i)eight),
                              (u32quarter)_mm256_extracti128_si256((__m256i)eight, 1));
  u32quarter two = operation(four, (u32quarter)_mm_shuffle_epi32((__m128i)four, 0x4e));
  return operation(two[0], two[1]);
}

// The larger lanes of halves, quarters and so on of a and b, which stand side by side afterwards.
ARRCOMP_INLINE u32r larger_halves(u32r a, u32r b) {
  return max((u32r)_mm512_shuffle_i64x2((__m512i)a, (__m512i)b, 0x44),
             (u32r)_mm512_shuffle_i64x2((__m512i)a, (__m512i)b, 0xee));
}
ARRCOMP_INLINE u32r larger_quarters(u32r a, u32r b) {
  return max((u32r)_mm512_shuffle_i64x2((__m512i)a, (__m512i)b, 0x88),
             (u32r)_mm512_shuffle_i64x2((__m512i)a, (__m512i)b, 0xdd));
}
ARRCOMP_INLINE u32r larger_pairs(u32r a, u32r b) {
  return max((u32r)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b), (u32r)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b));
}
ARRCOMP_INLINE u32r larger_lanes(u32r a, u32r b) {
  return max((u32r)_mm512_shuffle_ps((__m512)a, (__m512)b, 0x88), (u32r)_mm512_shuffle_ps((__m512)a, (__m512)b, 0xdd));
}
// In lane l the largest lane of rows[l].
ARRCOMP_INLINE u32r max_of_each(const u32r (&rows)[16]) {
  u32r fourth[4];
#pragma GCC unroll 4
  for (int m = 0; m < 4; m++)
    fourth[m] = larger_quarters(larger_halves(rows[m], rows[m + 4]), larger_halves(rows[m + 8], rows[m + 12]));
  return larger_lanes(larger_pairs(fourth[0], fourth[1]), larger_pairs(fourth[2], fourth[3]));
}

// --- floats

ARRCOMP_INLINE f32r exponents(f32r x) { return (f32r)_mm512_getexp_ps((__m512)x); }
ARRCOMP_INLINE f32r near_sum(f32r x, f32r y, f32r z) { return (f32r)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z); }
ARRCOMP_INLINE f64r near_sum(f64r x, f64r y, f64r z) {
  return (f64r)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
}
ARRCOMP_INLINE u32r to_int(f32r f) { return (u32r)_mm512_cvtps_epi32((__m512)f); }
ARRCOMP_INLINE f64r to_double_lower(f32r f) { return (f64r)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)f)); }
ARRCOMP_INLINE f64r to_double_upper(f32r f) { return (f64r)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)f, 1)); }
ARRCOMP_INLINE f32r from_half(u32r h) { return (f32r)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)h)); }
ARRCOMP_INLINE u32r to_half(f32r f) {
  return (u32r)_mm512_cvtepu16_epi32(_mm512_cvtps_ph((__m512)f, _MM_FROUND_TO_NEAREST_INT));
}

// --- across the lanes

ARRCOMP_INLINE u32r broadcast_last(u32r x) { return (u32r)_mm512_permutexvar_epi32(_mm512_set1_epi32(15), (__m512i)x); }
ARRCOMP_INLINE u64r broadcast_last(u64r x) { return (u64r)_mm512_permutexvar_epi64(_mm512_set1_epi64(7), (__m512i)x); }

// x moved up by n lanes, with the last lanes of `before` below it.
template <int n>
ARRCOMP_INLINE u32r move_up(u32r before, u32r x) {
  return (u32r)_mm512_alignr_epi32((__m512i)x, (__m512i)before, 16 - n);
}
template <int n>
ARRCOMP_INLINE u64r move_up(u64r before, u64r x) {
  return (u64r)_mm512_alignr_epi64((__m512i)x, (__m512i)before, 8 - n);
}
ARRCOMP_INLINE u32r shift_in(u32r before, u32r x) { return move_up<1>(before, x); }
ARRCOMP_INLINE u64r shift_in(u64r before, u64r x) { return move_up<1>(before, x); }

ARRCOMP_INLINE u32r prefix_sum(u32r x) {
  x += move_up<1>(u32r{}, x);
  x += move_up<2>(u32r{}, x);
  x += move_up<4>(u32r{}, x);
  return x + move_up<8>(u32r{}, x);
}
ARRCOMP_INLINE u64r prefix_sum(u64r x) {
  x += move_up<1>(u64r{}, x);
  x += move_up<2>(u64r{}, x);
  return x + move_up<4>(u64r{}, x);
}

// Every other one of the 32-bit lanes of a and b, from the first on.
ARRCOMP_INLINE __m512i every_other(int first, u64r a, u64r b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_epi32((__m512i)a, _mm512_add_epi32(even, _mm512_set1_epi32(first)), (__m512i)b);
}
ARRCOMP_INLINE u32r lo(u64r a, u64r b) { return (u32r)every_other(0, a, b); }
ARRCOMP_INLINE u32r hi(u64r a, u64r b) { return (u32r)every_other(1, a, b); }
// Lanes of a and b in turn, from the first on.
ARRCOMP_INLINE __m512i in_turn(int first, u32r a, u32r b) {
  const __m512i pairs = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return _mm512_permutex2var_epi32((__m512i)a, _mm512_add_epi32(pairs, _mm512_set1_epi32(first)), (__m512i)b);
}
ARRCOMP_INLINE u64r join_lower(u32r lo, u32r hi) { return (u64r)in_turn(0, lo, hi); }
ARRCOMP_INLINE u64r join_upper(u32r lo, u32r hi) { return (u64r)in_turn(8, lo, hi); }

}  // namespace arrcomp::avx512

#include "host.h"

namespace arrcomp::avx512 {

// --- masks

// Of lanes 0 to 15 and 16 to 31: as one number they would pass through other registers.
struct Mask {
  __mmask16 halves[2];
};
template <class V>
ARRCOMP_INLINE uint32_t part(Mask m, int i) {
  constexpr int parts = 16 / V::width;
  return parts == 1 ? m.halves[i] : m.halves[i / parts] >> (i % parts * V::width) & ((1u << V::width) - 1);
}

ARRCOMP_INLINE Mask mask(uint32_t bits) { return {{(__mmask16)bits, (__mmask16)(bits >> 16)}}; }
ARRCOMP_INLINE uint32_t bits(Mask m) { return m.halves[0] | (uint32_t)m.halves[1] << 16; }
ARRCOMP_INLINE bool any(Mask m) { return (m.halves[0] | m.halves[1]) != 0; }
ARRCOMP_INLINE int count(Mask m) { return __builtin_popcount(bits(m)); }
ARRCOMP_INLINE Mask operator~(Mask m) { return {{(__mmask16)~m.halves[0], (__mmask16)~m.halves[1]}}; }
ARRCOMP_INLINE Mask operator&(Mask a, Mask b) {
  return {{(__mmask16)(a.halves[0] & b.halves[0]), (__mmask16)(a.halves[1] & b.halves[1])}};
}
ARRCOMP_INLINE Mask operator|(Mask a, Mask b) {
  return {{(__mmask16)(a.halves[0] | b.halves[0]), (__mmask16)(a.halves[1] | b.halves[1])}};
}

#define ARRCOMP_COMPARE(name, V, instruction, register_type, ...)                                                 \
  ARRCOMP_INLINE Mask name(V x, V y) {                                                                            \
    const auto of = [&](int i) __attribute__((always_inline)) {                                                   \
      return (uint32_t)instruction((register_type)x.v[i], (register_type)y.v[i], __VA_ARGS__);                    \
    };                                                                                                            \
    if constexpr (V::registers == 2) return {{(__mmask16)of(0), (__mmask16)of(1)}};                               \
    if constexpr (V::registers == 4) return {{(__mmask16)(of(0) | of(1) << 8), (__mmask16)(of(2) | of(3) << 8)}}; \
  }

ARRCOMP_COMPARE(eq, U32, _mm512_cmp_epi32_mask, __m512i, _MM_CMPINT_EQ)
ARRCOMP_COMPARE(ne, U32, _mm512_cmp_epi32_mask, __m512i, _MM_CMPINT_NE)
ARRCOMP_COMPARE(lt, U32, _mm512_cmp_epu32_mask, __m512i, _MM_CMPINT_LT)
ARRCOMP_COMPARE(ge, U32, _mm512_cmp_epu32_mask, __m512i, _MM_CMPINT_NLT)
ARRCOMP_COMPARE(eq, U64, _mm512_cmp_epu64_mask, __m512i, _MM_CMPINT_EQ)
ARRCOMP_COMPARE(ne, U64, _mm512_cmp_epu64_mask, __m512i, _MM_CMPINT_NE)
ARRCOMP_COMPARE(lt, U64, _mm512_cmp_epu64_mask, __m512i, _MM_CMPINT_LT)
ARRCOMP_COMPARE(ge, U64, _mm512_cmp_epu64_mask, __m512i, _MM_CMPINT_NLT)
ARRCOMP_COMPARE(le, F32, _mm512_cmp_ps_mask, __m512, _CMP_LE_OQ)
ARRCOMP_COMPARE(lt, F32, _mm512_cmp_ps_mask, __m512, _CMP_LT_OQ)
ARRCOMP_COMPARE(le, F64, _mm512_cmp_pd_mask, __m512d, _CMP_LE_OQ)
ARRCOMP_COMPARE(lt, F64, _mm512_cmp_pd_mask, __m512d, _CMP_LT_OQ)
#undef ARRCOMP_COMPARE
ARRCOMP_INLINE Mask ge_varying(U32 x, U32 y) { return ge(x, y); }

ARRCOMP_INLINE u32r blend(uint32_t m, u32r yes, u32r no) {
  return (u32r)_mm512_mask_blend_epi32((__mmask16)m, (__m512i)no, (__m512i)yes);
}
ARRCOMP_INLINE u64r blend(uint32_t m, u64r yes, u64r no) {
  return (u64r)_mm512_mask_blend_epi64((__mmask8)m, (__m512i)no, (__m512i)yes);
}
ARRCOMP_INLINE f32r blend(uint32_t m, f32r yes, f32r no) {
  return (f32r)_mm512_mask_blend_ps((__mmask16)m, (__m512)no, (__m512)yes);
}
ARRCOMP_INLINE f64r blend(uint32_t m, f64r yes, f64r no) {
  return (f64r)_mm512_mask_blend_pd((__mmask8)m, (__m512d)no, (__m512d)yes);
}
template <class T>
ARRCOMP_INLINE Lanes<T> select(Mask m, Lanes<T> yes, Lanes<T> no) {
  ARRCOMP_EACH(Lanes<T>, blend(part<Lanes<T>>(m, i), yes.v[i], no.v[i]));
}

// --- rows that are not full: what the instructions' masks leave out is not touched

ARRCOMP_INLINE u32r load_some(const uint32_t* p, __mmask16 m, uint32_t other) {
  return (u32r)_mm512_mask_loadu_epi32(_mm512_set1_epi32((int)other), m, p);
}
ARRCOMP_INLINE u64r load_some(const uint64_t* p, __mmask16 m, uint64_t other) {
  return (u64r)_mm512_mask_loadu_epi64(_mm512_set1_epi64((long long)other), (__mmask8)m, p);
}
ARRCOMP_INLINE f32r load_some(const float* p, __mmask16 m, float other) {
  return (f32r)_mm512_mask_loadu_ps(_mm512_set1_ps(other), m, p);
}
ARRCOMP_INLINE f64r load_some(const double* p, __mmask16 m, double other) {
  return (f64r)_mm512_mask_loadu_pd(_mm512_set1_pd(other), (__mmask8)m, p);
}
ARRCOMP_INLINE u32r load_some(const uint16_t* p, __mmask16 m, uint16_t other) {
  return (u32r)_mm512_cvtepu16_epi32(_mm256_mask_loadu_epi16(_mm256_set1_epi16((short)other), m, p));
}
ARRCOMP_INLINE u32r load_some(const uint8_t* p, __mmask16 m, uint8_t other) {
  return (u32r)_mm512_cvtepu8_epi32(_mm_mask_loadu_epi8(_mm_set1_epi8((char)other), m, p));
}
ARRCOMP_INLINE void store_some(uint32_t* p, __mmask16 m, u32r x) { _mm512_mask_storeu_epi32(p, m, (__m512i)x); }
ARRCOMP_INLINE void store_some(uint64_t* p, __mmask16 m, u64r x) {
  _mm512_mask_storeu_epi64(p, (__mmask8)m, (__m512i)x);
}
ARRCOMP_INLINE void store_some(float* p, __mmask16 m, f32r x) { _mm512_mask_storeu_ps(p, m, (__m512)x); }
ARRCOMP_INLINE void store_some(double* p, __mmask16 m, f64r x) { _mm512_mask_storeu_pd(p, (__mmask8)m, (__m512d)x); }
ARRCOMP_INLINE void store_some(uint16_t* p, __mmask16 m, u32r x) {
  _mm512_mask_cvtepi32_storeu_epi16(p, m, (__m512i)x);
}
ARRCOMP_INLINE void store_some(uint8_t* p, __mmask16 m, u32r x) { _mm512_mask_cvtepi32_storeu_epi8(p, m, (__m512i)x); }

template <class T>
ARRCOMP_INLINE auto load_first(const T* p, int n) {
  using V = decltype(load(p));
  const Mask m = mask((uint32_t)((uint64_t(1) << n) - 1));
  T last;
  __builtin_memcpy(&last, p + n - 1, sizeof last);  // at any address
  ARRCOMP_EACH(V, load_some(p + i * V::width, part<V>(m, i), last));
}

template <class T, class V>
ARRCOMP_INLINE void store_first(T* p, V x, int n) {
  const Mask m = mask((uint32_t)((uint64_t(1) << n) - 1));
#pragma GCC unroll 16
  for (int i = 0; i < x.registers; i++) store_some(p + i * x.width, part<V>(m, i), x.v[i]);
}

// --- tables and bit lengths

struct Table64 {
  U32 lower, upper;
};
ARRCOMP_INLINE Table64 table(const uint32_t* entries) { return {load(entries), load(entries + 32)}; }

ARRCOMP_INLINE u32r lookup(Table64 t, u32r i) {
  __m512i lower = _mm512_permutex2var_epi32((__m512i)t.lower.v[0], (__m512i)i, (__m512i)t.lower.v[1]);
  __m512i upper = _mm512_permutex2var_epi32((__m512i)t.upper.v[0], (__m512i)i, (__m512i)t.upper.v[1]);
  return (u32r)_mm512_mask_blend_epi32(_mm512_test_epi32_mask((__m512i)i, _mm512_set1_epi32(32)), lower, upper);
}
ARRCOMP_INLINE U32 lookup(Table64 t, U32 x) { ARRCOMP_EACH(U32, lookup(t, x.v[i])); }

// All 32 lanes in one register, of 16 bits each: a permutation of two registers sees 64 entries.
constexpr bool wide_permutations = true;

struct AliasTable {
  __m512i entries[2], offsets[2], frequencies[2];
};
ARRCOMP_INLINE AliasTable alias_table(const uint16_t (*t)[64]) {
  const auto row = [&](int i) { return _mm512_loadu_si512(t[i / 2] + 32 * (i % 2)); };
  return {{row(0), row(1)}, {row(2), row(3)}, {row(4), row(5)}};
}

// Lanes 0 to 15 are the lower halves of 32-bit lanes, and lanes 16 to 31 the upper ones: they part without a permutation.
ARRCOMP_INLINE U32 parted(__m512i halves) {
  U32 result;
  result.v[0] = (u32r)halves & 0xffff;
  result.v[1] = (u32r)halves >> 16;
  return result;
}

// `look_up` gives entries of a column of the table, by the lower 6 bits of indices.
template <class LookUp>
ARRCOMP_INLINE AliasSlots find_alias(U32 x, LookUp look_up) {
  const __m512i slot = (__m512i)((x.v[0] & 0xffff) | x.v[1] << 16);
  const __m512i bucket = _mm512_srli_epi16(slot, 5);
  const __m512i position = _mm512_and_si512(slot, _mm512_set1_epi16(31));
  const __m512i last = _mm512_or_si512(_mm512_slli_epi16(slot, 11), _mm512_set1_epi16(2047));  // entry of this place
  const __m512i entry = look_up(&AliasTable::entries, bucket);
  const __mmask32 aliased = _mm512_cmpge_epu16_mask(last, entry);
  const __m512i symbol = _mm512_mask_mov_epi16(bucket, aliased, entry);
  const __m512i rank = _mm512_mask_add_epi16(position, aliased, position, look_up(&AliasTable::offsets, bucket));
  return {parted(_mm512_and_si512(symbol, _mm512_set1_epi16(63))), parted(look_up(&AliasTable::frequencies, symbol)),
          parted(rank)};
}

ARRCOMP_INLINE AliasSlots lookup_alias(const AliasTable& t, U32 x) {
  return find_alias(x, [&](__m512i(AliasTable::* column)[2], __m512i i) {
    return _mm512_permutex2var_epi16((t.*column)[0], i, (t.*column)[1]);
  });
}

template <int n>
ARRCOMP_INLINE AliasSlots lookup_alias(const AliasTable (&t)[n], U32 table, U32 x) {
  const __m512i own = (__m512i)(table.v[0] | table.v[1] << 16);
  return find_alias(x, [&](__m512i(AliasTable::* column)[2], __m512i i) {
    __m512i found = _mm512_permutex2var_epi16((t[0].*column)[0], i, (t[0].*column)[1]);
    for (int k = 1; k < n; k++) {
      const __m512i next = _mm512_permutex2var_epi16((t[k].*column)[0], i, (t[k].*column)[1]);
      found = _mm512_mask_mov_epi16(found, _mm512_cmpeq_epi16_mask(own, _mm512_set1_epi16((short)k)), next);
    }
    return found;
  });
}

template <int n>
ARRCOMP_INLINE U32 lookup_runs(const uint16_t* t, U32 i) {
  const __m512i at = (__m512i)(i.v[0] | i.v[1] << 16);
  const __m512i cell = _mm512_srli_epi16(at, 5);
  const __m512i last = _mm512_or_si512(_mm512_slli_epi16(at, 11), _mm512_set1_epi16(2047));  // entry of this place
  __m512i run = _mm512_permutex2var_epi16(_mm512_loadu_si512(t), cell, _mm512_loadu_si512(t + 32));
#pragma GCC unroll 16
  for (int k = 1; k < n; k++) {
    const uint16_t* entries = t + 64 * k;
    const __m512i next = _mm512_permutex2var_epi16(_mm512_loadu_si512(entries), cell, _mm512_loadu_si512(entries + 32));
    run = _mm512_mask_mov_epi16(run, _mm512_cmple_epu16_mask(next, last), next);
  }
  const __m512i moved = _mm512_and_si512(_mm512_add_epi16(at, run), _mm512_set1_epi16(2047));
  return parted(_mm512_mask_mov_epi16(at, _mm512_movepi16_mask(at), moved));
}

ARRCOMP_INLINE U32 bit_length(U32 x) { ARRCOMP_EACH(U32, 32 - (u32r)_mm512_lzcnt_epi32((__m512i)x.v[i])); }

// The lower halves of 32 lanes, in their order.
ARRCOMP_INLINE __m512i lower_halves(u32r lower, u32r upper) {
  const u32r even = (u32r)_mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
  return _mm512_permutex2var_epi16((__m512i)lower, (__m512i)(even * 0x10001 + 0x20000), (__m512i)upper);
}

// Instead of two that make words of 32-bit lanes, one permutation.
ARRCOMP_INLINE uint16_t* append(uint16_t* p, U32 x, Mask m) {
  const uint32_t lower = part<U32>(m, 0), upper = part<U32>(m, 1);
  const __m512i words = lower_halves(compressed(x.v[0], lower), compressed(x.v[1], upper));
  _mm256_storeu_si256((__m256i*)p, _mm512_castsi512_si256(words));
  p += __builtin_popcount(lower);
  _mm256_storeu_si256((__m256i*)p, _mm512_extracti64x4_epi64(words, 1));
  return p + __builtin_popcount(upper);
}

// What streaming.h needs: a row's registers, where its elements have so many bytes at least; two registers at an offset.
constexpr int least_streamed = 2;

template <class T, class V, int n>
ARRCOMP_INLINE void row_registers(V x, u32r (&row)[n]) {
  if constexpr (sizeof(T) == 2) {
    row[0] = (u32r)lower_halves(x.v[0], x.v[1]);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) row[i] = (u32r)x.v[i];
  }
}

ARRCOMP_INLINE void stream(void* p, u32r x) { _mm512_stream_si512((__m512i*)p, (__m512i)x); }

struct RegisterShift {
  __m512i places;
  ARRCOMP_METHOD explicit RegisterShift(int bytes)
      : places(_mm512_sub_epi32(_mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31),
                                _mm512_set1_epi32(bytes / 4))) {}
  ARRCOMP_METHOD u32r join(u32r before, u32r x) const {
    return (u32r)_mm512_permutex2var_epi32((__m512i)before, places, (__m512i)x);
  }
};

}  // namespace arrcomp::avx512

// Each needs those before it.
// clang-format off
#include "avx512_halves.h"
#include "streaming.h"
#include "no_pairs.h"
#include "rows.h"
#include "words.h"
#include "generic.h"
// clang-format on
