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
  static constexpr int codes = 128;
  // Where a table is memory that is near, of any length, it has those with a sign too.
  static constexpr bool has_signs = rows_at_once == 1;
  static constexpr int size = has_signs ? 2 * codes : codes;

 public:
  // A table pays for itself where at least so many elements are looked up.
  static constexpr uint64_t min_elements = 512;

  // For the bucket of this number, from what decoding takes of it.
  ARRCOMP_PART void fill(int bucket, const Coder& coder, const Real (&decoded)[Coder::decode_values], bool simple) {
    if (bucket == bucket_) return;
    bucket_ = bucket;
    if constexpr (has_signs) return fill_both(coder, decoded, simple);
    for (uint32_t first = 0; first < codes; first += lanes_per_row)
      store(elements_ + first, as_bits(coder.decode(splat<U32>(first) + lane_numbers(), decoded, simple)));
    // NaN has no sign.
    const U32 negative = as_bits(coder.decode(splat<U32>(codes), decoded, simple));
    sign_ = or_all(negative ^ splat<U32>(elements_[0]));
  }

  ARRCOMP_METHOD Real element(U32 code) const {
    const U32 found = lookup<size>(elements_, code);
    return as_float(has_signs ? found : found | (code << 24 & splat<U32>(sign_)));
  }

 private:
  ARRCOMP_METHOD void fill_both(const Coder& coder, const Real (&decoded)[Coder::decode_values], bool simple) {
    sync();
    ARRCOMP_ROLLED
    for (uint32_t first = 0; first < codes; first += lanes_per_row) {
      const U32 code = splat<U32>(first) + lane_numbers();
      store(elements_ + first, as_bits(coder.decode(code, decoded, simple)));
      store(elements_ + codes + first, as_bits(coder.decode(code + splat<U32>(codes), decoded, simple)));
    }
    sync();
  }

  alignas(64) uint32_t elements_[size];
  uint32_t sign_ = 0;
  int bucket_ = -1;
};

}  // namespace arrcomp::ARRCOMP_ISA
