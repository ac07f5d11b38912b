// What the programs that run CUDA kernels on emulated warps share: inputs of all kinds, launches, comparisons.
#pragma once
// clang-format off
#include "emulated_warp.h"  // before what it emulates CUDA for
// clang-format on
#include "cuda/arguments.h"
#include "inputs.h"
#include "stream/plan.h"

namespace {

using emulated::Order;

constexpr unsigned max_blocks = 2;
constexpr Order orders[] = {Order::ascending, Order::descending, Order::shuffled};
constexpr uint8_t untouched = 0xa5;

// ---- what tests do with them

// As the driver launches kernels that work on so many units, for a device of few processors: blocks have few warps where
// units are few.
template <class Kernel>
void launch(uint64_t units, Order order, uint64_t seed, Kernel kernel) {
  constexpr uint64_t processors = 3;
  const auto warps = std::clamp<uint64_t>(units / processors, 1, cuda::warps_per_block);
  const auto blocks = static_cast<unsigned>(std::max<uint64_t>(ceil_div(units, warps), 1));
  emulated::launch(std::min(blocks, max_blocks), static_cast<int>(warps), order, seed, kernel);
}

}  // namespace
