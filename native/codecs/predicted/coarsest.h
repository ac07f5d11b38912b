// The coarsest grid: integers, and their differences along axes (FORMAT.md, section 9.4). This is the Lorenzo predictor
// (L. Ibarria et al., Computer Graphics Forum 22, 2003) where there is no other grid.
#pragma once
#include "codecs/predicted/code.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// Integers for elements: multiples of the step, or those without loss.
template <class T>
class GridIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Scalar = typename Word::scalar;

 public:
  // `bound` 0: without loss. Else `coarse_bound` makes the steps, which are finer than the bound asks for.
  ARRCOMP_METHOD GridIntegers(double bound, double coarse_bound, const Multiples& multiples)
      : is_lossless_(bound == 0), integers_(multiples), quantizer_(is_lossless_ ? 1 : coarse_bound) {
    if (!is_lossless_) quantizer_.bound = limit_within(bound, quantizer_.bound);
  }

  // Writes the integers of a line of `count` elements. A gap, and what no integer serves, gets the integer before it,
  // or behind it where the line begins so. `made`, if it is not null, gets the elements that are decoded.
  ARRCOMP_PART Unserved encode(const Gaps<T>& gaps, const void* source, uint64_t first, uint64_t count, void* made,
                               Scalar* integers) const {
    UnservedLanes<T> unserved;
    bool has_value = false;
    Word before = splat<Word>(0);
    for (uint64_t i = 0; i < count; i += lanes_per_row) {
      const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
      const Word bits = load_elements<T>(source, first + i, n);
      Mask failed;
      Word q = integer(bits, gaps.in(bits, T::widen(bits)), failed);
      if (!has_value && !all_of_row(failed)) {
        has_value = true;
        before = splat<Word>(value_of_first(q, ~failed));
        fill(integers, i, before, made, first);
      }
      if (any(failed)) q = filled(q, failed, before);
      before = broadcast_last(q);
      replace_row(integers + i, q, n);
      if (made != nullptr) replace_elements<T>(made, first + i, n, value(q));
      unserved.add(gaps, bits, failed);
    }
    return unserved.kind();
  }

  ARRCOMP_METHOD Word integer(Word bits, Mask gaps, Mask& failed) const {
    failed = gaps;
    Mask unserved;
    const Word q = is_lossless_ ? integers_.of(bits, T::widen(bits), unserved) : quantizer_.quantize(bits, unserved);
    failed = failed | unserved;
    return q;
  }

  // Makes elements of integers.
  ARRCOMP_PART void decode(const Scalar* integers, uint64_t first, uint64_t count, void* target) const {
    for (uint64_t i = 0; i < count; i += lanes_per_row) {
      const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
      const Word q = load_row(integers + i, n);
      replace_elements<T>(target, first + i, n, value(q));
    }
  }

 private:
  ARRCOMP_METHOD static bool all_of_row(Mask m) { return bits(m) == ~0u; }

  ARRCOMP_METHOD Word value(Word q) const { return is_lossless_ ? integers_.element(q) : quantizer_.element(q); }

  // Lanes of `failed` get the value of the lane before, the first of a row that of `before`.
  ARRCOMP_METHOD static Word filled(Word q, Mask failed, Word before) {
    Mask open = failed;
    while (any(open)) {
      const Mask waiting = open & mask(bits(open) << 1);
      q = select(open & ~waiting, shift_in(before, q), q);
      open = waiting;
    }
    return q;
  }

  // The first `count` integers of a line that begins with gaps.
  ARRCOMP_METHOD void fill(Scalar* integers, uint64_t count, Word q, void* made, uint64_t first) const {
    for (uint64_t i = 0; i < count; i += lanes_per_row) {
      store(integers + i, q);
      if (made != nullptr) replace_elements<T>(made, first + i, lanes_per_row, value(q));
    }
  }

  bool is_lossless_;
  LosslessIntegers<T> integers_;
  Quantizer<T> quantizer_;
};

// Differences of integers along an axis, in place, and back: of `outer` blocks, of `size` slices of `inner` each. A unit
// is a line, or so many elements of all slices of a block.
template <class Word>
class AxisDifferences {
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD AxisDifferences(Scalar* integers, uint64_t size, uint64_t inner, uint64_t unit)
      : size_(size), inner_(inner) {
    const Column column(inner, unit);
    width_ = column.width;
    begin_ = integers + column.block * size * inner + column.begin;
  }

  ARRCOMP_PART void take() const {
    if (inner_ == 1)
      return each_of_line([](Word x, Word before) ARRCOMP_LAMBDA { return x - shift_in(before, x); }, false);
    for (uint64_t i = size_; --i > 0;) each_of_slice(i, [](Word x, Word before) ARRCOMP_LAMBDA { return x - before; });
  }

  ARRCOMP_PART void add() const {
    if (inner_ == 1)
      return each_of_line([](Word x, Word before) ARRCOMP_LAMBDA { return prefix_sum(x) + broadcast_last(before); },
                          true);
    for (uint64_t i = 1; i < size_; ++i)
      each_of_slice(i, [](Word x, Word before) ARRCOMP_LAMBDA { return x + before; });
  }

 private:
  // change(x, before) of each row, with the row before as it was, or as it became.
  template <class Change>
  ARRCOMP_METHOD void each_of_line(Change change, bool as_it_became) const {
    Word before = splat<Word>(0);
    for (uint64_t i = 0; i < size_; i += lanes_per_row) {
      const int n = size_ - i < lanes_per_row ? static_cast<int>(size_ - i) : lanes_per_row;
      const Word x = load_row(begin_ + i, n);
      const Word changed = change(x, before);
      replace_row(begin_ + i, changed, n);
      before = as_it_became ? changed : x;
    }
  }

  template <class Change>
  ARRCOMP_METHOD void each_of_slice(uint64_t slice, Change change) const {
    Scalar* const p = begin_ + slice * inner_;
    for (uint64_t j = 0; j < width_; j += lanes_per_row) {
      const int n = width_ - j < lanes_per_row ? static_cast<int>(width_ - j) : lanes_per_row;
      replace_row(p + j, change(load_row(p + j, n), load_row(p + j - inner_, n)), n);
    }
  }

  uint64_t size_, inner_, width_;
  Scalar* begin_;
};

}  // namespace arrcomp::ARRCOMP_ISA
