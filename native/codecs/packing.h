// Vertical bit packing: each lane fills its own words, and word j of all lanes stand side by side (FORMAT.md, section
// 3.3; the layout is that of FastLanes, Afroozeh and Boncz, PVLDB 16(9), 2023).
#pragma once
#include "inline.h"
#include "lanes/lanes.h"
#include "stream/constants.h"

namespace arrcomp::ARRCOMP_ISA {

ARRCOMP_INLINE uint32_t low_mask(int bits) { return bits >= 32 ? ~0u : (1u << bits) - 1; }

// Of `count` elements in rows: how many are in this one; none where they have ended.
ARRCOMP_INLINE int lanes_of_row(int count, int row) {
  const int left = count - row * lanes_per_row;
  return left < 0 ? 0 : left < lanes_per_row ? left : lanes_per_row;
}

ARRCOMP_INLINE void widen_to(U32 x, U32& wide) { wide = x; }
ARRCOMP_INLINE void widen_to(U32 x, U64& wide) { wide = join(x, splat<U32>(0)); }

// The value of the first of these lanes; 0 if there are none.
template <class Word>
ARRCOMP_INLINE typename Word::scalar value_of_first(Word x, Mask lanes) {
  const uint32_t own = bits(lanes);
  return or_all(select(mask(own & (0u - own)), x, splat<Word>(0)));
}

class BitWriter {
 public:
  ARRCOMP_METHOD explicit BitWriter(uint8_t* out)
      : out_(reinterpret_cast<uint32_t*>(out)), buffer_(splat<U32>(0)), used_(0) {}

  // Appends the `width` (0 to 32) bits of each lane's v, which has no others.
  ARRCOMP_METHOD void put(U32 v, int width) {
    if (width == 0) return;
    if constexpr (tiles_in_registers) return put_above_others(v, width);
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

  // Appends the `width` lowest bits, 17 to 32, of each row of a tile. Each width has a way of its own, on which the rows'
  // places in the tile's words are known.
  ARRCOMP_METHOD void put_wide_tile(const U32 (&rows)[rows_per_tile], int width) {
    // Of 256 floats whose exponents differ by 8 to 15: the first to be asked for.
    if (width == 28) return put_rows<28>(rows);
    switch (width) {
      case 17: return put_rows<17>(rows);
      case 18: return put_rows<18>(rows);
      case 19: return put_rows<19>(rows);
      case 20: return put_rows<20>(rows);
      case 21: return put_rows<21>(rows);
      case 22: return put_rows<22>(rows);
      case 23: return put_rows<23>(rows);
      case 24: return put_rows<24>(rows);
      case 25: return put_rows<25>(rows);
      case 26: return put_rows<26>(rows);
      case 27: return put_rows<27>(rows);
      case 29: return put_rows<29>(rows);
      case 30: return put_rows<30>(rows);
      case 31: return put_rows<31>(rows);
      default: return put_rows<32>(rows);
    }
  }

  // Appends the `width` bits of each row of a tile, which have no others.
  ARRCOMP_METHOD void put_tile(U32 (&rows)[rows_per_tile], int width) {
    if constexpr (tiles_in_registers) {
      put_together(rows, width);
    } else {
      for (const U32& v : rows) put(v, width);
    }
  }

  // Stores what is left, bit by bit; returns the end of the bytes.
  ARRCOMP_METHOD uint8_t* finish() {
    const U32 rest = what_is_left();
    for (int b = 0; b < used_; ++b) {
      const uint32_t of_lanes = bits(ne(rest & splat<U32>(1u << b), splat<U32>(0)));
      if (leader()) out_[b] = of_lanes;
    }
    return reinterpret_cast<uint8_t*>(out_ + used_);
  }

  // The same of codes: a word of each lane, of 16 or 32 bits.
  ARRCOMP_METHOD void finish_codes() {
    if (used_ == 0) return;
    const U32 rest = what_is_left();
    if (used_ > 16)
      store(out_, rest);
    else
      store(reinterpret_cast<uint16_t*>(out_), rest);
  }

 private:
  ARRCOMP_METHOD U32 what_is_left() const {
    return tiles_in_registers && used_ > 0 ? buffer_ >> (32 - used_) : buffer_;
  }

  // As many rows as fit in a word of 32 bits become one.
  ARRCOMP_METHOD void put_together(U32 (&v)[rows_per_tile], int width) {
    if (width == 0) return;
    int left = rows_per_tile;
    ARRCOMP_UNROLL for (int n = rows_per_tile; n > 1; n /= 2) {
      if (width > 16) break;
      ARRCOMP_UNROLL for (int i = 0; i < n / 2; ++i) v[i] = put_above(v[2 * i + 1], width, v[2 * i]);
      width *= 2;
      left = n / 2;
    }
    ARRCOMP_UNROLL for (int i = 0; i < rows_per_tile; ++i) {
      if (i == left) break;
      put_above_others(v[i], width);
    }
  }

  // The rows' bits become words of the tile, and these come behind the bits that there are: by as many places all.
  template <int width>
  ARRCOMP_METHOD void put_rows(const U32 (&rows)[rows_per_tile]) {
    constexpr int bits = rows_per_tile * width, rest = bits % 32;
    const int free = 32 - used_;
    U32 own = splat<U32>(0);  // in its highest places
    ARRCOMP_UNROLL for (int i = 0; i < rows_per_tile; ++i) {
      const int have = i * width % 32;
      const U32 before = own;
      own = funnel(before, rows[i], width);
      if (have + width < 32) continue;
      const U32 word = funnel(before, rows[i], 32 - have);
      store(out_ + i * width / 32 * lanes_per_row, funnel(buffer_, word, free));
      buffer_ = word;
    }
    out_ += bits / 32 * lanes_per_row;
    if constexpr (rest > 0) put_above_others(own >> (32 - rest), rest);
  }

  // As `put`, of the `width` (above 0) lowest bits. The buffer's bits are in its highest places: new ones move them down.
  ARRCOMP_METHOD void put_above_others(U32 v, int width) {
    const U32 before = buffer_;
    buffer_ = funnel(before, v, width);
    const int free = 32 - used_;
    used_ += width;
    if (used_ < 32) return;
    store(out_, funnel(before, v, free));
    out_ += 32;
    used_ -= 32;
  }

  uint32_t* out_;
  U32 buffer_;
  int used_;
};

// The bits of a chunk's lanes behind their last whole words: each is in a word of its own.
class LastBits {
 public:
  ARRCOMP_METHOD LastBits() : last_(splat<U32>(0)) {}
  ARRCOMP_METHOD LastBits(const uint8_t* begin, const uint8_t* end) : last_(splat<U32>(0)) {
    const auto* const words = reinterpret_cast<const uint32_t*>(begin);
    const int bits = static_cast<int>((end - begin) % 128) / 4;
    const uint32_t* const of_lanes = words + (end - begin) / 128 * lanes_per_row;
    for (int b = 0; b < bits; ++b) last_ = last_ | select(mask(of_lanes[b]), splat<U32>(1u << b), splat<U32>(0));
  }

  ARRCOMP_METHOD U32 word(const uint8_t*) const { return last_; }

 private:
  U32 last_;
};

// Those of codes are a word of each lane: of 16 bits, if they are no more.
class LastCodes {
 public:
  LastCodes() = default;
  ARRCOMP_METHOD LastCodes(const uint8_t*, const uint8_t*) {}

  ARRCOMP_METHOD U32 word(const uint8_t* in) const { return load(reinterpret_cast<const uint16_t*>(in)); }
};

template <class Last>
class BitReaderOf {
 public:
  ARRCOMP_METHOD BitReaderOf() : in_(nullptr), end_(nullptr), buffer_(splat<U32>(0)), have_(0) {}
  ARRCOMP_METHOD BitReaderOf(const uint8_t* in, const uint8_t* end)
      : in_(in), end_(end), last_(in, end), buffer_(splat<U32>(0)), have_(0) {}

  // Goes on where a copy of this reader is. (The whole of it would pass through memory.)
  ARRCOMP_METHOD void go_on(const BitReaderOf& copy) {
    in_ = copy.in_;
    buffer_ = copy.buffer_;
    have_ = copy.have_;
  }

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
    const U32 word = whole ? load(reinterpret_cast<const uint32_t*>(in_)) : last_.word(in_);
    in_ += 128;
    return word;
  }

  const uint8_t* in_;
  const uint8_t* end_;
  Last last_;
  U32 buffer_;
  int have_;
};

using BitReader = BitReaderOf<LastBits>;
using CodeBitReader = BitReaderOf<LastCodes>;

// The same for a warp, which finds each row's bits by their position alone: several loads are on their way together.
class BitSection {
 public:
  BitSection() = default;
  // Words from `in` to `end`: whole ones, and the bits behind them.
  ARRCOMP_METHOD BitSection(const uint8_t* in, const uint8_t* end)
      : words_(reinterpret_cast<const uint32_t*>(in)),
        whole_(static_cast<uint32_t>(end - in) / 128),
        last_(LastBits(in, end).word(end)) {}

  // The next `width` (0 to 32) bits of each lane. The caller has checked that the section holds them.
  ARRCOMP_METHOD U32 get(int width, U32) { return take<false>(width) & splat<U32>(low_mask(width)); }

  ARRCOMP_METHOD U64 get(int width, U64) {
    const U32 low = get(width < 32 ? width : 32, U32{});
    return join(low, width > 32 ? get(width - 32, U32{}) : splat<U32>(0));
  }

  // Calls row(j, bits) for n rows one after the other: faster, the more so where they are narrow.
  template <class Word, int n, class Row>
  ARRCOMP_METHOD void get_rows(int width, Row row) {
    if (width <= 32 / rows_of_word) {
      get_narrow_rows<Word, n>(width, row);
    } else if (width <= 32 && (position_ + n * static_cast<uint32_t>(width)) / 32 + 1 < whole_) {
      const U32 mask = splat<U32>(low_mask(width));
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) give(take<true>(width) & mask, j, row, Word{});
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) row(j, get(width, Word{}));
    }
  }

 private:
  static constexpr int rows_of_word = 4;

  template <class Word, int n, class Row>
  ARRCOMP_METHOD void get_narrow_rows(int width, Row row) {
    const U32 mask = splat<U32>(low_mask(width));
    ARRCOMP_UNROLL for (int j = 0; j < n; j += rows_of_word) {
      U32 bits = take<false>(rows_of_word * width);
      ARRCOMP_UNROLL for (int i = 0; i < rows_of_word; ++i) {
        give(bits & mask, j + i, row, Word{});
        bits = bits >> width;
      }
    }
  }

  template <class Word, class Row>
  ARRCOMP_METHOD static void give(U32 bits, int j, Row row, Word) {
    Word own;
    widen_to(bits, own);
    row(j, own);
  }

  // The next bits, with others above them: of two words, which are known to be whole or not.
  template <bool are_whole>
  ARRCOMP_METHOD U32 take(int width) {
    const uint32_t first = position_ / 32;
    U32 low = last_, high = last_;
    load_pair_if(are_whole || first < whole_, are_whole || first + 1 < whole_, words_, first, low, high);
    const U32 bits = funnel_wrapped(low, high, static_cast<int>(position_));
    position_ += static_cast<uint32_t>(width);
    return bits;
  }

  const uint32_t* words_ = nullptr;
  uint32_t whole_ = 0;     // words
  uint32_t position_ = 0;  // in bits of a lane
  U32 last_;               // the word behind the whole ones
};

}  // namespace arrcomp::ARRCOMP_ISA
