// The packed codes of a window: 16 rows, whose words are known by place at compile time. FORMAT.md, section 3.3.
#pragma once
#include "codecs/packing.h"
#include "stream/buckets.h"

namespace arrcomp::ARRCOMP_ISA {

constexpr int rows_per_window = 16;

// Codes of so many bits. A window of an odd number of bits ends in the middle of a word, which the next one fills.
template <int bits>
struct WindowCodes {
  static constexpr int words = (rows_per_window * bits + 31) / 32;
  static constexpr bool ends_in_half = bits % 2 == 1;
  static constexpr int whole_words = rows_per_window * bits / 32;

  ARRCOMP_METHOD static void pack(const U32 (&codes)[rows_per_window], U32 (&packed)[words]) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      const int at = j * bits / 32, shift = j * bits % 32;
      packed[at] = shift == 0 ? codes[j] : packed[at] + (codes[j] << shift);
      if (shift + bits > 32) packed[at + 1] = codes[j] >> (32 - shift);
    }
  }

  ARRCOMP_METHOD static void unpack(const U32 (&packed)[words], U32 (&codes)[rows_per_window]) {
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      const int at = j * bits / 32, shift = j * bits % 32;
      U32 code = packed[at] >> shift;
      if (shift + bits > 32) code = code | packed[at + 1] << (32 - shift);
      codes[j] = shift + bits == 32 ? code : code & splat<U32>(low_mask(bits));
    }
  }
};

// Whether windows of so many bits are packed here: of 8 at most, or of 16 by codecs that have such codes.
template <class Coder>
constexpr bool has_wide_codes = requires { Coder::has_wide_codes; };
template <class Coder>
ARRCOMP_METHOD bool has_window_codes(uint32_t bits) {
  return bits <= 8 || (bits == 16 && has_wide_codes<Coder>);
}

// Calls visit(WindowCodes<bits>{}).
template <class Coder, class Visit>
ARRCOMP_METHOD void visit_window_codes(int bits, Visit visit) {
  if constexpr (has_wide_codes<Coder>) {
    if (bits == 16) return visit(WindowCodes<16>{});
  }
  switch (bits) {
    case 1: return visit(WindowCodes<1>{});
    case 2: return visit(WindowCodes<2>{});
    case 3: return visit(WindowCodes<3>{});
    case 4: return visit(WindowCodes<4>{});
    case 5: return visit(WindowCodes<5>{});
    case 6: return visit(WindowCodes<6>{});
    case 7: return visit(WindowCodes<7>{});
    default: return visit(WindowCodes<8>{});
  }
}

// Writes the codes of a chunk's windows, one after the other.
template <class Coder>
class WindowWriter {
 public:
  ARRCOMP_METHOD WindowWriter(const BucketPlan& plan, uint8_t* codes)
      : out_(reinterpret_cast<uint32_t*>(codes)), bits_(static_cast<int>(plan.code_bits)), waits_(false) {}

  // Of a whole window.
  ARRCOMP_METHOD void put(const U32 (&codes)[rows_per_window]) {
    visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA {
      U32 packed[Codes::words]{};
      Codes::pack(codes, packed);
      if constexpr (Codes::ends_in_half) {
        if (waits_) {
          waits_ = false;
          put_behind_half(packed);
          return store_words<Codes::words>(packed);
        }
        half_ = packed[Codes::whole_words];
        waits_ = true;
      }
      store_words<Codes::whole_words>(packed);
    });
  }

  // Of the first `count` elements of a chunk's last window, all or fewer; 0 in the place of others.
  ARRCOMP_METHOD void put_last(U32 (&codes)[rows_per_window], int count) {
    const U32 left = splat<U32>(static_cast<uint32_t>(count));
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) {
      const U32 place = lane_numbers() + splat<U32>(static_cast<uint32_t>(j * lanes_per_row));
      codes[j] = select(lt(place, left), codes[j], splat<U32>(0));
    }
    const int rows = (count + lanes_per_row - 1) / lanes_per_row;
    visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA {
      U32 packed[Codes::words]{};
      Codes::pack(codes, packed);
      int halves = (rows * bits_ + 15) / 16;
      if constexpr (Codes::ends_in_half) {
        if (waits_) {
          ++halves;
          put_behind_half(packed);
        }
      }
      ARRCOMP_UNROLL for (int i = 0; i < Codes::words; ++i) {
        uint32_t* const row = out_ + i * lanes_per_row;
        if (halves >= 2 * i + 2) store(row, packed[i]);
        if (halves == 2 * i + 1) store(reinterpret_cast<uint16_t*>(row), packed[i]);
      }
    });
  }

 private:
  // A row of words is 128 bytes, as wide as memory is.
  template <int n, int m>
  ARRCOMP_METHOD void store_words(const U32 (&words)[m]) {
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) store(out_ + i * lanes_per_row, words[i]);
    out_ += n * lanes_per_row;
  }

  template <int n>
  ARRCOMP_METHOD void put_behind_half(U32 (&packed)[n]) const {
    U32 before = half_;
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) {
      const U32 upper = packed[i] >> 16;
      packed[i] = before + (packed[i] << 16);
      before = upper;
    }
  }

  uint32_t* out_;
  int bits_;
  bool waits_;  // half a word
  U32 half_ = splat<U32>(0);
};

// Reads them, a window ahead.
template <class Coder>
class WindowReader {
 public:
  // Of so many codes.
  ARRCOMP_METHOD WindowReader(const BucketPlan& plan, const uint8_t* codes, uint32_t count)
      : in_(reinterpret_cast<const uint32_t*>(codes)),
        bits_(static_cast<int>(plan.code_bits)),
        window_(0),
        bytes_(static_cast<int>(code_bytes(count, plan.code_bits))) {
    visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA { fetch<Codes::words>(); });
  }

  ARRCOMP_METHOD void get(U32 (&codes)[rows_per_window]) {
    visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA {
      constexpr int words = Codes::words;
      U32 packed[words]{};
      const bool from_half = Codes::ends_in_half && window_++ % 2 == 1;
      ARRCOMP_UNROLL for (int i = 0; i < words; ++i) packed[i] = words_[i];
      if (from_half) move_half(packed);
      const int taken = from_half ? words : Codes::whole_words;
      in_ += taken * lanes_per_row;
      bytes_ -= taken * row_bytes;
      if (bytes_ > 0) fetch<words>();
      Codes::unpack(packed, codes);
    });
  }

 private:
  static constexpr int row_bytes = lanes_per_row * sizeof(uint32_t);

  template <int n>
  ARRCOMP_METHOD void fetch() {
    if (bytes_ >= n * row_bytes) [[likely]] {
      ARRCOMP_UNROLL for (int i = 0; i < n; ++i) words_[i] = load(in_ + i * lanes_per_row);
      return;
    }
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) {
      const uint32_t* const row = in_ + i * lanes_per_row;
      if (bytes_ >= (i + 1) * row_bytes) {
        words_[i] = load(row);
      } else if (bytes_ > i * row_bytes) {
        words_[i] = load(reinterpret_cast<const uint16_t*>(row));
      }
    }
  }

  template <int n>
  ARRCOMP_METHOD static void move_half(U32 (&packed)[n]) {
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) packed[i] =
        i + 1 < n ? (packed[i] >> 16) + (packed[i + 1] << 16) : packed[i] >> 16;
  }

  const uint32_t* in_;
  int bits_, window_;
  int bytes_;  // that are left
  U32 words_[has_wide_codes<Coder> ? 8 : 4]{};
};

}  // namespace arrcomp::ARRCOMP_ISA
