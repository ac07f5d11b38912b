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
  ARRCOMP_METHOD explicit PartOfStep(const Refinement& step) : step_(step) {}

  // Copies elements [begin, end) of the coarser grid out of the finer one.
  ARRCOMP_PART void coarsen(const void* fine, void* coarse, uint64_t begin, uint64_t end) const {
    const uint64_t size = step_.inner > 1 ? step_.inner : step_.coarse();
    each_piece(begin, end, size, [&](uint64_t line, uint64_t first, uint64_t last) ARRCOMP_LAMBDA {
      if (step_.inner > 1) {
        const uint64_t slice = line / step_.coarse() * step_.size + 2 * (line % step_.coarse());
        return copy(fine, slice * step_.inner + first, coarse, line * step_.inner + first, last - first);
      }
      for (uint64_t i = first; i < last; i += lanes_per_row) {
        Word even, odd;
        const int n = lanes(last - i);
        load_two(fine, line, i, n, even, odd);
        store_elements<T>(coarse, line * size + i, n, even);
      }
    });
  }

  // Writes codes [begin, end) of the step, from `codes` on: of the elements of `fine` that the coarser grid does not
  // have. `made` gets those of both grids as they are decoded; null where nobody needs them. Whether all are within the
  // bound.
  ARRCOMP_PART bool encode(const CodeBook<T>& book, const Gaps<T>& gaps, const void* coarse, const void* fine,
                           void* made, Scalar* codes, uint64_t begin, uint64_t end) const {
    Mask all_failed = mask(0);
    each_row(coarse, made, begin, end,
             [&](const Neighbours<Real>& near, uint64_t line, uint64_t i, int n, uint64_t code) ARRCOMP_LAMBDA {
               Word even, bits, value;
               Mask failed;
               load_odd(fine, line, i, n, even, bits);
               const Real x = T::widen(bits);
               const Word q = book.code(predicted(near), bits, x, gaps.in(bits, x), value, failed);
               store_row(codes + (code - begin), q, n);
               all_failed = all_failed | (failed & first_lanes(n));
               if (made != nullptr) store_values(coarse, made, line, i, n, value);
             });
    return !any(all_failed);
  }

  // Makes the elements of the finer grid that belong to codes [begin, end), which stand from `codes` on.
  ARRCOMP_PART void decode(const CodeBook<T>& book, const void* coarse, const Scalar* codes, void* fine, uint64_t begin,
                           uint64_t end) const {
    each_row(coarse, fine, begin, end,
             [&](const Neighbours<Real>& near, uint64_t line, uint64_t i, int n, uint64_t code) ARRCOMP_LAMBDA {
               const Scalar* const p = codes + (code - begin);
               const Word q = n == lanes_per_row ? load(p) : load_first(p, n);
               store_values(coarse, fine, line, i, n, book.value(predicted(near), q));
             });
  }

 private:
  ARRCOMP_METHOD static int lanes(uint64_t left) {
    return left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
  }

  ARRCOMP_METHOD Real predicted(const Neighbours<Real>& near) const {
    return interpolated(step_.kind, near, splat<Real>(static_cast<typename Real::scalar>(T::largest)));
  }

  // Calls visit(line, first, last) with the pieces of lines of `size` that are in [begin, end).
  template <class Visit>
  ARRCOMP_METHOD static void each_piece(uint64_t begin, uint64_t end, uint64_t size, Visit visit) {
    for (uint64_t at = begin; at < end;) {
      const uint64_t line = at / size, first = at % size;
      const uint64_t last = size - first < end - at ? size : first + (end - at);
      visit(line, first, last);
      at += last - first;
    }
  }

  // Calls visit(neighbours, line, i, n, code) with rows of n values behind element i of a line, or of a slice, and copies
  // the elements of the coarser grid beside them to `fine`, if it is not null, but for those that visit has.
  template <class Visit>
  ARRCOMP_METHOD void each_row(const void* coarse, void* fine, uint64_t begin, uint64_t end, Visit visit) const {
    const uint64_t size = step_.inner > 1 ? step_.inner : step_.fine();
    each_piece(begin, end, size, [&](uint64_t line, uint64_t first, uint64_t last) ARRCOMP_LAMBDA {
      if (step_.inner > 1) {
        const uint64_t block = line / step_.fine(), i = line % step_.fine();
        const Slices<T> slices(coarse, block * step_.coarse() * step_.inner, step_.inner, step_.coarse(), i);
        for (uint64_t j = first; j < last; j += lanes_per_row) {
          const int n = lanes(last - j);
          visit(slices.at(j, n), line, j, n, line * size + j);
        }
        if (fine != nullptr) copy_slices(coarse, fine, block, i, first, last);
      } else {
        Window<T> window;
        for (uint64_t i = first; i < last; i += line_segment) {
          const uint64_t count = last - i < line_segment ? last - i : line_segment;
          window.open(coarse, line * step_.coarse(), step_.coarse(), i, count);
          for (uint64_t j = 0; j < count; j += lanes_per_row)
            visit(window.at(j), line, i + j, lanes(count - j), line * size + i + j);
        }
        if (fine != nullptr && last == size && step_.coarse() > size)
          copy(coarse, (line + 1) * step_.coarse() - 1, fine, (line + 1) * step_.size - 1, 1);
      }
    });
  }

  // The piece of the slice before the values, and behind the last of them the one there.
  ARRCOMP_METHOD void copy_slices(const void* coarse, void* fine, uint64_t block, uint64_t i, uint64_t first,
                                  uint64_t last) const {
    const uint64_t end = i + 1 == step_.fine() ? step_.coarse() : i + 1;
    for (; i < end; ++i)
      copy(coarse, (block * step_.coarse() + i) * step_.inner + first, fine,
           (block * step_.size + 2 * i) * step_.inner + first, last - first);
  }

  ARRCOMP_METHOD uint64_t odd_slice(uint64_t line) const {
    return (line / step_.fine() * step_.size + 2 * (line % step_.fine()) + 1) * step_.inner;
  }

  // Elements 2 i and 2 i + 1 of the line, and the next ones: n of each, but for the last odd one of a line.
  ARRCOMP_METHOD void load_two(const void* fine, uint64_t line, uint64_t i, int n, Word& even, Word& odd) const {
    const Storage* const p = element_pointer<T>(fine, line * step_.size + 2 * i);
    if (n == lanes_per_row && 2 * i + 2 * lanes_per_row <= step_.size) return load_pairs(p, even, odd);
    Storage copy[2 * lanes_per_row] = {};
    const uint64_t left = step_.size - 2 * i, own = 2 * static_cast<uint64_t>(n), size = left < own ? left : own;
    memcpy(copy, p, size * sizeof(Storage));
    load_pairs(copy, even, odd);
  }
  ARRCOMP_METHOD void load_odd(const void* fine, uint64_t line, uint64_t i, int n, Word& even, Word& odd) const {
    if (step_.inner == 1) return load_two(fine, line, i, n, even, odd);
    odd = load_elements<T>(fine, odd_slice(line) + i, n);
  }

  // The values behind elements of the coarser grid; on a line these come between them.
  ARRCOMP_METHOD void store_values(const void* coarse, void* fine, uint64_t line, uint64_t i, int n, Word odd) const {
    if (step_.inner > 1) return store_elements<T>(fine, odd_slice(line) + i, n, odd);
    const Word even = load_elements<T>(coarse, line * step_.coarse() + i, n);
    auto* const p = const_cast<Storage*>(element_pointer<T>(fine, line * step_.size + 2 * i));
    if (n == lanes_per_row) return store_pairs(p, even, odd);
    Storage copy[2 * lanes_per_row];
    store_pairs(copy, even, odd);
    memcpy(p, copy, static_cast<size_t>(n) * 2 * sizeof(Storage));
  }

  ARRCOMP_METHOD static void copy(const void* from, uint64_t first, void* to, uint64_t to_first, uint64_t count) {
    for (uint64_t j = 0; j < count; j += lanes_per_row) {
      const int n = lanes(count - j);
      store_elements<T>(to, to_first + j, n, load_elements<T>(from, first + j, n));
    }
  }

  const Refinement& step_;
};

}  // namespace arrcomp::ARRCOMP_ISA
