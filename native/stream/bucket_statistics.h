// What is found out about a bucket, from segments of at most a chunk. Segments are put together in order, in runs of
// 1024; then the runs are, in order.
#pragma once
#include <cmath>
#include <cstring>

#include "stream/buckets.h"
#include "stream/powers.h"

namespace arrcomp {

struct BucketStatistics {
  double low, high;
  double squares;     // sum of (x / 2^exponent - mean)^2
  double mean;        // of x / 2^exponent; 0 where it was not asked for
  double count;       // of values; 0 where the mean was not asked for
  double logarithms;  // sum of log2 |x| of the values that are not 0
  uint64_t nonzeros;  // their number, with the sum of logarithms
  int exponent;       // 2^exponent is above every |x|
  bool finite;        // all values are

  ARRCOMP_SHARED static BucketStatistics none() {
    constexpr double most = 0x1.fffffffffffffp1023;
    return {most, -most, 0, 0, 0, 0, 0, -1100, true};
  }

  ARRCOMP_SHARED double largest_magnitude() const { return high < -low ? -low : high; }

  ARRCOMP_SHARED void add(const BucketStatistics& next) {
    low = next.low < low ? next.low : low;
    high = high < next.high ? next.high : high;
    finite = finite && next.finite;
    const int larger = exponent < next.exponent ? next.exponent : exponent;
    const double a = power_of_two(2 * (exponent - larger)), b = power_of_two(2 * (next.exponent - larger));
    squares = squares * a + next.squares * b;
    if (next.count > 0) join_means(next, power_of_two(exponent - larger), power_of_two(next.exponent - larger));
    exponent = larger;
    logarithms += next.logarithms;
    nonzeros += next.nonzeros;
  }

  ARRCOMP_SHARED double l2_norm() const {
    if (largest_magnitude() <= 0) return 0;
    const double l2 = times_power_of_two(sqrt(squares), exponent);
    return l2 <= 0x1.fffffffffffffp1023 ? l2 : 0x1.fffffffffffffp1023;
  }

  // For at least one value.
  ARRCOMP_SHARED double mean_value() const {
    const double m = times_power_of_two(mean, exponent);
    return m < low ? low : high < m ? high : m;
  }
  ARRCOMP_SHARED double deviation() const { return times_power_of_two(sqrt(squares / count), exponent); }

 private:
  // T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
  // COMPSTAT 1982, equation 2.1. `own` and `others` bring both means to the same power of two.
  ARRCOMP_SHARED void join_means(const BucketStatistics& next, double own, double others) {
    const double all = count + next.count, share = next.count / all;
    const double distance = next.mean * others - mean * own;
    squares = squares + distance * distance * (count * share);
    mean = mean * own + distance * share;
    count = all;
  }
};

// Elements of the segments that buckets are looked at in, and segments of a run.
constexpr uint64_t segment_size = chunk_size;
constexpr uint64_t segments_per_run = 1024;

ARRCOMP_SHARED constexpr uint64_t segments_of_bucket(uint64_t bucket_size) {
  return ceil_div(bucket_size, segment_size);
}

}  // namespace arrcomp
