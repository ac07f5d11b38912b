// Bucketed payloads of one array on the CPU.
#pragma once
#include "stream/codec.h"

namespace arrcomp::cpu {

// Encodes to `payload` (aligned to 8, longest_length(plan) bytes); returns its length.
uint64_t encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                        int threads);

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, uint64_t length, void* target,
                    int threads);

}  // namespace arrcomp::cpu
