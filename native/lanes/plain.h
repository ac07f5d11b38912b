// Plain: compiler vectors of 16 bytes, and scalar code for the rest. Right on every CPU, and what the
// others are tested against.
#pragma once
#include <cstdint>

namespace arrcomp::plain {

constexpr int streams = 1;
constexpr int encoder_streams = 1;
constexpr int rows_at_once = 8;
constexpr int rows_side_by_side = 1;

}  // namespace arrcomp::plain

#include "registers16.h"

namespace arrcomp::plain {

typedef float f32half __attribute__((vector_size(register_bytes / 2)));

// --- memory and tables

template <class T>
ARRCOMP_INLINE u32r load_widened(const T* p) {
  T x[4];
  __builtin_memcpy(x, p, sizeof x);  // at any address
  return u32r{x[0], x[1], x[2], x[3]};
}
template <class T>
ARRCOMP_INLINE void store_narrowed(T* p, u32r x) {
  T narrowed[4];
  for (int l = 0; l < 4; l++) narrowed[l] = (T)x[l];
  __builtin_memcpy(p, narrowed, sizeof narrowed);
}

template <class T>
ARRCOMP_INLINE u32r gather(const T* t, u32r i) {
  return u32r{t[i[0]], t[i[1]], t[i[2]], t[i[3]]};
}

template <int n>
ARRCOMP_INLINE u32r lookup(const uint32_t* t, u32r i) {
  return gather(t, i & (n - 1));
}

template <class T, class R>
ARRCOMP_INLINE void store_compressed(T* p, R x, uint32_t m) {
  for (int l = 0; l < register_bytes / (int)sizeof x[0]; l++) {
    *p = (T)x[l];
    p += m >> l & 1;
  }
}

// Each lane takes a word or none, without branches, as none could be foretold.
template <class R, class T>
ARRCOMP_INLINE R expanded(const T* p, uint32_t m) {
  R x{};
  for (int l = 0; l < register_bytes / (int)sizeof(T); l++) {
    T in = m >> l & 1;
    x[l] = *p & -in;
    p += in;
  }
  return x;
}
ARRCOMP_INLINE u32r load_expanded(const uint32_t* p, uint32_t m) { return expanded<u32r>(p, m); }
ARRCOMP_INLINE u64r load_expanded(const uint64_t* p, uint32_t m) { return expanded<u64r>(p, m); }

ARRCOMP_INLINE u32r take(const uint16_t* p, u32r x, uint32_t m) {
  for (int l = 0; l < 4; l++) {
    uint32_t in = m >> l & 1;
    x[l] = x[l] << (in << 4) | (*p & -in);
    p += in;
  }
  return x;
}

// --- arithmetic

template <class R>
ARRCOMP_INLINE R blend(u32r chosen, R yes, R no) {
  return (R)((chosen & (u32r)yes) | (~chosen & (u32r)no));
}

ARRCOMP_INLINE u32r min(u32r x, u32r y) { return blend((u32r)(y < x), y, x); }
ARRCOMP_INLINE u32r max(u32r x, u32r y) { return blend((u32r)(x < y), y, x); }

ARRCOMP_INLINE u32r mulhi(u32r x, u32r y) {
  for (int l = 0; l < 4; l++) x[l] = (uint32_t)((uint64_t)x[l] * y[l] >> 32);
  return x;
}

ARRCOMP_INLINE bool any_set(u32r x) { return (x[0] | x[1] | x[2] | x[3]) != 0; }

template <class Operation>
ARRCOMP_INLINE uint32_t fold(u32r x, Operation operation) {
  return operation(operation(x[0], x[1]), operation(x[2], x[3]));
}

// --- floats

ARRCOMP_INLINE u32r splat_u32(uint32_t s) { return s - u32r{}; }

// Adding 2^23 leaves no bit below 1, and rounds to the nearest even integer; from 2^23 on floats are integers.
ARRCOMP_INLINE u32r to_int(f32r f) {
  u32r sign = (u32r)f & 0x80000000u, size = (u32r)f ^ sign;
  f32r magic = (f32r)(splat_u32(0x4b000000) | sign);
  f32r rounded = blend((u32r)(size < 0x4b000000u), (f + magic) - magic, f);
  f32r in_range = (f32r)((u32r)rounded & (u32r)(size < 0x4f000000u));
  return (u32r) __builtin_convertvector(in_range, i32r);
}

ARRCOMP_INLINE f64r to_double_lower(f32r f) { return __builtin_convertvector((f32half{f[0], f[1]}), f64r); }
ARRCOMP_INLINE f64r to_double_upper(f32r f) { return __builtin_convertvector((f32half{f[2], f[3]}), f64r); }

ARRCOMP_INLINE f32r from_half(u32r h) {
  u32r size = h & 0x7fff, moved = size << 13;
  f32r tiny = __builtin_convertvector((i32r)size, f32r) * 0x1p-24f;
  u32r normal = moved + (112u << 23), special = moved | 0x7f800000u;
  u32r magnitude = blend((u32r)(size < 0x400), (u32r)tiny, blend((u32r)(size < 0x7c00), normal, special));
  return (f32r)(magnitude | (h & 0x8000) << 16);
}

// Subnormal halves are multiples of 2^-24, which is what is left of a float's mantissa next to 0.5.
ARRCOMP_INLINE u32r to_half(f32r f) {
  u32r sign = (u32r)f >> 16 & 0x8000, size = (u32r)f & 0x7fffffff;
  u32r tiny = (u32r)((f32r)size + 0.5f) - 0x3f000000u;
  u32r normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
  u32r finite = blend((u32r)(size < 0x38800000u), tiny, normal);
  u32r number = blend((u32r)(size < 0x47800000u), finite, splat_u32(0x7c00));
  return sign | blend((u32r)(size > 0x7f800000u), splat_u32(0x7e00), number);
}

// --- across the lanes

ARRCOMP_INLINE u32r broadcast_last(u32r x) { return u32r{x[3], x[3], x[3], x[3]}; }
ARRCOMP_INLINE u64r broadcast_last(u64r x) { return u64r{x[1], x[1]}; }
ARRCOMP_INLINE u32r shift_in(u32r before, u32r x) { return u32r{before[3], x[0], x[1], x[2]}; }
ARRCOMP_INLINE u64r shift_in(u64r before, u64r x) { return u64r{before[1], x[0]}; }
ARRCOMP_INLINE u32r prefix_sum(u32r x) {
  x += u32r{0, x[0], x[1], x[2]};
  return x + u32r{0, 0, x[0], x[1]};
}
ARRCOMP_INLINE u64r prefix_sum(u64r x) { return x + u64r{0, x[0]}; }
ARRCOMP_INLINE u32r lo(u64r a, u64r b) { return u32r{(uint32_t)a[0], (uint32_t)a[1], (uint32_t)b[0], (uint32_t)b[1]}; }
ARRCOMP_INLINE u32r hi(u64r a, u64r b) { return lo(a >> 32, b >> 32); }
ARRCOMP_INLINE u64r join_lower(u32r lo, u32r hi) { return u64r{lo[0], lo[1]} | u64r{hi[0], hi[1]} << 32; }
ARRCOMP_INLINE u64r join_upper(u32r lo, u32r hi) { return u64r{lo[2], lo[3]} | u64r{hi[2], hi[3]} << 32; }

}  // namespace arrcomp::plain

#include "host.h"

namespace arrcomp::plain {

// Each lane's bit in one register, then its four lanes into one.
ARRCOMP_INLINE uint32_t to_bits(U32 lanes) {
  u32r all{};
#pragma GCC unroll 16
  for (int i = 0; i < U32::registers; i++) all |= lanes.v[i] & lane_bits << (4 * i);
  return all[0] | all[1] | all[2] | all[3];
}

}  // namespace arrcomp::plain

// Each needs those before it.
// clang-format off
#include "maskless.h"
#include "bit_length.h"
#include "no_streaming.h"
#include "no_pairs.h"
#include "rows.h"
#include "words.h"
#include "generic.h"
#include "runs.h"
// clang-format on
