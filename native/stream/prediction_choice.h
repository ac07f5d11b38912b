// Ways to predict an array, chosen by samples of it; they are then tried. Costs are integers until the end, so that
// every machine comes to the same ways. Shared by host and device.
#pragma once
#include "stream/multiples_choice.h"
#include "stream/prediction.h"

namespace arrcomp {

constexpr int max_levels = 24;  // how often an axis is halved, at most

// Bits that codes take, about: the lengths of those that were sampled.
struct SampledCost {
  uint64_t bits, values;

  ARRCOMP_SHARED double mean() const {
    return values > 0 ? static_cast<double>(bits) / static_cast<double>(values) : 0;
  }
};

// Sums over samples by which weights of neighbours are fitted to values: with n the mean of the two near ones and f that of
// the far ones, products of u = n - f, of n, and of r, by which a value is more than n.
struct FitSums {
  double uu, un, nn, ru, rn;

  // Those with which r is nearest to a u + b n, by least squares. b is left out where it is as good as none: an array whose
  // numbers are large and alike needs weights whose sum is 1. So is a where values have no far neighbours of their own.
  ARRCOMP_SHARED Weights weights(bool have_far) const {
    constexpr double least_b = 1.0 / 256, most = 2 - 0x1p-13;
    const double determinant = uu * nn - un * un;
    double a = (ru * nn - rn * un) / determinant, b = (rn * uu - ru * un) / determinant;
    if (!have_far) {
      a = 0;
      b = rn / nn;
    } else if (!(determinant > 0x1p-30 * (uu * nn)) || (-least_b < b && b < least_b)) {
      a = ru / uu;
      b = 0;
    }
    const double near = 1 + a + b;
    if (!(-most < near && near < most && -most < a && a < most)) return {};
    const int far_parts = -parts(a);
    return {static_cast<int16_t>(Weights::one / 2 - far_parts + parts(b)), static_cast<int16_t>(far_parts)};
  }

 private:
  // Of half a number, as sums have two numbers.
  ARRCOMP_SHARED static int parts(double x) {
    const double scaled = x * (Weights::one / 2);
    return static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  }
};

// Interpolation without weights of its own.
struct SampledPair {
  SampledCost linear, cubic;

  ARRCOMP_SHARED bool is_cubic() const { return cubic.bits <= linear.bits; }
  ARRCOMP_SHARED double cost() const { return (is_cubic() ? cubic : linear).mean(); }
};

// Kinds of interpolation, of the values of a level of an axis.
struct SampledKinds {
  SampledPair exact, decoded;  // from neighbours as they are, within a bound alone; and as the bound leaves them
  SampledCost weighted;        // from the latter
  Weights weights;             // fitted before; zeros if there are none

  // What the choice without weights is made by.
  ARRCOMP_SHARED const SampledPair& plain(bool is_lossless) const { return is_lossless ? decoded : exact; }

  // Whether the weights of a step with so many codes save more than they take.
  ARRCOMP_SHARED bool are_worth_weights(double codes) const {
    constexpr double least_bits = 2 * 8 * sizeof(Weights);
    return weights.are_given() && (decoded.cost() - weighted.mean()) * codes > least_bits;
  }
  ARRCOMP_SHARED double decoded_cost(bool has_weights) const {
    const double cost = decoded.cost();
    return has_weights && weights.are_given() && weighted.mean() < cost ? weighted.mean() : cost;
  }
};

// Gaps among samples.
struct SampledGaps {
  struct Kind {
    uint64_t number, bits;  // the largest bits
  };
  static constexpr int kinds = 3;  // the fill value, the usual NaN, any other

  Kind of_kind[kinds];
  uint64_t mask_bytes[axis_sets];  // bytes of a mask that are not 0, by its differences along each set of axes
};

// What was sampled of an array; all is 0 before. Plain sums: the order of samples does not show.
struct PredictionSamples {
  SampledCost differences[axis_sets];  // along each set of axes that the array has
  SampledKinds levels[max_axes][max_levels];
  SampledCost continued[max_axes][max_levels], held[max_axes][max_levels];  // of values behind the last ones of lines
  SampledGaps gaps;
  uint64_t largest_bits;     // of the largest value, in the arithmetic type
  SampledMultiples numbers;  // before all others
  Multiples multiples;       // chosen by these: what the others are samples of, then without loss

  // Returns the bound that is left: 0 where multiples are chosen.
  ARRCOMP_SHARED double choose_multiples(const Element& element, int place_of_one, double bound) {
    const Multiples chosen = chosen_multiples(element, numbers, place_of_one);
    if (bound == 0 || are_wider_steps(chosen, numbers, bound)) multiples = chosen;
    return multiples.is_given() ? 0 : bound;
  }

  // How many rows are sampled of a level: most elements are of the finest ones.
  ARRCOMP_SHARED static int number_of_level(const Axes& axes, int level) {
    constexpr uint64_t finest = 256, few = 48, least = 12;
    const uint64_t most = axes.count() >> 8, rows = axes.count() >> 13;
    const uint64_t of_small = most < few ? most : few, of_large = rows < finest ? rows : finest;
    const uint64_t number = (of_small > of_large ? of_small : of_large) >> level;
    return static_cast<int>(number > least ? number : least);
  }
  ARRCOMP_SHARED static int number_of_differences(const Axes& axes) { return number_of_level(axes, 0); }
  // For weights: one after the other.
  ARRCOMP_SHARED static int number_of_fits(const Axes& axes) {
    const int number = number_of_level(axes, 1);
    return number < 64 ? number : 64;
  }
  // Edges of gaps are few.
  ARRCOMP_SHARED static int number_of_gaps(const Axes& axes) { return 16 * number_of_level(axes, 2); }

  // How often an axis may be halved: down to one slice, but where it is long, as long as grids have values on both sides of
  // what is predicted.
  ARRCOMP_SHARED static int levels_of(uint64_t size) {
    constexpr int short_levels = 5;
    int levels = 0;
    while (levels < max_levels && size > (levels < short_levels ? uint64_t{1} : uint64_t{6}) << levels) ++levels;
    return levels;
  }

  // How many steps there may be: the grid before the last one, from the finest, has more than `least_grid` elements.
  ARRCOMP_SHARED static int most_steps(const Axes& axes) {
    int levels = 0, halvings = 0;
    for (const uint64_t size : axes.sizes) {
      levels += levels_of(size);
      for (uint64_t left = size - 1; left > 0; left /= 2) ++halvings;
    }
    const int to_least = halvings > least_halvings ? halvings - least_halvings : 0;
    const int most = levels < to_least ? levels : to_least;
    return most < max_steps ? most : max_steps;
  }

  static constexpr int least_halvings = 6;
  static constexpr uint64_t least_grid = 1 << least_halvings;  // elements: no grid that has no more is made coarser
};

// An axis that was halved so often.
struct LevelOfAxis {
  uint64_t stride, last, known;  // between indices in the array; the last slice's number; slices that halving leaves
  bool is_long;                  // some values have two others on both sides

  ARRCOMP_SHARED LevelOfAxis(uint64_t size, int level)
      : stride(uint64_t{1} << level), last((size - 1) >> level), known(last / 2 + 1), is_long(known > 3) {}
};

constexpr uint64_t least_rows = 16;  // of a matrix whose elements are worth to stand by columns

// Rows of a band of columns: as many as a chunk has elements, or a group where columns are few. Where the matrices of a stack
// are about as long, bands are these.
ARRCOMP_SHARED uint16_t band_of(const Axes& axes, int column_axes) {
  constexpr uint64_t long_matrix = chunk_size / 4, many_columns = 16;
  const int axis = max_axes - 1 - column_axes;  // the last one of the rows
  const uint64_t rows = axes.outer(axis + 1), size = axes.sizes[axis];
  const bool has_many = axes.inner(axis) >= many_columns;
  const uint64_t most = has_many ? chunk_size : max_band;
  const bool are_matrices = has_many && long_matrix <= size && size <= most;
  return static_cast<uint16_t>(are_matrices ? size : rows < most ? rows : most);
}

// Whether the array has all axes of a set.
ARRCOMP_SHARED bool has_axes(const Axes& axes, int set) {
  for (int a = 0; a < max_axes; ++a)
    if (is_in(set, a) && axes.sizes[a] == 1) return false;
  return true;
}

// What is known of a data type (codecs/element_types.h).
struct FloatTraits {
  int width;  // bits of an element
  double epsilon, steps_per_bound;

  template <class T>
  ARRCOMP_SHARED static FloatTraits of() {
    return {T::width, T::epsilon, static_cast<double>(T::steps_per_bound)};
  }

  // The number of such bits in the arithmetic type.
  ARRCOMP_SHARED double number(uint64_t bits) const {
    if (width == 64) {
      double number;
      memcpy(&number, &bits, sizeof number);
      return number;
    }
    const auto lower = static_cast<uint32_t>(bits);
    float number;
    memcpy(&number, &lower, sizeof number);
    return static_cast<double>(number);
  }
};

class PredictionChoice {
 public:
  // `bound` 0: without loss.
  ARRCOMP_SHARED PredictionChoice(const Axes& axes, const PredictionSamples& samples, const FloatTraits& traits,
                                  double bound)
      : axes_(axes), samples_(samples), traits_(traits), bound_(bound) {}

  // Writes the ways to predict that are worth a trial; returns how many. The order is that of preference among equals.
  ARRCOMP_SHARED int candidates(Predictor predictor, Prediction (&chosen)[max_candidates]) const {
    int count = 0;
    if (predictor == Predictor::columns) return add_columns(chosen, 0);
    if (predictor != Predictor::interpolation) set_lorenzo(chosen[count++]);
    if (predictor == Predictor::lorenzo) return count;
    count = add_interpolation(predictor, chosen, count);
    return predictor == Predictor::automatic ? add_columns(chosen, count) : count;
  }

 private:
  // These write ways from number `count` on; they return how many there are then.

  ARRCOMP_SHARED int add_interpolation(Predictor predictor, Prediction (&chosen)[max_candidates], int count) const {
    Prediction &plain = chosen[count], &weighted = chosen[count + 1];
    StepCosts costs[2];
    ARRCOMP_ROLLED
    for (int way = 0; way < 2; ++way) {
      costs[way] = set_interpolation(chosen[count + way], way == 1);
      chosen[count + way].has_wide_groups = are_wide(costs[way].bits);
    }
    const bool is_tried = bound_ > 0 || predictor == Predictor::automatic;
    const bool is_weighted = costs[1].decoded_bits < (is_tried ? worth_trial : worth_weights) * costs[0].decoded_bits;
    if (is_weighted && !is_tried) plain = weighted;  // samples tell about as much as a trial
    count += is_weighted && is_tried ? 2 : 1;
    if (bound_ > 0) {
      if (costs[0].bits <= scaled_below) count = add_scaled(plain, chosen, count);
      if (is_weighted && costs[1].bits < wide_below) count = add_scaled(weighted, chosen, count);
    }
    if (bound_ == 0 && predictor == Predictor::automatic && samples_.multiples.is_given() &&
        chosen[0].differences != 0) {
      chosen[count] = chosen[0];
      chosen[count++].differences = 0;  // few integers, or many zeros
    }
    return count;
  }

  // A way with smaller bounds for coarse grids.
  ARRCOMP_SHARED int add_scaled(const Prediction& way, Prediction (&chosen)[max_candidates], int count) const {
    chosen[count] = way;
    set_scales(chosen[count]);
    return count + 1;
  }

  // The last axis, or the last two, as columns.
  ARRCOMP_SHARED int add_columns(Prediction (&chosen)[max_candidates], int count) const {
    for (int axes = 1; axes <= 2; ++axes) {
      const int axis = max_axes - 1 - axes;
      if (axes_.sizes[axis + 1] == 1 || axes_.outer(axis + 1) < least_rows) continue;
      Prediction& columns = chosen[count++];
      columns = {};
      columns.axes = axes_;
      columns.column_axes = static_cast<uint8_t>(axes);
      columns.band = band_of(axes_, axes);
    }
    return count;
  }

  static constexpr double scaled_below = 2;  // bits a value: smaller bounds for coarse grids are worth a trial
  static constexpr double worth_weights = 0.99, worth_trial = 0.995;  // of the bits without weights
  static constexpr double wide_below = 1;                             // bits a value: the coder's states weigh much
  static constexpr uint64_t wide_from = 1 << 16;

  ARRCOMP_SHARED static double least(double a, double b) { return a < b ? a : b; }

  ARRCOMP_SHARED int least_of_differences() const {
    int best = 0;
    for (int set = 1; set < axis_sets; ++set)
      if (has_axes(axes_, set) && (best == 0 || samples_.differences[set].mean() < samples_.differences[best].mean()))
        best = set;
    return best;
  }

  // Small arrays keep several groups, as CPUs decode these side by side.
  ARRCOMP_SHARED bool are_wide(double bits_a_value) const {
    return bits_a_value < wide_below && axes_.count() >= wide_from;
  }

  // Of the gaps that are the most, if any was found.
  ARRCOMP_SHARED GapMask mask() const {
    const auto& kinds = samples_.gaps.of_kind;
    int most = 0;
    for (int kind = 1; kind < SampledGaps::kinds; ++kind)
      if (kinds[kind].number > kinds[most].number) most = kind;
    if (kinds[most].number == 0) return {};
    return {kinds[most].bits, axes_of_mask(), true};
  }

  ARRCOMP_SHARED uint8_t axes_of_mask() const {
    const MaskGrid grid(axes_);
    int best = 0;
    for (int set = 1; set < axis_sets; ++set)
      if (has_axes(axes_, set) && grid.has_axes(set) && bytes_of_mask(set) < bytes_of_mask(best)) best = set;
    return static_cast<uint8_t>(best);
  }

  // Those of all elements' differences that are not 0, if there were as many as were sampled. Where an axis begins there is
  // none along it, and samples are from elsewhere.
  ARRCOMP_SHARED double bytes_of_mask(int set) const {
    double bytes = 0;
    for (int part = 0; part <= set; ++part) {
      if ((part & ~set) != 0) continue;
      double weight = 1;
      for (int a = 0; a < max_axes; ++a) {
        if (!is_in(set, a)) continue;
        const double first = 1 / static_cast<double>(axes_.sizes[a]);
        weight = weight * (is_in(part, a) ? 1 - first : first);
      }
      bytes = bytes + weight * static_cast<double>(samples_.gaps.mask_bytes[part]);
    }
    return bytes;
  }

  // Steps leave room for what rounding adds to an error, next to the largest value: up to one unit in its last place, or
  // half of one where it comes from rounding to the element alone.
  ARRCOMP_SHARED uint16_t base_scale() const {
    if (bound_ == 0) return full_scale;
    const bool is_narrow = traits_.width == 16;
    const double unit = traits_.number(samples_.largest_bits) * traits_.epsilon / bound_;
    const double scale = (2 - (is_narrow ? unit : 2 * unit)) / traits_.steps_per_bound;
    if (is_narrow && scale >= 1) return full_scale;
    return static_cast<uint16_t>(full_scale * (scale > 0.25 ? least(scale, 1) : 0.25) - (is_narrow ? 0 : 1));
  }

  ARRCOMP_SHARED void set_lorenzo(Prediction& chosen) const {
    chosen.axes = axes_;
    chosen.column_axes = 0;
    chosen.band = 0;
    chosen.differences = static_cast<uint8_t>(least_of_differences());
    chosen.coarse_scale = base_scale();
    chosen.multiples = samples_.multiples;
    chosen.mask = mask();
    chosen.has_wide_groups = are_wide(samples_.differences[chosen.differences].mean());
    chosen.steps = 0;
  }

  ARRCOMP_SHARED double axis_cost(int axis, int level, bool has_weights) const {
    const SampledKinds& sampled = samples_.levels[axis][level];
    return with_end(axis, level, has_weights ? sampled.decoded_cost(true) : sampled.plain(bound_ == 0).cost());
  }

  // The mean cost of a level's values, of which those between others take `between`. On longer lines the last one may be kept.
  ARRCOMP_SHARED double with_end(int axis, int level, double between) const {
    const LevelOfAxis own(axes_.sizes[axis], level);
    if (own.is_long || own.last % 2 == 0 || own.last == 1) return between;
    const double values = static_cast<double>(own.known);
    return (between * (values - 1) + end_cost(axis, level)) / values;
  }
  // Of a value behind the last one of a line.
  ARRCOMP_SHARED double end_cost(int axis, int level) const {
    return least(samples_.held[axis][level].mean(), samples_.continued[axis][level].mean());
  }

  // That along which values of its level are predicted best, but for one, and of equal ones that of the finest level, as its
  // values are nearest to each other; -1 where none is left.
  ARRCOMP_SHARED int best_axis(const int (&level)[max_axes], int but, bool has_weights) const {
    int best = -1;
    double least_cost = 0;
    for (int a = 0; a < max_axes; ++a) {
      if (a == but || level[a] >= PredictionSamples::levels_of(axes_.sizes[a])) continue;
      const double cost = axis_cost(a, level[a], has_weights);
      const bool is_finer = best >= 0 && cost == least_cost && level[a] < level[best];
      if (best >= 0 && cost >= least_cost && !is_finer) continue;
      best = a;
      least_cost = cost;
    }
    return best;
  }

  ARRCOMP_SHARED Interpolation kind_of(const SampledKinds& sampled, bool has_weights, double codes, bool is_held,
                                       bool keeps_last) const {
    if (!has_weights) return {sampled.plain(bound_ == 0).is_cubic(), is_held, keeps_last};
    if (sampled.are_worth_weights(codes)) return {sampled.weights, is_held, keeps_last};
    return {sampled.decoded.is_cubic(), is_held, keeps_last};
  }

  // Bits that a value takes; and if its neighbours are as the bound leaves them.
  struct StepCosts {
    double bits, decoded_bits;
  };

  // From the finest grid on, halves the axis whose values are predicted best. With weights, what the bound leaves is known
  // of the values that predictions are made of; it matters where values take few bits.
  ARRCOMP_SHARED StepCosts set_interpolation(Prediction& chosen, bool has_weights) const {
    set_lorenzo(chosen);
    Grid grid(axes_);
    int level[max_axes] = {}, count = 0;
    StepCosts total{0, 0};
    double left = 1;
    Step steps[max_steps];
    const int most = PredictionSamples::most_steps(axes_);
    for (; count < most && grid.axes().count() > PredictionSamples::least_grid; ++count) {
      const int best = best_axis(level, -1, has_weights);
      const int own = level[best], other = best_axis(level, best, has_weights);
      const double held = samples_.held[best][own].mean(), continued = samples_.continued[best][own].mean();
      const uint64_t size = grid.size(best);
      const SampledKinds& sampled = samples_.levels[best][own];
      const double codes = static_cast<double>(grid.axes().count() / size * (size / 2));
      const bool keeps_last = Interpolation::may_keep_last(size) && other >= 0 &&
                              axis_cost(other, level[other], has_weights) < end_cost(best, own);
      const bool is_held = size % 2 == 0 && !keeps_last && held < continued;
      steps[count] = {static_cast<uint8_t>(best), kind_of(sampled, has_weights, codes, is_held, keeps_last),
                      chosen.coarse_scale};
      grid.coarsen(steps[count]);
      const double kept = left * static_cast<double>(grid.size(best)) / static_cast<double>(size);
      total.bits += (left - kept) * axis_cost(best, own, has_weights);
      total.decoded_bits += (left - kept) * with_end(best, own, sampled.decoded_cost(has_weights));
      left = kept;
      ++level[best];
    }
    chosen.steps = count;
    for (int k = 0; k < count; ++k) chosen.step[count - 1 - k] = steps[k];
    return total;
  }

  // Coarse grids get smaller bounds: other values depend on theirs.
  ARRCOMP_SHARED void set_scales(Prediction& chosen) const {
    if (chosen.steps == 0) return;
    int axes = 0;
    for (uint64_t size : axes_.sizes) axes += size > 1;
    const uint16_t base = chosen.coarse_scale;
    for (int k = 0; k < chosen.steps; ++k) chosen.step[k].scale = scale_of((chosen.steps - 1 - k) / axes, base);
    chosen.coarse_scale = scale_of(chosen.steps / axes, base);
  }

  // 1.25 to the power of the level, at most 2, into the bound (QoZ, J. Liu et al., SC 2022).
  ARRCOMP_SHARED static uint16_t scale_of(int level, uint16_t base) {
    const int scale = level == 0   ? full_scale
                      : level == 1 ? full_scale * 4 / 5
                      : level == 2 ? full_scale * 16 / 25
                                   : full_scale / 2;
    return scale < base ? static_cast<uint16_t>(scale) : base;
  }

  const Axes& axes_;
  const PredictionSamples& samples_;
  FloatTraits traits_;
  double bound_;
};

}  // namespace arrcomp
