// Activation functions on the CPU.
#include "backend.h"
#include "cpu/driver.h"
#include "cpu/select.h"
#include "cpu/threads.h"
#include "floating_point.h"

namespace arrcomp::cpu {
namespace {

// Calls work(begin, end) on shares of the units of `count` elements.
template <class Work>
void share_units(uint64_t count, int threads, Work work) {
  const DefaultFloatingPoint environment;
  const uint64_t units = ceil_div(count, activation_unit);
  const Shares shares = Shares::of(units, threads_for(count, threads), min_elements / activation_unit);
  run(shares.workers, [&](int worker) { work(shares.begin(worker), shares.end(worker)); });
}

}  // namespace

void activate(const Activation& activation, const Steps& steps, const Element& element, const ActivateTask& array,
              int threads) {
  const ActivateJob job{activation, steps, element, array};
  share_units(array.count, threads, [&](uint64_t begin, uint64_t end) { isa().activations.activate(job, begin, end); });
}

void step_grad(const Steps& steps, const Element& element, const StepGradTask& array, int threads) {
  const StepGradJob job{steps, element, array};
  share_units(array.count, threads,
              [&](uint64_t begin, uint64_t end) { isa().activations.step_grad(job, begin, end); });
}

}  // namespace arrcomp::cpu
