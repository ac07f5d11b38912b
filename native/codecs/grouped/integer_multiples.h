// Chunks of integers that are multiples of one number, from another one on, such as time stamps of whole seconds in
// nanoseconds: each becomes the integer that counts it. FORMAT.md, section 3.6.
#pragma once
#include "codecs/grouped/numbered_elements.h"
#include "codecs/grouped/sampled_values.h"
#include "codecs/transform.h"
#include "stream/multiples_choice.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE U32 product(U32 x, U32 y) { return x * y; }
ARRCOMP_INLINE U64 product(U64 x, U64 y) {
  const U32 low = lo(x), other = lo(y);
  return join(low * other, mulhi(low, other) + low * hi(y) + hi(x) * other);
}

// Numbers of integers: by an exact division, which is a product modulo 2^W (T. Granlund and P. L. Montgomery, PLDI 1994,
// section 9).
template <class T>
class IntegerCounter {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD IntegerCounter(IntegerMultiples<Scalar> multiples, bool is_signed)
      : sign_(is_signed ? sign_bit : 0),
        shift_(bit_length(multiples.unit & (0 - multiples.unit)) - 1),
        before_zero_(sign_ / multiples.unit),
        rest_((multiples.offset + sign_ - before_zero_ * multiples.unit) & all),
        most_((all - rest_) / multiples.unit) {
    const Scalar odd = multiples.unit >> shift_;
    inverse_ = odd;  // right in 3 bits: each step doubles these
    for (int bits = 3; bits < T::width; bits *= 2) inverse_ *= 2 - odd * inverse_;
  }

  // In lanes of `failed` no number gives back the element.
  ARRCOMP_METHOD Word number(Word bits, Mask& failed) const {
    const Word far = ((bits ^ splat<Word>(sign_)) - splat<Word>(rest_)) & splat<Word>(all);
    const Word counted = product(far >> shift_, splat<Word>(inverse_)) & splat<Word>(all);
    const Word below = splat<Word>((Scalar{1} << shift_) - 1);
    failed = ne(far & below, splat<Word>(0)) | lt(splat<Word>(most_), counted);
    return counted - splat<Word>(before_zero_);
  }

 private:
  static constexpr Scalar all = ones_of<Scalar>(T::width);
  static constexpr Scalar sign_bit = Scalar{1} << (T::width - 1);

  Scalar sign_;
  int shift_;
  Scalar before_zero_;  // numbers of the integers below 0
  Scalar rest_, most_, inverse_;
};

template <class T>
ARRCOMP_CALLED bool count_integers(IntegerMultiples<typename T::Word::scalar> multiples, bool is_signed,
                                   ElementRange elements, typename T::storage* numbers, uint32_t* failed) {
  const IntegerCounter<T> counter(multiples, is_signed);
  return write_numbers<T>(elements, numbers, failed,
                          [&](typename T::Word bits, Mask& own) ARRCOMP_LAMBDA { return counter.number(bits, own); });
}

// The greatest common divisor; the other number where one is 0.
template <class Scalar>
ARRCOMP_INLINE Scalar common_divisor(Scalar a, Scalar b) {
  const auto zeros = [](Scalar x) ARRCOMP_LAMBDA { return bit_length(x & (0 - x)) - 1; };
  if (a == 0 || b == 0) return a | b;
  const int shift = zeros(a | b);
  a >>= zeros(a);
  while (b != 0) {
    b >>= zeros(b);
    const Scalar larger = a > b ? a : b;
    a = a > b ? b : a;
    b = larger - a;
  }
  return a << shift;
}

// `told_by`: how many integers, up to enough_integers, but for two that may be frequent. Differences of fewer may have a
// divisor by chance.
template <class Scalar>
struct FoundIntegers {
  IntegerMultiples<Scalar> multiples;
  int told_by;
};
inline constexpr int enough_integers = 8;

// Of which multiples a sample's integers are: the largest unit of several parts of it, as a single other integer spoils one;
// of those that most integers tell. Unit 0 where there are none.
template <class T>
ARRCOMP_CALLED FoundIntegers<typename T::Word::scalar> find_integer_multiples(Sample<typename T::Word> sample,
                                                                              bool is_signed) {
  using Scalar = typename T::Word::scalar;
  constexpr int parts = 4, places = 24, most_spoilt = 2;
  constexpr Scalar all = ones_of<Scalar>(T::width);
  const Scalar sign = is_signed ? Scalar{1} << (T::width - 1) : 0;
  Scalar unit = 0, offset = 0;
  int told_by = 0;
  for (int part = 0, spoilt = 0; part < parts && spoilt < most_spoilt; ++part) {
    Scalar first = 0, second = 0, own_unit = 0;
    int others = 0;
    for (int place = 0; place < places && own_unit != 1; ++place) {
      const int number = part * places + place;
      const int row = number % sample.count, lane = (5 * number + number / sample.count) % lanes_per_row;
      const Scalar own = (sample.rows[row * sample.distance + lane] ^ sign) & all;
      if (place == 0) first = own;
      if (own_unit == 0) second = own;
      own_unit = common_divisor(own_unit, own > first ? own - first : first - own);
      if (own != first && own != second && others < enough_integers) ++others;
    }
    if (own_unit == 1) ++spoilt;
    if (own_unit < 2 || others < told_by || (others == told_by && own_unit <= unit)) continue;
    unit = own_unit;
    told_by = others;
    offset = first % unit + sign / unit * unit - sign;
  }
  return {{unit, offset}, told_by};
}

}  // namespace arrcomp::ARRCOMP_ISA
