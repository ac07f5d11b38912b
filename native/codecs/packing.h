// Vertical bit packing: each lane fills its own words, and word j of all lanes stand side by side (FORMAT.md, section
// 3.3; the layout is that of FastLanes, Afroozeh and Boncz, PVLDB 16(9), 2023).
#pragma once
#include "inline.h"
#include "lanes/lanes.h"
#include "stream/constants.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE uint32_t low_mask(int bits) { return bits >= 32 ? ~0u : (1u << bits) - 1; }

ARRCOMP_INLINE void widen_to(U32 x, U32& wide) { wide = x; }
ARRCOMP_INLINE void widen_to(U32 x, U64& wide) { wide = join(x, splat<U32>(0)); }

class BitWriter {
 public:
  ARRCOMP_METHOD explicit BitWriter(uint8_t* out)
      : out_(reinterpret_cast<uint32_t*>(out)), buffer_(splat<U32>(0)), used_(0) {}

  // Appends the `width` (0 to 32) bits of each lane's v, which has no others.
  ARRCOMP_METHOD void put(U32 v, int width) {
    if (width == 0) return;
    buffer_ = buffer_ | v << used_;
    used_ += width;
    if (used_ < 32) return;
    store(out_, buffer_);
    out_ += 32;
    used_ -= 32;
    buffer_ = used_ > 0 ? v >> (width - used_) : splat<U32>(0);
  }

  ARRCOMP_METHOD void put(U64 v, int width) {
    put(width < 32 ? lo(v) & splat<U32>(low_mask(width)) : lo(v), width < 32 ? width : 32);
    if (width > 32) put(hi(v), width - 32);
  }

  // Stores what is left; returns the end of the bytes.
  ARRCOMP_METHOD uint8_t* finish() {
    uint8_t* end = reinterpret_cast<uint8_t*>(out_);
    if (used_ == 0) return end;
    if (used_ > 16) {
      store(out_, buffer_);
      return end + 128;
    }
    store(reinterpret_cast<uint16_t*>(out_), buffer_);
    return end + 64;
  }

 private:
  uint32_t* out_;
  U32 buffer_;
  int used_;
};

class BitReader {
 public:
  ARRCOMP_METHOD BitReader() : in_(nullptr), end_(nullptr), buffer_(splat<U32>(0)), have_(0) {}
  ARRCOMP_METHOD BitReader(const uint8_t* in, const uint8_t* end)
      : in_(in), end_(end), buffer_(splat<U32>(0)), have_(0) {}

  // The next `width` (0 to 32) bits of each lane. The caller has checked that the section holds them.
  ARRCOMP_METHOD U32 get(int width, U32) {
    if (width == 0) return splat<U32>(0);
    const U32 mask = splat<U32>(low_mask(width));
    if (have_ >= width) {
      const U32 v = buffer_ & mask;
      buffer_ = width < 32 ? buffer_ >> width : splat<U32>(0);
      have_ -= width;
      return v;
    }
    const U32 next = load_word();
    const U32 v = (buffer_ | next << have_) & mask;
    const int taken = width - have_;
    buffer_ = taken < 32 ? next >> taken : splat<U32>(0);
    have_ = 32 - taken;
    return v;
  }

  ARRCOMP_METHOD U64 get(int width, U64) {
    const U32 low = get(width < 32 ? width : 32, U32{});
    return join(low, width > 32 ? get(width - 32, U32{}) : splat<U32>(0));
  }

 private:
  ARRCOMP_METHOD U32 load_word() {
    const bool whole = end_ - in_ >= 128;
    const U32 word =
        whole ? load(reinterpret_cast<const uint32_t*>(in_)) : load(reinterpret_cast<const uint16_t*>(in_));
    in_ += 128;
    return word;
  }

  const uint8_t* in_;
  const uint8_t* end_;
  U32 buffer_;
  int have_;
};

// The same rows for a warp, without branches: one shift takes the bits from two words, of which the second was asked for
// long before.
class BitWindow {
 public:
  BitWindow() = default;
  // Words at `in`, as many as `bytes` hold: whole ones, and half of one at the end (FORMAT.md, section 3.3).
  ARRCOMP_METHOD BitWindow(const uint8_t* in, uint32_t bytes)
      : end_(reinterpret_cast<const uint32_t*>(in) + bytes / 128 * lanes_per_row),
        left_(static_cast<int>(bytes / 128)) {
    last_ = bytes % 128 > 0 ? load(reinterpret_cast<const uint16_t*>(end_)) : splat<U32>(0);
    load_word(true, low_);
    load_word(true, high_);
  }

  // The next `width` (0 to 32) bits of each lane. The caller has checked that the section holds them.
  ARRCOMP_METHOD U32 get(int width, U32) {
    const U32 bits = shift_out(low_, high_, used_) & splat<U32>(low_mask(width));
    skip(width);
    return bits;
  }

  ARRCOMP_METHOD U64 get(int width, U64) {
    const U32 low = get(width < 32 ? width : 32, U32{});
    return join(low, width > 32 ? get(width - 32, U32{}) : splat<U32>(0));
  }

  // Calls row(j, bits) for n rows one after the other: faster where they are narrow.
  template <class Word, int n, class Row>
  ARRCOMP_METHOD void get_rows(int width, Row row) {
    if (width <= 32 / rows_of_word) {
      const U32 mask = splat<U32>(low_mask(width));
      ARRCOMP_UNROLL for (int j = 0; j < n; j += rows_of_word) {
        U32 bits = shift_out(low_, high_, used_);
        skip(rows_of_word * width);
        ARRCOMP_UNROLL for (int i = 0; i < rows_of_word; ++i) {
          Word own;
          widen_to(bits & mask, own);
          row(j + i, own);
          bits = bits >> width;
        }
      }
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) row(j, get(width, Word{}));
    }
  }

 private:
  static constexpr int rows_of_word = 4;

  ARRCOMP_METHOD void skip(int width) {
    used_ += width;
    const bool passed = used_ >= 32;
    used_ &= 31;
    low_ = passed ? high_ : low_;
    load_word(passed, high_);
  }

  ARRCOMP_METHOD void load_word(bool is_due, U32& word) {
    word = is_due ? last_ : word;
    load_if(is_due && left_ > 0, end_ - lanes_per_row * left_, word);
    left_ -= is_due;
  }

  const uint32_t* end_ = nullptr;  // of the whole words
  int left_ = 0;                   // of these
  int used_ = 0;                   // bits of the first of the two
  U32 last_, low_, high_;
};

}  // namespace arrcomp::ARRCOMP_ISA
