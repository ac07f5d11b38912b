// The only way to launch a kernel: `launch<kernel>(shape, stream, arguments...)`. A kernel that is launched anywhere is
// listed by that alone, when the extension is loaded, and so is among those that devices are made ready for.
#pragma once
#include "cuda/shape.h"

namespace arrcomp::cuda {

// `shared_bytes_of_warp`: what a block asks for at its launch, for each warp.
template <auto kernel, uint64_t shared_bytes_of_warp = 0>
inline const ListedKernel listed{reinterpret_cast<const void*>(kernel), shared_bytes_of_warp};

template <auto kernel, uint64_t shared_bytes_of_warp, class Pointer = decltype(kernel)>
struct Launch;
template <auto kernel, uint64_t shared_bytes_of_warp, class... Parameters>
struct Launch<kernel, shared_bytes_of_warp, void (*)(Parameters...)> {
  void operator()(const Shape& shape, cudaStream_t stream, const Parameters&... arguments) const {
    static_cast<void>(&listed<kernel, shared_bytes_of_warp>);
    const auto shared_bytes = static_cast<size_t>(shape.warps) * shared_bytes_of_warp;
    kernel<<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.warps * lanes_per_row), shared_bytes,
             stream>>>(arguments...);
  }
};

template <auto kernel, uint64_t shared_bytes_of_warp = 0>
inline constexpr Launch<kernel, shared_bytes_of_warp> launch{};

}  // namespace arrcomp::cuda
