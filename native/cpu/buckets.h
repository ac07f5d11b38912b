// Bucketed payloads of one array on the CPU.
#pragma once
#include "stream/codec.h"

namespace arrcomp::cpu {

// Encodes to `payload` (aligned to 8), whose length the plan tells.
void encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                    int threads);

// Decodes a payload (aligned to 8) of the plan's length.
void decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, void* target, int threads);

}  // namespace arrcomp::cpu
