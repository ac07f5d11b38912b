// Mean and standard deviation of some elements of a bucket, drawn at random.
#pragma once
#include "codecs/bucketed/bucket_coder.h"

namespace arrcomp::ARRCOMP_ISA {

struct MeanAndDeviation {
  double mean, deviation;
};

// The upper half of a * b.
ARRCOMP_INLINE uint64_t upper_product(uint64_t a, uint64_t b) {
  constexpr uint64_t low = 0xffffffffu;
  const uint64_t middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
  const uint64_t other = (a & low) * (b >> 32) + (middle & low);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

// Where in a bucket the samples are: words that no rounding takes, as its counters have 0 in their third and fourth word
// and less than 2^31 in the second. The same place may be drawn twice.
class SamplePositions {
 public:
  ARRCOMP_METHOD explicit SamplePositions(const BucketValues& values) : values_(values), words_{} {}

  ARRCOMP_METHOD uint64_t position(uint32_t sample) {
    if (sample % lanes_per_row == 0) {
      const U32 counter = splat<U32>(sample) + lane_numbers();
      words_ = philox(values_.seed, counter, splat<U32>(1u << 31), values_.first);
    }
    const Mask own = mask(1u << sample % lanes_per_row);
    const uint64_t low = or_all(select(own, words_.word[0], splat<U32>(0)));
    const uint64_t high = or_all(select(own, words_.word[1], splat<U32>(0)));
    return upper_product(high << 32 | low, values_.count);
  }

 private:
  const BucketValues& values_;
  RandomWords words_;
};

// Of `samples` elements, at least two, about `exact`, the mean of all, so that little cancels: in float64, sample by
// sample; the deviation is that of the population, as it is estimated from samples. `exact` where all of these are the
// same.
template <class Real>
ARRCOMP_PART MeanAndDeviation mean_and_deviation_of_samples(const BucketValues& values, uint32_t samples,
                                                            const MeanAndDeviation& exact) {
  const double scale = exact.deviation > 0 ? exact.deviation : 1;
  SamplePositions positions(values);
  double sum = 0, squares = 0, first = 0;
  bool differ = false;
  for (uint32_t i = 0; i < samples; ++i) {
    const double x = largest_of(load_real<Real>(values.element, values.array, values.first + positions.position(i), 1));
    const double score = (x / 2 - exact.mean / 2) / scale;
    if (i == 0) first = x;
    differ = differ || x != first;
    sum = sum + score;
    squares = squares + score * score;
  }
  const double variance = (squares - sum * (sum / samples)) / (samples - 1);
  if (!differ || !(variance > 0)) return exact;
  return {exact.mean + sum / samples * scale * 2, sqrt(variance) * scale * 2};
}

}  // namespace arrcomp::ARRCOMP_ISA
