// Statistics of a bucket's values on lanes. Sums are of integers: their order does not show. Values have
// each_row<Real>(visit), as StoredElements do.
#pragma once
#include "codecs/numeric/logarithm.h"
#include "codecs/numeric/scalars.h"
#include "codecs/packing.h"
#include "codecs/transform.h"
#include "codecs/value_range.h"
#include "stream/bucket_statistics.h"

namespace arrcomp::ARRCOMP_ISA {

// Without carries from one half to the other.
ARRCOMP_INLINE uint64_t unsigned_sum(U32 x) { return sum(x & splat<U32>(0xffff)) + (uint64_t{sum(x >> 16)} << 16); }
// Modulo 2^64.
ARRCOMP_INLINE uint64_t sum_all(U64 x) { return unsigned_sum(lo(x)) + (unsigned_sum(hi(x)) << 32); }
// Modulo 2^32, as a signed number.
ARRCOMP_INLINE uint64_t sum_all(U32 x) { return static_cast<uint64_t>(int64_t{static_cast<int32_t>(sum(x))}); }

// The sum over the lanes of numbers from 0 to 128.
ARRCOMP_INLINE double fixed_point_sum(F32 x) {
  const U32 fixed = to_int(x * splat<F32>(0x1p23f));
  return static_cast<double>(unsigned_sum(fixed)) * 0x1p-23;
}
ARRCOMP_INLINE double fixed_point_sum(F64 x) {
  const U64 fixed = as_bits(x * splat<F64>(0x1p40) + splat<F64>(0x1p52)) & splat<U64>((uint64_t{1} << 52) - 1);
  return static_cast<double>(sum_all(fixed)) * 0x1p-40;
}

// The largest magnitude of values: infinity or NaN where one of them is not finite, or that of the finite ones alone.
template <class Real, bool of_finite = false, class Values>
ARRCOMP_METHOD typename Real::scalar magnitude_of(const Values& values) {
  auto largest = as_bits(splat<Real>(0));
  values.template each_row<Real>([&](Real x, int) ARRCOMP_LAMBDA {
    Real magnitude = abs(x);
    if (of_finite) magnitude = select(le(magnitude, largest_number(Real{})), magnitude, splat<Real>(0));
    largest = max(largest, as_bits(magnitude));
  });
  return largest_magnitude_of(real_of_bits(largest));
}

template <class Scalar>
ARRCOMP_INLINE bool is_finite_magnitude(Scalar x) {
  return static_cast<double>(x) <= 0x1.fffffffffffffp1023;
}

template <class Real, class Values>
ARRCOMP_METHOD BucketStatistics magnitude_statistics_of(const Values& values) {
  BucketStatistics s = BucketStatistics::none();
  auto largest = magnitude_of<Real>(values);
  s.finite = is_finite_magnitude(largest);
  if (!s.finite) largest = magnitude_of<Real, true>(values);
  s.high = static_cast<double>(largest);
  s.low = -s.high;
  return s;
}

// Something else behind the first n lanes.
template <class Real>
ARRCOMP_INLINE Real first_lanes(Real x, int n, typename Real::scalar behind = 0) {
  return n == lanes_per_row ? x : select(mask(low_mask(n)), x, splat<Real>(behind));
}

// Sums up the logarithms of magnitudes, as the logarithm of a product of their mantissas, and their exponents.
template <class Real>
class LogarithmSum {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;
  using Bits = typename Layout::Bits;

 public:
  // At most 128 rows. Those of subnormal numbers must be `exact`, or else all are to be added again.
  template <bool exact = false>
  ARRCOMP_METHOD void add(Real x, int n = lanes_per_row) {
    x = first_lanes(x, n, 1);
    if constexpr (exact) x = normal(x);
    sum_exponents(x, n);
    const Real product = before_ * mantissa(x);
    before_ = last_;
    last_ = product;
  }

  // The same in two loops. Both products are named here: what a compiler copies from one to the other goes through memory.
  ARRCOMP_METHOD void add_exponents(Real x, int n) { sum_exponents(first_lanes(x, n, 1), n); }
  ARRCOMP_METHOD void multiply(Real x, int n, bool& is_odd) {
    const Real factor = mantissa(first_lanes(x, n, 1));
    if (is_odd) {
      last_ = last_ * factor;
    } else {
      before_ = before_ * factor;
    }
    is_odd = !is_odd;
  }

  // Whether there were zeros or subnormal numbers. Rows are then to be counted.
  ARRCOMP_METHOD bool has_tiny() const { return any(lt(least_, splat<Word>(Layout::min_normal))); }
  ARRCOMP_METHOD void count_tiny(Real x, int n) {
    const Word bits = as_bits(first_lanes(x, n, 1));
    const Mask is_zero = eq(bits, splat<Word>(0));
    zeros_ += count(is_zero);
    has_subnormals_ = has_subnormals_ | (lt(bits, splat<Word>(Layout::min_normal)) & ~is_zero);
  }
  ARRCOMP_METHOD bool has_subnormals() const { return any(has_subnormals_); }

  ARRCOMP_METHOD uint64_t nonzeros() const { return static_cast<uint64_t>(rows_ * lanes_per_row - missing_ - zeros_); }

  ARRCOMP_METHOD double sum() const {
    const Logarithm<Real> a = logarithm_of(last_), b = logarithm_of(before_);
    const auto bias = static_cast<uint64_t>(Layout::bias * (rows_ * lanes_per_row - zeros_));
    const auto exponents = static_cast<int64_t>(sum_all(exponents_) - bias);
    return static_cast<double>(exponents) + fixed_point_sum((a.whole + b.whole) + (a.part + b.part));
  }

 private:
  // Of a row with factors of 1 behind its first n lanes.
  ARRCOMP_METHOD void sum_exponents(Real x, int n) {
    const Word bits = as_bits(x);
    least_ = min(least_, bits);
    exponents_ = exponents_ + (bits >> Layout::mantissa_bits);
    ++rows_;
    missing_ += lanes_per_row - n;
  }

  // Two products in turn, as one of 128 factors could overflow. Zeros are factors of 1.
  ARRCOMP_METHOD static Real mantissa(Real x) {
    return real_of_bits(masked_or<Layout::mantissa, Layout::one>(as_bits(x)));
  }

  // Subnormal numbers are multiplied by 2^64.
  ARRCOMP_METHOD Real normal(Real x) {
    const Word bits = as_bits(x);
    const Mask is_subnormal = lt(bits, splat<Word>(Layout::min_normal)) & ne(bits, splat<Word>(0));
    exponents_ = exponents_ - select(is_subnormal, splat<Word>(64), splat<Word>(0));
    return select(is_subnormal, x * splat<Real>(0x1p64f), x);
  }

  Word least_ = splat<Word>(Layout::infinity), exponents_ = splat<Word>(0);
  Real last_ = splat<Real>(1), before_ = splat<Real>(1);
  Mask has_subnormals_ = mask(0);
  int rows_ = 0, missing_ = 0, zeros_ = 0;
};

// Of values among which are zeros or subnormal numbers: in place of `found`, which is passed as a copy, as what others
// have the address of stays in memory.
template <class Real, class Values>
ARRCOMP_APART LogarithmSum<Real> with_tiny(const Values& values, LogarithmSum<Real> found) {
  values.template each_row<Real>([&](Real x, int n) ARRCOMP_LAMBDA { found.count_tiny(abs(x), n); });
  if (!found.has_subnormals()) return found;
  LogarithmSum<Real> again;
  values.template each_row<Real>([&](Real x, int n) ARRCOMP_LAMBDA {
    again.count_tiny(abs(x), n);
    again.template add<true>(abs(x), n);
  });
  return again;
}

// With the largest magnitude: in one pass, or in two where registers do not hold all that one adds to.
template <class Real, class Values>
ARRCOMP_PART BucketStatistics logarithm_statistics_of(const Values& values) {
  constexpr bool in_two = rows_at_once > 1 && rows_side_by_side == 1;
  LogarithmSum<Real> logarithms;
  auto largest_bits = as_bits(splat<Real>(0));
  values.template each_row<Real>([&](Real x, int n) ARRCOMP_LAMBDA {  // counted as: logarithms
    const Real magnitude = abs(x);
    largest_bits = max(largest_bits, as_bits(magnitude));
    if constexpr (in_two) {
      logarithms.add_exponents(magnitude, n);
    } else {
      logarithms.add(magnitude, n);
    }
  });
  if constexpr (in_two) {
    bool is_odd = false;
    values.template each_row<Real>([&](Real x, int n) ARRCOMP_LAMBDA { logarithms.multiply(abs(x), n, is_odd); });
  }
  BucketStatistics s = BucketStatistics::none();
  const auto largest = largest_magnitude_of(real_of_bits(largest_bits));
  s.finite = is_finite_magnitude(largest);
  if (!s.finite) return s;
  s.high = static_cast<double>(largest);
  s.low = -s.high;
  if (logarithms.has_tiny()) {
    const LogarithmSum<Real> all = with_tiny(values, logarithms);
    s.logarithms = all.sum();
    s.nonzeros = all.nonzeros();
  } else {
    s.logarithms = logarithms.sum();
    s.nonzeros = logarithms.nonzeros();
  }
  return s;
}

// The same of numbers from -128 to 128.
ARRCOMP_INLINE double signed_fixed_point_sum(F32 x) {
  const U32 biased = to_int(x * splat<F32>(0x1p23f)) + splat<U32>(1u << 30);
  return static_cast<double>(unsigned_sum(biased)) * 0x1p-23 - lanes_per_row * 128;
}
ARRCOMP_INLINE double signed_fixed_point_sum(F64 x) {
  const U64 biased = as_bits(x * splat<F64>(0x1p40) + splat<F64>(0x1.8p52)) & splat<U64>((uint64_t{1} << 52) - 1);
  return static_cast<double>(sum_all(biased)) * 0x1p-40 - lanes_per_row * 2048.0;
}

// Of lanes, each over its rows.
template <class Real>
struct RowSums {
  Real of_terms, of_squares;

  // False where one of the values is not finite.
  ARRCOMP_METHOD bool finite() const { return !any(~le(of_squares, largest_number(Real{}))); }
};

// Of (x - middle) / 2^exponent, of which magnitudes are at most 1. Where no sum of what is not divided overflows, nor
// loses what counts, the sums are divided in place of the terms. 2^exponent may be no number, and is then divided by in
// two steps. What all this changes are subnormal terms and squares, which the sums' last bits never see.
template <class Real, class Values>
ARRCOMP_PART RowSums<Real> sums_about(typename Real::scalar middle, int exponent, const Values& values) {
  const auto factor = [](int e)
                          ARRCOMP_LAMBDA { return splat<Real>(static_cast<typename Real::scalar>(power_of_two(e))); };
  const auto sums_of = [&](auto scaled) ARRCOMP_LAMBDA {
    RowSums<Real> sums{splat<Real>(0), splat<Real>(0)};
    values.template each_row<Real>([&](Real x, int n) ARRCOMP_LAMBDA {
      const Real term = first_lanes(scaled(x - splat<Real>(middle)), n);
      sums.of_terms = sums.of_terms + term;
      sums.of_squares = sums.of_squares + term * term;
    });
    return sums;
  };
  if (-28 < exponent && exponent < 40) {
    RowSums<Real> sums = sums_of([](Real x) ARRCOMP_LAMBDA { return x; });
    sums.of_terms = sums.of_terms * factor(-exponent);
    sums.of_squares = sums.of_squares * factor(-2 * exponent);
    return sums;
  }
  const Real once = factor(-exponent), down = factor(-(exponent / 2)), rest = factor(exponent / 2 - exponent);
  if (-100 < exponent && exponent < 100) return sums_of([&](Real x) ARRCOMP_LAMBDA { return x * once; });
  return sums_of([&](Real x) ARRCOMP_LAMBDA { return x * down * rest; });
}

// Mean and squared deviations of `count` values whose range is known, from sums about the middle of the range: however far
// from 0 they lie, nothing cancels. s.finite becomes false where there is NaN among values that are not all the same.
template <class Real, class Values>
ARRCOMP_PART void add_mean_and_deviation(const Values& values, uint64_t count, BucketStatistics& s) {
  const auto n = static_cast<double>(count);
  const auto middle = static_cast<typename Real::scalar>(s.low / 2 + s.high / 2);
  const auto centre = static_cast<double>(middle);
  const double radius = s.high - centre < centre - s.low ? centre - s.low : s.high - centre;
  s.count = n;
  const double largest = s.largest_magnitude();
  if (largest <= 0) return;
  s.exponent = exponent_of(largest) + 1;
  s.mean = times_power_of_two(centre, -s.exponent);
  if (radius <= 0) return;
  const int exponent = exponent_of(radius) + 1;
  const auto sums = sums_about<Real>(middle, exponent, values);
  s.finite = sums.finite();
  if (!s.finite) return;
  const double total = signed_fixed_point_sum(sums.of_terms);
  const double about_mean = fixed_point_sum(sums.of_squares) - total * (total / n);
  s.mean = s.mean + total / n * power_of_two(exponent - s.exponent);
  s.squares = (about_mean > 0 ? about_mean : 0) * power_of_two(2 * (exponent - s.exponent));
}

template <class Real, class Values>
ARRCOMP_PART void add_squares(const Values& values, BucketStatistics& s) {
  s.exponent = exponent_of(s.largest_magnitude()) + 1;
  const auto sums = sums_about<Real>(0, s.exponent, values);
  s.finite = sums.finite();
  if (s.finite) s.squares = fixed_point_sum(sums.of_squares);
}

// The smallest and the largest value; anything where one of them is not finite.
struct Extremes {
  double low, high;
  bool finite;
};

// `exact`: of zeros of both signs the last, in each lane. Else it may be any of them. `of_numbers`: there is no NaN, or it
// does not matter.
template <class Real, bool exact = true, bool of_numbers = false>
class LaneExtremes {
  using Layout = RealLayout<Real>;
  using Word = typename Layout::Word;

 public:
  ARRCOMP_METHOD void add(Real x) {
    low_ = exact ? min(x, low_) : lower(x, low_);
    high_ = exact ? max(x, high_) : higher(x, high_);
    if (!of_numbers) nothing_ = near_sum(x, splat<Real>(0), nothing_);
  }

  ARRCOMP_METHOD Extremes of_all() const {
    if (any(~le(nothing_, splat<Real>(0)))) return {0, 0, false};
    return {smallest_of(low_), largest_of(high_), true};
  }

  // Keys whose order is that of the numbers, or the reverse.
  ARRCOMP_METHOD Word high_keys() const { return order_keys(high_); }
  ARRCOMP_METHOD Word low_keys() const {
    return order_keys(low_) ^ splat<Word>(static_cast<typename Layout::Bits>(-1));
  }
  // Infinity or above where a value is not finite.
  ARRCOMP_METHOD Word magnitudes() const { return as_bits(abs(nothing_)); }

 private:
  Real low_ = largest_number(Real{}), high_ = splat<Real>(0) - low_;
  Real nothing_ = splat<Real>(0);  // NaN where a value is not finite
};

template <class Real, class Values>
ARRCOMP_APART Extremes exact_extremes_of(const Values& values) {
  LaneExtremes<Real> extremes;
  values.template each_row<Real>([&](Real x, int) ARRCOMP_LAMBDA { extremes.add(x); });
  return extremes.of_all();
}

// Signs of zeros count where there are no other values. `of_numbers`: NaN is found where it is next to values that are
// all the same, and may be overlooked elsewhere.
template <class Real, bool of_numbers, class Values>
ARRCOMP_METHOD Extremes extremes_of(const Values& values) {
  LaneExtremes<Real, false, of_numbers> extremes;
  values.template each_row<Real, false>([&](Real x, int) ARRCOMP_LAMBDA { extremes.add(x); });
  Extremes found = extremes.of_all();
  if (of_numbers) found.finite = is_finite_magnitude(found.high) && is_finite_magnitude(-found.low);
  if (!found.finite || found.low < found.high || (found.low != 0 && !of_numbers)) return found;
  return exact_extremes_of<Real>(values);
}

// Of `count` values, at least one and at most a segment.
template <class Real, class Values>
ARRCOMP_PART BucketStatistics statistics_of(const Values& values, uint64_t count, Moments moments) {
  if (moments == largest_magnitude) return magnitude_statistics_of<Real>(values);
  if (moments == sum_of_logarithms) return logarithm_statistics_of<Real>(values);
  BucketStatistics s = BucketStatistics::none();
  // Sums tell of NaN, too.
  Extremes found;
  if (moments != no_moments) {
    found = extremes_of<Real, true>(values);
  } else {
    found = extremes_of<Real, false>(values);
  }
  s.finite = found.finite;
  if (!s.finite) return s;
  s.low = found.low;
  s.high = found.high;
  if (moments == mean_and_deviation) add_mean_and_deviation<Real>(values, count, s);
  if (moments == sum_of_squares && s.largest_magnitude() > 0) add_squares<Real>(values, s);
  if (!s.finite) {
    s = BucketStatistics::none();
    s.finite = false;
  }
  return s;
}

}  // namespace arrcomp::ARRCOMP_ISA
