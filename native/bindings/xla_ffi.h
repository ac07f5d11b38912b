// The codecs as XLA calls them: custom calls of compiled JAX programs, on the host and on CUDA devices.
#pragma once
#include <nanobind/nanobind.h>

#include "xla/ffi/api/c_api.h"

namespace arrcomp {

// {target's name: {platform's name: capsule of an XLA_FFI_Handler}}; the calls are described in xla_ffi.cpp.
nanobind::dict xla_handlers();

// {platform's name: capsule} of a target.
nanobind::dict xla_target(XLA_FFI_Handler* host, XLA_FFI_Handler* device);

// Adds the targets of xla_sums.cpp, and of xla_activations.cpp.
void add_sum_handlers(nanobind::dict& handlers);
void add_activation_handlers(nanobind::dict& handlers);

}  // namespace arrcomp
