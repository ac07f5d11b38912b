// Elements that no code gives back, or gives back within the bound, and no mask has: they are kept exactly, in an array of
// their own whose other elements are absent (FORMAT.md, section 9.5).
#pragma once
#include "codecs/predicted/code.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T>
class ExactElements {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD ExactElements(const GroupSettings& settings, const GapMask& mask, double bound)
      : gaps_(settings, mask), book_(bound, full_scale) {}

  // Puts those of `source` in place of `made`, where the elements that are decoded stand, and `absent` in place of all
  // others. Where nothing but gaps is unserved, `made` is not read.
  ARRCOMP_PART FoundExact find(Unserved unserved, const void* source, void* made, uint64_t first,
                               uint64_t count) const {
    Mask any_found = mask(0), any_absent = mask(0);
    const Word absent = splat<Word>(absent_bits);
    for_each_row(first, count, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      const Word bits = load_elements<T>(source, i, n);
      const auto x = T::widen(bits);
      Mask found = gaps_.in(bits, x);
      if (unserved == Unserved::others) found = found | ~book_.is_kept(bits, x, load_elements<T>(made, i, n));
      found = found & ~gaps_.in_mask(bits);
      any_found = any_found | found;
      any_absent = any_absent | (found & eq(bits, absent));
      replace_elements<T>(made, i, n, select(found, bits, absent));
    });
    return any(any_absent) ? FoundExact::ambiguous : any(any_found) ? FoundExact::some : FoundExact::none;
  }

  // Puts those that are not absent in their places.
  ARRCOMP_PART static void put(const void* exact, void* target, uint64_t first, uint64_t count) {
    const Word absent = splat<Word>(absent_bits);
    for_each_row(first, count, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      const Word bits = load_elements<T>(exact, i, n);
      const Mask is_absent = eq(bits, absent);
      if (bits_of(is_absent) == ~0u) return;
      replace_elements<T>(target, i, n, select(is_absent, load_elements<T>(target, i, n), bits));
    });
  }

  static constexpr Scalar absent_bits = absent_element;

 private:
  ARRCOMP_METHOD static uint32_t bits_of(Mask m) { return bits(m); }

  Gaps<T> gaps_;
  CodeBook<T> book_;
};

}  // namespace arrcomp::ARRCOMP_ISA
