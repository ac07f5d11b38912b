// Launches: what is enqueued for a call, the layout of the scratch memory, and the tables on each device.
#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/launch.h"
#include "cuda/set_up.cuh"

namespace arrcomp::cuda {
namespace {

constexpr uint64_t most_groups = ~0u - (1u << 20);  // a ticket has 32 bits, and every warp takes one too many

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

// Blocks of the encoder that the device holds at a time: asked once for each device, as small arrays cannot wait.
cudaError_t most_encode_blocks(const Kernels& kernels, int device, int& blocks) {
  static std::mutex mutex;
  static std::map<std::pair<const Kernels*, int>, int> known;
  const std::lock_guard lock(mutex);
  int& found = known[{&kernels, device}];
  cudaError_t error = cudaSuccess;
  if (found == 0) {
    int processors = 0, resident = 0;
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess) error = kernels.resident_blocks(resident);
    if (error == cudaSuccess) found = std::max(processors * resident, 1);
  }
  blocks = found;
  return error;
}

struct ScratchLayout {
  uint64_t arrays, entries, memory, end;  // the ticket counter is at the beginning

  ScratchLayout(uint64_t count, uint64_t groups, uint64_t memory_bytes) {
    arrays = 256;
    entries = round_up(arrays + count * sizeof(EncodeArray), 256);
    memory = round_up(entries + groups * sizeof(uint64_t), 256);
    end = memory + memory_bytes;
  }
};

uint64_t encoder_memory_bytes(const Kernels& kernels, int blocks) {
  return static_cast<uint64_t>(blocks) * warps_per_block * kernels.memory_bytes;
}

// Calls launch(batch) for all arrays, in batches of at most `most`.
template <uint64_t most, class Array, class Launch>
void for_each_batch(const Element& element, std::span<const Array> arrays, Launch launch) {
  uint64_t groups = 0;
  Batch<Array, most> batch;
  for (batch.first = 0; batch.first < arrays.size(); batch.first += most) {
    batch.count = std::min<uint64_t>(most, arrays.size() - batch.first);
    for (uint64_t i = 0; i < batch.count; ++i) {
      const Array& array = arrays[batch.first + i];
      batch.items[i] = {array, groups};
      groups += make_plan(element, array.count).groups;
    }
    launch(batch);
  }
}

template <class Array>
uint64_t groups_of_all(const Element& element, std::span<const Array> arrays) {
  uint64_t groups = 0;
  for (const Array& array : arrays) groups += make_plan(element, array.count).groups;
  return groups;
}

// What stands in the way of a call; ok where nothing does.
Status check(const DeviceGuard& guard, uint64_t groups) {
  if (guard.error() != cudaSuccess) return fail(Status::unavailable, "no such CUDA device", guard.error());
  if (groups <= most_groups) return Status::ok;
  failure = "the arrays of a call have " + std::to_string(groups) + " groups; at most " + std::to_string(most_groups) +
            " are allowed";
  return Status::failed;
}

}  // namespace

bool is_built() { return true; }

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // no driver, or no device: none to count
  return 0;
}

const char* last_error() { return failure.c_str(); }

Status encode_scratch_bytes(const Element& element, std::span<const uint64_t> counts, int device, uint64_t& bytes) {
  const DeviceGuard guard(device);
  uint64_t groups = 0;
  for (const uint64_t count : counts) groups += make_plan(element, count).groups;
  if (const Status status = check(guard, groups); status != Status::ok) return status;
  const Kernels& kernels = kernels_of_element(element);
  int blocks = 0;
  const cudaError_t error = most_encode_blocks(kernels, guard.device(), blocks);
  if (error != cudaSuccess) return fail(Status::failed, "asking for the device's properties", error);
  bytes = ScratchLayout(counts.size(), groups, encoder_memory_bytes(kernels, blocks_for(groups, blocks))).end;
  return Status::ok;
}

Status encode(const Element& element, const Settings& settings, std::span<const Encoding> arrays, uint64_t* lengths,
              void* scratch, void* stream_handle, int device) {
  const DeviceGuard guard(device);
  const uint64_t groups = groups_of_all(element, arrays);
  if (const Status status = check(guard, groups); status != Status::ok) return status;
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  const Kernels& kernels = kernels_of_element(element);
  int most = 0;
  cudaError_t error = most_encode_blocks(kernels, guard.device(), most);
  if (error != cudaSuccess) return fail(Status::failed, "asking for the device's properties", error);
  const Tables* tables = nullptr;
  error = load_tables(guard.device(), tables);
  if (error != cudaSuccess) return fail(Status::failed, "copying tables to the device", error);
  const int blocks = blocks_for(groups, most);
  const ScratchLayout layout(arrays.size(), groups, encoder_memory_bytes(kernels, blocks));
  auto* base = static_cast<uint8_t*>(scratch);
  const EncodeArguments arguments{reinterpret_cast<EncodeArray*>(base + layout.arrays),
                                  arrays.size(),
                                  groups,
                                  reinterpret_cast<uint32_t*>(base),
                                  reinterpret_cast<uint64_t*>(base + layout.entries),
                                  base + layout.memory,
                                  tables,
                                  element,
                                  settings,
                                  settings.rounded_bits(element)};
  const uint64_t entries_of_thread = 16;
  const auto set_up_blocks = static_cast<unsigned>(
      std::min<uint64_t>(std::max<uint64_t>(ceil_div(groups, set_up_threads * entries_of_thread), 1), 1024));
  const auto set_up = [&]<uint64_t n>(const Batch<Encoding, n>& batch) {
    set_up_encoding<n><<<set_up_blocks, set_up_threads, 0, stream>>>(batch, arguments, lengths);
  };
  if (arrays.size() == 1) {  // few arguments
    for_each_batch<1>(element, arrays, set_up);
  } else {
    for_each_batch<most_in_batch<Encoding>>(element, arrays, set_up);
  }
  if (blocks > 0 && settings.kind == BoundKind::relative) kernels.widen_range(arguments, blocks, stream);
  if (blocks > 0) kernels.encode(arguments, blocks, stream);
  error = cudaPeekAtLastError();
  return error == cudaSuccess ? Status::ok : fail(Status::failed, "launching the encoder", error);
}

uint64_t decode_scratch_bytes(size_t arrays) { return arrays > 1 ? arrays * sizeof(DecodeArray) : 0; }

Status decode(const Element& element, std::span<const Decoding> arrays, uint32_t* status, void* scratch,
              void* stream_handle, int device) {
  const DeviceGuard guard(device);
  const uint64_t groups = groups_of_all(element, arrays);
  if (const Status found = check(guard, groups); found != Status::ok) return found;
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  const Tables* tables = nullptr;
  cudaError_t error = load_tables(guard.device(), tables);
  if (error != cudaSuccess) return fail(Status::failed, "copying tables to the device", error);
  auto* const table = static_cast<DecodeArray*>(scratch);
  DecodeArguments arguments{table, {}, arrays.size(), groups, status, tables};
  if (arrays.size() > 1) {
    for_each_batch<most_in_batch<Decoding>>(element, arrays, [&]<uint64_t n>(const Batch<Decoding, n>& batch) {
      set_up_decoding<n><<<1, set_up_threads, 0, stream>>>(batch, element, table, status);
    });
  } else {
    error = cudaMemsetAsync(status, 0, sizeof *status, stream);
    if (error != cudaSuccess) return fail(Status::failed, "setting the status", error);
    if (arrays.empty()) return Status::ok;
    arguments.single = device_array(element, arrays[0], 0);
  }
  constexpr int most_blocks = 1 << 20;
  kernels_of_element(element).decode(arguments, std::max(blocks_for(groups, most_blocks), 1), stream);
  error = cudaPeekAtLastError();
  return error == cudaSuccess ? Status::ok : fail(Status::failed, "launching the decoder", error);
}

}  // namespace arrcomp::cuda
