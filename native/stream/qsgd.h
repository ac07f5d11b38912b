// The parameters of QSGD.
#pragma once
#include "stream/buckets.h"
#include "stream/parameters.h"

namespace arrcomp {

enum class Norm : int { minmax = 0, l2 = 1, linf = 2 };

struct QsgdSettings {
  int bits;
  uint64_t bucket_size;
  Norm norm;
  bool stochastic;
  bool skip_incomplete;
  bool entropy;  // codes are entropy coded

  static constexpr auto parameters() {
    using S = QsgdSettings;
    return std::tuple{integer("bits", &S::bits, 1, 8),
                      integer("bucket_size", &S::bucket_size, 16, max_bucket_size),
                      integer("norm", &S::norm, 0, 2),
                      flag("stochastic", &S::stochastic),
                      flag("skip_incomplete", &S::skip_incomplete),
                      flag("entropy", &S::entropy)};
  }

  // Parameters that are stored for a bucket: unit and least value, or unit alone.
  ARRCOMP_SHARED constexpr uint32_t parameter_count() const { return norm == Norm::minmax ? 2 : 1; }
  ARRCOMP_SHARED constexpr uint32_t largest_code() const {
    return norm == Norm::minmax || bits == 1 ? (1u << bits) - 1 : (1u << bits) - 2;
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return norm == Norm::l2 ? sum_of_squares : no_moments; }

  // Entropy-coded rows cannot be read at random.
  bool has_sums() const { return !entropy; }

  BucketLayout layout(const Element& element) const {
    const uint32_t code_bits = entropy ? 8 : static_cast<uint32_t>(bits);
    return {bucket_size, parameter_count() * scalar_bytes(element), 0, code_bits, skip_incomplete, entropy};
  }
};

}  // namespace arrcomp
