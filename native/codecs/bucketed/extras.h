// Extra bits of some elements of a chunk: rows of 32 such elements, in order, and of each row a word for each bit, with
// the bits of the 32. FORMAT.md, section 5.
#pragma once
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

// All of a chunk's; but four where many warps share a memory.
constexpr int rows_between_flushes = rows_at_once > 1 ? rows_per_chunk : 4;

// What waits for its row to be full, or is waited for: what the rows of elements between two flushes bring or take, a row
// that is not full, and what compress and expand touch behind it.
struct ExtraBuffer {
  static constexpr int ahead = rows_between_flushes * lanes_per_row;
  uint32_t values[ahead + 4 * lanes_per_row];
};

// Codecs whose codes tell whether an element has extra bits: they have has_extra(code) -> Mask.
template <class Coder>
concept HasExtras = requires(U32 code) { Coder::has_extra(code); };

class ExtraWriter {
 public:
  ARRCOMP_METHOD ExtraWriter(ExtraBuffer& buffer, uint32_t* out, uint32_t bits)
      : values_(buffer.values), begin_(out), out_(out), waiting_(0), bits_(static_cast<int>(bits)) {}

  // The extra bits of the lanes of m. After rows_between_flushes rows at the latest comes a flush.
  ARRCOMP_METHOD void put(U32 extra, Mask m) {
    waiting_ = static_cast<int>(compress(values_ + waiting_, extra, m) - values_);
  }

  ARRCOMP_METHOD void flush() {
    if (waiting_ < lanes_per_row) return;
    sync();
    const uint32_t* row = values_;
    for (; waiting_ >= lanes_per_row; waiting_ -= lanes_per_row, row += lanes_per_row) write(load(row));
    store(values_, load(row));
    sync();
  }

  // Returns the words that were written in all.
  ARRCOMP_METHOD uint32_t finish() {
    flush();
    sync();
    if (waiting_ > 0) write(select(mask(low_mask(waiting_)), load(values_), splat<U32>(0)));
    sync();
    return static_cast<uint32_t>(out_ - begin_);
  }

 private:
  ARRCOMP_METHOD void write(U32 row) {
    for (int bit = 0; bit < bits_; ++bit, ++out_) {
      const uint32_t word = bits(ne(row >> bit & splat<U32>(1), splat<U32>(0)));
      if (leader()) *out_ = word;
    }
  }

  uint32_t* values_;
  uint32_t* begin_;
  uint32_t* out_;
  int waiting_, bits_;
};

class ExtraReader {
 public:
  ARRCOMP_METHOD ExtraReader(ExtraBuffer& buffer, const uint32_t* in, uint64_t words, uint32_t bits)
      : values_(buffer.values),
        in_(in),
        left_(static_cast<int64_t>(words)),
        at_(0),
        end_(0),
        bits_(static_cast<int>(bits)) {}

  // Comes before every rows_between_flushes rows.
  ARRCOMP_METHOD void fill() {
    if (end_ - at_ >= ExtraBuffer::ahead) return;
    sync();
    move_to_front();
    for (; end_ < ExtraBuffer::ahead && left_ > 0; end_ += lanes_per_row) store(values_ + end_, read());
    sync();
  }

  // The next extra bits for the lanes of m, 0 in the others. Anything where they have run out.
  ARRCOMP_METHOD U32 get(Mask m) {
    U32 extra = splat<U32>(0);
    if (bits_ > 0) at_ = static_cast<int>(expand(values_ + at_, extra, m) - values_);
    return extra;
  }

  // Whether these were all words, and enough of them.
  ARRCOMP_METHOD bool is_at_end() const { return left_ == 0 && at_ <= end_ && end_ - at_ < lanes_per_row; }

 private:
  ARRCOMP_METHOD void move_to_front() {
    end_ -= at_;
    for (int i = 0; i < end_; i += lanes_per_row) {
      const U32 some = load(values_ + at_ + i);
      sync();
      store(values_ + i, some);
      sync();
    }
    at_ = 0;
  }

  // The next row; words that are no whole row are one too many.
  ARRCOMP_METHOD U32 read() {
    U32 row = splat<U32>(0);
    if (left_ >= bits_) {
      for (int bit = 0; bit < bits_; ++bit, ++in_) row = row | select(mask(*in_), splat<U32>(1u << bit), splat<U32>(0));
    }
    left_ -= bits_;
    return row;
  }

  uint32_t* values_;
  const uint32_t* in_;
  int64_t left_;  // words; below 0 where rows were missing
  int at_, end_, bits_;
};

}  // namespace arrcomp::ARRCOMP_ISA
