// Where the words of a chunk are kept, as rows of 32 and by their place in the chunk: whole in memory, or where near
// memory is scarce (a GPU's shared memory) their lower halves there, and the upper ones of tiles that have such far away.
#pragma once
#include <type_traits>

#include "codecs/grouped/choices.h"
#include "codecs/grouped/group_limits.h"

namespace arrcomp::ARRCOMP_ISA {

template <class Word>
class WholeWords {
  using Scalar = typename Word::scalar;

 public:
  template <class Memory>
  ARRCOMP_METHOD explicit WholeWords(Memory& memory) : values_(memory.values) {}

  // The memory, for other rows, as long as there are no words.
  ARRCOMP_METHOD Scalar* memory() const { return values_; }

  ARRCOMP_METHOD Word load(int row) const { return ARRCOMP_ISA::load(values_ + row * lanes_per_row); }
  ARRCOMP_METHOD void store(int row, Word u) { store_at(row * lanes_per_row, u); }
  ARRCOMP_METHOD void store_at(int place, Word u) { ARRCOMP_ISA::store(values_ + place, u); }
  ARRCOMP_METHOD Scalar at(int place) const { return values_[place]; }
  // Puts the lower halves of so many rows in the order of lanes: each gets neighbours, as many as there are rows.
  ARRCOMP_METHOD void put_in_lanes(int rows, uint16_t* halves) const {
    int r = 0;
    if constexpr (keeps_rows) r = put_four_in_lanes(rows, halves);
    for (; r < rows; ++r)
      ARRCOMP_ISA::store(halves + r * lanes_per_row, lowest(load_apart(values_ + r, rows, lanes_per_row)));
  }
  // Stores the lanes of m from a place on; returns the place behind them.
  ARRCOMP_METHOD int compress(int place, Word u, Mask m) {
    return static_cast<int>(ARRCOMP_ISA::compress(values_ + place, u, m) - values_);
  }

  // A sample of the first `rows` rows.
  ARRCOMP_METHOD Sample<Word> sample(int rows, int = 0) const {
    return {values_, sample_stride(rows) * lanes_per_row, samples_of(rows)};
  }

  // Before the first words are stored.
  ARRCOMP_METHOD void begin() {}
  // What is said of a tile, which has words of so many bits at most, once it is stored.
  ARRCOMP_METHOD void set_width(int, int) {}
  ARRCOMP_METHOD void all_are_wide() {}

 private:
  // Four neighbours at a time, as one number; returns the row behind them.
  ARRCOMP_METHOD int put_four_in_lanes(int rows, uint16_t* halves) const {
    if (rows % 4 != 0) return 0;
    alignas(uint64_t) uint16_t narrow[chunk_size];
    for (int r = 0; r < rows; ++r) ARRCOMP_ISA::store(narrow + r * lanes_per_row, lowest(load(r)));
    for (int r = 0; r < rows; r += 4) {
      const auto* const first = reinterpret_cast<const uint64_t*>(narrow + r);
      const U64 four = load_apart(first, rows / 4, lanes_per_row);
      for (int j = 0; j < 4; ++j) ARRCOMP_ISA::store(halves + (r + j) * lanes_per_row, lowest(four >> 16 * j));
    }
    return rows;
  }

  Scalar* values_;
};

class SplitWords {
 public:
  ARRCOMP_METHOD explicit SplitWords(NearMemory& near, uint16_t* far) : near_(near), far_(far), wide_(0), shifted_(0) {}

  ARRCOMP_METHOD uint32_t* memory() const { return reinterpret_cast<uint32_t*>(near_.words); }

  ARRCOMP_METHOD U32 load(int row) const {
    const U32 lower = load_lower(row);
    return is_wide(row / rows_per_tile) ? lower | load_upper(row) << 16 : lower;
  }
  ARRCOMP_METHOD void store(int row, U32 u) { store_at(row * lanes_per_row, u); }
  ARRCOMP_METHOD void store_at(int place, U32 u) {
    ARRCOMP_ISA::store(near_.words + place, u);
    ARRCOMP_ISA::store(far_ + place, u >> 16);
  }
  ARRCOMP_METHOD uint32_t at(int place) const {
    return is_wide(place / lanes_per_row / rows_per_tile) ? near_.words[place] | uint32_t{far_[place]} << 16
                                                          : near_.words[place];
  }
  ARRCOMP_METHOD void put_in_lanes(int rows, uint16_t* halves) const {
    for (int r = 0; r < rows; ++r)
      ARRCOMP_ISA::store(halves + r * lanes_per_row, load_apart(near_.words + r, rows, lanes_per_row));
  }
  ARRCOMP_METHOD int compress(int place, U32 u, Mask m) {
    append(far_ + place, u >> 16, m);
    return static_cast<int>(append(near_.words + place, u, m) - near_.words);
  }

  // Without k low bits, the upper halves will do where all words have such and k is 16 or more.
  ARRCOMP_METHOD Sample<U32> sample(int rows, int k = 0) const {
    const bool are_upper = k >= 16 && ~wide_ << (31 - (rows - 1) / rows_per_tile) == 0;
    if (are_upper) {
      take_sample(rows, [&](int r) { return load_upper(r); });  // counted as: upper halves
    } else if (wide_ == 0) {
      take_sample(rows, [&](int r) { return load_lower(r); });  // counted as: narrow words
    } else {
      take_sample(rows, [&](int r) {
        const U32 lower = load_lower(r), upper = load_upper(r);  // which is anything in narrow tiles
        return is_wide(r / rows_per_tile) ? in_halves(lower, upper) : lower;
      });
    }
    return {sample_memory(), lanes_per_row, samples_of(rows), are_upper ? 16 : 0};
  }

  ARRCOMP_METHOD void begin() { wide_ = shifted_ = 0; }
  ARRCOMP_METHOD void set_width(int tile, int width) {
    wide_ = (wide_ & ~(1u << tile)) | static_cast<uint32_t>(width > 16) << tile;
  }
  // Until widths are set: upper halves are stored of all words.
  ARRCOMP_METHOD void all_are_wide() { wide_ = ~0u; }

  // ---- tiles in registers

  ARRCOMP_METHOD bool is_wide(int tile) const { return (wide_ >> tile & 1) != 0; }

  // Whether one half of its words has all that is left of them without k low bits.
  ARRCOMP_METHOD bool is_simple(int tile, int k) const { return k >= 16 || !is_wide(tile); }
  // A simple tile without these bits.
  ARRCOMP_METHOD void load_symbols(int tile, int k, U32 (&u)[rows_per_tile]) const {
    const uint16_t* const halves = (is_wide(tile) ? far_ : near_.words) + tile * rows_per_tile * lanes_per_row;
    const int left = is_wide(tile) ? k - 16 : low_bits_left(tile, k);
    ARRCOMP_UNROLL for (int i = 0; i < rows_per_tile; ++i) u[i] = ARRCOMP_ISA::load(halves + i * lanes_per_row) >> left;
  }
  ARRCOMP_METHOD void load_tile(int tile, bool is_wide, U32 (&u)[rows_per_tile]) const {
    const uint32_t place = static_cast<uint32_t>(tile) * rows_per_tile * lanes_per_row;
    ARRCOMP_UNROLL for (int i = 0; i < rows_per_tile; ++i) u[i] =
        ARRCOMP_ISA::load(near_.words + place + i * lanes_per_row);
    if (!is_wide) return;
    ARRCOMP_UNROLL for (int i = 0; i < rows_per_tile; ++i) u[i] =
        in_halves(u[i], ARRCOMP_ISA::load(far_ + place + i * lanes_per_row));
  }

  // A tile that `arrive_unsorted` brought as elements T, from a row on; `in_any` has every bit that any word has.
  template <class T>
  ARRCOMP_METHOD void store_tile(int row, U32 (&u)[rows_per_tile], uint32_t in_any) {
    store_unsorted<T>(near_.words + row * lanes_per_row, u);
    if (in_any >> 16 == 0) return;
    wide_ |= 1u << row / rows_per_tile;
    store_upper_unsorted<T>(far_ + row * lanes_per_row, u);
  }

  // Of a wide tile: leaves the words without k low bits where that makes it simple; `u` are its words, of `width` bits.
  ARRCOMP_METHOD void narrow_tile(int row, const U32 (&u)[rows_per_tile], int k, int width) {
    const uint32_t tile = 1u << row / rows_per_tile;
    if (k >= 16 || width - k > 16) return;
    ARRCOMP_UNROLL for (int i = 0; i < rows_per_tile; ++i)
        ARRCOMP_ISA::store(near_.words + (row + i) * lanes_per_row, u[i] >> k);
    wide_ &= ~tile;
    shifted_ |= tile;
  }
  // The k low bits that a tile's words still have.
  ARRCOMP_METHOD int low_bits_left(int tile, int k) const { return (shifted_ >> tile & 1) != 0 ? 0 : k; }

 private:
  // The sample stands where a table's entries will.
  ARRCOMP_METHOD uint32_t* sample_memory() const {
    static_assert(sizeof near_.entries >= max_sampled_rows * lanes_per_row * sizeof(uint32_t));
    return near_.entries.pairs[0];
  }
  template <class LoadRow>
  ARRCOMP_METHOD void take_sample(int rows, LoadRow load_row) const {
    uint32_t* const memory = sample_memory();
    const int count = samples_of(rows), stride = sample_stride(rows);
    int s = 0;
    ARRCOMP_ROLLED for (; s + sample_batch <= count; s += sample_batch) {  // counted: sample words, 16 rows
      U32 u[sample_batch];
      ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) u[i] = load_row((s + i) * stride);
      ARRCOMP_UNROLL for (int i = 0; i < sample_batch; ++i) ARRCOMP_ISA::store(memory + (s + i) * lanes_per_row, u[i]);
    }
    ARRCOMP_ROLLED for (; s < count; ++s) ARRCOMP_ISA::store(memory + s * lanes_per_row, load_row(s * stride));
  }

  ARRCOMP_METHOD U32 load_lower(int row) const { return ARRCOMP_ISA::load(near_.words + row * lanes_per_row); }
  ARRCOMP_METHOD U32 load_upper(int row) const { return ARRCOMP_ISA::load(far_ + row * lanes_per_row); }

  NearMemory& near_;
  uint16_t* far_;
  uint32_t wide_;     // tiles whose words are not all below 2^16
  uint32_t shifted_;  // tiles whose words have lost their low bits
};

// Near memory holds the halves of words of 32 bits.
template <class Word>
constexpr bool splits_words = !keeps_rows && sizeof(typename Word::scalar) == 4;

template <class Word>
using ChunkWords = std::conditional_t<splits_words<Word>, SplitWords, WholeWords<Word>>;

}  // namespace arrcomp::ARRCOMP_ISA
