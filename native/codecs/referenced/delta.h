// What an element differs in from the reference's, as a code, and back (FORMAT.md, sections 10.3 and 10.5).
#pragma once
#include "codecs/predicted/code.h"
#include "stream/reference.h"

namespace arrcomp::ARRCOMP_ISA {

// Gaps of types that have numbers.
template <class T, bool quantizes = T::quantizes>
struct GapsOf : Gaps<T> {
  using Gaps<T>::Gaps;
};
template <class T>
struct GapsOf<T, false> {
  ARRCOMP_METHOD explicit GapsOf(const GroupSettings&) {}
};

// Without loss, or with mantissas rounded: codes are made of bits.
template <class T>
class BitDelta {
 public:
  using Word = typename T::Word;
  using Stored = typename T::storage;  // of codes in memory
  static constexpr bool are_bits = true;

  ARRCOMP_METHOD explicit BitDelta(const ReferenceJob& job)
      : element_(job.element),
        is_difference_(job.way == ReferenceWay::difference),
        rounded_(job.rounded_bits),
        pointwise_(job.settings.bound),
        gaps_(job.settings) {}

  // The code, and no lane that is kept exactly.
  ARRCOMP_METHOD Word code(Word bits, Word reference, Mask& exact) const {
    exact = mask(0);
    if constexpr (T::quantizes)
      if (rounded_ > 0) bits = bounded(bits, reference);
    return (is_difference_ ? bits - reference : bits ^ reference) & ones<Word>(T::width);
  }

  ARRCOMP_METHOD Word element(Word code, Word reference) const {
    return is_difference_ ? reference + code : reference ^ code;
  }

  ARRCOMP_METHOD bool is_signed() const { return is_difference_; }

 private:
  // The element that is kept: the reference's where that is within the pointwise bound, or a rounded one.
  ARRCOMP_METHOD Word bounded(Word bits, Word reference) const {
    const Word kept = select(serves(bits, reference), reference, round_mantissa<T>(bits, rounded_, element_));
    return select(gaps_.in(bits, T::widen(bits)), bits, kept);
  }

  // Where the reference is within the pointwise bound of a number: surely, as both sides are rounded.
  ARRCOMP_METHOD Mask serves(Word bits, Word reference) const {
    using Real = typename T::Real;
    using Scalar = typename Real::scalar;
    constexpr Scalar least = sizeof(Scalar) == 8 ? Scalar(0x1p-1000) : Scalar(0x1p-100);
    const Real x = T::widen(bits);
    const Real most = size(x) * splat<Real>(static_cast<Scalar>(pointwise_ * (1 - 0x1p-20)));
    return le(size(x - T::widen(reference)), most) & le(splat<Real>(least), most);
  }

  Element element_;
  bool is_difference_;
  int rounded_;  // bits of the mantissa
  double pointwise_;
  GapsOf<T> gaps_;
};

// With an absolute bound: codes are numbers of steps.
template <class T>
class StepDelta {
 public:
  using Word = typename T::Word;
  using Stored = typename Word::scalar;
  static constexpr bool are_bits = false;

  ARRCOMP_METHOD explicit StepDelta(const ReferenceJob& job) : book_(job.bound, full_scale), gaps_(job.settings) {}

  // The code, and the lanes that no code serves, where it is 0.
  ARRCOMP_METHOD Word code(Word bits, Word reference, Mask& exact) const {
    const Word zero = splat<Word>(0);
    const Real x = T::widen(bits);
    const Mask same = eq(bits, reference), finite = is_finite(reference);
    Word value;
    const Word code = book_.code(from(reference, finite), bits, x, gaps_, value, exact);
    exact = (exact | (eq(code, zero) & ~finite)) & ~same;
    return select(exact | same, zero, code);
  }

  ARRCOMP_METHOD Word element(Word code, Word reference) const {
    const Word value = book_.value(from(reference, is_finite(reference)), code);
    return select(eq(code, splat<Word>(0)), reference, value);
  }

  ARRCOMP_METHOD static bool is_signed() { return true; }

 private:
  using Real = typename T::Real;

  ARRCOMP_METHOD static Mask is_finite(Word bits) {
    return le(size(T::widen(bits)), splat<Real>(static_cast<typename Real::scalar>(T::largest)));
  }
  ARRCOMP_METHOD static Real from(Word reference, Mask finite) {
    return select(finite, T::widen(reference), splat<Real>(0));
  }

  CodeBook<T> book_;
  Gaps<T> gaps_;
};

// What is stored of a code in a list, which is not 0, and back.
template <class Word>
ARRCOMP_INLINE Word listed_code(Word code, bool is_signed, int width) {
  const Word one = splat<Word>(1);
  if (!is_signed) return code - one;
  return code - one - sar(sign_extend(code, width), static_cast<int>(sizeof(typename Word::scalar)) * 8 - 1);
}
template <class Word>
ARRCOMP_INLINE Word code_of_list(Word stored, bool is_signed, int width) {
  const Word one = splat<Word>(1);
  if (!is_signed) return stored + one;
  return stored + one + sar(sign_extend(stored, width), static_cast<int>(sizeof(typename Word::scalar)) * 8 - 1);
}

}  // namespace arrcomp::ARRCOMP_ISA
