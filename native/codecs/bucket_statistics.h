// Statistics of a bucket's values on lanes. Sums are of integers: their order does not show.
#pragma once
#include <cstring>
#include <type_traits>

#include "codecs/packing.h"
#include "codecs/transform.h"
#include "codecs/value_range.h"
#include "stream/bucket_statistics.h"

namespace arrcomp::ARRCOMP_MACHINE {

ARRCOMP_INLINE uint64_t sum_all(U64 x) { return or_all(broadcast_last(prefix_sum(x))); }

// The sum over the lanes of numbers from 0 to 128.
ARRCOMP_INLINE double fixed_point_sum(F32 x) {
  const U32 fixed = to_int(x * splat<F32>(0x1p23f));
  return static_cast<double>(sum_all(join(fixed, splat<U32>(0)))) * 0x1p-23;
}
ARRCOMP_INLINE double fixed_point_sum(F64 x) {
  const U64 fixed = as_bits(x * splat<F64>(0x1p40) + splat<F64>(0x1p52)) & splat<U64>((uint64_t{1} << 52) - 1);
  return static_cast<double>(sum_all(fixed)) * 0x1p-40;
}

// The largest magnitude of lanes as the bits of a number: a NaN is larger than infinity, and that than numbers.
template <class Word>
ARRCOMP_INLINE auto number_from(Word largest_bits) {
  using Scalar = std::conditional_t<sizeof(typename Word::scalar) == 8, double, float>;
  const auto bits = max_all(largest_bits);
  Scalar number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

// The largest magnitude of the elements [first, first + count): infinity or NaN where one of them is not finite.
template <class T>
ARRCOMP_METHOD typename T::Real::scalar magnitude_of(const void* array, uint64_t first, uint64_t count) {
  decltype(as_bits(typename T::Real{})) largest = as_bits(splat<typename T::Real>(0));
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    largest = max(largest, as_bits(abs(T::widen(load_elements<T>(array, first + i, n)))));
  }
  return number_from(largest);
}

// The same of the finite ones alone.
template <class T>
ARRCOMP_PART typename T::Real::scalar finite_magnitude_of(const void* array, uint64_t first, uint64_t count) {
  using Real = typename T::Real;
  decltype(as_bits(Real{})) largest = as_bits(splat<Real>(0));
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    const Real x = abs(T::widen(load_elements<T>(array, first + i, n)));
    largest = max(largest, as_bits(select(le(x, largest_number(Real{})), x, splat<Real>(0))));
  }
  return number_from(largest);
}

template <class T>
ARRCOMP_METHOD BucketStatistics magnitude_statistics_of(const void* array, uint64_t first, uint64_t count) {
  BucketStatistics s = BucketStatistics::none();
  auto largest = magnitude_of<T>(array, first, count);
  s.finite = static_cast<double>(largest) <= 0x1.fffffffffffffp1023;
  if (!s.finite) largest = finite_magnitude_of<T>(array, first, count);
  s.high = static_cast<double>(largest);
  s.low = -s.high;
  return s;
}

// Of the elements [first, first + count), at least one and at most a piece.
template <class T>
ARRCOMP_PART BucketStatistics statistics_of(Element element, const void* array, uint64_t first, uint64_t count,
                                            Moments moments) {
  if (moments == largest_magnitude) return magnitude_statistics_of<T>(array, first, count);
  using Real = typename T::Real;
  using Word = typename T::Word;
  using Scalar = typename Real::scalar;
  const Word magnitude = ones<Word>(T::width - 1);
  const auto lanes_at = [&](uint64_t i) ARRCOMP_LAMBDA {
    return count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
  };
  Word largest_bits = splat<Word>(0);
  Real low = largest_number(Real{}), high = splat<Real>(0) - low;
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const Word bits = load_elements<T>(array, first + i, lanes_at(i));
    largest_bits = max(largest_bits, bits & magnitude);
    const Real x = T::widen(bits);
    low = min(x, low);
    high = max(x, high);
  }
  const uint64_t infinity = ((uint64_t{1} << element.exponent_bits) - 1) << element.mantissa_bits;
  BucketStatistics s = BucketStatistics::none();
  s.finite = !any(ge(largest_bits, splat<Word>(static_cast<typename Word::scalar>(infinity))));
  if (!s.finite) return s;
  s.low = smallest_of(low);
  s.high = largest_of(high);
  const double largest = s.largest_magnitude();
  if (moments != sum_of_squares || largest <= 0) return s;
  s.exponent = ilogb(largest) + 1;
  const int half = s.exponent / 2;
  const Real down = splat<Real>(static_cast<Scalar>(power_of_two(-half)));
  const Real rest = splat<Real>(static_cast<Scalar>(power_of_two(half - s.exponent)));
  Real squares = splat<Real>(0);
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int n = lanes_at(i);
    const Real x = T::widen(load_elements<T>(array, first + i, n)) * down * rest;
    squares = squares + select(mask(low_mask(n)), x * x, splat<Real>(0));
  }
  s.squares = fixed_point_sum(squares);
  return s;
}

}  // namespace arrcomp::ARRCOMP_MACHINE
