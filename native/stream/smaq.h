// The parameters of SmaQ.
#pragma once
#include "stream/buckets.h"
#include "stream/parameters.h"

namespace arrcomp {

enum class Statistics : int { exact = 0, sampled = 1, range = 2, given = 3 };
enum class Rounding : int { nearest = 0, stochastic = 1, truncate = 2 };

struct SmaqSettings {
  int main_bits, outlier_bits;               // of a code
  double main_threshold, outlier_threshold;  // standard deviations
  bool extends;                              // the outlier threshold is the bucket's own
  Statistics statistics;
  double mean, std;      // where they are given
  uint32_t num_samples;  // where they are sampled
  uint64_t block_size;   // elements of a bucket; 0: all of the array
  Rounding rounding;
  bool preserve_zeros, all_positive;
  uint64_t min_size;  // arrays with fewer elements are stored as they are

  static constexpr auto parameters() {
    using S = SmaqSettings;
    return std::tuple{integer("main_bits", &S::main_bits, 3, 8),
                      integer("outlier_bits", &S::outlier_bits, 3, 12),
                      real("main_threshold", &S::main_threshold, min_threshold, max_threshold),
                      real("outlier_threshold", &S::outlier_threshold, min_threshold, max_threshold),
                      flag("extends", &S::extends),
                      integer("statistics", &S::statistics, 0, 3),
                      real("mean", &S::mean, -max_real, max_real),
                      real("std", &S::std, 0, max_real),
                      integer("num_samples", &S::num_samples, 2, 4096),
                      integer_or_zero("block_size", &S::block_size, 32, max_bucket_size),
                      integer("rounding", &S::rounding, 0, 2),
                      flag("preserve_zeros", &S::preserve_zeros),
                      flag("all_positive", &S::all_positive),
                      integer("min_size", &S::min_size, 0, 0x1p40)};
  }
  bool is_consistent() const { return main_bits <= outlier_bits && main_threshold < outlier_threshold && std > 0; }

  ARRCOMP_SHARED constexpr uint32_t extra_bits() const { return static_cast<uint32_t>(outlier_bits - main_bits); }
  // Parameters that are stored for a bucket: mean and standard deviation, and the outlier threshold where it is its
  // own.
  ARRCOMP_SHARED constexpr uint32_t parameter_count() const { return extends ? 3 : 2; }

  ARRCOMP_SHARED constexpr Moments moments() const {
    return statistics == Statistics::given ? no_moments : mean_and_deviation;
  }

  BucketLayout layout(const Element& element) const {
    return {.bucket_size = block_size,
            .bucket_bytes = parameter_count() * scalar_bytes(element),
            .array_bytes = 0,
            .code_bits = static_cast<uint32_t>(main_bits),
            .skip_incomplete = false,
            .min_count = min_size,
            .has_extras = true,
            .extra_bits = extra_bits()};
  }

 private:
  // So that steps between codes neither vanish nor overflow in float32.
  static constexpr double min_threshold = 0x1p-10, max_threshold = 0x1p10;
};

}  // namespace arrcomp
