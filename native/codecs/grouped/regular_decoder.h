// Decodes groups whose chunks are coded like most, a tile at a time: all that a chunk's header says is known before its
// first row, and a row asks for nothing but its words. For warps, whose registers are few.
#pragma once
#include "codecs/grouped/group_reader.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T>
class RegularDecoder : public GroupReader<T> {
  using Reader = GroupReader<T>;
  using typename Reader::Word;

 public:
  using Reader::Reader;

  // Of an opened group that is regular; false where it is corrupt.
  ARRCOMP_PART bool decode() {
    aligned_ = reinterpret_cast<uintptr_t>(layout_.array) % 16 == 0;
    for (uint32_t c = 0; c < this->chunks(); ++c) {
      this->start_chunk(c);
      if (failed_) return false;
      bits_ = BitWindow(chunk_.bits, static_cast<uint32_t>(chunk_.bits_end - chunk_.bits));
      const bool entropy = chunk_.header.coder == Coder::entropy;
      if (entropy) bring_table_near();
      visit_elements<T>(layout_.context.element, dequantizer_, chunk_.header, carry_,
                        [&](auto elements) ARRCOMP_LAMBDA {
                          if (entropy) {
                            decode_chunk<true>(elements);
                          } else {
                            decode_chunk<false>(elements);
                          }
                        });
      this->finish_chunk();
    }
    this->close();
    return !failed_;
  }

 private:
  using Reader::carry_;
  using Reader::chunk_;
  using Reader::chunk_first_;
  using Reader::dequantizer_;
  using Reader::failed_;
  using Reader::layout_;
  using Reader::states_;
  using Reader::words_;

  ARRCOMP_METHOD void bring_table_near() {
    if (table_ == chunk_.header.table) return;
    table_ = chunk_.header.table;
    symbols_ = SymbolDecoder::nearby(this->table());
  }

  template <bool entropy, class Elements>
  ARRCOMP_PART void decode_chunk(Elements elements) {
    int row = 0;
    for (; row + rows_per_tile <= chunk_.rows; row += rows_per_tile) {
      Word u[rows_per_tile];
      if constexpr (entropy) {
        read_symbols(u);
        add_low_bits(row, u);
      } else {
        read_packed(row, u);
      }
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] = elements.row(u[j]);
      store_tile(row, u);
    }
    for (; row < chunk_.rows; ++row) store_row(row, elements.row(read_row<entropy>(row)));
  }

  ARRCOMP_METHOD void read_symbols(Word (&u)[rows_per_tile]) {
    words_.bring_near();
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] = decode_row<Word>(symbols_, states_, words_);
  }

  ARRCOMP_METHOD void add_low_bits(int row, Word (&u)[rows_per_tile]) {
    const int k = chunk_.header.shift;
    if (this->is_carried(row)) [[unlikely]] {
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] =
          u[j] << k | bits_.get(k - carried_bits, Word{}) << carried_bits | this->carried(j);
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] = u[j] << k | bits_.get(k, Word{});
    }
  }

  ARRCOMP_METHOD int width_of(int row) const { return chunk_.header.coder == Coder::packed ? chunk_.width_of(row) : 0; }

  ARRCOMP_METHOD void read_packed(int row, Word (&u)[rows_per_tile]) {
    const int width = width_of(row);
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) u[j] = bits_.get(width, Word{});
  }

  // A row of the last tile, which is not full.
  template <bool entropy>
  ARRCOMP_METHOD Word read_row(int row) {
    if constexpr (!entropy) return bits_.get(width_of(row), Word{});
    words_.bring_near();
    const Word symbols = decode_row<Word>(symbols_, states_, words_);
    return symbols << chunk_.header.shift | bits_.get(chunk_.header.shift, Word{});
  }

  ARRCOMP_METHOD uint64_t element_of(int row) const {
    return chunk_first_ + static_cast<uint64_t>(row) * lanes_per_row;
  }

  ARRCOMP_METHOD void store_row(int row, Word bits) const {
    const int left = chunk_.count - row * lanes_per_row;
    store_elements<T>(layout_.array, element_of(row), left < lanes_per_row ? left : lanes_per_row, bits);
  }

  ARRCOMP_METHOD void store_tile(int row, Word (&elements)[rows_per_tile]) const {
    if (aligned_ && (row + rows_per_tile) * lanes_per_row <= chunk_.count) [[likely]] {
      store_rows(const_cast<typename T::storage*>(element_pointer<T>(layout_.array, element_of(row))), elements);
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < rows_per_tile; ++j) store_row(row + j, elements[j]);
    }
  }

  bool aligned_;    // the array, to 16 bytes
  int table_ = -1;  // that is near
  SymbolDecoder symbols_;
  BitWindow bits_;
};

}  // namespace arrcomp::ARRCOMP_ISA
