// Samples of an array, by which ways to predict it are chosen (stream/prediction_choice.h).
#pragma once
#include "codecs/numeric/real_layout.h"
#include "codecs/predicted/coarsest.h"
#include "codecs/predicted/integers.h"
#include "codecs/predicted/interpolation.h"
#include "stream/prediction_choice.h"

namespace arrcomp::ARRCOMP_ISA {

// A number below `size`, one for each sample and axis, which looks random.
ARRCOMP_INLINE uint64_t random_below(uint64_t size, int sample, int axis) {
  uint64_t x = static_cast<uint64_t>(sample * max_axes + axis + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return size >> 32 == 0 ? (x >> 32) * size >> 32 : x % size;
}

// The bits that a signed integer takes.
template <class Word>
ARRCOMP_INLINE U32 signed_length(Word q) {
  return bit_length(fold(q, false, static_cast<int>(sizeof(typename Word::scalar)) * 8));
}

// Samples by which multiples are chosen. Sums says how samples are added up: `add(sum, number)`, and `raise(number, least)`.
template <class T, class Sums>
class MultiplesSampler {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Layout = RealLayout<Real>;

 public:
  // Where the lowest bit of a mantissa stands whose value is 1.
  static constexpr int place_of_one = Layout::bias + Layout::mantissa_bits + 1;

  ARRCOMP_METHOD MultiplesSampler(const void* source, const Axes& axes, const Element& element,
                                  const GroupSettings& settings, SampledMultiples& sampled)
      : source_(source), axes_(axes), element_(element), gaps_(settings), sampled_(sampled) {}

  // Adds sample `s`.
  ARRCOMP_PART void add(int s) const {
    const Row row = sampled_row(s);
    const Real x = T::widen(row.bits);
    Sums::add(sampled_.values, static_cast<uint64_t>(count(row.own)));
    add_places(x, row.own);
    keep(sampled_.numbers[s], value_of_first(as_bits(x), row.own));
    keep(sampled_.differences[s], least_difference(x, row.own));
    for (int i = 0; i < kinds_of_multiples; ++i) add_kind(row, i);
  }

  // The same, of the multiples that were found by all samples.
  ARRCOMP_PART void add_found(int s) const {
    const Row row = sampled_row(s);
    for (int i = kinds_of_multiples; i < SampledMultiples::kinds; ++i)
      if (sampled_.kind(element_, i).is_given()) add_kind(row, i);
  }

 private:
  struct Row {
    Word bits;
    Mask own;  // lanes that are numbers, but for 0
  };

  ARRCOMP_METHOD Row sampled_row(int s) const {
    const uint64_t elements = axes_.count(), rows = ceil_div(elements, lanes_per_row);
    const uint64_t first = random_below(rows, s, 0) * lanes_per_row, left = elements - first;
    const int n = left < lanes_per_row ? static_cast<int>(left) : lanes_per_row;
    const Word bits = load_elements<T>(source_, first, n);
    const Real x = T::widen(bits);
    return {bits, first_lanes(n) & ~gaps_.in(bits, x) & ne(as_bits(abs(x)), splat<Word>(0))};
  }

  ARRCOMP_METHOD static void keep(double& number, typename Word::scalar bits) {
    const auto own = static_cast<double>(scalar_from<typename Real::scalar>(bits));
    if (leader()) number = own;
  }

  // The bits of the least difference, but for 0, of numbers that are next to each other; 0 if there is none.
  ARRCOMP_METHOD static typename Word::scalar least_difference(Real x, Mask own) {
    const Word none = splat<Word>(0);
    const Word difference = as_bits(abs(x - real_of_bits(shift_in(none, as_bits(x)))));
    const Mask between = own & mask(bits(own) << 1) & ne(difference, none);
    return any(between) ? min_all(select(between, difference, none - splat<Word>(1))) : 0;
  }

  ARRCOMP_METHOD void add_kind(const Row& row, int i) const {
    const MultipleIntegers<T> integers(sampled_.kind(element_, i));
    Mask failed;
    const Word q = integers.of(row.bits, T::widen(row.bits), failed);
    const Mask exact = row.own & ~failed;
    if (!any(exact)) return;
    Sums::add(sampled_.exact[i], static_cast<uint64_t>(count(exact)));
    if (!SampledMultiples::has_offset(i)) Sums::add(sampled_.lengths[i], sum_of(exact, signed_length(q)));
  }

  ARRCOMP_METHOD static uint64_t sum_of(Mask m, U32 x) { return sum(select(m, x, splat<U32>(0))); }

  // Where the mantissas' highest and lowest bits stand.
  ARRCOMP_METHOD void add_places(Real x, Mask own) const {
    const Word bits = as_bits(abs(x)), one = splat<Word>(1), none = splat<Word>(0);
    const Word exponent = bits >> Layout::mantissa_bits;
    const Mask is_normal = ne(exponent, none);
    const Word implied = select(is_normal, splat<Word>(Layout::min_normal), none);
    const Word digits = (bits & splat<Word>(Layout::mantissa)) | implied;
    const U32 from = lowest(select(is_normal, exponent, one));
    Sums::add(sampled_.highest_places, sum_of(own, from + bit_length(digits)));
    const U32 place = from + bit_length(digits & (none - digits));
    const U32 down = splat<U32>(SampledMultiples::place_of_lowest) - place;
    Sums::raise(sampled_.lowest, max_all(select(own, down, splat<U32>(0))));
  }

  const void* source_;
  const Axes& axes_;
  const Element& element_;
  Gaps<T> gaps_;
  SampledMultiples& sampled_;
};

// Samples by which ways to predict are chosen: `samples` knows the multiples by then.
template <class T, class Sums>
class Sampler {
  using Word = typename T::Word;
  using Real = typename T::Real;
  using Number = typename Real::scalar;

 public:
  // `bound`: 0 where there are multiples.
  ARRCOMP_METHOD Sampler(const void* source, const Axes& axes, const GroupSettings& settings, double bound,
                         PredictionSamples& samples)
      : source_(source),
        axes_(axes),
        gaps_(settings),
        book_(bound, full_scale, samples.multiples),
        integers_(bound, bound, samples.multiples),
        bound_(static_cast<Number>(bound)),
        samples_(samples) {
    for (int a = 0; a < max_axes; ++a) strides_[a] = axes.inner(a);
  }

  // Adds sample `s`: the costs of the differences along each set of axes.
  ARRCOMP_PART void add_differences(int s) const {
    const auto [first, apart, n] = row_behind_others(s, true);
    Word q[axis_sets];
    Mask missing = mask(0);
    for (int set = 0; set < axis_sets; ++set) {
      if (!has_axes(axes_, set)) continue;
      Mask failed;
      const Word bits = load_distant(first - offset_of(set), apart, n);
      q[set] = integers_.integer(bits, gaps_.in(bits, T::widen(bits)), failed);
      missing = missing | failed;
      if (set == 0) keep_largest(T::widen(bits), failed);
    }
    for (int set = 0; set < axis_sets; ++set)
      if (has_axes(axes_, set)) add(samples_.differences[set], difference(q, set), first_lanes(n) & ~missing);
  }

  // Adds sample `s`: gaps, and what a mask's differences along each set of axes would be.
  ARRCOMP_PART void add_gaps(int s) const {
    const auto [first, apart, n] = row_behind_others(s, false);
    SampledGaps& sampled = samples_.gaps;
    uint32_t gaps[axis_sets], any_gaps = 0;
    for (int set = 0; set < axis_sets; ++set) {
      gaps[set] = 0;
      if (!has_axes(axes_, set)) continue;
      const Word bits = load_elements<T>(source_, first - offset_of(set), n);
      const Real x = T::widen(bits);
      const Mask own = first_lanes(n) & gaps_.in(bits, x), fills = own & gaps_.in_fill(bits);
      gaps[set] = ARRCOMP_ISA::bits(own);
      any_gaps |= gaps[set];
      if (set != 0) continue;
      const Mask nans = own & ~fills & ~le(x, x), usual = nans & eq(bits, usual_nan());
      keep_gaps(fills, bits, sampled.of_kind[0]);
      keep_gaps(usual, bits, sampled.of_kind[1]);
      keep_gaps(nans & ~usual, bits, sampled.of_kind[2]);
    }
    if (any_gaps == 0) return;
    for (int set = 0; set < axis_sets; ++set)
      if (has_axes(axes_, set)) Sums::add(sampled.mask_bytes[set], bytes_but_zeros(parity(gaps, set)));
  }

  // Fits the weights of neighbours to the values of a level of an axis, in so many samples, one after the other: sums of
  // floats depend on their order. A sample counts the less, the larger its errors are without weights, as outliers would tell
  // the weights else.
  ARRCOMP_PART void fit_weights(int axis, int level, int samples) const {
    const Real none = splat<Real>(0), half = splat<Real>(0.5);
    Real uu = none, un = none, nn = none, ru = none, rn = none;
    for (int s = 0; s < samples; ++s) {
      const Between row = between(axis, level, s);
      const Real near = (as_decoded(row.near.before) + as_decoded(row.near.behind)) * half,
                 far = (as_decoded(row.near.far_before) + as_decoded(row.near.far_behind)) * half;
      const Real n = select(row.counts, near, none), u = select(row.counts, near - far, none),
                 r = select(row.counts, row.x - near, none);
      const Number largest = scalar_from<Number>(max_all(as_bits(abs(r)))) + bound_;
      if (!(largest > 0)) continue;
      const Real weight = splat<Real>(1 / largest);
      uu = uu + u * weight * u;
      un = un + u * weight * n;
      nn = nn + n * weight * n;
      ru = ru + r * weight * u;
      rn = rn + r * weight * n;
    }
    const FitSums sums{in_order(uu), in_order(un), in_order(nn), in_order(ru), in_order(rn)};
    const Weights weights = sums.weights(LevelOfAxis(axes_.sizes[axis], level).known >= 3);
    if (leader()) samples_.levels[axis][level].weights = weights;
  }

  // Adds sample `s`: values at odd multiples of a stride on an axis. Weights are fitted before.
  ARRCOMP_PART void add_interpolation(int axis, int level, int s) const {
    const Between row = between(axis, level, s);
    SampledKinds& sampled = samples_.levels[axis][level];
    const auto add = [&](Interpolation kind, const Neighbours<Real>& near, SampledCost& cost)
                         ARRCOMP_LAMBDA { add_interpolated(kind, near, row.bits, row.x, row.counts, cost); };
    const Interpolation linear(false, false), cubic(true, false);
    if (bound_ > 0) {
      add(linear, row.near, sampled.exact.linear);
      add(cubic, row.near, sampled.exact.cubic);
    }
    const Neighbours<Real> decoded{as_decoded(row.near.far_before), as_decoded(row.near.before),
                                   as_decoded(row.near.behind), as_decoded(row.near.far_behind)};
    add(linear, decoded, sampled.decoded.linear);
    add(cubic, decoded, sampled.decoded.cubic);
    if (sampled.weights.are_given()) add({sampled.weights, false}, decoded, sampled.weighted);
    add_end(axis, level, s);
  }

 private:
  static constexpr int last_axis = max_axes - 1;

  // Some values at odd multiples of a stride on an axis, their neighbours at even ones, and the lanes that count.
  struct Between {
    Neighbours<Real> near;
    Word bits;
    Real x;
    Mask counts;
  };

  // Where there are enough, values that have two neighbours on both sides; if there are none between two, the one behind the
  // only one.
  ARRCOMP_PART Between between(int axis, int level, int s) const {
    const LevelOfAxis own(axes_.sizes[axis], level);
    const uint64_t inside = own.known - 1;
    const uint64_t i = own.is_long ? 1 : random_below(inside > 0 ? inside : 1, s, axis);  // the first one's number
    const auto places = [&](int a) ARRCOMP_LAMBDA {
      if (a != axis) return Places{0, axes_.sizes[a], 1};
      return Places{(2 * i + 1) * own.stride, own.is_long ? inside - 2 : 1, 2 * own.stride};
    };
    const SampledRow row = sampled_row(s, places);
    Mask missing = mask(0);
    const uint64_t apart = own.stride * strides_[axis];
    const auto number = [&](uint64_t index, Word& bits) ARRCOMP_LAMBDA {
      bits = load_distant(index, row.apart, row.n);
      const Real x = T::widen(bits);
      missing = missing | gaps_.in(bits, x);
      return x;
    };
    Word bits, other;
    const Real x = number(row.first, bits);
    const bool has_far_before = i > 0, has_far_behind = i + 1 < inside;
    Neighbours<Real> near;
    near.before = number(row.first - apart, other);
    near.behind = inside > 0 ? number(row.first + apart, other) : near.before;
    if (has_far_before) near.far_before = number(row.first - 3 * apart, other);
    if (has_far_behind) near.far_behind = number(row.first + 3 * apart, other);
    near.continue_line(has_far_before, has_far_behind, own.known, own.known);
    return {near, bits, x, first_lanes(row.n) & ~missing};
  }

  // The sum of all lanes, from the first to the last.
  ARRCOMP_METHOD static double in_order(Real x) {
    double sum = 0;
    for (int lane = 0; lane < lanes_per_row; ++lane)
      sum += static_cast<double>(scalar_from<Number>(value_of_first(as_bits(x), mask(1u << lane))));
    return sum;
  }

  // Elements, or gaps, as the bound leaves them: predictions make their errors smaller, or larger.
  ARRCOMP_METHOD Real as_decoded(Real x) const {
    if constexpr (T::quantizes) {
      if (bound_ > 0) {
        const Word bits = T::narrow(x);
        Word value;
        Mask failed;
        book_.code(splat<Real>(0), bits, x, gaps_, value, failed);
        return T::widen(select(failed, bits, value));
      }
    }
    return x;
  }

  // Values behind the last ones of lines.
  ARRCOMP_METHOD void add_end(int axis, int level, int s) const {
    const LevelOfAxis own(axes_.sizes[axis], level);
    const uint64_t known = (own.last + 1) / 2;  // before it
    const auto places = [&](int a) ARRCOMP_LAMBDA {
      return a == axis ? Places{(2 * known - 1) * own.stride, 1, 0} : Places{0, axes_.sizes[a], 1};
    };
    const SampledRow row = sampled_row(s, places);
    Mask missing = mask(0);
    const auto load = [&](uint64_t strides_before) ARRCOMP_LAMBDA {
      const uint64_t index = row.first - strides_before * own.stride * strides_[axis];
      const Word bits = load_distant(index, row.apart, row.n);
      missing = missing | gaps_.in(bits, T::widen(bits));
      return bits;
    };
    const auto decoded = [&](uint64_t strides_before)
                             ARRCOMP_LAMBDA { return as_decoded(T::widen(load(strides_before))); };
    const Real x1 = decoded(1), x2 = known >= 2 ? decoded(3) : x1, x3 = known >= 3 ? decoded(5) : x1;
    const Real three = splat<Real>(3), next = extended(known, x1, x2, x3, three);
    const Neighbours<Real> continued{x2, x1, next, extended(known, next, x1, x2, three)}, held{x2, x1, x1, x1};
    const Word bits = load(0);
    const Real x = T::widen(bits);
    const Mask counts = first_lanes(row.n) & ~missing;
    add_interpolated({true, false}, continued, bits, x, counts, samples_.continued[axis][level]);
    add_interpolated({true, false}, held, bits, x, counts, samples_.held[axis][level]);
  }

  // What the elements of some lanes, which have these bits and are x, take once they are predicted.
  ARRCOMP_METHOD void add_interpolated(Interpolation kind, const Neighbours<Real>& near, Word bits, Real x, Mask counts,
                                       SampledCost& cost) const {
    const Real p = Interpolator<Real>(kind, T::largest)(near);
    Word value;
    Mask failed;
    add(cost, book_.code(p, bits, x, gaps_, value, failed), counts);
  }

  ARRCOMP_METHOD static void add(SampledCost& cost, Word code, Mask counts) {
    add(cost, sum(select(counts, signed_length(code), splat<U32>(0))), count(counts));
  }

  // Elements of a row, each so many behind the one before.
  struct SampledRow {
    uint64_t first;
    int apart, n;
  };

  // Where elements may be on an axis: at so many indices.
  struct Places {
    uint64_t least, number, apart;
  };

  // A row whose elements have others before them along all axes. They may be on another axis than the last one, or not.
  ARRCOMP_METHOD SampledRow row_behind_others(int s, bool may_be_across) const {
    const auto places = [&](int a) ARRCOMP_LAMBDA {
      return axes_.sizes[a] > 1 ? Places{1, axes_.sizes[a] - 1, 1} : Places{0, 1, 1};
    };
    return may_be_across ? sampled_row(s, places) : row_along(last_axis, s, places);
  }

  // A row at `places(axis)` along the last axis that has room for all lanes, or the one that has most.
  template <class PlacesOf>
  ARRCOMP_METHOD SampledRow sampled_row(int s, PlacesOf places) const {
    int along = last_axis;
    for (int a = last_axis; a-- > 0 && places(along).number < lanes_per_row;)
      if (places(a).number > places(along).number) along = a;
    return row_along(along, s, places);
  }

  template <class PlacesOf>
  ARRCOMP_METHOD SampledRow row_along(int along, int s, PlacesOf places) const {
    const uint64_t distance = places(along).apart * strides_[along];
    const uint64_t lanes = distance >> 31 == 0 ? places(along).number : 1;
    const int n = lanes < lanes_per_row ? static_cast<int>(lanes) : lanes_per_row;
    uint64_t first = 0;
    for (int a = 0; a < max_axes; ++a) {
      const auto [least, number, apart] = places(a);
      const uint64_t i = random_below(a == along ? number - static_cast<uint64_t>(n - 1) : number, s, a);
      first += (least + i * apart) * strides_[a];
    }
    return {first, n > 1 ? static_cast<int>(distance) : 1, n};
  }

  ARRCOMP_METHOD static Word usual_nan() {
    return T::narrow(splat<Real>(static_cast<typename Real::scalar>(__builtin_nan(""))));
  }

  ARRCOMP_METHOD static void keep_gaps(Mask gaps, Word bits, SampledGaps::Kind& kind) {
    if (!any(gaps)) return;
    Sums::add(kind.number, static_cast<uint64_t>(count(gaps)));
    Sums::raise(kind.bits, max_all(select(gaps, bits, splat<Word>(0))));
  }

  // Of bits that belong to the parts of a set of axes.
  ARRCOMP_METHOD static uint32_t parity(const uint32_t (&bits)[axis_sets], int set) {
    uint32_t odd = 0;
    for (int part = 0; part <= set; ++part)
      if ((part & ~set) == 0) odd ^= bits[part];
    return odd;
  }

  // Those of a mask that have such bits and are not 0.
  ARRCOMP_METHOD static uint64_t bytes_but_zeros(uint32_t bits) {
    uint64_t bytes = 0;
    for (; bits != 0; bits >>= MaskGrid::bits_of_byte)
      bytes += (bits & ((1u << MaskGrid::bits_of_byte) - 1)) != 0 ? 1 : 0;
    return bytes;
  }

  ARRCOMP_METHOD static void add(SampledCost& cost, uint64_t bits, int values) {
    Sums::add(cost.bits, bits);
    Sums::add(cost.values, static_cast<uint64_t>(values));
  }

  ARRCOMP_METHOD void keep_largest(Real x, Mask failed) const {
    Sums::raise(samples_.largest_bits, max_all(as_bits(select(failed, splat<Real>(0), abs(x)))));
  }

  // n elements from there on, `distance` from each to the next.
  ARRCOMP_METHOD Word load_distant(uint64_t index, int distance, int n) const {
    if (distance == 1) return load_elements<T>(source_, index, n);
    return load_apart(element_pointer<T>(source_, index), distance, n);
  }

  ARRCOMP_METHOD uint64_t offset_of(int set) const {
    uint64_t offset = 0;
    for (int a = 0; a < max_axes; ++a)
      if (is_in(set, a)) offset += strides_[a];
    return offset;
  }

  ARRCOMP_METHOD static Word difference(const Word (&q)[axis_sets], int set) {
    Word sum = q[0];
    for (int part = 1; part <= set; ++part) {
      if ((part & ~set) != 0) continue;
      const bool is_odd = ARRCOMP_ISA::count(mask(static_cast<uint32_t>(part))) % 2 == 1;
      sum = is_odd ? sum - q[part] : sum + q[part];
    }
    return sum;
  }

  const void* source_;
  const Axes& axes_;
  Gaps<T> gaps_;
  CodeBook<T> book_;
  GridIntegers<T> integers_;
  Number bound_;
  uint64_t strides_[max_axes];
  PredictionSamples& samples_;
};

}  // namespace arrcomp::ARRCOMP_ISA
