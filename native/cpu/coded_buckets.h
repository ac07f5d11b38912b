// Bucketed payloads whose codes are entropy coded, of one array on the CPU. `plan` is the one of their bytes before that.
#pragma once
#include "stream/codec.h"

namespace arrcomp::cpu {

// Encodes to `payload` (capacity bytes, aligned to 8); returns the payload's length.
uint64_t encode_coded_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload,
                              uint64_t seed, int threads);

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_coded_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, uint64_t length,
                          void* target, int threads);

}  // namespace arrcomp::cpu
