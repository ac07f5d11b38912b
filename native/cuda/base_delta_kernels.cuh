// The base-delta codec as kernels: one warp encodes or decodes one group.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/grouped/base_delta_decoder.h"
#include "codecs/grouped/base_delta_encoder.h"
#include "cuda/kernels.cuh"

namespace arrcomp::cuda {

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    encode_base_delta_kernel(const __grid_constant__ EncodeArguments a) {
  __shared__ BaseDeltaContext contexts[warps_per_block];
  BaseDeltaContext& context = contexts[threadIdx.x / lanes_per_row];
  if (leader()) context = {a.element, a.base_delta, a.seed.at == nullptr ? a.seed.value : read_number(a.seed.at)};
  sync();
  auto& memory = reinterpret_cast<MemoryOf<T>*>(a.memory)[warp_of_grid()].base_delta;
  for (uint32_t ticket = take_ticket(a.tickets); ticket < a.groups; ticket = take_ticket(a.tickets)) {
    const EncodeArray& array = a.arrays[array_of_unit(a.arrays, a.count, ticket)];
    const uint64_t g = ticket - array.first_unit, first = g * array.plan.group_size();
    BaseDeltaEncoder<T> encoder(context, element_pointer<T>(array.source, first), first, memory);
    const uint32_t size = encoder.encode(0, static_cast<uint32_t>(array.plan.group_count(g)));
    sync();
    put_group(a, array, g, encoder, size);
    sync();
  }
}

template <class T>
ARRCOMP_INLINE bool decode_base_delta_group(const DecodeArray& array, uint64_t g, typename T::Word::scalar* waiting) {
  PayloadView payload;
  GroupView group;
  if (!payload.open(array, false) || !group.open(array, g, payload.length)) return false;
  const Plan& plan = array.plan;
  BaseDeltaDecoder<T> decoder(group.begin, group.end, array.target, g * plan.group_size(),
                              static_cast<uint32_t>(plan.group_count(g)), waiting);
  return decoder.decode();
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    decode_base_delta_kernel(const __grid_constant__ DecodeArguments a) {
  __shared__ typename T::Word::scalar waiting[warps_per_block][waiting_words];
  decode_all(a, false, [&](const DecodeArray& array, uint64_t g) {
    return decode_base_delta_group<T>(array, g, waiting[threadIdx.x / lanes_per_row]);
  });
}

}  // namespace arrcomp::cuda
