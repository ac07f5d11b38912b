// How many warps a launch has, and how they are put into blocks.
#pragma once
#include <algorithm>

#include "cuda/device.h"

namespace arrcomp::cuda {

struct Shape {
  int blocks, warps;  // `warps` in a block

  uint64_t all_warps() const { return static_cast<uint64_t>(blocks) * static_cast<uint64_t>(warps); }
};

// Where blocks need not all be resident.
constexpr int max_blocks = 1 << 20;

// A warp for each unit, as far as `most` blocks of warps_per_block have them; else warps take several. Blocks are
// smaller where there would be fewer than processors.
inline Shape shape_for(const Device& device, uint64_t units, int most = max_blocks) {
  const auto processors = static_cast<uint64_t>(device.processors);
  const uint64_t warps = std::clamp<uint64_t>(units / processors, 1, warps_per_block);
  const uint64_t all = std::min(units, static_cast<uint64_t>(most) * warps_per_block);
  return {static_cast<int>(ceil_div(all, warps)), static_cast<int>(warps)};
}

// Blocks of the kernels that set up and copy.
constexpr int set_up_threads = 256;
constexpr Shape set_up_shape(int blocks) { return {blocks, set_up_threads / lanes_per_row}; }

}  // namespace arrcomp::cuda
