// Floats that are multiples of one number, as what was measured in steps, or written as decimals, is, or nearly so from an
// offset on, as packed data is when it is unpacked (FORMAT.md, section 9.6). Shared by host and device.
#pragma once

#include "inline.h"
#include "stream/element.h"
#include "stream/powers.h"

namespace arrcomp {

// Elements are k * multiplier / divisor + offset, k an integer, each operation rounded, but for their last bits: these are
// corrected by a number of so many bits.
struct Multiples {
  double multiplier, divisor;  // 0: nothing of the kind
  double offset;
  uint64_t correction_bits;

  static constexpr uint64_t most_correction_bits = 8;

  ARRCOMP_SHARED bool is_given() const { return divisor != 0; }
};
static_assert(sizeof(Multiples) == 32);

// Exponents of both numbers, at most and at least: their quotient is neither subnormal nor infinite.
ARRCOMP_SHARED constexpr int most_exponent_of_multiples(const Element& element) {
  return element.width == 64 ? 500 : 60;
}

// A number as the arithmetic of such elements has it.
ARRCOMP_SHARED double in_arithmetic_of(const Element& element, double x) {
  return element.width == 64 ? x : static_cast<double>(static_cast<float>(x));
}

// Whether they may be those of such elements, which are floats.
ARRCOMP_SHARED bool are_multiples(const Element& element, const Multiples& multiples) {
  const double most = power_of_two(most_exponent_of_multiples(element));
  const auto is_number = [&](double x, double least) {
    return least <= x && x <= most && in_arithmetic_of(element, x) == x;
  };
  return element.is_float() && is_number(multiples.multiplier, 1 / most) && is_number(multiples.divisor, 1 / most) &&
         is_number(multiples.offset, -most) && multiples.correction_bits <= Multiples::most_correction_bits;
}

}  // namespace arrcomp
