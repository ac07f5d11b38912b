// What is found out about a bucket, from pieces of at most a chunk. Pieces are put together in order, in runs of 1024;
// then the runs are, in order.
#pragma once
#include <cmath>
#include <cstring>

#include "stream/buckets.h"

namespace arrcomp {

// 2^e, or 0 below the smallest number and the largest power of two above it.
ARRCOMP_SHARED double power_of_two(int e) {
  if (e < -1074) return 0;
  if (e < -1022) return 0x1p-1022 * static_cast<double>(uint64_t{1} << (e + 1074)) * 0x1p-52;
  const uint64_t bits = static_cast<uint64_t>((e > 1023 ? 1023 : e) + 1023) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

struct BucketStatistics {
  double low, high;
  double squares;     // sum of (x / 2^exponent)^2
  double logarithms;  // sum of log2 |x| of the values that are not 0
  uint64_t nonzeros;  // their number, with the sum of logarithms
  int exponent;       // 2^exponent is above every |x|
  bool finite;        // all values are

  ARRCOMP_SHARED static BucketStatistics none() {
    constexpr double most = 0x1.fffffffffffffp1023;
    return {most, -most, 0, 0, 0, -1100, true};
  }

  ARRCOMP_SHARED double largest_magnitude() const { return high < -low ? -low : high; }

  ARRCOMP_SHARED void add(const BucketStatistics& next) {
    low = next.low < low ? next.low : low;
    high = high < next.high ? next.high : high;
    finite = finite && next.finite;
    const int larger = exponent < next.exponent ? next.exponent : exponent;
    const double a = power_of_two(2 * (exponent - larger)), b = power_of_two(2 * (next.exponent - larger));
    squares = squares * a + next.squares * b;
    exponent = larger;
    logarithms += next.logarithms;
    nonzeros += next.nonzeros;
  }

  ARRCOMP_SHARED double l2_norm() const {
    if (largest_magnitude() <= 0) return 0;
    // Two factors, as 2^exponent alone may not be a number.
    const double root = sqrt(squares);
    const int half = exponent / 2;
    const double l2 = root * power_of_two(half) * power_of_two(exponent - half);
    return l2 <= 0x1.fffffffffffffp1023 ? l2 : 0x1.fffffffffffffp1023;
  }
};

// Elements of the pieces that buckets are looked at in, and pieces of a run.
constexpr uint64_t piece_size = chunk_size;
constexpr uint64_t pieces_per_run = 1024;

ARRCOMP_SHARED constexpr uint64_t pieces_of_bucket(uint64_t bucket_size) { return ceil_div(bucket_size, piece_size); }

}  // namespace arrcomp
