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

// How much a program does.
struct Effort {
  int orders_each;  // of the three, each input is run in
  size_t every;     // of inputs that are many, every nth is run

  // The program's arguments, or one order and all inputs.
  explicit Effort(char** arguments)
      : orders_each(arguments[1] ? std::atoi(arguments[1]) : 1),
        every(arguments[1] && arguments[2] ? std::strtoull(arguments[2], nullptr, 10) : 1) {}
};

// As the driver launches kernels that work on so many units, for a device of few processors: blocks have few warps where
// units are few.
template <class Kernel>
void launch(uint64_t units, Order order, uint64_t seed, Kernel kernel) {
  constexpr uint64_t processors = 3;
  const auto warps = std::clamp<uint64_t>(units / processors, 1, cuda::warps_per_block);
  const auto blocks = static_cast<unsigned>(std::max<uint64_t>(ceil_div(units, warps), 1));
  emulated::launch(std::min(blocks, max_blocks), static_cast<int>(warps), order, seed, kernel);
}

// Whether most barriers that run() comes to are missed where each alone is left out: the others stand beside one that
// orders as much. True where no races are looked for.
template <class Run>
bool most_barriers_are_missed(Run run) {
  if (!emulated::races::are_looked_for) return true;
  if (!emulated::races::take_found().empty()) std::abort();  // what was found before is not to be forgotten
  emulated::races::take_sync_places();
  run();
  const std::vector<const void*> places = emulated::races::take_sync_places();
  size_t missed = 0;
  for (const void* place : places) {
    emulated::races::leave_out_sync(place);
    run();
    const bool is_missed = !emulated::races::take_found().empty();
    missed += is_missed ? 1 : 0;
    if (is_missed) continue;
    std::printf("  not missed where it is left out:\n");
    emulated::races::print_place(place);
  }
  emulated::races::leave_out_sync(nullptr);
  std::printf("%zu of %zu barriers are missed where one is left out\n", missed, places.size());
  return !places.empty() && 2 * missed > places.size();
}

}  // namespace
