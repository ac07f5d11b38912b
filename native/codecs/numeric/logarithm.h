// Logarithms and powers to base 2 on lanes: multiplications and additions alone, so that every instruction set has the
// same bits. The polynomials have the smallest largest error (by Lawson's algorithm, the value at 0 held); their
// coefficients are rounded to float32. FORMAT.md, section 5.4.
#pragma once
#include "codecs/numeric/real_layout.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE F32 real_of_integer(U32 x) { return to_float(x); }
// For integers from -2^51 to 2^51.
ARRCOMP_INLINE F64 real_of_integer(U64 x) {
  const F64 rounder = splat<F64>(RealLayout<F64>::rounder);
  return as_double(as_bits(rounder) + x) - rounder;
}

// terms[0] + x terms[1] + x^2 terms[2] ... in pairs, then in pairs of pairs (G. Estrin, 1960): half as many operations
// wait for each other as one after the other.
template <class Real, int n>
ARRCOMP_INLINE Real sum_of_powers(Real x, const Real (&terms)[n]) {
  if constexpr (n == 1) {
    return terms[0];
  } else {
    Real pairs[(n + 1) / 2];
    ARRCOMP_UNROLL
    for (int i = 0; i < n / 2; ++i) pairs[i] = terms[2 * i] + x * terms[2 * i + 1];
    if constexpr (n % 2 == 1) pairs[n / 2] = terms[n - 1];
    return sum_of_powers(x * x, pairs);
  }
}

template <class Real, class Coefficient, int n>
ARRCOMP_INLINE Real polynomial(Real x, const Coefficient (&coefficients)[n]) {
  Real terms[n];
  ARRCOMP_UNROLL
  for (int i = 0; i < n; ++i) terms[i] = splat<Real>(coefficients[i]);
  return sum_of_powers(x, terms);
}

// log2 x = whole + part, with an integer and at most about 1/2.
template <class Real>
struct Logarithm {
  Real whole, part;
};

// Of normal numbers above 0, within 4e-7; exact where x is a power of two. Of 0 and subnormal numbers it is at most
// that of the least normal one.
template <class Real>
ARRCOMP_INLINE Logarithm<Real> logarithm_of(Real x) {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;
  constexpr float coefficients[] = {0x1.7154c4p+0f, -0x1.71582ep-1f, 0x1.ebff06p-2f, -0x1.6f93b2p-2f,
                                    0x1.30659ap-2f, -0x1.173e22p-2f, 0x1.5d75a2p-3f};
  const Word bits = as_bits(x), exponent = sar(bits - splat<Word>(Layout::half_root), Layout::mantissa_bits);
  const Real f = real_of_bits(bits - (exponent << Layout::mantissa_bits)) - splat<Real>(1);
  return {real_of_integer(exponent), f * polynomial(f, coefficients)};
}

// Of all numbers above 0. Of 0 it is below that of all of them.
template <class Real>
ARRCOMP_INLINE Logarithm<Real> logarithm_of_any(Real x) {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;
  const Mask tiny = lt(as_bits(x), splat<Word>(Layout::min_normal));
  Logarithm<Real> logarithm = logarithm_of(select(tiny, x * splat<Real>(0x1p64f), x));
  logarithm.whole = logarithm.whole - select(tiny, splat<Real>(64), splat<Real>(0));
  return logarithm;
}

// 2^t, of which the exponent must be that of a normal number, within 3e-6 of it; exact where t is an integer.
template <class Real>
ARRCOMP_INLINE Real power_of(Real t) {
  using Layout = RealLayout<Real>;
  constexpr float coefficients[] = {1, 0x1.62e12cp-1f, 0x1.ec0378p-3f, 0x1.c9fc46p-5f, 0x1.3a02ccp-7f};
  const Real rounder = splat<Real>(Layout::rounder), shifted = t + rounder;
  const Real power = polynomial(t - (shifted - rounder), coefficients);
  return real_of_bits(as_bits(power) + (as_bits(shifted) << Layout::mantissa_bits));
}

}  // namespace arrcomp::ARRCOMP_ISA
