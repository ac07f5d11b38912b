// What the kernels are told.
#pragma once
#include "backend.h"
#include "codecs/rans_tables.h"

namespace arrcomp::cuda {

constexpr int warps_per_block = 4;
constexpr int threads_per_block = warps_per_block * lanes_per_row;
constexpr int least_blocks = 4;  // on a processor: leaves a thread 128 registers

// An array of a call, in device memory; groups are counted through all arrays of the call.
struct EncodeArray {
  Plan plan;
  const void* source;
  uint8_t* payload;
  uint64_t* length;  // of the payload
  uint64_t first_group;
  uint64_t range_keys[2];  // of the smallest value, inverted, and of the largest
};

struct DecodeArray {
  Plan plan;
  const uint8_t* payload;
  uint64_t limit;
  const uint64_t* length;  // null: it is `limit`
  void* target;
  uint64_t first_group;
};

struct EncodeArguments {
  EncodeArray* arrays;
  uint64_t count;  // of arrays
  uint64_t groups;
  uint32_t* tickets;
  uint64_t* entries;  // for placing: one a group
  uint8_t* memory;    // EncoderMemory of each warp
  const Tables* tables;
  Element element;
  Settings settings;
  int rounded_bits;  // of the mantissa
};

struct DecodeArguments {
  const DecodeArray* arrays;  // where there are several
  DecodeArray single;         // where there is one
  uint64_t count;             // of arrays
  uint64_t groups;
  uint32_t* status;
  const Tables* tables;
};

// Which of `count` arrays has this group: the last that begins at or before it and has any.
template <class Array>
ARRCOMP_SHARED uint64_t array_of_group(const Array* arrays, uint64_t count, uint64_t group) {
  uint64_t first = 0, last = count - 1;
  while (first < last) {
    const uint64_t middle = (first + last + 1) / 2;
    if (arrays[middle].first_group <= group) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

}  // namespace arrcomp::cuda
