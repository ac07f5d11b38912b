// The coarsest grid on its way between elements and codes (FORMAT.md, section 9.4): some slices at a time go all of this
// way, as a cache holds them.
#pragma once
#include <algorithm>
#include <atomic>

#include "cpu/select.h"
#include "cpu/threads.h"
#include "stream/prediction.h"

namespace arrcomp::cpu {

// The last in the order of their kinds, of which the first is none, of what several threads find.
template <class Kind>
class LastKind {
 public:
  void add(Kind found) {
    Kind last = kind_;
    while (last < found && !kind_.compare_exchange_weak(last, found)) {
    }
  }
  Kind kind() const { return kind_; }

 private:
  std::atomic<Kind> kind_{};
};

class CoarsestGrid {
 public:
  // `grid`: its axes, or those of some rows of it. `codes` has room for all of it.
  CoarsestGrid(const PredictionJob& job, const Prediction& prediction, const Axes& grid, uint8_t* codes, int threads)
      : job_(job),
        prediction_(prediction),
        grid_(grid),
        codes_(codes),
        threads_(threads),
        functions_(isa().prediction),
        coarse_bound_(prediction.coarse_bound(job.element, job.bound)) {}

  // Makes codes of elements. `decoded`, if it is not null, gets the elements that are decoded.
  Unserved encode(const void* source, void* decoded) {
    LastKind<Unserved> unserved;
    all_slices<true>([&](uint64_t begin, uint64_t end) {
      unserved.add(
          functions_.encode_lines(job_, coarse_bound_, line(), source, decoded, codes_, begin / line(), end / line()));
    });
    return unserved.kind();
  }

  // Makes elements of codes, which become integers.
  void decode(void* target) {
    all_slices<false>([&](uint64_t begin, uint64_t end) {
      functions_.decode_lines(job_, coarse_bound_, line(), codes_, target, begin / line(), end / line());
    });
  }

 private:
  static constexpr int last_axis = max_axes - 1;
  static constexpr uint64_t elements_in_cache = 1 << 14;
  static constexpr uint64_t blocks_a_thread = 4;  // so many keep all threads at work

  uint64_t line() const { return grid_.sizes[last_axis]; }
  uint64_t block_of(int axis) const { return grid_.sizes[axis] * grid_.inner(axis); }

  // The next axis along which there are differences, or -1.
  int next_axis(int axis) const {
    while (++axis < max_axes)
      if (prediction_.has_differences(axis)) return axis;
    return -1;
  }

  // Takes differences behind lines(begin, end), of elements [begin, end), or adds them up before.
  template <bool take, class Lines>
  void all_slices(Lines lines) const {
    const int axis = next_axis(-1);
    const uint64_t count = grid_.count();
    if (axis < 0 || axis == last_axis) return in_parts<take>(-1, line(), lines);
    if (grid_.outer(axis) >= blocks_a_thread * static_cast<uint64_t>(threads_))
      return in_parts<take>(-1, block_of(axis), lines);
    const auto along = [&] {
      for_units(difference_units(grid_.outer(axis), grid_.inner(axis)), count, threads_,
                [&](uint64_t begin, uint64_t end) { change(take, axis, codes_, begin, end); });
    };
    if (!take) along();
    in_parts<take>(axis, grid_.inner(axis), lines);
    if (take) along();
  }

  // All of the grid, in parts of so many elements, which are independent of each other.
  template <bool take, class Lines>
  void in_parts(int axis, uint64_t part, Lines lines) const {
    for_units(grid_.count() / part, grid_.count(), threads_, [&](uint64_t begin, uint64_t end) {
      in_steps(begin, end, parts_in_cache(part),
               [&](uint64_t first, uint64_t last) { slices<take>(axis, first * part, last * part, lines); });
    });
  }

  // Elements [begin, end), whole slices of `axis` (the array is one of axis -1): all that is behind this axis.
  template <bool take, class Lines>
  void slices(int axis, uint64_t begin, uint64_t end, Lines lines) const {
    const int next = next_axis(axis);
    if (next < 0 || next == last_axis) {
      if (!take && next >= 0) change_blocks(take, next, begin, end);
      lines(begin, end);
      if (take && next >= 0) change_blocks(take, next, begin, end);
      return;
    }
    const uint64_t slice = grid_.inner(next);
    in_steps(begin, end, block_of(next), [&](uint64_t first, uint64_t last) {
      if (!take) change_blocks(take, next, first, last);
      in_steps(first, last, parts_in_cache(slice) * slice,
               [&](uint64_t from, uint64_t to) { slices<take>(next, from, to, lines); });
      if (take) change_blocks(take, next, first, last);
    });
  }

  static uint64_t parts_in_cache(uint64_t part) { return std::max<uint64_t>(elements_in_cache / part, 1); }

  // The differences along an axis in its blocks that are elements [begin, end).
  void change_blocks(bool take, int axis, uint64_t begin, uint64_t end) const {
    const uint64_t item = code_element_of(job_.element).width / 8;
    const uint64_t units = difference_units((end - begin) / block_of(axis), grid_.inner(axis));
    change(take, axis, codes_ + begin * item, 0, units);
  }

  void change(bool take, int axis, uint8_t* codes, uint64_t begin, uint64_t end) const {
    functions_.change_differences(job_, take, grid_.sizes[axis], grid_.inner(axis), codes, begin, end);
  }

  const PredictionJob& job_;
  const Prediction& prediction_;
  const Axes& grid_;
  uint8_t* codes_;
  int threads_;
  const PredictionFunctions& functions_;
  double coarse_bound_;
};

}  // namespace arrcomp::cpu
