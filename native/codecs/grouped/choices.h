// What a writer chooses for a chunk, from integers gathered on a sample of its rows: at most 32 rows at equal
// distances. Every instruction set comes to the same choice; a reader needs none of this.
#pragma once
#include <type_traits>

#include "codecs/grouped/rans.h"
#include "codecs/grouped/step_choice.h"
#include "codecs/numeric/real_layout.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int repeated_step = 8;  // rows of the sample that are looked at for values that repeat

// How common a value of a sample is, by a row in so many: a mask of single ones takes up to a bit a value.
struct Repeats {
  int found, looked;  // values that are like the one before, of so many
  bool are_few;       // values, so that a dictionary or multiples may serve
  bool quantized;

  ARRCOMP_METHOD bool has_part(int of) const { return found * of >= looked; }
  ARRCOMP_METHOD bool may_be_apart() const { return has_part(quantized ? 8 : 16); }
  ARRCOMP_METHOD bool may_be_scattered() const { return quantized || !are_few; }
};

// Whether a value of the sample is far from the others, and in long runs or so far that single ones pay. Zeros that are not
// quantized have masks of their own.
template <class Word, int bits_of_word>
ARRCOMP_CALLED bool is_apart(typename Word::scalar repeated, SampledValues<Word> sample, Repeats repeats) {
  const Word value = splat<Word>(repeated);
  U32 lengths = splat<U32>(0);  // of the ways from other values to this one, and back
  int all = 0, ways = 0;
  for (int s = 0; s < sample.count; s += repeated_step) {
    const Word x = sample.at(s), before = sample.before(s, x);
    const Mask own = eq(x, value), is_way = (own & ne(before, value)) | (~own & eq(before, value));
    lengths = lengths + select(is_way, bit_length(fold(x - before, false, bits_of_word)), splat<U32>(0));
    all += count(own);
    ways += count(is_way);
  }
  const bool is_in_runs = 16 * ways <= all;
  const uint32_t length = sum(lengths);
  if (is_in_runs) return repeats.has_part(8) && length > static_cast<uint32_t>((repeats.quantized ? 8 : 4) * ways);
  return repeats.may_be_scattered() && (repeats.quantized || repeated != 0) &&
         length > static_cast<uint32_t>(14 * ways);
}

struct SampleMean {
  uint64_t mean;
  bool all_positive;
};

// The mean of the sample, found from 32-bit distances to the first value (and useless where these overflow: the costs
// then say so). With `quarters`, rounded down after so many quarters were added, else towards the first value: of the
// two values beside a mean between them the upper one suits zigzag, which puts -1 before 1.
template <class Word>
ARRCOMP_PART SampleMean sample_mean(const SampledValues<Word>& sample, int quarters) {
  using Scalar = typename Word::scalar;
  const Scalar first_value = sample.rows[0];
  const Word first = splat<Word>(first_value);
  U32 high = splat<U32>(0), low = splat<U32>(0);
  Word signs = splat<Word>(0);
  const auto add = [&](int s) ARRCOMP_LAMBDA {
    const Word x = sample.at(s);
    const U32 distance = lowest(x - first);
    high = high + sar(distance, 16);
    low = low + (distance & splat<U32>(0xffff));
    signs = signs | x;
  };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample mean, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  const int64_t total = int64_t{static_cast<int32_t>(sum(high))} * 65536 + sum(low);
  const int64_t count = sample.count * lanes_per_row, more = total + count * quarters / 4;
  const int64_t distance = quarters == 0 ? total / count : more >= 0 ? more / count : -((count - 1 - more) / count);
  return {static_cast<uint64_t>(first_value) + static_cast<uint64_t>(distance),
          or_all(signs) >> (sizeof(Scalar) * 8 - 1) == 0};
}

// Sums of bit lengths over the sample, one for each way to predict.
struct PredictionCosts {
  uint32_t direct, based, difference;
};

template <class Word>
ARRCOMP_PART PredictionCosts prediction_costs(const SampledValues<Word>& sample, int bits, const SampleMean& found) {
  U32 direct = splat<U32>(0), based = direct, difference = direct;
  const Word mean = splat<Word>(static_cast<typename Word::scalar>(found.mean));
  const auto add = [&](int s) ARRCOMP_LAMBDA {
    const Word x = sample.at(s);
    direct = direct + bit_length(fold(x, found.all_positive, bits));
    based = based + bit_length(fold(x - mean, false, bits));
    difference = difference + bit_length(fold(x - sample.before(s, x), false, bits));
  };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample predictions, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  return {sum(direct), sum(based), sum(difference)};
}

// How the values of a chunk (`bits` of each word count) become words: as they are, from their mean, or as differences.
template <class Word>
ARRCOMP_PART void choose_prediction(ChunkHead& header, const SampledValues<Word>& sample, int bits, int stride) {
  // Bytes may have so few values that one more or less matters.
  const SampleMean found = sample_mean<Word>(sample, bits == 8 ? 3 : 0);
  const PredictionCosts costs = prediction_costs<Word>(sample, bits, found);
  const uint32_t worth = static_cast<uint32_t>(2 * sample.count);  // 1/16 bit a value
  header.plain = found.all_positive;
  header.base = 0;
  uint32_t best = costs.direct;
  if (costs.based + worth < best) {
    best = costs.based + worth;
    header.base = found.mean;
    header.plain = false;
  }
  if (costs.difference + worth < best) {
    using Scalar = typename Word::scalar;
    const StepChoice<Scalar> steps = choose_step<Word>(sample, bits, stride);
    header.difference = true;
    header.base = static_cast<Scalar>(sample.rows[0] - steps.step);
    header.step = static_cast<uint64_t>(static_cast<std::make_signed_t<Scalar>>(steps.step));
    header.plain = steps.plain;
  }
  header.has_base = header.base != 0;
}

// A sample's sums of min(symbol, knot) for the tables' eight knots.
struct Features {
  uint32_t samples;
  uint32_t sums[feature_count];

  ARRCOMP_METHOD void add(const Features& others) {
    samples += others.samples;
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) sums[j] += others.sums[j];
  }
};

// The same sums of each lane, row by row.
class FeatureSums {
 public:
  ARRCOMP_METHOD explicit FeatureSums(const uint32_t* knots) {
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) {
      totals_[j] = splat<U32>(0);
      knots_[j] = knots[j];
    }
  }

  template <class Word>
  ARRCOMP_METHOD void add(Word shifted) {
    const U32 symbol = symbol_of(shifted, symbol_count - 1);
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) totals_[j] = totals_[j] + min(symbol, splat<U32>(knots_[j]));
  }

  ARRCOMP_METHOD Features of(int rows) const {
    Features features{static_cast<uint32_t>(rows * lanes_per_row), {}};
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) features.sums[j] = sum(totals_[j]);
    return features;
  }

 private:
  U32 totals_[feature_count];
  uint32_t knots_[feature_count];
};

template <class Word>
ARRCOMP_PART Features gather_features(const Sample<Word>& sample, int shift, const uint32_t* knots) {
  FeatureSums sums(knots);
  const auto add = [&](int s) ARRCOMP_LAMBDA { sums.add(sample.at(s) >> shift); };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample features, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  return sums.of(sample.count);
}

struct TableCost {
  int table;          // or tables_of_tiles
  uint32_t bits_256;  // of the sample, in 1/256 bit
};

// The cheapest table for a sample: costs are linear in the features.
ARRCOMP_INLINE TableCost cheapest_table(const TableChoice& choice, const Features& features) {
  const auto load_costs = [](const int32_t (&of_lanes)[lanes_per_row])
                              ARRCOMP_LAMBDA { return load(reinterpret_cast<const uint32_t*>(of_lanes)); };
  const CostsOfLanes* costs = choice.costs;
  U32 best = splat<U32>(~0u);
  ARRCOMP_ROLLED for (uint32_t t = 0; t < choice.tables; t += lanes_per_row, ++costs) {
    U32 cost = load_costs(costs->value) * splat<U32>(features.samples);
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) cost =
        cost + load_costs(costs->features[j]) * splat<U32>(features.sums[j]);
    const U32 index = lane_numbers() + splat<U32>(t);
    best = min(best, min(cost >> 4, splat<U32>(0xffffff)) << 8 | index);
  }
  const uint32_t least = min_all(best);
  return {static_cast<int>(choice.first_table + (least & 255)), least >> 8};
}

// Whether rows of the sample differ by more than chance, so that tables of tiles may pay: the lengths of their symbols,
// added up, vary more than those of as many values from anywhere.
template <class Word>
ARRCOMP_PART bool is_uneven(const Sample<Word>& sample, int shift) {
  constexpr int step = 2;  // of the sample's rows, a row of a tile where a chunk is full
  constexpr uint64_t times = 2;
  U32 squares = splat<U32>(0);
  uint32_t total = 0, squares_of_rows = 0;
  ARRCOMP_ROLLED for (int s = 0; s < sample.count; s += step) {  // counted: sample evenness, 8 rows
    const U32 lengths = bit_length(sample.at(s) >> shift);
    squares = squares + lengths * lengths;
    const uint32_t length = sum(lengths);
    total += length;
    squares_of_rows += length * length;
  }
  const auto rows = static_cast<uint64_t>((sample.count + step - 1) / step), values = rows * lanes_per_row;
  // Both times rows * values.
  const uint64_t variance_of_rows = squares_of_rows * values - uint64_t{total} * total * lanes_per_row;
  const uint64_t by_chance = sum(squares) * values - uint64_t{total} * total;
  return variance_of_rows > times * by_chance;
}

// What a sample looks like with `shift` low bits taken off.
struct ShiftedCounts {
  int32_t escapes, zeros, ones;
};

// Of two shifts, one after the other.
struct TwoShiftedCounts {
  ShiftedCounts here, next;
};

// Both come from one way through the sample where that is much of the work (else `next` is unknown).
constexpr bool counts_two_shifts = !keeps_rows;

template <class Word>
ARRCOMP_PART TwoShiftedCounts count_shifted(const Sample<Word>& sample, int shift) {
  constexpr uint32_t escape = symbol_count - 1;
  U32 counts = splat<U32>(0);  // of each lane, 6 bits for each
  const auto counted = [](Mask m, int at) ARRCOMP_LAMBDA { return select(m, splat<U32>(1u << at), splat<U32>(0)); };
  const auto add = [&](int s) ARRCOMP_LAMBDA {
    const U32 symbol = symbol_of(sample.at(s) >> shift, counts_two_shifts ? 2 * escape : escape);
    counts = counts + counted(counts_two_shifts ? ge(symbol, splat<U32>(escape)) : eq(symbol, splat<U32>(escape)), 0);
    counts = counts + counted(eq(symbol, splat<U32>(0)), 6);
    counts = counts + counted(eq(symbol, splat<U32>(1)), 12);
    if (!counts_two_shifts) return;
    counts = counts + counted(ge(symbol, splat<U32>(2 * escape)), 18);
    counts = counts + counted(eq(symbol >> 1, splat<U32>(1)), 24);
  };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample shifts, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  const auto of_all = [&](int at) ARRCOMP_LAMBDA { return static_cast<int32_t>(sum(counts >> at & splat<U32>(63))); };
  const ShiftedCounts here{of_all(0), of_all(6), of_all(12)};
  if (!counts_two_shifts) return {here, {}};
  return {here, {of_all(18), here.zeros + here.ones, of_all(24)}};
}

// The sum of the words' lengths in bits.
template <class Word>
ARRCOMP_PART uint32_t sum_of_lengths(const Sample<Word>& sample) {
  U32 lengths = splat<U32>(0);
  const auto add = [&](int s) ARRCOMP_LAMBDA { lengths = lengths + bit_length(sample.at(s)); };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample lengths, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  return sum(lengths);
}

// Low bits to store raw: so many that the symbols' mean is about 6 to 13. More where the escapes that are saved weigh
// more than what the symbols lose: about 1/32 bit a value, and a bit for each zero that is not matched by a one.
template <class Word>
ARRCOMP_PART int choose_shift(const Sample<Word>& sample, int word_bits) {
  const int32_t samples = sample.count * lanes_per_row;
  const int32_t mean_length = static_cast<int32_t>(sum_of_lengths(sample)) / samples;
  int shift = mean_length > 3 ? mean_length - 3 : 0;
  TwoShiftedCounts counts = count_shifted(sample, shift);
  bool has_next = counts_two_shifts;
  ShiftedCounts now = counts.here;
  ARRCOMP_ROLLED for (; now.escapes > 0 && shift < word_bits - 1; ++shift) {
    if (!has_next) counts = count_shifted(sample, shift + 1);
    const ShiftedCounts next = has_next ? counts.next : counts.here;
    const int32_t loss = samples / 32 + (now.zeros > now.ones ? now.zeros - now.ones : 0);
    if (16 * (now.escapes - next.escapes) <= loss) break;
    now = next;
    has_next = counts_two_shifts && !has_next;
  }
  return shift;
}

// Twice the bits that a zero costs where the others' shift is k: k and about 1.5 for its symbol. Nothing without a
// shift, as a table then serves.
template <class Word>
ARRCOMP_PART int zero_shift_cost(const Sample<Word>& sample) {
  int nonzero = 0;
  for (int s = 0; s < sample.count; ++s) nonzero += count(ne(sample.at(s), splat<Word>(0)));
  const uint32_t lengths = sum_of_lengths(sample);
  const int shift = nonzero == 0 ? 0 : (static_cast<int>(lengths) * 4 / nonzero - 10) / 4;  // mean length less 2.5
  return shift > 0 ? 2 * shift + 3 : 0;
}

// Bits of a word below its exponent: the sign, where any value has one, and what is left of the mantissa.
ARRCOMP_INLINE int raw_exponent_bits(const Element& element, const ChunkHead& header) {
  return element.mantissa_bits + (header.plain ? 0 : 1) - header.drop;
}

// Twice the bits of a zero among exponents: an escape, its word and the raw bits.
ARRCOMP_INLINE int zero_escape_cost(const Element& element, const ChunkHead& header) {
  return 2 * (precision + 16 + raw_exponent_bits(element, header));
}

// A sample of float bits, as the choice between exponents and differences sees it.
struct FloatSample {
  uint32_t samples = 0, nonzero = 0;
  uint32_t exponents = 0;  // their sum
  uint32_t lengths = 0;    // of the differences of ordered floats, summed
};

template <class Word>
ARRCOMP_INLINE U32 exponent_of(Word bits, const Element& element) {
  return lowest(bits >> element.mantissa_bits & ones<Word>(element.exponent_bits));
}

template <int width, class Word>
ARRCOMP_PART FloatSample sample_floats(const SampledValues<Word>& sample, const Element& element) {
  U32 exponents = splat<U32>(0), lengths = exponents, nonzero = exponents;
  const auto add = [&](int s) ARRCOMP_LAMBDA {
    const Word x = sample.at(s);
    const Word step = order_floats(x, width) - order_floats(sample.before(s, x), width);
    lengths = lengths + bit_length(fold(step, false, width));
    exponents = exponents + exponent_of(x, element);
    nonzero = nonzero + lowest(min(x, splat<Word>(1)));
  };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample floats, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  return {static_cast<uint32_t>(sample.count * lanes_per_row), sum(nonzero), sum(exponents), sum(lengths)};
}

// The mean of the exponents that are not zeros'.
ARRCOMP_INLINE uint32_t mean_exponent(const FloatSample& floats) {
  return floats.exponents / (floats.nonzero > 0 ? floats.nonzero : 1);  // zeros add nothing to the sum
}

// Symbols are counted down from so far above the mean exponent, which most stay below.
constexpr uint32_t octaves_above_mean = 6, wide_octaves_above_mean = 16;

// Whether more than 1 in 512 exponents do not.
template <class Word>
ARRCOMP_PART bool has_wide_exponents(const FloatSample& floats, const SampledValues<Word>& sample,
                                     const Element& element) {
  if (element.exponent_bits <= 4) return false;
  const U32 one = splat<U32>(1), none = splat<U32>(0), limit = splat<U32>(mean_exponent(floats) + octaves_above_mean);
  U32 above = none;
  const auto add = [&](int s) ARRCOMP_LAMBDA {
    above = above + select(lt(limit, exponent_of(sample.at(s), element)), one, none);
  };
  int s = 0;
  ARRCOMP_ROLLED for (; s + sample_batch <= sample.count; s += sample_batch) {  // counted: sample exponents, 16 rows
    ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) add(s + i);
  }
  each_left(s, sample.count, add);
  return sum(above) * 512 > floats.samples;
}

// Chooses between coding a chunk's exponents and the differences of its ordered floats. Returns the words' low bits that
// symbols of exponents leave, and the header says how words are made; or -1. `bits` are those that any value has, `width`
// is how many an element has.
template <int width, class Word>
ARRCOMP_PART int choose_exponent(ChunkHead& header, const SampledValues<Word>& sample, uint64_t bits,
                                 const Element& element) {
  int drop = 0;
  while (drop < element.mantissa_bits && (bits >> drop & 1) == 0) ++drop;

  const FloatSample floats = sample_floats<width>(sample, element);
  ChunkHead split = header;
  split.transform = Transform::exponent;
  split.plain = bits >> (width - 1) == 0;
  split.drop = drop;
  // Exponents take 2 to 3 bits, and a difference about 1 more than its length.
  const uint32_t bits_of_value = static_cast<uint32_t>(raw_exponent_bits(element, split)) + 1;
  if (floats.lengths <= floats.nonzero * bits_of_value + (floats.samples - floats.nonzero) / 4) return -1;
  // Symbols have the mantissa's highest bit too, but where exponents are so many that these would not fit. Their tables
  // count in halves of octaves.
  const bool is_wide = has_wide_exponents<Word>(floats, sample, element),
             has_half = !is_wide && drop < element.mantissa_bits;
  const uint32_t above = is_wide ? wide_octaves_above_mean : has_half ? octaves_above_mean : 2 * octaves_above_mean;
  split.base = mean_exponent(floats) + above;
  split.has_base = true;
  header = split;
  return raw_exponent_bits(element, split) - (has_half ? 1 : 0);
}

}  // namespace arrcomp::ARRCOMP_ISA
