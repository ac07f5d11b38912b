// Quantization with a bound that is never broken (FORMAT.md, section 3.4).
#pragma once
#include "codecs/element_types.h"
#include "stream/settings.h"

namespace arrcomp::ARRCOMP_ISA {

// Signed integers to and from numbers. In float64 the integers stay below 2^51 in size, where adding 1.5 * 2^52 leaves
// them in the lowest bits, rounded to nearest even, on every instruction set.
ARRCOMP_INLINE U32 round_to_integer(F32 v) { return to_int(v); }
ARRCOMP_INLINE F32 seed_value(U32 q) { return to_float(q); }
ARRCOMP_INLINE U64 round_to_integer(F64 v) {
  return as_bits(v + splat<F64>(0x1.8p52)) - splat<U64>(0x4338000000000000ull);
}
ARRCOMP_INLINE F64 seed_value(U64 q) { return as_double(q + splat<U64>(0x4338000000000000ull)) - splat<F64>(0x1.8p52); }

ARRCOMP_INLINE void largest_integer(float& limit) { limit = 0x1p30f; }
ARRCOMP_INLINE void largest_integer(double& limit) { limit = 0x1p50; }
ARRCOMP_INLINE void round_bound(double bound, float& e) {
  e = round_down(bound);
  if (e > 0x1.fffffep126f) e = 0x1.fffffep126f;
}
ARRCOMP_INLINE void round_bound(double bound, double& e) {
  e = bound > 0x1.fffffffffffffp1022 ? 0x1.fffffffffffffp1022 : bound;
}

// y = number(q) * step, for q = nearest(x / step), accepted where |x - y| <= bound for y as the decoder returns it.
//
// Why the comparison is exact. bound is a number of the arithmetic type and, in float32 and float64, step = 2 * bound
// exactly. Let d = |x - y| as computed, d <= bound, and u = 2^-24 (2^-53).
// - q = 0: y = 0 and d = |x|, exact.
// - |q| >= 2: the true |x - y| is at most bound (1 + u), and |y| >= 4 bound (1 - u): x lies between y / 2 and 2 y, and
//   the difference of such numbers is exact (Sterbenz).
// - |q| = 1: y = 2 bound. For |x| >= bound this is Sterbenz again. For |x| < bound the true difference is above bound,
//   and is rounded down to it only if bound is a power of two and x the number just below; but then 1 / step is exact,
//   x / step is just below 1/2, and q is 0.
// float16 and bfloat16: x and y have at most 11 bits each. For q = 0 see above; else |y| >= 1.75 bound (1 - 2^-8), so
// that x and y differ by less than a factor of 8, their difference has at most 14 bits, and it is exact in float32.
template <class T, bool quantizes = T::quantizes>
struct Dequantizer {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Number = typename Real::scalar;

  Number bound, step;

  ARRCOMP_METHOD Dequantizer() : bound(0), step(0) {}
  ARRCOMP_METHOD explicit Dequantizer(double user_bound) {
    round_bound(user_bound, bound);
    step = T::steps_per_bound * bound;
  }

  ARRCOMP_METHOD Word element(Word q) const { return T::narrow(seed_value(q) * splat<Real>(step)); }
};

template <class T>
struct Dequantizer<T, false> {  // of types that are never quantized
  ARRCOMP_METHOD explicit Dequantizer(double) {}
  ARRCOMP_METHOD Dequantizer() {}
};

template <class T, bool quantizes = T::quantizes>
struct Quantizer : Dequantizer<T> {
  using typename Dequantizer<T>::Word;
  using typename Dequantizer<T>::Real;
  using typename Dequantizer<T>::Number;
  using Dequantizer<T>::bound;
  using Dequantizer<T>::step;
  using Dequantizer<T>::element;

  Number inverse;

  ARRCOMP_METHOD explicit Quantizer(double user_bound) : Dequantizer<T>(user_bound) {
    inverse = static_cast<Number>(1.0 / static_cast<double>(step));
  }

  // The integers of a row at first sight: right, and what `quantize` gives, in the lanes of `served`.
  ARRCOMP_METHOD Word nearest(Word bits, Mask& served) const {
    const Real x = T::widen(bits);
    const Word q = nearest(x, served);
    served = served & holds(x, q);
    return q;
  }

  // The integers of a row; `failed` gets the lanes that no integer serves. Their integer is 0.
  ARRCOMP_METHOD Word quantize(Word bits, Mask& failed) const {
    const Real x = T::widen(bits);
    Mask in_range;
    Word q = nearest(x, in_range);
    failed = ~(in_range & holds(x, q));
    if (any(failed)) {
      q = correct(x, q, in_range, failed);
      q = select(failed, splat<Word>(0), q);
    }
    return q;
  }

 private:
  ARRCOMP_METHOD Word nearest(Real x, Mask& in_range) const {
    const Real scaled = x * splat<Real>(inverse);
    Number limit;
    largest_integer(limit);
    in_range = le(size(scaled), splat<Real>(limit));
    return round_to_integer(scaled);
  }
  ARRCOMP_METHOD Mask holds(Real x, Word q) const { return le(size(x - T::widen(element(q))), splat<Real>(bound)); }

  // Where x / step is large its rounding alone can miss the nearest integer: a second step from the residue finds it.
  ARRCOMP_METHOD Word correct(Real x, Word q, Mask in_range, Mask& failed) const {
    const Word start = select(in_range, q, splat<Word>(0));
    const Real residue = (x - T::widen(element(start))) * splat<Real>(inverse);
    const Mask near = le(size(residue), splat<Real>(4)) & in_range & failed;
    const Word better = start + select(near, round_to_integer(select(near, residue, splat<Real>(0))), splat<Word>(0));
    failed = failed & ~(near & holds(x, better));
    return better;
  }
};

template <class T>
struct Quantizer<T, false> {
  ARRCOMP_METHOD explicit Quantizer(double) {}
};

// Mantissas rounded to nearest even with `dropped` bits less, which bounds the relative error of normal numbers
// (settings.h). Zero, subnormal and non-finite numbers, and what would overflow, stay as they are.
template <class T>
ARRCOMP_INLINE typename T::Word round_mantissa(typename T::Word bits, int dropped, const Element& element) {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  const Scalar one = 1;
  const Scalar half = one << (dropped - 1);
  const Word odd = bits >> dropped & splat<Word>(1);
  const Word rounded = (bits + splat<Word>(half - 1) + odd) & splat<Word>(~(half * 2 - 1));
  const Scalar exponents = ((one << element.exponent_bits) - 1) << element.mantissa_bits;
  const Word before = bits & splat<Word>(exponents), after = rounded & splat<Word>(exponents);
  const Mask regular =
      ne(before, splat<Word>(0)) & ne(after, splat<Word>(exponents)) & ne(before, splat<Word>(exponents));
  return select(regular, rounded, bits);
}

}  // namespace arrcomp::ARRCOMP_ISA
