// Predictions of the values between those of a coarser grid, from up to four of its values on a line (FORMAT.md,
// section 9.2).
#pragma once
#include "codecs/element_types.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// How many values a line is continued by behind its end.
ARRCOMP_INLINE uint64_t continuing(Interpolation kind, uint64_t known) { return kind.is_held() ? 1 : known; }

// The value behind x1, x2 and x3, of which x1 is the nearest, on a polynomial through as many as there are.
template <class V>
ARRCOMP_INLINE V extended(uint64_t known, V x1, V x2, V x3, V three) {
  if (known >= 3) return (x1 - x2) * three + x3;
  return known == 2 ? x1 + (x1 - x2) : x1;
}

// Where a line's last value, behind x2, would stand if all were equally far apart.
template <class V>
ARRCOMP_INLINE V moved_last(V last, V x2, V weight) {
  return x2 + (last - x2) * weight;
}

// Four neighbours on a line: two before the value, two behind it.
template <class Real>
struct Neighbours {
  Real far_before, before, behind, far_behind;

  // Continues the line behind its ends, where far neighbours are not there. It has `known` values.
  ARRCOMP_METHOD void continue_line(bool has_far_before, bool has_far_behind, uint64_t known, uint64_t continuing) {
    const Real three = splat<Real>(3);
    if (!has_far_behind) far_behind = extended(continuing, behind, before, has_far_before ? far_before : before, three);
    if (!has_far_before) far_before = extended(known, before, behind, far_behind, three);
  }
};

// How predictions are made of neighbours.
template <class Real>
class Interpolator {
  using Number = typename Real::scalar;

 public:
  ARRCOMP_METHOD Interpolator(Interpolation kind, double largest)
      : near_(part_of_one(kind.weights().near)),
        far_(part_of_one(kind.weights().far)),
        largest_(static_cast<Number>(largest)),
        is_linear_(kind.is_linear()) {}

  ARRCOMP_METHOD Real operator()(const Neighbours<Real>& at) const {
    Real p = (at.before + at.behind) * splat<Real>(near_);
    if (!is_linear_) p = p + (at.far_before + at.far_behind) * splat<Real>(far_);
    return select(le(size(p), splat<Real>(largest_)), p, splat<Real>(0));  // after an overflow, or of what is no number
  }

 private:
  ARRCOMP_METHOD static Number part_of_one(int16_t parts) {
    return static_cast<Number>(parts) * (Number{1} / Weights::one);
  }

  Number near_, far_, largest_;
  bool is_linear_;
};

// The most values of a line that are predicted together.
constexpr uint64_t line_segment = keeps_rows ? 2048 : 256;

// A part of a line of the coarser grid, in the arithmetic type, with two values before it and two behind it; where the
// line ends these continue it. Plain memory, which nobody constructs on a GPU.
template <class T>
class Window {
  using Real = typename T::Real;
  using Number = typename Real::scalar;

 public:
  // For the values behind elements [first, first + count) of the line that begins at `line`.
  ARRCOMP_PART void open(const void* coarse, uint64_t line, const Refinement& step, uint64_t first, uint64_t count) {
    const uint64_t known = step.known();
    const uint64_t from = first < before ? 0 : first - before, end = first + count + behind;
    const uint64_t to = end < known ? end : known;
    sync();  // what was there before has been read
    for (uint64_t i = from; i < to; i += lanes_per_row) {
      const int n = to - i < lanes_per_row ? static_cast<int>(to - i) : lanes_per_row;
      store(values_ + (i + before - first), T::widen(load_elements<T>(coarse, line + i, n)));
    }
    sync();
    if (step.last_weight != 1 && to == known)
      move_last(known - 1 + before - first, static_cast<Number>(step.last_weight));
    if (first == 0) extend(before - 1, 1, known);
    for (uint64_t i = known; i < end; ++i) extend(i + before - first, -1, continuing(step.kind, known));
  }

  // Of the row of values behind elements `first` + `i` and on.
  ARRCOMP_METHOD Neighbours<Real> at(uint64_t i) const {
    const Number* const p = values_ + i + before - 1;
    return {load(p), load(p + 1), load(p + 2), load(p + 3)};
  }

 private:
  static constexpr uint64_t before = 2, behind = 2;

  // Sets value `i` to what continues those that follow it in this direction.
  ARRCOMP_METHOD void extend(uint64_t i, int direction, uint64_t known) {
    Number* const at = values_ + i;
    const Number second = known >= 2 ? at[2 * direction] : Number{0},
                 third = known >= 3 ? at[3 * direction] : Number{0};
    const Number value = extended(known, at[direction], second, third, Number{3});
    if (leader()) *at = value;
    sync();
  }

  // Sets value `i`, the last one, to what would stand in its place on a line.
  ARRCOMP_METHOD void move_last(uint64_t i, Number weight) {
    const Number value = moved_last(values_[i], values_[i - 1], weight);
    sync();
    if (leader()) values_[i] = value;
    sync();
  }

  Number values_[line_segment + before + behind + 2 * lanes_per_row];
};

// The neighbours of a row of a slice between two of the coarser grid.
template <class T>
class Slices {
  using Real = typename T::Real;

 public:
  // Between slices `i` and i + 1 of a block that begins at element `start`.
  ARRCOMP_METHOD Slices(const void* coarse, uint64_t start, const Refinement& step, uint64_t i)
      : coarse_(coarse),
        start_(start),
        inner_(step.inner),
        known_(step.known()),
        continuing_(continuing(step.kind, step.known())),
        i_(i) {}

  ARRCOMP_METHOD Neighbours<Real> at(uint64_t j, int n) const {
    const Real three = splat<Real>(3);
    Neighbours<Real> row;
    row.before = slice(i_, j, n);
    const bool has_behind = i_ + 1 < known_;
    if (has_behind) {
      row.behind = slice(i_ + 1, j, n);
    } else {  // the last slice: those before it are continued
      const Real second = known_ >= 2 ? slice(i_ - 1, j, n) : row.before;
      const Real third = known_ >= 3 ? slice(i_ - 2, j, n) : row.before;
      row.behind = extended(continuing_, row.before, second, third, three);
      row.far_before = second;
      row.far_behind = extended(continuing_, row.behind, row.before, second, three);
      if (known_ == 1) row.far_before = row.before;
      return row;
    }
    if (i_ > 0) row.far_before = slice(i_ - 1, j, n);
    if (i_ + 2 < known_) row.far_behind = slice(i_ + 2, j, n);
    row.continue_line(i_ > 0, i_ + 2 < known_, known_, continuing_);
    return row;
  }

  // The same where one of the two slices behind is the last one, which is moved. There is one behind.
  ARRCOMP_METHOD Neighbours<Real> near_moved(Real weight, uint64_t j, int n) const {
    Neighbours<Real> row = at(j, n);
    if (i_ + 2 < known_) {
      row.far_behind = moved_last(row.far_behind, row.behind, weight);
    } else {
      row.behind = moved_last(row.behind, row.before, weight);
    }
    row.continue_line(i_ > 0, i_ + 2 < known_, known_, continuing_);
    return row;
  }

 private:
  ARRCOMP_METHOD Real slice(uint64_t i, uint64_t j, int n) const {
    return T::widen(load_elements<T>(coarse_, start_ + i * inner_ + j, n));
  }

  const void* coarse_;
  uint64_t start_, inner_, known_, continuing_, i_;
};

}  // namespace arrcomp::ARRCOMP_ISA
