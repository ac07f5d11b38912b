// Finds ways to predict an array, from samples of it, which are then tried. Costs are integers until the end, so that
// every machine comes to the same ways.
#pragma once
#include "codecs/predicted/coarsest.h"
#include "codecs/predicted/interpolation.h"

namespace arrcomp::ARRCOMP_ISA {

// Bits that codes take, about: the lengths of those that were sampled.
struct SampledCost {
  uint64_t bits = 0, values = 0;

  ARRCOMP_METHOD double mean() const {
    return values > 0 ? static_cast<double>(bits) / static_cast<double>(values) : 0;
  }

  template <class Word>
  ARRCOMP_METHOD void add(Word code, Mask counts) {
    const Word folded = code << 1 ^ sar(code, static_cast<int>(sizeof(typename Word::scalar)) * 8 - 1);
    bits += sum(select(counts, bit_length(folded), splat<U32>(0)));
    values += static_cast<uint64_t>(count(counts));
  }
};

template <class T>
class PredictionChoice {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD PredictionChoice(const void* source, const Axes& axes, const GroupSettings& settings, double bound)
      : source_(source), axes_(axes), gaps_(settings), book_(bound, full_scale), integers_(bound), bound_(bound) {
    const uint64_t rows = axes.count() >> 15;
    samples_ = static_cast<int>(rows < 12 ? 12 : rows > 64 ? 64 : rows);
    for (int a = 0; a < max_axes; ++a) strides_[a] = axes.inner(a);
  }

  // Writes the ways to predict that are worth a trial; returns how many. The order is that of preference among equals.
  ARRCOMP_PART int candidates(Predictor predictor, Prediction (&chosen)[max_candidates]) {
    sample_differences();
    int count = 0;
    if (predictor != Predictor::interpolation) set_lorenzo(chosen[count++]);
    if (predictor == Predictor::lorenzo) return count;
    set_interpolation(chosen[count++], false);
    if (bound_ == 0 || bits_a_value_ > scaled_below) return count;
    set_interpolation(chosen[count++], true);
    return count;
  }

 private:
  static constexpr int last_axis = max_axes - 1;
  static constexpr int subsets = 1 << max_axes;
  static constexpr double scaled_below = 2;  // bits a value: smaller bounds for coarse grids are worth a trial
  static constexpr int max_levels = 24;

  ARRCOMP_METHOD static double least(double a, double b) { return a < b ? a : b; }

  // A number below `size`, one for each sample and axis, which looks random.
  ARRCOMP_METHOD static uint64_t random_below(uint64_t size, int sample, int axis) {
    uint64_t x = static_cast<uint64_t>(sample * max_axes + axis + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    return size >> 32 == 0 ? (x >> 32) * size >> 32 : x % size;
  }

  // n elements from there on, `distance` from each to the next.
  ARRCOMP_METHOD Word load_row(uint64_t index, int distance, int n) const {
    if (distance == 1) return load_elements<T>(source_, index, n);
    return load_apart(element_pointer<T>(source_, index), distance, n);
  }

  // ---- differences

  // Costs of the differences along each set of axes.
  ARRCOMP_PART void sample_differences() {
    const uint64_t line = axes_.sizes[last_axis];
    const int n = line <= lanes_per_row ? static_cast<int>(line > 1 ? line - 1 : 1) : lanes_per_row;
    for (int s = 0; s < samples_; ++s) {
      uint64_t first = 0;
      for (int a = 0; a < max_axes; ++a) {
        const uint64_t size = axes_.sizes[a], least_index = size > 1 ? 1 : 0;
        const uint64_t room = size - least_index - (a == last_axis ? static_cast<uint64_t>(n - 1) : 0);
        first += (least_index + random_below(room > 0 ? room : 1, s, a)) * strides_[a];
      }
      Word q[subsets];
      Mask missing = mask(0);
      for (int set = 0; set < subsets; ++set) {
        if (!has_axes(set)) continue;
        Mask failed;
        const Word bits = load_elements<T>(source_, first - offset_of(set), n);
        q[set] = integers_.integer(bits, gaps_.in(bits, T::widen(bits)), failed);
        missing = missing | failed;
        if (set == 0) keep_largest(T::widen(bits), failed);
      }
      for (int set = 0; set < subsets; ++set)
        if (has_axes(set)) differences_[set].add(difference(q, set), first_lanes(n) & ~missing);
    }
  }

  ARRCOMP_METHOD void keep_largest(Real x, Mask failed) {
    const auto sizes = as_bits(select(failed, splat<Real>(0), abs(x)));
    const auto largest = max_all(sizes);
    if (largest > largest_bits_) largest_bits_ = static_cast<Scalar>(largest);
  }

  // Whether the array has all of these axes.
  ARRCOMP_METHOD bool has_axes(int set) const {
    for (int a = 0; a < max_axes; ++a)
      if ((set >> a & 1) != 0 && axes_.sizes[a] == 1) return false;
    return true;
  }
  ARRCOMP_METHOD uint64_t offset_of(int set) const {
    uint64_t offset = 0;
    for (int a = 0; a < max_axes; ++a) offset += (set >> a & 1) * strides_[a];
    return offset;
  }
  ARRCOMP_METHOD static Word difference(const Word (&q)[subsets], int set) {
    Word sum = q[0];
    for (int part = 1; part <= set; ++part) {
      if ((part & ~set) != 0) continue;
      sum = __builtin_popcount(static_cast<unsigned>(part)) % 2 == 1 ? sum - q[part] : sum + q[part];
    }
    return sum;
  }

  ARRCOMP_METHOD int least_of_differences() const {
    int best = 0;
    for (int set = 1; set < subsets; ++set)
      if (has_axes(set) && (best == 0 || differences_[set].mean() < differences_[best].mean())) best = set;
    return best;
  }

  // Steps leave room for what rounding adds to an error, next to the largest value: up to one unit in its last place, or
  // half of one where it comes from rounding to the element alone.
  ARRCOMP_PART uint16_t base_scale() const {
    if (bound_ == 0) return full_scale;
    using Number = typename Real::scalar;
    Number largest;
    const Scalar bits = largest_bits_;
    memcpy(&largest, &bits, sizeof largest);
    const double unit = static_cast<double>(largest) * T::epsilon / bound_;
    const double errors = T::width == 16 ? unit : 2 * unit;
    const double scale = (2 - errors) / static_cast<double>(T::steps_per_bound);
    if (T::width == 16 && scale >= 1) return full_scale;
    return static_cast<uint16_t>(full_scale * (scale > 0.25 ? least(scale, 1) : 0.25) - (T::width == 16 ? 0 : 1));
  }

  ARRCOMP_METHOD void set_lorenzo(Prediction& chosen) const {
    chosen.axes = axes_;
    chosen.differences = static_cast<uint8_t>(least_of_differences());
    chosen.coarse_scale = base_scale();
    chosen.steps = 0;
  }

  // ---- interpolation

  struct AxisCost {
    bool is_known = false, is_possible = false;
    Interpolation kind = Interpolation::cubic;
    double mean = 0;
  };

  // From the finest grid on, halves the axis whose values are predicted best. `scaled`: coarse grids have smaller bounds.
  ARRCOMP_PART void set_interpolation(Prediction& chosen, bool scaled) {
    set_lorenzo(chosen);
    const uint16_t base = base_scale();
    Axes grid = axes_;
    int level[max_axes] = {}, axes = 0, count = 0;
    for (uint64_t size : axes_.sizes) axes += size > 1;
    const auto scale_at = [&](int k) { return scaled ? scale_of(k / axes, base) : base; };
    double total = 0, left = 1;
    Step steps[max_steps];
    for (; count < max_steps; ++count) {
      int best = -1;
      for (int a = 0; a < max_axes; ++a)
        if (axis_cost(a, level[a]).is_possible &&
            (best < 0 || axis_cost(a, level[a]).mean < axis_cost(best, level[best]).mean))
          best = a;
      if (best < 0) break;
      const AxisCost& cost = axis_cost(best, level[best]);
      uint64_t& size = grid.sizes[best];
      const double kept = left * static_cast<double>((size + 1) / 2) / static_cast<double>(size);
      total += (left - kept) * cost.mean;
      left = kept;
      size = (size + 1) / 2;
      ++level[best];
      steps[count] = {static_cast<uint8_t>(best), cost.kind, scale_at(count)};
    }
    bits_a_value_ = total;
    chosen.steps = count;
    for (int k = 0; k < count; ++k) chosen.step[count - 1 - k] = steps[k];
    if (count > 0) chosen.coarse_scale = scale_at(count);
  }

  // 1.25 to the power of the level, at most 2, into the bound (QoZ, J. Liu et al., SC 2022).
  ARRCOMP_METHOD static uint16_t scale_of(int level, uint16_t base) {
    constexpr uint16_t scales[] = {full_scale, full_scale * 4 / 5, full_scale * 16 / 25, full_scale / 2};
    const uint16_t scale = scales[level < 3 ? level : 3];
    return scale < base ? scale : base;
  }

  ARRCOMP_METHOD const AxisCost& axis_cost(int axis, int level) {
    AxisCost& cost = costs_[axis][level];
    if (cost.is_known) return cost;
    cost.is_known = true;
    const uint64_t stride = uint64_t{1} << level, size = axes_.sizes[axis];
    cost.is_possible = level < max_levels && size > 6 * stride;
    if (!cost.is_possible) return cost;
    SampledCost linear, cubic;
    for (int s = 0; s < samples_; ++s) sample_axis(axis, stride, s, linear, cubic);
    cost.kind = linear.bits < cubic.bits ? Interpolation::linear : Interpolation::cubic;
    cost.mean = least(linear.mean(), cubic.mean());
    return cost;
  }

  // Values at odd multiples of the stride on an axis, with two neighbours on both sides.
  ARRCOMP_PART void sample_axis(int axis, uint64_t stride, int s, SampledCost& linear, SampledCost& cubic) const {
    const uint64_t values = (axes_.sizes[axis] - 1 - 4 * stride) / (2 * stride);
    const uint64_t line = axes_.sizes[last_axis], along = axis == last_axis ? values : line;
    const int n = along < lanes_per_row ? static_cast<int>(along) : lanes_per_row;
    const int distance = axis == last_axis ? static_cast<int>(2 * stride) : 1;
    uint64_t first = 0;
    for (int a = 0; a < max_axes; ++a) {
      const uint64_t room = (a == axis ? values : axes_.sizes[a]) - (a == last_axis ? static_cast<uint64_t>(n - 1) : 0);
      const uint64_t i = random_below(room, s, a);
      first += (a == axis ? (2 * i + 3) * stride : i) * strides_[a];
    }
    Mask missing = mask(0);
    const uint64_t apart = stride * strides_[axis];
    const auto number = [&](uint64_t index, Word& bits) ARRCOMP_LAMBDA {
      bits = load_row(index, distance, n);
      const Real x = T::widen(bits);
      missing = missing | gaps_.in(bits, x);
      return x;
    };
    Word bits, other;
    const Real x = number(first, bits);
    const Neighbours<Real> near{number(first - 3 * apart, other), number(first - apart, other),
                                number(first + apart, other), number(first + 3 * apart, other)};
    const Mask counts = first_lanes(n) & ~missing;
    const auto add = [&](Interpolation kind, SampledCost& cost) ARRCOMP_LAMBDA {
      const Real p = interpolated(kind, near, splat<Real>(static_cast<typename Real::scalar>(T::largest)));
      Word value;
      Mask failed;
      cost.add(book_.code(p, bits, x, missing, value, failed), counts);
    };
    add(Interpolation::linear, linear);
    add(Interpolation::cubic, cubic);
  }

  const void* source_;
  Axes axes_;
  Gaps<T> gaps_;
  CodeBook<T> book_;
  GridIntegers<T> integers_;
  double bound_, bits_a_value_ = 0;
  Scalar largest_bits_ = 0;  // of the largest value that was sampled, in the arithmetic type
  int samples_;
  uint64_t strides_[max_axes];
  SampledCost differences_[subsets];
  AxisCost costs_[max_axes][max_levels + 1];  // of the last level none is possible
};

}  // namespace arrcomp::ARRCOMP_ISA
