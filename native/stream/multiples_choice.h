// Which number an array's elements may be multiples of, as samples tell: some are tried, and another is looked for. Shared by
// host and device.
#pragma once
#include <cstring>

#include "inline.h"
#include "stream/element.h"
#include "stream/multiples.h"
#include "stream/powers.h"

namespace arrcomp {

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
    return is_multiplied ? Multiples{in_arithmetic_of(element, 1 / divisor), 1, 0, 0} : Multiples{1, divisor, 0, 0};
  };
  if (kind < decimal_places) return parts(power(kind + 1), false);
  kind -= decimal_places;
  if (kind < multiplied_places) return parts(power(kind + 1), true);
  kind -= multiplied_places;
  return parts(kind < 2 ? 255 : 65535, kind % 2 == 1);
}

// Those of a chunk that is not predicted, from 1 on (FORMAT.md, section 3.6): first of powers of two. As many as lanes.
constexpr int powers_of_chunk = 13, multiples_of_chunks = powers_of_chunk + kinds_of_multiples;
ARRCOMP_SHARED Multiples multiples_of_chunk(const Element& element, int kind) {
  if (kind <= powers_of_chunk) return {1, power_of_two(kind - 1), 0, 0};
  return kind_of_multiples(element, kind - 1 - powers_of_chunk);
}

// And those of integers of at least so many bits, of any number.
constexpr int integer_multiples = multiples_of_chunks + 1, least_width_of_integer_multiples = 16;

// As these stand in a chunk's side data: an element is number * unit + offset, modulo 2^W. `unit`: 0 where there are none.
template <class Scalar>
struct IntegerMultiples {
  Scalar unit, offset;
};

// What was sampled of an array's numbers; all is 0 before. Those that are 0 tell nothing.
struct SampledMultiples {
  static constexpr int samples = 64;
  // Multiples of a step that is found in the numbers: of five numbers that are next to each other, and by an integer; and
  // from an offset on.
  static constexpr int near_steps = 5, steps = near_steps + 1, offsets = 7, found_kinds = steps + offsets,
                       kinds = kinds_of_multiples + found_kinds;

  // Places of the bits of what counts as a number's mantissa, from a point that all have; `lowest` counts down.
  static constexpr uint32_t place_of_lowest = 4096;
  uint64_t values, highest_places, lowest;
  uint64_t exact[kinds], lengths[kinds - offsets];  // of the integers, of those that are exact

  double numbers[samples];      // one of each, or 0
  double differences[samples];  // the least between two that are next to each other, or 0
  Multiples found[found_kinds];
  uint64_t chosen;  // values that are such multiples as are chosen

  ARRCOMP_SHARED Multiples kind(const Element& element, int i) const {
    return i < kinds_of_multiples ? kind_of_multiples(element, i) : found[i - kinds_of_multiples];
  }
  ARRCOMP_SHARED static bool has_offset(int kind) { return kind >= kinds_of_multiples + steps; }
};

// The step of which numbers are multiples, as near as they tell: that of what is between them, as far as possible, since
// its multiples are small.
class StepSearch {
 public:
  // Of the numbers that are not 0. Each is off by `error` of its size at most.
  ARRCOMP_SHARED StepSearch(const SampledMultiples& sampled, double error) : error_(error) {
    for (double number : sampled.numbers) numbers_.insert(number);
    for (double difference : sampled.differences) differences_.insert(difference);
    find_between();
  }

  // 0 if there is none that is told for sure. It need not be one of the numbers themselves.
  ARRCOMP_SHARED double of_numbers() const {
    Estimate step = between_;
    return step.value != 0 && has_in_common(step, {size_of(middle()), error_ * size_of(middle())}) ? step.value : 0;
  }

  // The straight line through the numbers, but for those that are off it.
  struct Line {
    double step, near, beyond;  // the offset is the sum of the last two; no step: there is none
  };
  ARRCOMP_SHARED Line line(const Element& element) const {
    if (between_.value == 0) return {};
    // Products of this and a number of steps are exact.
    const auto rough = static_cast<double>(static_cast<float>(between_.value));
    double count = 0, k = 0, kk = 0, r = 0, kr = 0;  // sums: of steps, and of what is left
    for (int i = 0; i < numbers_.count; ++i) {
      const double distance = numbers_.sorted[i] - middle(), times = nearest(distance / between_.value);
      const bool is_off = size_of(distance - times * between_.value) > 4 * error_of_differences_;
      if (is_off || size_of(times) > most_steps) continue;
      const double rest = distance - times * rough;
      count += 1;
      k += times;
      kk += times * times;
      r += rest;
      kr += times * rest;
    }
    const double spread = count * kk - k * k;
    if (!(spread > 0)) return {};
    const double step = in_arithmetic_of(element, rough + (count * kr - k * r) / spread);
    return {step, middle(), (r - k * (step - rough)) / count};
  }

  ARRCOMP_SHARED static double nearest(double x) { return x + 0x1.8p52 - 0x1.8p52; }

 private:
  static constexpr double most_steps = 0x1p50;  // that can be told from each other

  struct Estimate {
    double value, error;
  };

  // Those that are not 0, in their order.
  struct Numbers {
    int count = 0;
    double sorted[SampledMultiples::samples];

    ARRCOMP_SHARED void insert(double number) {
      if (number == 0) return;
      int i = count++;
      for (; i > 0 && sorted[i - 1] > number; --i) sorted[i] = sorted[i - 1];
      sorted[i] = number;
    }
  };

  ARRCOMP_SHARED static double size_of(double x) { return x < 0 ? -x : x; }
  ARRCOMP_SHARED double middle() const { return numbers_.sorted[numbers_.count / 2]; }

  // Of a number that few exceed: some may be no multiples, such as what stands for missing values.
  ARRCOMP_SHARED double usual_size() const {
    const int few = numbers_.count / 8;
    const double low = size_of(numbers_.sorted[few]), high = size_of(numbers_.sorted[numbers_.count - 1 - few]);
    return low < high ? high : low;
  }

  // By differences, then by the numbers' distances from the one in the middle. Where numbers are in groups that are far from
  // each other, the step must first be made more exact within groups. Half of the numbers must have it.
  ARRCOMP_SHARED void find_between() {
    constexpr int least_numbers = 8;
    if (numbers_.count < least_numbers) return;
    error_of_differences_ = 2 * error_ * usual_size();
    Estimate step{0, 0};
    for (int i = 0; i < differences_.count; ++i)
      if (!has_in_common(step, {differences_.sorted[i], error_of_differences_})) break;  // it is too large yet
    const int half = numbers_.count / 2;
    int having = distances_having(step, half);
    if (having < numbers_.count - 1) {
      distances_having(step, half / 2);
      distances_having(step, half + half / 2);
      having = distances_having(step, half);
    }
    if (having >= half) between_ = step;
  }

  // How many numbers' distances from this one have the step, the smallest first.
  ARRCOMP_SHARED int distances_having(Estimate& step, int from) const {
    int having = 0;
    for (int below = from - 1, above = from + 1; below >= 0 || above < numbers_.count;) {
      const double down = below < 0 ? 0 : numbers_.sorted[from] - numbers_.sorted[below],
                   up = above == numbers_.count ? 0 : numbers_.sorted[above] - numbers_.sorted[from];
      const bool is_down = above == numbers_.count || (below >= 0 && down < up);
      if (has_in_common(step, {is_down ? down : up, error_of_differences_})) ++having;
      is_down ? --below : ++above;
    }
    return having;
  }

  // Whether the step, or the number itself if there is none yet, is one of this number too once it is divided or made more
  // exact. What may be nothing but error tells nothing. Errors are the largest that there may be, so that most are smaller.
  ARRCOMP_SHARED static bool has_in_common(Estimate& step, Estimate number) {
    constexpr double most_parts = 1024;
    if (!(number.value > 2 * number.error)) return true;
    if (step.value == 0) step = number;
    if (number.value > step.value * most_steps) return false;
    const double parts = nearest(step.value / common_divisor(number, step));
    const Estimate smaller{step.value / parts, step.error / parts};
    const double times = nearest(number.value / smaller.value);
    if (!(parts <= most_parts && smaller.error * times < smaller.value)) return false;
    step = number.error < smaller.error * times ? Estimate{number.value / times, number.error / times} : smaller;
    return true;
  }

  // Euclid's algorithm, which ends where what is left may be nothing but error.
  ARRCOMP_SHARED static double common_divisor(Estimate a, Estimate b) {
    for (int round = 0; round < 64; ++round) {
      const double times = nearest(a.value / b.value), rest = a.value - times * b.value;
      const Estimate left{rest < 0 ? -rest : rest, a.error + times * b.error};
      if (!(left.value > 2 * left.error)) break;
      a = b;
      b = left;
    }
    return b.value;
  }

  double error_, error_of_differences_ = 0;
  Numbers numbers_, differences_;
  Estimate between_{0, 0};
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

// Multiples of a step, if there is one.
ARRCOMP_SHARED void name_steps(const Element& element, double step, Multiples* named) {
  const double most = power_of_two(most_exponent_of_multiples(element));
  if (!(2 / most < step && step < most / 2)) return;
  for (int i = 0; i < SampledMultiples::near_steps; ++i)
    named[i] = {neighbour_of(element, step, i - SampledMultiples::near_steps / 2), 1, 0, 0};
  const double parts = StepSearch::nearest(1 / step);
  if (parts >= 2 && in_arithmetic_of(element, parts) == parts) named[SampledMultiples::near_steps] = {1, parts, 0, 0};
}

// Numbers on a line, if there is one, whose last bits corrections make right: these are 0 and 1 where the offset is the
// largest below the line, and differ by more where numbers cross powers of two.
ARRCOMP_SHARED void name_offsets(const Element& element, const StepSearch::Line& line, Multiples* named) {
  if (line.step == 0) return;
  const double nearest = in_arithmetic_of(element, line.near + line.beyond);
  const auto next = [&](double x, int places) { return neighbour_of(element, x, x < 0 ? -places : places); };
  const double below = line.near - nearest + line.beyond < 0 ? next(nearest, -1) : nearest;
  const struct {
    double offset;
    uint64_t correction_bits;
  } kinds[SampledMultiples::offsets] = {
      {nearest, 0}, {below, 1}, {next(below, -1), 1}, {next(below, 1), 1}, {below, 2}, {next(below, 1), 2}, {below, 3}};
  for (int i = 0; i < SampledMultiples::offsets; ++i) {
    const Multiples multiples{line.step, 1, kinds[i].offset, kinds[i].correction_bits};
    if (are_multiples(element, multiples)) named[i] = multiples;
  }
}

// Looks for a step in the numbers, and names its multiples.
ARRCOMP_SHARED void find_multiples(const Element& element, SampledMultiples& sampled) {
  for (Multiples& multiples : sampled.found) multiples = {};
  if (element.width < 32) return;  // so few bits tell no step
  const StepSearch search(sampled, element.width == 64 ? 0x1p-52 : 0x1p-23);
  name_steps(element, search.of_numbers(), sampled.found);
  name_offsets(element, search.line(element), sampled.found + SampledMultiples::steps);
}

// log2(x), too small by 0.09 at most.
ARRCOMP_SHARED double binary_logarithm(double x) {
  const int e = exponent_of(x);
  return e + (x / power_of_two(e) - 1);
}

// What multiples are chosen by: bits of all samples as integers, and of those that are none.
class SampledLengths {
 public:
  ARRCOMP_SHARED SampledLengths(const Element& element, const SampledMultiples& sampled, int place_of_one)
      : element_(element), sampled_(sampled), place_of_one_(place_of_one) {}

  ARRCOMP_SHARED int64_t as_floats() const { return (2 * element_.mantissa_bits + 3) * values() / 2; }

  // Without corrections; where all are multiples of a step.
  ARRCOMP_SHARED int64_t in_steps(double exponent) const {
    const double least_place = place_of_one_ + exponent;
    return static_cast<int64_t>(sampled_.highest_places + 2 * sampled_.values) -
           static_cast<int64_t>(least_place * static_cast<double>(values()));
  }

  // An offset makes numbers small, which saves nothing once they are predicted: their lengths are those from 0 on.
  ARRCOMP_SHARED int64_t of_kind(int kind) const {
    const int64_t missing = values() - static_cast<int64_t>(sampled_.exact[kind]);
    const int64_t of_exact = SampledMultiples::has_offset(kind) ? of_offset(sampled_.kind(element_, kind))
                                                                : static_cast<int64_t>(sampled_.lengths[kind]);
    return missing * (element_.width + 16) + of_exact;
  }

 private:
  ARRCOMP_SHARED int64_t values() const { return static_cast<int64_t>(sampled_.values); }

  ARRCOMP_SHARED int64_t of_offset(const Multiples& multiples) const {
    if (!multiples.is_given()) return as_floats();
    return in_steps(binary_logarithm(multiples.multiplier)) +
           static_cast<int64_t>(multiples.correction_bits) * values();
  }

  const Element& element_;
  const SampledMultiples& sampled_;
  int place_of_one_;
};

// The multiples that save most, or none. `place_of_one` is where the lowest bit of a mantissa stands that is worth 1.
ARRCOMP_SHARED Multiples chosen_multiples(const Element& element, SampledMultiples& sampled, int place_of_one) {
  constexpr uint64_t least_values = 128;
  if (sampled.values < least_values) return {};
  const SampledLengths lengths(element, sampled, place_of_one);
  int64_t least = lengths.as_floats();  // without the half of a bit that they must save
  Multiples best{};
  const int exponent = static_cast<int>(SampledMultiples::place_of_lowest - sampled.lowest) - place_of_one,
            most = most_exponent_of_multiples(element);
  const int64_t binary = lengths.in_steps(exponent);
  if (-most <= exponent && exponent <= most && binary < least) {
    least = binary;
    best = {power_of_two(exponent), 1, 0, 0};
    sampled.chosen = sampled.values;
  }
  for (int i = 0; i < SampledMultiples::kinds; ++i) {
    const int64_t bits = lengths.of_kind(i);
    if (bits >= least) continue;
    least = bits;
    best = sampled.kind(element, i);
    sampled.chosen = sampled.exact[i];
  }
  return best;
}

// Whole bits that a value takes less by multiples, corrections counted, than by the steps of a bound: rounded down.
ARRCOMP_SHARED int saved_bits(const Multiples& multiples, double bound) {
  const double steps = 2 * bound * power_of_two(static_cast<int>(multiples.correction_bits)) * multiples.divisor;
  return exponent_of(multiples.multiplier / steps);
}

// Whether what elements are multiples of tells them all in fewer bits than a bound does.
ARRCOMP_SHARED bool are_wider_steps(const Multiples& multiples, const SampledMultiples& sampled, double bound) {
  constexpr uint64_t most_others = 1024;  // one in so many
  if (!multiples.is_given() || (sampled.values - sampled.chosen) * most_others > sampled.values) return false;
  return saved_bits(multiples, bound) >= 0;
}

}  // namespace arrcomp
