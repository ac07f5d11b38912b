// What the kernels are told.
#pragma once
#include "backend.h"
#include "codecs/grouped/rans_tables.h"
#include "cuda/variants.h"

namespace arrcomp::cuda {

constexpr int warps_per_block = 4;
constexpr int threads_per_block = warps_per_block * lanes_per_row;
constexpr int min_blocks = ARRCOMP_MIN_BLOCKS;  // on a processor

// An array of a call, in device memory; units (cuts.h) are counted through all arrays of the call.
struct EncodeArray {
  Plan plan;
  const void* source;
  uint8_t* payload;
  uint64_t* length;  // of the payload
  uint64_t first_unit;
  uint64_t range_keys[2];  // of the smallest value, inverted, and of the largest
};

template <class PlanOfArray>
struct DecodeArrayOf {
  PlanOfArray plan;
  const uint8_t* payload;
  uint64_t limit;
  const uint64_t* length;  // null: it is `limit`
  void* target;
  uint64_t first_unit;

  ARRCOMP_SHARED uint64_t payload_length() const;
};
using DecodeArray = DecodeArrayOf<Plan>;

// The arrays of a call: in device memory, or one alone right here.
template <class Array>
struct ArrayList {
  const Array* several;  // null: there is one
  Array single;
  uint64_t count;
  uint64_t units;

  ARRCOMP_SHARED const Array* begin() const { return several == nullptr ? &single : several; }
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
  GroupSettings settings;
  int rounded_bits;  // of the mantissa
  BaseDeltaSettings base_delta;
  Seed seed;
};

struct DecodeArguments {
  ArrayList<DecodeArray> arrays;
  uint32_t* status;
  const Tables* tables;
};

// Which of `count` arrays has this unit: the last that begins at or before it and has any.
template <class Array>
ARRCOMP_SHARED uint64_t array_of_unit(const Array* arrays, uint64_t count, uint64_t unit) {
  uint64_t first = 0, last = count - 1;
  while (first < last) {
    const uint64_t middle = (first + last + 1) / 2;
    if (arrays[middle].first_unit <= unit) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

// A number of the caller's, which may be aligned to 4 alone.
ARRCOMP_SHARED uint64_t read_number(const uint64_t* at) {
  const auto* halves = reinterpret_cast<const uint32_t*>(at);
  return halves[0] | uint64_t{halves[1]} << 32;
}

template <class PlanOfArray>
ARRCOMP_SHARED uint64_t DecodeArrayOf<PlanOfArray>::payload_length() const {
  return length == nullptr ? limit : read_number(length);
}

}  // namespace arrcomp::cuda
