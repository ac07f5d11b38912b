// A chunk's dictionary as it stands in a payload, and the elements that indices stand for. FORMAT.md, section 3.6.
#pragma once
#include "codecs/element_types.h"
#include "codecs/packing.h"

namespace arrcomp::ARRCOMP_ISA {

struct DictionaryEntries {
  const uint8_t* begin;
  int count;  // 0: there is none

  ARRCOMP_METHOD static uint32_t bytes(int entries, int width) {
    return static_cast<uint32_t>(entries * width / 8 + 3) / 4 * 4;
  }
};

// Replaces the `count` indices at `elements` by their entries; false where one is none.
template <class T>
ARRCOMP_CALLED bool look_up(DictionaryEntries dictionary, typename T::storage* elements, int count) {
  using Word = typename T::Word;
  const auto* const entries = reinterpret_cast<const typename T::storage*>(in_device_memory(dictionary.begin));
  const auto entry_count = static_cast<uint32_t>(dictionary.count);
  Mask valid = mask(~0u);
  sync();  // the indices are written
  for (int first = 0; first < count; first += lanes_per_row) {
    const int n = lanes_of_row(count, first / lanes_per_row);
    const Word index = load_row(elements + first, n);
    valid = valid & lt(index, splat<Word>(entry_count));
    sync();  // lanes behind the last element read that one too
    store_row(elements + first, gather_elements<Word>(entries, min(lowest(index), splat<U32>(entry_count - 1))), n);
  }
  sync();
  return !any(~valid);
}

}  // namespace arrcomp::ARRCOMP_ISA
