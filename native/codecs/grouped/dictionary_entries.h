// Where a chunk's dictionary stands in a payload (FORMAT.md, section 3.6).
#pragma once
#include "inline.h"

namespace arrcomp::ARRCOMP_ISA {

struct DictionaryEntries {
  const uint8_t* begin;
  int count;  // 0: there is none

  ARRCOMP_METHOD static uint32_t bytes(int entries, int width) {
    return static_cast<uint32_t>(entries * width / 8 + 3) / 4 * 4;
  }
};

}  // namespace arrcomp::ARRCOMP_ISA
