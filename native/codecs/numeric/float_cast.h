// Numbers as codes of small formats and back, on lanes. FORMAT.md, section 5.3.
#pragma once
#include "codecs/numeric/philox.h"
#include "codecs/numeric/real_layout.h"
#include "stream/float_spec.h"

namespace arrcomp::ARRCOMP_ISA {

// The bits of a random word, or half a unit, as what is added before the `dropped` lowest bits of a word are cut off.
ARRCOMP_INLINE U32 random_fraction(U32 random, int dropped, U32) { return random >> 1 >> (31 - dropped); }
ARRCOMP_INLINE U64 random_fraction(U32 random, int dropped, U64) {
  // 32 bits and half a unit of the last of them.
  const U64 fraction = join(splat<U32>(0x80000000u), random);
  return fraction >> (64 - dropped);
}

// How codes have their signs.
enum class Signs { apart, but_of_zero, complement };

// Between numbers of the arithmetic type and codes of a format with at most as many exponent and mantissa bits. All
// that a magnitude becomes follows from its bits: a normal number keeps its upper ones, rounded, with another bias; for
// a subnormal one the sum with a power of two brings its bits to their places and rounds them.
template <class Real>
class FloatCast {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;
  using Bits = typename Layout::Bits;

 public:
  ARRCOMP_METHOD explicit FloatCast(const FloatSpec& spec)
      : spec_(spec),
        dropped_(mantissa - spec.mantissa_bits),
        rebias_(static_cast<Bits>(bias - spec.bias) << mantissa),
        min_normal_(static_cast<Bits>(bias + 1 - spec.bias) << mantissa),
        nearest_offset_(min_normal_ + (static_cast<Bits>(dropped_) << mantissa)),
        // With the arithmetic type's own exponents its subnormal numbers are like others.
        subnormal_below_(spec.bias == bias ? 0 : min_normal_),
        limit_((static_cast<Bits>(largest(spec)) << dropped_) + rebias_),
        unit_(static_cast<Bits>(2 * bias - spec.bias) << mantissa) {}

  // NaN becomes the format's NaN with sign 0, as do infinities where the format has none; where it has neither, 0.
  // Random words add uniform fractions of the distance between two neighbours, in place of a half.
  template <class Random>
  ARRCOMP_METHOD U32 encode(Real y, Random random) const {
    const Word magnitude = as_bits(abs(y));
    const U32 code = encode_magnitude(y, y, random);
    const Mask special = ge(magnitude, splat<Word>(infinity));
    if (!any(special)) return code;
    return select(special, special_code(eq(magnitude, splat<Word>(infinity)), highest(as_bits(y))), code);
  }

  // With the signs of other numbers. NaN and infinities are like numbers that are too large.
  template <class Random>
  ARRCOMP_METHOD U32 encode_magnitude(Real y, Real signs, Random random) const {
    return encode_magnitude(y, signs, random, this->signs());
  }
  // `has`, if it is known, is this format's.
  template <class Random>
  ARRCOMP_METHOD U32 encode_magnitude(Real y, Real signs, Random random, Signs has) const {
    const Word limited = min(as_bits(abs(y)), splat<Word>(limit_));
    return with_sign(lowest(rounded(limited, random)), highest(as_bits(signs)), has);
  }

  // Exact. NaN is some NaN.
  ARRCOMP_METHOD Real decode(U32 code) const {
    const bool integer = spec_.specials == Specials::integer;
    const U32 sign = splat<U32>(spec_.sign_code());
    // Of an integer: the smaller one of it and its negative.
    const U32 magnitude = integer ? min(code, (sign << 1) - code) : code & (sign - splat<U32>(1));
    const Word number = from_lowest(magnitude, Word{}), moved = number << dropped_;
    const Word offset = splat<Word>(nearest_offset_);
    const Word subnormal = as_bits(real_of_bits(number + offset) - real_of_bits(offset));
    const Mask is_subnormal = lt(moved, splat<Word>(subnormal_bits()));
    const Word value = select(is_subnormal, subnormal, moved + splat<Word>(rebias_));
    const U32 negative = (code << (31 - spec_.magnitude_bits())) & splat<U32>(0x80000000u);
    return real_of_bits(with_specials(value, moved, magnitude, code) | from_highest(negative, Word{}));
  }

  // The same of codes that are numbers, for lanes to which subnormal factors are like others; the others are told.
  ARRCOMP_METHOD Real decode_number(U32 code, Signs has, Mask& specials) const {
    const U32 sign = splat<U32>(spec_.sign_code());
    const U32 magnitude = has == Signs::complement ? min(code, (sign << 1) - code) : code & (sign - splat<U32>(1));
    if (has == Signs::apart) specials = specials | ge(magnitude, splat<U32>(spec_.first_special()));
    if (has == Signs::but_of_zero) specials = specials | eq(code, sign);
    const Real value = real_of_bits(from_lowest(magnitude, Word{}) << dropped_) * real_of_bits(splat<Word>(unit_));
    const U32 negative = (code << (31 - spec_.magnitude_bits())) & splat<U32>(0x80000000u);
    return real_of_bits(as_bits(value) | from_highest(negative, Word{}));
  }

  ARRCOMP_METHOD Signs signs() const {
    if (spec_.specials == Specials::integer) return Signs::complement;
    return spec_.specials == Specials::unsigned_zero ? Signs::but_of_zero : Signs::apart;
  }

  // A code from that of its magnitude and the upper half of a number with its sign.
  ARRCOMP_METHOD U32 with_sign(U32 magnitude, U32 high_bits) const { return with_sign(magnitude, high_bits, signs()); }
  ARRCOMP_METHOD U32 with_sign(U32 magnitude, U32 high_bits, Signs has) const {
    if (has == Signs::complement) {
      const U32 negative = sar(high_bits, 31);
      return ((magnitude ^ negative) - negative) & splat<U32>(low_mask(spec_.magnitude_bits() + 1));
    }
    const U32 code = magnitude | (high_bits >> (31 - spec_.magnitude_bits()) & splat<U32>(spec_.sign_code()));
    if (has != Signs::but_of_zero) return code;
    return select(eq(magnitude, splat<U32>(0)), magnitude, code);
  }

 private:
  static constexpr int mantissa = Layout::mantissa_bits, bias = Layout::bias;
  static constexpr Bits infinity = Layout::infinity;

  // The largest code: what follows on the largest finite number is infinity or NaN, if the format has one.
  ARRCOMP_METHOD static uint32_t largest(const FloatSpec& spec) {
    const bool goes_on = !spec.saturates && spec.specials != Specials::none && spec.specials != Specials::integer;
    return spec.first_special() - (goes_on ? 0 : 1);
  }

  ARRCOMP_METHOD Bits subnormal_bits() const { return subnormal_below_ == 0 ? 0 : Bits{1} << mantissa; }

  ARRCOMP_METHOD Word subnormal(Word magnitude, Bits offset) const {
    const Word shifted = splat<Word>(offset);
    return as_bits(real_of_bits(magnitude) + real_of_bits(shifted)) - shifted;
  }

  ARRCOMP_METHOD Word rounded(Word magnitude, Nearest) const {
    const Bits half = dropped_ > 0 ? (Bits{1} << (dropped_ - 1)) - 1 : 0;
    const Word odd = magnitude >> dropped_ & splat<Word>(dropped_ > 0 ? 1 : 0);
    const Word normal = (magnitude + odd + splat<Word>(half - rebias_)) >> dropped_;
    const Mask is_subnormal = lt(magnitude, splat<Word>(subnormal_below_));
    return select(is_subnormal, subnormal(magnitude, nearest_offset_), normal);
  }

  ARRCOMP_METHOD Word rounded(Word magnitude, U32 random) const {
    const Word normal = magnitude - splat<Word>(rebias_);
    const Mask is_subnormal = lt(magnitude, splat<Word>(subnormal_below_));
    const Word exact = select(is_subnormal, subnormal(magnitude, min_normal_), normal);
    return (exact + random_fraction(random, dropped_, Word{})) >> dropped_;
  }

  ARRCOMP_METHOD U32 special_code(Mask is_infinite, U32 high_bits) const {
    const U32 nan = splat<U32>(spec_.nan_code());
    if (!spec_.has_infinity()) return nan;
    return select(is_infinite, with_sign(splat<U32>(spec_.first_special()), high_bits), nan);
  }

  ARRCOMP_METHOD Word with_specials(Word value, Word moved, U32 magnitude, U32 code) const {
    if (spec_.specials == Specials::none || spec_.specials == Specials::integer) return value;
    const Mask special = spec_.specials == Specials::unsigned_zero ? eq(code, splat<U32>(spec_.sign_code()))
                                                                   : ge(magnitude, splat<U32>(spec_.first_special()));
    if (!any(special)) return value;
    // Infinity has no mantissa bits. What would be -0 has none either.
    const Bits bits = spec_.specials == Specials::unsigned_zero ? infinity | (infinity - 1) : infinity;
    return select(special, moved | splat<Word>(bits), value);
  }

  FloatSpec spec_;
  int dropped_;  // mantissa bits
  Bits rebias_, min_normal_, nearest_offset_, subnormal_below_;
  Bits limit_;
  Bits unit_;  // a power of two: what the bits of a code stand for, as many places higher, as those of a number
};

}  // namespace arrcomp::ARRCOMP_ISA
