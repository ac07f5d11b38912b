// What a writer chooses for a chunk, from integers gathered on a sample of its rows: at most 32 rows at equal
// distances. Every instruction set comes to the same choice; a reader needs none of this.
#pragma once
#include "codecs/grouped/rans.h"
#include "codecs/numeric/real_layout.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int max_sampled_rows = 32;

ARRCOMP_INLINE int sample_stride(int rows) { return (rows + max_sampled_rows - 1) / max_sampled_rows; }

// Sums of bit lengths over the sample, one for each way to predict.
struct PredictionCosts {
  uint32_t direct = 0, based = 0, difference = 0;
  bool all_positive = false;
};

template <class Word>
ARRCOMP_INLINE Word previous_elements(const typename Word::scalar* values, int row) {
  const Word x = load(values + row * lanes_per_row);
  return shift_in(row > 0 ? load(values + (row - 1) * lanes_per_row) : x, x);
}

// The mean of the sample, found from 32-bit distances to the first value (and useless where these overflow: the costs
// then say so). With `quarters`, rounded down after so many quarters were added, else towards the first value: of the two
// values beside a mean between them the upper one suits zigzag, which puts -1 before 1.
template <class Word>
ARRCOMP_PART uint64_t sample_mean(const typename Word::scalar* values, int rows, int quarters) {
  const Word first = splat<Word>(values[0]);
  U32 high = splat<U32>(0), low = splat<U32>(0);
  uint32_t samples = 0;
  for (int r = 0; r < rows; r += sample_stride(rows), samples += lanes_per_row) {
    const U32 distance = lowest(load(values + r * lanes_per_row) - first);
    high = high + sar(distance, 16);
    low = low + (distance & splat<U32>(0xffff));
  }
  const int64_t total = int64_t{static_cast<int32_t>(sum(high))} * 65536 + sum(low);
  const int64_t count = samples, more = total + count * quarters / 4;
  const int64_t distance = quarters == 0 ? total / count : more >= 0 ? more / count : -((count - 1 - more) / count);
  return static_cast<uint64_t>(values[0]) + static_cast<uint64_t>(distance);
}

template <class Word>
ARRCOMP_PART PredictionCosts prediction_costs(const typename Word::scalar* values, int rows, int bits, uint64_t mean) {
  using Scalar = typename Word::scalar;
  U32 plain = splat<U32>(0), zigzag = plain, based = plain, difference = plain;
  Word signs = splat<Word>(0);
  for (int r = 0; r < rows; r += sample_stride(rows)) {
    const Word x = load(values + r * lanes_per_row);
    signs = signs | x;
    plain = plain + bit_length(fold(x, true, bits));
    zigzag = zigzag + bit_length(fold(x, false, bits));
    based = based + bit_length(fold(x - splat<Word>(static_cast<Scalar>(mean)), false, bits));
    difference = difference + bit_length(fold(x - previous_elements<Word>(values, r), false, bits));
  }
  PredictionCosts costs;
  costs.all_positive = (or_all(signs) >> (sizeof(Scalar) * 8 - 1)) == 0;
  costs.direct = sum(costs.all_positive ? plain : zigzag);
  costs.based = sum(based);
  costs.difference = sum(difference);
  return costs;
}

// How the values of a chunk (`bits` of each word count) become words: as they are, from their mean, or as differences.
template <class Word>
ARRCOMP_PART void choose_prediction(ChunkHead& header, const typename Word::scalar* values, int rows, int bits) {
  // Bytes may have so few values that one more or less matters.
  const uint64_t mean = sample_mean<Word>(values, rows, bits == 8 ? 3 : 0);
  const PredictionCosts costs = prediction_costs<Word>(values, rows, bits, mean);
  const uint32_t worth =
      static_cast<uint32_t>(2 * ((rows + sample_stride(rows) - 1) / sample_stride(rows)));  // 1/16 bit a value
  header.plain = costs.all_positive;
  header.base = 0;
  uint32_t best = costs.direct;
  if (costs.based + worth < best) {
    best = costs.based + worth;
    header.base = mean;
    header.plain = false;
  }
  if (costs.difference + worth < best) {
    header.difference = true;
    header.base = values[0];
    header.plain = false;
  }
  header.has_base = header.base != 0;
}

// A sample's sums of min(symbol, knot) for the tables' eight knots.
struct Features {
  uint32_t samples;
  uint32_t sums[feature_count];
};

template <class Word>
ARRCOMP_PART Features gather_features(const typename Word::scalar* words, int rows, int shift, const uint32_t* knots) {
  U32 totals[feature_count];
  Features features{};
  ARRCOMP_UNROLL for (U32& total : totals) total = splat<U32>(0);
  for (int r = 0; r < rows; r += sample_stride(rows), features.samples += lanes_per_row) {
    const U32 symbol = symbol_of(load(words + r * lanes_per_row) >> shift, symbol_count - 1);
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) totals[j] = totals[j] + min(symbol, splat<U32>(knots[j]));
  }
  ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) features.sums[j] = sum(totals[j]);
  return features;
}

struct TableCost {
  int table;
  uint32_t bits_256;  // of the sample, in 1/256 bit
};

// The cheapest table for a sample: costs are linear in the features.
ARRCOMP_INLINE TableCost cheapest_table(const TableChoice& choice, const Features& features) {
  const auto* costs = reinterpret_cast<const uint32_t*>(choice.costs);
  U32 best = splat<U32>(~0u);
  for (uint32_t t = 0; t < choice.tables; t += lanes_per_row) {
    U32 cost = load(costs + t) * splat<U32>(features.samples);
    ARRCOMP_UNROLL for (int j = 0; j < feature_count; ++j) cost =
        cost + load(costs + (j + 1) * choice.tables + t) * splat<U32>(features.sums[j]);
    const U32 index = prefix_sum(splat<U32>(1)) + splat<U32>(t - 1);
    best = min(best, min(cost >> 4, splat<U32>(0xffffff)) << 8 | index);
  }
  const uint32_t least = min_all(best);
  return {static_cast<int>(choice.first_table + (least & 255)), least >> 8};
}

// What a sample looks like with `shift` low bits taken off.
struct ShiftedCounts {
  int32_t escapes, zeros, ones;
};

template <class Word>
ARRCOMP_PART ShiftedCounts count_shifted(const typename Word::scalar* words, int rows, int shift) {
  ShiftedCounts counts{};
  for (int r = 0; r < rows; r += sample_stride(rows)) {
    const U32 symbol = symbol_of(load(words + r * lanes_per_row) >> shift, symbol_count - 1);
    counts.escapes += count(eq(symbol, splat<U32>(symbol_count - 1)));
    counts.zeros += count(eq(symbol, splat<U32>(0)));
    counts.ones += count(eq(symbol, splat<U32>(1)));
  }
  return counts;
}

// Low bits to store raw: so many that the symbols' mean is about 6 to 13. More where the escapes that are saved weigh
// more than what the symbols lose: about 1/32 bit a value, and a bit for each zero that is not matched by a one.
template <class Word>
ARRCOMP_PART int choose_shift(const typename Word::scalar* words, int rows, int word_bits) {
  U32 lengths = splat<U32>(0);
  int32_t samples = 0;
  for (int r = 0; r < rows; r += sample_stride(rows), samples += lanes_per_row)
    lengths = lengths + bit_length(load(words + r * lanes_per_row));
  const int32_t mean_length = static_cast<int32_t>(sum(lengths)) / samples;
  int shift = mean_length > 3 ? mean_length - 3 : 0;
  ShiftedCounts now = count_shifted<Word>(words, rows, shift);
  while (now.escapes > 0 && shift < word_bits - 1) {
    const ShiftedCounts next = count_shifted<Word>(words, rows, shift + 1);
    const int32_t loss = samples / 32 + (now.zeros > now.ones ? now.zeros - now.ones : 0);
    if (16 * (now.escapes - next.escapes) <= loss) break;
    now = next;
    ++shift;
  }
  return shift;
}

// Twice the bits that a zero costs where the others' shift is k: k and about 1.5 for its symbol. Nothing without a
// shift, as a table then serves.
template <class Word>
ARRCOMP_PART int zero_shift_cost(const typename Word::scalar* words, int rows) {
  U32 lengths = splat<U32>(0);
  int nonzero = 0;
  for (int r = 0; r < rows; r += sample_stride(rows)) {
    const Word u = load(words + r * lanes_per_row);
    lengths = lengths + bit_length(u);
    nonzero += count(ne(u, splat<Word>(0)));
  }
  const int shift = nonzero == 0 ? 0 : (static_cast<int>(sum(lengths)) * 4 / nonzero - 10) / 4;  // mean length less 2.5
  return shift > 0 ? 2 * shift + 3 : 0;
}

// Twice the bits of a zero among exponents: an escape, its word and the raw bits.
ARRCOMP_INLINE int zero_escape_cost(const Element& element, const ChunkHead& header) {
  return 2 * (precision + 16 + element.mantissa_bits + 1 - header.drop);
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

template <class Word>
ARRCOMP_PART FloatSample sample_floats(const typename Word::scalar* values, int rows, const Element& element) {
  FloatSample sample;
  U32 exponents = splat<U32>(0), lengths = splat<U32>(0);
  for (int r = 0; r < rows; r += sample_stride(rows), sample.samples += lanes_per_row) {
    const Word x = load(values + r * lanes_per_row);
    const Word before = previous_elements<Word>(values, r);
    const Word step = order_floats(x, element.width) - order_floats(before, element.width);
    lengths = lengths + bit_length(fold(step, false, element.width));
    exponents = exponents + exponent_of(x, element);
    sample.nonzero += static_cast<uint32_t>(count(ne(x, splat<Word>(0))));
  }
  sample.exponents = sum(exponents);
  sample.lengths = sum(lengths);
  return sample;
}

// Differences of exponents are counted down from here: 6 above the mean, or 16 where more than 1 in 512 exponents would
// be above that.
template <class Word>
ARRCOMP_PART uint32_t exponent_base(const FloatSample& sample, const typename Word::scalar* values, int rows,
                                    const Element& element) {
  const uint32_t mean = sample.exponents / (sample.nonzero > 0 ? sample.nonzero : 1);  // zeros add nothing to the sum
  uint32_t above = 0;
  for (int r = 0; r < rows; r += sample_stride(rows))
    above +=
        static_cast<uint32_t>(count(lt(splat<U32>(mean + 6), exponent_of(load(values + r * lanes_per_row), element))));
  return mean + (element.exponent_bits > 4 && above * 512 > sample.samples ? 16 : 6);
}

// Chooses between coding a chunk's exponents (true: the header says how) and the differences of its ordered floats.
// `bits` are those that any value has.
template <class Word>
ARRCOMP_PART bool choose_exponent(ChunkHead& header, const typename Word::scalar* values, int rows, uint64_t bits,
                                  const Element& element) {
  int drop = 0;
  while (drop < element.mantissa_bits && (bits >> drop & 1) == 0) ++drop;

  const FloatSample sample = sample_floats<Word>(values, rows, element);
  const uint32_t exponent_cost =
      sample.nonzero * (element.mantissa_bits + 3u - drop) + (sample.samples - sample.nonzero) / 4;
  if (sample.lengths <= exponent_cost) return false;
  header.transform = Transform::exponent;
  header.drop = drop;
  header.base = exponent_base<Word>(sample, values, rows, element);
  header.has_base = true;
  return true;
}

}  // namespace arrcomp::ARRCOMP_ISA
