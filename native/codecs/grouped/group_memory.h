// The memory that encoding a group needs, whatever the codec, one for each thread or warp.
#pragma once
#include "codecs/grouped/base_delta_memory.h"
#include "codecs/grouped/encoder_memory.h"

namespace arrcomp {

// `chunks`: the most that a group has.
template <class Scalar, int chunks>
union GroupMemory {
  EncoderMemory<Scalar, chunks> entropy;
  BaseDeltaMemory<Scalar> base_delta;
};

}  // namespace arrcomp
