// The arithmetic types, float32 and float64, and the words that are their bits.
#pragma once
#include <cstring>
#include <type_traits>

#include "inline.h"
#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE F32 real_of_bits(U32 bits) { return as_float(bits); }
ARRCOMP_INLINE F64 real_of_bits(U64 bits) { return as_double(bits); }

// 32 bits of a word, the lowest or the highest, and words that have no others.
ARRCOMP_INLINE U32 lowest(U32 x) { return x; }
ARRCOMP_INLINE U32 lowest(U64 x) { return lo(x); }
ARRCOMP_INLINE U32 highest(U32 x) { return x; }
ARRCOMP_INLINE U32 highest(U64 x) { return hi(x); }
ARRCOMP_INLINE U32 from_lowest(U32 x, U32) { return x; }
ARRCOMP_INLINE U64 from_lowest(U32 x, U64) { return join(x, splat<U32>(0)); }
ARRCOMP_INLINE U32 from_highest(U32 x, U32) { return x; }
ARRCOMP_INLINE U64 from_highest(U32 x, U64) { return join(splat<U32>(0), x); }

// How the numbers of an arithmetic type are made of bits.
template <class Real>
struct RealLayout {
  using Word = decltype(as_bits(Real{}));
  using Bits = typename Word::scalar;
  using Scalar = typename Real::scalar;
  static constexpr int width = sizeof(Bits) * 8;
  static constexpr int mantissa_bits = width == 64 ? 52 : 23;
  static constexpr int bias = width == 64 ? 1023 : 127;
  static constexpr Bits one = static_cast<Bits>(bias) << mantissa_bits;
  static constexpr Bits infinity = static_cast<Bits>(2 * bias + 1) << mantissa_bits;
  static constexpr Bits min_normal = Bits{1} << mantissa_bits;
  static constexpr Bits mantissa = min_normal - 1;
  static constexpr Bits sign = Bits{1} << (width - 1);
  static constexpr Bits half_root = width == 64 ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u;  // sqrt(1/2)
  // The sum of a number and this has the nearest integer in its lowest bits.
  static constexpr Scalar rounder = static_cast<Scalar>(Bits{3} << (mantissa_bits - 1));
};

template <class Scalar, class Bits>
ARRCOMP_INLINE Scalar scalar_from(Bits bits) {
  Scalar number;
  static_assert(sizeof number == sizeof bits);
  memcpy(&number, &bits, sizeof number);
  return number;
}

// The number that all lanes are.
template <class Real>
ARRCOMP_INLINE typename Real::scalar first_of(Real lanes) {
  return scalar_from<typename Real::scalar>(or_all(as_bits(lanes)));
}

// The largest of numbers that have no sign: a NaN is larger than infinity, and that than numbers.
template <class Real>
ARRCOMP_INLINE typename Real::scalar largest_magnitude_of(Real lanes) {
  return scalar_from<typename Real::scalar>(max_all(as_bits(lanes)));
}

// The same of lanes 0 to 15 and 16 to 31.
template <class Real>
ARRCOMP_INLINE Halves<typename Real::scalar> largest_magnitudes_of_halves(Real lanes) {
  using Scalar = typename Real::scalar;
  const auto bits = max_of_halves(as_bits(lanes));
  return {scalar_from<Scalar>(bits.lower), scalar_from<Scalar>(bits.upper)};
}

}  // namespace arrcomp::ARRCOMP_ISA
