// Codes the rows of a chunk's symbols: by a table, by those of tiles, by contexts or by classes. The last row is coded first,
// as rANS gives back last what was coded first. FORMAT.md, section 4.
#pragma once
#include "codecs/grouped/chunk_side.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T, int chunk_limit>
class RowEncoder : protected ChunkSide<T, chunk_limit> {
  using Side = ChunkSide<T, chunk_limit>;

 protected:
  using Side::context_, Side::memory_, Side::words_;
  using Side::has_dry_rows;
  using Side::has_states_, Side::head_, Side::coded_rows_;
  using typename Side::Memory, typename Side::Word;

 public:
  using Side::states_;
  uint32_t coded_words_;  // of the coder
  int rows_left_;         // to be coded, of the chunk

  ARRCOMP_METHOD uint16_t* coded_end() const { return memory_.words + coded_words_; }
  ARRCOMP_METHOD void end_coded(const uint16_t* end) { coded_words_ = static_cast<uint32_t>(end - memory_.words); }

  // An encoder with a table, of which that may be changed.
  struct TableEncoder {
    int table = -1;
    SymbolEncoder encoder;
  };
  // Makes the table that of a row.
  ARRCOMP_METHOD void change_table(int row, TableEncoder& to) const {
    const int own = table_of(row);
    if (own == to.table) return;
    to.table = own;
    to.encoder = symbol_encoder(own);
  }
  ARRCOMP_METHOD SymbolEncoder symbol_encoder(int index) const {
    const EncodeTable& table = context_.tables->encode[index];
    if constexpr (splits_words<Word>) {
      sync();  // what was there before has been read
      copy_bytes(&near_->entries, &table.entries, sizeof near_->entries);
      sync();
      return SymbolEncoder(table, near_->entries);
    } else {
      return SymbolEncoder(table);
    }
  }
  ARRCOMP_METHOD Word symbols_of(int row) const {
    if constexpr (splits_words<Word>) {
      return words_.load(row) >> words_.low_bits_left(row / rows_per_tile, head_.shift);
    } else {
      return words_.load(row) >> head_.shift;
    }
  }

 protected:
  // `near`: only where words are split.
  ARRCOMP_METHOD RowEncoder(const EncodeContext<T>& context, Memory& memory, NearMemory* near)
      : Side(context, memory, near), near_(near) {}

  ARRCOMP_METHOD uint32_t coded_bytes() const { return (coded_words_ - coded_before_) * 2; }
  // The chunk's words end here at most.
  ARRCOMP_METHOD const uint16_t* coded_limit() const { return memory_.words + coded_before_ + limit_ / 2; }

  // All rows, as their words are in other places than those of rows_; false where their words pass the limit.
  ARRCOMP_PART bool encode_contexts() {
    const uint16_t* const limit = coded_limit();
    const CodedRows coded = encode_by_contexts(&memory_.contexts, context_.tables, coded_rows_, has_dry_rows(),
                                               {states_, coded_end(), 0}, limit);
    head_.dry = coded.dry;
    has_states_ = true;
    end_coded(coded.words);
    states_ = coded.states;
    return coded.words <= limit;
  }

  // As many of them as leave all states room; then the rest of a tile.
  ARRCOMP_PART void encode_dry_rows() {
    uint16_t* coded = coded_end();
    const uint16_t* const limit = coded_limit();
    U32 states;
    int r = rows_left_;
    if (head_.has_classes()) {
      const ClassEncoder encoder = class_encoder();
      head_.dry =
          ARRCOMP_ISA::encode_dry_rows(r, states, coded, limit, [&](int row, U32& own, uint16_t*&) ARRCOMP_LAMBDA {
            return encoder.encode_dry_row(lowest(symbols_of(row)), own);
          });
    } else {
      TableEncoder with_table;
      head_.dry = ARRCOMP_ISA::encode_dry_rows(
          r, states, coded, limit, [&](int row, U32& own, uint16_t*& own_words) ARRCOMP_LAMBDA {
            change_table(row, with_table);
            return encode_dry_row(with_table.encoder, symbols_of(row), own, own_words);
          });
      if (r > 0) change_table(r - 1, with_table);
      while (r % rows_per_tile != 0 && coded <= limit) encode_row(with_table.encoder, symbols_of(--r), states, coded);
    }
    has_states_ = true;
    rows_left_ = r;
    end_coded(coded);
    states_ = states;
  }

  // Symbols of the rows that are left, unless their words pass the limit.
  ARRCOMP_PART void encode_rows() {
    if (head_.has_classes()) return encode_classes();
    while (rows_left_ > 0) {
      const int last = rows_left_ - 1, end = head_.has_tables_of_tiles() ? last / rows_per_tile * rows_per_tile : 0;
      encode_rows_to(end, symbol_encoder(table_of(last)));
      if (rows_left_ > end) return;
    }
  }

  ARRCOMP_METHOD ClassEncoder class_encoder() const {
    const ClassMemory& classes = memory_.classes;
    return {classes.is_own ? classes.own : classes.shared, classes.told};
  }

  ARRCOMP_PART void encode_classes() {
    const ClassEncoder encoder = class_encoder();
    uint16_t* coded = coded_end();
    const uint16_t* const limit = coded_limit();
    U32 states = states_;
    int r = rows_left_;
    while (r > 0 && coded <= limit) encoder.encode_row(lowest(symbols_of(--r)), states, coded);
    rows_left_ = r;
    end_coded(coded);
    states_ = states;
  }

  // Those of one table: down to row `end`, where a tile begins.
  ARRCOMP_METHOD void encode_rows_to(int end, const SymbolEncoder& encoder) {
    uint16_t* coded = coded_end();  // copies, as registers
    const uint16_t* const limit = coded_limit();
    U32 states = states_;
    int r = rows_left_;
    const auto fits = [&]() ARRCOMP_LAMBDA { return coded <= limit; };
    const auto encode_to = [&](int row) ARRCOMP_LAMBDA {
      do encode_row(encoder, symbols_of(--r), states, coded);
      while (r > row);
    };
    if (r % rows_per_tile != 0 && fits()) encode_to(r / rows_per_tile * rows_per_tile);
    const int first = end / rows_per_tile;
    ARRCOMP_ROLLED for (int tile = r / rows_per_tile - 1; tile >= first && fits(); --tile) {  // counted: rans, 8 rows
      if constexpr (splits_words<Word>)
        if (words_.is_simple(tile, head_.shift)) {
          r = tile * rows_per_tile;
          U32 u[rows_per_tile];
          words_.load_symbols(tile, head_.shift, u);
          encode_tile(encoder, u, states, coded);
          continue;
        }
      encode_to(tile * rows_per_tile);
    }
    rows_left_ = r;
    end_coded(coded);
    states_ = states;
  }

  uint32_t limit_;         // bytes that the chunk may take
  uint32_t coded_before_;  // words of the coder before the chunk

 private:
  ARRCOMP_METHOD int table_of(int row) const {
    return head_.has_tables_of_tiles() ? memory_.tables[row / rows_per_tile] : head_.table;
  }

  NearMemory* near_;
};

}  // namespace arrcomp::ARRCOMP_ISA
