// Bucketed payloads of one array on the CPU.
#pragma once
#include "cpu/isa.h"

namespace arrcomp::cpu {

// Encodes to `payload` (aligned to 8, longest_length(plan) bytes); returns its length.
uint64_t encode_buckets(const Codec& codec, const BucketPlan& plan, const void* source, uint8_t* payload, uint64_t seed,
                        int threads);

// What is corrupt of the `length` bytes at `payload` (any alignment), or null: whether they are as many as there can be,
// and its chunks' extra words are all there.
const char* length_fault(const BucketPlan& plan, const uint8_t* payload, uint64_t length);

inline bool is_length_right(const BucketPlan& plan, const uint8_t* payload, uint64_t length) {
  return length_fault(plan, payload, length) == nullptr;
}

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_buckets(const Codec& codec, const BucketPlan& plan, const uint8_t* payload, uint64_t length, void* target,
                    int threads);

// Puts the elements of a sum to `target`, where its start may be.
void sum_buckets(const SumJob& sum, void* target, int threads);

// Encodes a sum with a codec whose layout fits_chunks, without an array of its elements.
void encode_sum_by_chunks(const SumJob& sum, const Codec& codec, const BucketPlan& plan, uint8_t* payload,
                          uint64_t seed, int threads);

}  // namespace arrcomp::cpu
