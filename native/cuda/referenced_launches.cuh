// How the kernels of arrays with a reference are launched. Included by one .cu file for each element type.
#pragma once
#include "cuda/referenced_calls.h"
#include "cuda/referenced_launch.h"
#include "cuda/stream_launcher.cuh"

namespace arrcomp::cuda {

template <class T>
using BitRows = DeltaRows<T, BitDelta<T>>;

template <class T, bool quantizes = T::quantizes>
struct StepRowsOf {
  using type = DeltaRows<T, StepDelta<T>>;
};
template <class T>
struct StepRowsOf<T, false> {  // of types that have no bounds
  using type = BitRows<T>;
};
template <class T>
using StepRows = typename StepRowsOf<T>::type;

template <class T>
constexpr ReferenceKernels reference_kernels_of() {
  return {
      [](const StreamOfDevice& on, const Codec& codec, const Element& element, const EncodeTask& task, uint64_t* length,
         void* scratch) {
        const StreamLauncher launcher(on);
        const auto encode = [&]<class Rows>(Rows*) {
          ReferenceEncoding<Rows, StreamLauncher>(launcher, codec, element, on.device.tables, scratch)
              .encode(task, length);
        };
        if (codes_are_bits(group_settings(codec), element)) return encode(static_cast<BitRows<T>*>(nullptr));
        encode(static_cast<StepRows<T>*>(nullptr));
      },
      [](const StreamOfDevice& on, const Element& element, const DecodeTask& task, uint32_t* status, void* scratch) {
        decode_referenced<BitRows<T>, StepRows<T>>(StreamLauncher(on), element, task, on.device.tables, status,
                                                   scratch);
      }};
}

}  // namespace arrcomp::cuda
