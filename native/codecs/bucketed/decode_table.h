// The elements of a bucket's codes in a table, for codecs that take long to find them. FORMAT.md says nothing of it: the
// table has what decoding gives.
#pragma once
#include "codecs/bucketed/bucket_coder.h"

namespace arrcomp::ARRCOMP_ISA {

// Codecs whose codes are 7 bits and above them a sign, and are slower to decode than to look up: `tabulates` is true.
template <class Coder>
concept Tabulates = Coder::tabulates && sizeof(typename Coder::Scalar) == sizeof(uint32_t);

template <class Coder>
class DecodeTable {
  using Real = typename Coder::Real;
  static constexpr int size = 128;

 public:
  // A table pays for itself where at least so many elements are looked up.
  static constexpr uint64_t min_elements = 512;

  // For the bucket of this number, from what decoding takes of it.
  ARRCOMP_PART void fill(int bucket, const Coder& coder, const Real (&decoded)[Coder::decode_values], bool simple) {
    if (bucket == bucket_) return;
    bucket_ = bucket;
    for (uint32_t first = 0; first < size; first += lanes_per_row)
      put(first, as_bits(coder.decode(splat<U32>(first) + lane_numbers(), decoded, simple)));
  }

  ARRCOMP_METHOD Real element(U32 code) const { return as_float(magnitude(code) | (code << 24 & splat<U32>(sign_))); }

 private:
  // In halves where these are looked up in less time.
  ARRCOMP_METHOD void put(uint32_t first, U32 elements) {
    if constexpr (wide_permutations) {
      store(lower_ + first, elements);
      store(upper_ + first, elements >> 16);
    } else {
      store(elements_ + first, elements);
    }
    // Where one is NaN, all are, without a sign.
    sign_ = any(lt(splat<U32>(RealLayout<F32>::infinity), elements)) ? 0 : 1u << 31;
  }
  ARRCOMP_METHOD U32 magnitude(U32 code) const {
    if constexpr (wide_permutations) {
      return lookup_halves<size>(lower_, upper_, code);
    } else {
      return lookup<size>(elements_, code);
    }
  }

  alignas(64) uint32_t elements_[wide_permutations ? 1 : size];
  alignas(64) uint16_t lower_[wide_permutations ? size : 1], upper_[wide_permutations ? size : 1];
  uint32_t sign_ = 0;
  int bucket_ = -1;
};

// Codecs whose codes are looked up where memory is near, and a table may be longer, if they have 8 bits at most.
template <class Coder>
concept TabulatesNear = rows_at_once == 1 && (Tabulates<Coder> || Coder::tabulates_near) &&
                        sizeof(typename Coder::Scalar) == sizeof(uint32_t);

// Such a table.
template <class Coder>
class NearTable {
  using Real = typename Coder::Real;
  static constexpr int size = 256;

 public:
  ARRCOMP_METHOD void fill(const Coder& coder, const Real (&decoded)[Coder::decode_values], bool simple) {
    const Coder own = coder;  // in registers, as the table might be the coder's for all the compiler knows
    sync();                   // all lanes have looked up what was there before
    if (simple) {
      fill_all(own, decoded, true);  // counted as: simple
    } else {
      fill_all(own, decoded, false);
    }
    sync();
  }

  ARRCOMP_METHOD Real element(U32 code) const { return as_float(gather(elements_, code)); }

 private:
  ARRCOMP_METHOD void fill_all(const Coder& coder, const Real (&decoded)[Coder::decode_values], bool simple) {
    ARRCOMP_ROLLED
    for (uint32_t first = 0; first < size; first += lanes_per_row)  // counted: fill table, 4 rows
      store(elements_ + first, as_bits(coder.decode(splat<U32>(first) + lane_numbers(), decoded, simple)));
  }

  uint32_t elements_[size];
};

}  // namespace arrcomp::ARRCOMP_ISA
