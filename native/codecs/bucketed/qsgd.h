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

  // Of a bucket, or of a row of them.
  template <class Number>
  struct ParametersOf {
    Number unit, low;  // NaN where a value is not finite; `low` is 0 with a norm
  };
  using BucketParameters = ParametersOf<Scalar>;
  using ParameterRow = ParametersOf<Real>;

  // Encoding: code = rint((x * prescale - low) * inverse + offset + dither). The prescale is 1, or a power of two where
  // numbers would not be normal or not finite; `low` is prescaled.
  enum : int { low, inverse, prescale, encode_values };
  enum : int { unit, least, factor, decode_values };

  ARRCOMP_METHOD Qsgd(const QsgdSettings& settings, const Element& element, const uint8_t*)
      : settings_(settings),
        range_(element),
        largest_(settings.largest_code()),
        has_norm_(settings.norm != Norm::minmax),
        steps_of_code_(has_norm_ && settings.bits == 1 ? 2 : 1),
        steps_below_(has_norm_ ? largest_ * steps_of_code_ / 2 : 0) {}

  ARRCOMP_METHOD bool is_stochastic() const { return settings_.stochastic; }

  ARRCOMP_METHOD BucketParameters fit(const BucketStatistics& s, const BucketValues&) const {
    if (settings_.norm == Norm::l2)
      return {s.finite ? unit_of_norm(limited<Scalar>(s.l2_norm())) : Limits::nan(), Scalar(0)};
    if (!s.finite) return of_extremes(Limits::nan(), Limits::nan());
    return of_extremes(static_cast<Scalar>(s.low), static_cast<Scalar>(s.high));
  }

  // The same of a row of buckets, from their smallest and largest values, NaN where one is not finite.
  ARRCOMP_METHOD ParameterRow fit(Real smallest, Real highest) const { return of_extremes(smallest, highest); }
  ARRCOMP_SHARED static bool fits_extremes(const QsgdSettings& settings) { return settings.norm != Norm::l2; }

  ARRCOMP_METHOD void store(uint8_t* at, const BucketParameters& n) const {
    const Scalar numbers[2] = {n.unit, n.low};
    store_scalars(at, numbers, has_norm_ ? 1 : 2);
  }
  ARRCOMP_METHOD void store(uint8_t* at, const ParameterRow& row, int n, Scalar* memory) const {
    if (has_norm_) return store_row(reinterpret_cast<Scalar*>(at), row.unit, n);
    store_pairs(at, row.unit, row.low, n, memory);
  }

  ARRCOMP_METHOD BucketParameters load(const uint8_t* at) const {
    Scalar numbers[2] = {0, 0};
    load_scalars(at, numbers, has_norm_ ? 1 : 2);
    return {numbers[0], numbers[1]};
  }
  ARRCOMP_METHOD ParameterRow load(const uint8_t* at, int n) const {
    if (has_norm_) return {load_scalar_row<Real>(at, n, 1, 0), splat<Real>(0)};
    return {load_scalar_row<Real>(at, n, 2, 0), load_scalar_row<Real>(at, n, 2, 1)};
  }

  // Simple where the prescale is 1.
  template <class Number>
  ARRCOMP_METHOD bool scale_of(const ParametersOf<Number>& n, Number (&scale)[encode_values]) const {
    const auto is = [](Scalar x) ARRCOMP_LAMBDA { return number_of(x, Number{}); };
    const auto times = static_cast<Scalar>(steps_of_code_);
    const auto has_steps = lt(is(0), n.unit);
    const Number of_small = select(lt(is(times) * n.unit, is(Limits::smallest_normal)), is(Scalar(0x1p64)), is(1));
    const Number of_any = select(le(n.unit, is(largest_step())), of_small, is(Scalar(0.5)));
    scale[prescale] = select(has_steps, of_any, is(1));
    scale[low] = n.low * scale[prescale];
    scale[inverse] = select(has_steps, is(1) / (is(times) * (n.unit * scale[prescale])), is(0));
    return !any(lt(scale[prescale], is(1)) | lt(is(1), scale[prescale]));
  }

  ARRCOMP_METHOD static Real prescaled(Real x, const Real (&scale)[encode_values]) { return x * scale[prescale]; }

  template <class Random>
  ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[encode_values], bool simple, Random random) const {
    if (!simple) x = prescaled(x, scale);
    const Real scaled = (x - scale[low]) * scale[inverse] + addend(random);
    return nearest_code(scaled, largest_);
  }

  // Where something would overflow on the way, halves of the numbers, and 2 as `factor`; simple where nothing can.
  template <class Number>
  ARRCOMP_METHOD bool decoded_of(const ParametersOf<Number>& n, Number (&decoded)[decode_values]) const {
    const auto is = [](Scalar x) ARRCOMP_LAMBDA { return number_of(x, Number{}); };
    const auto is_whole = le(n.unit, is(largest_step()));
    const Number half = select(is_whole, is(1), is(Scalar(0.5)));
    decoded[unit] = n.unit * half;
    decoded[least] = has_norm_ ? is(Scalar(-0.0)) : n.low * half;
    decoded[factor] = select(is_whole, is(1), is(2));
    const Number least_step = is(-largest_step()), lowest = is(-Limits::largest / 2), highest = is(Limits::largest / 2);
    return all(is_whole & le(least_step, n.unit) & le(lowest, n.low) & le(n.low, highest));
  }

  ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], bool simple) const {
    const Real y = value_of(code, decoded);
    return simple ? range_.element(y, true) : settled(y, decoded);
  }
  ARRCOMP_METHOD Real settled(Real y, const Real (&decoded)[decode_values]) const {
    return range_.element(y * decoded[factor]);
  }

  // Of simple buckets: of elements with the arithmetic type's range, or of others.
  template <bool is_whole>
  struct ShortDecoder {
    const Qsgd& codec;

    ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], Mask&) const {
      const Real y = codec.value_of(code, decoded);
      return is_whole ? y : codec.range_.limited(y);
    }
  };
  template <class Visit>
  ARRCOMP_METHOD void visit_short_decoder(Visit visit) const {
    if (range_.is_whole()) return visit(ShortDecoder<true>{*this});
    visit(ShortDecoder<false>{*this});
  }

 private:
  using Limits = ScalarLimits<Scalar>;

  // Where rows are made without branches, the least value is added to all: with a norm it is -0, which changes nothing.
  ARRCOMP_METHOD Real value_of(U32 code, const Real (&decoded)[decode_values]) const {
    constexpr bool has_branches = rows_at_once > 1;
    if (has_branches && !has_norm_) return decoded[unit] * real_of(code, Real{}) + decoded[least];
    const U32 steps = code * splat<U32>(steps_of_code_) - splat<U32>(steps_below_);
    const Real y = decoded[unit] * real_of(steps, Real{});
    return has_branches ? y : y + decoded[least];
  }

  // What is added before rounding: where 0 lies among the codes, and random numbers between -1/2 and 1/2.
  ARRCOMP_METHOD Real offset() const {
    return splat<Real>(has_norm_ ? Scalar(0.5) * static_cast<Scalar>(largest_) : Scalar(0));
  }
  ARRCOMP_METHOD Real addend(Nearest) const { return offset(); }
  ARRCOMP_METHOD Real addend(U32 random) const { return offset() + centered(random, Real{}); }

  // Larger ones are halved where they are multiplied.
  ARRCOMP_METHOD Scalar largest_step() const { return Limits::largest / (2 * static_cast<Scalar>(largest_)); }

  // With the extremes as limits, or their largest magnitude as norm.
  template <class Number>
  ARRCOMP_METHOD ParametersOf<Number> of_extremes(Number smallest, Number highest) const {
    const auto is = [](Scalar x) ARRCOMP_LAMBDA { return number_of(x, Number{}); };
    const auto are_numbers = le(smallest, highest);
    if (has_norm_) {
      const Number below = is(0) - smallest, norm = select(lt(highest, below), below, highest);
      return {select(are_numbers, unit_of_norm(norm), is(Limits::nan())), is(0)};
    }
    const Number steps = is(static_cast<Scalar>(largest_)), most = is(Limits::largest);
    Number step = (highest - smallest) / steps;
    if (!all(le(step, most))) step = select(le(step, most), step, highest / steps - smallest / steps);
    step = select(le(step, is(0)), is(Limits::smallest), select(le(step, most), step, most));
    // A negative zero keeps the sign of a constant bucket's zeros.
    const Number unit = select(lt(smallest, highest), step, is(Scalar(-0.0)));
    return {select(are_numbers, unit, is(Limits::nan())), smallest};
  }

  template <class Number>
  ARRCOMP_METHOD Number unit_of_norm(Number norm) const {
    if (settings_.bits == 1) return norm;
    const auto is = [](Scalar x) ARRCOMP_LAMBDA { return number_of(x, Number{}); };
    const Number step = norm / is(static_cast<Scalar>(largest_ / 2));
    return select(le(step, is(0)) & lt(is(0), norm), is(Limits::smallest), step);
  }

  QsgdSettings settings_;
  ElementRange<Real> range_;
  uint32_t largest_;
  bool has_norm_;
  uint32_t steps_of_code_, steps_below_;  // with a norm: between two codes, and from code 0 to the value 0
};

template <class Real>
struct CoderOf<QsgdSettings, Real> {
  using type = Qsgd<Real>;
};

}  // namespace arrcomp::ARRCOMP_ISA
