// The encoding of a part, for calls that are sequences of launches (predicted_calls.h).
#pragma once
#include "cuda/arguments.h"

namespace arrcomp::cuda {

// What the encoder is told of `count` arrays, which are listed from number `first` on in the scratch memory at `base`.
// `layout` says where things stand there: `arrays`, `entries` and `memory`.
template <class Layout>
EncodeArguments arguments_of_parts(uint8_t* base, const Layout& layout, uint64_t first, uint64_t count, uint64_t groups,
                                   const Element& element, const GroupSettings& settings, const Tables* tables) {
  return {reinterpret_cast<EncodeArray*>(base + layout.arrays) + first,
          count,
          groups,
          reinterpret_cast<uint32_t*>(base),
          reinterpret_cast<uint64_t*>(base + layout.entries),
          base + layout.memory,
          tables,
          element,
          settings,
          settings.rounded_bits(element),
          BaseDeltaSettings{},
          Seed{}};
}

}  // namespace arrcomp::cuda
