// What the kernels are told.
#pragma once
#include "backend.h"
#include "codecs/rans_tables.h"

namespace arrcomp::cuda {

constexpr int warps_per_block = 4;
constexpr int threads_per_block = warps_per_block * lanes_per_row;
constexpr int least_blocks = 4;  // on a processor: leaves a thread 128 registers

struct EncodeArguments {
  Plan plan;
  const void* source;
  uint8_t* payload;
  ScratchHead* head;
  uint64_t* entries;  // for placing: one a group, zeroed
  uint8_t* memory;    // EncoderMemory of each warp
  const Tables* tables;
  int rounded_bits;
  bool fast;
};

struct DecodeArguments {
  Plan plan;
  const uint8_t* payload;
  uint64_t length;
  void* target;
  uint32_t* status;
  const Tables* tables;
};

}  // namespace arrcomp::cuda
