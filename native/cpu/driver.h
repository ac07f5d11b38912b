// One array on the CPU, cut by a plan of the caller's into groups.
#pragma once
#include <cstring>
#include <vector>

#include "backend.h"
#include "cpu/isa.h"

namespace arrcomp::cpu {

// Where an array would begin that has element `index`, of `item` bytes, at `at`.
inline uint8_t* array_with(uint8_t* at, uint64_t index, uint64_t item) {
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(at) - index * item);
}

// Threads to use for so many elements; 0 asks for as many as there are cores.
int threads_for(uint64_t elements, int threads);

// The length of a payload, a DecodeTask's or a Summand's.
template <class Payload>
uint64_t length_of(const Payload& payload) {
  if (payload.length == nullptr) return payload.limit;
  uint64_t length;
  memcpy(&length, payload.length, sizeof length);
  return length;
}

inline uint64_t seed_value(const Seed& seed) {
  uint64_t number = seed.value;
  if (seed.at != nullptr) memcpy(&number, seed.at, sizeof number);
  return number;
}

// Encodes to `payload` (capacity(plan.element, plan.count) bytes, aligned to 8); returns the payload's length.
uint64_t encode_array(const Plan& plan, const Codec& codec, const void* source, uint8_t* payload, uint64_t seed,
                      int threads, const Axes& axes = {}, const void* reference = nullptr);

// The same, of a job whose bound is known; without prediction.
uint64_t encode_job(const EncodeJob& job, uint8_t* payload, int threads);

// Writes header and directory of groups of these sizes, which stand behind them; returns the payload's length.
uint64_t write_payload_head(const Plan& plan, double bound, const std::vector<uint32_t>& sizes, uint8_t* payload);

// What can be wrong with a directory, of groups or of extra words.
constexpr const char* directory_unsorted = "directory: not ascending";
constexpr const char* directory_too_long = "directory: ends beyond the payload's end";
constexpr const char* directory_too_short = "directory: does not end at the payload's end";

// Where the groups of a payload are, and the bound that they were made with.
struct Groups {
  const uint8_t* bytes;
  std::vector<uint64_t> ends;  // of each, from `bytes`
  double bound;

  // Reads header and directory of the `length` bytes at `payload`. What is corrupt there, or null.
  const char* fault_in(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length);

  // The same; false where they are corrupt.
  bool read(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length) {
    return fault_in(plan, codec, payload, length) == nullptr;
  }

  // `streaming`: around the caches, to a target that is aligned to 16 bytes.
  DecodeJob job(const Plan& plan, const Codec& codec, void* target, bool streaming) const {
    return {plan, bytes, ends.data(), target, bound, tables(), base_delta_of(codec) != nullptr, streaming};
  }
};

// Whether decoding goes around the caches: where these do not hold the array, its lines would be read before they are
// written, and have left again when somebody wants them.
bool is_streamed(const Plan& plan, const void* target);

// Decodes the `length` bytes at `payload` (aligned to 8); false where they are corrupt.
bool decode_array(const Plan& plan, const Codec& codec, const uint8_t* payload, uint64_t length, void* target,
                  int threads);

}  // namespace arrcomp::cpu
