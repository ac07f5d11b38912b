// Asks for what is read soon of arrays that come from memory, one after the other or side by side: a processor's own
// prefetching stops at the end of each page, and where much is done with a row, it does not get ahead far enough.
#pragma once
#include "codecs/element_types.h"

namespace arrcomp::ARRCOMP_ISA {

// The lines of a row of so many bytes that stands ahead of the one at `row`, maybe behind the array's end.
template <int bytes>
ARRCOMP_INLINE void fetch_ahead(const void* row) {
  constexpr int distance = 4096;
  prefetch_bytes(static_cast<const uint8_t*>(row) + distance, bytes);
}

}  // namespace arrcomp::ARRCOMP_ISA
