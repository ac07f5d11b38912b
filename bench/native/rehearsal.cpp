// The GPU's back end and what the programs call of CUDA's runtime, by the CPU: so that every line of the programs runs
// where there is no GPU. A device's memory is the host's, and work is done when a call returns. With REHEARSED_FAULT in
// the environment a bit of each payload is wrong, which the programs must find.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "backend.h"

namespace arrcomp::cuda {
namespace {

// Sets the status as kernels do.
Status tell(uint32_t* status, bool is_corrupt) {
  *status = is_corrupt ? 1 : 0;
  return Status::ok;
}

}  // namespace

bool is_built() { return true; }
int device_count() { return 1; }
const char* last_error() { return "none: this is a rehearsal"; }

Status encode_scratch_bytes(const Codec&, const Element&, std::span<const uint64_t> counts, int, uint64_t& bytes) {
  bytes = 8 * counts.size();
  return Status::ok;
}

Status encode(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
              const Seed& seed, void*, void*, int) {
  cpu::encode(codec, element, arrays, lengths, seed, 0);
  if (std::getenv("REHEARSED_FAULT") != nullptr)
    for (size_t i = 0; i < arrays.size(); ++i)
      if (lengths[i] > 0) arrays[i].payload[lengths[i] - 1] ^= 1;
  return Status::ok;
}

uint64_t decode_scratch_bytes(const Codec&, const Element&, std::span<const uint64_t> counts) {
  return 8 * counts.size();
}

Status decode(const Codec& codec, const Element& element, std::span<const DecodeTask> arrays, uint32_t* status, void*,
              void*, int) {
  return tell(status, cpu::decode(codec, element, arrays, 0) < arrays.size());
}

uint64_t accumulate_scratch_bytes(size_t terms) { return 8 * terms; }

Status accumulate(const Sum& sum, const void* start, void* target, uint32_t* status, void*, void*, int) {
  return tell(status, cpu::accumulate(sum, start, target, 0) < sum.terms.size());
}

Status encode_sum_scratch_bytes(const Codec&, const Codec&, const Element&, size_t terms, uint64_t, int,
                                uint64_t& bytes) {
  bytes = 8 * terms;
  return Status::ok;
}

Status encode_sum(const Sum& sum, const Codec& codec, uint8_t* payload, uint64_t* length, const Seed& seed,
                  uint32_t* status, void*, void*, int) {
  return tell(status, cpu::encode_sum(sum, codec, payload, length, seed, 0) < sum.terms.size());
}

Status activate(const Activation& activation, const Steps& steps, const Element& element, const ActivateTask& array,
                void*, int) {
  cpu::activate(activation, steps, element, array, 0);
  return Status::ok;
}

Status step_grad(const Steps& steps, const Element& element, const StepGradTask& array, void*, int) {
  cpu::step_grad(steps, element, array, 0);
  return Status::ok;
}

}  // namespace arrcomp::cuda

// ---- CUDA's runtime

namespace {

using Clock = std::chrono::steady_clock;
struct Event {
  Clock::time_point at;
};

// The copies that only keep the device busy, which nobody reads.
constexpr size_t large = size_t{1} << 28;

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (bytes < large) std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (bytes < large) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the rehearsal"; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  reinterpret_cast<Event*>(event)->at = Clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto passed = reinterpret_cast<Event*>(end)->at - reinterpret_cast<Event*>(start)->at;
  *milliseconds = std::chrono::duration<float, std::milli>(passed).count();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "no GPU: a rehearsal");
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1 << 20;
  return cudaSuccess;
}

}  // extern "C"
