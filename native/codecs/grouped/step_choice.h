// The step that the differences of a chunk's values are coded as their distance from, chosen on a sample. FORMAT.md,
// sections 3.2 and 3.4.
#pragma once
#include <type_traits>

#include "codecs/grouped/sampled_values.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

// What differences are coded as their distance from.
template <class Scalar>
struct StepChoice {
  Scalar step;  // signed
  bool plain;   // the distances are not negative
};

// The differences of a sample, as signed numbers. Its first row is left out, as nothing stands before it.
template <class Word>
struct SampledDifferences {
  using Scalar = typename Word::scalar;
  static constexpr Scalar sign = Scalar{1} << (sizeof(Scalar) * 8 - 1);

  SampledValues<Word> sample;
  int bits;

  ARRCOMP_METHOD Word at(int s) const {
    const Word x = sample.at(s);
    return sign_extend(x - sample.before(s, x), bits);
  }

  // One that is not far from most: the middle one of three.
  ARRCOMP_PART Word typical() const {
    const auto one = [&](int s, int lane) ARRCOMP_LAMBDA {
      const Scalar* const value = sample.rows + s * sample.distance + lane;
      return sign_extend(splat<Word>(value[0] - value[-1]), bits) + splat<Word>(sign);
    };
    const Word first = one(1, 8), second = one(sample.count / 2, 16), third = one(sample.count - 1, 24);
    return max(min(first, second), min(max(first, second), third)) - splat<Word>(sign);
  }

  // About the mean of those that are near `typical`, from which all are so many bits in the mean: single ones, however far
  // away, move it little.
  ARRCOMP_PART Word mean_near(Word typical, int length) const {
    const int shift = length > 18 ? length - 18 : 0;
    const Scalar reach = Scalar{2} << (length - shift);
    const Word least = splat<Word>(sign - reach), most = splat<Word>(sign + reach);
    U32 sums = splat<U32>(0);
    ARRCOMP_ROLLED for (int s = 1; s < sample.count; ++s) {
      const Word distance = sar(at(s) - typical, shift) + splat<Word>(sign);
      sums = sums + lowest(min(max(distance, least), most) - least);
    }
    const auto samples = static_cast<uint32_t>((sample.count - 1) * lanes_per_row);
    return typical + (splat<Word>((sum(sums) + samples / 2) / samples - reach) << shift);
  }

  // Whether the values go at least half as far as such differences would take them, from the sample's first value to its
  // last, which is so many elements behind. Those that go to and fro may have been met on their way up alone.
  ARRCOMP_METHOD bool go_on(Scalar difference, int elements) const {
    const auto step = static_cast<Signed>(difference), way = whole();
    if (is_too_long(step, elements)) return false;
    return step < 0 ? way <= step * (elements / 2) : way >= step * (elements / 2);
  }

  // The same of values that count up, or down, and begin again: whether most of the sample's rows are as far from the next as
  // such differences take them, or all values go as far as the sample's differences say.
  ARRCOMP_PART bool begin_again(Scalar difference, int elements) const {
    const auto step = static_cast<Signed>(difference);
    if (is_too_long(step, elements)) return false;
    const int last = sample.count - 1;
    const Signed between = step * (elements / last);
    double sampled = 0;
    int as_far = 0;
    for (int s = 1; s <= last; ++s) {
      const Scalar* const row = sample.rows + s * sample.distance;
      const Signed way = way_from(row - sample.distance, row);
      as_far += step < 0 ? way <= between / 2 : way >= between / 2;
      sampled += static_cast<double>(way_from(row - 1, row + lanes_per_row - 1));
    }
    const double off = sampled / (last * lanes_per_row) - static_cast<double>(whole()) / elements;
    return 2 * as_far >= last || (off < 0 ? -2 * off : 2 * off) <= static_cast<double>(step < 0 ? -step : step);
  }

 private:
  using Signed = std::make_signed_t<Scalar>;

  ARRCOMP_METHOD Signed way_from(const Scalar* from, const Scalar* to) const {
    return static_cast<Signed>(or_all(sign_extend(splat<Word>(*to - *from), bits)));
  }
  // From the sample's first value to its last.
  ARRCOMP_METHOD Signed whole() const {
    return way_from(sample.rows, sample.rows + (sample.count - 1) * sample.distance + lanes_per_row - 1);
  }
  ARRCOMP_METHOD bool is_too_long(Signed step, int elements) const {
    const Signed most = static_cast<Signed>(ones_of<Scalar>(bits - 1)) / elements;
    return step > most || step < -most;
  }
};

// The step of values that are nearly as far from each other, as time stamps are; or 0 or 1 with no sign, where they
// ascend. Nothing where this does not save an eighth of a bit a value. The sample's rows stand `stride` rows apart.
template <class Word>
ARRCOMP_CALLED StepChoice<typename Word::scalar> choose_step(SampledValues<Word> sample, int bits, int stride) {
  using Scalar = typename Word::scalar;
  if (sample.count < 2) return {0, false};
  const SampledDifferences<Word> differences{sample, bits};
  const auto cost = [&](Word d, bool plain) ARRCOMP_LAMBDA { return bit_length(fold(d, plain, bits)); };
  const Word typical = differences.typical(), sign = splat<Word>(differences.sign);
  Word least = splat<Word>(~Scalar{0});
  U32 near = splat<U32>(0), nearer = near, direct = near, ascending = near;
  ARRCOMP_ROLLED for (int s = 1; s < sample.count; ++s) {
    const Word d = differences.at(s);
    least = min(least, d + sign);
    near = near + cost(d - typical, false);
  }
  const uint32_t of_typical = sum(near), samples = static_cast<uint32_t>((sample.count - 1) * lanes_per_row);
  const Word mean = differences.mean_near(typical, static_cast<int>(of_typical / samples));
  const Scalar from = min_all(least) - differences.sign, least_step = from == 1 ? Scalar{1} : Scalar{0};
  ARRCOMP_ROLLED for (int s = 1; s < sample.count; ++s) {
    const Word d = differences.at(s);
    direct = direct + cost(d, false);
    nearer = nearer + cost(d - mean, false);
    ascending = ascending + cost(d - splat<Word>(least_step), true);
  }
  const uint32_t worth = static_cast<uint32_t>(4 * sample.count), of_mean = sum(nearer);
  StepChoice<Scalar> best{0, false};
  uint32_t limit = sum(direct);
  const bool is_typical = of_typical + worth / 2 < of_mean;  // as where most are alike
  const Scalar center = or_all(is_typical ? typical : mean);
  const uint32_t of_center = is_typical ? of_typical : of_mean;
  const int elements = ((sample.count - 1) * stride + 1) * lanes_per_row - 1;
  const bool are_alike = of_center <= limit / 4;
  if (!differences.go_on(center, elements) && !(are_alike && differences.begin_again(center, elements))) return best;
  if (of_center + worth < limit) {
    best.step = center;
    limit = of_center;
  }
  const bool ascends = (from & differences.sign) == 0;
  return ascends && sum(ascending) + worth < limit ? StepChoice<Scalar>{least_step, true} : best;
}

}  // namespace arrcomp::ARRCOMP_ISA
