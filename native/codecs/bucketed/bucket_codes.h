// A chunk's codes on lanes, row by row: packed, or as bytes that are entropy coded later; with extra bits of some of
// them. FORMAT.md, section 5.
#pragma once
#include "codecs/bucketed/extras.h"
#include "codecs/element_types.h"
#include "stream/buckets.h"

namespace arrcomp::ARRCOMP_ISA {

// Codecs whose codes may be bytes (BucketPlan::byte_codes).
template <class Coder>
concept HasByteCodes = requires(const typename Coder::Settings& settings) { settings.entropy; };

// In place of an ExtraWriter or an ExtraReader, for codecs that have none.
struct NoExtras {};

ARRCOMP_INLINE Mask exist(int lanes) { return mask(low_mask(lanes)); }

template <class Coder, class Extras>
class CodeWriter {
 public:
  ARRCOMP_METHOD CodeWriter(const BucketPlan& plan, uint8_t* codes, Extras& extras)
      : codes_(codes),
        writer_(codes),
        extras_(extras),
        bits_(static_cast<int>(plan.code_bits)),
        are_bytes_(plan.byte_codes) {}

  // The codes of n rows of the chunk from element `place` on, with so many lanes each: all if n is above 1.
  template <int n>
  ARRCOMP_METHOD void put(U32 (&codes)[n], uint64_t position, int lanes) {
    if constexpr (HasExtras<Coder>) {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
        extras_.put(codes[j], Coder::has_extra(codes[j]) & exist(lanes));
        codes[j] = codes[j] & splat<U32>(low_mask(bits_));
      }
    }
    if constexpr (HasByteCodes<Coder>) {
      if (are_bytes_) return put_bytes(codes, position, lanes);
    }
    if (n > 1 && n * bits_ <= 32) return writer_.put(side_by_side<n>(codes), n * bits_);
    if (n > 4 && n / 2 * bits_ <= 32) {
      writer_.put(side_by_side<n / 2>(codes), n / 2 * bits_);
      return writer_.put(side_by_side<n / 2>(codes + n / 2), n / 2 * bits_);
    }
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j)
        writer_.put(lanes == lanes_per_row ? codes[j] : select(exist(lanes), codes[j], splat<U32>(0)), bits_);
  }

  // The codes of four whole rows, of 8 bits: the highest ones of words.
  ARRCOMP_METHOD void put_highest_bytes(const U32 (&codes)[4]) {
    const U32 lower = merged<0xff00u>(codes[1] >> 16, codes[0] >> 24);
    const U32 upper = merged<0xff000000u>(codes[3], codes[2] >> 8);
    writer_.put(merged<0xffff0000u>(upper, lower), 32);
  }

  ARRCOMP_METHOD void finish() { writer_.finish_codes(); }

 private:
  template <int n>
  ARRCOMP_METHOD void put_bytes(const U32 (&codes)[n], uint64_t position, int lanes) const {
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j)
        store_elements<Bits8>(codes_, position + j * lanes_per_row, lanes, codes[j]);
  }

  // Packing them one by one comes to the same.
  template <int n>
  ARRCOMP_METHOD U32 side_by_side(const U32* codes) const {
    U32 all = codes[0];
    ARRCOMP_UNROLL for (int j = 1; j < n; ++j) all = all | codes[j] << j * bits_;
    return all;
  }

  uint8_t* codes_;
  BitWriter writer_;
  Extras& extras_;
  int bits_;
  bool are_bytes_;
};

template <class Coder, class Extras>
class CodeReader {
 public:
  // For `count` codes.
  ARRCOMP_METHOD CodeReader(const BucketPlan& plan, const uint8_t* codes, uint64_t count, Extras& extras)
      : codes_(codes),
        reader_(codes, codes + code_bytes(count, plan.code_bits)),
        extras_(extras),
        bits_(static_cast<int>(plan.code_bits)),
        are_bytes_(plan.byte_codes) {}

  // The codes that CodeWriter::put got.
  template <int n>
  ARRCOMP_METHOD void get(U32 (&codes)[n], uint64_t position, int lanes) {
    get_packed(codes, position, lanes);
    if constexpr (HasExtras<Coder>) {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) {
        const Mask has_extra = Coder::has_extra(codes[j]) & exist(lanes);
        codes[j] = codes[j] | extras_.get(has_extra) << bits_;
      }
    }
  }

 private:
  template <int n>
  ARRCOMP_METHOD void get_packed(U32 (&codes)[n], uint64_t position, int lanes) {
    if constexpr (HasByteCodes<Coder>) {
      if (are_bytes_) return get_bytes(codes, position, lanes);
    }
    if (n > 1 && n * bits_ <= 32) {
      const U32 all = reader_.get(n * bits_, U32{}), mask = splat<U32>(low_mask(bits_));
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) codes[j] = all >> j * bits_ & mask;
    } else {
      ARRCOMP_UNROLL for (int j = 0; j < n; ++j) codes[j] = reader_.get(bits_, U32{});
    }
  }

  template <int n>
  ARRCOMP_METHOD void get_bytes(U32 (&codes)[n], uint64_t position, int lanes) const {
    ARRCOMP_UNROLL for (int j = 0; j < n; ++j) codes[j] =
        load_elements<Bits8>(codes_, position + j * lanes_per_row, lanes);
  }

  const uint8_t* codes_;
  CodeBitReader reader_;
  Extras& extras_;
  int bits_;
  bool are_bytes_;
};

}  // namespace arrcomp::ARRCOMP_ISA
