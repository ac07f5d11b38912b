// How an array is predicted along its axes, and the header of its payload. Shared by host and device. FORMAT.md,
// section 9.
#pragma once
#include <cstring>

#include "inline.h"
#include "stream/gap_mask.h"
#include "stream/multiples.h"
#include "stream/plan.h"
#include "stream/settings.h"

namespace arrcomp {

constexpr int max_steps = 64;      // of refinement
constexpr int max_candidates = 7;  // for how an array is predicted
constexpr int full_scale = 4096;
constexpr int max_band = 1 << 14;  // rows
constexpr int absent_element = 1;  // bits of an element that is not kept exactly: the least number above 0

// Of the sums of the two near and of the two far neighbours of a value, in 2^-15ths.
struct alignas(4) Weights {
  static constexpr int one = 1 << 15;

  int16_t near, far;

  ARRCOMP_SHARED constexpr bool are_given() const { return near != 0 || far != 0; }
};
static_assert(sizeof(Weights) == 4);

// How the values between those of a coarser grid are predicted: from two or from four of these, or from four by weights of
// their own. Behind the end of a line of the grid a polynomial continues it, or its last value is held. Or, where the last
// slice would be behind that end, the coarser grid keeps it.
class Interpolation {
 public:
  Interpolation() = default;
  ARRCOMP_SHARED constexpr Interpolation(bool is_cubic, bool is_held, bool keeps_last = false)
      : bits_(static_cast<uint8_t>((is_cubic ? 1 : 0) | (is_held ? 2 : 0) | (keeps_last ? 4 : 0))), weights_{} {}
  ARRCOMP_SHARED constexpr Interpolation(Weights weights, bool is_held, bool keeps_last = false)
      : Interpolation(false, is_held, keeps_last) {
    bits_ |= 8;
    weights_ = weights;
  }
  ARRCOMP_SHARED constexpr Interpolation(uint8_t bits, Weights weights) : bits_(bits), weights_(weights) {}

  ARRCOMP_SHARED constexpr bool is_cubic() const { return (bits_ & 1) != 0; }
  ARRCOMP_SHARED constexpr bool is_held() const { return (bits_ & 2) != 0; }
  ARRCOMP_SHARED constexpr bool keeps_last() const { return (bits_ & 4) != 0; }
  ARRCOMP_SHARED constexpr bool is_weighted() const { return (bits_ & 8) != 0; }
  ARRCOMP_SHARED constexpr bool is_known() const { return bits_ < 16 && !(is_cubic() && is_weighted()); }
  ARRCOMP_SHARED constexpr uint8_t bits() const { return bits_; }
  // Far neighbours are not read where they have no weight: a line.
  ARRCOMP_SHARED constexpr bool is_linear() const { return !is_cubic() && !is_weighted(); }
  ARRCOMP_SHARED constexpr Weights weights() const {
    if (is_weighted()) return weights_;
    return is_cubic() ? Weights{Weights::one * 9 / 16, -Weights::one / 16} : Weights{Weights::one / 2, 0};
  }

  ARRCOMP_SHARED constexpr Interpolation without_last() const { return {static_cast<uint8_t>(bits_ & ~4), weights_}; }

  // Whether the last of so many slices may be kept.
  ARRCOMP_SHARED static constexpr bool may_keep_last(uint64_t size) { return size % 2 == 0 && size >= 8; }

 private:
  uint8_t bits_;
  Weights weights_;  // if it is weighted
};

// Which elements their codes do not bring within the bound: none, those in the mask of gaps alone, other gaps too, which
// show without decoding, or others too.
enum class Unserved : uint8_t { none, masked, gaps, others };

// Whether elements must be kept exactly, and whether one of them would be taken for absent.
enum class FoundExact : uint8_t { none, some, ambiguous };

// A step of refinement: along `axis` the values between those of the coarser grid are predicted from these.
struct Step {
  uint8_t axis;
  Interpolation kind;
  uint16_t scale;  // of the bound, in 4096ths
};

// A step on its finer grid: `outer` blocks, of `size` slices of `inner` elements each.
struct Refinement {
  uint64_t outer, size, inner;
  uint32_t kept;  // slices that the coarser grid has, but predictions are not made of: 1 or 0
  Interpolation kind;
  double bound;  // 0: without loss
  int scale;     // of this step's codes
  Multiples multiples;
  double
      last_weight;  // of a line's last value, where predictions take it for what stands in its place on a line (Grid); else 1

  // Slices of the coarser grid; those of them that predictions are made from; those that the coarser grid does not have.
  ARRCOMP_SHARED uint64_t coarse() const { return known() + kept; }
  ARRCOMP_SHARED uint64_t known() const { return (size + 1) / 2; }
  ARRCOMP_SHARED uint64_t fine() const { return size / 2 - kept; }

  // The slice of the finer grid that is slice `i` of the coarser one.
  ARRCOMP_SHARED uint64_t place(uint64_t i) const { return i > fine() ? 2 * i - 1 : 2 * i; }

  ARRCOMP_SHARED uint64_t coarse_elements() const { return outer * coarse() * inner; }
  ARRCOMP_SHARED uint64_t codes() const { return outer * fine() * inner; }
};

// A grid on its way from the array to coarser ones.
class Grid {
 public:
  ARRCOMP_SHARED explicit Grid(const Axes& array) : axes_(array) {
    for (double& distance : distances_) distance = 1;
  }

  ARRCOMP_SHARED const Axes& axes() const { return axes_; }
  ARRCOMP_SHARED uint64_t size(int axis) const { return axes_.sizes[axis]; }

  // Takes every second slice along the step's axis, and the last one if the step keeps it.
  ARRCOMP_SHARED void coarsen(const Step& step) {
    uint64_t& size = axes_.sizes[step.axis];
    double& distance = distances_[step.axis];
    const bool keeps_last = step.kind.keeps_last();
    distance = size % 2 == 1 ? (1 + distance) / 2 : keeps_last ? distance / 2 : 1;
    size = keeps_last ? size / 2 + 1 : (size + 1) / 2;
  }

  // The step that makes this grid, from a coarser one.
  ARRCOMP_SHARED Refinement refinement(const Step& step, double bound, const Multiples& multiples) const {
    Grid coarse = *this;
    coarse.coarsen(step);
    const double distance = step.kind.keeps_last() ? 1 : coarse.distances_[step.axis];
    const uint32_t kept = step.kind.keeps_last() ? 1 : 0;
    return {axes_.outer(step.axis),
            size(step.axis),
            axes_.inner(step.axis),
            kept,
            step.kind,
            bound,
            step.scale,
            multiples,
            1 / distance};
  }

 private:
  Axes axes_;
  double distances_[max_axes];  // of the last slice from the one before it, in slices
};

// A matrix in bands of rows, one after the other; in each band elements stand column by column.
struct Columns {
  uint64_t rows, columns, band;  // `band`: rows of each but the last, no more than there are

  // Some columns of a band, or some rows of one column: a rectangle of the matrix.
  struct Block {
    uint64_t row, rows, column, columns;

    ARRCOMP_SHARED uint64_t count() const { return rows * columns; }
  };

  // Of the band that a row is in.
  ARRCOMP_SHARED uint64_t first_row(uint64_t row) const { return row - row % band; }
  ARRCOMP_SHARED uint64_t rows_of_band(uint64_t row) const {
    const uint64_t left = rows - first_row(row);
    return left < band ? left : band;
  }

  // Where an element stands.
  ARRCOMP_SHARED uint64_t place(uint64_t row, uint64_t column) const {
    const uint64_t first = first_row(row);
    return first * columns + column * rows_of_band(row) + (row - first);
  }

  // Tiles of 32 rows and columns, or of fewer at the ends of bands and of rows.
  ARRCOMP_SHARED uint64_t tiles() const {
    const uint64_t lines = rows / band * ceil_div(band, lanes_per_row) + ceil_div(rows % band, lanes_per_row);
    return lines * ceil_div(columns, lanes_per_row);
  }
  ARRCOMP_SHARED Block tile(uint64_t number) const {
    const uint64_t across = ceil_div(columns, lanes_per_row), down = ceil_div(band, lanes_per_row);
    const uint64_t line = number / across, at = line % down * lanes_per_row, column = number % across * lanes_per_row;
    const uint64_t row = line / down * band + at;
    return {row, part(rows_of_band(row) - at), column, part(columns - column)};
  }
  ARRCOMP_SHARED static uint64_t part(uint64_t left) { return left < lanes_per_row ? left : uint64_t{lanes_per_row}; }

  // The largest block whose elements stand at [begin, end), from the first of these on.
  ARRCOMP_SHARED Block block(uint64_t begin, uint64_t end) const {
    const uint64_t first = begin / (band * columns) * band, height = rows_of_band(first);
    const uint64_t at = begin - first * columns, row = at % height, column = at / height;
    const uint64_t all = (columns - column) * height - row, left = end - begin < all ? end - begin : all;
    if (row == 0 && left >= height) return {first, height, column, left / height};
    return {first + row, left < height - row ? left : height - row, column, 1};
  }
};

// What the writer chose, but for the steps.
struct PredictionHead {
  Axes axes;
  uint8_t column_axes;    // so many axes, the last ones, are columns of a matrix that is not predicted; 0: it is
  uint16_t band;          // of columns: rows
  uint8_t differences;    // a set of axes: the coarsest grid is coded by its differences along these
  uint16_t coarse_scale;  // of its bound, in 4096ths
  GapMask mask;           // written where there are gaps
  bool has_wide_groups;   // of codes
  Multiples multiples;    // without loss: of what elements are
  int steps;
};

struct HeadPlaces;

// What the writer chose. Steps are in the order of decoding, the coarsest first.
struct Prediction : PredictionHead {
  Step step[max_steps];

  // A little less than the bound, as the codes of steps are checked against such a one (codecs/predicted/code.h).
  ARRCOMP_SHARED double coarse_bound(const Element& element, double bound) const {
    return bound * (1 - (element.width == 64 ? 0x1p-50 : 0x1p-20)) * (static_cast<double>(coarse_scale) / full_scale);
  }

  ARRCOMP_SHARED int weighted_steps() const {
    int count = 0;
    for (int k = 0; k < steps; ++k) count += step[k].kind.is_weighted();
    return count;
  }

  // Whether coarse grids have smaller bounds than the last step.
  ARRCOMP_SHARED bool has_scales() const { return steps > 0 && coarse_scale < step[steps - 1].scale; }

  // The grid before step `k` of decoding: every second value of each axis that later steps refine, again and again.
  ARRCOMP_SHARED Axes grid(int k) const { return grid_before(k).axes(); }

  // The bound within which an array is predicted: multiples are kept without loss.
  ARRCOMP_SHARED double own_bound(double bound) const { return multiples.is_given() ? 0 : bound; }

  ARRCOMP_SHARED Refinement refinement(int k, double bound) const {
    return grid_before(k + 1).refinement(step[k], bound, multiples);
  }

  // Whether the coarsest grid is coded by its differences along an axis. (Where it has but one value there, they are the
  // values.)
  ARRCOMP_SHARED bool has_differences(int axis) const { return is_in(differences, axis); }

  // Whether there are more axes than the header has room for.
  ARRCOMP_SHARED bool has_first_axis() const { return !is_by_columns() && axes.sizes[0] > 1; }

  ARRCOMP_SHARED bool is_by_columns() const { return column_axes > 0; }
  ARRCOMP_SHARED Columns columns() const {
    const int before = max_axes - 1 - column_axes;
    const uint64_t rows = axes.outer(before + 1);
    return {rows, axes.inner(before), band < rows ? band : rows};
  }

  // Of columns: the plan of their elements.
  ARRCOMP_SHARED Plan codes_plan(const Element& element) const;
  ARRCOMP_SHARED HeadPlaces places() const;
  ARRCOMP_SHARED uint64_t codes_offset() const;

  ARRCOMP_SHARED Grid grid_before(int k) const {
    Grid grid(axes);
    for (int s = steps - 1; s >= k; --s) grid.coarsen(step[s]);
    return grid;
  }
};

// Elements of a slice that are worked on together where differences are taken along another axis.
constexpr uint64_t column_size = 1024;
ARRCOMP_SHARED constexpr uint64_t difference_units(uint64_t outer, uint64_t inner) {
  return outer * ceil_div(inner, column_size);
}

// In a byte of the header, behind `differences`: whether there is a mask, whether there is a fifth axis, before the others, and
// whether there are multiples; or that elements stand by columns, of which it then says how many axes they have.
constexpr int mask_flag = 1 << 4, first_axis_flag = 1 << 5, multiples_flag = 1 << 6, columns_flag = 1 << 7;

// A payload of a predicted array begins with this; PayloadHeader's number of chunks would be 0.
struct PredictedHeader {
  double bound;
  uint32_t mark;                 // 0
  uint8_t steps, differences;    // and what else there is; or axes of columns
  uint16_t coarse_scale;         // or rows of a band
  uint64_t sizes[max_axes - 1];  // of the last axes
  uint64_t codes_bytes;          // of the payload of the codes
  uint64_t exact_bytes;          // of the payload of the elements that are kept exactly; 0 where there are none
};
static_assert(sizeof(PredictedHeader) == 64);

// Steps know axes by numbers: the header's have 0 to 3, the one before them 4.
ARRCOMP_SHARED constexpr uint8_t stored_axis(int axis) {
  return static_cast<uint8_t>((axis + max_axes - 1) % max_axes);
}
ARRCOMP_SHARED constexpr uint8_t axis_of_stored(int number) {
  return static_cast<uint8_t>(number < max_axes ? (number + 1) % max_axes : max_axes);
}

// A step in a payload. The weights of those that have some stand behind all steps.
struct StoredStep {
  uint8_t axis, kind;
  uint16_t scale;
};
static_assert(sizeof(StoredStep) == 4);

// Behind the header stand the size of the first axis, the steps and their weights, and the multiples, as far as there are any;
// behind these the codes.
struct HeadPlaces {
  uint64_t steps, weights, multiples, codes;

  ARRCOMP_SHARED constexpr HeadPlaces(bool has_first_axis, int step_count, int weighted = 0, bool has_multiples = false)
      : steps(sizeof(PredictedHeader) + (has_first_axis ? sizeof(uint64_t) : 0)),
        weights(steps + static_cast<uint64_t>(step_count) * sizeof(StoredStep)),
        multiples(round_up(weights + static_cast<uint64_t>(weighted) * sizeof(Weights), 8)),
        codes(multiples + (has_multiples ? sizeof(Multiples) : 0)) {}
};
constexpr uint64_t most_codes_offset = HeadPlaces(true, max_steps, max_steps, true).codes;

// Codes have the words' width: 64 bits for elements of 64 bits, else 32.
ARRCOMP_SHARED constexpr Element code_element_of(const Element& element) {
  return integer_element(element.width == 64 ? 64 : 32, true);
}

// Codes take few bits each, so that many chunks share one set of coder states: as many as can in wide groups.
ARRCOMP_SHARED constexpr Plan make_codes_plan(const Element& element, uint64_t count, bool has_wide_groups = false) {
  constexpr int most = max_chunks_of_codes;
  const int chunks = has_wide_groups ? most : count < (1u << 16) ? 4 : count < (1u << 20) ? 8 : most;
  return make_plan(code_element_of(element), count, static_cast<uint32_t>(chunks));
}

ARRCOMP_SHARED Plan Prediction::codes_plan(const Element& element) const {
  if (is_by_columns()) return make_plan(element, axes.count());
  return make_codes_plan(element, axes.count(), has_wide_groups);
}

ARRCOMP_SHARED HeadPlaces Prediction::places() const {
  return HeadPlaces(has_first_axis(), steps, weighted_steps(), multiples.is_given());
}
ARRCOMP_SHARED uint64_t Prediction::codes_offset() const { return places().codes; }

}  // namespace arrcomp
