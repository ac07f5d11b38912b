// Limits of the arithmetic types, and conversions between them and integers.
#pragma once
#include <type_traits>

#include "lanes/lanes.h"

namespace arrcomp::ARRCOMP_ISA {

template <class Scalar>
struct ScalarLimits;
template <>
struct ScalarLimits<float> {
  static constexpr float largest = 0x1.fffffep127f, smallest_normal = 0x1p-126f, smallest = 0x1p-149f;
  ARRCOMP_METHOD static float nan() { return __builtin_nanf(""); }
};
template <>
struct ScalarLimits<double> {
  static constexpr double largest = 0x1.fffffffffffffp1023, smallest_normal = 0x1p-1022, smallest = 0x1p-1074;
  ARRCOMP_METHOD static double nan() { return __builtin_nan(""); }
};

// x in the arithmetic type, at most its largest number.
template <class Scalar>
ARRCOMP_INLINE Scalar limited(double x) {
  constexpr Scalar largest = ScalarLimits<Scalar>::largest;
  return x <= static_cast<double>(largest) ? static_cast<Scalar>(x) : largest;
}

// False for NaN.
template <class Scalar>
ARRCOMP_INLINE bool is_within(Scalar x, Scalar limit) {
  return x <= limit && -x <= limit;
}

// Scalars as lanes of their own, for what is written once for one number and for a row of them.
template <class Scalar>
concept IsScalar = std::is_floating_point_v<Scalar>;
// What comparing them gives. A bool would be a number to & and |.
struct ScalarMask {
  bool set;
};
ARRCOMP_INLINE ScalarMask operator&(ScalarMask a, ScalarMask b) { return {a.set && b.set}; }
ARRCOMP_INLINE ScalarMask operator|(ScalarMask a, ScalarMask b) { return {a.set || b.set}; }
template <IsScalar Scalar>
ARRCOMP_INLINE ScalarMask lt(Scalar x, Scalar y) {
  return {x < y};
}
template <IsScalar Scalar>
ARRCOMP_INLINE ScalarMask le(Scalar x, Scalar y) {
  return {x <= y};
}
template <IsScalar Scalar>
ARRCOMP_INLINE Scalar select(ScalarMask which, Scalar yes, Scalar no) {
  return which.set ? yes : no;
}
ARRCOMP_INLINE bool any(ScalarMask which) { return which.set; }
ARRCOMP_INLINE bool all(ScalarMask which) { return which.set; }
ARRCOMP_INLINE bool all(Mask which) { return !any(~which); }
template <IsScalar Scalar>
ARRCOMP_INLINE Scalar number_of(Scalar x, Scalar) {
  return x;
}
template <class Real>
ARRCOMP_INLINE Real number_of(typename Real::scalar x, Real) {
  return splat<Real>(x);
}

// The nearest integer, ties to even, of numbers from 0 to 2^31 - 1.
ARRCOMP_INLINE U32 nearest_integer(F32 v) { return to_int(v); }
ARRCOMP_INLINE U32 nearest_integer(F64 v) { return lo(as_bits(v + splat<F64>(0x1p52))); }

// The same of any number, as a code from 0 to `largest`, which has 23 bits at most; NaN becomes 0.
ARRCOMP_INLINE U32 nearest_code(F32 v, uint32_t largest) { return to_code(v, largest); }
ARRCOMP_INLINE U32 nearest_code(F64 v, uint32_t largest) {
  // The order of max's arguments tells what NaN becomes.
  return nearest_integer(min(max(splat<F64>(0), v), splat<F64>(largest)));
}

// For integers from -2^31 to 2^31 - 1.
ARRCOMP_INLINE F32 real_of(U32 x, F32) { return to_float(x); }
ARRCOMP_INLINE F64 real_of(U32 x, F64) {
  const U32 biased = x ^ splat<U32>(0x80000000u);
  return as_double(join(biased, splat<U32>(0x43300000u))) - splat<F64>(0x1p52 + 0x1p31);
}

}  // namespace arrcomp::ARRCOMP_ISA
