// How many warps a launch has, and how they are put into blocks.
#pragma once
#include <cstdint>

namespace arrcomp::cuda {

struct Shape {
  int blocks, warps;  // `warps` in a block

  uint64_t all_warps() const { return static_cast<uint64_t>(blocks) * static_cast<uint64_t>(warps); }
};

// Where blocks need not all be resident.
constexpr int max_blocks = 1 << 20;

}  // namespace arrcomp::cuda
