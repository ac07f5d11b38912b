// GPUs as calls need them: made ready once in each context, before anything is enqueued there.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "cuda/arguments.h"

namespace arrcomp::cuda {

// A kernel that is launched. All of them stand in one list, which launch.cuh makes: none can be forgotten.
struct ListedKernel {
  ListedKernel(const void* kernel, uint64_t shared_bytes_of_warp);

  const void* function;
  int shared_bytes;  // that launches ask for, of a block of warps_per_block
  size_t index;      // in the list
  const ListedKernel* next;
};

// A device in one of its contexts. Stays valid as long as the process.
struct Device {
  int index = 0;
  int processors = 0;
  const Tables* tables = nullptr;    // in its memory
  std::vector<int> resident_blocks;  // of each listed kernel, with warps_per_block, on a processor at a time

  // Blocks of this kernel that the device holds at a time.
  int resident(const ListedKernel& kernel) const { return processors * resident_blocks[kernel.index]; }
};

// Launches on a stream of a device.
struct StreamOfDevice {
  const Device& device;
  cudaStream_t stream;
};

// Makes a device the current one, and ready, as long as this lives; then the thread's context, which may be none, is
// current again. No context is made on another device: cudaSetDevice would make one on the device that a thread goes
// back to, where none was before.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  cudaError_t error() const { return error_; }
  const char* what() const { return what_; }  // failed
  const Device& device() const { return *device_; }

 private:
  bool failed(cudaError_t error, const char* what);

  const Device* device_ = nullptr;
  const char* what_ = "";
  int pushed_ = -1;  // the device whose context is on the thread's stack; -1 for none
  cudaError_t error_ = cudaSuccess;
};

}  // namespace arrcomp::cuda
