// Extra bits of some elements of a chunk: rows of 32 such elements, in order, and of each row a word for each bit, with
// the bits of the 32. FORMAT.md, section 5.
#pragma once
#include <type_traits>

#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

// All of a chunk's; but 16 where many warps share a memory.
constexpr int rows_between_flushes = rows_at_once > 1 ? rows_per_chunk : 16;

// A row that is not full, and what compress and expand touch behind it.
constexpr int behind_extras = (rows_at_once > 1 ? 4 : 2) * lanes_per_row;

// What waits for its row to be full: what the rows of elements between two flushes bring, a row that is not full, and
// what compress touches behind it.
struct ExtraBuffer {
  static constexpr int ahead = rows_between_flushes * lanes_per_row;
  uint32_t values[ahead + behind_extras];
};

// What is waited for, with what expand touches. Where flushes are many, there is room for as many again: what is left
// moves to the front the less often.
struct ExtraQueue {
  static constexpr int room = rows_between_flushes < rows_per_chunk ? 2 * ExtraBuffer::ahead : ExtraBuffer::ahead;
  uint32_t values[room + behind_extras];
};

// Codecs whose codes tell whether an element has extra bits, by their bit extra_flag: they have has_extra(code) -> Mask.
template <class Coder>
concept HasExtras = requires(U32 code) { Coder::has_extra(code); };

// Places in a buffer are counted in bytes.
constexpr int extra_row = lanes_per_row * static_cast<int>(sizeof(uint32_t));

// Of codes with 8 bits in all, of which 3 are no extra ones.
constexpr int max_window_extra_bits = 5;

// Calls visit of a number of bits that is known to the compiler, `most` at most. 2 are asked for first: most often they
// are 2.
template <int most = 9, class Visit>
ARRCOMP_METHOD void visit_extra_bits(int bits, Visit visit) {
  if constexpr (most > max_window_extra_bits) {
    switch (bits) {
      case 6: return visit(std::integral_constant<int, 6>{});
      case 7: return visit(std::integral_constant<int, 7>{});
      case 8: return visit(std::integral_constant<int, 8>{});
      case 9: return visit(std::integral_constant<int, 9>{});
    }
  }
  if (bits == 2) return visit(std::integral_constant<int, 2>{});  // counted as: two extra bits
  switch (bits) {
    case 0: return;
    case 1: return visit(std::integral_constant<int, 1>{});
    case 3: return visit(std::integral_constant<int, 3>{});
    case 4: return visit(std::integral_constant<int, 4>{});
    default: return visit(std::integral_constant<int, 5>{});
  }
}

class ExtraWriter {
 public:
  // Of codes whose extra bits, so many, stand above others.
  ARRCOMP_METHOD ExtraWriter(ExtraBuffer& buffer, uint32_t* out, uint32_t bits, uint32_t others)
      : values_(buffer.values),
        begin_(out),
        out_(0),
        end_(0),
        bits_(static_cast<int>(bits)),
        others_(static_cast<int>(others)) {}

  // The codes of the lanes of m. After rows_between_flushes rows at the latest comes a flush.
  ARRCOMP_METHOD void put(U32 code, Mask m) {
    end_ = static_cast<int>(compress(values_, static_cast<uint32_t>(end_), code, m));
  }

  // The same of many rows of lanes: behind places(), and before end_at() of what has become of them.
  ARRCOMP_METHOD RowPlaces<uint32_t> places() const {
    return RowPlaces<uint32_t>(values_, static_cast<uint32_t>(end_));
  }
  ARRCOMP_METHOD void end_at(const RowPlaces<uint32_t>& places) { end_ = static_cast<int>(places.end_behind(values_)); }

  ARRCOMP_METHOD void flush() {
    if (end_ < extra_row) return;
    sync();
    const int whole = end_ / extra_row * lanes_per_row;
    visit_extra_bits(bits_, [&]<int bits>(std::integral_constant<int, bits>) ARRCOMP_LAMBDA {
      ARRCOMP_ROLLED
      for (int at = 0; at != whole; at += lanes_per_row) {
        write<bits>(load(values_ + at));
      }
    });
    end_ %= extra_row;
    if (bits_ > 0) store(values_, load(values_ + whole));
    sync();
  }

  // Returns the words that were written in all.
  ARRCOMP_METHOD uint32_t finish() {
    flush();
    sync();
    if (end_ > 0) {
      const U32 last = select(mask(low_mask(end_ / static_cast<int>(sizeof(uint32_t)))), load(values_), splat<U32>(0));
      visit_extra_bits(bits_, [&]<int bits>(std::integral_constant<int, bits>) ARRCOMP_LAMBDA { write<bits>(last); });
    }
    sync();
    return out_;
  }

 private:
  template <int bits>
  ARRCOMP_METHOD void write(U32 row) {
    U32 extra = row << (32 - bits - others_);  // the highest one is a sign
    ARRCOMP_UNROLL for (int bit = 1; bit <= bits; ++bit) {
      const uint32_t word = arrcomp::ARRCOMP_ISA::bits(ge(extra, splat<U32>(1u << 31)));
      if (leader()) begin_[out_ + static_cast<uint32_t>(bits - bit)] = word;
      extra = in_registers(extra << 1);
    }
    out_ += bits;
  }

  uint32_t* values_;
  uint32_t* begin_;
  uint32_t out_;
  int end_, bits_, others_;
};

class ExtraReader {
 public:
  // `others`: how many bits of a code stand below the extra ones.
  ARRCOMP_METHOD ExtraReader(ExtraQueue& buffer, const uint32_t* in, uint64_t words, uint32_t bits, uint32_t others = 0)
      : values_(buffer.values),
        in_(in),
        left_(static_cast<int>(words < most_words ? words : most_words)),
        at_(0),
        end_(0),
        bits_(static_cast<int>(bits)),
        others_(static_cast<int>(others)) {}

  // Comes before every rows_between_flushes rows.
  ARRCOMP_METHOD void fill() {
    constexpr int ahead = ExtraBuffer::ahead * static_cast<int>(sizeof(uint32_t));
    constexpr int room = ExtraQueue::room * static_cast<int>(sizeof(uint32_t));
    if (end_ - at_ >= ahead) return;
    sync();
    if (at_ + ahead > room) move_to_front();
    visit_extra_bits(bits_, [&]<int bits>(std::integral_constant<int, bits>) ARRCOMP_LAMBDA {
      const int wanted = (ahead - (end_ - at_) + extra_row - 1) / extra_row, whole = left_ / bits;
      const int rows = wanted < whole ? wanted : whole;
      uint32_t* const to = row_at(end_);
      const uint32_t* const from = in_device_memory(in_);
      ARRCOMP_ROLLED
      for (int i = 0; i < rows; ++i) {  // counted: read extra bits, 3 rows
        store(to + i * lanes_per_row, row_of<bits>(from + i * bits));
      }
      end_ += rows * extra_row;
      in_ += rows * bits;
      left_ -= rows * bits;
      if (rows < wanted && left_ > 0) left_ = -1;  // words that are no whole row are one too many
    });
    sync();
  }

  // The next extra bits for the lanes of m, 0 in the others. Anything where they have run out.
  ARRCOMP_METHOD U32 get(Mask m) { return bits_ > 0 ? get_some(m) : splat<U32>(0); }
  // The same where there are some bits.
  ARRCOMP_METHOD U32 get_some(Mask m) {
    U32 extra = splat<U32>(0);
    at_ = static_cast<int>(expand(values_, static_cast<uint32_t>(at_), extra, m));
    return extra;
  }

  // The same of many rows of lanes: behind places(), and before start_at() of what has become of them. Lanes outside
  // get anything.
  ARRCOMP_METHOD RowPlaces<const uint32_t> places() const {
    return RowPlaces<const uint32_t>(values_, static_cast<uint32_t>(at_));
  }
  ARRCOMP_METHOD void start_at(const RowPlaces<const uint32_t>& places) {
    at_ = static_cast<int>(places.end_behind(values_));
  }

  // Whether these were all words, and enough of them.
  ARRCOMP_METHOD bool is_at_end() const { return left_ == 0 && at_ <= end_ && end_ - at_ < extra_row; }

 private:
  static constexpr uint64_t most_words = 1u << 30;  // more than a chunk has: as good as any that are too many

  ARRCOMP_METHOD void move_to_front() {
    end_ -= at_;
    for (int i = 0; i < end_; i += extra_row) {
      const U32 some = load(row_at(at_ + i));
      sync();
      store(row_at(i), some);
      sync();
    }
    at_ = 0;
  }

  ARRCOMP_METHOD uint32_t* row_at(int at) const { return values_ + at / static_cast<int>(sizeof(uint32_t)); }

  template <int bits>
  ARRCOMP_METHOD U32 row_of(const uint32_t* words) const {
    U32 row = splat<U32>(0);
    ARRCOMP_UNROLL for (int bit = 0; bit < bits; ++bit) row =
        row | select(mask(words[bit]), splat<U32>(1u << bit << others_), splat<U32>(0));
    return row;
  }

  uint32_t* values_;
  const uint32_t* in_;
  int left_;  // words; below 0 where rows were missing
  int at_, end_, bits_, others_;
};

}  // namespace arrcomp::ARRCOMP_ISA
