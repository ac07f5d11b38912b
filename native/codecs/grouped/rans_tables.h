// The static tables of the entropy coder, laid out for use: FORMAT.md, section 4.1. Built once from the frequencies.
#pragma once
#include <cstdint>

#include "inline.h"
#include "stream/constants.h"

namespace arrcomp {

struct DecodeTable {
  // Of each bucket: its alias | the slots of its own symbol << 11, but itself and 0 where it has no alias; what the
  // alias's rank has beyond the position. Of each symbol: its frequency (lookup_alias in lanes.h).
  alignas(64) uint16_t alias[3][symbol_count];
  alignas(16) uint32_t slot[slot_count];  // symbol | frequency << 6 | rank << 17: where there are no wide permutations
  uint32_t escape;                        // the highest symbol: more follows
};

constexpr int runs_per_cell = 5;  // of 32 places: with so many all tables find room

constexpr int encode_slots = slot_count + 8;  // more than there are: a gather may read past the last

// What encoding with a table looks up where it gathers pairs (lanes.h).
struct EncodeEntries {
  // Of each symbol: twice its start | shift << 12 | the frequency, negative, << 20; the reciprocal.
  alignas(16) uint32_t pairs[symbol_count][2];
  uint16_t slot[encode_slots];  // from (symbol, rank) to the slot
};

struct EncodeTable {
  uint32_t division[symbol_count];    // frequency | shift << 11 | start of the symbol's entries in `slot` << 15
  uint32_t reciprocal[symbol_count];  // x / frequency = mulhi(x, reciprocal) >> shift
  EncodeEntries entries;
  uint32_t escape;

  // The same for instruction sets that look up runs (lanes.h): where a symbol's slots begin is a place for lookup_runs.
  uint32_t run_division[symbol_count];
  alignas(64) uint16_t runs[runs_per_cell][symbol_count];
};

// The writer's choice of a table by the features of a sample: see make_rans_tables.py.
constexpr int feature_count = 8;

// Of 32 tables, one for each lane: what a value takes in itself, and by each feature.
struct CostsOfLanes {
  alignas(64) int32_t value[lanes_per_row];
  int32_t features[feature_count][lanes_per_row];
};

// What a value takes with each table, escapes and their word too, in 1/256 bit; the last stands for all above it.
struct CostsOfSymbols {
  uint32_t of_symbols[symbol_count][quantized_tables];
};

struct TableChoice {
  const uint32_t* knots;
  const CostsOfLanes* costs;
  uint32_t first_table;
  uint32_t tables;
};

// Multiples that elements of a chunk may be of, one kind for each lane, as bits of floats of one width.
template <class Scalar>
struct MultiplesOfLanes {
  alignas(64) Scalar multiplier[lanes_per_row], divisor[lanes_per_row], inverse[lanes_per_row];
};

struct Tables {
  DecodeTable decode[table_count];
  EncodeTable encode[table_count];
  CostsOfLanes quantized_costs[quantized_tables / lanes_per_row];
  CostsOfLanes exponent_costs[exponent_tables / lanes_per_row];
  uint32_t quantized_knots[feature_count];
  uint32_t exponent_knots[feature_count];
  CostsOfSymbols symbol_costs;
  uint32_t reciprocals[slot_count + 1];  // of frequencies, for divisions (classes.h)
  MultiplesOfLanes<uint32_t> multiples32;
  MultiplesOfLanes<uint64_t> multiples64;

  ARRCOMP_SHARED TableChoice choice(bool exponent) const {
    return exponent ? TableChoice{exponent_knots, exponent_costs, quantized_tables, exponent_tables}
                    : TableChoice{quantized_knots, quantized_costs, 0, quantized_tables};
  }

  ARRCOMP_SHARED const MultiplesOfLanes<uint32_t>& multiples_of(uint32_t) const { return multiples32; }
  ARRCOMP_SHARED const MultiplesOfLanes<uint64_t>& multiples_of(uint64_t) const { return multiples64; }
};

// The tables of this process, built at the first call (thread-safe).
const Tables& tables();

}  // namespace arrcomp
