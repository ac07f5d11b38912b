// Steps between a grid and the coarser one that has every second slice of it (FORMAT.md, section 9.2). The work of a
// step is divided into units, which are independent of each other.
#pragma once
#include "codecs/predicted/code.h"
#include "codecs/predicted/interpolation.h"

namespace arrcomp::ARRCOMP_ISA {

// Elements of a line that is cut into segments, or of a slice and the one behind it.
template <class T>
class RefinementUnit {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Scalar = typename Word::scalar;
  using Storage = typename T::storage;

 public:
  ARRCOMP_METHOD RefinementUnit(const Refinement& step, uint64_t unit) : step_(step) {
    const uint64_t units = step.units_per_block();
    block_ = unit / units;
    part_ = unit % units;
  }

  // Copies the elements of the coarser grid out of the finer one.
  ARRCOMP_PART void coarsen(const void* fine, void* coarse) const {
    if (step_.inner > 1) return copy(fine, fine_slice(0), coarse, coarse_slice());
    const uint64_t first = part_ * line_segment, end = is_last() ? step_.coarse() : first + line_segment;
    for (uint64_t i = first; i < end; i += lanes_per_row) {
      Word even, odd;
      const int n = lanes(end - i);
      load_two(fine, 2 * i, n, even, odd);
      store_elements<T>(coarse, block_ * step_.coarse() + i, n, even);
    }
  }

  // Codes the elements of `fine` that the coarser grid does not have. `made` gets those of both grids as they are
  // decoded; null where nobody needs them. Whether all are within the bound.
  ARRCOMP_PART bool encode(const CodeBook<T>& book, const Gaps<T>& gaps, const void* coarse, const void* fine, void* made,
                           Scalar* codes) const {
    Mask all_failed = mask(0);
    each_row(coarse, [&](const Neighbours<Real>& near, uint64_t i, int n) ARRCOMP_LAMBDA {
      Word even, bits, value;
      Mask failed;
      load_odd(fine, i, n, even, bits);
      const Real x = T::widen(bits);
      const Word code = book.code(predicted(near), bits, x, gaps.in(bits, x), value, failed);
      store_row(codes + code_index(i), code, n);
      all_failed = all_failed | failed;
      if (made != nullptr) store_values(made, i, n, T::narrow(near.before), value);
    });
    if (made != nullptr) finish(coarse, made);
    return !any(all_failed);
  }

  // Makes the elements of the finer grid.
  ARRCOMP_PART void decode(const CodeBook<T>& book, const void* coarse, const Scalar* codes, void* fine) const {
    each_row(coarse, [&](const Neighbours<Real>& near, uint64_t i, int n) ARRCOMP_LAMBDA {
      const Scalar* const p = codes + code_index(i);
      const Word code = n == lanes_per_row ? load(p) : load_first(p, n);
      store_values(fine, i, n, T::narrow(near.before), book.value(predicted(near), code));
    });
    finish(coarse, fine);
  }

 private:
  ARRCOMP_METHOD static int lanes(uint64_t left) {
    return left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
  }
  ARRCOMP_METHOD bool is_last() const { return part_ + 1 == step_.units_per_block(); }

  ARRCOMP_METHOD Real predicted(const Neighbours<Real>& near) const {
    return interpolated(step_.kind, near, splat<Real>(static_cast<typename Real::scalar>(T::largest)));
  }

  // Calls visit(neighbours, i, n) with rows of n values behind element i of the line, or of the slice.
  template <class Visit>
  ARRCOMP_METHOD void each_row(const void* coarse, Visit visit) const {
    if (step_.inner > 1) {
      if (part_ >= step_.fine()) return;
      const Slices<T> slices(coarse, block_ * step_.coarse() * step_.inner, step_.inner, step_.coarse(), part_);
      for (uint64_t j = 0; j < step_.inner; j += lanes_per_row) {
        const int n = lanes(step_.inner - j);
        visit(slices.at(j, n), j, n);
      }
      return;
    }
    Window<T> window;
    const uint64_t first = part_ * line_segment, end = is_last() ? step_.fine() : first + line_segment;
    window.open(coarse, block_ * step_.coarse(), step_.coarse(), first, end - first);
    for (uint64_t i = first; i < end; i += lanes_per_row) visit(window.at(i - first), i, lanes(end - i));
  }

  // Where the unit's slice of the coarser grid begins, and where the `k`th slice from there on does in the finer one.
  ARRCOMP_METHOD uint64_t coarse_slice() const { return (block_ * step_.coarse() + part_) * step_.inner; }
  ARRCOMP_METHOD uint64_t fine_slice(int k) const {
    return (block_ * step_.size + 2 * part_ + static_cast<uint64_t>(k)) * step_.inner;
  }

  ARRCOMP_METHOD uint64_t code_index(uint64_t i) const {
    return step_.inner > 1 ? (block_ * step_.fine() + part_) * step_.inner + i : block_ * step_.fine() + i;
  }

  // Elements 2 i and 2 i + 1 of the line, and the next ones: n of each, but for the last odd one of a line.
  ARRCOMP_METHOD void load_two(const void* fine, uint64_t i, int n, Word& even, Word& odd) const {
    const Storage* const p = element_pointer<T>(fine, block_ * step_.size + i);
    if (n == lanes_per_row && i + 2 * lanes_per_row <= step_.size) return load_pairs(p, even, odd);
    Storage copy[2 * lanes_per_row] = {};
    const uint64_t left = step_.size - i, size = left < 2 * lanes_per_row ? left : 2 * lanes_per_row;
    memcpy(copy, p, size * sizeof(Storage));
    load_pairs(copy, even, odd);
  }
  ARRCOMP_METHOD void load_odd(const void* fine, uint64_t i, int n, Word& even, Word& odd) const {
    if (step_.inner == 1) return load_two(fine, 2 * i, n, even, odd);
    odd = load_elements<T>(fine, fine_slice(1) + i, n);
  }

  ARRCOMP_METHOD void store_values(void* fine, uint64_t i, int n, Word even, Word odd) const {
    if (step_.inner > 1) return store_elements<T>(fine, fine_slice(1) + i, n, odd);
    auto* const p = const_cast<Storage*>(element_pointer<T>(fine, block_ * step_.size + 2 * i));
    if (n == lanes_per_row) return store_pairs(p, even, odd);
    Storage copy[2 * lanes_per_row];
    store_pairs(copy, even, odd);
    memcpy(p, copy, static_cast<size_t>(n) * 2 * sizeof(Storage));
  }

  // The elements of the coarser grid that no value stands behind, or all of its slice.
  ARRCOMP_METHOD void finish(const void* coarse, void* fine) const {
    if (step_.inner > 1) return copy(coarse, coarse_slice(), fine, fine_slice(0));
    if (step_.coarse() == step_.fine() || !is_last()) return;
    const Word last = load_elements<T>(coarse, (block_ + 1) * step_.coarse() - 1, 1);
    store_elements<T>(fine, (block_ + 1) * step_.size - 1, 1, last);
  }

  ARRCOMP_METHOD void copy(const void* from, uint64_t first, void* to, uint64_t to_first) const {
    for (uint64_t j = 0; j < step_.inner; j += lanes_per_row) {
      const int n = lanes(step_.inner - j);
      store_elements<T>(to, to_first + j, n, load_elements<T>(from, first + j, n));
    }
  }

  const Refinement& step_;
  uint64_t block_, part_;
};

}  // namespace arrcomp::ARRCOMP_ISA
