// Activation functions as kernels: a warp works on one unit after the other.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/activations.h"
#include "cuda/shared.cuh"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

// On a processor: leaves a thread 64 registers, or 80.
template <class Real>
constexpr int min_activation_blocks = sizeof(typename Real::scalar) == 8 ? 6 : 8;

struct ActivateArguments {
  Activation activation;
  Steps steps;
  Element element;
  ActivateTask array;
};

struct StepsArguments {
  Steps steps;
  Element element;
  StepGradTask array;
};

template <class Visit>
ARRCOMP_INLINE void each_unit(uint64_t count, Visit visit) {
  for (uint64_t first = warp_of_grid() * activation_unit; first < count; first += warps_of_grid() * activation_unit) {
    const uint64_t left = count - first;
    visit(ActivationUnit{first, static_cast<int>(left < activation_unit ? left : activation_unit)});
  }
}

template <class Real>
__global__ void __launch_bounds__(threads_per_block, min_activation_blocks<Real>)
    activate_kernel(const __grid_constant__ ActivateArguments a) {
  const Steps& steps = in_shared_memory(a.steps);
  each_unit(a.array.count,
            [&](ActivationUnit unit) { activate_unit<Real>(a.activation, steps, a.element, a.array, unit); });
}

template <class Real>
__global__ void __launch_bounds__(threads_per_block, min_activation_blocks<Real>)
    step_grad_kernel(const __grid_constant__ StepsArguments a) {
  const Steps& steps = in_shared_memory(a.steps);
  each_unit(a.array.count, [&](ActivationUnit unit) { step_grad_unit<Real>(steps, a.element, a.array, unit); });
}

}  // namespace arrcomp::cuda
