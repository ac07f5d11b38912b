// What all calls of the CUDA back end share: the caller's device, and how failures are told.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

// Keeps the text for last_error.
Status fail(Status status, const char* what, cudaError_t error);

// Failed where a launch of this call did, as `what` names it.
inline Status launched(const char* what) {
  const cudaError_t error = cudaPeekAtLastError();
  return error == cudaSuccess ? Status::ok : fail(Status::failed, what, error);
}

inline Status check(const DeviceGuard& guard) {
  return guard.error() == cudaSuccess ? Status::ok : fail(Status::unavailable, guard.what(), guard.error());
}

}  // namespace arrcomp::cuda
