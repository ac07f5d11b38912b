// Floats that are multiples of one number, as what was measured in steps, or written as decimals, is (FORMAT.md, section
// 9.6). Which number that may be is told by samples. Shared by host and device.
#pragma once
#include "inline.h"
#include "stream/element.h"
#include "stream/powers.h"

namespace arrcomp {

// Elements are k * multiplier / divisor, k an integer, each operation rounded.
struct Multiples {
  double multiplier, divisor;  // 0: nothing of the kind

  ARRCOMP_SHARED bool is_given() const { return divisor != 0; }
};
static_assert(sizeof(Multiples) == 16);

// Exponents of both numbers, at most and at least: their quotient is neither subnormal nor infinite.
ARRCOMP_SHARED constexpr int most_exponent_of_multiples(const Element& element) {
  return element.width == 64 ? 500 : 60;
}

// A number as the arithmetic of such elements has it.
ARRCOMP_SHARED double in_arithmetic_of(const Element& element, double x) {
  return element.width == 64 ? x : static_cast<double>(static_cast<float>(x));
}

// Whether they may be those of such elements.
ARRCOMP_SHARED bool are_multiples(const Element& element, const Multiples& multiples) {
  const double most = power_of_two(most_exponent_of_multiples(element));
  const auto serves = [&](double x) { return 1 / most <= x && x <= most && in_arithmetic_of(element, x) == x; };
  return serves(multiples.multiplier) && serves(multiples.divisor);
}

// Multiples that are looked for, besides those of powers of two: decimals, and parts of the largest integer of 8 or 16
// bits, which were divided or multiplied.
constexpr int decimal_places = 9, multiplied_places = 6, kinds_of_multiples = decimal_places + multiplied_places + 4;
ARRCOMP_SHARED Multiples kind_of_multiples(const Element& element, int kind) {
  const auto power = [](int places) {
    double power = 1;
    for (; places > 0; --places) power *= 10;
    return power;
  };
  const auto parts = [&](double divisor, bool is_multiplied) {
    return is_multiplied ? Multiples{in_arithmetic_of(element, 1 / divisor), 1} : Multiples{1, divisor};
  };
  if (kind < decimal_places) return parts(power(kind + 1), false);
  kind -= decimal_places;
  if (kind < multiplied_places) return parts(power(kind + 1), true);
  kind -= multiplied_places;
  return parts(kind < 2 ? 255 : 65535, kind % 2 == 1);
}

// What was sampled of an array's numbers; all is 0 before. Those that are 0 tell nothing.
struct SampledMultiples {
  // Places of the bits of what counts as a number's mantissa, from a point that all have; `lowest` counts down.
  static constexpr uint32_t place_of_lowest = 4096;
  uint64_t values, highest_places, lowest;
  uint64_t exact[kinds_of_multiples], lengths[kinds_of_multiples];  // of the integers, of those that are exact
};

// The multiples that save most, or none. `least_place` is where a lowest bit of the value 1 stands.
ARRCOMP_SHARED Multiples chosen_multiples(const Element& element, const SampledMultiples& sampled, int place_of_one) {
  constexpr uint64_t least_values = 128;
  const uint64_t values = sampled.values;
  if (values < least_values) return {};
  // Without the half of a bit that they must save.
  const uint64_t as_floats = (2 * element.mantissa_bits + 3u) * values / 2, inexact = element.width + 16u;
  const uint64_t lowest = SampledMultiples::place_of_lowest - sampled.lowest;
  const int exponent = static_cast<int>(lowest) - place_of_one, most = most_exponent_of_multiples(element);
  uint64_t least = as_floats;
  Multiples best{};
  const uint64_t binary = sampled.highest_places - lowest * values + 2 * values;
  if (-most <= exponent && exponent <= most && binary < least) {
    least = binary;
    best = {power_of_two(exponent), 1};
  }
  for (int kind = 0; kind < kinds_of_multiples; ++kind) {
    const uint64_t bits = sampled.lengths[kind] + (values - sampled.exact[kind]) * inexact;
    if (bits >= least) continue;
    least = bits;
    best = kind_of_multiples(element, kind);
  }
  return best;
}

}  // namespace arrcomp
