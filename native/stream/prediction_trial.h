// Ways to predict an array are tried on a part of it, which is encoded in each way and without prediction. Shared by host
// and device.
#pragma once
#include <algorithm>

#include "stream/codec.h"
#include "stream/prediction_choice.h"

namespace arrcomp {

constexpr uint64_t least_predicted = 512;  // elements: fewer are hardly worth a header

// Whether arrays of such elements and axes are predicted, as far as that is known without the bound.
inline bool may_be_predicted(const Element& element, const GroupSettings& settings, const Axes& axes, uint64_t count) {
  const bool has_way = settings.kind != BoundKind::pointwise || settings.may_be_by_columns();
  return settings.predicts() && has_way && is_predictable(element) && count >= least_predicted && axes.have(count);
}

// What codes are coded with, of an array with these settings.
ARRCOMP_SHARED constexpr GroupSettings codes_settings(const GroupSettings& settings) {
  return {BoundKind::lossless, 0, settings.fast, false, 0, Predictor::none, settings.is_part};
}

// absent_element as a number: the least one above 0 of these floats.
ARRCOMP_SHARED double absent_number(const Element& element) {
  double number = 4;
  for (int i = (1 << (element.exponent_bits - 1)) + element.mantissa_bits; i > 0; --i) number *= 0.5;
  return number;
}

// What elements that are kept exactly are coded with. Integers need none.
ARRCOMP_SHARED GroupSettings exact_settings(const Element& element, const GroupSettings& settings) {
  GroupSettings exact = codes_settings(settings);
  exact.has_fill = element.is_float();
  if (exact.has_fill) exact.fill = absent_number(element);
  return exact;
}

// Makes `smaller` the same prediction on a smaller array, which has fewer steps where an axis is too short for them.
ARRCOMP_SHARED void put_on_axes(const Prediction& prediction, const Axes& axes, Prediction& smaller) {
  static_cast<PredictionHead&>(smaller) = prediction;
  smaller.axes = axes;
  if (prediction.is_by_columns()) {  // of a matrix (Trial)
    smaller.column_axes = 1;
    const uint16_t band = band_of(axes, 1);
    const uint64_t rows = axes.sizes[max_axes - 2];
    smaller.band = rows < band ? static_cast<uint16_t>(rows) : band;
  }
  Grid grid(axes);
  int first = prediction.steps;
  for (int k = prediction.steps; k-- > 0;) {
    Step step = prediction.step[k];
    const uint64_t size = grid.size(step.axis);
    if (size < 2) continue;
    if (!Interpolation::may_keep_last(size)) step.kind = step.kind.without_last();
    grid.coarsen(step);
    smaller.step[--first] = step;
  }
  smaller.steps = prediction.steps - first;
  if (first == 0) return;
  for (int k = 0; k < smaller.steps; ++k) smaller.step[k] = smaller.step[first + k];
}

// The part of an array that is tried: all of it if it is small; else boxes, which stand one after the other along axis 0.
class Trial {
 public:
  static constexpr uint64_t small_array = 1 << 17;   // elements: all of it is tried
  static constexpr uint64_t small_plane = 1 << 19;   // the same with two axes: boxes show little of a plane
  static constexpr uint64_t largest_part = 1 << 18;  // elements, where not all of an array is tried

  Trial(const Element& element, const Axes& axes, bool must_predict) : must_predict_(must_predict), axes_(axes) {
    const uint64_t elements = axes.count();
    is_whole_ = elements <= (is_plane(axes) ? small_plane : small_array);
    for (int shape = 0; shape < shapes; ++shape) {
      const Axes whole = axes_of(shape);
      Axes& part = part_[shape];
      part = whole;
      if (!is_whole_) part = shape == 0 ? box_of(whole, most_of_boxes(elements) / boxes_of(whole)) : tall_box(whole);
      if (boxes_of(whole) > 1) part.sizes[0] = boxes_of(whole);
      most_elements_ = std::max(most_elements_, part.count());
    }
    capacity_ = capacity_of_groups(element, most_elements_) + most_codes_offset;
    const uint64_t tried = part_[0].count();
    for (const bool wide : {false, true})
      spared_states_[wide] =
          spared_states(tried, make_codes_plan(element, tried, wide), make_codes_plan(element, elements, wide));
  }

  // The axes that boxes are cut along: those of the array, or of a matrix whose columns are its last axis, or last two.
  static constexpr int shapes = 3;
  ARRCOMP_SHARED static int shape_of(const Prediction& way) { return way.column_axes; }

  // Whether the part of a shape is tried. That of the array is where it may be best as it is.
  ARRCOMP_SHARED bool tries(int shape, const Prediction* ways, int count) const {
    bool is_tried = shape == 0 && !must_predict_;
    for (int way = 0; way < count; ++way) is_tried = is_tried || shape_of(ways[way]) == shape;
    return is_tried;
  }

  // What a part is encoded with. Boxes have more of the coarse grids than the array, and by classes these would take too little.
  ARRCOMP_SHARED GroupSettings settings_of_part(GroupSettings settings) const {
    settings.is_part = !is_whole_;
    return settings;
  }

  ARRCOMP_SHARED const Axes& part(int shape = 0) const { return part_[shape]; }
  // Of a part of any shape.
  ARRCOMP_SHARED uint64_t most_elements() const { return most_elements_; }
  // Of a payload of a part; longer ones are worth nothing.
  ARRCOMP_SHARED uint64_t capacity() const { return capacity_; }

  // The axes along which boxes are shorter than the array, a bit each.
  ARRCOMP_SHARED uint32_t cut_axes() const {
    uint32_t cut = 0;
    for (int a = 0; a < max_axes; ++a) cut |= part_[0].sizes[a] < axes_.sizes[a] ? 1u << a : 0;
    return cut;
  }

  // Where a line of a part stands in the array.
  ARRCOMP_SHARED uint64_t line_of_array(int shape, uint64_t line) const {
    const Axes whole = axes_of(shape), &part = part_[shape];
    const uint64_t boxes = boxes_of(whole);
    uint64_t lines = part.outer(max_axes - 1) / boxes, index = 0;  // of a box
    const uint64_t box = line / lines;
    for (int a = boxes > 1 ? 1 : 0; a < max_axes; ++a) {  // each axis takes the boxes' places in another order
      const auto axis = static_cast<uint64_t>(a), place = (box * (2 * axis + 1) + axis) % boxes;
      const uint64_t first = (whole.sizes[a] - part.sizes[a]) * (2 * place + 1) / (2 * boxes);
      const bool is_last = a == max_axes - 1;
      if (!is_last) lines /= part.sizes[a];
      index = index * whole.sizes[a] + first + (is_last ? 0 : line / lines % part.sizes[a]);
    }
    return index;
  }

  // What a payload of a part, or none where `length` is 0, stands for: without what an array has but once, or less of.
  ARRCOMP_SHARED uint64_t counted(const Prediction& way, uint64_t length) const {
    if (length == 0) return capacity_;
    if (is_whole_) return length;
    const bool has_states = length >= way.codes_offset() + states_bytes;
    const uint64_t spared = has_states && !way.is_by_columns() ? spared_states_[way.has_wide_groups] : 0;
    // Boxes have more of the coarse grids than the array, where smaller bounds cost bytes.
    const uint64_t coarse = way.has_scales() ? length / 96 : 0;
    const uint64_t less = way.codes_offset() + spared + coarse;
    return length - (less < length ? less : length);
  }

  // The best of `count` ways by what they take of a part, or -1 where prediction gains too little. `plain`: what the part of
  // each shape takes without prediction, or 0 for all; by it, parts of all shapes count for as much.
  ARRCOMP_SHARED int best(const Prediction* ways, const uint64_t* bytes, int count,
                          const uint64_t (&plain)[shapes]) const {
    const uint64_t unit = plain[0] > 0 ? plain[0] : 1 << 24;
    const auto counted = [&](int way) {
      const uint64_t of_shape = plain[shape_of(ways[way])];
      return of_shape == 0 ? bytes[way] : bytes[way] * unit / of_shape;
    };
    // Columns are longer than boxes, which tell less of them: a prediction that is about as short is taken.
    const auto weighed = [&](int way) { return counted(way) * (ways[way].is_by_columns() && !is_whole_ ? 33 : 32); };
    int best = 0;
    for (int way = 1; way < count; ++way)
      if (weighed(way) < weighed(best)) best = way;
    const uint64_t gained_part = ways[best].is_by_columns() ? 128 : 64;  // columns take less time than predictions
    const uint64_t least = plain[0] / gained_part + (is_whole_ ? least_gain : least_gain_of_boxes);
    return must_predict_ || counted(best) + least < plain[0] ? best : -1;
  }

 private:
  static constexpr uint64_t most_boxes = 4;
  static constexpr uint64_t least_gain = 32;            // bytes
  static constexpr uint64_t least_gain_of_boxes = 128;  // they tell less
  static constexpr uint64_t least_part = 1 << 16;       // elements, in all boxes
  static constexpr uint64_t tried_part = 32;            // of all elements

  static uint64_t most_of_boxes(uint64_t elements) {
    return std::clamp(elements / tried_part, least_part, largest_part);
  }

  // Boxes of a part. Where axis 0 is the array's own, there is no room for several.
  ARRCOMP_SHARED uint64_t boxes_of(const Axes& whole) const { return is_whole_ || whole.sizes[0] > 1 ? 1 : most_boxes; }

  // What boxes of a shape are cut from.
  ARRCOMP_SHARED Axes axes_of(int shape) const { return shape == 0 ? axes_ : matrix_of(axes_, shape); }

  ARRCOMP_SHARED static Axes matrix_of(const Axes& axes, int columns) {
    const int before = max_axes - 1 - columns;
    return {{1, 1, 1, axes.outer(before + 1), axes.inner(before)}};
  }

  // Some columns, side by side as what stands in a row is often alike, and rows, as many as a band has if there is room;
  // more columns where rows are few.
  static Axes tall_box(Axes matrix) {
    constexpr uint64_t few_columns = 64, largest_box = largest_part / most_boxes;
    uint64_t &rows = matrix.sizes[max_axes - 2], &columns = matrix.sizes[max_axes - 1];
    rows = std::min({rows, uint64_t{band_of(matrix, 1)}, largest_box / std::min(columns, few_columns)});
    columns = std::min(columns, largest_box / rows);
    return matrix;
  }

  static bool is_plane(const Axes& axes) { return axes.sizes[max_axes - 2] > 1 && axes.outer(max_axes - 2) == 1; }

  // More chunks of the whole array share the coder's states than a part of so many elements has.
  static uint64_t spared_states(uint64_t tried, const Plan& of_part, const Plan& whole) {
    return states_bytes * of_part.groups - states_bytes * ceil_div(tried, chunk_size) / whole.chunks_per_group;
  }

  // The axes of a box of so many elements at most. Lines of a plane stay long, as they may be alike each in itself alone.
  static Axes box_of(Axes axes, uint64_t elements) {
    const auto length = [&, of_lines = is_plane(axes) ? 16u : 1u](int a) {
      return a == max_axes - 1 ? axes.sizes[a] / of_lines : axes.sizes[a];
    };
    while (axes.count() > elements) {
      int longest = 0;
      for (int a = 1; a < max_axes; ++a)
        if (length(a) > length(longest)) longest = a;
      axes.sizes[longest] = shorter(axes.sizes[longest]);
    }
    return axes;
  }

  // The next smaller of the sizes 1 + 2^k and 1 + 3 2^k, or 1. Fine grids of such axes have values on both sides of all that
  // are predicted, as nearly all of a large array has.
  static uint64_t shorter(uint64_t size) {
    if (size < 3) return 1;
    uint64_t power = 1;
    while (2 * power + 1 < size) power *= 2;
    const uint64_t between = power + power / 2;
    return (between + 1 < size ? between : power) + 1;
  }

  bool must_predict_, is_whole_;
  Axes axes_, part_[shapes];
  uint64_t most_elements_ = 0, capacity_;
  uint64_t spared_states_[2];  // without and with wide groups
};

}  // namespace arrcomp
