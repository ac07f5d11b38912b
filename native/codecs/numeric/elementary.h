// Elementary functions on lanes, in both arithmetic types: multiplications, additions and divisions alone, so that every
// instruction set has the same bits. Errors are a few units of the last place, also where results are small.
#pragma once
#include "codecs/numeric/logarithm.h"

namespace arrcomp::ARRCOMP_ISA {

#include "codecs/numeric/polynomials.inc"

// What differs between the arithmetic types. ln 2 is cut in two: multiples of the upper part are exact.
template <class Real>
struct Elementary;

template <>
struct Elementary<F32> {
  static constexpr float log2_e = 0x1.715476p+0f, ln2_upper = 0x1.63p-1f, ln2_lower = -0x1.bd0106p-13f;
  static constexpr float min_exponent = -104;      // from there on exponentials are 0
  static constexpr uint32_t upper_half = ~0xfffu;  // of the mantissa, whose squares are exact
};

template <>
struct Elementary<F64> {
  static constexpr double log2_e = 0x1.71547652b82fep+0, ln2_upper = 0x1.62e42feep-1, ln2_lower = 0x1.a39ef35793c76p-33;
  static constexpr double min_exponent = -746;
  static constexpr uint64_t upper_half = ~uint64_t{0x7ffffff};
};

// An exponential: 2^power (1 + rest).
template <class Real>
struct Exponential {
  typename RealLayout<Real>::Word power;
  Real rest;
};

// Of x + low, of which x is at most 0 and low no more than a correction of it.
template <class Real>
ARRCOMP_INLINE Exponential<Real> exponential_of(Real x, Real low) {
  using Numbers = Elementary<Real>;
  const Real rounder = splat<Real>(RealLayout<Real>::rounder);
  const Real limited = max(x, splat<Real>(Numbers::min_exponent));
  const Real shifted = (limited + low) * splat<Real>(Numbers::log2_e) + rounder, whole = shifted - rounder;
  const Real upper = limited - whole * splat<Real>(Numbers::ln2_upper);
  const Real r = (upper - whole * splat<Real>(Numbers::ln2_lower)) + low;
  return {as_bits(shifted) - as_bits(rounder), r + r * r * exponential_polynomial(r)};
}

// 2^n of an integer for which that is a normal number.
template <class Real>
ARRCOMP_INLINE Real power_of_two(typename RealLayout<Real>::Word n) {
  using Layout = RealLayout<Real>;
  return real_of_bits((n << Layout::mantissa_bits) + splat<typename Layout::Word>(Layout::one));
}

// e^(x + low) of x up to 0, in two steps: it may be subnormal.
template <class Real>
ARRCOMP_METHOD Real exponential(Real x, Real low) {
  const Exponential<Real> e = exponential_of(x, low);
  const auto half = sar(e.power, 1);
  return (splat<Real>(1) + e.rest) * power_of_two<Real>(half) * power_of_two<Real>(e.power - half);
}
template <class Real>
ARRCOMP_INLINE Real exponential(Real x) {
  return exponential(x, splat<Real>(0));
}

// e^x - 1 of x up to 0.
template <class Real>
ARRCOMP_METHOD Real exponential_minus_one(Real x) {
  // Below, all are -1.
  const Exponential<Real> e = exponential_of(max(x, splat<Real>(-64)), splat<Real>(0));
  const Real power = power_of_two<Real>(e.power);
  return power * e.rest + (power - splat<Real>(1));
}

// log(1 + t) of t from 0 to 1: twice the inverse hyperbolic tangent of t / (2 + t).
template <class Real>
ARRCOMP_METHOD Real logarithm_of_one_plus(Real t) {
  const Real f = t / (t + splat<Real>(2)), s = f * f, twice = f + f;
  return twice + twice * s * logarithm_polynomial(s);
}

template <class Real>
ARRCOMP_INLINE Real with_sign_of(Real magnitude, Real signs) {
  using Layout = RealLayout<Real>;
  return real_of_bits(as_bits(magnitude) | (as_bits(signs) & splat<typename Layout::Word>(Layout::sign)));
}

template <class Real>
ARRCOMP_METHOD Real hyperbolic_tangent(Real x) {
  const Real e = exponential_minus_one(abs(x) * splat<Real>(-2));
  return with_sign_of(abs(e) / (e + splat<Real>(2)), x);
}

// 1 / (1 + e^-x)
template <class Real>
ARRCOMP_METHOD Real logistic(Real x) {
  const Real zero = splat<Real>(0), one = splat<Real>(1), e = exponential(zero - abs(x));
  return select(lt(x, zero), e, one) / (one + e);
}

// The normal distribution's probability of less than -a, for a from 0 on: e^(-a^2 / 2) times a function that is nearly
// 1 / a. The square is exact as the sum of its upper part and a correction.
template <class Real>
ARRCOMP_METHOD Real normal_tail(Real a) {
  using Numbers = Elementary<Real>;
  using Word = typename RealLayout<Real>::Word;
  a = min(a, splat<Real>(64));  // from where on it is 0
  const Real four = splat<Real>(4), half = splat<Real>(-0.5f), share = four / (four + a);
  const Real upper = real_of_bits(as_bits(a) & splat<Word>(Numbers::upper_half));
  const Real e = exponential(half * upper * upper, half * (a - upper) * (a + upper));
  return e * share * normal_tail_polynomial(share + share - splat<Real>(1));
}

}  // namespace arrcomp::ARRCOMP_ISA
