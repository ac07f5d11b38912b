// Scales of blocks in one byte. FORMAT.md, section 5.3.
#pragma once
#include <cstdint>
#include <cstring>

#include "stream/float_spec.h"

namespace arrcomp {

ARRCOMP_SHARED double number_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// E8M0 of the OCP Microscaling Formats: powers of two from 2^-127 to 2^127, and NaN.
struct PowerScale {
  static constexpr uint32_t nan = 255, most = 254;
  static constexpr int bias = 127;

  ARRCOMP_SHARED static double value(uint32_t code) {
    return number_of_bits(code == nan ? uint64_t{0x7ff8} << 48 : uint64_t{code + (1023 - bias)} << 52);
  }
};

// OCP's e4m3 numbers that are not negative, and NaN.
struct SmallScale {
  static constexpr double largest = 448;

  ARRCOMP_SHARED static constexpr FloatSpec spec() { return {4, 3, 7, Specials::one_nan, true}; }

  // The sign, which writers leave 0, does not count.
  ARRCOMP_SHARED static double value(uint32_t code) {
    const uint32_t magnitude = code & 0x7f;
    if (magnitude == spec().first_special()) return number_of_bits(uint64_t{0x7ff8} << 48);
    // A float64 with the same bits on top is smaller by this power of two, subnormal or not.
    return number_of_bits(uint64_t{magnitude} << 49) * 0x1p1016;
  }
};

}  // namespace arrcomp
