#include "codecs/grouped/rans_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "codecs/grouped/rans_tables.inc"
#include "stream/multiples_choice.h"

namespace arrcomp {
namespace {

static_assert(sizeof(rans_frequencies) == sizeof(uint16_t) * table_count * symbol_count);

struct AliasLayout {
  int split[symbol_count];
  int alias[symbol_count];
  int offset[symbol_count];
};

// Vose's construction of Walker's alias method, in integers and in the order that FORMAT.md fixes.
AliasLayout lay_out(const uint16_t* frequencies) {
  AliasLayout layout;
  int left[symbol_count], small[symbol_count], large[symbol_count];
  int smalls = 0, larges = 0;
  for (int b = 0; b < symbol_count; ++b) {
    left[b] = frequencies[b];
    layout.split[b] = slots_per_bucket;
    layout.alias[b] = b;
    layout.offset[b] = 0;
    (left[b] < slots_per_bucket ? small[smalls++] : large[larges++]) = b;
  }
  while (smalls > 0) {
    const int b = small[--smalls];
    const int donor = large[larges - 1];
    layout.split[b] = left[b];
    layout.alias[b] = donor;
    left[donor] -= slots_per_bucket - left[b];
    if (left[donor] < slots_per_bucket) {
      --larges;
      small[smalls++] = donor;
    }
  }
  int next[symbol_count];
  memcpy(next, layout.split, sizeof next);
  for (int b = 0; b < symbol_count; ++b) {
    if (layout.split[b] == slots_per_bucket) continue;
    layout.offset[b] = next[layout.alias[b]] - layout.split[b];
    next[layout.alias[b]] += slots_per_bucket - layout.split[b];
  }
  return layout;
}

// Where a symbol's entries in EncodeTable::slot begin. The remainder is 1 instead of 0 where the frequency is 1 (see
// below): these symbols' one entry is found from a place before it, and all places are one higher, so that none is
// negative.
uint32_t entry_start(uint32_t start, uint32_t frequency) { return frequency == 1 ? start : start + 1; }

void set_divisions(EncodeTable& table, const uint16_t* frequencies) {
  uint32_t start = 0;
  for (int s = 0; s < symbol_count; ++s) {
    const uint32_t f = frequencies[s];
    if (f == 0) continue;  // beyond the escape symbol
    uint32_t log2 = 0;
    while (f > (1u << log2)) ++log2;
    // Rounded up: exact for all states of this frequency (make_rans_tables.py sees to it). For 1 it would need 33 bits:
    // with 32 of them the quotient is x - 1 and the remainder 1, and the entry makes up for it.
    table.reciprocal[s] = f == 1 ? ~0u : static_cast<uint32_t>(((1ull << (log2 + 31)) + f - 1) / f);
    const uint32_t shift = f == 1 ? 0 : log2 - 1;
    table.division[s] = f | shift << precision | entry_start(start, f) << (precision + 4);
    table.entries.pairs[s][0] = 2 * entry_start(start, f) | shift << 12 | (0u - f) << 20;
    table.entries.pairs[s][1] = table.reciprocal[s];
    start += f;
  }
}

void set_slots(DecodeTable& decode, EncodeTable& encode, const uint16_t* frequencies, const AliasLayout& layout) {
  memset(encode.entries.slot, 0, sizeof encode.entries.slot);
  for (int slot = 0; slot < slot_count; ++slot) {
    const int bucket = slot / slots_per_bucket, position = slot % slots_per_bucket;
    const bool own = position < layout.split[bucket];
    const int symbol = own ? bucket : layout.alias[bucket];
    const int rank = own ? position : position + layout.offset[bucket];
    const uint32_t f = frequencies[symbol];
    decode.slot[slot] = static_cast<uint32_t>(symbol) | f << 6 | static_cast<uint32_t>(rank) << 17;
    const uint32_t start = encode.division[symbol] >> (precision + 4);
    if (f == 1)
      encode.entries.slot[start + 1] = static_cast<uint16_t>(slot + slot_count);
    else
      encode.entries.slot[start + static_cast<uint32_t>(rank)] = static_cast<uint16_t>(slot);
  }
}

// Which runs of consecutive slots each 32 places, a cell, stand for.
class RunCells {
 public:
  // Gives places from `first` on to these slots; false, with nothing changed, where a cell would have too many runs.
  bool add(int first, const uint16_t* slots, int count) {
    if (first + count > slot_count) throw std::logic_error("a table of the entropy coder has too many runs");
    RunCells tried = *this;
    for (int i = 0; i < count; ++i)
      if (!tried.put(first + i, (slots[i] - first - i) & (slot_count - 1))) return false;
    *this = tried;
    return true;
  }

  void store(uint16_t (*runs)[symbol_count]) const {
    for (int cell = 0; cell < symbol_count; ++cell)
      for (int k = 0; k < runs_per_cell; ++k)
        runs[k][cell] = counts_[cell] > 0 ? entries_[std::min(k, counts_[cell] - 1)][cell] : 0;
  }

 private:
  bool put(int position, int move) {
    const int cell = position / slots_per_bucket;
    int& count = counts_[cell];
    if (count > 0 && (entries_[count - 1][cell] & (slot_count - 1)) == move) return true;
    if (count == runs_per_cell) return false;
    const int from = count == 0 ? 0 : position % slots_per_bucket;
    entries_[count++][cell] = static_cast<uint16_t>(from << precision | move);
    return true;
  }

  int counts_[symbol_count] = {};
  uint16_t entries_[runs_per_cell][symbol_count] = {};
};

// Whether each slot follows the one before.
bool is_one_run(const uint16_t* slots, int count) {
  for (int i = 1; i < count; ++i)
    if (slots[i] != slots[0] + i) return false;
  return true;
}

// Symbols whose slots are one run stand in the places of their slots; the others have places of their own, from 2^15 on.
void set_runs(EncodeTable& table, const uint16_t* frequencies) {
  RunCells cells;
  int next = 0;
  for (int s = 0; s < symbol_count; ++s) {
    const int f = frequencies[s];
    if (f == 0) continue;
    const uint32_t start = table.division[s] >> (precision + 4);
    const uint16_t* slots = table.entries.slot + start;
    int position = f == 1 ? slots[1] - 1 : slots[0];
    if (f > 1 && !is_one_run(slots, f)) {
      while (!cells.add(next, slots, f)) ++next;
      position = (1 << 15) + next;
      next += f;
    }
    table.run_division[s] =
        table.division[s] - (start << (precision + 4)) + (static_cast<uint32_t>(position) << (precision + 4));
  }
  cells.store(table.runs);
}

void set_buckets(DecodeTable& table, const uint16_t* frequencies, const AliasLayout& layout) {
  for (int b = 0; b < symbol_count; ++b) {
    table.alias[0][b] = static_cast<uint16_t>(layout.alias[b] | layout.split[b] % slots_per_bucket << precision);
    table.alias[1][b] = static_cast<uint16_t>(layout.offset[b]);
    table.alias[2][b] = frequencies[b];
  }
}

uint32_t highest_symbol(const uint16_t* frequencies) {
  uint32_t s = symbol_count - 1;
  while (frequencies[s] == 0) --s;
  return s;
}

template <int tables>
void set_costs(CostsOfLanes* all, const int32_t (&costs)[1 + feature_count][tables]) {
  static_assert(tables % lanes_per_row == 0);
  for (int t = 0; t < tables; ++t) {
    CostsOfLanes& own = all[t / lanes_per_row];
    own.value[t % lanes_per_row] = costs[0][t];
    for (int j = 0; j < feature_count; ++j) own.features[j][t % lanes_per_row] = costs[1 + j][t];
  }
}

// 256 log2(x), rounded down, without the last places of floats: every machine comes to the same.
uint32_t log2_256(uint64_t x) {
  uint32_t log2 = 0;
  for (; x >> log2 > 1; ++log2) {
  }
  uint32_t fraction = 0;
  uint64_t mantissa = (x << 31) >> log2;  // from 2^31 to 2^32 - 1
  for (int i = 0; i < 8; ++i) {
    mantissa = mantissa * mantissa >> 31;
    const uint64_t bit = mantissa >> 32;
    fraction = fraction << 1 | static_cast<uint32_t>(bit);
    mantissa >>= bit;
  }
  return log2 << 8 | fraction;
}

void set_symbol_costs(CostsOfSymbols& costs) {
  for (uint32_t t = 0; t < quantized_tables; ++t) {
    const uint16_t* const frequencies = rans_frequencies[t];
    const uint32_t escape = highest_symbol(frequencies);
    for (uint32_t s = 0; s < symbol_count; ++s) {
      const uint32_t own = s < escape ? s : escape;
      const uint32_t rest = s < escape ? 0 : 16 * 256;
      costs.of_symbols[s][t] = (precision << 8) - log2_256(frequencies[own]) + rest;
    }
  }
}

// Rounded down, so that they need no test of all states: x / f = mulhi(x, reciprocal) >> max(bit_length(f - 1), 1) - 1, or
// one more.
void set_reciprocals(uint32_t (&reciprocals)[slot_count + 1]) {
  reciprocals[0] = 0;
  for (uint32_t f = 1; f <= slot_count; ++f)
    reciprocals[f] = f == 1 ? ~0u : static_cast<uint32_t>((1ull << (std::bit_width(f - 1) + 31)) / f);
}

template <class Number, class Scalar>
void set_multiples(MultiplesOfLanes<Scalar>& all, const Element& element) {
  const auto bits = [](double x) { return std::bit_cast<Scalar>(static_cast<Number>(x)); };
  static_assert(multiples_of_chunks == lanes_per_row);
  for (int kind = 1; kind <= multiples_of_chunks; ++kind) {
    const Multiples own = multiples_of_chunk(element, kind);
    all.multiplier[kind - 1] = bits(own.multiplier);
    all.divisor[kind - 1] = bits(own.divisor);
    all.inverse[kind - 1] = bits(static_cast<Number>(own.divisor) / static_cast<Number>(own.multiplier));
  }
}

std::unique_ptr<Tables> build() {
  auto all = std::make_unique<Tables>();
  for (int t = 0; t < table_count; ++t) {
    const AliasLayout layout = lay_out(rans_frequencies[t]);
    set_divisions(all->encode[t], rans_frequencies[t]);
    set_slots(all->decode[t], all->encode[t], rans_frequencies[t], layout);
    set_runs(all->encode[t], rans_frequencies[t]);
    set_buckets(all->decode[t], rans_frequencies[t], layout);
    all->decode[t].escape = all->encode[t].escape = highest_symbol(rans_frequencies[t]);
  }
  set_costs(all->quantized_costs, quantized_costs);
  set_costs(all->exponent_costs, exponent_costs);
  set_symbol_costs(all->symbol_costs);
  set_reciprocals(all->reciprocals);
  memcpy(all->quantized_knots, quantized_knots, sizeof quantized_knots);
  memcpy(all->exponent_knots, exponent_knots, sizeof exponent_knots);
  set_multiples<float>(all->multiples32, float_element(8, 23));
  set_multiples<double>(all->multiples64, float_element(11, 52));
  return all;
}

}  // namespace

const Tables& tables() {
  static const Tables& built = *build().release();  // never destroyed: threads may outlive static objects
  return built;
}

}  // namespace arrcomp
