// Decodes groups, several at a time where a machine hides latency that way. Every read is checked against the group's bounds, so that no
// payload, however made, is read or written outside. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/chunk_reader.h"
#include "codecs/quantize.h"
#include "codecs/rans.h"
#include "codecs/transform.h"

namespace arrcomp::ARRCOMP_MACHINE {

// What decoding knows of the whole array.
struct DecodeContext {
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  const DecodeTable* decode_tables;
};

// Words of coded rows that wait for their places in a masked chunk: at most a row less one, and a tile.
constexpr int waiting_words = (rows_per_tile + 3) * lanes_per_row;

template <class T>
class GroupDecoder {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  // Opens the group in [begin, end), whose `count` elements go to `array` from `first` on. `waiting` is memory for masked chunks.
  ARRCOMP_PART void open(const DecodeContext& context, const uint8_t* begin, const uint8_t* end, void* array, uint64_t first,
                           uint32_t count, Scalar* waiting) {
    context_ = &context;
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
    const uint8_t* in = starts_[chunk];
    read_chunk(in, chunk);
    const uint64_t offset = uint64_t{chunk} * chunk_size;
    chunk_first_ = first_ + offset;
    bits_ = BitReader(chunk_.bits, chunk_.bits_end);
    carry_ = splat<Word>(static_cast<Scalar>(chunk_.head.base));
    if (chunk_.head.coder == Coder::entropy) symbols_ = SymbolDecoder(context_->decode_tables[chunk_.head.table]);
  }

  // Whether the chunk is coded like most: full, unmasked, with the entropy coder.
  ARRCOMP_METHOD bool is_regular() const {
    return !failed_ && chunk_.head.coder == Coder::entropy && chunk_.head.mask == MaskKind::none &&
           chunk_.rows == rows_per_chunk;
  }

  ARRCOMP_PART void decode_chunk() {
    if (failed_) return;
    Word u[rows_per_tile];
    if (chunk_.head.mask != MaskKind::none) {
      decode_masked();
    } else {
      for (int r = 0; r < chunk_.rows; r += rows_per_tile) {
        const int n = tile_rows(chunk_.rows, r);
        read_rows(r, n, u);
        write_rows(r, n, u, nullptr);
      }
    }
    finish_chunk();
  }

  // Tile by tile, for regular chunks: symbols, then everything else.
  ARRCOMP_PART void finish_tile(int row, Word* u) {
    add_low_bits(row, rows_per_tile, u);
    write_rows(row, rows_per_tile, u, nullptr);
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
    failed_ = words_.failed || any(ne(end, expected)) || left > 1 || (left == 1 && read_number<uint16_t>(word_bytes()) != 0);
  }

  SymbolDecoder symbols_;
  U32 states_;
  WordSource words_;

 private:
  ARRCOMP_METHOD static int tile_rows(int rows, int row) { return rows - row < rows_per_tile ? rows - row : rows_per_tile; }
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
      starts_[c] = in;
      if (!read_chunk(in, c)) return false;
      if (chunk_.head.coder == Coder::entropy && last_entropy_ < 0) {
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

  // Coded rows [row, row + n) as words.
  ARRCOMP_PART void read_rows(int row, int n, Word* u) {
    switch (chunk_.head.coder) {
      case Coder::none:
        for (int j = 0; j < n; ++j) u[j] = splat<Word>(0);
        break;
      case Coder::packed:
        for (int j = 0; j < n; ++j) u[j] = bits_.get(chunk_.width_of(row), Word{});
        break;
      case Coder::entropy:
        read_symbols(n, u);
        add_low_bits(row, n, u);
        break;
    }
  }

  ARRCOMP_PART void read_symbols(int n, Word* u) {
    U32 states = states_;  // copies, as registers
    WordSource words = words_;
    for (int j = 0; j < n; ++j) u[j] = decode_row<Word>(symbols_, states, words);
    states_ = states;
    words_ = words;
  }

  ARRCOMP_PART void add_low_bits(int row, int n, Word* u) {
    const int k = chunk_.head.shift;
    if (k == 0) return;
    if (chunk_.carries && row + carried_rows == chunk_.coded_rows) {
      for (int j = 0; j < carried_rows; ++j) {
        Word carried;
        widen_to(states_ >> carried_bits * j & splat<U32>(3), carried);
        u[j] = shift_left(u[j], k) | shift_left(bits_.get(k - carried_bits, Word{}), carried_bits) | carried;
      }
    } else {
      for (int j = 0; j < n; ++j) u[j] = shift_left(u[j], k) | bits_.get(k, Word{});
    }
  }

  // k may be as large as the word.
  ARRCOMP_METHOD static Word shift_left(Word x, int k) { return k < T::word_bits ? x << k : splat<Word>(0); }

  ARRCOMP_PART void decode_masked() {
    const bool by_value = chunk_.head.mask == MaskKind::values;
    const Word one = splat<Word>(by_value && chunk_.head.transform != Transform::exponent ? 1 : 0);
    Word u[rows_per_tile];
    uint32_t lanes[rows_per_tile];
    Scalar* next = waiting_;  // of `have` waiting words
    int have = 0, coded_row = 0;
    for (int r = 0; r < chunk_.rows; r += rows_per_tile) {
      const int n = tile_rows(chunk_.rows, r);
      for (int j = 0; j < n; ++j) {
        lanes[j] = chunk_.lanes_of(r + j);
        const Mask coded = mask(lanes[j]);
        if (have < count(coded)) {
          refill(next, have, coded_row);
          next = waiting_;
        }
        next = const_cast<Scalar*>(expand(next, u[j], coded));
        have -= count(coded);
        u[j] = u[j] + select(coded, one, splat<Word>(0));
      }
      write_rows(r, n, u, lanes);
    }
  }

  // Moves the waiting words to the front and puts a tile of coded rows after them.
  ARRCOMP_PART void refill(const Scalar* next, int& have, int& coded_row) {
    Word u[rows_per_tile];
    const Word rest = load(next);
    sync();
    store(waiting_, rest);
    sync();
    const int n = chunk_.head.coder == Coder::none ? rows_per_tile : tile_rows(chunk_.coded_rows, coded_row);
    read_rows(coded_row, n, u);
    for (int j = 0; j < n; ++j) store(waiting_ + have + j * lanes_per_row, u[j]);
    sync();
    have += n * lanes_per_row;
    coded_row += n;
  }

  // ---- elements ----

  ARRCOMP_METHOD Word accumulate(Word u) {
    const Word d = unfold(u, chunk_.head.plain);
    if (!chunk_.head.difference) return d + carry_;
    const Word q = prefix_sum(d) + carry_;
    carry_ = broadcast_last(q);
    return q;
  }

  ARRCOMP_METHOD void store_row(int row, Word bits) {
    const int left = chunk_.count - row * lanes_per_row;
    store_elements<T>(array_, chunk_first_ + static_cast<uint64_t>(row) * lanes_per_row, left < lanes_per_row ? left : lanes_per_row,
                      bits);
  }

  // Rows [row, row + n) of the chunk; `lanes` are those that are coded, if there is a mask.
  ARRCOMP_PART void write_rows(int row, int n, const Word* u, const uint32_t* lanes) {
    const ChunkHead& head = chunk_.head;
    if (head.transform == Transform::exponent) {
      const ExponentFields fields(context_->element, head);
      for (int j = 0; j < n; ++j) {
        const Word bits = fields.join(u[j]);
        store_row(row + j, lanes ? select(mask(lanes[j]), bits, splat<Word>(0)) : bits);
      }
      return;
    }
    if constexpr (T::quantizes) {
      if (head.transform == Transform::quantized) {
        const Quantizer<T> quantizer(context_->bound);
        for (int j = 0; j < n; ++j) store_row(row + j, quantizer.element(accumulate(u[j])));
        return;
      }
    }
    const bool ordered = context_->element.is_float() && head.difference;
    for (int j = 0; j < n; ++j) {
      const Word q = accumulate(u[j]);
      store_row(row + j, ordered ? order_floats(q, T::width) : q);
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
  const uint8_t* end_;
  void* array_;
  uint64_t first_;
  uint32_t count_, chunks_;
  Scalar* waiting_;
  const uint8_t* starts_[max_chunks_per_group];
  int last_entropy_;  // the last chunk of the group that is entropy coded, or -1
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
    ARRCOMP_UNROLL for (int i = 0; i < N; ++i) u[i][j] = decode_row<typename T::Word>(groups[i].symbols_, states[i], words[i]);
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

}  // namespace arrcomp::ARRCOMP_MACHINE
