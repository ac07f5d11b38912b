// Codebooks on lanes: a value becomes the index of the interval that it lies in, and comes back as that interval's level
// (block-wise with NF4: T. Dettmers et al., arXiv:2305.14314; dynamic 8 bits: arXiv:2110.02861). FORMAT.md, section
// 5.5.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/numeric/steps.h"
#include "stream/codebook.h"

namespace arrcomp::ARRCOMP_ISA {

// `AnySettings`: those of the codec, or with what borders are found by.
template <class R, class AnySettings = CodebookSettings>
class Codebook {
 public:
  using Real = R;
  using Scalar = typename Real::scalar;
  using Settings = AnySettings;
  static constexpr bool looks_up = true;
  using SettingsToEncode = CodebookAtHand;
  static constexpr bool has_tables = (looks_up_even_cells || searches_halves) && std::is_same_v<Real, F32>;
  using WithTables = Codebook<R, std::conditional_t<searches_halves, CodebookWithHalves, CodebookWithCells>>;
  static constexpr bool decodes_by_tables = has_tables && searches_halves;
  static constexpr uint64_t min_chunks = 4;

  struct BucketParameters {
    Scalar scale;  // NaN where a value is not finite, 1 without scaling
  };

  // Encoding: what is looked up is x * prescale * inverse. The prescale is 1, or a power of two where the inverse would
  // not be normal.
  enum : int { inverse, prescale, encode_values };
  enum : int { scale, decode_values };

  ARRCOMP_METHOD Codebook(const Settings& settings, const Element& element, const uint8_t*)
      : settings_(settings),
        range_(element),
        bits_(settings.tables.bits),
        is_scaled_(settings.scaling != Scaling::none) {}

  ARRCOMP_METHOD bool is_stochastic() const { return false; }

  ARRCOMP_METHOD BucketParameters fit(const BucketStatistics& s, const BucketValues&) const {
    if (!s.finite) return {Limits::nan()};
    return {is_scaled_ ? static_cast<Scalar>(s.largest_magnitude()) : Scalar(1)};
  }

  // The scales of 32 buckets, from their largest magnitudes, infinity or NaN where a value is not finite.
  ARRCOMP_METHOD Real fit(Real largest) const {
    const Mask finite = le(largest, splat<Real>(Limits::largest));
    return select(finite, is_scaled_ ? largest : splat<Real>(1), splat<Real>(Limits::nan()));
  }

  ARRCOMP_METHOD void store(uint8_t* at, const BucketParameters& n) const {
    if (is_scaled_) return store_scalar(at, n.scale);
    *at = n.scale == 1 ? 0 : 1;
  }
  ARRCOMP_METHOD void store(uint8_t* at, const Real& scales, int n) const {
    if (is_scaled_) return store_row(reinterpret_cast<Scalar*>(at), scales, n);
    store_row(at, select(le(scales, splat<Real>(1)), splat<U32>(0), splat<U32>(1)), n);
  }

  ARRCOMP_METHOD BucketParameters load(const uint8_t* at) const {
    BucketParameters n{*at == 0 ? Scalar(1) : Limits::nan()};
    if (is_scaled_) n.scale = load_scalar<Scalar>(at);
    return n;
  }

  // Simple where the prescale is 1.
  ARRCOMP_METHOD bool scale_of(const Real& scales, Real (&values)[encode_values]) const {
    const Real zero = splat<Real>(0), one = splat<Real>(1);
    const Mask is_zero = le(scales, zero), is_huge = lt(splat<Real>(Limits::largest / 4), scales);
    const Mask is_tiny = lt(scales, splat<Real>(Limits::smallest_normal)) & ~is_zero;
    values[prescale] = select(is_tiny, splat<Real>(Scalar(0x1p64)), select(is_huge, splat<Real>(Scalar(0.25)), one));
    values[inverse] = select(is_zero, zero, one / (scales * values[prescale]));
    return !any(is_tiny | is_huge);
  }
  ARRCOMP_METHOD bool scale_of(const BucketParameters& n, Scalar (&values)[encode_values]) const {
    Real rows[encode_values];
    const bool simple = scale_of(splat<Real>(n.scale), rows);
    for (int i = 0; i < encode_values; ++i) values[i] = first_of(rows[i]);
    return simple;
  }

  ARRCOMP_METHOD Real scaled(Real x, const Real (&values)[encode_values], bool simple) const {
    if (!simple) x = x * values[prescale];
    return x * values[inverse];
  }

  // Never stochastically: levels may lie anywhere.
  template <int n>
  ARRCOMP_METHOD void encode(const Real (&rows)[n], U32 (&codes)[n]) const {
    if constexpr (looks_up_cells && std::is_same_v<Real, F32>) {
      const auto& at_hand = static_cast<const CodebookAtHand&>(settings_);
      if (settings_.has_octaves != 0)
        return borders_below(settings_.cells, at_hand.octaves, rows, codes);  // counted as: cells
    }
    if constexpr (std::is_same_v<Settings, CodebookWithCells>) {
      borders_below(settings_.even_cells, rows, codes);
    } else if constexpr (std::is_same_v<Settings, CodebookWithHalves>) {
      borders_below(settings_.halves, rows, codes);
    } else {
      borders_below(settings_.tables, bits_, rows, codes);
    }
  }

  // Simple where no level becomes infinite.
  ARRCOMP_METHOD bool decoded_of(const BucketParameters& n, Scalar (&values)[decode_values]) const {
    values[scale] = n.scale;
    return is_within(n.scale, Limits::largest / 2 / static_cast<Scalar>(settings_.at_least_largest));
  }

  ARRCOMP_METHOD Real decode(U32 code, const Real (&values)[decode_values], bool simple) const {
    return range_.element(real_of(level(code), Real{}) * values[scale], simple);
  }

 private:
  using Limits = ScalarLimits<Scalar>;

  ARRCOMP_METHOD F32 level(U32 code) const {
    if constexpr (std::is_same_v<Settings, CodebookWithHalves>) {
      return as_float(lookup_halves<StepTables::max_levels>(settings_.lower_levels, settings_.upper_levels, code));
    } else {
      return level_of(settings_.tables, bits_, code);
    }
  }

  const Settings& settings_;
  ElementRange<Real> range_;
  int bits_;
  bool is_scaled_;
};

template <class Real>
struct CoderOf<CodebookSettings, Real> {
  using type = Codebook<Real>;
};

}  // namespace arrcomp::ARRCOMP_ISA
