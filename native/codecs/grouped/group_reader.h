// Finds the parts of a group and of its chunks. Every read is checked against the group's bounds, so that no payload,
// however made, is read or written outside. FORMAT.md, sections 3 and 4.
#pragma once
#include "codecs/grouped/chunk_elements.h"
#include "codecs/grouped/chunk_reader.h"
#include "codecs/grouped/group_limits.h"
#include "codecs/grouped/rans.h"

namespace arrcomp::ARRCOMP_ISA {

// What decoding knows of the whole array.
struct DecodeContext {
  Element element;
  double bound;  // of quantized chunks; 0 where there are none
  const DecodeTable* decode_tables;
  bool streaming;  // elements pass the caches: the array is aligned to 16 bytes
};

// What is found of a group before it is decoded: in memory, as loops over rows need the registers.
template <bool may_be_masked, int chunk_limit = most_chunks>
struct GroupLayout {
  DecodeContext context;
  const uint8_t *begin, *words, *end;  // side data of the chunks, words and states
  void* array;                         // its elements go there, from the first on
  uint64_t first;
  uint32_t count;
  int last_entropy;                                        // the last chunk that is entropy coded, or -1
  bool is_regular;                                         // all chunks are coded like most
  uint32_t missing[may_be_masked ? rows_per_chunk : 1];    // of the chunk being decoded, a word for each row
  uint32_t classes[may_be_masked ? class_table_size : 1];  // the same chunk's table, as read_class_table makes it
  ChunkReader<may_be_masked> chunks[chunk_limit];
};

// `chunk_limit`: chunks of a group, at most.
template <class T, bool may_be_masked, int chunk_limit = most_chunks>
class GroupReader {
 protected:
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;
  using Layout = GroupLayout<may_be_masked, chunk_limit>;
  using Chunk = ChunkReader<may_be_masked>;

 public:
  ARRCOMP_METHOD explicit GroupReader(Layout& memory) : layout_(memory) {}

  // Opens the group in [begin, end), whose `count` elements go to `array` from `first` on.
  ARRCOMP_PART void open(const DecodeContext& context, const uint8_t* begin, const uint8_t* end, void* array,
                         uint64_t first, uint32_t count) {
    sync();  // what was there before has been read
    if (leader()) {
      layout_.context = context;
      layout_.begin = begin;
      layout_.end = end;
      layout_.array = array;
      layout_.first = first;
      layout_.count = count;
    }
    sync();
    failed_ = !find_chunks() || !find_words();
    dequantizer_ = Dequantizer<T>(context.bound);
  }

  ARRCOMP_METHOD bool failed() const { return failed_; }
  ARRCOMP_METHOD uint32_t chunks() const { return (layout_.count + chunk_size - 1) / chunk_size; }

  // Whether all chunks are coded like most: every word, with symbols above fewer bits than a word has.
  ARRCOMP_METHOD bool is_regular() const { return !failed_ && layout_.is_regular; }

  ARRCOMP_METHOD void start_chunk(uint32_t chunk) {
    index_ = chunk;
    carry_ = splat<Word>(static_cast<Scalar>(this->chunk().header.base));
  }

  ARRCOMP_METHOD void finish_chunk() {
    if (chunk().exceptions > 0) put_exceptions();
  }

  // Checks that the coder ended where it began.
  ARRCOMP_PART void close() {
    if (failed_ || layout_.last_entropy < 0) return;
    const Chunk& last = layout_.chunks[layout_.last_entropy];
    const U32 expected = splat<U32>(last.header.dry > 0 ? first_dry_state : lowest_state);
    const U32 end = last.carries ? states_ & splat<U32>(~0xffffu) : states_;
    const auto left = words_.left(reinterpret_cast<const uint16_t*>(layout_.words));
    failed_ = any(ne(end, expected)) || left < 0 || left > 1 ||
              (left == 1 && read_number<uint16_t>(in_device_memory(layout_.words)) != 0);
  }

 protected:
  // The chunk being decoded, and its first element.
  ARRCOMP_METHOD const Chunk& chunk() const { return layout_.chunks[index_]; }
  ARRCOMP_METHOD uint64_t chunk_first() const { return layout_.first + uint64_t{index_} * chunk_size; }
  ARRCOMP_METHOD typename T::storage* chunk_elements() const {
    return const_cast<typename T::storage*>(element_pointer<T>(in_device_memory(layout_.array), chunk_first()));
  }

  ARRCOMP_METHOD const DecodeTable& table(int index) const { return layout_.context.decode_tables[index]; }

  // Whether two bits of this row and of the 7 after it are in the final states.
  ARRCOMP_METHOD bool is_carried(int row) const { return chunk().carries && row + carried_rows == chunk().coded_rows; }

  // The symbols of a coded row that may be a dry one.
  template <class Decoder>
  ARRCOMP_METHOD Word read_symbols_of(int row, const Decoder& symbols) {
    const int fed = chunk().fed_rows;
    if (row == fed) states_ = states_ - splat<U32>(lowest_state);
    return decode_row<Word>(symbols, states_, words_, row < fed ? lowest_state : 0);
  }

  // Those bits of row j of 8.
  ARRCOMP_METHOD Word carried(int j) const {
    Word bits;
    widen_to(states_ >> carried_bits * j & splat<U32>(3), bits);
    return bits;
  }

  // k may be as large as the word.
  ARRCOMP_METHOD static Word shift_left(Word x, int k) { return k < T::word_bits ? x << k : splat<Word>(0); }

 private:
  // The chunks' side data stand last chunk first; what follows are words.
  ARRCOMP_PART bool find_chunks() {
    const uint8_t* in = in_device_memory(layout_.begin);
    int last_entropy = -1;
    bool is_regular = true;
    SharedParts shared;
    for (uint32_t c = chunks(); c-- > 0;) {
      Chunk chunk;
      if (!read_chunk(chunk, in, c, last_entropy < 0, shared)) return false;
      const bool entropy = chunk.header.coder == Coder::entropy;
      if (chunk.header.mask != MaskKind::none || chunk.header.has_missing ||
          chunk.header.transform == Transform::numbered ||
          (entropy && (!chunk.header.has_static_table() || chunk.header.shift >= T::word_bits)))
        is_regular = false;
      if (entropy && last_entropy < 0) last_entropy = static_cast<int>(c);
      if (leader()) layout_.chunks[c] = chunk;
    }
    if (leader()) {
      layout_.words = in;
      layout_.last_entropy = last_entropy;
      layout_.is_regular = is_regular;
    }
    sync();
    return true;
  }

  ARRCOMP_PART bool read_chunk(Chunk& chunk, const uint8_t*& in, uint32_t index, bool is_last_entropy,
                               SharedParts& shared) const {
    const uint32_t left = layout_.count - index * chunk_size;
    const DecodeContext& context = layout_.context;
    return chunk.read(in, in_device_memory(layout_.end), context.element, context.bound > 0,
                      static_cast<int>(left < chunk_size ? left : chunk_size), is_last_entropy, shared);
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
    const Chunk& chunk = this->chunk();
    sync();  // the elements that these replace are written
    const uint8_t* const positions = in_device_memory(chunk.positions);
    const uint8_t* const values = in_device_memory(chunk.exception_values());
    auto* const elements = in_device_memory(static_cast<uint8_t*>(layout_.array)) + chunk_first() * bytes;
    const int exceptions = chunk.exceptions, count = chunk.count;
    int before = -1;
    for (int e = 0; e < exceptions; ++e) {
      const int position = read_number<uint16_t>(positions + 2 * e);
      if (position <= before || position >= count) {
        failed_ = true;
        return;
      }
      if (leader()) memcpy(elements + position * bytes, values + e * bytes, bytes);
      before = position;
    }
  }

 protected:
  Layout& layout_;
  Dequantizer<T> dequantizer_;
  bool failed_;
  U32 states_;
  WordSource words_;

  // the chunk being decoded
  uint32_t index_;
  Word carry_;  // the value before the next, or the base
};

}  // namespace arrcomp::ARRCOMP_ISA
