// Random numbers from a seed and an element's index: Philox4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). They do not depend on how the work is spread.
#pragma once
#include "lanes/lanes.h"
#include "stream/constants.h"

namespace arrcomp::ARRCOMP_ISA {

// Instead of random words.
struct Nearest {};

// Four words for each lane.
struct RandomWords {
  U32 word[4];

  // Of the row with this number, without an address in registers.
  ARRCOMP_METHOD U32 of_row(uint64_t row) const {
    const U32 odd = row % 4 == 1 ? word[1] : word[3], even = row % 4 == 0 ? word[0] : word[2];
    return row % 2 == 1 ? odd : even;
  }
};

// Of counters {low, high, then those of `rest`}.
ARRCOMP_PART RandomWords philox(uint64_t key, U32 low, U32 high, uint64_t rest = 0) {
  U32 x0 = low, x1 = high;
  U32 x2 = splat<U32>(static_cast<uint32_t>(rest)), x3 = splat<U32>(static_cast<uint32_t>(rest >> 32));
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const U32 m0 = splat<U32>(0xd2511f53u), m1 = splat<U32>(0xcd9e8d57u);
  for (int round = 0; round < 10; ++round) {
    const U32 high0 = mulhi(m0, x0), low0 = m0 * x0, high1 = mulhi(m1, x2), low1 = m1 * x2;
    x0 = high1 ^ x1 ^ splat<U32>(k0);
    x1 = low1;
    x2 = high0 ^ x3 ^ splat<U32>(k1);
    x3 = low0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {{x0, x1, x2, x3}};
}

// Of the elements in four rows: word w of a lane belongs to row 4 * `rows` + w of the array.
ARRCOMP_PART RandomWords random_rows(uint64_t seed, uint64_t rows) {
  const uint64_t counter = rows * lanes_per_row;
  return philox(seed, splat<U32>(static_cast<uint32_t>(counter)) + lane_numbers(),
                splat<U32>(static_cast<uint32_t>(counter >> 32)));
}

// A word as a number between -1/2 and 1/2, symmetric around 0: an odd multiple of 2^-25 (float64: 2^-33).
ARRCOMP_INLINE F32 centered(U32 word, F32) {
  return to_float(word >> 8) * splat<F32>(0x1p-24f) + splat<F32>(0x1p-25f - 0.5f);
}
ARRCOMP_INLINE F64 centered(U32 word, F64) {
  return as_double(join(word << 20, word >> 12 | splat<U32>(0x3ff00000u))) + splat<F64>(0x1p-33 - 1.5);
}

}  // namespace arrcomp::ARRCOMP_ISA
