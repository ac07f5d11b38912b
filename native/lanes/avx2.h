// AVX2 (x86-64 with avx2, bmi1, bmi2, lzcnt, popcnt and f16c): 8 lanes a register. Lanes of a mask move by
// permutations out of tables, as no instruction does it.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace arrcomp::avx2 {

constexpr int streams = 2;
constexpr int encoder_streams = 1;
constexpr int rows_at_once = 8;
constexpr int rows_side_by_side = 1;
constexpr bool short_lookup = true;
constexpr int register_bytes = 32;
typedef uint32_t u32r __attribute__((vector_size(register_bytes)));
typedef int32_t i32r __attribute__((vector_size(register_bytes)));
typedef uint64_t u64r __attribute__((vector_size(register_bytes)));
typedef float f32r __attribute__((vector_size(register_bytes)));
typedef double f64r __attribute__((vector_size(register_bytes)));
typedef uint32_t u32half __attribute__((vector_size(register_bytes / 2)));

constexpr u32r lane_bits = {1, 2, 4, 8, 16, 32, 64, 128};

// For every mask of 8 lanes: the lanes of its bits, ascending (compress), and each lane's place among them, with the
// sign bit set where the lane is in the mask (expand). For every mask of 4 lanes, the mask with each bit doubled.
struct Permutations {
  int8_t compress[256][8];
  int8_t expand[256][8];
  uint8_t doubled[16];
};
consteval Permutations make_permutations() {
  Permutations tables{};
  for (int m = 0; m < 256; m++) {
    int n = 0;
    for (int l = 0; l < 8; l++) {
      if (!(m >> l & 1)) continue;
      tables.compress[m][n] = (int8_t)l;
      tables.expand[m][l] = (int8_t)(n - 128);
      n++;
    }
  }
  for (int m = 0; m < 16; m++) {
    for (int l = 0; l < 4; l++) tables.doubled[m] |= (uint8_t)((m >> l & 1) * (3 << 2 * l));
  }
  return tables;
}
static constexpr Permutations permutations = make_permutations();

ARRCOMP_INLINE __m256i compress_order(uint32_t m) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)permutations.compress[m]));
}
ARRCOMP_INLINE __m256i expand_order(uint32_t m) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)permutations.expand[m]));
}

// --- memory and tables

ARRCOMP_INLINE u32r load_widened(const uint16_t* p) {
  return (u32r)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
}
ARRCOMP_INLINE u32r load_widened(const uint8_t* p) {
  return (u32r)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}

// The low 16 bits of 8 lanes.
ARRCOMP_INLINE __m128i narrow(u32r x) {
  const __m256i words = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                         0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  __m256i halves = _mm256_shuffle_epi8((__m256i)x, words);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 0x08));
}
ARRCOMP_INLINE void store_narrowed(uint16_t* p, u32r x) { _mm_storeu_si128((__m128i*)p, narrow(x)); }
ARRCOMP_INLINE void store_narrowed(uint8_t* p, u32r x) {
  __m128i words = narrow(x & 0xff);
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(words, words));
}

// What 8 lanes index. Each is loaded alone: the instruction that gathers takes longer, on AMD's processors and, since its
// microcode was mended (CVE-2022-40982), on Intel's. Two indices at a time leave the register.
class Indices {
 public:
  ARRCOMP_METHOD explicit Indices(u32r i) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      twos_[k] = ((u64r)i)[k];
      asm("" : "+r"(twos_[k]));
    }
  }
  // W: what is loaded from t[i], at any address.
  template <class W, class T>
  ARRCOMP_METHOD W load(const T* t, int lane) const {
    W x;
    __builtin_memcpy(&x, t + (lane % 2 == 0 ? (uint32_t)twos_[lane / 2] : twos_[lane / 2] >> 32), sizeof x);
    return x;
  }

 private:
  uint64_t twos_[4];
};

template <class T>
ARRCOMP_INLINE u32r gather_words(const T* t, u32r i) {
  const Indices indices(i);
  const auto word = [&](int lane) ARRCOMP_LAMBDA { return _mm256_set1_epi32((int)indices.load<uint32_t>(t, lane)); };
  const __m256i a = _mm256_blend_epi32(word(0), word(1), 0x02), b = _mm256_blend_epi32(word(2), word(3), 0x08);
  const __m256i c = _mm256_blend_epi32(word(4), word(5), 0x20), d = _mm256_blend_epi32(word(6), word(7), 0x80);
  return (u32r)_mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x0c), _mm256_blend_epi32(c, d, 0xc0), 0xf0);
}
ARRCOMP_INLINE u32r gather(const uint32_t* t, u32r i) { return gather_words(t, i); }
ARRCOMP_INLINE u32r gather(const uint16_t* t, u32r i) { return gather_words(t, i) & 0xffff; }
ARRCOMP_INLINE u32r gather(const uint8_t* t, u32r i) { return gather_words(t, i) & 0xff; }

ARRCOMP_INLINE void gather_pair(const uint32_t (*t)[2], u32r i, u32r& first, u32r& second) {
  const Indices indices(i);
  const auto pair = [&](int lane)
                        ARRCOMP_LAMBDA { return _mm256_set1_epi64x((long long)indices.load<uint64_t>(t, lane)); };
  const auto four = [&](int lane) ARRCOMP_LAMBDA {  // of this lane, the next, and the fourth after each
    return (__m256)_mm256_blend_epi32(_mm256_blend_epi32(pair(lane), pair(lane + 1), 0x0c),
                                      _mm256_blend_epi32(pair(lane + 4), pair(lane + 5), 0xc0), 0xf0);
  };
  const __m256 a = four(0), b = four(2);
  first = (u32r)_mm256_shuffle_ps(a, b, 0x88);
  second = (u32r)_mm256_shuffle_ps(a, b, 0xdd);
}

// t[i mod n]: permutations of a register see the low bits of an index alone, and blending sees the sign bit. Long tables
// are gathered by the instruction, as loops that look codes up do little else, and are faster if they are short.
template <int n>
ARRCOMP_INLINE u32r lookup(const uint32_t* t, u32r i) {
  if constexpr (n == 8) {
    return (u32r)_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i*)t), (__m256i)i);
  } else if constexpr (n > 32) {
    return (u32r)_mm256_i32gather_epi32((const int*)t, (__m256i)(i & (n - 1)), 4);
  } else {
    const __m256 lower = (__m256)lookup<n / 2>(t, i), upper = (__m256)lookup<n / 2>(t + n / 2, i);
    return (u32r)_mm256_blendv_ps(lower, upper, (__m256)(i << (n == 16 ? 28 : 27)));
  }
}

ARRCOMP_INLINE u32r compressed(u32r x, uint32_t m) {
  return (u32r)_mm256_permutevar8x32_epi32((__m256i)x, compress_order(m));
}
ARRCOMP_INLINE void store_compressed(uint32_t* p, u32r x, uint32_t m) {
  _mm256_storeu_si256((__m256i*)p, (__m256i)compressed(x, m));
}
ARRCOMP_INLINE void store_compressed(uint64_t* p, u64r x, uint32_t m) {
  _mm256_storeu_si256((__m256i*)p, (__m256i)compressed((u32r)x, permutations.doubled[m]));
}
ARRCOMP_INLINE void store_compressed(uint16_t* p, u32r x, uint32_t m) { store_narrowed(p, compressed(x, m)); }

ARRCOMP_INLINE u32r expanded(__m256i words, uint32_t m) {
  __m256i order = expand_order(m);
  return (u32r)_mm256_and_si256(_mm256_permutevar8x32_epi32(words, order), _mm256_srai_epi32(order, 31));
}
ARRCOMP_INLINE u32r load_expanded(const uint32_t* p, uint32_t m) {
  return expanded(_mm256_loadu_si256((const __m256i*)p), m);
}
ARRCOMP_INLINE u64r load_expanded(const uint64_t* p, uint32_t m) {
  return (u64r)expanded(_mm256_loadu_si256((const __m256i*)p), permutations.doubled[m]);
}

ARRCOMP_INLINE u32r take(const uint16_t* p, u32r x, uint32_t m) {
  __m256i order = expand_order(m);
  u32r word = (u32r)_mm256_permutevar8x32_epi32((__m256i)load_widened(p), order);
  return (u32r)_mm256_blendv_ps((__m256)x, (__m256)(x << 16 | word), (__m256)order);
}

// --- arithmetic

// All ones in a lane of `chosen` take `yes`.
template <class R>
ARRCOMP_INLINE R blend(u32r chosen, R yes, R no) {
  return (R)_mm256_blendv_epi8((__m256i)no, (__m256i)yes, (__m256i)chosen);
}

ARRCOMP_INLINE u32r min(u32r x, u32r y) { return (u32r)_mm256_min_epu32((__m256i)x, (__m256i)y); }
ARRCOMP_INLINE u32r max(u32r x, u32r y) { return (u32r)_mm256_max_epu32((__m256i)x, (__m256i)y); }
ARRCOMP_INLINE u64r min(u64r x, u64r y) { return blend((u32r)(y < x), y, x); }
ARRCOMP_INLINE u64r max(u64r x, u64r y) { return blend((u32r)(x < y), y, x); }
// These instructions return their second operand unless the first is the smaller, or the larger.
ARRCOMP_INLINE f32r min(f32r x, f32r y) { return (f32r)_mm256_min_ps((__m256)y, (__m256)x); }
ARRCOMP_INLINE f32r max(f32r x, f32r y) { return (f32r)_mm256_max_ps((__m256)y, (__m256)x); }
ARRCOMP_INLINE f64r min(f64r x, f64r y) { return (f64r)_mm256_min_pd((__m256d)y, (__m256d)x); }
ARRCOMP_INLINE f64r max(f64r x, f64r y) { return (f64r)_mm256_max_pd((__m256d)y, (__m256d)x); }

ARRCOMP_INLINE u32r sar(u32r x, int k) { return (u32r)((i32r)x >> k); }
ARRCOMP_INLINE u64r sar(u64r x, int k) {
  uint64_t sign = (uint64_t)1 << (63 - k);
  return (x >> k ^ sign) - sign;
}

ARRCOMP_INLINE u32r mulhi(u32r x, u32r y) {
  __m256i even = _mm256_mul_epu32((__m256i)x, (__m256i)y);
  __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)x, 32), _mm256_srli_epi64((__m256i)y, 32));
  return (u32r)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

template <class R, class T>
ARRCOMP_INLINE R merged(R x, R y, T mask) {
  return (x & mask) | (y & ~mask);
}

ARRCOMP_INLINE bool any_set(u32r x) { return !_mm256_testz_si256((__m256i)x, (__m256i)x); }

template <class Operation>
ARRCOMP_INLINE uint32_t fold(u32r x, Operation operation) {
  u32half four =
      operation((u32half)_mm256_castsi256_si128((__m256i)x), (u32half)_mm256_extracti128_si256((__m256i)x, 1));
  u32half two = operation(four, (u32half)_mm_shuffle_epi32((__m128i)four, 0x4e));
  return operation(two[0], two[1]);
}

// The larger lanes of halves, and so on, of a and b, which stand side by side afterwards.
ARRCOMP_INLINE u32r larger_halves(u32r a, u32r b) {
  return max((u32r)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x20),
             (u32r)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x31));
}
ARRCOMP_INLINE u32r larger_pairs(u32r a, u32r b) {
  return max((u32r)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b), (u32r)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b));
}
ARRCOMP_INLINE u32r larger_lanes(u32r a, u32r b) {
  return max((u32r)_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88), (u32r)_mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd));
}
// In lane l the largest lane of rows[l].
ARRCOMP_INLINE u32r max_of_each(const u32r (&rows)[8]) {
  u32r half[4];
#pragma GCC unroll 4
  for (int m = 0; m < 4; m++) half[m] = larger_halves(rows[m], rows[m + 4]);
  return larger_lanes(larger_pairs(half[0], half[1]), larger_pairs(half[2], half[3]));
}

// --- floats

ARRCOMP_INLINE f32r exponents(f32r x) { return __builtin_convertvector((i32r)((u32r)x << 1 >> 24), f32r) - 127; }
ARRCOMP_INLINE f32r near_sum(f32r x, f32r y, f32r z) { return x * y + z; }
ARRCOMP_INLINE f64r near_sum(f64r x, f64r y, f64r z) { return x * y + z; }
ARRCOMP_INLINE u32r to_int(f32r f) { return (u32r)_mm256_cvtps_epi32((__m256)f); }
ARRCOMP_INLINE f64r to_double_lower(f32r f) { return (f64r)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)f)); }
ARRCOMP_INLINE f64r to_double_upper(f32r f) { return (f64r)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)f, 1)); }
ARRCOMP_INLINE f32r from_half(u32r h) { return (f32r)_mm256_cvtph_ps(narrow(h)); }
ARRCOMP_INLINE u32r to_half(f32r f) {
  return (u32r)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)f, _MM_FROUND_TO_NEAREST_INT));
}

// --- across the lanes

ARRCOMP_INLINE u32r broadcast_last(u32r x) {
  return (u32r)_mm256_permutevar8x32_epi32((__m256i)x, _mm256_set1_epi32(7));
}
ARRCOMP_INLINE u64r broadcast_last(u64r x) { return (u64r)_mm256_permute4x64_epi64((__m256i)x, 0xff); }

// The upper half of `before` and the lower half of x: what stands before each half.
ARRCOMP_INLINE __m256i halves_before(__m256i before, __m256i x) { return _mm256_permute2x128_si256(before, x, 0x21); }
ARRCOMP_INLINE u32r shift_in(u32r before, u32r x) {
  return (u32r)_mm256_alignr_epi8((__m256i)x, halves_before((__m256i)before, (__m256i)x), 12);
}
ARRCOMP_INLINE u64r shift_in(u64r before, u64r x) {
  return (u64r)_mm256_alignr_epi8((__m256i)x, halves_before((__m256i)before, (__m256i)x), 8);
}

// Within each half, then the lower half's sum is added to the upper one.
ARRCOMP_INLINE u32r prefix_sum(u32r x) {
  x += (u32r)_mm256_slli_si256((__m256i)x, 4);
  x += (u32r)_mm256_slli_si256((__m256i)x, 8);
  __m256i lower = halves_before(_mm256_setzero_si256(), (__m256i)x);
  return x + (u32r)_mm256_shuffle_epi32(lower, 0xff);
}
ARRCOMP_INLINE u64r prefix_sum(u64r x) {
  x += (u64r)_mm256_slli_si256((__m256i)x, 8);
  __m256i lower = halves_before(_mm256_setzero_si256(), (__m256i)x);
  return x + (u64r)_mm256_unpackhi_epi64(lower, lower);
}

// The even (0x88) or odd (0xdd) lanes of a and b.
template <int which>
ARRCOMP_INLINE u32r every_other(u64r a, u64r b) {
  __m256i mixed = (__m256i)_mm256_shuffle_ps((__m256)a, (__m256)b, which);
  return (u32r)_mm256_permute4x64_epi64(mixed, 0xd8);
}
ARRCOMP_INLINE u32r lo(u64r a, u64r b) { return every_other<0x88>(a, b); }
ARRCOMP_INLINE u32r hi(u64r a, u64r b) { return every_other<0xdd>(a, b); }
ARRCOMP_INLINE __m256i middle_swapped(u32r x) { return _mm256_permute4x64_epi64((__m256i)x, 0xd8); }
ARRCOMP_INLINE u64r join_lower(u32r lo, u32r hi) {
  return (u64r)_mm256_unpacklo_epi32(middle_swapped(lo), middle_swapped(hi));
}
ARRCOMP_INLINE u64r join_upper(u32r lo, u32r hi) {
  return (u64r)_mm256_unpackhi_epi32(middle_swapped(lo), middle_swapped(hi));
}

}  // namespace arrcomp::avx2

#include "host.h"

namespace arrcomp::avx2 {

ARRCOMP_INLINE uint32_t to_bits(U32 lanes) {
  uint32_t bits = 0;
#pragma GCC unroll 16
  for (int i = 0; i < U32::registers; i++) {
    bits |= (uint32_t)_mm256_movemask_ps((__m256)lanes.v[i]) << (8 * i);
  }
  return bits;
}

constexpr bool gathers_pairs = true;

ARRCOMP_INLINE void gather_pair(const uint32_t (*t)[2], U32 i, U32& first, U32& second) {
#pragma GCC unroll 4
  for (int k = 0; k < U32::registers; k++) gather_pair(t, i.v[k], first.v[k], second.v[k]);
}
ARRCOMP_INLINE U32 gather_at(const uint16_t* t, U32 bytes) {
  ARRCOMP_EACH(U32, gather_words((const uint8_t*)t, bytes.v[i]) & 0xffff);
}

// What streaming.h needs: a row's registers, where its elements have so many bytes at least; two registers at an offset.
constexpr int least_streamed = 4;

template <class T, class V, int n>
ARRCOMP_INLINE void row_registers(V x, u32r (&row)[n]) {
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) row[i] = (u32r)x.v[i];
}

ARRCOMP_INLINE void stream(void* p, u32r x) { _mm256_stream_si256((__m256i*)p, (__m256i)x); }

struct RegisterShift {
  bool by_half;
  ARRCOMP_METHOD explicit RegisterShift(int bytes) : by_half(bytes != 0) {}
  ARRCOMP_METHOD u32r join(u32r before, u32r x) const {
    return by_half ? (u32r)_mm256_permute2x128_si256((__m256i)before, (__m256i)x, 0x21) : x;
  }
};

}  // namespace arrcomp::avx2

// Each needs those before it.
// clang-format off
#include "maskless.h"
#include "bit_length.h"
#include "streaming.h"
#include "rows.h"
#include "words.h"
#include "generic.h"
#include "runs.h"
// clang-format on
