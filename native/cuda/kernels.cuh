// The codecs as kernels: one warp encodes or decodes one group.
#pragma once
#define ARRCOMP_MACHINE cuda
#include "codecs/group_decoder.h"
#include "codecs/group_encoder.h"
#include "codecs/value_range.h"
#include "cuda/arguments.h"
#include "cuda/place.cuh"
#include "cuda/range_key.h"
#include "stream/payload.h"

namespace arrcomp::cuda {

template <class T>
using MemoryOf = EncoderMemory<typename T::Word::scalar>;

ARRCOMP_INLINE uint64_t warp_of_grid() { return (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes_per_row; }
ARRCOMP_INLINE uint64_t warps_of_grid() { return uint64_t{gridDim.x} * warps_per_block; }

// One group after the other, in order; `group` is the same in all lanes.
ARRCOMP_INLINE uint64_t take_ticket(ScratchHead* head) {
  uint32_t ticket = 0;
  if (leader()) ticket = atomicAdd(&head->tickets, 1u);
  return or_all(U32{ticket});
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, least_blocks) encode_kernel(const EncodeArguments a) {
  const EncodeContext context{a.plan.element, a.head->bound, a.rounded_bits, a.fast, a.tables};
  GroupEncoder<T> encoder(context, a.source, reinterpret_cast<MemoryOf<T>*>(a.memory)[warp_of_grid()]);
  uint8_t* const groups = a.payload + a.plan.groups_offset();
  for (uint64_t g = take_ticket(a.head); g < a.plan.groups; g = take_ticket(a.head)) {
    const uint32_t size = encoder.encode(g * a.plan.group_size(), static_cast<uint32_t>(a.plan.group_count(g)));
    const uint64_t begin = place(a.entries, g, size);
    encoder.copy_to(groups + begin);
    if (leader()) {
      set_directory_entry(a.plan, a.payload, g, begin + size);
      if (g + 1 == a.plan.groups) a.head->length = a.plan.groups_offset() + begin + size;
    }
    sync();
  }
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, least_blocks) decode_kernel(const DecodeArguments a) {
  __shared__ typename T::Word::scalar waiting[warps_per_block][waiting_words];
  PayloadHead head;
  memcpy(&head, a.payload, sizeof head);
  const uint64_t offset = a.plan.groups_offset();
  bool ok = head.fits(a.plan);
  const DecodeContext context{a.plan.element, head.bound, a.tables->decode};
  for (uint64_t g = warp_of_grid(); ok && g < a.plan.groups; g += warps_of_grid()) {
    const uint64_t begin = g > 0 ? directory_entry(a.plan, a.payload, g - 1) : 0;
    const uint64_t end = directory_entry(a.plan, a.payload, g);
    ok = begin <= end && end <= a.length - offset && (g + 1 < a.plan.groups || end == a.length - offset);
    if (!ok) break;
    GroupDecoder<T> decoders[1];
    decoders[0].open(context, a.payload + offset + begin, a.payload + offset + end, a.target, g * a.plan.group_size(),
                     static_cast<uint32_t>(a.plan.group_count(g)), waiting[threadIdx.x / lanes_per_row]);
    ok = decode_groups<T, 1>(decoders);
  }
  if (!ok && leader()) atomicOr(a.status, 1u);
}

// Keys of the largest value and, inverted, of the smallest: both grow from 0. The order of the atomics does not show.
template <class T>
__global__ void __launch_bounds__(threads_per_block, least_blocks) range_kernel(const EncodeArguments a) {
  if constexpr (T::quantizes) {
    double range[2] = {0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023};
    const uint64_t count = a.plan.count;
    for (uint64_t first = warp_of_grid() * chunk_size; first < count; first += warps_of_grid() * chunk_size)
      widen_range<T>(a.source, first, count - first < chunk_size ? count - first : chunk_size, range);
    if (leader()) {
      atomicMax(reinterpret_cast<unsigned long long*>(&a.head->range_keys[0]), ~order_key(range[0]));
      atomicMax(reinterpret_cast<unsigned long long*>(&a.head->range_keys[1]), order_key(range[1]));
    }
  }
}

}  // namespace arrcomp::cuda
