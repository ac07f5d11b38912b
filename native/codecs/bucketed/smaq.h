// SmaQ on lanes: standard scores of a bucket's values, with short codes near the mean and longer ones for outliers
// ("Smart Quantization"). FORMAT.md, section 5.2.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/bucketed/expected_range.h"
#include "codecs/bucketed/extras.h"
#include "codecs/bucketed/samples.h"
#include "stream/smaq.h"

namespace arrcomp::ARRCOMP_ISA {

template <class R>
class Smaq {
 public:
  using Real = R;
  using Scalar = typename Real::scalar;
  using Settings = SmaqSettings;

  struct BucketParameters {
    Scalar mean, std;  // NaN where a value is not finite; std is -0.0 where all values are the same
    Scalar threshold;  // of outliers, in standard deviations
  };

  // Encoding: score = (x - centre) * inverse, steps beyond the main threshold = (|score| - main threshold) * outer. Where
  // numbers would not be finite or not normal on the way, `outer` is negative if x and centre are an eighth of what they
  // were, and `inverse` if the difference is to be multiplied by 2^64 first. It is 0 where there is one value alone.
  enum : int { centre, inverse, outer, zero, encode_values };
  // Decoding: (unit * score + middle) * factor, with outliers in steps of `outer_step`.
  enum : int { unit, middle, outer_step, factor, decode_values };

  ARRCOMP_METHOD Smaq(const SmaqSettings& settings, const Element& element, const uint8_t*)
      : settings_(settings),
        range_(element),
        main_threshold_(static_cast<Scalar>(settings.main_threshold)),
        main_steps_(steps_of(settings.main_bits)),
        outlier_steps_(steps_of(settings.outlier_bits)),
        steps_per_score_(main_steps_ / main_threshold_),
        main_step_(main_threshold_ / main_steps_),
        share_of_outer_(1 / outlier_steps_) {}

  static constexpr bool tabulates_near = true;
  static constexpr uint32_t extra_flag = 1;  // of outliers
  static constexpr int max_extra_bits = 9, least_bucket = 32;

  // In place of Nearest, where it is known already which of them it is. `Within`: where no steps are too many.
  struct ToNearest {};
  struct ToNearestWithin {};
  struct Truncated {};

  ARRCOMP_METHOD bool is_stochastic() const { return settings_.rounding == Rounding::stochastic; }
  ARRCOMP_METHOD bool truncates() const { return settings_.rounding == Rounding::truncate; }
  // In simple buckets, to nearest, and no steps are too many.
  ARRCOMP_METHOD bool rounds_within() const { return settings_.extends && settings_.rounding == Rounding::nearest; }

  // Codes: from the lowest bit on whether it is an outlier's, the sign, the magnitude.
  ARRCOMP_METHOD static Mask has_extra(U32 code) { return ne(code & splat<U32>(extra_flag), splat<U32>(0)); }

  ARRCOMP_METHOD BucketParameters fit(const BucketStatistics& s, const BucketValues& values) const {
    if (!s.finite) return {Limits::nan(), Limits::nan(), Limits::nan()};
    const auto fixed = static_cast<Scalar>(settings_.outlier_threshold);
    // A negative zero keeps the sign of a constant bucket's zeros.
    if (!(s.low < s.high)) return {static_cast<Scalar>(s.low), Scalar(-0.0), fixed};
    const MeanAndDeviation found = mean_and_deviation_of(s, values);
    const Scalar mean = limited_number(found.mean);
    // No value is more than 2^100 standard deviations away.
    const double half = s.largest_magnitude() > 0x1p1000 ? 0.5 : 1, at = static_cast<double>(mean) * half;
    const double above = s.high * half - at, below = at - s.low * half, farthest = above < below ? below : above;
    Scalar std = limited<Scalar>(found.deviation);
    const Scalar least = limited<Scalar>(farthest * (0x1p-100 / half));
    if (!(std >= least)) std = least;
    if (std == 0) std = Limits::smallest;
    return {mean, std, settings_.extends ? limited<Scalar>(farthest / (static_cast<double>(std) * half)) : fixed};
  }

  ARRCOMP_METHOD void store(uint8_t* at, const BucketParameters& n) const {
    const Scalar numbers[3] = {n.mean, n.std, n.threshold};
    store_scalars(at, numbers, settings_.parameter_count());
  }

  ARRCOMP_METHOD BucketParameters load(const uint8_t* at) const {
    Scalar numbers[3] = {0, 0, static_cast<Scalar>(settings_.outlier_threshold)};
    load_scalars(at, numbers, settings_.parameter_count());
    return {numbers[0], numbers[1], numbers[2]};
  }

  // Simple where all values are finite and nothing is scaled, nor, where the outlier threshold is the bucket's own, off
  // by so much that steps beyond the main threshold are too many.
  ARRCOMP_METHOD bool scale_of(const BucketParameters& n, Scalar (&scale)[encode_values]) const {
    scale[centre] = n.mean;
    scale[inverse] = 0;
    scale[outer] = 0;
    scale[zero] = Limits::nan();
    if (!(n.std > 0)) return n.std <= 0;
    const bool huge = is_huge(n);
    const Scalar down = huge ? eighth : Scalar(1);
    const bool tiny = n.std * down < Limits::smallest_normal;
    const Scalar wanted = n.std * (tiny ? up * down : down);
    const Scalar beyond = n.threshold - main_threshold_;
    scale[centre] = n.mean * down;
    scale[inverse] = (tiny ? Scalar(-1) : Scalar(1)) / wanted;
    scale[outer] = beyond > 0 ? outlier_steps_ / beyond : Scalar(0);
    if (huge) scale[outer] = -scale[outer];
    if (settings_.preserve_zeros) scale[zero] = 0;
    const bool is_exact = !settings_.extends || beyond <= 0 || beyond > n.threshold * Scalar(0x1p-8);
    return !huge && !tiny && is_exact;
  }

  template <class Random>
  ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[encode_values], bool simple, Random random) const {
    Mask outlier;
    return encode(x, scale, simple, random, outlier);
  }
  // Tells which lanes have extra bits.
  template <class Random>
  ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[encode_values], bool simple, Random random,
                            Mask& outlier) const {
    const Mask is_zero = le(size(x), scale[zero]);
    Real score = simple ? (x - scale[centre]) * scale[inverse] : scaled_score(x, scale);
    if (shifts_signs) score = select(is_zero, splat<Real>(-Limits::nan()), score);
    const Real distance = size(score), main_threshold = splat<Real>(main_threshold_);
    outlier = lt(main_threshold, distance);
    const Real beyond = shifts_signs ? main_threshold - distance : distance - main_threshold;
    const Real outer_steps = (shifts_signs ? size(beyond) : beyond) * (simple ? scale[outer] : abs(scale[outer]));
    Mask none;
    const U32 magnitude = rounded(outlier, distance * splat<Real>(steps_per_score_), outer_steps, random, none);
    if constexpr (shifts_signs) {
      const U32 with_sign = funnel(as_bits(score), magnitude, 31);
      return funnel(as_bits(beyond), select(none & ~outlier, magnitude, with_sign), 31);
    } else {
      const U32 side = highest(as_bits(score)) >> 30 & splat<U32>(sign_flag);
      const U32 shifted = magnitude << flags, code = select(outlier, shifted | splat<U32>(extra_flag), shifted);
      return select(is_zero, splat<U32>(sign_flag), select(ne(code, splat<U32>(0)), code | side, code));
    }
  }

  // Simple where nothing is scaled, nor becomes infinite.
  ARRCOMP_METHOD bool decoded_of(const BucketParameters& n, Scalar (&decoded)[decode_values]) const {
    const bool huge = is_huge(n);
    decoded[unit] = n.std * (huge ? eighth : Scalar(1));
    decoded[middle] = n.mean * (huge ? eighth : Scalar(1));
    decoded[outer_step] = (n.threshold - main_threshold_) * share_of_outer_;
    decoded[factor] = huge ? 1 / eighth : Scalar(1);
    return is_within(n.std * n.threshold, max_unscaled) && is_within(n.std, max_unscaled / main_threshold_) &&
           is_within(n.threshold, Limits::largest / 2) && !huge;
  }

  ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], bool simple) const {
    const Real none = splat<Real>(0), steps = real_of(code >> flags, Real{});
    const Real beyond = steps * decoded[outer_step] + splat<Real>(main_threshold_);
    const Real distance = select(has_extra(code), beyond, steps * splat<Real>(main_step_));
    const Real score = with_sign(distance, code << 30);
    Real y = decoded[unit] * score + decoded[middle];
    if (!simple) y = y * decoded[factor];
    if (settings_.all_positive) y = max(y, none);
    if (settings_.preserve_zeros) y = select(eq(code, splat<U32>(sign_flag)), none, y);
    return range_.element(y, simple);
  }

 private:
  using Limits = ScalarLimits<Scalar>;

  // The mean itself has no sign: its negative stands for exact zeros, but in a constant bucket, where they are the mean.
  // Where an instruction shifts a sign into a code, outliers' distances to the threshold are below 0. An exact zero's
  // score is a negative NaN then: it is no outlier, it is rounded to no steps, and yet it has a sign. Differences from
  // NaN have none.
  static constexpr bool shifts_signs = rows_at_once == 1 && sizeof(Scalar) == sizeof(uint32_t);

  static constexpr uint32_t sign_flag = 2;
  static constexpr int flags = 2;
  static constexpr Scalar eighth = Scalar(0.125), up = Scalar(0x1p64);
  static constexpr Scalar max_unscaled = Limits::largest * eighth;

  // Between the largest numbers of the arithmetic type.
  ARRCOMP_METHOD static Scalar limited_number(double x) { return x < 0 ? -limited<Scalar>(-x) : limited<Scalar>(x); }

  ARRCOMP_METHOD MeanAndDeviation mean_and_deviation_of(const BucketStatistics& s, const BucketValues& values) const {
    if (settings_.statistics == Statistics::given) return {settings_.mean, settings_.std};
    const MeanAndDeviation exact{s.mean_value(), s.deviation()};
    if (settings_.statistics == Statistics::range) {
      const double extent = s.high / 2 - s.low / 2;
      return {exact.mean, extent / expected_range(values.count) * 2};
    }
    if (settings_.statistics == Statistics::exact || values.count <= settings_.num_samples) return exact;
    return mean_and_deviation_of_samples<Real>(values, settings_.num_samples, exact);
  }

  // Whether sums and products might overflow.
  ARRCOMP_METHOD bool is_huge(const BucketParameters& n) const {
    return !(n.std * n.threshold <= max_unscaled && is_within(n.mean, max_unscaled));
  }

  ARRCOMP_METHOD static Real scaled_score(Real x, const Real (&scale)[encode_values]) {
    const Real none = splat<Real>(0), one = splat<Real>(1);
    const Real down = select(lt(scale[outer], none), splat<Real>(eighth), one);
    const Real up_by = select(lt(scale[inverse], none), splat<Real>(up), one);
    const Real score = (x * down - scale[centre]) * up_by * abs(scale[inverse]);
    const Real most = splat<Real>(Limits::largest), inside = min(max(score, none - most), most);
    return select(le(abs(inside), most), inside, none);
  }

  // Of steps up to the main threshold, or of those beyond it. `none`: not NaN, and rounded to 0.
  ARRCOMP_METHOD U32 rounded(Mask outlier, Real main, Real outer, U32 random, Mask& none) const {
    const Real most = select(outlier, splat<Real>(outlier_steps_), splat<Real>(main_steps_));
    const Real dithered = select(outlier, outer, main) + centered(random, Real{});
    none = le(dithered, splat<Real>(0.5));
    return nearest_integer(lower(higher(dithered, splat<Real>(0)), most));
  }
  ARRCOMP_METHOD U32 rounded(Mask outlier, Real main, Real outer, Nearest, Mask& none) const {
    return truncates() ? rounded(outlier, main, outer, Truncated{}, none)
                       : rounded(outlier, main, outer, ToNearest{}, none);
  }
  ARRCOMP_METHOD U32 rounded(Mask outlier, Real main, Real outer, ToNearest, Mask& none) const {
    return rounded(at_most(outlier, main, outer), none);
  }
  ARRCOMP_METHOD U32 rounded(Mask outlier, Real main, Real outer, ToNearestWithin, Mask& none) const {
    return rounded(select(outlier, outer, main), none);
  }
  ARRCOMP_METHOD static U32 rounded(Real steps, Mask& none) {
    none = le(steps, splat<Real>(0.5));
    return nearest_integer(steps);
  }
  ARRCOMP_METHOD U32 rounded(Mask outlier, Real main, Real outer, Truncated, Mask& none) const {
    const Real steps = at_most(outlier, main, outer);
    const U32 nearest = nearest_integer(steps);
    none = lt(steps, splat<Real>(1));
    return nearest - select(lt(steps, real_of(nearest, Real{})), splat<U32>(1), splat<U32>(0));
  }
  // Main steps are no more than there can be, but for a rounding error.
  ARRCOMP_METHOD Real at_most(Mask outlier, Real main, Real outer) const {
    return select(outlier, lower(outer, splat<Real>(outlier_steps_)), main);
  }

  ARRCOMP_METHOD static Scalar steps_of(int bits) { return static_cast<Scalar>((1u << (bits - 2)) - 1); }

  // The sign changes where the highest bit of `sign` is set.
  ARRCOMP_METHOD static Real with_sign(Real x, U32 sign) {
    return real_of_bits(as_bits(x) ^ from_highest(sign & splat<U32>(1u << 31), as_bits(x)));
  }

  SmaqSettings settings_;
  ElementRange<Real> range_;
  Scalar main_threshold_, main_steps_, outlier_steps_;
  Scalar steps_per_score_, main_step_, share_of_outer_;
};

template <class Real>
struct CoderOf<SmaqSettings, Real> {
  using type = Smaq<Real>;
};

}  // namespace arrcomp::ARRCOMP_ISA
