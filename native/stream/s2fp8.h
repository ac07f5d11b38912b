// The parameters of S2FP8.
#pragma once
#include "stream/buckets.h"
#include "stream/float_spec.h"
#include "stream/parameters.h"

namespace arrcomp {

struct S2fp8Settings {
  uint64_t bucket_size;  // 0: all of an array is one bucket
  bool stochastic;

  // What the squeezed numbers are stored as: e5m2.
  ARRCOMP_SHARED static constexpr FloatSpec spec() { return {5, 2, 15, Specials::ieee, true}; }

  static bool read(std::span<const double> p, S2fp8Settings& s) {
    if (p.size() != 2 || !(p[0] == 0 || is_integer(p[0], 16, 0x1p40)) || !is_flag(p[1])) return false;
    s = {static_cast<uint64_t>(p[0]), p[1] != 0};
    return true;
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return sum_of_logarithms; }

  // Of a bucket, alpha and its largest magnitude.
  BucketLayout layout(const Element& element) const {
    return {bucket_size, 2 * number_bytes(element), 0, spec().code_bits(), false};
  }
};

}  // namespace arrcomp
