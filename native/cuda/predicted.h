// Calls of the CUDA back end for arrays that may be predicted, on the current device. As backend.h says of its functions.
#pragma once
#include "backend.h"
#include "cuda/device.h"

namespace arrcomp::cuda {

Status predicted_encode_scratch_bytes(const Element& element, std::span<const uint64_t> counts, const Device& device,
                                      uint64_t& bytes);

// An array for which may_be_predicted holds (stream/prediction_trial.h).
Status encode_predicted(const Codec& codec, const Element& element, const EncodeTask& task, uint64_t* length,
                        void* scratch, cudaStream_t stream, const Device& device);

uint64_t predicted_decode_scratch_bytes(const Element& element, std::span<const uint64_t> counts);

// Of a codec with a predictor; arrays are decoded one after the other.
Status decode_predicted(const Element& element, std::span<const DecodeTask> arrays, uint32_t* status, void* scratch,
                        cudaStream_t stream, const Device& device);

}  // namespace arrcomp::cuda
