// A chunk's dictionary as it stands in a payload, and the elements that indices stand for. FORMAT.md, section 3.6.
#pragma once
#include "codecs/element_types.h"
#include "codecs/grouped/numbered_elements.h"

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
  replace_each<T>(elements, count, [&](Word index) ARRCOMP_LAMBDA {
    valid = valid & lt(index, splat<Word>(entry_count));
    return gather_elements<Word>(entries, min(lowest(index), splat<U32>(entry_count - 1)));
  });
  return !any(~valid);
}

}  // namespace arrcomp::ARRCOMP_ISA
