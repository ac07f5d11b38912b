// How values become words, and which of these a mask leaves to be coded. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_values.h"
#include "codecs/grouped/context_choice.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T, int chunk_limit>
class MaskedWords : protected ChunkValues<T, chunk_limit> {
  using Values = ChunkValues<T, chunk_limit>;

 protected:
  using typename Values::Scalar, typename Values::Word;
  using Values::context_, Values::memory_, Values::words_;
  using Values::elements_of, Values::except, Values::final_value, Values::quantized_at_sight, Values::rows_of_tiles;
  using Values::has_unsorted_tiles;
  using Values::next_, Values::rows_, Values::leaves_out_, Values::head_, Values::dropped_;

  using Values::Values;

  // Values become words, of which those that are coded are left, in full rows. False where there are too many
  // exceptions.
  ARRCOMP_PART bool make_words() {
    sync();  // the first value has been read before its lane overwrites it
    if (!map_values()) return false;
    sync();
    by_contexts_ = may_have_contexts() ? choose_contexts() : ContextCost{~0u, 0};
    const int least_gain = choose_mask();
    if (head_.mask != MaskKind::none) {
      compact();
      measure_widths();
      if (head_.mask == MaskKind::values && !leaves_out_) choose_marks(least_gain);
    }
    return true;
  }

  // A bit for each place of a live block.
  ARRCOMP_METHOD uint32_t bits_of_row_masks() const {
    return static_cast<uint32_t>(live_blocks() * rows_per_block * lanes_per_row);
  }

  ARRCOMP_METHOD static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

  // Bits of symbols that the group's initial states take: about what dry rows leave.
  static constexpr uint32_t most_in_states = 14 * lanes_per_row;

  // of the group
  uint32_t chunks_, chunks_left_;  // left to be coded, with this one
  bool has_states_;

  // of the chunk
  uint64_t live_;            // blocks with words that are not zero
  int coded_rows_;           // rows of words left to the coder
  ContextCost by_contexts_;  // of all words

 private:
  static constexpr int least_dead = 16;  // blocks, for a mask of them
  static constexpr uint32_t mark_head_bits = 32;
  static constexpr uint32_t least_gain_of_marks = 64;  // bits that pay for their time

  ARRCOMP_METHOD int live_blocks() const {
    return count(mask(static_cast<uint32_t>(live_))) + count(mask(static_cast<uint32_t>(live_ >> 32)));
  }

  // Rows of live blocks: the chunk's last block may be short.
  ARRCOMP_METHOD int live_rows() const {
    const int last = (rows_ - 1) / rows_per_block, lacking = (last + 1) * rows_per_block - rows_;
    return live_blocks() * rows_per_block - ((live_ >> last & 1) != 0 ? lacking : 0);
  }

  ARRCOMP_METHOD int word_bits() const { return head_.transform == Transform::quantized ? T::word_bits : T::width; }

  // Values become words. Notes what is not zero, and the tiles' widths. False where there are too many exceptions.
  ARRCOMP_PART bool map_values() {
    const ExponentFields<Word> fields(context_.element, head_);
    const Word base = splat<Word>(static_cast<Scalar>(head_.base)), step = splat<Word>(static_cast<Scalar>(head_.step));
    Word before = base;  // the first element's difference is to the base
    nonzero_ = 0;
    live_ = 0;
    words_.begin();
    for (int r = 0; r < rows_; r += rows_per_tile) {
      if constexpr (has_unsorted_tiles) {
        r = map_unsorted_tiles(r, fields, static_cast<Scalar>(head_.base));
        if (r >= rows_) break;
      }
      if (!keeps_rows && head_.difference && r > 0) {
        Mask failed;
        before = final_value(r - 1, failed);
      }
      if (!map_tile(r, fields, head_.difference ? step : base, before)) return false;
    }
    return true;
  }

  // `base`: of differences their step.
  ARRCOMP_METHOD bool map_tile(int first, const ExponentFields<Word>& fields, Word base, Word& before) {
    const int end = first + rows_per_tile < rows_ ? first + rows_per_tile : rows_;
    Word all = splat<Word>(0);
    int nonzero = 0;  // of the tile, as registers
    uint64_t live = 0;
    for (int r = first; r < end; ++r) {
      prefetch_bytes(next_ + r * lanes_per_row, lanes_per_row * T::width / 8);
      Mask failed;
      const Word x = final_value(r, failed);
      if constexpr (T::quantizes && !keeps_rows)
        if (head_.transform == Transform::quantized && any(failed) && !except(r, failed)) return false;
      Word u;
      if (head_.transform == Transform::exponent) {
        u = fields.split(x);
      } else {
        const Word distance = x - base;
        u = fold(head_.difference ? distance - shift_in(before, x) : distance, head_.plain, word_bits());
        before = x;
      }
      const Mask own = ne(head_.transform == Transform::exponent ? x : u, splat<Word>(0));
      if constexpr (keeps_rows) memory_.coded[r] = bits(own);
      nonzero += count(own);
      live |= static_cast<uint64_t>(bits(own) != 0) << r / rows_per_block;
      words_.store(r, u);
      all = all | u;
    }
    nonzero_ += nonzero;
    live_ |= live;
    note_width(first / rows_per_tile, or_all(all));
    return true;
  }

  // Maps tiles from row `first` on, as long as all of their elements have simple values and all of their blocks are
  // live. Returns the row behind them.
  ARRCOMP_METHOD int map_unsorted_tiles(int first, const ExponentFields<Word>& fields, Scalar base) {
    int r = first;
    if (head_.transform == Transform::quantized && !head_.difference) {
      const Folding<Word> folding(head_.plain);
      const auto map = [&](Word bits, Mask& served) {
        return folding.fold(quantized_at_sight(bits, served) - splat<Word>(base));
      };
      if (counts_zeros())
        r = map_unsorted_tiles<Zeros::of_words>(first, map);  // counted as: quantized
      else
        r = map_unsorted_tiles<Zeros::uncounted>(first, map);  // counted as: fast
    } else if (head_.transform == Transform::exponent && dropped_ == 0) {
      const auto map = [&](Word bits, Mask&) { return fields.split(bits); };
      r = map_unsorted_tiles<Zeros::of_elements>(first, map);  // counted as: exponent
    }
    const auto blocks = [](int row) { return row >= 128 ? ~uint64_t{0} : (uint64_t{1} << row / rows_per_block) - 1; };
    live_ |= blocks(r) & ~blocks(first);
    return r;
  }

  // Which zeros are counted of what is mapped.
  enum class Zeros : uint8_t { of_elements, of_words, uncounted };

  template <Zeros zeros, class Map>
  ARRCOMP_METHOD int map_unsorted_tiles(int r, Map map) {
    using Stored = typename T::storage;
    const int end = rows_of_tiles();
    if (r >= end) return r;
    U32 nonzero = splat<U32>(0);
    const Word one = in_registers(splat<Word>(1));  // else min is a comparison and a choice
    const Stored* at = elements_of(r);
    auto next = fetch_rows<rows_per_tile>(at);
    ARRCOMP_ROLLED for (; r < end; r += rows_per_tile) {  // counted: words, 8 rows
      Word u[rows_per_tile];
      arrive_unsorted(next, u);
      at += r + rows_per_tile < end ? rows_per_tile * lanes_per_row : 0;
      next = fetch_rows<rows_per_tile>(at);
      U32 own = splat<U32>(0);
      Mask is_simple = mask(~0u);
      const auto look = [&]() {
        is_simple = is_simple & nonzero_unsorted<Stored>(u);
        ARRCOMP_UNROLL for (const Word& x : u) own = own + min(x, one);
      };
      if (zeros == Zeros::of_elements) look();
      ARRCOMP_UNROLL for (Word& x : u) x = map(x, is_simple);
      if (zeros == Zeros::of_words) look();
      if (any(~is_simple)) break;
      nonzero = nonzero + own;
      Word all = splat<Word>(0);
      ARRCOMP_UNROLL for (const Word& x : u) all = all | x;
      const Scalar in_any = or_all(all);
      if (zeros == Zeros::uncounted) nonzero_ |= in_any != 0;
      words_.template store_tile<Stored>(r, u, in_any);
      note_width_in_memory(r / rows_per_tile, in_any);
    }
    if (zeros != Zeros::uncounted) nonzero_ += static_cast<int>(sum(nonzero));
    return r;
  }

  // Contexts are for words of few bits, many of them zero: symbols without low bits.
  ARRCOMP_METHOD bool may_have_contexts() const {
    if (context_.fast || nonzero_ == 0 || has_few_zeros()) return false;
    const int tiles = tiles_of(rows_);
    if (any(lt(splat<U32>(16), load_first(memory_.widths, tiles)) & mask(low_mask(tiles)))) return false;
    return are_alike(words_.sample(rows_));
  }

  ARRCOMP_METHOD ContextCost choose_contexts() {
    auto* const contexts = &memory_.contexts;
    words_.put_in_lanes(rows_, contexts->words);
    sync();
    return ARRCOMP_ISA::choose_contexts(contexts, context_.tables, rows_);
  }

  // Else a mask is out of the question: it only matters whether all words are zero.
  ARRCOMP_METHOD bool counts_zeros() const { return !context_.fast || head_.transform == Transform::exponent; }

  // `in_any`: the bits that any word of the tile has.
  ARRCOMP_METHOD void note_width(int tile, Scalar in_any) {
    words_.set_width(tile, note_width_in_memory(tile, in_any));
  }
  ARRCOMP_METHOD int note_width_in_memory(int tile, Scalar in_any) {
    const int width = bit_length(in_any);
    if (leader()) memory_.widths[tile] = static_cast<uint8_t>(width);
    return width;
  }

  // A mask by value pays where the zeros would cost raw bits (their shift, or an escape), or where others are few; one by
  // block where many blocks are zero. Returns by how many bits marks must be shorter than a bit for each place: their time
  // must pay.
  ARRCOMP_PART int choose_mask() {
    const bool exponent = head_.transform == Transform::exponent;
    constexpr int few = 64, none = -static_cast<int>(mark_head_bits);
    const int least_gain = exponent ? 1024 : nonzero_ > few ? 256 : none;  // words of floats are long
    coded_rows_ = rows_;
    if (nonzero_ == 0 && !exponent) {
      coded_rows_ = 0;
      return least_gain;
    }
    if (!counts_zeros()) return least_gain;  // zeros are short: a tile's width tells
    const int dead = (rows_ + rows_per_block - 1) / rows_per_block - live_blocks();
    const int positions = live_rows() * lanes_per_row;
    const int zeros = positions - nonzero_;
    const int zero_cost = exponent ? zero_escape_cost(context_.element, head_) : zero_cost_of_shift();
    const bool has_blocks = dead >= least_dead || (dead > 0 && exponent);
    if (zeros > 0 && pays_masked(zeros * zero_cost, zeros, positions)) {
      head_.mask = MaskKind::values;
    } else if (!exponent && pays_marked(positions, has_blocks)) {
      head_.mask = MaskKind::values;
      return none;
    } else if (has_blocks) {
      head_.mask = MaskKind::blocks;
    }
    return least_gain;
  }

  // Whether the words that are not zero are so few that they, packed, and their marks take fewer bits than symbols of all
  // `positions` and their part of the group's states: as if these words stood anywhere, or by contexts.
  ARRCOMP_METHOD bool pays_marked(int positions, bool has_blocks) const {
    const int all = rows_ * lanes_per_row, few = nonzero_;
    if (leaves_out_ || few * 8 > all) return false;
    const U32 widths = load_first(memory_.widths, tiles_of(rows_));
    const Mask own = ne(widths, splat<U32>(0)) & mask(low_mask(tiles_of(rows_)));
    const int tiles = count(own), wider = static_cast<int>(sum(select(own, widths, splat<U32>(0)))) - tiles;
    // Full rows are packed, and of a word's bits but the first, which marks tell, symbols take about half.
    const int places = (few + lanes_per_row - 1) / lanes_per_row * lanes_per_row;
    const int packed = (2 * places - few) * wider / (2 * tiles);
    const int shift = floor_log2(all / few);
    const uint32_t marks = mark_head_bits + bits_of_marks(few, shift, all) + static_cast<uint32_t>(packed);
    const int own_shift = floor_log2(positions / few);
    const auto at_random = static_cast<uint32_t>(few * own_shift + few * 7 / 16 + (positions >> own_shift));
    const uint32_t symbols = smaller(at_random + (has_blocks ? 64 : 0), by_contexts_.bits);
    return marks + least_gain_of_marks < symbols + share_of_states(symbols);
  }

  // What a chunk of so many bits of symbols takes of states, if others of its group are like it: of the first to be coded, a
  // little less, as they may be unlike it.
  ARRCOMP_METHOD uint32_t share_of_states(uint32_t symbols) const {
    if (has_states_) return 0;
    const uint32_t inside = smaller(symbols * chunks_left_, most_in_states);
    const uint32_t share = (states_bytes * 8 - inside) / chunks_left_;
    return chunks_left_ == chunks_ && chunks_ > 1 ? share * 5 / 8 : share;
  }

  ARRCOMP_METHOD static int floor_log2(int x) { return bit_length(static_cast<uint32_t>(x)) - 1; }

  // Whether twice the bits that zeros cost pay for their mask: a bit for each place, or marks. These must leave a quarter
  // of a bit a place, as masked words take longer.
  ARRCOMP_METHOD static bool pays_masked(int cost, int zeros, int positions) {
    if (cost > 2 * positions + 128) return true;
    const int shift = floor_log2(positions / zeros);
    return cost > 2 * static_cast<int>(bits_of_marks(zeros, shift, positions)) + positions / 2;
  }

  ARRCOMP_METHOD bool has_few_zeros() const { return nonzero_ * 8 > rows_ * lanes_per_row * 7; }
  ARRCOMP_METHOD int zero_cost_of_shift() const { return has_few_zeros() ? 0 : zero_shift_cost(words_.sample(rows_)); }

  // Marks instead of a bit for each place, where they are so much shorter.
  ARRCOMP_METHOD void choose_marks(int least_gain) {
    const int below = static_cast<int>(bits_of_row_masks()) - least_gain;
    if (mark_masked(&memory_.missing, memory_.coded, live_, rows_, static_cast<uint32_t>(below > 0 ? below : 0)))
      head_.mask = MaskKind::marks;
  }

  // Leaves only the coded words, in full rows.
  ARRCOMP_PART void compact() {
    const bool by_value = head_.mask == MaskKind::values, exponent = head_.transform == Transform::exponent;
    const Word one = splat<Word>(by_value && !exponent ? 1 : 0);
    Word zero = splat<Word>(0);  // what a zero became; no other element did
    if (exponent) zero = ExponentFields<Word>(context_.element, head_).split(zero);
    int values = 0;
    for (int r = 0; r < rows_; ++r) {
      if ((live_ >> r / rows_per_block & 1) == 0) continue;
      const Word u = words_.load(r);
      Mask lanes = mask(~0u);
      if constexpr (keeps_rows) {
        lanes = mask(by_value ? memory_.coded[r] : ~0u);
      } else if (by_value) {
        lanes = ne(u, zero);
        const uint32_t all_lanes_of_row = bits(lanes);
        if (leader()) memory_.coded[r] = all_lanes_of_row;
      }
      sync();  // all lanes have read before any overwrites
      values = words_.compress(values, u - one, lanes);
    }
    sync();
    words_.all_are_wide();
    coded_rows_ = (values + lanes_per_row - 1) / lanes_per_row;
    if (values % lanes_per_row != 0) {
      const Scalar last = words_.at(values - 1);
      words_.store_at(values, splat<Word>(last));
      sync();
    }
  }

  ARRCOMP_PART void measure_widths() {
    for (int r = 0; r < coded_rows_; r += rows_per_tile) {
      const int end = r + rows_per_tile < coded_rows_ ? r + rows_per_tile : coded_rows_;
      Word all = splat<Word>(0);
      for (int i = r; i < end; ++i) all = all | words_.load(i);
      note_width(r / rows_per_tile, or_all(all));
    }
    sync();
  }

  int nonzero_;  // words that are not zero, or as many at most: 0 where there are none
};

}  // namespace arrcomp::ARRCOMP_ISA
