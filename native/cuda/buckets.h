// Calls of the CUDA back end for bucketed codecs, on the current device. As backend.h says of its functions.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

uint64_t bucket_scratch_bytes(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts);

Status encode_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                      std::span<const EncodeTask> arrays, uint64_t* lengths, const Seed& seed, void* scratch,
                      cudaStream_t stream, const Device& device);

Status decode_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                      std::span<const DecodeTask> arrays, uint32_t* status, void* scratch, cudaStream_t stream,
                      const Device& device);

}  // namespace arrcomp::cuda
