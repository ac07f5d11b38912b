// Mantissas with fewer bits, rounded to nearest, stochastically or towards zero (FORMAT.md, section 6.4). Classes never
// change: a NaN stays a NaN, and a finite number that would become infinite stays the largest one of so few bits.
#pragma once
#include "codecs/element_types.h"
#include "codecs/numeric/philox.h"
#include "stream/base_delta.h"

namespace arrcomp::ARRCOMP_ISA {

// The highest `bits` (1 to 52) of a random word as a number; above 32 bits the others are 0.
ARRCOMP_INLINE U32 random_bits(U32 word, int bits, U32) { return word >> (32 - bits); }
ARRCOMP_INLINE U64 random_bits(U32 word, int bits, U64) {
  if (bits <= 32) return join(word >> (32 - bits), splat<U32>(0));
  return join(word, splat<U32>(0)) << (bits - 32);
}

template <class T>
class BitDropper {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD BitDropper(const BaseDeltaSettings& settings, const Element& element)
      : dropped_(settings.drop_bits),
        rounding_(settings.rounding),
        low_((Scalar{1} << dropped_) - 1),
        exponents_(((Scalar{1} << element.exponent_bits) - 1) << element.mantissa_bits),
        mantissas_((Scalar{1} << element.mantissa_bits) - 1) {}

  ARRCOMP_METHOD bool drops() const { return T::quantizes && dropped_ > 0; }
  ARRCOMP_METHOD bool is_random() const { return drops() && rounding_ == DropRounding::stochastic; }

  // `random` is a word for each lane, where is_random().
  ARRCOMP_METHOD Word drop(Word bits, U32 random) const {
    const Word kept = bits & splat<Word>(static_cast<Scalar>(~low_));
    const Word exponents = splat<Word>(exponents_), mantissa = bits & splat<Word>(mantissas_);
    const Word rounded = (bits + addend(bits, random)) & splat<Word>(static_cast<Scalar>(~low_));
    const Mask is_special = eq(bits & exponents, exponents);
    const Mask is_nan = is_special & ne(mantissa, splat<Word>(0));
    const Mask stays = is_special | eq(rounded & exponents, exponents);
    const Word quiet = splat<Word>(static_cast<Scalar>(mantissas_ ^ mantissas_ >> 1));
    return select(stays, kept, rounded) | select(is_nan, quiet, splat<Word>(0));
  }

 private:
  ARRCOMP_METHOD Word addend(Word bits, U32 random) const {
    if (rounding_ == DropRounding::truncate) return splat<Word>(0);
    if (rounding_ == DropRounding::stochastic) return random_bits(random, dropped_, Word{});
    return splat<Word>(low_ >> 1) + (bits >> dropped_ & splat<Word>(1));  // ties to even
  }

  int dropped_;
  DropRounding rounding_;
  Scalar low_, exponents_, mantissas_;
};

}  // namespace arrcomp::ARRCOMP_ISA
