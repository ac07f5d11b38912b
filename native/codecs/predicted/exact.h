// Elements that no code gives back, or gives back within the bound: they are kept exactly, in an array of their own
// whose other elements are absent (FORMAT.md, section 9.5).
#pragma once
#include "codecs/predicted/code.h"

namespace arrcomp::ARRCOMP_ISA {

template <class T>
class ExactElements {
  using Word = typename T::Word;
  using Scalar = typename Word::scalar;

 public:
  ARRCOMP_METHOD ExactElements(const GroupSettings& settings, double bound)
      : gaps_(settings), book_(bound, full_scale) {}

  // Puts those of `source` in place of `made`, where the elements that are decoded stand, and `absent` in place of all
  // others. Where nothing but gaps is unserved, `made` is not read. False where one of them would be taken for absent, or for
  // ended.
  ARRCOMP_PART bool find(Unserved unserved, const void* source, void* made, uint64_t first, uint64_t count) const {
    Mask all_absent = mask(0);
    const Word absent = splat<Word>(absent_bits), ended = splat<Word>(ended_bits);
    for_each_row(first, count, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      const Word bits = load_elements<T>(source, i, n);
      const auto x = T::widen(bits);
      Mask found = gaps_.in(bits, x);
      if (unserved == Unserved::others) found = found | ~book_.is_kept(bits, x, load_elements<T>(made, i, n));
      all_absent = all_absent | (found & (eq(bits, absent) | eq(bits, ended)));
      replace_elements<T>(made, i, n, select(found, bits, absent));
    });
    return !any(all_absent);
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

  static constexpr Scalar absent_bits = absent_element, ended_bits = ended_element;

 private:
  ARRCOMP_METHOD static uint32_t bits_of(Mask m) { return bits(m); }

  Gaps<T> gaps_;
  CodeBook<T> book_;
};

// Exact elements of which those are left out that stand in a slice's key slice too, in place, and back: of blocks of `size`
// slices of `inner` each. A unit is so many elements of a slice. Missing values of a field often stand in the same places
// for all times.
template <class T>
class RepeatedElements {
  using Word = typename T::Word;

 public:
  // `elements` begin with slice `first`, a key slice, from which units are counted.
  ARRCOMP_METHOD RepeatedElements(void* elements, uint64_t size, uint64_t inner, uint64_t first, uint64_t unit)
      : elements_(elements) {
    const Column column(inner, unit);
    width_ = column.width;
    begin_ = column.block * inner + column.begin;
    to_key_ = slices_behind_key((first + column.block) % size) * inner;
  }

  ARRCOMP_PART void leave_out() const {
    change([](Word x, Word key)
               ARRCOMP_LAMBDA { return select(eq(x, key), absent(), select(eq(x, absent()), ended(), x)); });
  }

  ARRCOMP_PART void put_back() const {
    change([](Word x, Word key)
               ARRCOMP_LAMBDA { return select(eq(x, absent()), key, select(eq(x, ended()), absent(), x)); });
  }

 private:
  ARRCOMP_METHOD static Word absent() { return splat<Word>(ExactElements<T>::absent_bits); }
  ARRCOMP_METHOD static Word ended() { return splat<Word>(ExactElements<T>::ended_bits); }

  template <class Change>
  ARRCOMP_METHOD void change(Change change) const {
    if (to_key_ == 0) return;
    for_each_row(begin_, width_, [&](uint64_t i, int n) ARRCOMP_LAMBDA {
      replace_elements<T>(elements_, i, n,
                          change(load_elements<T>(elements_, i, n), load_elements<T>(elements_, i - to_key_, n)));
    });
  }

  void* elements_;
  uint64_t width_, begin_, to_key_;
};

}  // namespace arrcomp::ARRCOMP_ISA
