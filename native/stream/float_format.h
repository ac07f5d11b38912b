// The parameters of FloatFormat.
#pragma once
#include "stream/buckets.h"
#include "stream/float_spec.h"
#include "stream/parameters.h"

namespace arrcomp {

// What the elements of a bucket are divided by.
enum class ScaleKind : int {
  none = 0,      // they are not
  number = 1,    // a number of the arithmetic type
  floor = 2,     // a power of two in a byte (E8M0): the one for the largest magnitude's own power of two
  ceil = 3,      // the least one with which nothing is too large
  two_level = 4  // an e4m3 number in a byte, times a number for the array
};

struct FloatFormatSettings {
  FloatSpec spec;
  ScaleKind scale;
  uint64_t bucket_size;  // 0: the array is the bucket
  bool stochastic;

  static constexpr auto parameters() {
    using S = FloatFormatSettings;
    return std::tuple{integer(
                          "exponent_bits", [](S& s) -> auto& { return s.spec.exponent_bits; }, 1, 8),
                      integer(
                          "mantissa_bits", [](S& s) -> auto& { return s.spec.mantissa_bits; }, 1, 23),
                      integer(
                          "bias", [](S& s) -> auto& { return s.spec.bias; }, 1, 127),
                      integer(
                          "specials", [](S& s) -> auto& { return s.spec.specials; }, 0, 4),
                      flag("saturates", [](S& s) -> auto& { return s.spec.saturates; }),
                      integer("scale", &S::scale, 0, 4),
                      integer("bucket_size", &S::bucket_size, 0, max_bucket_size),
                      flag("stochastic", &S::stochastic)};
  }
  bool is_consistent() const { return has_valid_spec() && has_valid_buckets(); }

  ARRCOMP_SHARED constexpr bool is_scaled() const { return scale != ScaleKind::none; }
  ARRCOMP_SHARED static constexpr Moments moments() { return largest_magnitude; }

  BucketLayout layout(const Element& element) const {
    const uint32_t of_bucket = scale == ScaleKind::number ? scalar_bytes(element) : 1;
    const uint32_t of_array = scale == ScaleKind::two_level ? 8 : 0;
    return {bucket_size, is_scaled() ? of_bucket : 0, of_array, spec.code_bits(), false};
  }

  // Numbers with more exponent bits or mantissa bits than these stand for nothing that they hold.
  bool takes(const Element& element) const {
    return element.is_quantizable && (spec.code_bits() <= 16 || element.width >= 32);
  }

 private:
  // What the arithmetic types hold: exponents from -126 to 127.
  constexpr bool has_valid_spec() const {
    const auto& [x, y, bias, specials, saturates] = spec;
    if (specials == Specials::integer) return x == 1 && y == 6 && bias == 1;
    if (x == 8) return specials == Specials::ieee && bias == 127 && (y <= 7 || y == 23);
    return x >= 2 && x + y <= 15 && bias < 127;
  }

  constexpr bool has_valid_buckets() const {
    const bool has_nan = spec.nan_code() > 0;
    if (scale == ScaleKind::none) return has_nan && bucket_size == 0;
    if (!spec.saturates) return false;
    if (scale == ScaleKind::number) return bucket_size == 0 || bucket_size >= 16;
    return bucket_size == (scale == ScaleKind::two_level ? 16u : 32u);
  }
};

}  // namespace arrcomp
