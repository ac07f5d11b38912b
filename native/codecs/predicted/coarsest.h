// The coarsest grid: integers for its elements (FORMAT.md, section 9.4).
#pragma once
#include "codecs/predicted/code.h"
#include "codecs/predicted/differences.h"
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
    if constexpr (T::quantizes)
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
    Mask unserved;
    const Word q = integer(bits, unserved);
    failed = gaps | unserved;
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

  ARRCOMP_METHOD Word integer(Word bits, Mask& unserved) const {
    if constexpr (T::quantizes)
      if (!is_lossless_) return quantizer_.quantize(bits, unserved);
    return integers_.of(bits, T::widen(bits), unserved);
  }
  ARRCOMP_METHOD Word value(Word q) const {
    if constexpr (T::quantizes)
      if (!is_lossless_) return quantizer_.element(q);
    return integers_.element(q);
  }

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

}  // namespace arrcomp::ARRCOMP_ISA
