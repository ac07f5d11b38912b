// Small number formats on lanes: each element cast, alone or divided by a scale of its bucket; blocks with scales of a
// byte are those of the OCP Microscaling Formats specification 1.0, section 5, and NVFP4. FORMAT.md, section 5.3.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/numeric/float_cast.h"
#include "stream/float_format.h"
#include "stream/scale_codes.h"

namespace arrcomp::ARRCOMP_ISA {

template <class R>
class FloatFormat {
 public:
  using Real = R;
  using Scalar = typename Real::scalar;
  using Settings = FloatFormatSettings;
  static constexpr bool has_wide_codes = true, has_rare_lanes = true;

  struct BucketParameters {
    Scalar scale;   // of the bucket; NaN where a value is not finite
    uint32_t code;  // the byte that stands for it, if there is one
  };
  // The parameters of 32 buckets.
  struct ParameterRow {
    Real scale;
    U32 code;
  };

  // Encoding: code = cast(x * prescale * inverse). The prescale is 1, or 2^64 where the inverse would be infinite.
  enum : int { inverse, prescale, encode_values };
  enum : int { scale, decode_values };

  ARRCOMP_METHOD FloatFormat(const FloatFormatSettings& settings, const Element& element, const uint8_t* payload)
      : settings_(settings),
        range_(element),
        cast_(settings.spec),
        largest_(static_cast<Scalar>(settings.spec.largest())),
        array_scale_(0),
        first_rare_(settings.is_scaled() ? ~Bits{0} : RealLayout<Real>::infinity) {
    if (settings.scale == ScaleKind::two_level) array_scale_ = load_scalar<Scalar>(payload);
  }

  // The array's scale, by which the scale of the bucket with its largest value becomes the largest one.
  ARRCOMP_METHOD static void store_array(const FloatFormatSettings& settings, uint8_t* payload,
                                         const BucketStatistics& s) {
    const Real most = splat<Real>(static_cast<Scalar>(SmallScale::largest * settings.spec.largest()));
    const Real largest = splat<Real>(static_cast<Scalar>(s.largest_magnitude()));
    const Scalar numbers[8 / sizeof(Scalar)] = {first_of(ratio_of(largest, most))};  // float32: and zeros
    if (leader()) store_scalars(payload, numbers, 8 / sizeof(Scalar));
  }

  ARRCOMP_METHOD bool is_stochastic() const { return settings_.stochastic; }

  ARRCOMP_METHOD BucketParameters fit(const BucketStatistics& s, const BucketValues&) const {
    if (!settings_.is_scaled()) return {1, 0};
    const auto largest = s.finite ? static_cast<Scalar>(s.largest_magnitude()) : Limits::nan();
    const ParameterRow row = fit(splat<Real>(largest));
    return {first_of(row.scale), max_all(row.code)};
  }

  // From the largest magnitudes of buckets, infinity or NaN where a value is not finite.
  ARRCOMP_METHOD ParameterRow fit(Real largest) const {
    const Real most = splat<Real>(largest_), nan = splat<Real>(Limits::nan());
    const Mask is_finite = le(largest, splat<Real>(Limits::largest));
    const Real finite = select(is_finite, largest, nan);
    // Machines differ in which NaN a quotient is.
    if (settings_.scale == ScaleKind::number) return {select(is_finite, ratio_of(finite, most), nan), splat<U32>(0)};
    if (settings_.scale != ScaleKind::two_level) return of_powers(finite);
    const Mask is_zero = le(finite, splat<Real>(0));
    const Real ratio = select(is_zero, finite, finite / splat<Real>(array_scale_) / most);
    const FloatCast<Real> small(SmallScale::spec());
    const U32 code = small.encode(ratio, Nearest{});
    return {small.decode(code) * splat<Real>(array_scale_), code};
  }

  ARRCOMP_METHOD void store(uint8_t* at, const BucketParameters& n) const {
    if (settings_.scale == ScaleKind::none) return;
    if (settings_.scale == ScaleKind::number) return store_scalar(at, n.scale);
    *at = static_cast<uint8_t>(n.code);
  }
  ARRCOMP_METHOD void store(uint8_t* at, const ParameterRow& row, int n) const {
    if (settings_.scale == ScaleKind::number) return store_row(reinterpret_cast<Scalar*>(at), row.scale, n);
    store_row(at, row.code, n);
  }

  ARRCOMP_METHOD BucketParameters load(const uint8_t* at) const {
    BucketParameters n{1, 0};
    switch (settings_.scale) {
      case ScaleKind::none: return n;
      case ScaleKind::number: return {load_scalar<Scalar>(at), 0};
      case ScaleKind::two_level: return {static_cast<Scalar>(SmallScale::value(*at)) * array_scale_, *at};
      default: return {static_cast<Scalar>(PowerScale::value(*at)), *at};
    }
  }

  // Simple where the prescale is 1.
  ARRCOMP_METHOD bool scale_of(const ParameterRow& row, Real (&values)[encode_values]) const {
    const Real zero = splat<Real>(0), one = splat<Real>(1);
    const Mask is_small = lt(row.scale, splat<Real>(Limits::smallest_normal / 2)) & lt(zero, row.scale);
    values[prescale] = select(is_small, splat<Real>(Scalar(0x1p64)), one);
    values[inverse] = select(le(row.scale, zero), zero, one / (row.scale * values[prescale]));
    return !any(is_small);
  }
  ARRCOMP_METHOD bool scale_of(const BucketParameters& n, Scalar (&values)[encode_values]) const {
    Real rows[encode_values];
    const bool simple = scale_of({splat<Real>(n.scale), splat<U32>(n.code)}, rows);
    for (int i = 0; i < encode_values; ++i) values[i] = first_of(rows[i]);
    return simple;
  }

  template <class Random>
  ARRCOMP_METHOD U32 encode(Real x, const Real (&values)[encode_values], bool simple, Random random) const {
    if (!settings_.is_scaled()) return cast_.encode(x, random);
    const Real scaled = (simple ? x : x * values[prescale]) * values[inverse];
    return cast_.encode_magnitude(scaled, x, random);
  }

  // As most rows are coded: `rare` tells of lanes that are not so.
  template <Signs signs>
  struct ShortWay {
    const FloatFormat& format;

    template <class Random>
    ARRCOMP_METHOD U32 encode(Real x, const Real (&values)[encode_values], Random random, Mask& rare) const {
      using Word = decltype(as_bits(x));
      const Real scaled = x * values[inverse];
      rare = rare | ge(as_bits(abs(scaled)), splat<Word>(format.first_rare_));
      return format.cast_.encode_magnitude(scaled, x, random, signs);
    }
    ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], Mask& rare) const {
      const Real y = format.cast_.decode_number(code, signs, rare) * decoded[scale];
      rare = rare | ~format.range_.holds(y);
      return y;
    }
  };
  template <class Visit>
  ARRCOMP_METHOD void visit_short_way(Visit visit) const {
    switch (cast_.signs()) {
      case Signs::apart: return visit(ShortWay<Signs::apart>{*this});  // counted as: signs apart
      case Signs::but_of_zero: return visit(ShortWay<Signs::but_of_zero>{*this});
      default: return visit(ShortWay<Signs::complement>{*this});
    }
  }
  ARRCOMP_METHOD static Real prescaled(Real x, const Real (&values)[encode_values]) {
    return select(lt(splat<Real>(1), values[prescale]), x * values[prescale], x);  // NaN keeps its sign
  }

  ARRCOMP_METHOD bool decoded_of(const BucketParameters& n, Scalar (&decoded)[decode_values]) const {
    decoded[scale] = n.scale;
    return true;
  }

  ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], bool) const {
    const Real value = cast_.decode(code);
    const Real y = settings_.is_scaled() ? value * decoded[scale] : value;
    return any(~range_.holds(y)) ? outside(value, y) : y;
  }

 private:
  using Limits = ScalarLimits<Scalar>;
  using Bits = typename RealLayout<Real>::Bits;

  // Where it is subnormal it is rounded up, as then rounding down would lose more than a little.
  ARRCOMP_METHOD static Real ratio_of(Real largest, Real most) {
    const Real ratio = largest / most, next = ratio + splat<Real>(Limits::smallest);
    const Mask low = lt(ratio, splat<Real>(Limits::smallest_normal)) & lt(ratio * most, largest);
    return select(low, next, ratio);
  }

  // Powers of two: the largest magnitude's own, divided by the largest number's; with `ceil` the next one where that is
  // not enough.
  ARRCOMP_METHOD ParameterRow of_powers(Real largest) const {
    using Layout = RealLayout<Real>;
    using Bits = typename Layout::Word;
    const Bits bits = as_bits(largest);
    const auto most =
        static_cast<typename Layout::Bits>((settings_.spec.largest_significand() - 1) * Layout::min_normal);
    const Mask is_above = lt(splat<Bits>(most), bits & splat<Bits>(Layout::mantissa));
    const bool ceil = settings_.scale == ScaleKind::ceil;
    const U32 own = lowest(bits >> Layout::mantissa_bits) + select(is_above, splat<U32>(ceil ? 1 : 0), splat<U32>(0));
    const U32 least =
        splat<U32>(static_cast<uint32_t>(Layout::bias - PowerScale::bias + settings_.spec.largest_exponent()));
    const Mask is_number = le(largest, splat<Real>(Limits::largest));
    const U32 code =
        select(is_number, min(max(own, least) - least, splat<U32>(PowerScale::most)), splat<U32>(PowerScale::nan));
    return {select(is_number, power(code, largest), largest), code};
  }

  // Of codes but NaN. In float32 the least power is a subnormal number.
  ARRCOMP_METHOD static F32 power(U32 code, F32) {
    return as_float(select(eq(code, splat<U32>(0)), splat<U32>(1u << 22), code << 23));
  }
  ARRCOMP_METHOD static F64 power(U32 code, F64) {
    return as_double(join(splat<U32>(0), (code + splat<U32>(RealLayout<F64>::bias - PowerScale::bias)) << 20));
  }

  // Of rows in which results are no finite numbers of the element type. What was finite before stays so where codes
  // saturate.
  ARRCOMP_METHOD Real outside(Real value, Real y) const {
    const Mask kept = settings_.spec.saturates ? lt(abs(value), splat<Real>(__builtin_inff())) : mask(0);
    return with_quiet_nan(select(kept, range_.limited(y), y));
  }

  FloatFormatSettings settings_;
  ElementRange<Real> range_;
  FloatCast<Real> cast_;
  Scalar largest_;  // number of the format
  Scalar array_scale_;
  Bits first_rare_;  // of magnitudes: without a scale, what is not finite
};

template <class Real>
struct CoderOf<FloatFormatSettings, Real> {
  using type = FloatFormat<Real>;
};

}  // namespace arrcomp::ARRCOMP_ISA
