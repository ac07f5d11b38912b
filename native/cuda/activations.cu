// Launches of activation functions.
#include "cuda/activation_kernels.cuh"
#include "cuda/call.h"
#include "cuda/launch.h"

namespace arrcomp::cuda {
namespace {

// Calls launch(Real{}, blocks, stream) with the elements' arithmetic type on the caller's device.
template <class Launch>
Status launch_units(const Element& element, uint64_t count, void* stream, int device, Launch launch) {
  const DeviceGuard guard(device);
  if (const Status found = check(guard); found != Status::ok) return found;
  if (count == 0) return Status::ok;
  const int blocks = blocks_for(ceil_div(count, activation_unit), max_blocks);
  visit_real(element, [&](auto real) { launch(real, blocks, static_cast<cudaStream_t>(stream)); });
  return launched("launching an activation");
}

}  // namespace

Status activate(const Activation& activation, const Steps& steps, const Element& element, const ActivateTask& array,
                void* stream, int device) {
  return launch_units(element, array.count, stream, device, [&](auto real, int blocks, cudaStream_t on) {
    activate_kernel<decltype(real)><<<blocks, threads_per_block, 0, on>>>({activation, steps, element, array});
  });
}

Status step_grad(const Steps& steps, const Element& element, const StepGradTask& array, void* stream, int device) {
  return launch_units(element, array.count, stream, device, [&](auto real, int blocks, cudaStream_t on) {
    step_grad_kernel<decltype(real)><<<blocks, threads_per_block, 0, on>>>({steps, element, array});
  });
}

}  // namespace arrcomp::cuda
