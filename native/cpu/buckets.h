// Bucketed payloads of one array on the CPU.
#pragma once
#include "cpu/machine.h"

namespace arrcomp::cpu {

// Encodes to `payload` (aligned to 8), whose length the plan tells.
void encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                    int threads);

// Decodes a payload (aligned to 8) of the plan's length.
void decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, void* target, int threads);

// Puts the elements of a sum to `target`, where its start may be.
void sum_buckets(const SumJob& sum, void* target, int threads);

// Encodes a sum with a codec whose layout fits_chunks, without an array of its elements.
void encode_sum_by_chunks(const SumJob& sum, const Codec& codec, const BucketPlan& plan, uint8_t* payload,
                          uint64_t seed, int threads);

}  // namespace arrcomp::cpu
