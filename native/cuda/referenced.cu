#include <algorithm>

#include "cuda/call.h"
#include "cuda/launch.h"
#include "cuda/predicted_launch.h"
#include "cuda/referenced.h"
#include "cuda/referenced_launch.h"
#include "cuda/referenced_scratch.h"

namespace arrcomp::cuda {

uint64_t referenced_encode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts,
                                         const Device& device) {
  const bool are_bits = codes_are_bits(group_settings(codec), element);
  const Element code = code_element(element, are_bits);
  uint64_t bytes = 0;
  for (const uint64_t count : counts) {
    const ReferenceGroups groups(element, code, count);
    const auto encoder = [&](const Element& its, uint64_t its_groups) {
      const Kernels& kernels = kernels_of_element(its);
      return encoder_shape(kernels, its_groups, device).all_warps() * kernels.memory_bytes;
    };
    const uint64_t memory = std::max({encoder(element, groups.elements), encoder(code, groups.codes),
                                      encoder(gap_element_of(count), std::max<uint64_t>(groups.gaps, 1))});
    bytes = std::max(bytes, ReferenceScratch(element, are_bits, count).memory + memory);
  }
  return bytes;
}

Status encode_referenced(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays,
                         uint64_t* lengths, void* scratch, cudaStream_t stream, const Device& device) {
  for (size_t i = 0; i < arrays.size(); ++i)
    reference_kernels_of_element(element).encode({device, stream}, codec, element, arrays[i], lengths + i, scratch);
  return launched("launching the encoder of an array with a reference");
}

uint64_t referenced_decode_scratch_bytes(const Element& element, std::span<const uint64_t> counts) {
  uint64_t bytes = 0;
  for (const uint64_t count : counts) bytes = std::max(bytes, ReferenceDecodeScratch(element, count).end);
  return bytes;
}

Status decode_referenced(const Element& element, std::span<const DecodeTask> arrays, uint32_t* status, void* scratch,
                         cudaStream_t stream, const Device& device) {
  const cudaError_t error = cudaMemsetAsync(status, 0, sizeof *status, stream);
  if (error != cudaSuccess) return fail(Status::failed, "setting the status", error);
  for (const DecodeTask& task : arrays)
    reference_kernels_of_element(element).decode({device, stream}, element, task, status, scratch);
  return launched("launching the decoder of an array with a reference");
}

}  // namespace arrcomp::cuda
