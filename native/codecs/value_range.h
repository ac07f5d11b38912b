// The range of an array's finite values, for bounds relative to it.
#pragma once
#include "codecs/real_elements.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

// Keys whose unsigned order is that of the numbers, and back.
template <class Real>
ARRCOMP_INLINE auto order_keys(Real x) {
  constexpr int width = sizeof(typename Real::scalar) * 8;
  using Word = decltype(as_bits(x));
  return order_floats(as_bits(x), width) ^ splat<Word>(typename Word::scalar{1} << (width - 1));
}

template <class Real, class Word>
ARRCOMP_INLINE Real numbers_of_keys(Word keys, Real) {
  constexpr int width = sizeof(typename Real::scalar) * 8;
  return real_of_bits(order_floats(keys ^ splat<Word>(typename Word::scalar{1} << (width - 1)), width));
}

template <class Scalar>
ARRCOMP_INLINE double number_of_key(Scalar key) {
  constexpr Scalar sign = Scalar{1} << (sizeof(Scalar) * 8 - 1);
  const Scalar bits = key & sign ? key ^ sign : ~key;
  if constexpr (sizeof(Scalar) == 8) {
    double number;
    memcpy(&number, &bits, 8);
    return number;
  } else {
    float number;
    memcpy(&number, &bits, 4);
    return number;
  }
}

// The smallest and the largest lane, of numbers.
template <class Real>
ARRCOMP_INLINE double smallest_of(Real x) {
  using Word = decltype(as_bits(x));
  return number_of_key(~max_all(order_keys(x) ^ splat<Word>(~typename Word::scalar{0})));
}
template <class Real>
ARRCOMP_INLINE double largest_of(Real x) {
  return number_of_key(max_all(order_keys(x)));
}

// Widens range = {smallest, largest} by the finite values among elements [first, first + count) that are not `fill`.
template <class Real>
ARRCOMP_PART void widen_range(const Element& element, const void* array, uint64_t first, uint64_t count, double fill,
                              double range[2]) {
  const Real limit = largest_number(Real{});
  const auto excluded = as_bits(rounded_to(element, splat<Real>(static_cast<typename Real::scalar>(fill))));
  Real smallest = limit, largest = splat<Real>(0) - limit;
  StoredElements{element, array, first, count}.template each_row<Real>([&](Real x, int) ARRCOMP_LAMBDA {
    const Mask counts = le(abs(x), limit) & ne(as_bits(x), excluded);
    smallest = select(counts, min(x, smallest), smallest);
    largest = select(counts, max(x, largest), largest);
  });
  const double low = smallest_of(smallest), high = largest_of(largest);
  if (low < range[0]) range[0] = low;
  if (high > range[1]) range[1] = high;
}

}  // namespace arrcomp::ARRCOMP_ISA
