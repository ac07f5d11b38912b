// Decodes groups, several at a time where an instruction set hides latency that way. Every read is checked against the
// group's bounds, so that no payload, however made, is read or written outside. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_reader.h"
#include "codecs/grouped/quantize.h"
#include "codecs/grouped/rans.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_ISA {

// What decoding knows of the whole array.
struct DecodeContext {
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  const DecodeTable* decode_tables;
  bool streaming = false;  // elements pass the caches: the array is aligned to 16 bytes
};

// Words of coded rows that wait for their places in a masked chunk: at most a row less one, and a tile.
constexpr int waiting_words = (rows_per_tile + 3) * lanes_per_row;

template <class T>
class GroupDecoder {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  // Opens the group in [begin, end), whose `count` elements go to `array` from `first` on. `waiting` is memory for
  // masked chunks.
  ARRCOMP_PART void open(const DecodeContext& context, const uint8_t* begin, const uint8_t* end, void* array,
                         uint64_t first, uint32_t count, Scalar* waiting) {
    context_ = &context;
    dequantizer_ = Dequantizer<T>(context.bound);
    begin_ = begin;
    end_ = end;
    array_ = array;
    first_ = first;
    count_ = count;
    waiting_ = waiting;
    chunks_ = (count + chunk_size - 1) / chunk_size;
    last_entropy_ = -1;
    failed_ = !find_chunks(begin) || !find_words();
  }

  ARRCOMP_METHOD bool failed() const { return failed_; }
  ARRCOMP_METHOD uint32_t chunks() const { return chunks_; }

  ARRCOMP_PART void start_chunk(uint32_t chunk) {
    if (failed_) return;
    const uint8_t* in = begin_;
    ARRCOMP_UNROLL for (uint32_t c = 0; c < max_chunks_per_group; ++c) if (c == chunk) in += starts_[c];
    read_chunk(in, chunk);
    const uint64_t offset = uint64_t{chunk} * chunk_size;
    chunk_first_ = first_ + offset;
    bits_ = BitReader(chunk_.bits, chunk_.bits_end);
    carry_ = splat<Word>(static_cast<Scalar>(chunk_.header.base));
    if (chunk_.header.coder == Coder::entropy) symbols_ = SymbolDecoder(context_->decode_tables[chunk_.header.table]);
  }

  // Whether the chunk is coded like most: full, unmasked, with the entropy coder.
  ARRCOMP_METHOD bool is_regular() const {
    return !failed_ && chunk_.header.coder == Coder::entropy && chunk_.header.mask == MaskKind::none &&
           chunk_.rows == rows_per_chunk;
  }

  ARRCOMP_PART void decode_chunk() {
    if (failed_) return;
    if (chunk_.header.mask != MaskKind::none) {
      decode_masked();
    } else {
      decode_unmasked();
    }
    finish_chunk();
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
      write_rows(row, rows_per_tile, [&](int j) ARRCOMP_LAMBDA { return with_low_bits(u[j], bits); });
      bits_ = bits;
    }
  }

  // Asks for the lines that the tile after the next writes, and for the words before those that are taken now.
  ARRCOMP_METHOD void fetch_ahead(int row) const {
    if (!is_streaming()) {
      const uint64_t element = chunk_first_ + static_cast<uint64_t>(row + 2 * rows_per_tile) * lanes_per_row;
      const auto* elements = reinterpret_cast<const uint8_t*>(element_pointer<T>(array_, element));
      for (int line = 0; line < rows_per_tile * lanes_per_row * T::width / 8; line += 64)
        prefetch_to_write(elements + line);
    }
    const auto* words = reinterpret_cast<const uint8_t*>(words_.at);
    prefetch(words - 512);
    prefetch(words - 576);
  }

  ARRCOMP_METHOD void finish_chunk() {
    if (chunk_.exceptions > 0) put_exceptions();
  }

  // Checks that the coder ended where it began.
  ARRCOMP_PART void close() {
    if (failed_ || last_entropy_ < 0) return;
    const U32 expected = splat<U32>(lowest_state);
    const U32 end = last_carries_ ? states_ & splat<U32>(~0xffffu) : states_;
    const int64_t left = words_.at - words_.begin;
    failed_ =
        words_.failed || any(ne(end, expected)) || left > 1 || (left == 1 && read_number<uint16_t>(word_bytes()) != 0);
  }

  SymbolDecoder symbols_;
  U32 states_;
  WordSource words_;

 private:
  ARRCOMP_METHOD static int rows_left(int rows, int row, int most) { return rows - row < most ? rows - row : most; }
  ARRCOMP_METHOD const uint8_t* word_bytes() const { return reinterpret_cast<const uint8_t*>(words_.begin); }

  ARRCOMP_PART bool read_chunk(const uint8_t*& in, uint32_t chunk) {
    const uint32_t offset = chunk * chunk_size;
    const int elements = static_cast<int>(count_ - offset < chunk_size ? count_ - offset : chunk_size);
    const bool last = last_entropy_ < 0 || last_entropy_ == static_cast<int>(chunk);
    return chunk_.read(in, end_, context_->element, context_->bound > 0, elements, last);
  }

  // The chunks' side data stand last chunk first; what follows are words.
  ARRCOMP_PART bool find_chunks(const uint8_t* in) {
    for (uint32_t c = chunks_; c-- > 0;) {
      ARRCOMP_UNROLL for (uint32_t i = 0; i < max_chunks_per_group; ++i) if (i == c) starts_[i] =
          static_cast<uint32_t>(in - begin_);
      if (!read_chunk(in, c)) return false;
      if (chunk_.header.coder == Coder::entropy && last_entropy_ < 0) {
        last_entropy_ = static_cast<int>(c);
        last_carries_ = chunk_.carries;
      }
    }
    words_ = {reinterpret_cast<const uint16_t*>(in), reinterpret_cast<const uint16_t*>(in), false};
    return true;
  }

  ARRCOMP_PART bool find_words() {
    const int64_t left = end_ - word_bytes();
    if (last_entropy_ < 0) return left == 0;
    if (left < states_bytes) return false;
    const uint8_t* states = end_ - states_bytes;
    words_.at = reinterpret_cast<const uint16_t*>(states);
    states_ = load(reinterpret_cast<const uint32_t*>(states));
    return true;
  }

  // ---- words ----

  ARRCOMP_METHOD Word read_symbols() { return decode_row<Word>(symbols_, states_, words_); }

  // A coded row as words. (Those with carried bits need read_tile.)
  ARRCOMP_METHOD Word read_row(int row) {
    if (chunk_.header.coder == Coder::entropy) return with_low_bits(read_symbols(), bits_);
    if (chunk_.header.coder == Coder::packed) return bits_.get(chunk_.width_of(row), Word{});
    return splat<Word>(0);
  }

  ARRCOMP_METHOD Word with_low_bits(Word u, BitReader& bits) const {
    const int k = chunk_.header.shift;
    return k == 0 ? u : shift_left(u, k) | bits.get(k, Word{});
  }

  // Whether two bits of this row and of the 7 after it are in the final states.
  ARRCOMP_METHOD bool is_carried(int row) const { return chunk_.carries && row + carried_rows == chunk_.coded_rows; }

  // Puts the low bits to 8 rows of symbols in memory, after which all of the group's symbols are decoded.
  ARRCOMP_PART void add_carried_bits(Scalar* rows) {
    const int k = chunk_.header.shift;
    for (int j = 0; j < carried_rows; ++j, rows += lanes_per_row) {
      Word carried;
      widen_to(states_ >> carried_bits * j & splat<U32>(3), carried);
      const Word low = shift_left(bits_.get(k - carried_bits, Word{}), carried_bits) | carried;
      store(rows, shift_left(load(rows), k) | low);
    }
  }

  // k may be as large as the word.
  ARRCOMP_METHOD static Word shift_left(Word x, int k) { return k < T::word_bits ? x << k : splat<Word>(0); }

  // Up to 8 coded rows into memory, from the start of a tile on.
  ARRCOMP_PART void read_tile(int row, int n, Scalar* rows) {
    const bool carried = is_carried(row);
    for (int j = 0; j < n; ++j) store(rows + j * lanes_per_row, carried ? read_symbols() : read_row(row + j));
    if (carried) add_carried_bits(rows);
    sync();
  }

  ARRCOMP_PART void decode_unmasked() {
    for (int r = 0; r < chunk_.rows; r += rows_at_once) {
      const int n = rows_left(chunk_.rows, r, rows_at_once);
      if (is_carried(r)) {
        read_tile(r, rows_per_tile, waiting_);
        write_waiting(r);
        return;
      }
      Word u[rows_at_once];
      for (int j = 0; j < n; ++j) u[j] = read_row(r + j);
      write_rows(r, n, [&](int j) ARRCOMP_LAMBDA { return u[j]; });
    }
  }

  // The last tile of a chunk, with carried bits.
  ARRCOMP_PART void write_waiting(int row) {
    for (int j = 0; j < rows_per_tile; ++j)
      write_rows(row + j, 1, [&](int) ARRCOMP_LAMBDA { return load(waiting_ + j * lanes_per_row); });
  }

  ARRCOMP_PART void decode_masked() {
    const bool by_value = chunk_.header.mask == MaskKind::values;
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

  // The value of each lane; `carry` is the one before the row, or the base.
  ARRCOMP_METHOD static Word accumulate(Word u, bool plain, bool difference, Word& carry) {
    const Word d = unfold(u, plain);
    if (!difference) return d + carry;
    const Word q = prefix_sum(d) + carry;
    carry = broadcast_last(q);
    return q;
  }

  // Rows [row, row + n) of the chunk, from their words u(0) to u(n - 1), which are asked for in order.
  template <class Words>
  ARRCOMP_METHOD void write_rows(int row, int n, Words u) {
    const ChunkHead& header = chunk_.header;
    if (header.transform == Transform::exponent) {
      const ExponentFields<Word> fields(context_->element, header);
      if (header.mask == MaskKind::none) {
        store_rows(row, n, [&](int j) ARRCOMP_LAMBDA { return fields.join(u(j)); });
      } else {
        store_rows(row, n, [&](int j) ARRCOMP_LAMBDA {
          return select(mask(chunk_.lanes_of(row + j)), fields.join(u(j)), splat<Word>(0));
        });
      }
      return;
    }
    Word carry = carry_;  // copies, as registers
    const bool plain = header.plain, difference = header.difference;
    if constexpr (T::quantizes) {
      if (header.transform == Transform::quantized) {
        store_rows(row, n, [&](int j) ARRCOMP_LAMBDA {
          return dequantizer_.element(accumulate(u(j), plain, difference, carry));
        });
        carry_ = carry;
        return;
      }
    }
    const bool ordered = context_->element.is_float() && difference;
    store_rows(row, n, [&](int j) ARRCOMP_LAMBDA {
      const Word q = accumulate(u(j), plain, difference, carry);
      return ordered ? order_floats(q, T::width) : q;
    });
    carry_ = carry;
  }

  ARRCOMP_METHOD bool is_streaming() const { return can_stream && context_->streaming; }

  ARRCOMP_METHOD void store_full_row(uint64_t first, Word bits) const {
    if (!is_streaming()) return store_elements<T>(array_, first, lanes_per_row, bits);
    store_streaming(const_cast<typename T::storage*>(element_pointer<T>(array_, first)), bits);
  }

  template <class Bits>
  ARRCOMP_METHOD void store_rows(int row, int n, Bits bits) {
    const uint64_t first = chunk_first_ + static_cast<uint64_t>(row) * lanes_per_row;
    const int left = chunk_.count - row * lanes_per_row;
    if (left >= n * lanes_per_row) {
      for (int j = 0; j < n; ++j) store_full_row(first + static_cast<uint64_t>(j) * lanes_per_row, bits(j));
      return;
    }
    for (int j = 0; j < n; ++j) {
      const int lanes = left - j * lanes_per_row;
      store_elements<T>(array_, first + static_cast<uint64_t>(j) * lanes_per_row,
                        lanes < lanes_per_row ? lanes : lanes_per_row, bits(j));
    }
  }

  ARRCOMP_PART void put_exceptions() {
    constexpr int bytes = T::width / 8;
    sync();  // the elements that these replace are written
    int before = -1;
    for (int e = 0; e < chunk_.exceptions; ++e) {
      const int position = read_number<uint16_t>(chunk_.positions + 2 * e);
      if (position <= before || position >= chunk_.count) {
        failed_ = true;
        return;
      }
      if (leader())
        memcpy(static_cast<uint8_t*>(array_) + (chunk_first_ + static_cast<uint64_t>(position)) * bytes,
               chunk_.exception_values + e * bytes, bytes);
      before = position;
    }
  }

  const DecodeContext* context_;
  Dequantizer<T> dequantizer_;
  const uint8_t* begin_;
  const uint8_t* end_;
  void* array_;
  uint64_t first_;
  uint32_t count_, chunks_;
  Scalar* waiting_;
  uint32_t starts_[max_chunks_per_group];  // of the chunks' side data
  int last_entropy_;                       // the last chunk of the group that is entropy coded, or -1
  bool last_carries_ = false;
  bool failed_;

  // the chunk being decoded
  ChunkReader chunk_;
  uint64_t chunk_first_;
  BitReader bits_;
  Word carry_;  // the value before the next, or the base
};

// One tile of symbols from each of N groups, interleaved.
template <class T, int N>
ARRCOMP_INLINE void decode_tiles(GroupDecoder<T> (&groups)[N], typename T::Word (&u)[N][rows_per_tile]) {
  U32 states[N];
  WordSource words[N];
  for (int i = 0; i < N; ++i) {
    states[i] = groups[i].states_;
    words[i] = groups[i].words_;
  }
  for (int j = 0; j < rows_per_tile; ++j)
    ARRCOMP_UNROLL for (int i = 0; i < N; ++i) u[i][j] =
        decode_row<typename T::Word>(groups[i].symbols_, states[i], words[i]);
  for (int i = 0; i < N; ++i) {
    groups[i].states_ = states[i];
    groups[i].words_ = words[i];
  }
}

// Decodes N opened groups of as many chunks; true where none was corrupt.
template <class T, int N>
ARRCOMP_PART bool decode_groups(GroupDecoder<T> (&groups)[N]) {
  typename T::Word u[N][rows_per_tile];
  for (uint32_t c = 0; c < groups[0].chunks(); ++c) {
    bool regular = true;
    for (int i = 0; i < N; ++i) {
      groups[i].start_chunk(c);
      regular = regular && groups[i].is_regular();
    }
    if (regular && N > 1) {
      for (int r = 0; r < rows_per_chunk; r += rows_per_tile) {
        decode_tiles<T, N>(groups, u);
        for (int i = 0; i < N; ++i) groups[i].finish_tile(r, u[i]);
      }
      for (int i = 0; i < N; ++i) groups[i].finish_chunk();
    } else {
      for (int i = 0; i < N; ++i) groups[i].decode_chunk();
    }
  }
  bool ok = true;
  for (int i = 0; i < N; ++i) {
    groups[i].close();
    ok = ok && !groups[i].failed();
  }
  return ok;
}

}  // namespace arrcomp::ARRCOMP_ISA
