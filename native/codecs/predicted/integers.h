// Integers for elements that are kept without loss (FORMAT.md, sections 9.3 and 9.6). Two kinds have the same functions:
//   of(bits, x, failed)    that of an element, which are its bits or its number; in lanes of `failed` no integer gives it back
//   of_number(x)           that of a number which need not be an element
//   element(q)             the element's bits
#pragma once
#include "codecs/grouped/quantize.h"
#include "codecs/transform.h"
#include "stream/prediction.h"

namespace arrcomp::ARRCOMP_ISA {

// Bits in the order of numbers.
template <class T>
struct OrderedIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;

  ARRCOMP_METHOD static Word of(Word bits, Real, Mask& failed) {
    failed = mask(0);
    return order_floats(bits, T::width);
  }
  ARRCOMP_METHOD static Word of_number(Real x) { return order_floats(T::narrow(x), T::width); }
  ARRCOMP_METHOD static Word element(Word q) { return order_floats(q, T::width); }
};

// How often elements that are multiples have multiplier / divisor, and in the lowest bits their corrections.
template <class T>
class MultipleIntegers {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Number = typename Real::scalar;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD explicit MultipleIntegers(const Multiples& multiples)
      : offset_(static_cast<Number>(multiples.offset)),
        divisor_(static_cast<Number>(multiples.divisor)),
        inverse_(divisor_ / static_cast<Number>(multiples.multiplier)),
        correction_bits_(static_cast<int>(multiples.correction_bits)),
        corrections_((1u << correction_bits_) - 1) {
    // Integers are as many times too large for it.
    multiplier_ = static_cast<Number>(multiples.multiplier) / static_cast<Number>(1u << correction_bits_);
  }

  ARRCOMP_METHOD Word of(Word bits, Real x, Mask& failed) const {
    const Word uncorrected = nearest(x) << correction_bits_;
    const Word correction = bits - element(uncorrected);  // from the least one on
    failed = ne(correction >> correction_bits_, splat<Word>(0));
    return uncorrected + correction;
  }
  ARRCOMP_METHOD Word of_number(Real x) const { return (nearest(x) << correction_bits_) + corrected_down(); }
  ARRCOMP_METHOD Word element(Word q) const {
    const Word correction = q & splat<Word>(static_cast<Scalar>(corrections_));
    const Real multiple = seed_value(q - correction) * splat<Real>(multiplier_) / splat<Real>(divisor_);
    return T::narrow(multiple + splat<Real>(offset_)) + (correction - corrected_down());
  }

 private:
  ARRCOMP_METHOD Word nearest(Real x) const {
    const Real scaled = (x - splat<Real>(offset_)) * splat<Real>(inverse_);
    Number most;
    largest_integer(most);
    return round_to_integer(select(le(size(scaled), splat<Real>(most)), scaled, splat<Real>(0)));
  }

  // The least correction is the negative of this.
  ARRCOMP_METHOD Word corrected_down() const { return splat<Word>(static_cast<Scalar>(corrections_ >> 1)); }

  Number multiplier_, offset_, divisor_, inverse_;
  int correction_bits_;
  uint32_t corrections_;  // a mask
};

// One kind or the other.
template <class T>
class LosslessIntegers {
 public:
  ARRCOMP_METHOD explicit LosslessIntegers(const Multiples& multiples)
      : are_multiples_(multiples.is_given()), multiples_(are_multiples_ ? multiples : Multiples{1, 1, 0, 0}) {}

  // Calls visit(integers).
  template <class Visit>
  ARRCOMP_METHOD auto visit(Visit visit) const {
    return are_multiples_ ? visit(multiples_) : visit(OrderedIntegers<T>());
  }

  // In lanes of `failed` no integer gives back the element.
  ARRCOMP_METHOD typename T::Word of(typename T::Word bits, typename T::Real x, Mask& failed) const {
    return visit([&](const auto& integers) ARRCOMP_LAMBDA { return integers.of(bits, x, failed); });
  }

  ARRCOMP_METHOD typename T::Word element(typename T::Word q) const {
    return visit([&](const auto& integers) ARRCOMP_LAMBDA { return integers.element(q); });
  }

 private:
  bool are_multiples_;
  MultipleIntegers<T> multiples_;
};

}  // namespace arrcomp::ARRCOMP_ISA
