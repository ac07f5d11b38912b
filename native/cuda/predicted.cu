#include <algorithm>

#include "cuda/call.h"
#include "cuda/launch.h"
#include "cuda/predicted.h"
#include "cuda/predicted_launch.h"
#include "cuda/predicted_scratch.h"

namespace arrcomp::cuda {

Status predicted_encode_scratch_bytes(const Element& element, std::span<const uint64_t> counts, const Device& device,
                                      uint64_t& bytes) {
  const Kernels &kernels = kernels_of_element(element), &of_codes = kernels_of_element(code_element_of(element)),
                &of_masks = kernels_of_element(MaskGrid::plan_of(0).element);
  bytes = 0;
  for (const uint64_t count : counts) {
    if (count < least_predicted) continue;
    const PredictedGroups groups(element, count);
    const uint64_t encoder = encoder_shape(kernels, groups.elements, device).all_warps() * kernels.memory_bytes,
                   codes =
                       encoder_shape(*of_codes.codes, groups.codes, device).all_warps() * of_codes.codes->memory_bytes;
    const uint64_t masks = encoder_shape(of_masks, groups.elements, device).all_warps() * of_masks.memory_bytes;
    bytes = std::max(bytes, PredictedScratch(element, count).memory + std::max({encoder, codes, masks}));
  }
  return Status::ok;
}

Status encode_predicted(const Codec& codec, const Element& element, const EncodeTask& task, uint64_t* length,
                        void* scratch, cudaStream_t stream, const Device& device) {
  predicted_kernels_of_element(element).encode({device, stream}, codec, element, task, length, scratch);
  return launched("launching the encoder of a predicted array");
}

uint64_t predicted_decode_scratch_bytes(const Element& element, std::span<const uint64_t> counts) {
  uint64_t bytes = 0;
  for (const uint64_t count : counts) bytes = std::max(bytes, predicted_decode_bytes(element, count));
  return bytes;
}

Status decode_predicted(const Element& element, std::span<const DecodeTask> arrays, uint32_t* status, void* scratch,
                        cudaStream_t stream, const Device& device) {
  const cudaError_t error = cudaMemsetAsync(status, 0, sizeof *status, stream);
  if (error != cudaSuccess) return fail(Status::failed, "setting the status", error);
  for (const DecodeTask& task : arrays)
    predicted_kernels_of_element(element).decode({device, stream}, element, task, status, scratch);
  return launched("launching the decoder of a predicted array");
}

}  // namespace arrcomp::cuda
