// Launches of codecs that code groups: what is enqueued for a call, and the layout of the scratch memory. Bucketed codecs
// are handed on.
#include <algorithm>
#include <cstddef>
#include <string>

#include "cuda/buckets.h"
#include "cuda/call.h"
#include "cuda/coded_buckets.h"
#include "cuda/launch.h"
#include "cuda/lists.cuh"
#include "cuda/predicted.h"
#include "cuda/referenced.h"
#include "stream/prediction_trial.h"

namespace arrcomp::cuda {
namespace {

constexpr uint64_t max_groups = ~0u - (1u << 20);  // a ticket has 32 bits, and every warp takes one too many

thread_local std::string failure;

struct ScratchLayout {
  uint64_t arrays, entries, memory, end;  // the ticket counter is at the beginning

  ScratchLayout(uint64_t count, uint64_t groups, uint64_t memory_bytes) {
    arrays = 256;
    entries = round_up(arrays + count * sizeof(EncodeArray), 256);
    memory = round_up(entries + groups * sizeof(uint64_t), 256);
    end = memory + memory_bytes;
  }
};

Status check(uint64_t groups) {
  if (groups <= max_groups) return Status::ok;
  failure =
      "arrays: expected at most " + std::to_string(max_groups) + " groups in a call, got " + std::to_string(groups);
  return Status::failed;
}

void launch_set_up(const EncodeArguments& arguments, std::span<const EncodeTask> arrays, uint64_t* lengths,
                   cudaStream_t stream) {
  constexpr uint64_t entries_of_thread = 16, max_set_up_blocks = 1024;
  const uint64_t wanted = ceil_div(arguments.groups, set_up_threads * entries_of_thread);
  const Shape shape = set_up_shape(static_cast<int>(std::clamp<uint64_t>(wanted, 1, max_set_up_blocks)));
  const auto enqueue = [&]<uint64_t n>(const Batch<EncodeTask, n>& batch) {
    launch<set_up_encoding<n>>(shape, stream, batch, arguments, lengths);
  };
  const GroupTiling tiling{arguments.element};
  if (arrays.size() == 1) {  // few arguments
    for_each_batch<1>(tiling, arrays, enqueue);
  } else {
    for_each_batch<max_in_batch<EncodeTask>>(tiling, arrays, enqueue);
  }
}

Status encode_groups(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
                     const Seed& seed, void* scratch, cudaStream_t stream, const Device& device);

// Of a codec with a predictor: one array after the other.
Status encode_each(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
                   const Seed& seed, void* scratch, cudaStream_t stream, const Device& device) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const EncodeTask& task = arrays[i];
    const Status status =
        may_be_predicted(element, group_settings(codec), task.axes, task.count)
            ? encode_predicted(codec, element, task, lengths + i, scratch, stream, device)
            : encode_groups(codec, element, arrays.subspan(i, 1), lengths + i, seed, scratch, stream, device);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

Status encode_groups(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
                     const Seed& seed, void* scratch, cudaStream_t stream, const Device& device) {
  const GroupSettings settings = group_settings(codec);
  const BaseDeltaSettings* const base_delta = base_delta_of(codec);
  const uint64_t groups = units_of_all(GroupTiling{element}, arrays);
  if (const Status status = check(groups); status != Status::ok) return status;
  const Kernels& kernels = kernels_of_element(element);
  const Shape shape = encoder_shape(kernels, groups, device);
  const ScratchLayout layout(arrays.size(), groups, shape.all_warps() * kernels.memory_bytes);
  auto* base = static_cast<uint8_t*>(scratch);
  const EncodeArguments arguments{reinterpret_cast<EncodeArray*>(base + layout.arrays),
                                  arrays.size(),
                                  groups,
                                  reinterpret_cast<uint32_t*>(base),
                                  reinterpret_cast<uint64_t*>(base + layout.entries),
                                  base + layout.memory,
                                  device.tables,
                                  element,
                                  settings,
                                  settings.rounded_bits(element),
                                  base_delta != nullptr ? *base_delta : BaseDeltaSettings{},
                                  seed};
  launch_set_up(arguments, arrays, lengths, stream);
  if (groups > 0 && settings.kind == BoundKind::relative)
    kernels.widen_range(arguments, shape_for(device, groups), stream);
  const auto encode = base_delta != nullptr ? kernels.encode_base_delta : kernels.encode;
  if (groups > 0) encode(arguments, shape, stream);
  return launched("launching the encoder");
}

Status decode_groups(const Codec& codec, const Element& element, std::span<const DecodeTask> arrays, uint32_t* status,
                     void* scratch, cudaStream_t stream, const Device& device) {
  DecodeArguments arguments{{}, status, device.tables};
  const cudaError_t error = list_to_decode(GroupTiling{element}, arrays, status, scratch, stream, arguments.arrays);
  if (error != cudaSuccess) return fail(Status::failed, "listing the arrays", error);
  const Shape shape = shape_for(device, std::max<uint64_t>(arguments.arrays.units, 1));
  const Kernels& kernels = kernels_of_element(element);
  const auto decode = base_delta_of(codec) != nullptr ? kernels.decode_base_delta : kernels.decode;
  decode(arguments, shape, stream);
  return launched("launching the decoder");
}

}  // namespace

Status fail(Status status, const char* what, cudaError_t error) {
  failure = std::string(what) + ": " + cudaGetErrorString(error);
  cudaGetLastError();  // the error is reported: it does not stay for the next caller
  return status;
}

bool is_built() { return true; }

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // no driver, or no device: none to count
  return 0;
}

const char* last_error() { return failure.c_str(); }

Status encode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts, int device,
                            uint64_t& bytes) {
  const DeviceGuard guard(device);
  if (const Status status = check(guard); status != Status::ok) return status;
  if (BucketLayout layout; bucket_layout(codec, element, layout)) {
    if (layout.byte_codes) return coded_encode_scratch_bytes(layout, element, counts, bytes);
    bytes = bucket_scratch_bytes(layout, element, counts);
    return Status::ok;
  }
  if (has_reference(codec)) {
    bytes = referenced_encode_scratch_bytes(codec, element, counts, guard.device());
    return Status::ok;
  }
  uint64_t groups = 0;
  for (const uint64_t count : counts) groups += make_plan(element, count).groups;
  if (const Status status = check(groups); status != Status::ok) return status;
  const Kernels& kernels = kernels_of_element(element);
  const Shape shape = encoder_shape(kernels, groups, guard.device());
  bytes = ScratchLayout(counts.size(), groups, shape.all_warps() * kernels.memory_bytes).end;
  if (!may_hold_predicted(codec, element)) return Status::ok;
  uint64_t predicted = 0;
  const Status status = predicted_encode_scratch_bytes(element, counts, guard.device(), predicted);
  bytes = std::max(bytes, predicted);
  return status;
}

Status encode(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays, uint64_t* lengths,
              const Seed& seed, void* scratch, void* stream_handle, int device) {
  const DeviceGuard guard(device);
  if (const Status status = check(guard); status != Status::ok) return status;
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  if (BucketLayout layout; bucket_layout(codec, element, layout)) {
    if (layout.byte_codes)
      return encode_coded_buckets(codec, layout, element, arrays, lengths, seed, scratch, stream, guard.device());
    return encode_buckets(codec, layout, element, arrays, lengths, seed, scratch, stream, guard.device());
  }
  if (has_reference(codec)) return encode_referenced(codec, element, arrays, lengths, scratch, stream, guard.device());
  const auto encode_all = may_hold_predicted(codec, element) ? encode_each : encode_groups;
  return encode_all(codec, element, arrays, lengths, seed, scratch, stream, guard.device());
}

uint64_t decode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts) {
  if (BucketLayout layout; bucket_layout(codec, element, layout) && layout.byte_codes)
    return coded_decode_scratch_bytes(layout, element, counts);
  if (has_reference(codec)) return referenced_decode_scratch_bytes(element, counts);
  if (may_hold_predicted(codec, element)) return predicted_decode_scratch_bytes(element, counts);
  return counts.size() > 1 ? counts.size() * std::max(sizeof(DecodeArray), sizeof(BucketDecodeArray)) : 0;
}

Status decode(const Codec& codec, const Element& element, std::span<const DecodeTask> arrays, uint32_t* status,
              void* scratch, void* stream_handle, int device) {
  const DeviceGuard guard(device);
  if (const Status found = check(guard); found != Status::ok) return found;
  const auto stream = static_cast<cudaStream_t>(stream_handle);
  if (arrays.empty()) {
    const cudaError_t error = cudaMemsetAsync(status, 0, sizeof *status, stream);
    return error == cudaSuccess ? Status::ok : fail(Status::failed, "setting the status", error);
  }
  if (BucketLayout layout; bucket_layout(codec, element, layout)) {
    if (layout.byte_codes)
      return decode_coded_buckets(codec, layout, element, arrays, status, scratch, stream, guard.device());
    return decode_buckets(codec, layout, element, arrays, status, scratch, stream, guard.device());
  }
  if (has_reference(codec)) return decode_referenced(element, arrays, status, scratch, stream, guard.device());
  if (may_hold_predicted(codec, element))
    return decode_predicted(element, arrays, status, scratch, stream, guard.device());
  return decode_groups(codec, element, arrays, status, scratch, stream, guard.device());
}

}  // namespace arrcomp::cuda
