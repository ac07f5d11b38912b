// Decodes groups whose chunks are coded like most, a tile at a time: all that a chunk's header says is known before its
// first row, and a row asks for nothing but its words. For warps, whose registers are few.
#pragma once
#include "codecs/grouped/group_reader.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T, int chunk_limit>
class RegularDecoder : public GroupReader<T, false, chunk_limit> {
  using Reader = GroupReader<T, false, chunk_limit>;
  using typename Reader::Word;
  using storage = typename T::storage;

 public:
  using Reader::Reader;

  // Of an opened group that is regular; false where it is corrupt.
  ARRCOMP_PART bool decode() {
    for (uint32_t c = 0; c < this->chunks(); ++c) {
      this->start_chunk(c);
      if (failed_) return false;
      bits_ = BitSection(this->chunk().bits, this->chunk().bits_end);
      const bool entropy = this->chunk().header.coder == Coder::entropy;
      if (entropy) bring_table_near(c);
      visit_elements<T>(layout_.context.element, dequantizer_, this->chunk().header, carry_,
                        [&](auto elements) ARRCOMP_LAMBDA {
                          if (entropy) {
                            decode_chunk<true>(elements);  // counted as: entropy decoded
                          } else {
                            decode_chunk<false>(elements);  // counted as: unpacked
                          }
                        });
      this->finish_chunk();
    }
    this->close();
    return !failed_;
  }

 private:
  using Reader::carry_;
  using Reader::dequantizer_;
  using Reader::failed_;
  using Reader::layout_;
  using Reader::states_;
  using Reader::words_;

  // Unless it is there since the chunk before.
  ARRCOMP_METHOD void bring_table_near(uint32_t chunk) {
    if (chunk > 0) {
      const ChunkHead &before = layout_.chunks[chunk - 1].header, &header = layout_.chunks[chunk].header;
      if (before.coder == Coder::entropy && before.table == header.table) return;
    }
    symbols_ = SymbolDecoder::nearby(this->table(this->chunk().header.table));
  }

  template <bool entropy, class Elements>
  ARRCOMP_PART void decode_chunk(Elements elements) {
    storage* out = this->chunk_elements();
    const int rows = this->chunk().rows, full_rows = this->chunk().count / lanes_per_row,
              shift = this->chunk().header.shift;
    const int carried = entropy && this->chunk().carries ? rows - carried_rows : rows;
    const int fed = entropy ? this->chunk().fed_rows : rows;
    const bool aligned = reinterpret_cast<uintptr_t>(layout_.array) % 16 == 0;
    const int fast_rows = aligned ? full_rows : 0;  // whose tiles leave 16 bytes a lane
    int row = 0;
    ARRCOMP_ROLLED
    for (; row + rows_per_tile <= fed; row += rows_per_tile) {  // counted: decode tile, 8 rows
      Word u[rows_per_tile];
      if constexpr (entropy) {
        read_symbols(u);
        add_low_bits(u, shift, row == carried);
      } else {
        bits_.template get_rows<Word, rows_per_tile>(width_of(row),
                                                     [&](int j, Word bits) ARRCOMP_LAMBDA { u[j] = bits; });
      }
      elements.rows(u);
      if (row + rows_per_tile <= fast_rows) [[likely]] {
        store_rows(out, u);
      } else {
        ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) store_short(out + j * lanes_per_row, row + j, u[j]);
      }
      out += rows_per_tile * lanes_per_row;
    }
    ARRCOMP_ROLLED
    for (; row < rows; ++row, out += lanes_per_row) store_short(out, row, elements.row(read_row<entropy>(row)));
  }

  ARRCOMP_METHOD void read_symbols(Word (&u)[rows_per_tile]) {
    words_.bring_near();
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] = decode_row<Word>(symbols_, states_, words_);
  }

  // In the group's last tile two of the bits are in the states.
  ARRCOMP_METHOD void add_low_bits(Word (&u)[rows_per_tile], int shift, bool is_carried) {
    const int width = shift - (is_carried ? carried_bits : 0);
    bits_.template get_rows<Word, rows_per_tile>(width,
                                                 [&](int j, Word low) ARRCOMP_LAMBDA { u[j] = u[j] << width | low; });
    if (is_carried) [[unlikely]] {
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] = u[j] << carried_bits | this->carried(j);
    }
  }

  ARRCOMP_METHOD int width_of(int row) const {
    return this->chunk().header.coder == Coder::packed ? this->chunk().width_of(row) : 0;
  }

  // A row of the last tile, which is not full, or of those that have dry rows.
  template <bool entropy>
  ARRCOMP_METHOD Word read_row(int row) {
    if constexpr (!entropy) return bits_.get(width_of(row), Word{});
    words_.bring_near();
    const Word symbols = this->read_symbols_of(row, symbols_);
    return symbols << this->chunk().header.shift | bits_.get(this->chunk().header.shift, Word{});
  }

  // A row of which there may be a part alone, at any address.
  ARRCOMP_METHOD void store_short(storage* out, int row, Word bits) const {
    const int left = this->chunk().count - row * lanes_per_row;
    store_elements<T>(out, 0, left < lanes_per_row ? left : lanes_per_row, bits);
  }

  SymbolDecoder symbols_;
  BitSection bits_;
};

}  // namespace arrcomp::ARRCOMP_ISA
