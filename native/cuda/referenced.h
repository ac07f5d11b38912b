// Calls of the CUDA back end for arrays with a reference, on the current device. As backend.h says of its functions.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

uint64_t referenced_encode_scratch_bytes(const Codec& codec, const Element& element, std::span<const uint64_t> counts,
                                         const Device& device);

// Arrays are encoded, and decoded, one after the other.
Status encode_referenced(const Codec& codec, const Element& element, std::span<const EncodeTask> arrays,
                         uint64_t* lengths, void* scratch, cudaStream_t stream, const Device& device);

uint64_t referenced_decode_scratch_bytes(const Element& element, std::span<const uint64_t> counts);

Status decode_referenced(const Element& element, std::span<const DecodeTask> arrays, uint32_t* status, void* scratch,
                         cudaStream_t stream, const Device& device);

}  // namespace arrcomp::cuda
