// Statistics of a bucket's values on lanes. Sums are of integers: their order does not show.
#pragma once
#include <cstring>
#include <type_traits>

#include "codecs/logarithm.h"
#include "codecs/packing.h"
#include "codecs/transform.h"
#include "codecs/value_range.h"
#include "stream/bucket_statistics.h"

namespace arrcomp::ARRCOMP_MACHINE {

ARRCOMP_INLINE uint64_t sum_all(U64 x) { return or_all(broadcast_last(prefix_sum(x))); }
// Modulo 2^32, as a signed number.
ARRCOMP_INLINE uint64_t sum_all(U32 x) { return static_cast<uint64_t>(int64_t{static_cast<int32_t>(sum(x))}); }

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

// Sums up the logarithms of magnitudes, as the logarithm of a product of their mantissas, and their exponents.
template <class Real>
class LogarithmSum {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;
  using Bits = typename Layout::Bits;

 public:
  // At most 128 rows.
  ARRCOMP_METHOD void add(Real x) {
    const Mask tiny = lt(as_bits(x), splat<Word>(Layout::least_normal));
    if (any(tiny)) x = normal(x, tiny);
    const Word bits = as_bits(x);
    exponents_ = exponents_ + (bits >> Layout::mantissa_bits);
    // Two products in turn, as one of 128 factors could overflow.
    const Real product = before_ * real_of_bits((bits & splat<Word>(Layout::mantissa)) | splat<Word>(Layout::one));
    before_ = last_;
    last_ = product;
    ++rows_;
  }

  ARRCOMP_METHOD uint64_t nonzeros() const { return rows_ * lanes_per_row - zeros_; }

  ARRCOMP_METHOD double sum() const {
    const Logarithm<Real> a = logarithm_of(last_), b = logarithm_of(before_);
    const uint64_t bias = static_cast<uint64_t>(Layout::one >> Layout::mantissa_bits) * rows_ * lanes_per_row;
    const auto exponents = static_cast<int64_t>(sum_all(exponents_) - bias);
    return static_cast<double>(exponents) + fixed_point_sum((a.whole + b.whole) + (a.part + b.part));
  }

 private:
  // Zeros become 1, of which the logarithm is 0; subnormal numbers are multiplied by 2^64.
  ARRCOMP_METHOD Real normal(Real x, Mask tiny) {
    const Mask zero = eq(as_bits(x), splat<Word>(0));
    zeros_ += static_cast<uint64_t>(count(zero));
    exponents_ = exponents_ - select(tiny & ~zero, splat<Word>(64), splat<Word>(0));
    return select(zero, splat<Real>(1), select(tiny, x * splat<Real>(0x1p64f), x));
  }

  Word exponents_ = splat<Word>(0);
  Real last_ = splat<Real>(1), before_ = splat<Real>(1);
  uint64_t rows_ = 0, zeros_ = 0;
};

// Of the elements [first, first + count), which are finite.
template <class T>
ARRCOMP_PART void add_logarithms(const void* array, uint64_t first, uint64_t count, BucketStatistics& s) {
  using Real = typename T::Real;
  LogarithmSum<Real> logarithms;
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int n = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    const Real x = abs(T::widen(load_elements<T>(array, first + i, n)));
    logarithms.add(n == lanes_per_row ? x : select(mask(low_mask(n)), x, splat<Real>(0)));
  }
  s.logarithms = logarithms.sum();
  s.nonzeros = logarithms.nonzeros();
}

// The same of numbers from -128 to 128.
ARRCOMP_INLINE double signed_fixed_point_sum(F32 x) {
  const U32 biased = to_int(x * splat<F32>(0x1p23f)) + splat<U32>(1u << 30);
  return static_cast<double>(sum_all(join(biased, splat<U32>(0)))) * 0x1p-23 - lanes_per_row * 128;
}
ARRCOMP_INLINE double signed_fixed_point_sum(F64 x) {
  const U64 biased = as_bits(x * splat<F64>(0x1p40) + splat<F64>(0x1.8p52)) & splat<U64>((uint64_t{1} << 52) - 1);
  return static_cast<double>(sum_all(biased)) * 0x1p-40 - lanes_per_row * 2048.0;
}

// Mean and squared deviations of elements whose range is known, from sums about the middle of the range: however far
// from 0 they lie, nothing cancels.
template <class T>
ARRCOMP_PART void add_mean_and_deviation(const void* array, uint64_t first, uint64_t count, BucketStatistics& s) {
  using Real = typename T::Real;
  using Scalar = typename Real::scalar;
  const auto n = static_cast<double>(count);
  const auto middle = static_cast<Scalar>(s.low / 2 + s.high / 2);
  const auto centre = static_cast<double>(middle);
  const double radius = s.high - centre < centre - s.low ? centre - s.low : s.high - centre;
  s.count = n;
  const double largest = s.largest_magnitude();
  if (largest <= 0) return;
  s.exponent = ilogb(largest) + 1;
  s.mean = times_power_of_two(centre, -s.exponent);
  if (radius <= 0) return;
  const int exponent = ilogb(radius) + 1, half = exponent / 2;
  const Real down = splat<Real>(static_cast<Scalar>(power_of_two(-half)));
  const Real rest = splat<Real>(static_cast<Scalar>(power_of_two(half - exponent)));
  Real sum = splat<Real>(0), squares = splat<Real>(0);
  for (uint64_t i = 0; i < count; i += lanes_per_row) {
    const int lanes = count - i < lanes_per_row ? static_cast<int>(count - i) : lanes_per_row;
    const Real x = (T::widen(load_elements<T>(array, first + i, lanes)) - splat<Real>(middle)) * down * rest;
    const Real term = lanes == lanes_per_row ? x : select(mask(low_mask(lanes)), x, splat<Real>(0));
    sum = sum + term;
    squares = squares + term * term;
  }
  const double total = signed_fixed_point_sum(sum), about_mean = fixed_point_sum(squares) - total * (total / n);
  s.mean = s.mean + total / n * power_of_two(exponent - s.exponent);
  s.squares = (about_mean > 0 ? about_mean : 0) * power_of_two(2 * (exponent - s.exponent));
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
  if (moments == mean_and_deviation) add_mean_and_deviation<T>(array, first, count, s);
  const double largest = s.largest_magnitude();
  if (moments == sum_of_logarithms && largest > 0) add_logarithms<T>(array, first, count, s);
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
