// One array on the CPU, cut by a plan of the caller's into groups.
#pragma once
#include "stream/codec.h"

namespace arrcomp::cpu {

// Encodes to `payload` (capacity(plan.element, plan.count) bytes, aligned to 8); returns the payload's length.
uint64_t encode_array(const Plan& plan, const Codec& codec, const void* source, uint8_t* payload, uint64_t seed,
                      int threads);

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_array(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length, void* target,
                  int threads);

}  // namespace arrcomp::cpu
