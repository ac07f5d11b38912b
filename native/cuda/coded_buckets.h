// Calls of the CUDA back end for bucketed codecs whose codes are entropy coded, on the current device: the codes go to
// scratch memory as bytes, from where (or to where) they are coded like any array. As backend.h says of its functions.
#pragma once
#include <cuda_runtime_api.h>

#include "backend.h"

namespace arrcomp::cuda {

Status coded_encode_scratch_bytes(const BucketLayout& layout, const Element& element, std::span<const uint64_t> counts,
                                  int device, uint64_t& bytes);

Status encode_coded_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                            std::span<const EncodeTask> arrays, uint64_t* lengths, const Seed& seed, void* scratch,
                            cudaStream_t stream, int device);

uint64_t coded_decode_scratch_bytes(const BucketLayout& layout, const Element& element,
                                    std::span<const uint64_t> counts);

Status decode_coded_buckets(const Codec& codec, const BucketLayout& layout, const Element& element,
                            std::span<const DecodeTask> arrays, uint32_t* status, void* scratch, cudaStream_t stream,
                            int device);

}  // namespace arrcomp::cuda
