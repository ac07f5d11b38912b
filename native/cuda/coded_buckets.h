// Calls of the CUDA back end for bucketed codecs whose codes are entropy coded, on the current device: the codes go to
// scratch memory as bytes, from where (or to where) they are coded like any array. As backend.h says of its functions.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

Status coded_encode_scratch_bytes(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts,
                                  uint64_t& bytes);

Status encode_coded_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                            std::span<const EncodeTask> arrays, uint64_t* lengths, const Seed& seed, void* scratch,
                            cudaStream_t stream, const Device& device);

uint64_t coded_decode_scratch_bytes(const BucketLayout& layout, const Element& element,
                                    std::span<const uint64_t> counts);

Status decode_coded_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                            std::span<const DecodeTask> arrays, uint32_t* status, void* scratch, cudaStream_t stream,
                            const Device& device);

}  // namespace arrcomp::cuda
