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
  using Choice::has_classes_, Choice::has_states_;
  using Choice::leaves_out_, Choice::numbering_, Choice::rows_, Choice::head_, Choice::exceptions_, Choice::live_,
      Choice::coded_rows_;
  using typename Choice::Word;

  using Choice::Choice;

  // Where memory is near, `begin` may be where the group will stand, with room for as much as in the encoder's own
  // memory.
  ARRCOMP_METHOD void open_side(uint8_t* begin) {
    if constexpr (keeps_rows) side_begin_ = begin == nullptr ? memory_.side : begin;
    side_bytes_ = 0;
    has_states_ = has_dictionary_ = has_classes_ = false;
  }

  ARRCOMP_METHOD uint8_t* side_begin() const { return keeps_rows ? side_begin_ : memory_.side; }

  ARRCOMP_PART void write_side() {
    head_.has_exceptions = exceptions_ > 0;
    head_.has_missing = leaves_out_;
    uint8_t* out = head_.write(side_begin() + side_bytes_, T::word_bits);
    if (leaves_out_) out = write_missing(out);
    if (this->has_numbers()) out = write_numbering(out);
    if (exceptions_ > 0) out = write_number(out, static_cast<uint32_t>(exceptions_));
    if (head_.mask != MaskKind::none) out = write_mask(out);
    if (head_.coder == Coder::packed) out = write_packed(out);
    if (head_.has_tables_of_tiles()) out = write_bytes_of_tiles(out, memory_.tables);
    if (head_.has_contexts()) out = write_tables_of_contexts(out);
    if (head_.has_classes()) out = write_classes(out);
    if (head_.coder == Coder::entropy) out = write_low_bits(out);
    if (exceptions_ > 0) out = write_exceptions(out);
    end_side(out);
  }

  ARRCOMP_PART void write_raw() {
    start(Transform::integer);
    head_.plain = true;
    head_.coder = Coder::packed;
    head_.shift = T::width;
    BitWriter bits(head_.write(side_begin() + side_bytes_, T::word_bits));
    for (int r = 0; r < rows_; ++r) bits.put(element_bits(r), T::width);
    end_side(bits.finish());
  }

  uint32_t side_bytes_;  // that are written
  U32 states_;
  bool has_dictionary_;  // a chunk behind has written it

 private:
  uint8_t* side_begin_;

  ARRCOMP_METHOD void end_side(const uint8_t* end) { side_bytes_ = static_cast<uint32_t>(end - side_begin()); }

  // Each of these writes a part of the side from `out` on, and returns what is behind it.

  ARRCOMP_METHOD uint8_t* write_numbering(uint8_t* out) {
    if (this->has_multiples()) {
      out = write_number(out, static_cast<uint32_t>(numbering_) << bits_of_entries);
      return numbering_ == integer_multiples ? write_number(out, memory_.numbered.integers) : out;
    }
    out = write_dictionary<T>(out, &memory_.dictionary, context_.element, !has_dictionary_);
    has_dictionary_ = true;
    return out;
  }

  ARRCOMP_METHOD uint8_t* write_missing(uint8_t* out) const {
    auto& missing = memory_.missing;
    const bool is_nan = context_.element.is_float() && missing.fill == usual_nan(context_.element);
    out = write_missing_head(out, missing.head, is_nan);
    if (!is_nan) out = write_number(out, missing.fill);
    return write_marked(out);
  }

  ARRCOMP_METHOD uint8_t* write_marked(uint8_t* out) const {
    auto& missing = memory_.missing;
    if (missing.head.shift == shift_of_bits) {
      for (int r = 0; r * lanes_per_row < missing.chunk.count; ++r) out = write_number(out, missing.masks[r]);
    } else if (missing.head.marks > 0) {
      out = write_marks(out, &missing.head, missing.marks, missing.chunk.count, missing.upper);
    }
    return out;
  }

  ARRCOMP_PART uint8_t* write_mask(uint8_t* out) const {
    if (head_.mask == MaskKind::marks) return write_marked(write_missing_head(out, memory_.missing.head, false));
    out = write_number(out, live_);
    if (head_.mask != MaskKind::values) return out;
    for (int b = 0; b * rows_per_block < rows_; ++b) {
      if ((live_ >> b & 1) == 0) continue;
      for (int r = b * rows_per_block; r < (b + 1) * rows_per_block; ++r)
        out = write_number(out, r < rows_ ? memory_.coded[r] : 0u);
    }
    return out;
  }

  ARRCOMP_PART uint8_t* write_packed(uint8_t* out) const {
    if (head_.shift == 0) out = write_bytes_of_tiles(out, memory_.widths);
    BitWriter bits(out);
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
    return bits.finish();
  }

  // `of_tiles`: their widths or tables.
  ARRCOMP_METHOD uint8_t* write_bytes_of_tiles(uint8_t* out, const uint8_t* of_tiles) const {
    const int tiles = tiles_of(coded_rows_);
    uint8_t* const end = out + bytes_of_tiles(static_cast<uint32_t>(coded_rows_));
    if (leader())
      for (int t = 0; out + t < end; ++t) out[t] = t < tiles ? of_tiles[t] : 0;
    return end;
  }

  ARRCOMP_METHOD uint8_t* write_tables_of_contexts(uint8_t* out) const {
    if (leader()) memcpy(out, memory_.contexts.tables, context_count);
    return out + context_count;
  }

  ARRCOMP_METHOD uint8_t* write_classes(uint8_t* out) {
    const ClassMemory& classes = memory_.classes;
    const int own = classes.is_own ? classes.classes : 0;
    out = write_number(out, static_cast<uint32_t>(classes.told | own << 8));
    if (own == 0) return out;
    BitWriter bits(out);
    for (int i = 0; i * lanes_per_row < own; ++i)
      bits.put(load(classes.codes + i * lanes_per_row), bits_of_frequency_code);
    has_classes_ = true;
    share_classes(&memory_.classes);
    return bits.finish();
  }

  // The first chunk to be coded starts the group's states, with two bits of each of its last 8 rows in them.
  ARRCOMP_PART uint8_t* write_low_bits(uint8_t* out) {
    const int k = head_.shift;
    const int own_rows = carries(k) ? coded_rows_ - carried_rows : coded_rows_;
    if (!has_states_) states_ = splat<U32>(lowest_state);
    has_states_ = true;
    BitWriter bits(out);
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
    return bits.finish();
  }

  // Returns the row behind those tiles.
  ARRCOMP_METHOD int write_low_bits_of_tiles(BitWriter& bits, int end) {
    const int k = head_.shift;
    const U32 mask = ones<U32>(k);
    int r = 0;
    ARRCOMP_ROLLED for (; r + rows_per_tile <= end; r += rows_per_tile) {  // counted: low bits, 8 rows
      const int tile = r / rows_per_tile;
      const bool is_wide = words_.is_wide(tile);
      U32 u[rows_per_tile];
      words_.load_tile(tile, is_wide, u);
      if (is_wide) words_.narrow_tile(r, u, k, memory_.widths[tile]);
      if (T::width > 16 && k > 16) {
        bits.put_wide_tile(u, k);
      } else {
        ARRCOMP_UNROLL for (U32& x : u) x = x & mask;
        bits.put_tile(u, k);
      }
    }
    return r;
  }

  ARRCOMP_PART uint8_t* write_exceptions(uint8_t* out) const {
    const int padded = exceptions_ + (exceptions_ & 1);
    const int bytes = exceptions_ * static_cast<int>(sizeof(typename T::storage));
    const auto* const elements = element_pointer<T>(this->own_elements().begin, 0);
    sync();
    if (leader()) {
      uint8_t* values = out + padded * 2;
      for (int e = 0; e < padded; ++e) {
        const uint16_t position = e < exceptions_ ? memory_.positions[e] : 0;
        memcpy(out + e * 2, &position, 2);
      }
      for (int e = 0; e < exceptions_; ++e)
        memcpy(values + e * sizeof(typename T::storage), elements + memory_.positions[e], sizeof(typename T::storage));
      for (int b = bytes; b % 4 != 0; ++b) values[b] = 0;
    }
    sync();  // the positions have been read before another chunk has some
    return out + padded * 2 + (bytes + 3) / 4 * 4;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
