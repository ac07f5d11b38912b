// Steps between a grid and the coarser one that has every second slice of it (FORMAT.md, section 9.2).
#pragma once
#include "codecs/predicted/code.h"
#include "codecs/predicted/interpolation.h"

namespace arrcomp::ARRCOMP_ISA {

// A part of a step. Parts are independent of each other, and may begin and end anywhere.
template <class T>
class PartOfStep {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Scalar = typename Word::scalar;
  using Storage = typename T::storage;

 public:
  ARRCOMP_METHOD PartOfStep(const Refinement& step, Window<T>& window)
      : step_(step), window_(window), predicted_(step.kind, T::largest) {}

  // Copies elements [begin, end) of the coarser grid out of the finer one.
  ARRCOMP_PART void coarsen(const void* fine, void* coarse, uint64_t begin, uint64_t end) const {
    uint64_t to = begin;
    if (step_.inner > 1) {
      each_piece(begin, end, step_.inner, step_.coarse(),
                 [&](uint64_t block, uint64_t i, uint64_t first, uint64_t last) ARRCOMP_LAMBDA {
                   const uint64_t slice = block * step_.size + step_.place(i);
                   copy(fine, slice * step_.inner + first, coarse, to, last - first);
                   to += last - first;
                 });
      return;
    }
    each_piece(begin, end, step_.coarse(), 1,
               [&](uint64_t line, uint64_t, uint64_t first, uint64_t last) ARRCOMP_LAMBDA {
                 const uint64_t pairs = last < step_.known() ? last : step_.known();
                 for (uint64_t i = first; i < pairs; i += lanes_per_row) {
                   const uint64_t row = whole_row(i, first, pairs);
                   const int n = lanes(pairs - row);
                   const uint64_t left = step_.size - 2 * row, own = 2 * static_cast<uint64_t>(n);
                   Word even, odd;
                   load_two(fine, line * step_.size + 2 * row, static_cast<int>(left < own ? left : own), even, odd);
                   store_elements<T>(coarse, to + row - first, n, even);
                 }
                 to += last - first;
                 if (last > pairs) copy(fine, line * step_.size + step_.place(pairs), coarse, to - 1, 1);
               });
  }

  // Writes codes [begin, end) of the step, from `codes` on: of the elements of `fine` that the coarser grid does not
  // have. `made` gets those of both grids as they are decoded; null where nobody needs them.
  ARRCOMP_PART Unserved encode(const CodeBook<T>& book, const Gaps<T>& gaps, const void* coarse, const void* fine,
                               void* made, Scalar* codes, uint64_t begin, uint64_t end) const {
    UnservedLanes<T> unserved;
    const bool is_kept = made == nullptr;  // else it may stand in place of what is read
    each_row(coarse, made, begin, end, is_kept, [&](const Neighbours<Real>& near, const Row& row) ARRCOMP_LAMBDA {
      Word even, bits, value;
      Mask failed;
      if (step_.inner > 1) {
        bits = load_elements<T>(fine, row.fine, row.n);
      } else {
        load_two(fine, row.fine, 2 * row.n, even, bits);
      }
      const Real x = T::widen(bits);
      const Word q = book.code(predicted_(near), bits, x, gaps, value, failed);
      codes -= row.again;
      store_row(codes, q, row.n);
      codes += row.n;
      unserved.add(gaps, bits, failed & first_lanes(row.n));
      if (made != nullptr) store_values(coarse, made, row, value);
    });
    return unserved.kind();
  }

  // Makes the elements of the finer grid that belong to codes [begin, end), which stand from `codes` on.
  ARRCOMP_PART void decode(const CodeBook<T>& book, const void* coarse, const Scalar* codes, void* fine, uint64_t begin,
                           uint64_t end) const {
    each_row(coarse, fine, begin, end, true, [&](const Neighbours<Real>& near, const Row& row) ARRCOMP_LAMBDA {
      codes -= row.again;
      const Word q = load_row(codes, row.n);
      codes += row.n;
      store_values(coarse, fine, row, book.value(predicted_(near), q));
    });
  }

 private:
  // n values that the coarser grid does not have: where the first of them stands in the finer grid. On a line, where the
  // element before it stands there and in the coarser grid. The row before has the first `again` of them too.
  struct Row {
    uint64_t fine, coarse;
    int n, again;
  };

  ARRCOMP_METHOD static int lanes(uint64_t left) {
    return left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
  }

  // Where the row of elements [first, last) begins that has element `i` as its first. On a CPU, which takes long for a part
  // of a row, it ends with the last element, and has some again, if there are as many and these are still there.
  ARRCOMP_METHOD static uint64_t whole_row(uint64_t i, uint64_t first, uint64_t last, bool is_kept = true) {
    if constexpr (tiles_in_registers) return i;
    return is_kept && last - i < lanes_per_row && last - first >= lanes_per_row ? last - lanes_per_row : i;
  }

  // Calls visit(block, i, first, last) with the pieces of lines that are in [begin, end): lines of `size`, of which a
  // block has so many.
  template <class Visit>
  ARRCOMP_METHOD static void each_piece(uint64_t begin, uint64_t end, uint64_t size, uint64_t lines, Visit visit) {
    const uint64_t line = begin / size;
    uint64_t block = lines == 1 ? line : line / lines, i = line - block * lines, first = begin - line * size;
    for (uint64_t left = end - begin; left > 0;) {
      const uint64_t last = size - first < left ? size : first + left;
      visit(block, i, first, last);
      left -= last - first;
      first = 0;
      if (++i < lines) continue;
      i = 0;
      ++block;
    }
  }

  // Calls visit(neighbours, row) for the values of a step, and copies the elements of the coarser grid beside them to
  // `fine`, if it is not null, but for those that visit has. `is_kept`: what visit reads is there after it too.
  template <class Visit>
  ARRCOMP_METHOD void each_row(const void* coarse, void* fine, uint64_t begin, uint64_t end, bool is_kept,
                               Visit visit) const {
    if (step_.inner > 1) {
      each_piece(begin, end, step_.inner, step_.fine(),
                 [&](uint64_t block, uint64_t i, uint64_t first, uint64_t last) ARRCOMP_LAMBDA {
                   const Slices<T> slices(coarse, block * step_.coarse() * step_.inner, step_, i);
                   const bool is_near_moved = step_.last_weight != 1 && i + 3 >= step_.known();
                   const Real weight = splat<Real>(static_cast<typename Real::scalar>(step_.last_weight));
                   const uint64_t odd = (block * step_.size + 2 * i + 1) * step_.inner;
                   const auto visit_row = [&](uint64_t j, auto neighbours) ARRCOMP_LAMBDA {
                     const uint64_t at = whole_row(j, first, last, is_kept);
                     const int n = lanes(last - at);
                     visit(neighbours(at, n), Row{odd + at, 0, n, static_cast<int>(j - at)});
                   };
                   if (!is_near_moved) {
                     ARRCOMP_ROLLED
                     for (uint64_t j = first; j < last; j += lanes_per_row)  // counted: between slices, 1 row
                       visit_row(j, [&](uint64_t at, int n) ARRCOMP_LAMBDA { return slices.at(at, n); });
                   } else {
                     ARRCOMP_ROLLED
                     for (uint64_t j = first; j < last; j += lanes_per_row)
                       visit_row(j,
                                 [&](uint64_t at, int n) ARRCOMP_LAMBDA { return slices.near_moved(weight, at, n); });
                   }
                   if (fine != nullptr) copy_slices(coarse, fine, block, i, first, last);
                 });
      return;
    }
    each_piece(begin, end, step_.fine(), 1, [&](uint64_t line, uint64_t, uint64_t first, uint64_t last) ARRCOMP_LAMBDA {
      const uint64_t fine_line = line * step_.size, coarse_line = line * step_.coarse();
      for (uint64_t i = first; i < last; i += line_segment) {
        const uint64_t count = last - i < line_segment ? last - i : line_segment;
        window_.open(coarse, coarse_line, step_, i, count);
        ARRCOMP_ROLLED
        for (uint64_t j = 0; j < count; j += lanes_per_row) {  // counted: between elements, 1 row
          const uint64_t at = whole_row(j, 0, count, is_kept);
          const Row row{fine_line + 2 * (i + at), coarse_line + i + at, lanes(count - at), static_cast<int>(j - at)};
          visit(window_.at(at), row);
        }
      }
      if (fine != nullptr && last == step_.fine() && step_.coarse() > last)
        copy(coarse, coarse_line + last, fine, fine_line + 2 * last, step_.coarse() - last);
    });
  }

  // The piece of the slice before the values, and behind the last of them those there.
  ARRCOMP_METHOD void copy_slices(const void* coarse, void* fine, uint64_t block, uint64_t i, uint64_t first,
                                  uint64_t last) const {
    const uint64_t end = i + 1 == step_.fine() ? step_.coarse() : i + 1;
    for (; i < end; ++i)
      copy(coarse, (block * step_.coarse() + i) * step_.inner + first, fine,
           (block * step_.size + step_.place(i)) * step_.inner + first, last - first);
  }

  // `count` elements of a line, every second to `even`, the others to `odd`.
  ARRCOMP_METHOD static void load_two(const void* fine, uint64_t first, int count, Word& even, Word& odd) {
    const auto* const p = element_pointer<T>(fine, first);
    if (count == 2 * lanes_per_row) return load_pairs(p, even, odd);
    load_first_pairs(p, count, even, odd);
  }

  // The values behind elements of the coarser grid; on a line these come between them.
  ARRCOMP_METHOD void store_values(const void* coarse, void* fine, const Row& row, Word odd) const {
    if (step_.inner > 1) return replace_elements<T>(fine, row.fine, row.n, odd);
    const Word even = load_elements<T>(coarse, row.coarse, row.n);
    auto* const p = const_cast<Storage*>(element_pointer<T>(fine, row.fine));
    if (row.n == lanes_per_row) return store_pairs(p, even, odd);
    store_first_pairs(p, even, odd, 2 * row.n);
  }

  ARRCOMP_METHOD static void copy(const void* from, uint64_t first, void* to, uint64_t to_first, uint64_t count) {
    for (uint64_t j = 0; j < count; j += lanes_per_row) {
      const uint64_t at = whole_row(j, 0, count);
      const int n = lanes(count - at);
      store_elements<T>(to, to_first + at, n, load_elements<T>(from, first + at, n));
    }
  }

  const Refinement& step_;
  Window<T>& window_;
  Interpolator<Real> predicted_;
};

}  // namespace arrcomp::ARRCOMP_ISA
