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
  bool streaming = false;  // elements pass the caches: the array is aligned to 16 bytes
};

template <class T>
class GroupReader {
 protected:
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  // Opens the group in [begin, end), whose `count` elements go to `array` from `first` on.
  ARRCOMP_PART void open(const DecodeContext& context, const uint8_t* begin, const uint8_t* end, void* array,
                         uint64_t first, uint32_t count) {
    context_ = &context;
    dequantizer_ = Dequantizer<T>(context.bound);
    begin_ = begin;
    end_ = end;
    array_ = array;
    first_ = first;
    count_ = count;
    chunks_ = (count + chunk_size - 1) / chunk_size;
    last_entropy_ = -1;
    regular_ = true;
    const uint8_t* words = begin;
    failed_ = !find_chunks(words) || !find_words(words);
  }

  ARRCOMP_METHOD bool failed() const { return failed_; }
  ARRCOMP_METHOD uint32_t chunks() const { return chunks_; }

  // Whether all chunks are coded like most: every word, with symbols above fewer bits than a word has.
  ARRCOMP_METHOD bool is_regular() const { return !failed_ && regular_; }

  ARRCOMP_PART void start_chunk(uint32_t chunk) {
    if (failed_) return;
    const uint8_t* in = begin_;
    ARRCOMP_UNROLL for (uint32_t c = 0; c < max_chunks_per_group; ++c) if (c == chunk) in += starts_[c];
    read_chunk(in, chunk);
    const uint64_t offset = uint64_t{chunk} * chunk_size;
    chunk_first_ = first_ + offset;
    carry_ = splat<Word>(static_cast<Scalar>(chunk_.header.base));
  }

  ARRCOMP_METHOD void finish_chunk() {
    if (chunk_.exceptions > 0) put_exceptions();
  }

  // Checks that the coder ended where it began.
  ARRCOMP_PART void close() {
    if (failed_ || last_entropy_ < 0) return;
    const U32 expected = splat<U32>(lowest_state);
    const U32 end = last_carries_ ? states_ & splat<U32>(~0xffffu) : states_;
    const auto left = words_.left();
    failed_ = any(ne(end, expected)) || left < 0 || left > 1 || (left == 1 && read_number<uint16_t>(first_word_) != 0);
  }

 protected:
  ARRCOMP_METHOD const DecodeTable& table() const { return context_->decode_tables[chunk_.header.table]; }

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
  ARRCOMP_PART bool read_chunk(const uint8_t*& in, uint32_t chunk) {
    const uint32_t offset = chunk * chunk_size;
    const int elements = static_cast<int>(count_ - offset < chunk_size ? count_ - offset : chunk_size);
    const bool last = last_entropy_ < 0 || last_entropy_ == static_cast<int>(chunk);
    return chunk_.read(in, end_, context_->element, context_->bound > 0, elements, last);
  }

  // The chunks' side data stand last chunk first; what follows are words.
  ARRCOMP_PART bool find_chunks(const uint8_t*& in) {
    for (uint32_t c = chunks_; c-- > 0;) {
      ARRCOMP_UNROLL for (uint32_t i = 0; i < max_chunks_per_group; ++i) if (i == c) starts_[i] =
          static_cast<uint32_t>(in - begin_);
      if (!read_chunk(in, c)) return false;
      const ChunkHead& header = chunk_.header;
      if (header.mask != MaskKind::none || (header.coder == Coder::entropy && header.shift >= T::word_bits))
        regular_ = false;
      if (header.coder == Coder::entropy && last_entropy_ < 0) {
        last_entropy_ = static_cast<int>(c);
        last_carries_ = chunk_.carries;
      }
    }
    return true;
  }

  ARRCOMP_PART bool find_words(const uint8_t* words) {
    const int64_t left = end_ - words;
    if (last_entropy_ < 0) return left == 0;
    if (left < states_bytes) return false;
    const uint8_t* states = end_ - states_bytes;
    first_word_ = words;
    words_ = WordSource(reinterpret_cast<const uint16_t*>(words), reinterpret_cast<const uint16_t*>(states));
    states_ = load(reinterpret_cast<const uint32_t*>(states));
    return true;
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

 protected:
  const DecodeContext* context_;
  Dequantizer<T> dequantizer_;
  void* array_;
  bool failed_;
  U32 states_;
  WordSource words_;

  // the chunk being decoded
  ChunkReader chunk_;
  uint64_t chunk_first_;
  Word carry_;  // the value before the next, or the base

 private:
  const uint8_t* begin_;
  const uint8_t* end_;
  const uint8_t* first_word_;
  uint64_t first_;
  uint32_t count_, chunks_;
  uint32_t starts_[max_chunks_per_group];  // of the chunks' side data
  int last_entropy_;                       // the last chunk of the group that is entropy coded, or -1
  bool last_carries_ = false, regular_;
};

}  // namespace arrcomp::ARRCOMP_ISA
