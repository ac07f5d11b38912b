// Finds the parts of a group and of its chunks. Every read is checked against the group's bounds, so that no payload,
// however made, is read or written outside. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_elements.h"
#include "codecs/grouped/chunk_reader.h"
#include "codecs/grouped/rans.h"

namespace arrcomp::ARRCOMP_ISA {

// What decoding knows of the whole array.
struct DecodeContext {
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  const DecodeTable* decode_tables;
  bool streaming;  // elements pass the caches: the array is aligned to 16 bytes
};

// What is found of a group before it is decoded: in memory, where loops over its rows need the registers.
struct GroupLayout {
  DecodeContext context;
  const uint8_t *begin, *words, *end;  // side data of the chunks, words and states
  void* array;                         // its elements go there, from the first on
  uint64_t first;
  uint32_t count;
  uint32_t starts[max_chunks_per_group];  // of the chunks' side data
  int last_entropy;                       // the last chunk that is entropy coded, or -1
  bool last_carries;
  bool is_regular;  // all chunks are coded like most

  ARRCOMP_METHOD uint32_t chunks() const { return (count + chunk_size - 1) / chunk_size; }
};

template <class T>
class GroupReader {
 protected:
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD explicit GroupReader(GroupLayout& memory) : layout_(memory) {}

  // Opens the group in [begin, end), whose `count` elements go to `array` from `first` on.
  ARRCOMP_PART void open(const DecodeContext& context, const uint8_t* begin, const uint8_t* end, void* array,
                         uint64_t first, uint32_t count) {
    GroupLayout found{context, begin, begin, end, array, first, count, {}, -1, false, true};
    failed_ = !find_chunks(found) || !find_words(found);
    sync();  // what was there before has been read
    if (leader()) layout_ = found;
    sync();
    dequantizer_ = Dequantizer<T>(context.bound);
  }

  ARRCOMP_METHOD bool failed() const { return failed_; }
  ARRCOMP_METHOD uint32_t chunks() const { return layout_.chunks(); }

  // Whether all chunks are coded like most: every word, with symbols above fewer bits than a word has.
  ARRCOMP_METHOD bool is_regular() const { return !failed_ && layout_.is_regular; }

  ARRCOMP_PART void start_chunk(uint32_t chunk) {
    if (failed_) return;
    const uint8_t* in = layout_.begin + layout_.starts[chunk];
    read_chunk(layout_, in, chunk);
    chunk_first_ = layout_.first + uint64_t{chunk} * chunk_size;
    carry_ = splat<Word>(static_cast<Scalar>(chunk_.header.base));
  }

  ARRCOMP_METHOD void finish_chunk() {
    if (chunk_.exceptions > 0) put_exceptions();
  }

  // Checks that the coder ended where it began.
  ARRCOMP_PART void close() {
    if (failed_ || layout_.last_entropy < 0) return;
    const U32 expected = splat<U32>(lowest_state);
    const U32 end = layout_.last_carries ? states_ & splat<U32>(~0xffffu) : states_;
    const auto left = words_.left(reinterpret_cast<const uint16_t*>(layout_.words));
    failed_ =
        any(ne(end, expected)) || left < 0 || left > 1 || (left == 1 && read_number<uint16_t>(layout_.words) != 0);
  }

 protected:
  ARRCOMP_METHOD const DecodeTable& table() const { return layout_.context.decode_tables[chunk_.header.table]; }

  // Whether two bits of this row and of the 7 after it are in the final states.
  ARRCOMP_METHOD bool is_carried(int row) const { return chunk_.carries && row + carried_rows == chunk_.coded_rows; }

  // Those bits of row j of 8.
  ARRCOMP_METHOD Word carried(int j) const {
    Word bits;
    widen_to(states_ >> carried_bits * j & splat<U32>(3), bits);
    return bits;
  }

  // k may be as large as the word.
  ARRCOMP_METHOD static Word shift_left(Word x, int k) { return k < T::word_bits ? x << k : splat<Word>(0); }

 private:
  ARRCOMP_PART bool read_chunk(const GroupLayout& layout, const uint8_t*& in, uint32_t chunk) {
    const uint32_t left = layout.count - chunk * chunk_size;
    const int elements = static_cast<int>(left < chunk_size ? left : chunk_size);
    const bool last = layout.last_entropy < 0 || layout.last_entropy == static_cast<int>(chunk);
    return chunk_.read(in, layout.end, layout.context.element, layout.context.bound > 0, elements, last);
  }

  // The chunks' side data stand last chunk first; what follows are words.
  ARRCOMP_PART bool find_chunks(GroupLayout& found) {
    const ChunkHead& header = chunk_.header;
    for (uint32_t c = found.chunks(); c-- > 0;) {
      ARRCOMP_UNROLL for (uint32_t i = 0; i < max_chunks_per_group; ++i) if (i == c) found.starts[i] =
          static_cast<uint32_t>(found.words - found.begin);
      if (!read_chunk(found, found.words, c)) return false;
      const bool entropy = header.coder == Coder::entropy;
      if (header.mask != MaskKind::none || (entropy && header.shift >= T::word_bits)) found.is_regular = false;
      if (entropy && found.last_entropy < 0) {
        found.last_entropy = static_cast<int>(c);
        found.last_carries = chunk_.carries;
      }
    }
    return true;
  }

  ARRCOMP_PART bool find_words(const GroupLayout& found) {
    const int64_t left = found.end - found.words;
    if (found.last_entropy < 0) return left == 0;
    if (left < states_bytes) return false;
    const uint8_t* states = found.end - states_bytes;
    words_ = WordSource(reinterpret_cast<const uint16_t*>(found.words), reinterpret_cast<const uint16_t*>(states));
    states_ = load(reinterpret_cast<const uint32_t*>(states));
    return true;
  }

  ARRCOMP_PART void put_exceptions() {
    constexpr int bytes = T::width / 8;
    sync();  // the elements that these replace are written
    const uint8_t* const values = chunk_.exception_values();
    int before = -1;
    for (int e = 0; e < chunk_.exceptions; ++e) {
      const int position = read_number<uint16_t>(chunk_.positions + 2 * e);
      if (position <= before || position >= chunk_.count) {
        failed_ = true;
        return;
      }
      if (leader())
        memcpy(static_cast<uint8_t*>(layout_.array) + (chunk_first_ + static_cast<uint64_t>(position)) * bytes,
               values + e * bytes, bytes);
      before = position;
    }
  }

 protected:
  GroupLayout& layout_;
  Dequantizer<T> dequantizer_;
  bool failed_;
  U32 states_;
  WordSource words_;

  // the chunk being decoded
  ChunkReader chunk_;
  uint64_t chunk_first_;
  Word carry_;  // the value before the next, or the base
};

}  // namespace arrcomp::ARRCOMP_ISA
