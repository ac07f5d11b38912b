// Finds the parts of a group and of its chunks. Every read is checked against the group's bounds, so that no payload,
// however made, is read or written outside. FORMAT.md, sections 3 and 4.
#pragma once
#include <type_traits>

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

// `Chunk` is what is known of the chunk being decoded: a ChunkReader, or a reference to one in the warp's memory.
template <class T, class Chunk = ChunkReader<>>
class GroupReader {
 protected:
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using ReadChunk = std::remove_reference_t<Chunk>;

 public:
  ARRCOMP_METHOD explicit GroupReader(GroupLayout& memory) : layout_(memory) {}
  ARRCOMP_METHOD GroupReader(GroupLayout& memory, Chunk chunk) : layout_(memory), chunk_(chunk) {}

  // Opens the group in [begin, end), whose `count` elements go to `array` from `first` on.
  ARRCOMP_PART void open(const DecodeContext& context, const uint8_t* begin, const uint8_t* end, void* array,
                         uint64_t first, uint32_t count) {
    sync();  // what was there before has been read
    if (leader()) layout_ = {context, begin, begin, end, array, first, count, {}, -1, false, true};
    sync();
    failed_ = !find_chunks() || !find_words();
    dequantizer_ = Dequantizer<T>(context.bound);
  }

  ARRCOMP_METHOD bool failed() const { return failed_; }
  ARRCOMP_METHOD uint32_t chunks() const { return layout_.chunks(); }

  // Whether all chunks are coded like most: every word, with symbols above fewer bits than a word has.
  ARRCOMP_METHOD bool is_regular() const { return !failed_ && layout_.is_regular; }

  ARRCOMP_PART void start_chunk(uint32_t chunk) {
    if (failed_) return;
    const uint8_t* in = in_device_memory(layout_.begin) + layout_.starts[chunk];
    ReadChunk found;
    read_chunk(found, in, chunk, layout_.last_entropy == static_cast<int>(chunk));
    if constexpr (std::is_reference_v<Chunk>) {
      sync();  // what was there before has been read
      if (leader()) chunk_ = found;
      sync();
    } else {
      chunk_ = found;
    }
    index_ = chunk;
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
  // The chunk's first element.
  ARRCOMP_METHOD uint64_t chunk_first() const { return layout_.first + uint64_t{index_} * chunk_size; }

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
  ARRCOMP_PART bool read_chunk(ReadChunk& reader, const uint8_t*& in, uint32_t chunk, bool is_last_entropy) const {
    const uint32_t left = layout_.count - chunk * chunk_size;
    const DecodeContext& context = layout_.context;
    return reader.read(in, in_device_memory(layout_.end), context.element, context.bound > 0,
                       static_cast<int>(left < chunk_size ? left : chunk_size), is_last_entropy);
  }

  // The chunks' side data stand last chunk first; what follows are words.
  ARRCOMP_PART bool find_chunks() {
    const uint8_t* const begin = in_device_memory(layout_.begin);
    const uint8_t* in = begin;
    int last_entropy = -1;
    bool is_regular = true, last_carries = false;
    for (uint32_t c = layout_.chunks(); c-- > 0;) {
      if (leader()) layout_.starts[c] = static_cast<uint32_t>(in - begin);
      ReadChunk reader;
      if (!read_chunk(reader, in, c, last_entropy < 0)) return false;
      const ChunkHead& header = reader.header;
      const bool entropy = header.coder == Coder::entropy;
      if (header.mask != MaskKind::none || (entropy && header.shift >= T::word_bits)) is_regular = false;
      if (entropy && last_entropy < 0) {
        last_entropy = static_cast<int>(c);
        last_carries = reader.carries;
      }
    }
    if (leader()) {
      layout_.words = in;
      layout_.last_entropy = last_entropy;
      layout_.last_carries = last_carries;
      layout_.is_regular = is_regular;
    }
    sync();
    return true;
  }

  ARRCOMP_PART bool find_words() {
    const uint8_t* const words = in_device_memory(layout_.words);
    const uint8_t* const end = in_device_memory(layout_.end);
    const int64_t left = end - words;
    if (layout_.last_entropy < 0) return left == 0;
    if (left < states_bytes) return false;
    const uint8_t* const states = end - states_bytes;
    words_ = WordSource(reinterpret_cast<const uint16_t*>(words), reinterpret_cast<const uint16_t*>(states));
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
        memcpy(static_cast<uint8_t*>(layout_.array) + (chunk_first() + static_cast<uint64_t>(position)) * bytes,
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
  Chunk chunk_;
  uint32_t index_;
  Word carry_;  // the value before the next, or the base
};

}  // namespace arrcomp::ARRCOMP_ISA
