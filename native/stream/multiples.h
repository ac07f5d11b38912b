// Floats that are multiples of one number, as what was measured in steps, or written as decimals, is (FORMAT.md, section
// 9.6). Which number that may be is told by samples: some are tried, and another is looked for. Shared by host and device.
#pragma once
#include <cstring>

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
  static constexpr int samples = 64;
  // Multiples of a step that is found in the numbers: of five numbers that are next to each other, and by an integer.
  static constexpr int near_steps = 5, kinds = kinds_of_multiples + near_steps + 1;

  // Places of the bits of what counts as a number's mantissa, from a point that all have; `lowest` counts down.
  static constexpr uint32_t place_of_lowest = 4096;
  uint64_t values, highest_places, lowest;
  uint64_t exact[kinds], lengths[kinds];  // of the integers, of those that are exact

  double numbers[samples];  // one of each, or 0
  Multiples found[near_steps + 1];

  ARRCOMP_SHARED Multiples kind(const Element& element, int i) const {
    return i < kinds_of_multiples ? kind_of_multiples(element, i) : found[i - kinds_of_multiples];
  }
};

// The step of which numbers are multiples, as near as they tell.
class StepSearch {
 public:
  // Of the numbers that are not 0. Each is off by `error` of its size at most.
  ARRCOMP_SHARED StepSearch(const double (&numbers)[SampledMultiples::samples], double error)
      : count_(0), error_(error) {
    for (double number : numbers)
      if (number != 0) insert(number < 0 ? -number : number);
  }

  // 0 if there is none that is told for sure.
  ARRCOMP_SHARED double step() const {
    constexpr int least_numbers = 8;
    if (count_ < least_numbers) return 0;
    Estimate step = estimate_of(sizes_[0]);
    for (int i = 1; i < count_; ++i) {
      step = common_divisor(estimate_of(sizes_[i]), step);
      const double times = nearest(sizes_[i] / step.value);
      if (!(step.error * times * 4 < step.value)) return 0;
      step = {sizes_[i] / times, sizes_[i] / times * error_};
    }
    return step.value;
  }

  ARRCOMP_SHARED static double nearest(double x) { return x + 0x1.8p52 - 0x1.8p52; }

 private:
  struct Estimate {
    double value, error;
  };
  ARRCOMP_SHARED Estimate estimate_of(double size) const { return {size, size * error_}; }

  ARRCOMP_SHARED void insert(double size) {
    int i = count_++;
    for (; i > 0 && sizes_[i - 1] > size; --i) sizes_[i] = sizes_[i - 1];
    sizes_[i] = size;
  }

  // Euclid's algorithm, which ends where what is left may be nothing but error.
  ARRCOMP_SHARED static Estimate common_divisor(Estimate a, Estimate b) {
    for (int round = 0; round < 64; ++round) {
      const double times = nearest(a.value / b.value), rest = a.value - times * b.value;
      const Estimate left{rest < 0 ? -rest : rest, a.error + times * b.error};
      if (!(left.value > 2 * left.error)) break;
      a = b;
      b = left;
    }
    return b;
  }

  int count_;
  double error_, sizes_[SampledMultiples::samples];  // in their order
};

// A number of the arithmetic of such elements, so many places from this one.
ARRCOMP_SHARED double neighbour_of(const Element& element, double x, int places) {
  const auto moved = [&]<class Number, class Bits>(Number number, Bits bits) {
    memcpy(&bits, &number, sizeof bits);
    bits += static_cast<Bits>(places);
    memcpy(&number, &bits, sizeof bits);
    return static_cast<double>(number);
  };
  return element.width == 64 ? moved(x, uint64_t{0}) : moved(static_cast<float>(x), uint32_t{0});
}

// Looks for a step in the numbers, and names its multiples.
ARRCOMP_SHARED void find_multiples(const Element& element, SampledMultiples& sampled) {
  for (Multiples& multiples : sampled.found) multiples = {0, 0};
  if (element.width < 32) return;  // so few bits tell no step
  const double step = StepSearch(sampled.numbers, element.width == 64 ? 0x1p-52 : 0x1p-23).step();
  const double most = power_of_two(most_exponent_of_multiples(element));
  if (!(2 / most < step && step < most / 2)) return;
  for (int i = 0; i < SampledMultiples::near_steps; ++i)
    sampled.found[i] = {neighbour_of(element, step, i - SampledMultiples::near_steps / 2), 1};
  const double parts = StepSearch::nearest(1 / step);
  if (parts >= 2 && in_arithmetic_of(element, parts) == parts) sampled.found[SampledMultiples::near_steps] = {1, parts};
}

// The multiples that save most, or none. `place_of_one` is where the lowest bit of a mantissa stands that is worth 1.
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
  for (int i = 0; i < SampledMultiples::kinds; ++i) {
    const uint64_t bits = sampled.lengths[i] + (values - sampled.exact[i]) * inexact;
    if (bits >= least) continue;
    least = bits;
    best = sampled.kind(element, i);
  }
  return best;
}

}  // namespace arrcomp
