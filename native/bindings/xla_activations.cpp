// The custom calls for activation functions, in batches of items of `elements` elements. Attributes: dtype_id, elements,
// function, parameters, steps (float64[]) and threads.
//
// arrcomp_activate     operand: arrays. Results: their values, and where steps are kept uint8[batch, step bytes].
// arrcomp_step_grad  operands: gradients, and what was kept of the arrays. Result: the arrays' gradients.
#include "bindings/messages.h"
#include "bindings/xla_call.h"
#include "bindings/xla_ffi.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

namespace ffi = xla::ffi;
using Numbers = ffi::Span<const double>;

std::span<const double> span_of(Numbers numbers) { return {numbers.begin(), numbers.size()}; }

Steps steps_of(Numbers numbers) {
  Steps steps;
  const std::string message = read_steps(span_of(numbers), steps);
  if (!message.empty()) refuse(message);
  return steps;
}

// The attributes of both calls.
struct StepsCall {
  Element element;
  uint64_t count;  // elements of an item
  Steps steps;
  int threads;

  static StepsCall of(int64_t dtype_id, int64_t count, Numbers steps, int64_t threads) {
    if (dtype_id < 1 || dtype_id >= dtype_count || !elements[dtype_id].is_quantizable)
      refuse(unexpected_float(dtype_id));
    if (count < 0 || count >= max_elements) refuse(unexpected_count("elements", count));
    check_threads(threads);
    return {elements[dtype_id], static_cast<uint64_t>(count), steps_of(steps), static_cast<int>(threads)};
  }

  uint64_t packed_bytes() const { return step_bytes(steps, count); }

  // How many items a buffer of elements has; 0 where there is nothing to do.
  uint64_t batch(ffi::AnyBuffer buffer) const {
    const uint64_t bytes = buffer.size_bytes(), item = count * (element.width / 8);
    if (item == 0 ? bytes != 0 : bytes % item != 0)
      refuse(expected("array", "a multiple of " + std::to_string(item) + " bytes", bytes));
    return item == 0 ? 0 : bytes / item;
  }

  Items arrays(ffi::AnyBuffer buffer, uint64_t batch) const {
    const uint64_t item = count * (element.width / 8);
    check_number("bytes of arrays", buffer.size_bytes(), batch * item);
    return {static_cast<uint8_t*>(buffer.untyped_data()), item};
  }

  Items packed(ffi::AnyBuffer buffer, uint64_t batch) const {
    const Items items = items_of("what is kept", buffer, ffi::DataType::U8, batch);
    if (batch > 0) check_number("bytes kept of an array", items.bytes, packed_bytes());
    return items;
  }
};

// Calls activate(ActivateTask) for each item.
template <class Activate>
void each_activating(const StepsCall& call, const Arguments& arguments, const Results& results, Activate activate) {
  check_number("operands", arguments.size(), 1);
  if (results.size() != 1) check_number("results", results.size(), 2);
  const uint64_t batch = call.batch(operand(arguments, 0));
  const Items source = call.arrays(operand(arguments, 0), batch), values = call.arrays(result(results, 0), batch);
  const Items packed = results.size() == 2 ? call.packed(result(results, 1), batch) : Items{nullptr, 0};
  for (uint64_t b = 0; b < batch; ++b)
    activate(ActivateTask{source[b], values[b], packed.data ? packed[b] : nullptr, call.count});
}

// Calls step_grad(StepGradTask) for each item.
template <class Multiply>
void each_product(const StepsCall& call, const Arguments& arguments, const Results& results, Multiply step_grad) {
  check_number("operands", arguments.size(), 2);
  check_number("results", results.size(), 1);
  const uint64_t batch = call.batch(operand(arguments, 0));
  const Items gradients = call.arrays(operand(arguments, 0), batch), target = call.arrays(result(results, 0), batch);
  const Items packed = call.packed(operand(arguments, 1), batch);
  for (uint64_t b = 0; b < batch; ++b) step_grad(StepGradTask{packed[b], gradients[b], target[b], call.count});
}

Activation activation_of(std::string_view function, Numbers parameters) {
  Activation activation;
  const std::string message = read_activation(function, span_of(parameters), activation);
  if (!message.empty()) refuse(message);
  return activation;
}

ffi::Error activate_on_host(Arguments arguments, Results results, int64_t dtype_id, int64_t elements, Numbers steps,
                            int64_t threads, std::string_view function, Numbers parameters) {
  return guarded([&] {
    const StepsCall call = StepsCall::of(dtype_id, elements, steps, threads);
    const Activation activation = activation_of(function, parameters);
    each_activating(call, arguments, results, [&](const ActivateTask& array) {
      cpu::activate(activation, call.steps, call.element, array, call.threads);
    });
  });
}

ffi::Error activate_on_device(cudaStream_t stream, int32_t index, ffi::ScratchAllocator, Arguments arguments,
                              Results results, int64_t dtype_id, int64_t elements, Numbers steps, int64_t threads,
                              std::string_view function, Numbers parameters) {
  return guarded([&] {
    const StepsCall call = StepsCall::of(dtype_id, elements, steps, threads);
    const Activation activation = activation_of(function, parameters);
    each_activating(call, arguments, results, [&](const ActivateTask& array) {
      check(cuda::activate(activation, call.steps, call.element, array, stream, index));
    });
  });
}

ffi::Error step_grad_on_host(Arguments arguments, Results results, int64_t dtype_id, int64_t elements, Numbers steps,
                             int64_t threads) {
  return guarded([&] {
    const StepsCall call = StepsCall::of(dtype_id, elements, steps, threads);
    each_product(call, arguments, results,
                 [&](const StepGradTask& array) { cpu::step_grad(call.steps, call.element, array, call.threads); });
  });
}

ffi::Error step_grad_on_device(cudaStream_t stream, int32_t index, ffi::ScratchAllocator, Arguments arguments,
                               Results results, int64_t dtype_id, int64_t elements, Numbers steps, int64_t threads) {
  return guarded([&] {
    const StepsCall call = StepsCall::of(dtype_id, elements, steps, threads);
    each_product(call, arguments, results, [&](const StepGradTask& array) {
      check(cuda::step_grad(call.steps, call.element, array, stream, index));
    });
  });
}

template <class Binding>
auto with_steps(Binding&& binding) {
  return std::forward<Binding>(binding)
      .RemainingArgs()
      .RemainingRets()
      .template Attr<int64_t>("dtype_id")
      .template Attr<int64_t>("elements")
      .template Attr<Numbers>("steps")
      .template Attr<int64_t>("threads");
}

template <class Binding>
auto with_function(Binding&& binding) {
  return std::forward<Binding>(binding)
      .template Attr<std::string_view>("function")
      .template Attr<Numbers>("parameters");
}

XLA_FFI_Error* host_activate(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_function(with_steps(ffi::Ffi::Bind())).To(activate_on_host);
  return handler->Call(frame);
}

XLA_FFI_Error* device_activate(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_function(with_steps(device_binding())).To(activate_on_device);
  return handler->Call(frame);
}

XLA_FFI_Error* host_step_grad(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_steps(ffi::Ffi::Bind()).To(step_grad_on_host);
  return handler->Call(frame);
}

XLA_FFI_Error* device_step_grad(XLA_FFI_CallFrame* frame) {
  static const auto handler = with_steps(device_binding()).To(step_grad_on_device);
  return handler->Call(frame);
}

}  // namespace

void add_activation_handlers(nb::dict& handlers) {
  handlers["arrcomp_activate"] = xla_target(host_activate, device_activate);
  handlers["arrcomp_step_grad"] = xla_target(host_step_grad, device_step_grad);
}

}  // namespace arrcomp
