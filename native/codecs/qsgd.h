// QSGD on lanes: buckets of values, each between its own limits in equal steps (D. Alistarh et al., arXiv:1610.02132;
// with the buckets' minima and maxima as limits: CGX, I. Markov et al., arXiv:2111.08617). FORMAT.md, section 5.
#pragma once
#include <cmath>
#include <cstring>

#include "codecs/bucket_statistics.h"
#include "codecs/packing.h"
#include "codecs/philox.h"
#include "codecs/value_range.h"

namespace arrcomp::ARRCOMP_MACHINE {

// What is stored for a bucket.
template <class Scalar>
struct BucketNumbers {
  Scalar unit, low;  // NaN where a value is not finite; `low` is 0 with a norm
};

// What encoding multiplies: code = rint((x * prescale - low) * inverse + addend). The prescale is 1, or a power of two
// where numbers would not be normal or not finite; `low` is prescaled.
template <class Scalar>
struct BucketScale {
  Scalar low, prescale, inverse;
};

template <class T>
class Qsgd {
  using Real = typename T::Real;
  using Word = typename T::Word;
  using Scalar = typename Real::scalar;

 public:
  using Numbers = BucketNumbers<Scalar>;
  using Scale = BucketScale<Scalar>;

  ARRCOMP_METHOD explicit Qsgd(const QsgdSettings& settings)
      : settings_(settings), largest_(settings.largest_code()), has_norm_(settings.norm != Norm::minmax) {}

  ARRCOMP_METHOD Numbers numbers_of(const BucketStatistics& s) const {
    constexpr Scalar nan = sizeof(Scalar) == 8 ? Scalar(__builtin_nan("")) : Scalar(__builtin_nanf(""));
    if (!s.finite) return {nan, has_norm_ ? Scalar(0) : nan};
    if (has_norm_) return {unit_of_norm(limited(s.norm(settings_.norm))), 0};
    const auto low = static_cast<Scalar>(s.low), high = static_cast<Scalar>(s.high);
    // A negative zero keeps the sign of a constant bucket's zeros.
    if (!(low < high)) return {Scalar(-0.0), low};
    const auto steps = static_cast<Scalar>(largest_);
    Scalar unit = (high - low) / steps;
    if (!(unit <= largest_scalar())) unit = high / steps - low / steps;
    return {unit == 0 ? smallest_scalar() : limited(unit), low};
  }

  ARRCOMP_METHOD Scale scale_of(const Numbers& n) const {
    if (!(n.unit > 0)) return {has_norm_ ? Scalar(0) : n.low, 1, 0};
    const bool doubled = has_norm_ && settings_.bits == 1;
    const Scalar step = doubled ? 2 * n.unit : n.unit;
    Scalar prescale = 1;
    if (step < smallest_normal()) prescale = Scalar(0x1p64);
    if (!(n.unit <= most_unit())) prescale = Scalar(0.5);
    return {n.low * prescale, prescale, 1 / ((doubled ? 2 : 1) * (n.unit * prescale))};
  }

  // What is added before rounding: where 0 lies among the codes.
  ARRCOMP_METHOD Scalar offset() const { return has_norm_ ? Scalar(0.5) * static_cast<Scalar>(largest_) : 0; }

  // `scaled` is (x * prescale - low) * inverse, `addend` the offset and the dither: 0 to round to the nearest code, or
  // random between -1/2 and 1/2. NaN becomes 0: the order of max's arguments tells.
  ARRCOMP_METHOD U32 encode(Real scaled, Real addend) const {
    return nearest(min(max(splat<Real>(0), scaled + addend), splat<Real>(static_cast<Scalar>(largest_))));
  }

  // Whether a bucket's numbers are so large that something would overflow on the way: decode takes halves of them then,
  // and 2 as `factor`, else 1.
  ARRCOMP_METHOD bool is_halved(Scalar unit) const { return !(unit <= most_unit()); }

  ARRCOMP_METHOD Real decode(U32 code, Real unit, Real low, Real factor) const {
    if (!has_norm_) return (unit * real_of(code, Real{}) + low) * factor;
    const bool doubled = settings_.bits == 1;
    const U32 steps = (doubled ? code << 1 : code) - splat<U32>(doubled ? 1 : largest_ / 2);
    return unit * real_of(steps, Real{}) * factor;
  }

  ARRCOMP_METHOD static void store_numbers(uint8_t* at, const Numbers& n, int count) {
    auto* const numbers = static_cast<Scalar*>(__builtin_assume_aligned(at, sizeof(Scalar)));
    memcpy(numbers, &n.unit, sizeof(Scalar));
    if (count > 1) memcpy(numbers + 1, &n.low, sizeof(Scalar));
  }

  ARRCOMP_METHOD static Numbers load_numbers(const uint8_t* at, int count) {
    Numbers n{0, 0};
    const auto* const numbers = static_cast<const Scalar*>(__builtin_assume_aligned(at, sizeof(Scalar)));
    memcpy(&n.unit, numbers, sizeof(Scalar));
    if (count > 1) memcpy(&n.low, numbers + 1, sizeof(Scalar));
    return n;
  }

 private:
  ARRCOMP_METHOD static constexpr Scalar largest_scalar() {
    return sizeof(Scalar) == 8 ? Scalar(0x1.fffffffffffffp1023) : Scalar(0x1.fffffep127);
  }
  ARRCOMP_METHOD static constexpr Scalar smallest_normal() {
    return sizeof(Scalar) == 8 ? Scalar(0x1p-1022) : Scalar(0x1p-126);
  }
  ARRCOMP_METHOD static constexpr Scalar smallest_scalar() {
    return sizeof(Scalar) == 8 ? Scalar(0x1p-1074) : Scalar(0x1p-149);
  }

  ARRCOMP_METHOD Scalar most_unit() const { return largest_scalar() / (2 * static_cast<Scalar>(largest_)); }

  ARRCOMP_METHOD static Scalar limited(double x) {
    return x <= static_cast<double>(largest_scalar()) ? static_cast<Scalar>(x) : largest_scalar();
  }

  ARRCOMP_METHOD Scalar unit_of_norm(Scalar norm) const {
    if (settings_.bits == 1) return norm;
    const Scalar unit = norm / static_cast<Scalar>(largest_ / 2);
    return unit == 0 && norm > 0 ? smallest_scalar() : unit;
  }

  // The nearest integer, ties to even, of numbers from 0 to 2^31 - 1.
  ARRCOMP_METHOD static U32 nearest(F32 v) { return to_int(v); }
  ARRCOMP_METHOD static U32 nearest(F64 v) { return lo(as_bits(v + splat<F64>(0x1p52))); }

  // Of integers from -2^31 to 2^31 - 1.
  ARRCOMP_METHOD static F32 real_of(U32 x, F32) { return to_float(x); }
  ARRCOMP_METHOD static F64 real_of(U32 x, F64) {
    const U32 biased = x ^ splat<U32>(0x80000000u);
    return as_double(join(biased, splat<U32>(0x43300000u))) - splat<F64>(0x1p52 + 0x1p31);
  }

  QsgdSettings settings_;
  uint32_t largest_;
  bool has_norm_;
};

}  // namespace arrcomp::ARRCOMP_MACHINE
