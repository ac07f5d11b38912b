// How the kernels of predicted arrays are launched. Included by one .cu file for each element type.
#pragma once
#include "cuda/predicted_calls.h"
#include "cuda/predicted_launch.h"
#include "cuda/stream_launcher.cuh"

namespace arrcomp::cuda {

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
