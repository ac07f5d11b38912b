// The parameters of S2FP8.
#pragma once
#include "stream/buckets.h"
#include "stream/float_spec.h"
#include "stream/parameters.h"

namespace arrcomp {

struct S2fp8Settings {
  uint64_t bucket_size;  // 0: all of an array is one bucket
  bool stochastic;

  // The format of the squeezed numbers: e5m2.
  ARRCOMP_SHARED static constexpr FloatSpec spec() { return {5, 2, 15, Specials::ieee, true}; }

  static constexpr auto parameters() {
    using S = S2fp8Settings;
    return std::tuple{integer_or_zero("bucket_size", &S::bucket_size, 16, max_bucket_size),
                      flag("stochastic", &S::stochastic)};
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return sum_of_logarithms; }

  // A bucket stores alpha and its largest magnitude.
  BucketLayout layout(const Element& element) const {
    return {bucket_size, 2 * scalar_bytes(element), 0, spec().code_bits(), false};
  }
};

}  // namespace arrcomp
