// The writer's side of contexts: whether a chunk's words may gain by them, which tables they get, and the coding itself.
// A reader needs none of this.
#pragma once
#include "codecs/grouped/choices.h"
#include "codecs/grouped/contexts.h"

namespace arrcomp::ARRCOMP_ISA {

// Whether contexts may pay for a sample of a chunk's words: the sizes of neighbours are alike (of normal numbers with the
// correlation r, -log2(1 - r^2) / 2 bits a word would be saved), and few words are escapes. Or all are zero.
template <class Word>
ARRCOMP_PART bool are_alike(const Sample<Word>& sample) {
  constexpr int step = 2;          // of the sample's rows
  constexpr int64_t part = 20;     // of the words' bits: r^2 must be more
  constexpr int most_escapes = 8;  // one word in so many
  U32 sums = splat<U32>(0), squares = sums, products = sums, lengths = sums;
  int rows = 0, escapes = 0;
  ARRCOMP_ROLLED for (int s = 0; s < sample.count; s += step, ++rows) {  // counted: sample likeness, 8 rows
    const Word words = sample.at(s);
    const U32 size = size_of(words);
    sums = sums + size;
    squares = squares + size * size;
    products = products + size * shift_in(size, size);
    lengths = lengths + bit_length(words);
    escapes += count(eq(symbol_of(words, symbol_count - 1), splat<U32>(symbol_count - 1)));
  }
  const int64_t values = rows * lanes_per_row, total = sum(sums);
  const int64_t covariance = values * sum(products) - total * total, variance = values * sum(squares) - total * total;
  if (variance == 0) return total == 0;
  if (covariance <= 0 || escapes * most_escapes > values) return false;
  const int64_t correlation = (covariance << 10) / variance;
  return part * correlation * correlation * values > int64_t{sum(lengths)} << 20;
}

// Counts the words of each context, by symbols. What is most frequent is counted apart: zeros among zeros. Returns how
// even lanes are: the mean of their words' sizes is so many 32nds of the largest.
ARRCOMP_CALLED uint32_t count_contexts(ContextMemory* memory, int rows) {
  for (uint32_t (&counts)[symbol_count] : memory->counts)
    for (int i = 0; i < symbol_count; i += lanes_per_row) store(counts + i, splat<U32>(0));
  sync();
  uint32_t zeros = 0;
  SizesAbove above;
  U32 sizes = splat<U32>(0);
  ARRCOMP_ROLLED for (int r = 0; r < rows; ++r) {
    const U32 words = load(memory->words + r * lanes_per_row), sum = above.sum();
    const Mask are_others = ne(sum | words, splat<U32>(0));
    zeros += static_cast<uint32_t>(count(~are_others));
    if (any(are_others)) {
      const U32 symbol = symbol_of(words, symbol_count - 1);
      add_ones(memory->counts[0], context_of_sum(sum) * splat<U32>(symbol_count) + symbol, are_others);
    }
    above.add(words);
    sizes = sizes + size_of(words);
  }
  if (leader()) memory->counts[0][0] = zeros;
  sync();
  const uint32_t most = max_all(sizes);
  return most == 0 ? lanes_per_row : sum(sizes) / most;
}

// The table for so many words of each kind, and what these take.
ARRCOMP_INLINE TableCost cheapest_table(const CostsOfSymbols* costs, const uint32_t (&counts)[symbol_count]) {
  constexpr int blocks = quantized_tables / lanes_per_row;
  U32 of_tables[blocks];
  ARRCOMP_UNROLL for (U32& cost : of_tables) cost = splat<U32>(0);
  for (int s = 0; s < symbol_count; ++s) {
    const uint32_t own = counts[s];
    if (own == 0) continue;
    ARRCOMP_UNROLL for (int b = 0; b < blocks; ++b) of_tables[b] =
        of_tables[b] + load(costs->of_symbols[s] + b * lanes_per_row) * splat<U32>(own);
  }
  U32 best = splat<U32>(~0u);
  ARRCOMP_UNROLL for (int b = 0; b < blocks; ++b) {
    const U32 index = lane_numbers() + splat<U32>(static_cast<uint32_t>(b * lanes_per_row));
    best = min(best, of_tables[b] >> 4 << 8 | index);  // 4096 words take below 2^25
  }
  const uint32_t least = min_all(best);
  return {static_cast<int>(least & 255), least >> 8 << 4};
}

// What a chunk's words take by contexts.
struct ContextCost {
  uint32_t bits;
  uint32_t even_lanes;  // of 32: one lane that has most of the bits leaves little of them to the states of others
};

// Chooses the tables.
ARRCOMP_CALLED ContextCost choose_contexts(ContextMemory* memory, const Tables* tables, int rows) {
  const uint32_t even_lanes = count_contexts(memory, rows);
  uint32_t bits_256 = 0;
  for (int context = 0; context < context_count; ++context) {
    const TableCost cost = cheapest_table(&tables->symbol_costs, memory->counts[context]);
    bits_256 += cost.bits_256;
    if (leader()) memory->tables[context] = static_cast<uint8_t>(cost.table);
  }
  sync();
  return {bits_256 / 256 + 8 * context_count, even_lanes};
}

// The coder's states and words behind a chunk's rows.
struct CodedRows {
  U32 states;
  uint16_t* words;
  int dry;
};

// Codes the rows of a chunk, unless their words pass the limit. `is_first`: in its group, so that it has dry rows.
ARRCOMP_CALLED CodedRows encode_by_contexts(ContextMemory* memory, const Tables* tables, int rows, bool is_first,
                                            CodedRows coded, const uint16_t* limit) {
  ContextEncoder encoder(tables->encode, &memory->of_sums,
                         [&](int context) ARRCOMP_LAMBDA { return memory->tables[context]; });
  const auto words_of = [&](int row) ARRCOMP_LAMBDA { return load(memory->words + row * lanes_per_row); };
  const auto size = [&](int row) ARRCOMP_LAMBDA { return row < 0 ? splat<U32>(0) : size_of(words_of(row)); };
  if (is_first)
    coded.dry = encode_dry_rows(rows, coded.states, coded.words, limit,
                                [&](int row, U32& states, uint16_t*& words) ARRCOMP_LAMBDA {
                                  encoder.start_row(size(row - 1) + size(row - 2) + size(row - 3));
                                  return encode_dry_row(encoder, words_of(row), states, words);
                                });
  U32 first = size(rows - 2), second = size(rows - 3), third = size(rows - 4);  // above the last row
  for (int row = rows - 1; row >= 0 && coded.words <= limit; --row) {
    encoder.start_row(first + second + third);
    encode_row(encoder, words_of(row), coded.states, coded.words);
    first = second;
    second = third;
    third = size(row - 4);
  }
  return coded;
}

}  // namespace arrcomp::ARRCOMP_ISA
