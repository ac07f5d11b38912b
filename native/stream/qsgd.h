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

  static bool read(std::span<const double> p, QsgdSettings& s) {
    if (p.size() != 6 || !is_integer(p[0], 1, 8) || !is_integer(p[1], 16, 0x1p40) || !is_integer(p[2], 0, 2) ||
        !is_flag(p[3]) || !is_flag(p[4]) || !is_flag(p[5]))
      return false;
    s = {static_cast<int>(p[0]),
         static_cast<uint64_t>(p[1]),
         static_cast<Norm>(static_cast<int>(p[2])),
         p[3] != 0,
         p[4] != 0,
         p[5] != 0};
    return true;
  }

  // Numbers that are stored for a bucket: unit and least value, or unit alone.
  ARRCOMP_SHARED constexpr uint32_t numbers() const { return norm == Norm::minmax ? 2 : 1; }
  ARRCOMP_SHARED constexpr uint32_t largest_code() const {
    return norm == Norm::minmax || bits == 1 ? (1u << bits) - 1 : (1u << bits) - 2;
  }

  ARRCOMP_SHARED constexpr Moments moments() const { return norm == Norm::l2 ? sum_of_squares : no_moments; }

  // Entropy-coded rows cannot be read at random.
  bool has_sums() const { return !entropy; }

  BucketLayout layout(const Element& element) const {
    const uint32_t code_bits = entropy ? 8 : static_cast<uint32_t>(bits);
    return {bucket_size, numbers() * number_bytes(element), 0, code_bits, skip_incomplete, entropy};
  }
};

}  // namespace arrcomp
