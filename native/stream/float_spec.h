// Small number formats: sign, exponent and mantissa, or an integer. FORMAT.md, section 5.3.
#pragma once
#include <cstdint>
#include <cstring>

#include "inline.h"

namespace arrcomp {

// What the codes of a format mean that would not be numbers, or which its numbers are.
enum class Specials : int {
  ieee = 0,           // with the largest exponent, infinity and NaN
  one_nan = 1,        // all bits set but the sign is NaN ("fn")
  unsigned_zero = 2,  // what would be -0 is NaN ("fnuz")
  none = 3,           // every code is a number
  integer = 4,        // every code is a number, in two's complement
};

// A magnitude m, the bits of a code below its sign, stands for 2^(1 - bias - mantissa_bits) m up to 2^mantissa_bits
// (subnormal numbers); each further 2^mantissa_bits doubles the distance. With one exponent bit it never doubles: such
// are integers.
struct FloatSpec {
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
  bool saturates;  // finite numbers that are too large become the largest finite one, not infinite or NaN

  ARRCOMP_SHARED constexpr int magnitude_bits() const { return exponent_bits + mantissa_bits; }
  ARRCOMP_SHARED constexpr uint32_t code_bits() const { return static_cast<uint32_t>(1 + magnitude_bits()); }
  ARRCOMP_SHARED constexpr uint32_t sign_code() const { return uint32_t{1} << magnitude_bits(); }

  // Magnitudes from here on are infinity or NaN.
  ARRCOMP_SHARED constexpr uint32_t first_special() const {
    if (specials == Specials::ieee) return sign_code() - (uint32_t{1} << mantissa_bits);
    return specials == Specials::one_nan ? sign_code() - 1 : sign_code();
  }
  ARRCOMP_SHARED constexpr bool has_infinity() const { return specials == Specials::ieee; }

  // The code that NaN becomes: 0 where the format has none.
  ARRCOMP_SHARED constexpr uint32_t nan_code() const {
    if (specials == Specials::ieee) return first_special() | uint32_t{1} << (mantissa_bits - 1);
    if (specials == Specials::one_nan) return first_special();
    return specials == Specials::unsigned_zero ? sign_code() : 0;
  }

  // The largest finite number: its power of two, and the factor of that.
  ARRCOMP_SHARED constexpr int largest_exponent() const {
    return static_cast<int>((first_special() - 1) >> mantissa_bits) - bias;
  }
  ARRCOMP_SHARED constexpr double largest_significand() const {
    const double steps = static_cast<double>(uint32_t{1} << mantissa_bits);
    const auto mantissa = static_cast<double>((first_special() - 1) & ((uint32_t{1} << mantissa_bits) - 1));
    return 1 + mantissa / steps;
  }
  ARRCOMP_SHARED double largest() const {
    double power;
    const uint64_t bits = static_cast<uint64_t>(1023 + largest_exponent()) << 52;
    memcpy(&power, &bits, sizeof power);
    return largest_significand() * power;
  }
};

}  // namespace arrcomp
