// NEON (little-endian AArch64, which always has it): 4 lanes a register. Lanes of a mask move by byte
// permutations out of tables, as no instruction does it.
#pragma once
#include <arm_neon.h>

#include <cstdint>

namespace arrcomp::neon {

constexpr int streams = 1;  // whose states are 8 of 32 registers: two streams' rows would not stay in them
constexpr int encoder_streams = 1;
constexpr int rows_at_once = 8;
constexpr int rows_side_by_side = 1;

}  // namespace arrcomp::neon

#include "registers16.h"

namespace arrcomp::neon {

typedef uint32_t u32half __attribute__((vector_size(register_bytes / 2)));

// For every mask of 4 lanes, which bytes to take: the lanes of its bits, ascending (compress), of their low halves
// alone (narrow); each lane's place among them, or none (expand); each lane as it is, or its low half above its word in
// the next register (take). For every mask of 2 lanes of 64 bits, each lane's place.
struct Permutations {
  int8_t take[16][16];  // first: its rows' addresses are in a coder's innermost loop
  int8_t narrow[16][8];
  int8_t compress[16][16];
  int8_t expand[16][16], expand64[4][16];
};
consteval Permutations make_permutations() {
  Permutations tables{};
  for (int m = 0; m < 16; m++) {
    int n = 0;
    for (int l = 0; l < 4; l++) {
      const bool in = m >> l & 1;
      for (int b = 0; b < 4; b++) {
        const auto own = (int8_t)(4 * l + b);
        if (in) tables.compress[m][4 * n + b] = own;
        if (in && b < 2) tables.narrow[m][2 * n + b] = own;
        tables.expand[m][own] = in ? (int8_t)(4 * n + b) : (int8_t)-1;
        tables.take[m][own] = !in ? own : b < 2 ? (int8_t)(16 + 2 * n + b) : (int8_t)(own - 2);
      }
      n += in;
    }
  }
  for (int m = 0; m < 4; m++) {
    const int doubled = (m & 1) * 3 | (m >> 1) * 12;
    for (int b = 0; b < 16; b++) tables.expand64[m][b] = tables.expand[doubled][b];
  }
  return tables;
}
static constexpr Permutations permutations = make_permutations();

// --- memory and tables: vectors at any address

template <class V>
ARRCOMP_INLINE V loaded(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
ARRCOMP_INLINE void stored(void* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

ARRCOMP_INLINE u32r load_widened(const uint16_t* p) { return (u32r)vmovl_u16(loaded<uint16x4_t>(p)); }
ARRCOMP_INLINE u32r load_widened(const uint8_t* p) {
  return (u32r)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(loaded<uint32_t>(p)))));
}
ARRCOMP_INLINE void store_narrowed(uint16_t* p, u32r x) { stored(p, vmovn_u32((uint32x4_t)x)); }
ARRCOMP_INLINE void store_narrowed(uint8_t* p, u32r x) {
  const uint16x4_t words = vmovn_u32((uint32x4_t)x);
  stored(p, vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0));
}

// Indices leave a register in twos. Without the barrier GCC fetches the first two again for each of them.
template <class T>
ARRCOMP_INLINE u32r gather(const T* t, u32r i) {
  uint64_t a = ((u64r)i)[0], b = ((u64r)i)[1];
  asm("" : "+r"(a));
  const T* const entries[] = {t + (uint32_t)a, t + (a >> 32), t + (uint32_t)b, t + (b >> 32)};
  if constexpr (sizeof(T) <= 2) {
    return (u32r)vmovl_u16(uint16x4_t{*entries[0], *entries[1], *entries[2], *entries[3]});
  } else {
    const u32half lower = {*entries[0], *entries[1]}, upper = {*entries[2], *entries[3]};
    return (u32r)vcombine_u32((uint32x2_t)lower, (uint32x2_t)upper);
  }
}

// t[i mod n]: permutations of 64 bytes, each index times four and its bytes in turn.
template <int n>
ARRCOMP_INLINE u32r lookup(const uint32_t* t, u32r i) {
  if constexpr (n > 32) {
    return gather(t, i & (n - 1));
  } else {
    const auto positions = (uint8x16_t)((i & (n - 1)) * 0x04040404 + 0x03020100);
    const auto bytes = [t](int at) {
      return uint8x16x4_t{{loaded<uint8x16_t>(t + at), loaded<uint8x16_t>(t + at + 4), loaded<uint8x16_t>(t + at + 8),
                           loaded<uint8x16_t>(t + at + 12)}};
    };
    uint8x16_t found = vqtbl4q_u8(bytes(0), positions);
    if constexpr (n == 32) found = vqtbx4q_u8(found, bytes(16), positions ^ 64);
    return (u32r)found;
  }
}

ARRCOMP_INLINE u32r permuted(u32r x, const int8_t* order) {
  return (u32r)vqtbl1q_u8((uint8x16_t)x, loaded<uint8x16_t>(order));
}
ARRCOMP_INLINE void store_compressed(uint32_t* p, u32r x, uint32_t m) {
  stored(p, permuted(x, permutations.compress[m]));
}
ARRCOMP_INLINE void store_compressed(uint64_t* p, u64r x, uint32_t m) {
  p[0] = x[0];
  p[m & 1] = x[1];
}
ARRCOMP_INLINE void store_compressed(uint16_t* p, u32r x, uint32_t m) {
  stored(p, vqtbl1_u8((uint8x16_t)x, loaded<uint8x8_t>(permutations.narrow[m])));
}

ARRCOMP_INLINE u32r load_expanded(const uint32_t* p, uint32_t m) {
  return permuted(loaded<u32r>(p), permutations.expand[m]);
}
ARRCOMP_INLINE u64r load_expanded(const uint64_t* p, uint32_t m) {
  return (u64r)permuted(loaded<u32r>(p), permutations.expand64[m]);
}

ARRCOMP_INLINE u32r take(const uint16_t* p, u32r x, uint32_t m) {
  const uint8x16_t words = vcombine_u8(loaded<uint8x8_t>(p), vdup_n_u8(0));
  return (u32r)vqtbl2q_u8({{(uint8x16_t)x, words}}, loaded<uint8x16_t>(permutations.take[m]));
}

// --- arithmetic

template <class R>
ARRCOMP_INLINE R blend(u32r chosen, R yes, R no) {
  return (R)vbslq_u32((uint32x4_t)chosen, (uint32x4_t)yes, (uint32x4_t)no);
}

ARRCOMP_INLINE u32r min(u32r x, u32r y) { return (u32r)vminq_u32((uint32x4_t)x, (uint32x4_t)y); }
ARRCOMP_INLINE u32r max(u32r x, u32r y) { return (u32r)vmaxq_u32((uint32x4_t)x, (uint32x4_t)y); }
// (The instructions for floats order zeros by sign, and return NaN where x is not one.)

ARRCOMP_INLINE u32r mulhi(u32r x, u32r y) {
  const uint64x2_t lower = vmull_u32(vget_low_u32((uint32x4_t)x), vget_low_u32((uint32x4_t)y));
  const uint64x2_t upper = vmull_high_u32((uint32x4_t)x, (uint32x4_t)y);
  return (u32r)vuzp2q_u32((uint32x4_t)lower, (uint32x4_t)upper);
}

ARRCOMP_INLINE bool any_set(u32r x) { return ((u64r)vpmaxq_u32((uint32x4_t)x, (uint32x4_t)x))[0] != 0; }

template <class Operation>
ARRCOMP_INLINE uint32_t fold(u32r x, Operation operation) {
  const u32half two = operation((u32half)vget_low_u32((uint32x4_t)x), (u32half)vget_high_u32((uint32x4_t)x));
  return operation(two[0], two[1]);
}

// --- floats

ARRCOMP_INLINE u32r to_int(f32r f) { return (u32r)vcvtnq_s32_f32((float32x4_t)f); }
ARRCOMP_INLINE f64r to_double_lower(f32r f) { return (f64r)vcvt_f64_f32(vget_low_f32((float32x4_t)f)); }
ARRCOMP_INLINE f64r to_double_upper(f32r f) { return (f64r)vcvt_high_f64_f32((float32x4_t)f); }
ARRCOMP_INLINE f32r from_half(u32r h) { return (f32r)vcvt_f32_f16((float16x4_t)vmovn_u32((uint32x4_t)h)); }
ARRCOMP_INLINE u32r to_half(f32r f) { return (u32r)vmovl_u16((uint16x4_t)vcvt_f16_f32((float32x4_t)f)); }

// --- across the lanes

// x moved up by n lanes, with the last lanes of `before` below it.
template <int n>
ARRCOMP_INLINE u32r move_up(u32r before, u32r x) {
  return (u32r)vextq_u32((uint32x4_t)before, (uint32x4_t)x, 4 - n);
}
ARRCOMP_INLINE u32r broadcast_last(u32r x) { return (u32r)vdupq_laneq_u32((uint32x4_t)x, 3); }
ARRCOMP_INLINE u64r broadcast_last(u64r x) { return (u64r)vdupq_laneq_u64((uint64x2_t)x, 1); }
ARRCOMP_INLINE u32r shift_in(u32r before, u32r x) { return move_up<1>(before, x); }
ARRCOMP_INLINE u64r shift_in(u64r before, u64r x) { return (u64r)move_up<2>((u32r)before, (u32r)x); }
ARRCOMP_INLINE u32r prefix_sum(u32r x) {
  x += move_up<1>(u32r{}, x);
  return x + move_up<2>(u32r{}, x);
}
ARRCOMP_INLINE u64r prefix_sum(u64r x) { return x + shift_in(u64r{}, x); }
ARRCOMP_INLINE u32r lo(u64r a, u64r b) { return (u32r)vuzp1q_u32((uint32x4_t)a, (uint32x4_t)b); }
ARRCOMP_INLINE u32r hi(u64r a, u64r b) { return (u32r)vuzp2q_u32((uint32x4_t)a, (uint32x4_t)b); }
ARRCOMP_INLINE u64r join_lower(u32r lo, u32r hi) { return (u64r)vzip1q_u32((uint32x4_t)lo, (uint32x4_t)hi); }
ARRCOMP_INLINE u64r join_upper(u32r lo, u32r hi) { return (u64r)vzip2q_u32((uint32x4_t)lo, (uint32x4_t)hi); }

}  // namespace arrcomp::neon

#include "host.h"

namespace arrcomp::neon {

// Every lane as a byte, each byte's bit, and neighbours' bits together.
ARRCOMP_INLINE uint32_t to_bits(U32 lanes) {
  constexpr uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t half[2];
  for (int i = 0; i < 2; i++) {
    const u32r* const four = lanes.v + 4 * i;
    const uint16x8_t lower = vuzp1q_u16((uint16x8_t)four[0], (uint16x8_t)four[1]);
    const uint16x8_t upper = vuzp1q_u16((uint16x8_t)four[2], (uint16x8_t)four[3]);
    half[i] = vandq_u8(vuzp1q_u8((uint8x16_t)lower, (uint8x16_t)upper), bit);
  }
  uint8x16_t sums = vpaddq_u8(half[0], half[1]);
  sums = vpaddq_u8(sums, sums);
  sums = vpaddq_u8(sums, sums);
  return ((u32r)sums)[0];
}

ARRCOMP_INLINE U32 bit_length(U32 x) { ARRCOMP_EACH(U32, 32 - (u32r)vclzq_u32((uint32x4_t)x.v[i])); }

}  // namespace arrcomp::neon

// Each needs those before it.
// clang-format off
#include "maskless.h"
#include "no_streaming.h"
#include "no_pairs.h"
#include "rows.h"
#include "words.h"
#include "generic.h"
#include "runs.h"
// clang-format on
