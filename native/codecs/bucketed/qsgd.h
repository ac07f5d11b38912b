// QSGD on lanes: buckets of values, each between its own limits in equal steps (D. Alistarh et al., arXiv:1610.02132;
// with the buckets' minima and maxima as limits: CGX, I. Markov et al., arXiv:2111.08617). FORMAT.md, section 5.1.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "stream/qsgd.h"

namespace arrcomp::ARRCOMP_ISA {

template <class R>
class Qsgd {
 public:
  using Real = R;
  using Scalar = typename Real::scalar;
  using Settings = QsgdSettings;

  struct BucketParameters {
    Scalar unit, low;  // NaN where a value is not finite; `low` is 0 with a norm
  };

  // Encoding: code = rint((x * prescale - low) * inverse + offset + dither). The prescale is 1, or a power of two where
  // numbers would not be normal or not finite; `low` is prescaled.
  enum : int { low, inverse, prescale, encode_values };
  enum : int { unit, least, factor, decode_values };

  ARRCOMP_METHOD Qsgd(const QsgdSettings& settings, const Element& element, const uint8_t*)
      : settings_(settings),
        range_(element),
        largest_(settings.largest_code()),
        has_norm_(settings.norm != Norm::minmax) {}

  ARRCOMP_METHOD bool is_stochastic() const { return settings_.stochastic; }

  ARRCOMP_METHOD BucketParameters fit(const BucketStatistics& s, const BucketValues&) const {
    if (!s.finite) return {Limits::nan(), has_norm_ ? Scalar(0) : Limits::nan()};
    if (settings_.norm == Norm::l2) return {unit_of_norm(limited<Scalar>(s.l2_norm())), 0};
    if (has_norm_) return {unit_of_norm(limited<Scalar>(s.largest_magnitude())), 0};
    const auto smallest = static_cast<Scalar>(s.low), highest = static_cast<Scalar>(s.high);
    // A negative zero keeps the sign of a constant bucket's zeros.
    if (!(smallest < highest)) return {Scalar(-0.0), smallest};
    const auto steps = static_cast<Scalar>(largest_);
    Scalar step = (highest - smallest) / steps;
    if (!(step <= Limits::largest)) step = highest / steps - smallest / steps;
    return {step == 0 ? Limits::smallest : limited<Scalar>(step), smallest};
  }

  ARRCOMP_METHOD void store(uint8_t* at, const BucketParameters& n) const {
    const Scalar numbers[2] = {n.unit, n.low};
    store_scalars(at, numbers, settings_.parameter_count());
  }

  ARRCOMP_METHOD BucketParameters load(const uint8_t* at) const {
    Scalar numbers[2] = {0, 0};
    load_scalars(at, numbers, settings_.parameter_count());
    return {numbers[0], numbers[1]};
  }

  // Simple where the prescale is 1.
  ARRCOMP_METHOD bool scale_of(const BucketParameters& n, Scalar (&scale)[encode_values]) const {
    scale[low] = has_norm_ ? Scalar(0) : n.low;
    scale[inverse] = 0;
    scale[prescale] = 1;
    if (!(n.unit > 0)) return true;
    const bool doubled = has_norm_ && settings_.bits == 1;
    const Scalar step = doubled ? 2 * n.unit : n.unit;
    if (step < Limits::smallest_normal) scale[prescale] = Scalar(0x1p64);
    if (is_halved(n.unit)) scale[prescale] = Scalar(0.5);
    scale[low] = n.low * scale[prescale];
    scale[inverse] = 1 / ((doubled ? 2 : 1) * (n.unit * scale[prescale]));
    return scale[prescale] == 1;
  }

  template <class Random>
  ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[encode_values], bool simple, Random random) const {
    if (!simple) x = x * scale[prescale];
    const Real scaled = (x - scale[low]) * scale[inverse] + addend(random);
    // NaN becomes 0: the order of max's arguments tells.
    return nearest_integer(min(max(splat<Real>(0), scaled), splat<Real>(static_cast<Scalar>(largest_))));
  }

  // Where something would overflow on the way, halves of the numbers, and 2 as `factor`; simple where nothing can.
  ARRCOMP_METHOD bool decoded_of(const BucketParameters& n, Scalar (&decoded)[decode_values]) const {
    const bool halved = is_halved(n.unit);
    decoded[unit] = n.unit * Scalar(halved ? 0.5 : 1);
    decoded[least] = n.low * Scalar(halved ? 0.5 : 1);
    decoded[factor] = Scalar(halved ? 2 : 1);
    return !halved && !is_halved(-n.unit) && is_within(n.low, Limits::largest / 2);
  }

  ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], bool simple) const {
    const Real y = value_of(code, decoded);
    return range_.element(simple ? y : y * decoded[factor], simple);
  }

 private:
  using Limits = ScalarLimits<Scalar>;

  ARRCOMP_METHOD Real value_of(U32 code, const Real (&decoded)[decode_values]) const {
    if (!has_norm_) return decoded[unit] * real_of(code, Real{}) + decoded[least];
    const bool doubled = settings_.bits == 1;
    const U32 steps = (doubled ? code << 1 : code) - splat<U32>(doubled ? 1 : largest_ / 2);
    return decoded[unit] * real_of(steps, Real{});
  }

  // What is added before rounding: where 0 lies among the codes, and random numbers between -1/2 and 1/2.
  ARRCOMP_METHOD Real offset() const {
    return splat<Real>(has_norm_ ? Scalar(0.5) * static_cast<Scalar>(largest_) : Scalar(0));
  }
  ARRCOMP_METHOD Real addend(Nearest) const { return offset(); }
  ARRCOMP_METHOD Real addend(U32 random) const { return offset() + centered(random, Real{}); }

  ARRCOMP_METHOD bool is_halved(Scalar step) const {
    return !(step <= Limits::largest / (2 * static_cast<Scalar>(largest_)));
  }

  ARRCOMP_METHOD Scalar unit_of_norm(Scalar norm) const {
    if (settings_.bits == 1) return norm;
    const Scalar step = norm / static_cast<Scalar>(largest_ / 2);
    return step == 0 && norm > 0 ? Limits::smallest : step;
  }

  QsgdSettings settings_;
  ElementRange<Real> range_;
  uint32_t largest_;
  bool has_norm_;
};

template <class Real>
struct CoderOf<QsgdSettings, Real> {
  using type = Qsgd<Real>;
};

}  // namespace arrcomp::ARRCOMP_ISA
