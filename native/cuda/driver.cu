// Launches: what is enqueued for a call, the layout of the scratch memory, and the tables on each device.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/head.h"
#include "cuda/launch.h"

namespace arrcomp::cuda {
namespace {

__device__ Tables device_tables;

thread_local std::string failure;

Status fail(Status status, const char* what, cudaError_t error) {
  failure = std::string(what) + ": " + cudaGetErrorString(error);
  cudaGetLastError();  // the error is reported: it does not stay for the next caller
  return status;
}

// The caller's device is the current one again at the end of a call.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess) error_ = cudaSetDevice(device);
  }
  ~DeviceGuard() {
    if (error_ == cudaSuccess) cudaSetDevice(before_);
  }
  cudaError_t error() const { return error_; }

 private:
  int before_ = 0;
  cudaError_t error_;
};

// Copies the tables to the current device, once. They are in place when this returns, whatever stream uses them.
cudaError_t load_tables(int device, const Tables*& on_device) {
  static std::mutex mutex;
  static std::vector<bool> loaded;
  const std::lock_guard lock(mutex);
  void* address = nullptr;
  cudaError_t error = cudaGetSymbolAddress(&address, device_tables);
  if (error != cudaSuccess) return error;
  on_device = static_cast<const Tables*>(address);
  if (loaded.size() <= static_cast<size_t>(device)) loaded.resize(static_cast<size_t>(device) + 1);
  if (loaded[static_cast<size_t>(device)]) return cudaSuccess;
  // Another stream of this thread may be capturing a graph: this copy is no part of it.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaStream_t stream;
  error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) {
    error = cudaMemcpyAsync(address, &tables(), sizeof(Tables), cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  cudaThreadExchangeStreamCaptureMode(&mode);
  loaded[static_cast<size_t>(device)] = error == cudaSuccess;
  return error;
}

const Kernels& kernels_of_element(const Element& element) {
  switch (element.width) {
    case 8: return bits8_kernels;
    case 16: return element.exponent_bits == 8 ? bfloat16_kernels : float16_kernels;
    case 32: return float32_kernels;
    default: return float64_kernels;
  }
}

int blocks_for(uint64_t groups, int most) {
  return static_cast<int>(std::min<uint64_t>(ceil_div(groups, warps_per_block), static_cast<uint64_t>(most)));
}

cudaError_t most_encode_blocks(const Kernels& kernels, int device, int& blocks) {
  int processors = 0, resident = 0;
  cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = kernels.resident_blocks(resident);
  blocks = std::max(processors * resident, 1);
  return error;
}

struct ScratchLayout {
  uint64_t entries, memory, end;

  ScratchLayout(const Plan& plan, const Kernels& kernels, int blocks) {
    entries = round_up(sizeof(ScratchHead), 256);
    memory = round_up(entries + plan.groups * sizeof(uint64_t), 256);
    end = memory + static_cast<uint64_t>(blocks) * warps_per_block * kernels.memory_bytes;
  }
};

__global__ void head_kernel(EncodeArguments arguments, Settings settings) { write_head(arguments, settings); }

}  // namespace

bool is_built() { return true; }

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // no driver, or no device: none to count
  return 0;
}

const char* last_error() { return failure.c_str(); }

Status scratch_bytes(const Plan& plan, int device, uint64_t& bytes) {
  const DeviceGuard guard(device);
  if (guard.error() != cudaSuccess) return fail(Status::unavailable, "no such CUDA device", guard.error());
  const Kernels& kernels = kernels_of_element(plan.element);
  int blocks = 0;
  const cudaError_t error = most_encode_blocks(kernels, device, blocks);
  if (error != cudaSuccess) return fail(Status::failed, "asking for the device's properties", error);
  bytes = ScratchLayout(plan, kernels, blocks_for(plan.groups, blocks)).end;
  return Status::ok;
}

Status encode(const Plan& plan, const Settings& settings, const void* source, uint8_t* payload, void* scratch,
              void* stream_handle, int device) {
  const DeviceGuard guard(device);
  if (guard.error() != cudaSuccess) return fail(Status::unavailable, "no such CUDA device", guard.error());
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  const Kernels& kernels = kernels_of_element(plan.element);
  int most = 0;
  cudaError_t error = most_encode_blocks(kernels, device, most);
  if (error != cudaSuccess) return fail(Status::failed, "asking for the device's properties", error);
  const Tables* tables = nullptr;
  error = load_tables(device, tables);
  if (error != cudaSuccess) return fail(Status::failed, "copying tables to the device", error);
  const int blocks = blocks_for(plan.groups, most);
  const ScratchLayout layout(plan, kernels, blocks);
  auto* base = static_cast<uint8_t*>(scratch);
  const int rounded = settings.kind == BoundKind::pointwise ? droppable_bits(plan.element, settings.bound) : 0;
  const EncodeArguments arguments{plan,
                                  source,
                                  payload,
                                  reinterpret_cast<ScratchHead*>(base),
                                  reinterpret_cast<uint64_t*>(base + layout.entries),
                                  base + layout.memory,
                                  tables,
                                  rounded,
                                  settings.fast};
  error = cudaMemsetAsync(scratch, 0, layout.memory, stream);
  if (error != cudaSuccess) return fail(Status::failed, "clearing the scratch memory", error);
  if (blocks > 0 && settings.kind == BoundKind::relative) kernels.widen_range(arguments, blocks, stream);
  head_kernel<<<1, 1, 0, stream>>>(arguments, settings);
  if (blocks > 0) kernels.encode(arguments, blocks, stream);
  error = cudaPeekAtLastError();
  return error == cudaSuccess ? Status::ok : fail(Status::failed, "launching the encoder", error);
}

Status decode(const Plan& plan, const uint8_t* payload, uint64_t length, void* target, uint32_t* status,
              void* stream_handle, int device) {
  const DeviceGuard guard(device);
  if (guard.error() != cudaSuccess) return fail(Status::unavailable, "no such CUDA device", guard.error());
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  const bool long_enough = plan.groups == 0 ? length == payload_head_bytes : length >= plan.groups_offset();
  cudaError_t error = cudaMemsetAsync(status, long_enough ? 0 : 1, sizeof *status, stream);
  if (error != cudaSuccess) return fail(Status::failed, "setting the status", error);
  if (!long_enough || plan.groups == 0) return Status::ok;
  const Tables* tables = nullptr;
  error = load_tables(device, tables);
  if (error != cudaSuccess) return fail(Status::failed, "copying tables to the device", error);
  const DecodeArguments arguments{plan, payload, length, target, status, tables};
  constexpr int most_blocks = 1 << 20;
  kernels_of_element(plan.element).decode(arguments, blocks_for(plan.groups, most_blocks), stream);
  error = cudaPeekAtLastError();
  return error == cudaSuccess ? Status::ok : fail(Status::failed, "launching the decoder", error);
}

}  // namespace arrcomp::cuda
