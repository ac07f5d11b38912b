// Activation functions in the Python module.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings/checks.h"
#include "bindings/long_work.h"
#include "bindings/messages.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

using Numbers = std::vector<double>;

const Element& float_element_of(int dtype_id) {
  const Element& element = element_of(dtype_id);
  if (element.is_quantizable) return element;
  throw nb::value_error(unexpected_float(dtype_id).c_str());
}

Steps steps_of(const Numbers& numbers) {
  Steps steps;
  const std::string message = read_steps(numbers, steps);
  if (!message.empty()) throw nb::value_error(message.c_str());
  return steps;
}

Activation activation_of(const std::string& function, const Numbers& parameters) {
  Activation activation;
  const std::string message = read_activation(function, parameters, activation);
  if (!message.empty()) throw nb::value_error(message.c_str());
  return activation;
}

uint64_t step_bytes_of(const Numbers& steps, int64_t elements) {
  return step_bytes(steps_of(steps), checked_count(elements));
}

ActivateTask activating(uint64_t source, uint64_t values, uint64_t packed, int64_t elements) {
  return {pointer<const void>(source), pointer<void>(values), pointer<uint8_t>(packed), checked_count(elements)};
}

StepGradTask gradients_of(uint64_t packed, uint64_t gradients, uint64_t target, int64_t elements) {
  return {pointer<const uint8_t>(packed), pointer<const void>(gradients), pointer<void>(target),
          checked_count(elements)};
}

void activate_at(const std::string& function, const Numbers& parameters, const Numbers& steps, int dtype_id,
                 uint64_t source, uint64_t values, uint64_t packed, int64_t elements, int threads) {
  const Element& element = float_element_of(dtype_id);
  const Activation activation = activation_of(function, parameters);
  const Steps in_steps = steps_of(steps);
  const ActivateTask array = activating(source, values, packed, elements);
  without_gil(array.count, [&] { cpu::activate(activation, in_steps, element, array, threads); });
}

void step_grad_at(const Numbers& steps, int dtype_id, uint64_t packed, uint64_t gradients, uint64_t target,
                  int64_t elements, int threads) {
  const Element& element = float_element_of(dtype_id);
  const Steps in_steps = steps_of(steps);
  const StepGradTask array = gradients_of(packed, gradients, target, elements);
  without_gil(array.count, [&] { cpu::step_grad(in_steps, element, array, threads); });
}

void cuda_activate(const std::string& function, const Numbers& parameters, const Numbers& steps, int dtype_id,
                   uint64_t source, uint64_t values, uint64_t packed, int64_t elements, uint64_t stream, int device) {
  check_cuda(cuda::activate(activation_of(function, parameters), steps_of(steps), float_element_of(dtype_id),
                            activating(source, values, packed, elements), pointer<void>(stream), device));
}

void cuda_step_grad(const Numbers& steps, int dtype_id, uint64_t packed, uint64_t gradients, uint64_t target,
                    int64_t elements, uint64_t stream, int device) {
  check_cuda(cuda::step_grad(steps_of(steps), float_element_of(dtype_id),
                             gradients_of(packed, gradients, target, elements), pointer<void>(stream), device));
}

}  // namespace

void add_activations(nb::module_& m) {
  using nb::arg;
  m.def("step_bytes", &step_bytes_of, arg("steps"), arg("elements"));
  m.def("activate_at", &activate_at, arg("function"), arg("parameters"), arg("steps"), arg("dtype_id"), arg("source"),
        arg("values"), arg("packed"), arg("elements"), arg("threads"));
  m.def("step_grad_at", &step_grad_at, arg("steps"), arg("dtype_id"), arg("packed"), arg("gradients"), arg("target"),
        arg("elements"), arg("threads"));
  m.def("cuda_activate", &cuda_activate, arg("function"), arg("parameters"), arg("steps"), arg("dtype_id"),
        arg("source"), arg("values"), arg("packed"), arg("elements"), arg("stream"), arg("device"));
  m.def("cuda_step_grad", &cuda_step_grad, arg("steps"), arg("dtype_id"), arg("packed"), arg("gradients"),
        arg("target"), arg("elements"), arg("stream"), arg("device"));
}

}  // namespace arrcomp
