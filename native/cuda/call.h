// What all calls of the CUDA back end share: the caller's device, and how failures are told.
#pragma once
#include <cuda_runtime_api.h>

#include "backend.h"

namespace arrcomp::cuda {

// Keeps the text for last_error.
Status fail(Status status, const char* what, cudaError_t error);

// Failed where a launch of this call did, as `what` names it.
inline Status launched(const char* what) {
  const cudaError_t error = cudaPeekAtLastError();
  return error == cudaSuccess ? Status::ok : fail(Status::failed, what, error);
}

// The caller's device is the current one again at the end of a call.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    error_ = cudaGetDevice(&before_);
    device_ = device == current_device ? before_ : device;
    if (error_ == cudaSuccess && device_ != before_) error_ = cudaSetDevice(device_);
  }
  ~DeviceGuard() {
    if (error_ == cudaSuccess && device_ != before_) cudaSetDevice(before_);
  }
  int device() const { return device_; }
  cudaError_t error() const { return error_; }

 private:
  int before_ = 0, device_ = 0;
  cudaError_t error_;
};

inline Status check(const DeviceGuard& guard) {
  if (guard.error() == cudaSuccess) return Status::ok;
  return fail(Status::unavailable, "no such CUDA device", guard.error());
}

}  // namespace arrcomp::cuda
