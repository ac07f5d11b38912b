// Launches of activation functions.
#include "cuda/activation_kernels.cuh"
#include "cuda/call.h"
#include "cuda/launch.cuh"

namespace arrcomp::cuda {
namespace {

// Calls enqueue(Real{}, shape, stream) with the elements' arithmetic type on the caller's device.
template <class Enqueue>
Status launch_units(const Element& element, uint64_t count, void* stream, int device, Enqueue enqueue) {
  const DeviceGuard guard(device);
  if (const Status found = check(guard); found != Status::ok) return found;
  if (count == 0) return Status::ok;
  const Shape shape = shape_for(guard.device(), ceil_div(count, activation_unit));
  visit_real(element, [&](auto real) { enqueue(real, shape, static_cast<cudaStream_t>(stream)); });
  return launched("launching an activation");
}

}  // namespace

Status activate(const Activation& activation, const Steps& steps, const Element& element, const ActivateTask& array,
                void* stream, int device) {
  return launch_units(element, array.count, stream, device, [&](auto real, const Shape& shape, cudaStream_t on) {
    launch<activate_kernel<decltype(real)>>(shape, on, {activation, steps, element, array});
  });
}

Status step_grad(const Steps& steps, const Element& element, const StepGradTask& array, void* stream, int device) {
  return launch_units(element, array.count, stream, device, [&](auto real, const Shape& shape, cudaStream_t on) {
    launch<step_grad_kernel<decltype(real)>>(shape, on, {steps, element, array});
  });
}

}  // namespace arrcomp::cuda
