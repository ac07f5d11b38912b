// Decodes groups of chunks of all modes, several at a time where an instruction set hides latency that way. FORMAT.md,
// sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_multiples.h"
#include "codecs/grouped/contexts.h"
#include "codecs/grouped/dictionary_entries.h"
#include "codecs/grouped/group_reader.h"
#include "codecs/grouped/integer_multiples.h"

namespace arrcomp::ARRCOMP_ISA {

// Words of coded rows that wait for their places in a masked chunk: at most a row less one, and a tile.
constexpr int waiting_words = (rows_per_tile + 3) * lanes_per_row;

// Asks for the bytes of a later group while one is decoded: some lines with each tile. A group has several streams of
// bytes, each too short for a processor to foresee.
class BytesAhead {
  static constexpr int line = 64;

 public:
  BytesAhead() = default;
  ARRCOMP_METHOD BytesAhead(const uint8_t* begin, const uint8_t* end, uint32_t tiles)
      : at_(begin), end_(end), lines_(static_cast<uint32_t>(end - begin) / (line * tiles) + 1) {}

  ARRCOMP_METHOD void fetch_some() {
    for (uint32_t i = 0; i < lines_ && at_ < end_; ++i, at_ += line) prefetch(at_);
  }

 private:
  const uint8_t *at_ = nullptr, *end_ = nullptr;
  uint32_t lines_ = 0;
};

// Replaces the numbers of a chunk by the integers that they count.
template <class T, class Layout>
ARRCOMP_CALLED void make_integer_multiples(const Layout* layout, uint32_t index) {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  const auto& chunk = layout->chunks[index];
  const uint8_t* const side = in_device_memory(chunk.dictionary.begin);
  const Word unit = splat<Word>(read_number<Scalar>(side)),
             offset = splat<Word>(read_number<Scalar>(side + sizeof(Scalar)));
  auto* const elements = const_cast<typename T::storage*>(
      element_pointer<T>(in_device_memory(layout->array), layout->first + uint64_t{index} * chunk_size));
  replace_each<T>(elements, chunk.count, [&](Word number) ARRCOMP_LAMBDA { return product(number, unit) + offset; });
}

template <class T, int chunk_limit = most_chunks>
class GroupDecoder : public GroupReader<T, true, chunk_limit> {
  using Reader = GroupReader<T, true, chunk_limit>;
  using typename Reader::Scalar;
  using typename Reader::Word;

 public:
  // `waiting` is memory for masked chunks, and those with contexts.
  ARRCOMP_METHOD GroupDecoder(typename Reader::Layout& memory, Scalar* waiting) : Reader(memory), waiting_(waiting) {}

  // The bytes of the group that is decoded after this one.
  ARRCOMP_METHOD void expect(const uint8_t* begin, const uint8_t* end) {
    ahead_ = BytesAhead(begin, end, this->chunks() * (rows_per_chunk / rows_per_tile));
  }

  ARRCOMP_PART void start_chunk(uint32_t chunk) {
    if (failed_) return;
    Reader::start_chunk(chunk);
    chunk_ = this->chunk();
    bits_ = BitReader(chunk_.bits, chunk_.bits_end);
    if (chunk_.header.has_static_table()) symbols_ = SymbolDecoder(this->table(chunk_.header.table));
    if (has_classes()) failed_ = !read_class_table(layout_.classes, this->chunk().classes.frequencies);
  }

  // Whether the chunk is coded like most: full, unmasked, with the entropy coder.
  ARRCOMP_METHOD bool may_interleave() const {
    return !failed_ && chunk_.header.coder == Coder::entropy && chunk_.header.mask == MaskKind::none &&
           chunk_.rows == rows_per_chunk && !chunk_.header.has_missing && !chunk_.header.has_contexts();
  }

  ARRCOMP_METHOD bool has_classes() const { return chunk_.header.has_classes(); }
  ARRCOMP_METHOD ClassDecoder class_decoder() const { return {layout_.classes, this->chunk().classes.told}; }

  ARRCOMP_PART void decode_chunk() {
    if (failed_) return;
    const bool misses = chunk_.header.has_missing;
    if (misses && !find_missing()) return;
    if (chunk_.header.mask == MaskKind::marks && !find_masked()) return;
    if (chunk_.header.mask != MaskKind::none) {
      decode_masked();
    } else if (chunk_.header.has_contexts()) {
      decode_contexts();
    } else if (has_classes()) {
      decode_classes();
    } else {
      decode_unmasked();
    }
    finish();
    if (misses) spread();
  }

  // The rows of such a chunk that are: whole tiles in which states take words.
  ARRCOMP_METHOD int rows_to_interleave() const { return chunk_.fed_rows / rows_per_tile * rows_per_tile; }

  // All that is left of it.
  ARRCOMP_METHOD void finish_rows(int first) {
    if (has_classes()) {
      decode_classes(first);
    } else if (first < chunk_.rows) {
      decode_unmasked(first);
    }
    finish();
  }

  // Before the tile that begins with this coded row is decoded.
  ARRCOMP_METHOD void start_tile(int row) {
    if (chunk_.header.has_tables_of_tiles()) symbols_ = SymbolDecoder(this->table(chunk_.table_of(row)));
  }

  // The rest of a tile of a regular chunk whose symbols are decoded.
  ARRCOMP_PART void finish_tile(int row, Word (&u)[rows_per_tile]) {
    fetch_ahead(row);
    if (is_carried(row)) {
      for (int j = 0; j < rows_per_tile; ++j) store(waiting_ + j * lanes_per_row, u[j]);
      add_carried_bits(waiting_);
      write_waiting(row);
    } else {
      BitReader bits = bits_;  // a copy, as registers
      const int k = chunk_.header.shift;
      write_rows(row, rows_per_tile, [&](int j) ARRCOMP_LAMBDA { return with_low_bits(u[j], k, bits); });
      bits_.go_on(bits);
    }
  }

  // Asks for bytes of the next group, and for the lines that the tile after the next writes.
  ARRCOMP_METHOD void fetch_ahead(int row) {
    ahead_.fetch_some();
    if (!is_streaming()) {
      const uint64_t element = this->chunk_first() + static_cast<uint64_t>(row + 2 * rows_per_tile) * lanes_per_row;
      const auto* elements = reinterpret_cast<const uint8_t*>(element_pointer<T>(layout_.array, element));
      for (int line = 0; line < rows_per_tile * lanes_per_row * T::width / 8; line += 64)
        prefetch_to_write(elements + line);
    }
  }

  using Reader::states_;
  using Reader::words_;
  SymbolDecoder symbols_;

 private:
  using Reader::carry_;
  using Reader::dequantizer_;
  using Reader::failed_;
  using Reader::is_carried;
  using Reader::layout_;
  using Reader::shift_left;

  ARRCOMP_METHOD static int rows_left(int rows, int row, int most) { return rows - row < most ? rows - row : most; }

  // Behind the chunk's last row.
  ARRCOMP_METHOD void finish() {
    if (has_numbers()) replace_numbers();
    this->finish_chunk();
  }

  ARRCOMP_METHOD bool has_numbers() const { return chunk_.header.transform == Transform::numbered; }

  // By the elements that they stand for. (What is known of them is in memory until then, as a GPU's registers are few.)
  ARRCOMP_APART void replace_numbers() {
    const auto& chunk = this->chunk();
    if constexpr (T::width >= least_width_of_integer_multiples)
      if (chunk.multiples == integer_multiples) return make_integer_multiples<T>(&layout_, this->index_);
    if constexpr (T::quantizes && T::width >= least_width_of_multiples)
      if (chunk.multiples > 0)
        return make_multiples<T>(layout_.context.element, chunk.multiples, this->chunk_elements(), chunk.count);
    failed_ = failed_ || !look_up<T>(chunk.dictionary, this->chunk_elements(), chunk.count);
  }

  // ---- missing elements ----

  ARRCOMP_METHOD bool find_missing() {
    failed_ = !read_masks(chunk_.missing, in_device_memory(chunk_.marks), chunk_.whole, layout_.missing);
    return !failed_;
  }

  // The same of words that are not coded.
  ARRCOMP_METHOD bool find_masked() {
    const int rows = chunk_.rows;
    chunk_.masked = layout_.missing;
    failed_ = !read_masks(chunk_.missing, in_device_memory(chunk_.marks), rows * lanes_per_row, layout_.missing);
    if (failed_) return false;
    int coded = 0;
    for (int r = 0; r < rows; ++r) coded += count(mask(chunk_.lanes_of(r)));
    failed_ = coded != chunk_.missing.present;
    return !failed_;
  }

  // The elements that are present stand at the chunk's beginning. They move to their places, the last first, so that none
  // is overwritten before it is read.
  ARRCOMP_APART void spread() {
    sync();
    const auto& chunk = this->chunk();  // in memory until then, as a GPU's registers are few
    auto* const elements = this->chunk_elements();
    const Word fill = splat<Word>(static_cast<Scalar>(chunk.fill));
    const int whole = chunk.whole;
    int left = chunk.count;
    for (int r = (whole - 1) / lanes_per_row; r >= 0; --r) {
      const int first = r * lanes_per_row, lanes = lanes_of_row(whole, r);
      const Mask present = mask(low_mask(lanes)) & ~mask(layout_.missing[r]);
      const int n = count(present);
      if (n > left) {
        failed_ = true;
        return;
      }
      left -= n;
      Word x = fill;
      if (n > 0) {
        sync();  // rows of a corrupt chunk may lie over each other
        store(waiting_, load_elements<T>(elements, static_cast<uint64_t>(left), n));
        sync();
        Word own;
        expand(waiting_, own, present);
        x = select(present, own, fill);
        sync();
      }
      store_elements<T>(elements, static_cast<uint64_t>(first), lanes, x);
    }
    failed_ = failed_ || left != 0;
  }

  // ---- words ----

  ARRCOMP_METHOD Word read_symbols(int row) { return this->read_symbols_of(row, symbols_); }

  // A coded row as words. (Those with carried bits need read_tile.)
  ARRCOMP_METHOD Word read_row(int row) {
    if (chunk_.header.coder == Coder::entropy) return with_low_bits(read_symbols(row), chunk_.header.shift, bits_);
    if (chunk_.header.coder == Coder::packed) return bits_.get(chunk_.width_of(row), Word{});
    return splat<Word>(0);
  }

  ARRCOMP_METHOD static Word with_low_bits(Word u, int k, BitReader& bits) {
    return k == 0 ? u : shift_left(u, k) | bits.get(k, Word{});
  }

  // Puts the low bits to 8 rows of symbols in memory, after which all of the group's symbols are decoded.
  ARRCOMP_PART void add_carried_bits(Scalar* rows) {
    const int k = chunk_.header.shift;
    for (int j = 0; j < carried_rows; ++j, rows += lanes_per_row) {
      const Word low = shift_left(bits_.get(k - carried_bits, Word{}), carried_bits) | this->carried(j);
      store(rows, shift_left(load(rows), k) | low);
    }
  }

  // Up to 8 coded rows into memory, from the start of a tile on.
  ARRCOMP_PART void read_tile(int row, int n, Scalar* rows) {
    const bool carried = is_carried(row);
    if (n > 0) start_tile(row);
    words_.bring_near();
    sync();  // what was there before has been read, in the chunk before too
    if (has_classes()) {
      read_classes(row, n, rows);
    } else {
      for (int j = 0; j < n; ++j) store(rows + j * lanes_per_row, carried ? read_symbols(row + j) : read_row(row + j));
    }
    if (carried) add_carried_bits(rows);
    sync();
  }

  // The same without carried bits.
  ARRCOMP_METHOD void read_classes(int row, int n, Scalar* rows) {
    const auto decoded = decode_class_rows<Word>(layout_.classes, this->chunk().classes.told, {states_, words_}, n,
                                                 chunk_.fed_rows - row, rows);
    states_ = decoded.states;
    words_ = decoded.words;
    if (chunk_.header.shift == 0 || is_carried(row)) return;
    ARRCOMP_ROLLED for (int j = 0; j < n; ++j, rows += lanes_per_row)
        store(rows, with_low_bits(load(rows), chunk_.header.shift, bits_));
  }

  ARRCOMP_PART void decode_classes(int first = 0) {
    for (int r = first; r < chunk_.rows; r += rows_per_tile) {
      const int n = rows_left(chunk_.rows, r, rows_per_tile);
      ahead_.fetch_some();
      read_tile(r, n, waiting_);
      write_waiting(r, n);
    }
  }

  ARRCOMP_PART void decode_unmasked(int first = 0) {
    for (int r = first; r < chunk_.rows; r += rows_at_once) {
      const int n = rows_left(chunk_.rows, r, rows_at_once);
      if (is_carried(r)) {
        read_tile(r, rows_per_tile, waiting_);
        write_waiting(r);
        return;
      }
      if (r % rows_per_tile == 0) {
        ahead_.fetch_some();
        start_tile(r);
      }
      if (chunk_.header.coder == Coder::packed) {
        write_packed(r, n);
        continue;
      }
      words_.bring_near();
      Word u[rows_at_once];
      for (int j = 0; j < n; ++j) u[j] = read_row(r + j);
      write_rows(r, n, [&](int j) ARRCOMP_LAMBDA { return u[j]; });
    }
  }

  // The words come first, in the order of elements.
  ARRCOMP_APART void decode_contexts() {
    // Where memory is near, they stand apart, and elements are written in order; else they stand where elements will.
    using Stored = typename T::storage;
    Stored turned[keeps_rows ? chunk_size : 1];
    Stored* const elements = keeps_rows ? turned : this->chunk_elements();
    const DecodeTable* const tables = layout_.context.decode_tables;
    auto* const of_sums = reinterpret_cast<TablesOfSums*>(waiting_);
    ContextDecoder decoder(tables, of_sums,
                           [&](int context) ARRCOMP_LAMBDA { return chunk_.table_of_context(context); });
    Word u[rows_at_once]{};
    const int rows = chunk_.rows;
    for (int r = 0; r < rows; r += rows_at_once) {
      if (r % rows_per_tile == 0) {
        ahead_.fetch_some();
        words_.bring_near();
      }
      const int n = rows_left(rows, r, rows_at_once);
      for (int j = 0; j < n; ++j) {
        decoder.start_row();
        u[j] = this->read_symbols_of(r + j, decoder);
        decoder.end_row(u[j]);
      }
      if (chunk_.count == rows * lanes_per_row && n == rows_at_once) {
        store_apart(elements + r, rows, lanes_per_row, u);
      } else {
        for (int j = r; j < r + n; ++j) store_apart(elements + j, rows, (chunk_.count - j + rows - 1) / rows, u[j - r]);
      }
    }
    sync();
    for (int r = 0; r < rows; r += rows_at_once) {
      const int n = rows_left(rows, r, rows_at_once);
      for (int j = 0; j < n; ++j)
        u[j] =
            load_elements<T>(elements, static_cast<uint64_t>(r + j) * lanes_per_row, lanes_of_row(chunk_.count, r + j));
      if ((r + n) * lanes_per_row > chunk_.count) sync();  // of a part of a row all other lanes read the last element
      write_rows(r, n, [&](int j) ARRCOMP_LAMBDA { return u[j]; });
    }
  }

  // Rows of a tile. What is read goes at once to where it is written: streamed rows hold up what passes through memory.
  ARRCOMP_METHOD void write_packed(int row, int n) {
    BitReader bits = bits_;  // a copy, as registers
    const int width = chunk_.width_of(row);
    write_rows(row, n, [&](int) ARRCOMP_LAMBDA { return bits.get(width, Word{}); });
    bits_.go_on(bits);
  }

  // Rows of a tile that are in memory.
  ARRCOMP_PART void write_waiting(int row, int n = rows_per_tile) {
    for (int j = 0; j < n; ++j)
      write_rows(row + j, 1, [&](int) ARRCOMP_LAMBDA { return load(waiting_ + j * lanes_per_row); });
  }

  ARRCOMP_PART void decode_masked() {
    const bool by_value = chunk_.header.mask != MaskKind::blocks;
    const Word one = splat<Word>(by_value && chunk_.header.transform != Transform::exponent ? 1 : 0);
    const Scalar* next = waiting_;  // of `have` waiting words
    int have = 0, coded_row = 0;
    for (int r = 0; r < chunk_.rows; ++r) {
      const Mask coded = mask(chunk_.lanes_of(r));
      if (have < count(coded)) {
        refill(next, have, coded_row);
        next = waiting_;
      }
      Word u;
      next = expand(next, u, coded);
      have -= count(coded);
      u = u + select(coded, one, splat<Word>(0));
      write_rows(r, 1, [&](int) ARRCOMP_LAMBDA { return u; });
    }
  }

  // Moves the waiting words to the front and puts a tile of coded rows after them.
  ARRCOMP_PART void refill(const Scalar* next, int& have, int& coded_row) {
    const Word rest = load(next);
    sync();
    store(waiting_, rest);
    sync();
    const int n =
        chunk_.header.coder == Coder::none ? rows_per_tile : rows_left(chunk_.coded_rows, coded_row, rows_per_tile);
    read_tile(coded_row, n, waiting_ + have);
    have += n * lanes_per_row;
    coded_row += n;
  }

  // ---- elements ----

  // Rows [row, row + n) of the chunk, from their words u(0) to u(n - 1), which are asked for in order.
  template <class Words>
  ARRCOMP_METHOD void write_rows(int row, int n, Words u) {
    const auto write = [&](auto elements) ARRCOMP_LAMBDA {
      if (elements.zero_where_masked && chunk_.header.mask != MaskKind::none) {
        store_rows(row, n, [&](int j) ARRCOMP_LAMBDA {
          return select(mask(chunk_.lanes_of(row + j)), elements.row(u(j)), splat<Word>(0));
        });
      } else {
        store_rows(row, n, [&](int j) ARRCOMP_LAMBDA { return elements.row(u(j)); });
        carry_ = elements.carry();
      }
    };
    visit_elements<T>(layout_.context.element, dequantizer_, chunk_.header, carry_, write);
  }

  ARRCOMP_METHOD bool is_streaming() const {
    return can_stream && layout_.context.streaming && !chunk_.header.has_missing && !has_numbers();
  }

  template <class Bits>
  ARRCOMP_METHOD void store_rows(int row, int n, Bits bits) {
    const uint64_t first = this->chunk_first() + static_cast<uint64_t>(row) * lanes_per_row;
    const int left = chunk_.count - row * lanes_per_row;
    if (left >= n * lanes_per_row) {
      auto* const elements = const_cast<typename T::storage*>(element_pointer<T>(layout_.array, first));
      if (is_streaming()) {
        StreamedRows<typename T::storage> rows(elements);
        for (int j = 0; j < n; ++j) rows.add(bits(j));
        rows.finish();
      } else {
        for (int j = 0; j < n; ++j) store(elements + j * lanes_per_row, bits(j));
      }
      return;
    }
    for (int j = 0; j < n; ++j) {
      const int lanes = left - j * lanes_per_row;
      store_elements<T>(layout_.array, first + static_cast<uint64_t>(j) * lanes_per_row,
                        lanes < lanes_per_row ? lanes : lanes_per_row, bits(j));
    }
  }

  Scalar* waiting_;

  BytesAhead ahead_;

  // the chunk being decoded
  ChunkReader<true> chunk_;
  BitReader bits_;
};

// One tile of symbols from each of N groups, interleaved: rows by decode(i, states, words) of group i.
template <class T, int N, int chunk_limit, class Decode>
ARRCOMP_INLINE void decode_tiles(GroupDecoder<T, chunk_limit> (&groups)[N], int row,
                                 typename T::Word (&u)[N][rows_per_tile], Decode decode) {
  U32 states[N];
  WordSource words[N];
  for (int i = 0; i < N; ++i) {
    groups[i].start_tile(row);
    states[i] = groups[i].states_;
    words[i] = groups[i].words_;
  }
  for (int j = 0; j < rows_per_tile; ++j)
    ARRCOMP_UNROLL for (int i = 0; i < N; ++i) u[i][j] = decode(i, states[i], words[i]);
  for (int i = 0; i < N; ++i) {
    groups[i].states_ = states[i];
    groups[i].words_ = words[i];
  }
}

// Rows of chunks of N groups, by tiles.
template <class T, int N, int chunk_limit>
ARRCOMP_PART void decode_interleaved(GroupDecoder<T, chunk_limit> (&groups)[N], int rows) {
  using Word = typename T::Word;
  Word u[N][rows_per_tile];
  const auto decode_by = [&](auto decode) ARRCOMP_LAMBDA {
    for (int r = 0; r < rows; r += rows_per_tile) {
      decode_tiles<T, N>(groups, r, u, decode);
      for (int i = 0; i < N; ++i) groups[i].finish_tile(r, u[i]);
    }
  };
  const auto decode_symbols = [&](int i, U32& states, WordSource& words)
                                  ARRCOMP_LAMBDA { return decode_row<Word>(groups[i].symbols_, states, words); };
  bool have_classes = false;
  for (int i = 0; i < N; ++i) have_classes = have_classes || groups[i].has_classes();
  if (have_classes) {
    ClassDecoder decoders[N];
    for (int i = 0; i < N; ++i) decoders[i] = groups[i].class_decoder();
    decode_by([&](int i, U32& states, WordSource& words) ARRCOMP_LAMBDA {
      if (!groups[i].has_classes()) return decode_symbols(i, states, words);
      Word word;
      words.bring_near();
      widen_to(decoders[i].decode_row(states, words, lowest_state), word);
      return word;
    });
  } else {
    decode_by(decode_symbols);
  }
  for (int i = 0; i < N; ++i) groups[i].finish_rows(rows);
}

// Decodes N opened groups of as many chunks; true where none was corrupt.
template <class T, int N, int chunk_limit>
ARRCOMP_PART bool decode_groups(GroupDecoder<T, chunk_limit> (&groups)[N]) {
  for (uint32_t c = 0; c < groups[0].chunks(); ++c) {
    bool interleaved = N > 1;
    int rows = rows_per_chunk;
    for (int i = 0; i < N; ++i) {
      groups[i].start_chunk(c);
      interleaved = interleaved && groups[i].may_interleave();
      if (interleaved && groups[i].rows_to_interleave() < rows) rows = groups[i].rows_to_interleave();
    }
    if constexpr (N > 1) {
      if (interleaved) {
        decode_interleaved<T, N>(groups, rows);
        continue;
      }
    }
    for (int i = 0; i < N; ++i) groups[i].decode_chunk();
  }
  bool ok = true;
  for (int i = 0; i < N; ++i) {
    groups[i].close();
    ok = ok && !groups[i].failed();
  }
  return ok;
}

}  // namespace arrcomp::ARRCOMP_ISA
