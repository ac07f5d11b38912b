// How the words of a chunk are coded: packed, or as symbols of a table above low bits that are stored as they are; what
// each way takes is estimated. FORMAT.md, section 4.
#pragma once
#include "codecs/grouped/class_choice.h"
#include "codecs/grouped/masked_words.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T, int chunk_limit>
class CoderChoice : protected MaskedWords<T, chunk_limit> {
  using Masked = MaskedWords<T, chunk_limit>;

 protected:
  using Masked::chunks_, Masked::has_states_;
  using Masked::context_, Masked::memory_, Masked::words_;
  using Masked::exponent_shift_, Masked::leaves_out_;
  using Masked::head_, Masked::rows_, Masked::by_contexts_, Masked::coded_rows_;
  using typename Masked::Scalar, typename Masked::Word;

  using Masked::Masked;

  // Returns the bits that the words take, as estimated.
  ARRCOMP_PART uint32_t choose_coder() {
    if (coded_rows_ == 0) return 0;
    head_.coder = Coder::packed;
    head_.shift = width_of_all();
    const uint32_t packed = packed_bits();
    if (context_.fast) return packed;
    const EntropyChoice choice = choose_entropy();
    // What states cost, and what they take, is a matter of all chunks.
    if (choice.bits + choice.in_states + (states_bytes * 8 - choice.in_states) / chunks_ >= packed) return packed;
    head_.coder = Coder::entropy;
    head_.shift = choice.shift;
    head_.table = choice.table;
    return choice.bits + bits_of_states();
  }

  // All words by contexts, where these take so many bits fewer that their time pays.
  ARRCOMP_METHOD void choose_contexts_below(uint32_t& bits) {
    const uint32_t words = by_contexts_.bits;
    if (words >= bits) return;
    const uint32_t own = words - bits_in_states(0, words) * by_contexts_.even_lanes / lanes_per_row + bits_of_states();
    if (own + own / 64 >= bits) return;
    bits = own;
    head_.coder = Coder::entropy;
    head_.mask = MaskKind::none;
    head_.shift = 0;
    head_.table = tables_of_contexts;
    coded_rows_ = rows_;
  }

  // The coded words by classes, where a sample says that these may take fewer bits than that, and all words then do.
  ARRCOMP_PART void choose_classes_below(uint32_t& bits) {
    const uint32_t part = head_.transform == Transform::quantized ? 16 : 32;  // of the bits must be saved
    if (!context_.may_have_classes || coded_rows_ < least_rows_of_classes || head_.transform == Transform::exponent)
      return;
    ClassMemory* const memory = &memory_.classes;
    const int width = static_cast<int>(widest_word()), shift = width < 32 ? 0 : width - 32,
              told = told_of(width - shift);
    // Of quantized values, words that are far longer than most.
    if (head_.transform == Transform::quantized &&
        (width - few_bits_above) * coded_rows_ * lanes_per_row < static_cast<int>(bits))
      return;
    const Sample<Word> sample = words_.sample(coded_rows_);
    const uint32_t expected = bits_of_sampled_classes(memory, sample, shift, told) * static_cast<uint32_t>(coded_rows_);
    const uint32_t low_bits = static_cast<uint32_t>(coded_rows_ * lanes_per_row * shift);
    const auto all = [&](uint32_t of_symbols) ARRCOMP_LAMBDA {
      return of_symbols + low_bits - bits_in_states(shift, of_symbols) + bits_of_states() + this->mask_bits();
    };
    if (all(expected) + bits / part >= bits) return;
    const uint32_t words =
        choose_class_table(memory, context_.tables->reciprocals, coded_rows_, told, has_classes_,
                           [&](int row) ARRCOMP_LAMBDA { return lowest(words_.load(row) >> shift); });
    if (all(words) + bits / part >= bits) return;
    bits = all(words);
    head_.coder = Coder::entropy;
    head_.shift = shift;
    head_.table = table_of_classes;
  }

  // Those that a chunk takes of the group's states.
  ARRCOMP_METHOD uint32_t bits_of_states() const { return has_states_ ? 0 : states_bytes * 8 / chunks_; }

  // The bits that masks take.
  ARRCOMP_METHOD uint32_t mask_bits() const {
    uint32_t bits = 0;
    if (head_.mask == MaskKind::values) bits += this->bits_of_row_masks();
    if (head_.mask == MaskKind::marks) bits += memory_.missing.bits;
    if (leaves_out_) bits += missing_side_bytes * 8 + memory_.missing.bits;
    return bits;
  }

  ARRCOMP_METHOD int rows_of_tile(int tile) const {
    const int left = coded_rows_ - tile * rows_per_tile;
    return left < rows_per_tile ? left : rows_per_tile;
  }

  // Whether the chunk's last 8 rows can have two bits in the initial states: it is the first to be coded, of whole
  // tiles.
  ARRCOMP_METHOD bool can_carry() const { return !has_states_ && coded_rows_ % carried_rows == 0; }
  // And has, with k low bits.
  ARRCOMP_METHOD bool carries(int k) const { return k >= carried_bits && can_carry(); }

  // Where it has not, its last rows are coded without words, from states that are almost nothing. Exponents have no place
  // to say so.
  ARRCOMP_METHOD bool has_dry_rows() const {
    return !has_states_ && !carries(head_.shift) && head_.transform != Transform::exponent;
  }

  static constexpr uint32_t missing_side_bytes = 4 + sizeof(Scalar);

  bool has_classes_;  // a chunk behind has written their table

 private:
  static constexpr uint32_t least_gain_of_tiles = 256 * 32;  // in 1/256 bit
  static constexpr int few_bits_above = 3;                   // the mean length of words
  static constexpr int least_rows_of_classes = 8;            // a table of fewer takes too much

  // Bits of the longest coded word.
  ARRCOMP_METHOD uint32_t widest_word() const {
    const int tiles = tiles_of(coded_rows_);
    return max_all(load_first(memory_.widths, tiles));
  }

  struct EntropyChoice {
    int shift, table;    // or tables_of_tiles
    uint32_t bits;       // as estimated
    uint32_t in_states;  // others, which the group's initial states take
  };

  ARRCOMP_PART EntropyChoice choose_entropy() const {
    const bool exponent = head_.transform == Transform::exponent;
    int shift = exponent ? exponent_shift_ : 0;
    const Sample<Word> sample = words_.sample(coded_rows_, T::width > 16 ? shift : 0);
    if (!exponent) shift = choose_shift(sample, T::word_bits);
    EntropyChoice best{shift, 0, ~0u, 0};
    for (;;) {
      const EntropyChoice choice = sampled_choice(sample, shift);
      if (choice.bits < best.bits) best = choice;
      if (exponent || shift >= carried_bits || !can_carry()) break;
      shift = carried_bits;  // one low bit more may be worth what the states then save
    }
    // Exponents gain little by it.
    return !exponent && is_uneven(sample, best.shift) ? choose_tables_of_tiles(best.shift) : best;
  }

  // Each tile's own table, where these save more than they take; else the best for all rows.
  ARRCOMP_PART EntropyChoice choose_tables_of_tiles(int shift) const {
    const TableChoice tables = context_.tables->choice(false);
    Features all{0, {}};
    uint32_t bits_256 = 256 * 8 * bytes_of_tiles(static_cast<uint32_t>(coded_rows_));
    sync();  // tables of the chunk before have been read
    for (int t = 0; t < tiles_of(coded_rows_); ++t) {
      const Features features = features_of_tile(t, shift, tables.knots);
      const TableCost own = cheapest_table(tables, features);
      bits_256 += own.bits_256;
      all.add(features);
      if (leader()) memory_.tables[t] = static_cast<uint8_t>(own.table);
    }
    sync();
    const TableCost one = cheapest_table(tables, all);
    const bool saves = bits_256 + least_gain_of_tiles < one.bits_256;
    return entropy_choice(shift, saves ? TableCost{tables_of_tiles, bits_256} : one, all.samples);
  }

  ARRCOMP_PART Features features_of_tile(int tile, int shift, const uint32_t* knots) const {
    const int first = tile * rows_per_tile, rows = rows_of_tile(tile);
    FeatureSums sums(knots);
    ARRCOMP_ROLLED for (int r = first; r < first + rows; ++r) sums.add(words_.load(r) >> shift);
    return sums.of(rows);
  }

  ARRCOMP_PART EntropyChoice sampled_choice(const Sample<Word>& sample, int shift) const {
    const TableChoice tables = context_.tables->choice(head_.transform == Transform::exponent);
    const Features features = gather_features(sample, shift - sample.taken_off, tables.knots);
    return entropy_choice(shift, cheapest_table(tables, features), features.samples);
  }

  // `cost` is that of so many samples.
  ARRCOMP_METHOD EntropyChoice entropy_choice(int shift, const TableCost& cost, uint32_t samples) const {
    constexpr uint32_t bits_256 = 256 / lanes_per_row;  // of a sample for each row: a cost has 24 bits, rows have 7
    const auto rows = static_cast<uint32_t>(coded_rows_), low_bits = static_cast<uint32_t>(lanes_per_row * shift);
    const uint32_t bits = rows * cost.bits_256 / (bits_256 * samples), in_states = bits_in_states(shift, bits);
    return {shift, cost.table, rows * low_bits + bits - in_states, in_states};
  }

  // Of `bits` of symbols, above k raw ones, those that the group's initial states take.
  ARRCOMP_METHOD uint32_t bits_in_states(int k, uint32_t bits) const {
    if (has_states_) return 0;
    if (carries(k)) return carried_rows * carried_bits * lanes_per_row;
    return head_.transform == Transform::exponent ? 0 : Masked::smaller(bits, Masked::most_in_states);
  }

  // The bits that packing takes.
  ARRCOMP_METHOD uint32_t packed_bits() const {
    const int widths = head_.shift > 0 ? 0 : 8 * tiles_of(coded_rows_);
    return static_cast<uint32_t>(packed_bits_of_lane() * lanes_per_row + widths);
  }

  ARRCOMP_METHOD int packed_bits_of_lane() const {
    if (head_.shift > 0) return coded_rows_ * head_.shift;
    int bits = 0;
    for (int t = 0; t < tiles_of(coded_rows_); ++t) bits += rows_of_tile(t) * memory_.widths[t];
    return bits;
  }

  // The width of all tiles, or 0 where they differ.
  ARRCOMP_METHOD int width_of_all() const {
    const int tiles = tiles_of(coded_rows_), width = memory_.widths[0];
    const U32 widths = load_first(memory_.widths, tiles);
    return any(ne(widths, splat<U32>(static_cast<uint32_t>(width))) & mask(low_mask(tiles))) ? 0 : width;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
