// The codecs as XLA calls them: custom calls of compiled JAX programs, on the host and on CUDA devices.
#pragma once
#include <nanobind/nanobind.h>

namespace arrcomp {

// {target's name: {platform's name: capsule of an XLA_FFI_Handler}}; the calls are described in xla_ffi.cpp.
nanobind::dict xla_handlers();

}  // namespace arrcomp
