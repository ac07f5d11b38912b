// The codecs as kernels: one warp encodes or decodes one group.
#pragma once
#define ARRCOMP_ISA cuda
#include "codecs/grouped/group_decoder.h"
#include "codecs/grouped/group_encoder.h"
#include "codecs/grouped/group_limits.h"
#include "codecs/grouped/regular_decoder.h"
#include "codecs/value_range.h"
#include "cuda/arguments.h"
#include "cuda/header.h"
#include "cuda/look_back.cuh"
#include "cuda/shared.cuh"
#include "cuda/warps.cuh"

namespace arrcomp::cuda {

// `chunk_limit`: chunks of a group, at most.
template <class T, int chunk_limit = most_chunks>
using MemoryOf = GroupMemory<typename T::Word::scalar, chunk_limit>;

// The next number, the same in all lanes.
ARRCOMP_INLINE uint32_t take_ticket(uint32_t* tickets) {
  uint32_t ticket = 0;
  if (leader()) ticket = atomicAdd(tickets, 1u);
  return or_all(U32{ticket});
}

// What a warp encodes, and what it needs there: in shared memory.
template <class T>
struct alignas(16) Turn {
  uint32_t array, group;
  EncodeContext<T> context;
};

template <class T>
struct EncodeShared {
  NearMemory near;
  Turn<T> turn;
};
template <>
struct EncodeShared<Float64> {
  static constexpr NearMemory* near = nullptr;
  Turn<Float64> turn;
};

ARRCOMP_INLINE NearMemory* pointer_to(NearMemory& near) { return &near; }
ARRCOMP_INLINE NearMemory* pointer_to(NearMemory* near) { return near; }

// Where group g of an array stands, once it is encoded; and all of its payload that is not in the groups.
template <class Encoder>
ARRCOMP_INLINE void put_group(const EncodeArguments& a, const EncodeArray& array, uint64_t g, const Encoder& encoder,
                              uint32_t size) {
  const Plan& plan = array.plan;
  const uint64_t begin = exclusive_sum(a.entries + array.first_unit, g, size);
  encoder.copy_to(array.payload + plan.groups_offset() + begin);
  if (leader()) {
    if (g == 0) write_header(array, a.settings);
    set_directory_entry(plan, array.payload, g, begin + size);
    if (g + 1 == plan.groups) *array.length = plan.groups_offset() + begin + size;
  }
}

// Shared memory holds no more: 4 blocks on Hopper (227 KB), 2 on Ampere (164 KB), fewer on others. Words of 64 bits
// take none of it, but more registers; before compute capability 8 more than 168.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int min_blocks_of_32_bits = 3;
#else
constexpr int min_blocks_of_32_bits = 4;
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int min_blocks_of_64_bits = 2;
#else
constexpr int min_blocks_of_64_bits = 3;
#endif
template <class T>
constexpr int min_encoding_blocks = T::width == 64 ? min_blocks_of_64_bits : min_blocks_of_32_bits;

// Words of 64 bits take more than 64 registers, and others do before compute capability 9, where shared memory has room
// for three blocks at most anyway.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
template <class T>
constexpr int min_regular_blocks = 5;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
template <class T>
constexpr int min_regular_blocks = T::width == 64 ? 4 : ARRCOMP_REGULAR_BLOCKS;  // less would not do
#else
template <class T>
constexpr int min_regular_blocks = T::width == 64 ? 5 : ARRCOMP_REGULAR_BLOCKS;
#endif

template <class T, int chunk_limit = most_chunks>
__global__ void __launch_bounds__(threads_per_block, min_encoding_blocks<T>)
    encode_kernel(const __grid_constant__ EncodeArguments a) {
  auto& shared = dynamic_shared_memory<EncodeShared<T>>();
  Turn<T>& turn = shared.turn;
  for (uint32_t ticket = take_ticket(a.tickets); ticket < a.groups; ticket = take_ticket(a.tickets)) {
    const auto index = static_cast<uint32_t>(array_of_unit(a.arrays, a.count, ticket));
    const EncodeArray& array = a.arrays[index];
    const uint32_t g = ticket - static_cast<uint32_t>(array.first_unit);
    if (g >= array.plan.groups) continue;  // nothing is to be encoded, as was found on the device
    // From the group's first element on: what is 0 takes no register.
    if (leader()) {
      const auto* const elements = element_pointer<T>(array.source, g * array.plan.group_size());
      const double bound = absolute_bound(array, a.settings);
      turn = {index, g, {elements, array.plan.element, bound, a.rounded_bits, a.settings, a.tables}};
    }
    sync();
    const uint32_t warp = blockIdx.x * (blockDim.x / lanes_per_row) + warp_of_block();
    auto& memory = reinterpret_cast<MemoryOf<T, chunk_limit>*>(a.memory)[warp];
    GroupEncoder<T, chunk_limit> encoder(turn.context, memory.entropy, pointer_to(shared.near));
    const uint32_t size = encoder.encode(0, static_cast<uint32_t>(array.plan.group_count(g)));
    sync();
    put_group(a, a.arrays[turn.array], turn.group, encoder, size);
    sync();
  }
}

// What a payload's header says.
struct PayloadView {
  uint64_t length = 0;
  double bound = 0;

  // False where this cannot be a payload of the array, from a codec that quantizes or not.
  ARRCOMP_METHOD bool open(const DecodeArray& array, bool may_quantize) {
    length = array.payload_length();
    const uint64_t least = array.plan.groups_offset();
    if (length > array.limit || length < least || (array.plan.groups == 0 && length > least)) return false;
    PayloadHeader header;
    memcpy(&header, __builtin_assume_aligned(in_device_memory(array.payload), 4), sizeof header);
    bound = header.bound;
    return header.fits(array.plan) && (may_quantize || bound == 0);
  }
};

// Where a group's bytes are.
struct GroupView {
  const uint8_t* begin;
  const uint8_t* end;

  // False where the directory does not tell.
  ARRCOMP_METHOD bool open(const DecodeArray& array, uint64_t g, uint64_t length) {
    const Plan& plan = array.plan;
    const uint8_t* const payload = in_device_memory(array.payload);
    const uint64_t bytes = length - plan.groups_offset();
    const uint64_t first = g > 0 ? directory_entry(plan, payload, g - 1) : 0;
    const uint64_t last = directory_entry(plan, payload, g);
    begin = payload + plan.groups_offset() + first;
    end = payload + plan.groups_offset() + last;
    return first <= last && last <= bytes && (g + 1 < plan.groups || last == bytes);
  }
};

// Opens a group; false where the directory, or the payload's header, is corrupt.
template <class Decoder>
ARRCOMP_INLINE bool open_group(const DecodeArray& array, uint64_t g, const Tables* tables, Decoder& decoder) {
  PayloadView payload;
  GroupView group;
  if (!payload.open(array, true) || !group.open(array, g, payload.length)) return false;
  const Plan& plan = array.plan;
  decoder.open({plan.element, payload.bound, tables->decode, false}, group.begin, group.end, array.target,
               g * plan.group_size(), static_cast<uint32_t>(plan.group_count(g)));
  return true;
}

// The array of a group, in memory of the warp: what is loaded from there is known to be the same in all lanes.
template <class Owner>
ARRCOMP_INLINE const DecodeArray& bring_array_near(const ArrayList<DecodeArray>& arrays, uint32_t group) {
  auto& near = warp_memory<DecodeArray, Owner>();
  sync();  // what was there before has been read
  copy_bytes(&near, arrays.begin() + array_of_unit(arrays.begin(), arrays.count, group), sizeof near);
  sync();
  return near;
}

// Calls decode(array, group) for the groups of this warp until one is corrupt.
template <class Decode>
ARRCOMP_INLINE bool decode_groups_of_warp(const DecodeArguments& a, Decode decode) {
  bool ok = true;
  const auto groups = static_cast<uint32_t>(a.arrays.units);  // of 4 KB at least: no memory holds 2^32
  for (uint32_t group = uniform(static_cast<uint32_t>(warp_of_grid())); ok && group < groups;
       group += warps_of_grid()) {
    const DecodeArray& array = bring_array_near<Decode>(a.arrays, group);
    const uint64_t g = group - array.first_unit;
    ok = g >= array.plan.groups || decode(array, g);  // nothing is to be decoded, as was found on the device
  }
  return ok;
}

// All groups, and arrays without groups, which have a payload too. Sets the status where one is corrupt.
template <class Decode>
ARRCOMP_INLINE void decode_all(const DecodeArguments& a, bool may_quantize, Decode decode) {
  const DecodeArray* const arrays = a.arrays.begin();
  bool ok = true;
  for (uint64_t i = warp_of_grid(); i < a.arrays.count; i += warps_of_grid())
    if (arrays[i].plan.groups == 0 && arrays[i].payload != nullptr)
      ok = PayloadView().open(arrays[i], may_quantize) && ok;
  ok = ok && decode_groups_of_warp(a, decode);
  if (!ok && leader()) atomicOr(a.status, 1u);
}

// Where a warp keeps what is found of a regular group: of one of many chunks, in memory that the launch asks for.
template <int chunk_limit>
struct alignas(16) RegularShared {
  GroupLayout<false, chunk_limit> layout;
};
template <int chunk_limit>
constexpr uint64_t regular_shared_bytes = chunk_limit > most_chunks ? sizeof(RegularShared<chunk_limit>) : 0;
template <int chunk_limit>
ARRCOMP_INLINE auto& regular_layout() {
  if constexpr (chunk_limit > most_chunks) {
    return dynamic_shared_memory<RegularShared<chunk_limit>>().layout;
  } else {
    return warp_memory<GroupLayout<false>>();
  }
}

// Regular groups, which are nearly all: with half the registers, so that twice as many warps hide latency. It leaves
// the others, corrupt ones too, to decode_kernel.
template <class T, int chunk_limit = most_chunks>
__global__ void __launch_bounds__(threads_per_block, min_regular_blocks<T>)
    decode_regular_kernel(const __grid_constant__ DecodeArguments a) {
  const bool ok = decode_groups_of_warp(a, [&](const DecodeArray& array, uint64_t g) {
    RegularDecoder<T, chunk_limit> decoder(regular_layout<chunk_limit>());
    return !open_group(array, g, a.tables, decoder) || !decoder.is_regular() || decoder.decode();
  });
  if (!ok && leader()) atomicOr(a.status, 1u);
}

// The other groups.
template <class T, int chunk_limit = most_chunks>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    decode_kernel(const __grid_constant__ DecodeArguments a) {
  __shared__ typename T::Word::scalar waiting[warps_per_block][waiting_words];
  decode_all(a, true, [&](const DecodeArray& array, uint64_t g) {
    GroupDecoder<T, chunk_limit> decoders[1] = {
        {warp_memory<GroupLayout<true, chunk_limit>>(), waiting[threadIdx.x / lanes_per_row]}};
    if (!open_group(array, g, a.tables, decoders[0])) return false;
    return decoders[0].is_regular() || decode_groups<T>(decoders);
  });
}

// Keys of the largest value and, inverted, of the smallest: both grow from 0. The order of the atomics does not show.
ARRCOMP_INLINE void publish_range(EncodeArray& array, const double range[2]) {
  if (!leader()) return;
  atomicMax(reinterpret_cast<unsigned long long*>(&array.range_keys[0]), ~order_key(range[0]));
  atomicMax(reinterpret_cast<unsigned long long*>(&array.range_keys[1]), order_key(range[1]));
}

template <class T>
__global__ void __launch_bounds__(threads_per_block, min_blocks)
    range_kernel(const __grid_constant__ EncodeArguments a) {
  if constexpr (T::quantizes) {
    constexpr double most = 0x1.fffffffffffffp1023;
    double range[2] = {most, -most};
    EncodeArray* array = nullptr;
    for (uint64_t group = warp_of_grid(); group < a.groups; group += warps_of_grid()) {
      EncodeArray* const next = a.arrays + array_of_unit(a.arrays, a.count, group);
      if (array != nullptr && next != array) {
        publish_range(*array, range);
        range[0] = most;
        range[1] = -most;
      }
      array = next;
      const uint64_t g = group - array->first_unit;
      const Plan& plan = array->plan;
      widen_range<typename T::Real>(plan.element, array->source, g * plan.group_size(), plan.group_count(g),
                                    a.settings.fill_or_nan(), range);
    }
    if (array != nullptr) publish_range(*array, range);
  }
}

}  // namespace arrcomp::cuda
