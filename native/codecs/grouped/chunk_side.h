// Writes what stands before the symbols of a chunk: its head, masks, packed words, low bits and exceptions. FORMAT.md,
// section 4.
#pragma once
#include "codecs/grouped/coder_choice.h"
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T, int chunk_limit>
class ChunkSide : protected CoderChoice<T, chunk_limit> {
  using Choice = CoderChoice<T, chunk_limit>;

 protected:
  using Choice::context_, Choice::memory_, Choice::words_;
  using Choice::element_bits, Choice::start, Choice::rows_of_tile, Choice::carries;
  using Choice::has_states_;
  using Choice::leaves_out_, Choice::numbering_, Choice::rows_, Choice::head_, Choice::exceptions_, Choice::live_,
      Choice::coded_rows_;
  using typename Choice::Word;

  using Choice::Choice;

  ARRCOMP_PART void write_side() {
    head_.has_exceptions = exceptions_ > 0;
    head_.has_missing = leaves_out_;
    side_ = head_.write(side_, T::word_bits);
    if (leaves_out_) write_missing();
    if (this->has_numbers()) write_numbering();
    if (exceptions_ > 0) side_ = write_number(side_, static_cast<uint32_t>(exceptions_));
    if (head_.mask != MaskKind::none) write_mask();
    if (head_.coder == Coder::packed) write_packed();
    if (head_.has_tables_of_tiles()) write_bytes_of_tiles(memory_.tables);
    if (head_.coder == Coder::entropy) write_low_bits();
    if (exceptions_ > 0) write_exceptions();
  }

  ARRCOMP_PART void write_raw() {
    start(Transform::integer);
    head_.plain = true;
    head_.coder = Coder::packed;
    head_.shift = T::width;
    side_ = head_.write(side_, T::word_bits);
    BitWriter bits(side_);
    for (int r = 0; r < rows_; ++r) bits.put(element_bits(r), T::width);
    side_ = bits.finish();
  }

  uint8_t* side_;  // behind what is written
  U32 states_;
  bool has_dictionary_;  // a chunk behind has written it

 private:
  ARRCOMP_METHOD void write_numbering() {
    if (this->has_multiples()) {
      side_ = write_number(side_, static_cast<uint32_t>(numbering_) << bits_of_entries);
      return;
    }
    side_ = write_dictionary<T>(side_, &memory_.dictionary, context_.element, !has_dictionary_);
    has_dictionary_ = true;
  }

  ARRCOMP_METHOD void write_missing() {
    auto& missing = memory_.missing;
    const bool is_nan = context_.element.is_float() && missing.fill == usual_nan(context_.element);
    side_ = write_missing_head(side_, missing.head, is_nan);
    if (!is_nan) side_ = write_number(side_, missing.fill);
    write_marked();
  }

  ARRCOMP_METHOD void write_marked() {
    auto& missing = memory_.missing;
    if (missing.head.shift == shift_of_bits) {
      for (int r = 0; r * lanes_per_row < missing.count; ++r) side_ = write_number(side_, missing.masks[r]);
    } else if (missing.head.marks > 0) {
      side_ = write_marks(side_, &missing.head, missing.marks, missing.count, missing.upper);
    }
  }

  ARRCOMP_PART void write_mask() {
    if (head_.mask == MaskKind::marks) {
      side_ = write_missing_head(side_, memory_.missing.head, false);
      return write_marked();
    }
    side_ = write_number(side_, live_);
    if (head_.mask != MaskKind::values) return;
    for (int b = 0; b * rows_per_block < rows_; ++b) {
      if ((live_ >> b & 1) == 0) continue;
      for (int r = b * rows_per_block; r < (b + 1) * rows_per_block; ++r)
        side_ = write_number(side_, r < rows_ ? memory_.coded[r] : 0u);
    }
  }

  ARRCOMP_PART void write_packed() {
    if (head_.shift == 0) write_bytes_of_tiles(memory_.widths);
    BitWriter bits(side_);
    int r = 0;
    if constexpr (splits_words<Word>)
      ARRCOMP_ROLLED for (; r + rows_per_tile <= coded_rows_; r += rows_per_tile) {  // counted: pack, 8 rows
        const int tile = r / rows_per_tile, width = memory_.widths[tile];
        U32 u[rows_per_tile];
        words_.load_tile(tile, width > 16, u);
        if (T::width > 16 && width > 16) {
          bits.put_wide_tile(u, width);
        } else {
          bits.put_tile(u, width);
        }
      }
    for (; r < coded_rows_; ++r) bits.put(words_.load(r), memory_.widths[r / rows_per_tile]);
    side_ = bits.finish();
  }

  // `of_tiles`: their widths or tables.
  ARRCOMP_METHOD void write_bytes_of_tiles(const uint8_t* of_tiles) {
    const int tiles = tiles_of(coded_rows_);
    uint8_t* const bytes = side_;
    side_ += bytes_of_tiles(static_cast<uint32_t>(coded_rows_));
    if (leader())
      for (int t = 0; bytes + t < side_; ++t) bytes[t] = t < tiles ? of_tiles[t] : 0;
  }

  // The first chunk to be coded starts the group's states, with two bits of each of its last 8 rows in them.
  ARRCOMP_PART void write_low_bits() {
    const int k = head_.shift;
    const int own_rows = carries(k) ? coded_rows_ - carried_rows : coded_rows_;
    if (!has_states_) states_ = splat<U32>(lowest_state);
    has_states_ = true;
    BitWriter bits(side_);
    int r = 0;
    if constexpr (splits_words<Word>)
      if (k > 0) r = write_low_bits_of_tiles(bits, own_rows);
    if (k > 0)
      for (; r < own_rows; ++r) bits.put(words_.load(r) & ones<Word>(k), k);
    for (r = own_rows; r < coded_rows_; ++r) {
      const Word u = words_.load(r);
      if (k > carried_bits) bits.put((u & ones<Word>(k)) >> carried_bits, k - carried_bits);
      states_ = states_ | (lowest(u) & splat<U32>(3)) << carried_bits * (r - own_rows);
    }
    side_ = bits.finish();
  }

  // Returns the row behind those tiles.
  ARRCOMP_METHOD int write_low_bits_of_tiles(BitWriter& bits, int end) {
    const int k = head_.shift;
    const U32 mask = ones<U32>(k);
    int r = 0;
    ARRCOMP_ROLLED for (; r + rows_per_tile <= end; r += rows_per_tile) {  // counted: low bits, 8 rows
      const int tile = r / rows_per_tile;
      U32 u[rows_per_tile];
      words_.load_tile(tile, words_.is_wide(tile), u);
      words_.narrow_tile(r, u, k, memory_.widths[tile]);
      if (T::width > 16 && k > 16) {
        bits.put_wide_tile(u, k);
      } else {
        ARRCOMP_UNROLL for (U32& x : u) x = x & mask;
        bits.put_tile(u, k);
      }
    }
    return r;
  }

  ARRCOMP_PART void write_exceptions() {
    const int padded = exceptions_ + (exceptions_ & 1);
    const int bytes = exceptions_ * static_cast<int>(sizeof(typename T::storage));
    const ElementRange own = this->own_elements();
    const auto* const elements = element_pointer<T>(own.array, own.first);
    sync();
    if (leader()) {
      uint8_t* values = side_ + padded * 2;
      for (int e = 0; e < padded; ++e) {
        const uint16_t position = e < exceptions_ ? memory_.positions[e] : 0;
        memcpy(side_ + e * 2, &position, 2);
      }
      for (int e = 0; e < exceptions_; ++e)
        memcpy(values + e * sizeof(typename T::storage), elements + memory_.positions[e], sizeof(typename T::storage));
      for (int b = bytes; b % 4 != 0; ++b) values[b] = 0;
    }
    sync();  // the positions have been read before another chunk has some
    side_ += padded * 2 + (bytes + 3) / 4 * 4;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
