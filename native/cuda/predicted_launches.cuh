// How the kernels of predicted arrays are launched. Included by one .cu file for each element type.
#pragma once
#include "cuda/launch.cuh"
#include "cuda/launch.h"
#include "cuda/predicted_calls.h"
#include "cuda/predicted_launch.h"

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

template <class T>
constexpr PredictedKernels predicted_kernels_of() {
  return {
      [](const StreamOfDevice& on, const Codec& codec, const Element& element, const EncodeTask& task, uint64_t* length,
         void* scratch) {
        const StreamLauncher launcher(on);
        PredictedEncoding<T, StreamLauncher>(launcher, codec, element, on.device.tables, scratch).encode(task, length);
      },
      [](const StreamOfDevice& on, const Element& element, const DecodeTask& task, uint32_t* status, void* scratch) {
        decode_predicted<T>(StreamLauncher(on), element, task, on.device.tables, status, scratch);
      }};
}

}  // namespace arrcomp::cuda
