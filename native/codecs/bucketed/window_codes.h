// The packed codes of a window: 16 rows, whose words are known by place at compile time. FORMAT.md, section 3.3.
#pragma once
#include "codecs/bucketed/bucket_codes.h"
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

  // The same of codes that have other bits above theirs, 8 in all. Every other code is far enough from the next one.
  ARRCOMP_METHOD static void pack_low_bits(const U32 (&codes)[rows_per_window], U32 (&packed)[words]) {
    static_assert(bits < 8);
    constexpr int apart = bits >= 4 ? 2 : 3;  // 8 / bits, rounded up
    ARRCOMP_UNROLL for (int i = 0; i < words; ++i) {
      U32 together[apart];
      ARRCOMP_UNROLL for (int k = 0; k < apart; ++k) {
        bool some = false;
        ARRCOMP_UNROLL for (int j = k; j < rows_per_window; j += apart) {
          const int at = j * bits - 32 * i;
          if (at <= -bits || at >= 32) continue;
          const U32 code = at < 0 ? codes[j] >> -at : codes[j] << at;
          together[k] = some ? together[k] + code : code;
          some = true;
        }
      }
      packed[i] = together[0] & splat<U32>(places_of(i, 0, apart) | places_of(i, 1, apart));
      ARRCOMP_UNROLL for (int k = 1; k < apart; ++k) {
        const U32 places = splat<U32>(places_of(i, k, apart));  // one constant, one instruction
        packed[i] = packed[i] ^ ((packed[i] ^ together[k]) & places);
      }
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

 private:
  // Of every so many codes from one on, in a word.
  ARRCOMP_METHOD static constexpr uint32_t places_of(int word, int first, int apart) {
    uint32_t places = 0;
    for (int j = first; j < rows_per_window; j += apart) {
      const int64_t at = j * bits - 32 * word;
      const uint64_t own = (uint64_t{1} << bits) - 1;
      if (-bits < at && at < 32) places |= static_cast<uint32_t>(at < 0 ? own >> -at : own << at);
    }
    return places;
  }
};

// Whether windows of so many bits are packed here: of 8 at most, or of 16 by codecs that have such codes.
template <class Coder>
constexpr bool has_wide_codes = requires { Coder::has_wide_codes; };
template <class Coder>
ARRCOMP_SHARED bool has_window_codes(uint32_t bits) {
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
    case 4: return visit(WindowCodes<4>{});  // counted as: codes of 4 bits
    case 5: return visit(WindowCodes<5>{});
    case 6: return visit(WindowCodes<6>{});  // counted as: codes of 6 bits
    case 7: return visit(WindowCodes<7>{});
    default: return visit(WindowCodes<8>{});  // counted as: codes of 8 bits
  }
}

// The row of words in which a window's codes begin: where it is half filled, behind the one before.
ARRCOMP_INLINE uint32_t first_word(uint32_t window, int bits) { return window * static_cast<uint32_t>(bits) / 2; }

// Writes the codes of a regular chunk's windows, one after the other.
template <class Coder>
class WindowWriter {
 public:
  // To `codes`. `half` has room for a row: half a word of each lane, which waits for the next window.
  ARRCOMP_METHOD WindowWriter(uint8_t* codes, uint32_t bits, bool are_bytes, uint32_t* half)
      : codes_(codes), bits_(static_cast<int>(bits)), are_bytes_(are_bytes), half_(half) {}

  ARRCOMP_METHOD void put(const U32 (&codes)[rows_per_window], uint32_t window) const {
    if constexpr (HasByteCodes<Coder>) {
      if (are_bytes_) return put_bytes(codes, window);
    }
    uint32_t* const row = row_of(window);
    visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA {
      U32 packed[Codes::words]{};
      Codes::pack(codes, packed);
      put_packed<Codes>(packed, window, row);
    });
  }

  // Codes that have other bits above theirs, 8 in all.
  ARRCOMP_METHOD void put_low_bits(const U32 (&codes)[rows_per_window], uint32_t window) const {
    uint32_t* const row = row_of(window);
    const auto put_packed_low_bits = [&]<class Codes>(Codes) ARRCOMP_LAMBDA {
      U32 packed[Codes::words]{};
      Codes::pack_low_bits(codes, packed);
      put_packed<Codes>(packed, window, row);
    };
    switch (bits_) {
      case 3: return put_packed_low_bits(WindowCodes<3>{});
      case 4: return put_packed_low_bits(WindowCodes<4>{});
      case 5: return put_packed_low_bits(WindowCodes<5>{});
      case 6: return put_packed_low_bits(WindowCodes<6>{});  // counted as: low 6 bits
      default: return put_packed_low_bits(WindowCodes<7>{});
    }
  }

 private:
  ARRCOMP_METHOD uint32_t* row_of(uint32_t window) const {
    return reinterpret_cast<uint32_t*>(in_device_memory(codes_)) + first_word(window, bits_) * lanes_per_row;
  }

  template <class Codes>
  ARRCOMP_METHOD void put_packed(U32 (&packed)[Codes::words], uint32_t window, uint32_t* row) const {
    if constexpr (Codes::ends_in_half) {
      if (window % 2 == 1) {
        put_behind(load(half_), packed);
        return store_words<Codes::words>(row, packed);
      }
      store(half_, packed[Codes::whole_words]);
    }
    store_words<Codes::whole_words>(row, packed);
  }

  ARRCOMP_METHOD void put_bytes(const U32 (&codes)[rows_per_window], uint32_t window) const {
    uint8_t* const row = in_device_memory(codes_) + window * rows_per_window * lanes_per_row;
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) store(row + j * lanes_per_row, codes[j]);
  }

  // A row of words is 128 bytes, as wide as memory is.
  template <int n, int m>
  ARRCOMP_METHOD static void store_words(uint32_t* row, const U32 (&words)[m]) {
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) store(row + i * lanes_per_row, words[i]);
  }

  template <int n>
  ARRCOMP_METHOD static void put_behind(U32 half, U32 (&packed)[n]) {
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) {
      const U32 upper = packed[i] >> 16;
      packed[i] = half + (packed[i] << 16);
      half = upper;
    }
  }

  uint8_t* codes_;
  int bits_;
  bool are_bytes_;
  uint32_t* half_;
};

// Reads them, packed ones a window ahead.
template <class Coder>
class WindowReader {
 public:
  // From a window on.
  ARRCOMP_METHOD WindowReader(const BucketPlan& plan, const uint8_t* codes, uint32_t window = 0)
      : bits_(static_cast<int>(plan.code_bits)), are_bytes_(plan.byte_codes), from_half_(window * bits_ % 2 == 1) {
    if (are_bytes_) {
      in_ = codes + window * rows_per_window * lanes_per_row;
    } else {
      in_ = codes + first_word(window, bits_) * row_bytes;
      visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA { fetch<Codes::words>(); });
    }
  }

  // `goes_on`: another window comes.
  ARRCOMP_METHOD void get(U32 (&codes)[rows_per_window], bool goes_on) {
    if constexpr (HasByteCodes<Coder>) {
      if (are_bytes_) return get_bytes(codes);
    }
    visit_window_codes<Coder>(bits_, [&]<class Codes>(Codes) ARRCOMP_LAMBDA {
      constexpr int words = Codes::words;
      U32 packed[words]{};
      ARRCOMP_UNROLL for (int i = 0; i < words; ++i) packed[i] = words_[i];
      int taken = words;
      if constexpr (Codes::ends_in_half) {
        if (from_half_) {
          move_half(packed);
        } else {
          taken = Codes::whole_words;
        }
        from_half_ = !from_half_;
      }
      in_ += taken * row_bytes;
      if (goes_on) fetch<words>();
      Codes::unpack(packed, codes);
    });
  }

 private:
  static constexpr int row_bytes = lanes_per_row * sizeof(uint32_t);

  ARRCOMP_METHOD void get_bytes(U32 (&codes)[rows_per_window]) {
    const uint8_t* const in = in_device_memory(in_);
    ARRCOMP_UNROLL for (int j = 0; j < rows_per_window; ++j) codes[j] = load(in + j * lanes_per_row);
    in_ += rows_per_window * lanes_per_row;
  }

  template <int n>
  ARRCOMP_METHOD void fetch() {
    const auto* const in = reinterpret_cast<const uint32_t*>(in_device_memory(in_));
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) words_[i] = load(in + i * lanes_per_row);
  }

  template <int n>
  ARRCOMP_METHOD static void move_half(U32 (&packed)[n]) {
    ARRCOMP_UNROLL for (int i = 0; i < n; ++i) packed[i] =
        i + 1 < n ? (packed[i] >> 16) + (packed[i + 1] << 16) : packed[i] >> 16;
  }

  const uint8_t* in_;
  int bits_;
  bool are_bytes_, from_half_;
  U32 words_[has_wide_codes<Coder> ? 8 : 4]{};
};

}  // namespace arrcomp::ARRCOMP_ISA
