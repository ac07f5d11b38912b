// Integers for elements that are multiples of one number, or nearly so (FORMAT.md, section 9.6).
#pragma once
#include "codecs/grouped/quantize.h"
#include "stream/multiples.h"

namespace arrcomp::ARRCOMP_ISA {

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

}  // namespace arrcomp::ARRCOMP_ISA
