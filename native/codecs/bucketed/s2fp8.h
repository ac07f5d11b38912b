// S2FP8 on lanes: buckets of magnitudes, shifted and squeezed in their logarithms so that the mean becomes 2^0 and the
// largest 2^15, then stored as e5m2 (L. Cambier et al., "Shifted and Squeezed 8-bit Floating Point Format for
// Low-Precision Training of Deep Neural Networks", arXiv:2001.05674, section 3). FORMAT.md, section 5.4.
#pragma once
#include "codecs/bucketed/bucket_coder.h"
#include "codecs/bucketed/s2fp8_powers.h"
#include "codecs/numeric/float_cast.h"
#include "codecs/numeric/logarithm.h"
#include "stream/s2fp8.h"

namespace arrcomp::ARRCOMP_ISA {

template <class R>
class S2fp8 {
  using Layout = RealLayout<R>;
  using Word = typename Layout::Word;

 public:
  using Real = R;
  using Scalar = typename Real::scalar;
  using Settings = S2fp8Settings;
  static constexpr bool tabulates = true;
  static constexpr bool guesses = quick_powers && sizeof(Scalar) == sizeof(float);
  using EncodeTable = SqueezedCells;
  static constexpr bool guesses_rows = has_squeeze_cells && sizeof(Scalar) == sizeof(float);

  // The largest magnitude in place of the paper's beta, which is 15 - alpha log2(largest): distances to it are exact
  // where beta would have lost them, and it comes back as it was.
  struct BucketParameters {
    Scalar alpha, largest;  // NaN where a value is not finite
  };

  // Encoding: y = 2^(15 + alpha (log2 |x| - whole - part)). Decoding: |x| = largest (2^(half (log2 |y| - 15)))^2.
  enum : int { alpha, whole, part, encode_values };
  enum : int { half, largest, decode_values };

  ARRCOMP_METHOD S2fp8(const S2fp8Settings& settings, const Element& element, const uint8_t*)
      : settings_(settings), range_(element) {}

  ARRCOMP_METHOD bool is_stochastic() const { return settings_.stochastic; }

  ARRCOMP_METHOD BucketParameters fit(const BucketStatistics& s, const BucketValues&) const {
    if (!s.finite) return {Limits::nan(), Limits::nan()};
    const auto most = static_cast<Scalar>(s.largest_magnitude());
    if (!(most > 0)) return {1, 0};
    Scalar logarithm[2];
    parts_of_logarithm(most, logarithm);
    const double of_largest = static_cast<double>(logarithm[0]) + static_cast<double>(logarithm[1]);
    const double spread = of_largest - s.logarithms / static_cast<double>(s.nonzeros);
    return {static_cast<Scalar>(top / (spread < min_spread ? min_spread : spread)), most};
  }

  ARRCOMP_METHOD void store(uint8_t* at, const BucketParameters& n) const {
    const Scalar numbers[2] = {n.alpha, n.largest};
    store_scalars(at, numbers, 2);
  }

  ARRCOMP_METHOD BucketParameters load(const uint8_t* at) const {
    Scalar numbers[2];
    load_scalars(at, numbers, 2);
    return {numbers[0], numbers[1]};
  }

  // Simple where 0 and subnormal numbers become 0, whatever their logarithms, and alpha is none of the largest, nor NaN.
  ARRCOMP_METHOD bool scale_of(const BucketParameters& n, Scalar (&scale)[encode_values]) const {
    Scalar logarithm[2];
    parts_of_logarithm(n.largest, logarithm);
    scale[alpha] = n.alpha;
    scale[whole] = logarithm[0];
    scale[part] = logarithm[1];
    const Scalar min_normal = 1 - Layout::bias;
    return n.alpha <= SqueezedCells::max_alpha &&
           !((min_normal - logarithm[0] + 1) * n.alpha >= Scalar(least - 60) - n.alpha);
  }

  template <class Random>
  ARRCOMP_METHOD U32 encode(Real x, const Real (&scale)[encode_values], bool simple, Random random) const {
    if constexpr (guesses && std::is_same_v<Random, Nearest>) {
      if (simple) {
        Mask doubtful;
        const U32 code = guess(x, scale, doubtful);
        if (!any(doubtful)) return code;
      }
    }
    return encode_exactly(x, scale, simple, random);
  }

  // The code of a value in a bucket that is simple, or anything in lanes that are in doubt.
  ARRCOMP_METHOD U32 guess(Real x, const Real (&scale)[encode_values], Mask& doubtful) const
    requires guesses
  {
    const SqueezedCodes found = SqueezedPowers(scale[alpha], scale[whole], scale[part]).codes_of(x);
    doubtful = found.doubtful;
    return cast().with_sign(found.magnitudes, as_bits(x));
  }

  ARRCOMP_METHOD void fill(EncodeTable& cells, int bucket, const Scalar (&scale)[encode_values]) const {
    cells.fill(bucket, scale[alpha], scale[whole], scale[part], is_stochastic());
  }

  template <class Random>
  ARRCOMP_METHOD U32 encode_exactly(Real x, const Real (&scale)[encode_values], bool simple, Random random) const {
    const Real magnitude = abs(x);
    const Logarithm<Real> logarithm = simple ? logarithm_of(magnitude) : logarithm_of_any(magnitude);
    const Real distance = (logarithm.whole - scale[whole]) + (logarithm.part - scale[part]);
    Real t = distance * scale[alpha] + splat<Real>(top);
    if (!simple) t = select(le(magnitude, splat<Real>(0)), splat<Real>(-__builtin_inff()), t);
    return cast().encode_magnitude(power(t, scale[alpha], random), x, random);
  }

  ARRCOMP_METHOD bool decoded_of(const BucketParameters& n, Scalar (&decoded)[decode_values]) const {
    decoded[half] = Scalar(0.5) / n.alpha;
    decoded[largest] = n.largest;
    return true;
  }

  ARRCOMP_METHOD Real decode(U32 code, const Real (&decoded)[decode_values], bool) const {
    const Real y = squeezed(min(code & splat<U32>(0x7f), splat<U32>(S2fp8Settings::spec().first_special() - 1)));
    // Half of the distance, so that its power is a normal number. NaN becomes the least.
    const Real distance = max(splat<Real>(min_power), distance_of(y) * decoded[half]);
    // All but 0 is at least 2^-16.
    const Real root = min(power_of(min(splat<Real>(0), distance)), y * splat<Real>(0x1p64f));
    const Real magnitude = decoded[largest] * root * root;
    const Word negative = from_highest(code << 24, Word{}) & splat<Word>(Layout::sign);
    return range_.element(real_of_bits(as_bits(magnitude) | negative));
  }

 private:
  using Limits = ScalarLimits<Scalar>;

  static constexpr int top = 15;        // log2 of what the largest becomes
  static constexpr int least = -16;     // log2 of the least number of e5m2
  static constexpr int nothing = -100;  // log2 of what is rounded to 0, even by stochastic rounding
  static constexpr double min_spread = 0x1p-20;
  static constexpr int min_power = sizeof(Scalar) == 8 ? -1000 : -125;

  ARRCOMP_METHOD static void parts_of_logarithm(Scalar x, Scalar (&parts)[2]) {
    const Logarithm<Real> logarithm = logarithm_of_any(splat<Real>(x));
    parts[0] = first_of(logarithm.whole);
    parts[1] = first_of(logarithm.part);
  }

  // Not a member: what follows from the format is then known to the compiler.
  ARRCOMP_METHOD static FloatCast<Real> cast() { return FloatCast<Real>(S2fp8Settings::spec()); }

  // 2^t, of which numbers below those of the format become 0 or its least one. What lies below the least number becomes
  // it where that comes back nearer to x than 0 is, so where it comes back as at most 2 x. NaN becomes 0.
  ARRCOMP_METHOD static Real power(Real t, Real squeeze, Nearest) {
    const Real y = power_of(max(splat<Real>(least), t));
    return select(le(splat<Real>(least) - squeeze, t), y, splat<Real>(0));
  }
  ARRCOMP_METHOD static Real power(Real t, Real, U32) { return power_of(max(splat<Real>(nothing), t)); }

  // The number of a code, exactly: codes are the upper halves of float16 ones.
  ARRCOMP_METHOD Real squeezed(U32 code) const {
    if constexpr (sizeof(Scalar) == 4) return from_half(code << 8);
    return cast().decode(code);
  }

  // log2 of y / 2^15, where y has two bits of mantissa; of 0 something. The polynomial goes through log2 of 1, 5/4, 3/2
  // and 7/4.
  ARRCOMP_METHOD static Real distance_of(Real y) {
    constexpr float coefficients[] = {0x1.6e09bp+0f, -0x1.3bfccep-1f, 0x1.8eb6eep-3f};
    constexpr typename Layout::Bits of_largest = Layout::one + (typename Layout::Bits{top} << Layout::mantissa_bits);
    const Word bits = as_bits(y), exponent = sar(bits - splat<Word>(of_largest), Layout::mantissa_bits);
    const Real f = real_of_bits((bits & splat<Word>(Layout::mantissa)) | splat<Word>(Layout::one)) - splat<Real>(1);
    return real_of_integer(exponent) + f * polynomial(f, coefficients);
  }

  S2fp8Settings settings_;
  ElementRange<Real> range_;
};

template <class Real>
struct CoderOf<S2fp8Settings, Real> {
  using type = S2fp8<Real>;
};

}  // namespace arrcomp::ARRCOMP_ISA
