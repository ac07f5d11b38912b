// Launches kernels on a stream, for calls that are sequences of them (predicted_calls.h).
#pragma once
#include "cuda/launch.cuh"
#include "cuda/launch.h"

namespace arrcomp::cuda {

class StreamLauncher {
 public:
  explicit StreamLauncher(const StreamOfDevice& on) : device_(on.device), stream_(on.stream) {}

  template <auto kernel, class... Arguments>
  void run(uint64_t units, const Arguments&... arguments) const {
    launch<kernel>(shape_for(device_, std::max<uint64_t>(units, 1)), stream_, arguments...);
  }

  void widen_range(const EncodeArguments& a) const {
    kernels_of_element(a.element).widen_range(a, shape_for(device_, a.groups), stream_);
  }
  void encode(const EncodeArguments& a) const {
    const Kernels& kernels = kernels_of_element(a.element);
    kernels.encode(a, encoder_shape(kernels, a.groups, device_), stream_);
  }
  void encode_codes(const EncodeArguments& a) const {
    const CodesKernels& kernels = *kernels_of_element(a.element).codes;
    kernels.encode(a, encoder_shape(kernels, a.groups, device_), stream_);
  }
  void decode(const Element& element, const DecodeArguments& a) const {
    kernels_of_element(element).decode(a, shape_for(device_, a.arrays.units), stream_);
  }
  void decode_codes(const Element& element, const DecodeArguments& a) const {
    kernels_of_element(element).codes->decode(a, shape_for(device_, a.arrays.units), stream_);
  }

 private:
  const Device& device_;
  cudaStream_t stream_;
};

}  // namespace arrcomp::cuda
