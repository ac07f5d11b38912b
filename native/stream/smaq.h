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

  static constexpr size_t parameters = 14;

  static bool read(std::span<const double> p, SmaqSettings& s) {
    if (p.size() != parameters || !are_codes(p.first<5>()) || !are_statistics(p.subspan<5, 4>()) ||
        !(p[9] == 0 || is_integer(p[9], 32, 0x1p40)) || !is_integer(p[10], 0, 2) || !is_flag(p[11]) ||
        !is_flag(p[12]) || !is_integer(p[13], 0, 0x1p40))
      return false;
    s = {static_cast<int>(p[0]),
         static_cast<int>(p[1]),
         p[2],
         p[3],
         p[4] != 0,
         static_cast<Statistics>(static_cast<int>(p[5])),
         p[6],
         p[7],
         static_cast<uint32_t>(p[8]),
         static_cast<uint64_t>(p[9]),
         static_cast<Rounding>(static_cast<int>(p[10])),
         p[11] != 0,
         p[12] != 0,
         static_cast<uint64_t>(p[13])};
    return true;
  }

  ARRCOMP_SHARED constexpr uint32_t extra_bits() const { return static_cast<uint32_t>(outlier_bits - main_bits); }
  // Numbers that are stored for a bucket: mean and standard deviation, and the outlier threshold where it is its own.
  ARRCOMP_SHARED constexpr uint32_t numbers() const { return extends ? 3 : 2; }

  ARRCOMP_SHARED constexpr Moments moments() const {
    return statistics == Statistics::given ? no_moments : mean_and_deviation;
  }

  BucketLayout layout(const Element& element) const {
    return {.bucket_size = block_size,
            .bucket_bytes = numbers() * number_bytes(element),
            .array_bytes = 0,
            .code_bits = static_cast<uint32_t>(main_bits),
            .skip_incomplete = false,
            .min_count = min_size,
            .has_extras = true,
            .extra_bits = extra_bits()};
  }

 private:
  static bool are_codes(std::span<const double, 5> p) {
    return is_integer(p[0], 3, 8) && is_integer(p[1], p[0], 12) && p[2] >= least_threshold && p[2] < p[3] &&
           p[3] <= most_threshold && is_flag(p[4]);
  }
  static bool are_statistics(std::span<const double, 4> p) {
    constexpr double most = 0x1.fffffffffffffp1023;
    return is_integer(p[0], 0, 3) && p[1] >= -most && p[1] <= most && p[2] > 0 && p[2] <= most &&
           is_integer(p[3], 2, 4096);
  }
  // So that steps between codes neither vanish nor overflow in float32.
  static constexpr double least_threshold = 0x1p-10, most_threshold = 0x1p10;
};

}  // namespace arrcomp
