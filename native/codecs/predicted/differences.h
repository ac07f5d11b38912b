// Differences of integers along axes, in place, and back (FORMAT.md, section 9.4). Where there is no other grid than the
// coarsest, this is the Lorenzo predictor (L. Ibarria et al., Computer Graphics Forum 22, 2003).
#pragma once
#include "codecs/predicted/code.h"

namespace arrcomp::ARRCOMP_ISA {

// A row of which lanes move up, by a number that is known when it runs.
template <class Word>
class MovedRow {
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD MovedRow() { store(lanes_, splat<Word>(0)); }

  // Lanes below get 0.
  ARRCOMP_METHOD Word up(Word x, int lanes) {
    store(lanes_ + lanes_per_row, x);
    return load(lanes_ + lanes_per_row - lanes);
  }

 private:
  Scalar lanes_[2 * lanes_per_row];
};

// Calls change(x, before, i) for the rows of integers from `first` on, the last row first, and stores what it returns: before(k)
// is what stands k places before the elements, or 0 before the first of all; i is the place of the row.
template <class Scalar, class Change>
ARRCOMP_METHOD void change_rows_from_last(Scalar* first, uint64_t count, Change change) {
  using Word = decltype(load(first));
  MovedRow<Word> moved;
  for (uint64_t i = round_up(count, lanes_per_row); i > 0;) {
    i -= lanes_per_row;
    const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    Scalar* const row = first + i;
    const Word x = load_row(row, n);
    const auto before = [&](int k) ARRCOMP_LAMBDA { return i > 0 ? load_row(row - k, n) : moved.up(x, k); };
    store_row(row, change(x, before, i), n);
  }
}

// Of elements that stand `lag` places apart: slices of so few that a row has several. For CPUs.
template <class Word>
class LaggedLine {
  using Scalar = typename Word::scalar;

 public:
  static constexpr int most = 16;

  ARRCOMP_METHOD LaggedLine(Scalar* integers, int lag, uint64_t count)
      : integers_(integers), lag_(lag), count_(count) {}

  ARRCOMP_PART void take() const {
    change_rows_from_last(integers_, count_,
                          [&](Word x, auto before, uint64_t) ARRCOMP_LAMBDA { return x - before(lag_); });
  }

  ARRCOMP_PART void add() const {
    MovedRow<Word> moved;
    uint32_t places[lanes_per_row];  // in the row before, of what each lane follows
    for (int lane = 0; lane < lanes_per_row; ++lane)
      places[lane] = static_cast<uint32_t>(lanes_per_row - lag_ + lane % lag_);
    for_each_row(0, count_, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      Word x = load_row(integers_ + i, n);
      for (int distance = lag_; distance < lanes_per_row; distance *= 2) x = x + moved.up(x, distance);
      if (i > 0) x = x + gather_elements<Word>(integers_ + i - lanes_per_row, load(places));
      store_row(integers_ + i, x, n);
    });
  }

 private:
  Scalar* integers_;
  int lag_;
  uint64_t count_;
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
    if (is_lagged()) return LaggedLine<Word>(begin_, static_cast<int>(inner_), size_ * inner_).take();
    if (inner_ == 1)
      return each_of_line([](Word x, Word before) ARRCOMP_LAMBDA { return x - shift_in(before, x); }, false);
    for (uint64_t i = size_; --i > 0;) each_of_slice(i, [](Word x, Word before) ARRCOMP_LAMBDA { return x - before; });
  }

  ARRCOMP_PART void add() const {
    if (is_lagged()) return LaggedLine<Word>(begin_, static_cast<int>(inner_), size_ * inner_).add();
    if (inner_ == 1)
      return each_of_line([](Word x, Word before) ARRCOMP_LAMBDA { return prefix_sum(x) + broadcast_last(before); },
                          true);
    for (uint64_t i = 1; i < size_; ++i)
      each_of_slice(i, [](Word x, Word before) ARRCOMP_LAMBDA { return x + before; });
  }

 private:
  // Whether a row has several slices. A warp takes them one by one.
  ARRCOMP_METHOD bool is_lagged() const { return keeps_rows && inner_ > 1 && inner_ <= LaggedLine<Word>::most; }

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

// The same of lines along the last axis, of so few elements that a row has several: the colours of pixels, say. For CPUs.
template <class Word>
class ShortLines {
  using Scalar = typename Word::scalar;

 public:
  static constexpr uint64_t longest = 8;  // elements of a line

  // Of `count` integers: lines of `size`.
  ARRCOMP_METHOD ShortLines(Scalar* integers, uint64_t size, uint64_t count)
      : integers_(integers), size_(static_cast<int>(size)), count_(count) {
    for (int i = 0; i < 2 * lanes_per_row; ++i) places_[i] = static_cast<uint32_t>(i % size_);
  }

  ARRCOMP_PART void take() const {
    each_row([&](Word x, auto before) ARRCOMP_LAMBDA { return x - before(1); });
  }

  ARRCOMP_PART void add() const {
    each_row([&](Word x, auto before) ARRCOMP_LAMBDA {
      Word sum = x;
      for (int k = 1; k < size_; ++k) sum = sum + before(k);
      return sum;
    });
  }

 private:
  // change(x, before) of each row: before(k) is what stands k places before on the same line, or 0.
  template <class Change>
  ARRCOMP_METHOD void each_row(Change change) const {
    change_rows_from_last(integers_, count_, [&](Word x, auto before, uint64_t i) ARRCOMP_LAMBDA {
      const U32 place = load(places_ + i % static_cast<uint64_t>(size_));
      return change(x, [&](int k) ARRCOMP_LAMBDA {
        return select(ge(place, splat<U32>(static_cast<uint32_t>(k))), before(k), splat<Word>(0));
      });
    });
  }

  Scalar* integers_;
  int size_;
  uint64_t count_;
  uint32_t places_[2 * lanes_per_row];  // on a line
};

}  // namespace arrcomp::ARRCOMP_ISA
