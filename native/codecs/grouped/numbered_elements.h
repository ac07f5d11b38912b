// The elements of a chunk, and the numbers that stand for them. FORMAT.md, section 3.6.
#pragma once
#include "codecs/element_types.h"
#include "codecs/grouped/dictionary_memory.h"
#include "codecs/packing.h"
#include "stream/plan.h"

namespace arrcomp::ARRCOMP_ISA {

// Writes number(bits, failed) of elements, and which lanes of each row have none: these get one that is near. True where all
// have one.
template <class T, class Number>
ARRCOMP_PART bool write_numbers(ElementRange elements, typename T::storage* numbers, uint32_t* failed, Number number) {
  using Word = typename T::Word;
  Word last = splat<Word>(0);
  Mask all_failed = mask(0);
  for (int first = 0, row = 0; first < elements.count; first += lanes_per_row, ++row) {
    const auto place = static_cast<uint64_t>(first);
    Mask own;
    const Word found = number(load_elements<T>(elements.begin, place, lanes_of_row(elements.count, row)), own);
    last = select(own, last, found);
    store(numbers + first, last);
    const uint32_t of_row = bits(own);
    if (leader()) failed[row] = of_row;
    all_failed = all_failed | own;
  }
  sync();
  return !any(all_failed);
}

// Replaces the `count` numbers at `elements` by element(number).
template <class T, class Element>
ARRCOMP_PART void replace_each(typename T::storage* elements, int count, Element element) {
  sync();  // the numbers are written
  for (int first = 0; first < count; first += lanes_per_row) {
    const int n = lanes_of_row(count, first / lanes_per_row);
    const typename T::Word number = load_row(elements + first, n);
    sync();  // lanes behind the last element read that one too
    store_row(elements + first, element(number), n);
  }
  sync();
}

}  // namespace arrcomp::ARRCOMP_ISA
